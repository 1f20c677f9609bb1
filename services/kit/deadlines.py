"""Deadlines: clocks that run out and bots that move, durable and acted on once.

A wake-up is scheduled in a sorted set before the commit that needs it, never later than one already there; where the match is sure to have
one that is early enough, that is left to it (`is_kept`). Any replica sweeps: it claims
what is due for the length of a lease, lets the match act on its own deadline, which is the truth, and settles the claim. Waking too
early, twice, or on two replicas is harmless; a wake-up is never lost. For it may come even before its commit: so the first one after a
scheduling that finds less to do than expected is followed by another at its lease's end, and a commit made more than a lease after its
scheduling is refused. The set is spread over shards by match id. Each shard keeps a clock of service: while no replica swept it (Redis or
all replicas down) time is credited, not charged.
"""

from __future__ import annotations

import asyncio
import math
import time
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog

from services.kit import metrics
from services.kit.errors import Error, NotFound
from services.kit.storage import Argument, Script, Storage

_LUA = Path(__file__).parent / "lua"
_SCHEDULE, _CLAIM, _SETTLE = Script(_LUA / "schedule.lua"), Script(_LUA / "claim.lua"), Script(_LUA / "settle.lua")
# So many matches of a shard are acted on at once by a replica.
_AT_ONCE = 64

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Moment:
    """The storage's time, and how much time without service had been credited by then; both ms."""

    now: int
    credit: int


# Acts on whatever is due in a match at a moment, and returns when it wants to be woken next (ms, credit of that moment included), or
# None.
Act = Callable[[str, Moment], Awaitable[int | None]]


class Pace(Protocol):
    """The settings that deadlines need; see `settings.ServiceSettings`."""

    deadline_shards: int
    outage_ms: int
    sweep_ms: int
    lease_ms: int


