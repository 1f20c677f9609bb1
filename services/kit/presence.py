"""Who is there: the seats whose players watch a match on this replica, kept true in storage by leases.

A replica renews its leases while somebody watches; when the last one ceases to, the lease becomes a short one, so that whoever comes back
soon was never away. A replica that dies leaves leases that end by themselves. What follows from it is told by `Matches`: this only says
when to look.
"""

from __future__ import annotations

import asyncio
import contextvars
import secrets
from collections.abc import Awaitable, Callable

import structlog

from services.kit.errors import Error
from services.kit.settings import ServiceSettings

# A lease is renewed so often before it would end.
_RENEWED = 3
# So much later than a lease ends it is looked whether it has, s.
_SLACK_SECONDS = 0.02

log = structlog.get_logger(__name__)


class Presence:
    """The matches of one game that players watch on this replica.

    Args:
        seats: the seats whose players watch a match here now.
        report: stores leases, as `"seat replica"` and for how long, ms, and tells what has changed with them.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        seats: Callable[[str], frozenset[int]],
        report: Callable[[str, list[tuple[str, int]]], Awaitable[None]],
    ) -> None:
        self._lease_ms, self._grace_ms = settings.presence_lease_ms, settings.presence_grace_ms
        self._seats, self._report = seats, report
        self._replica = secrets.token_hex(4)
        self._reported: dict[str, frozenset[int]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._working: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._closed = False

    def look(self, match_id: str) -> None:
        """Looks at who watches a match, since that may have changed."""
        if self._closed:
            return
        if timer := self._timers.pop(match_id, None):
            timer.cancel()
        if match_id in self._working:
            self._again.add(match_id)
        else:
            self._working[match_id] = asyncio.create_task(self._work(match_id), context=contextvars.Context())

    def forget(self, match_id: str) -> None:
        """Looks no more at a match: it has ended."""
        self._reported.pop(match_id, None)
        if timer := self._timers.pop(match_id, None):
            timer.cancel()

    async def close(self) -> None:
        """Lets what has begun finish."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        await asyncio.gather(*self._working.values())

    async def _work(self, match_id: str) -> None:
        try:
            while True:
                self._again.discard(match_id)
                wait_ms = await self._look(match_id)
                if match_id not in self._again or self._closed:
                    break
            if wait_ms is not None:
                self._look_later(match_id, wait_ms)
        finally:
            self._again.discard(match_id)
            del self._working[match_id]

    async def _look(self, match_id: str) -> int | None:
        """Reports who watches, and returns when to look again, ms; None when nobody does."""
        seats = self._seats(match_id)
        left = self._reported.get(match_id, frozenset()) - seats
        leases = [(seat, self._lease_ms) for seat in seats] + [(seat, self._grace_ms) for seat in left]
        try:
            await self._report(match_id, [(f"{seat} {self._replica}", ms) for seat, ms in leases])
        except Error as fault:
            # It is tried again with the next renewal; there are as many of these as matches when the storage is out of reach.
            log.debug("presence_failed", match=match_id, reason=fault.reason)
            return self._lease_ms // _RENEWED if leases else None
        except Exception:
            log.exception("presence_failed", match=match_id)
        if seats:
            self._reported[match_id] = seats
        else:
            self._reported.pop(match_id, None)
        waits = ([self._lease_ms // _RENEWED] if seats else []) + ([self._grace_ms] if left else [])
        return min(waits, default=None)

    def _look_later(self, match_id: str, wait_ms: int) -> None:
        if not self._closed and match_id not in self._timers:
            delay = wait_ms / 1000 + _SLACK_SECONDS
            self._timers[match_id] = asyncio.get_running_loop().call_later(delay, self._wake, match_id)

    def _wake(self, match_id: str) -> None:
        self._timers.pop(match_id, None)
        self.look(match_id)