class Deadlines:
    """The wake-ups of one game's matches."""

    def __init__(self, game_id: str, storage: Storage, pace: Pace) -> None:
        self._game_id = game_id
        self._storage = storage
        self._pace = pace
        self._sooner = [asyncio.Event() for _ in range(pace.deadline_shards)]
        self._credit = [0] * pace.deadline_shards
        self._swept = [-math.inf] * pace.deadline_shards
        self._waking = [0] * pace.deadline_shards

    async def schedule(self, match_id: str, delay_ms: int, kept: int | None = None) -> Moment:
        """Makes sure that the match is woken in `delay_ms` or earlier, and returns the moment of scheduling.

        Args:
            kept: the earliest deadline, ms, that the match had before and keeps: whoever claimed it may have put it off by a lease.
        """
        shard = self._shard(match_id)
        arguments: list[Argument] = [match_id, delay_ms, self._pace.outage_ms, "" if kept is None else kept]
        now, credit = await self._storage.run(_SCHEDULE, self._keys(shard), arguments)
        self._credit[shard] = credit
        delay_ms = delay_ms if kept is None else max(0, min(delay_ms, kept - now))
        self._sweep_in(shard, delay_ms)
        return Moment(now, credit)

    def latest(self, scheduled: Moment) -> int:
        """The last moment, ms, for a commit whose wake-up was scheduled at that one."""
        return scheduled.now + self._pace.lease_ms

    def is_kept(self, now: int, stored: int, fresh: int) -> bool:
        """Whether a commit at about `now` that needs a wake-up at `fresh` can do without scheduling one, for the match has a due, `stored`,
        in the version that was judged. All in ms, credit included.

        What makes it so: whenever a match stands at a version with a due, it has an entry among the deadlines that is no later than its
        earliest due, or a claim whose holder is going to settle it to no later than that. For
        - the commit that gave it its first due scheduled it before; by `schedule`'s half a millisecond whoever had claimed it then left it;
        - a claim removes an entry only where it read a version without any due, and settles it to the earliest due of the version it read;
        - of commits since, each either scheduled its own, or its new dues were no earlier than the earliest of the version before: so the
          earliest due never went back, and what a claim settles to by an older version is early, which is harmless.
        A holder that died leaves its entry at its lease's end, so that such a wake-up may come late by up to a lease, as any that was
        claimed. A due that is past by more than a lease is therefore no proof any more: the entry was lost, with a failover of the storage.
        Nor has such a commit a latest moment: there is no wake-up that could come before it in vain.
        """
        return stored <= fresh and now < stored + self._pace.lease_ms

    def moment(self, match_id: str, now: int) -> Moment | None:
        """The moment `now`, if this replica swept so lately that no outage can have gone uncounted since: else nobody but `schedule` knows
        the credit.
        """
        shard = self._shard(match_id)
        if time.monotonic() - self._swept[shard] >= self._pace.outage_ms / 1000:
            return None
        return Moment(now, self._credit[shard])

    def credit(self, match_id: str) -> int:
        """The credit as this replica last saw it, at most a sweep ago."""
        return self._credit[self._shard(match_id)]

    async def sweep(self, act: Act, stopping: asyncio.Event) -> None:
        """Acts on due deadlines until `stopping` is set; what has been begun is finished."""
        async with asyncio.TaskGroup() as tasks:
            for shard in range(self._pace.deadline_shards):
                tasks.create_task(self._sweep_shard(shard, act, stopping))

    async def _sweep_shard(self, shard: int, act: Act, stopping: asyncio.Event) -> None:
        sooner = self._sooner[shard]
        stop = asyncio.create_task(stopping.wait())
        failing = ""
        async with asyncio.TaskGroup() as waking:
            while not stopping.is_set():
                sooner.clear()
                try:
                    wait_ms = await self._sweep_once(shard, act, waking)
                    failing = ""
                except Error as fault:
                    if fault.reason != failing:  # once, not with every attempt
                        failing = fault.reason
                        log.warning("sweep_failed", shard=shard, reason=fault.reason)
                    wait_ms = self._pace.sweep_ms
                wake = asyncio.create_task(sooner.wait())
                await asyncio.wait({stop, wake}, timeout=wait_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
                wake.cancel()
        stop.cancel()

    async def _sweep_once(self, shard: int, act: Act, waking: asyncio.TaskGroup) -> int:
        """Wakes what is due in a shard, and returns how long to wait before looking again, ms."""
        room, asked = _AT_ONCE - self._waking[shard], time.monotonic()
        answer = await self._storage.run(_CLAIM, self._keys(shard), [self._pace.lease_ms, self._pace.outage_ms, room])
        now, credit, credited, first, claimed, *matches = answer
        self._credit[shard], self._swept[shard] = credit, asked
        if credited:
            metrics.CREDITED.inc(credited / 1000)
            log.warning("outage_credited", shard=shard, seconds=credited / 1000)
        for match_id, scheduled in zip(matches[::2], matches[1::2], strict=True):
            self._waking[shard] += 1
            waking.create_task(self._wake(shard, match_id.decode(), Moment(now, credit), claimed, bool(scheduled), act))
        if self._waking[shard] >= _AT_ONCE:
            return self._pace.sweep_ms  # or until there is room
        return self._pace.sweep_ms if first < 0 else max(0, min(self._pace.sweep_ms, first - now))

    async def _wake(self, shard: int, match_id: str, moment: Moment, claimed: int, scheduled: bool, act: Act) -> None:
        try:
            try:
                due = await act(match_id, moment)
            except NotFound:
                due = None
            if scheduled and (due is None or due >= claimed):
                return  # The commit may be still to come: the lease ends, and the wake-up comes again.
            await self._storage.run(_SETTLE, self._keys(shard)[:1], [match_id, claimed, "" if due is None else due])
            if due is not None:
                self._sweep_in(shard, due - moment.now)
        except Error as fault:
            log.warning("deadline_failed", match=match_id, reason=fault.reason)  # The same.
        except Exception:
            log.exception("deadline_failed", match=match_id)
        finally:
            self._waking[shard] -= 1
            if self._waking[shard] == _AT_ONCE // 2:
                self._sooner[shard].set()

    def _sweep_in(self, shard: int, delay_ms: int) -> None:
        """Sweeps again in so many ms: for what this replica set itself nobody waits until the next sweep, which is in time for the rest."""
        if delay_ms < self._pace.sweep_ms:
            asyncio.get_running_loop().call_later(delay_ms / 1000, self._sooner[shard].set)

    def _shard(self, match_id: str) -> int:
        return zlib.crc32(match_id.encode()) % self._pace.deadline_shards

    def _keys(self, shard: int) -> list[str]:
        return [f"{self._game_id}:{{deadlines/{shard}}}:due", f"{self._game_id}:{{deadlines/{shard}}}:clock"]
