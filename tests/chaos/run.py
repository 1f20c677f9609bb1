"""Load, one fault after the other, and what came of it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.faults import Fault
from tests.chaos.ledger import TOLD, Ledger, MatchLedger
from tests.chaos.people import Pace, Place
from tests.chaos.stack import Stack

_PROGRESS_SECONDS = 5.0
_WARM_SECONDS = 60.0
# New places come one after the other within about so many seconds for a hundred.
_SPREAD_SECONDS = 5.0
_LAST_SECONDS = 120.0


@dataclass
class Harm:
    """What a fault did.

    Attributes:
        seconds: from its beginning until all processes served again.
        moving: from then until every match that was live has gone on.
        wait: how long one request waited for its answer at most, with all its repetitions.
        silence: the longest time in which nobody at all got an answer.
        repeated: requests that had to be sent more than once.
        resumed: streams of events that were opened again.
        failures: how single attempts failed.
        closed: how live sockets ended.
        told: what else there is to say.
    """

    name: str
    seconds: float = 0.0
    moving: float = 0.0
    wait: float = 0.0
    silence: float = 0.0
    repeated: int = 0
    resumed: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    closed: Counter[str] = field(default_factory=Counter)
    told: str = ""

    def line(self) -> str:
        """For people."""
        times = f"{self.seconds:5.1f} {self.moving:7.1f} {self.wait:8.2f} {self.silence:8.2f}"
        return f"{self.name:<34} {times} {self.repeated:9} {self.resumed:8} {sum(self.closed.values()):8}  {self.told}"

    def figures(self) -> dict[str, Any]:
        """For JSON."""
        return {name: round(value, 2) if isinstance(value, float) else value for name, value in vars(self).items()}


HEAD = f"{'fault':<34} {'harm':>5} {'moving':>7} {'wait':>8} {'silence':>8} {'repeated':>9} {'streams':>8} {'sockets':>8}"


class Chaos:
    """Matches that are played on while things break.

    Attributes:
        ledger: what was promised and seen.
        harms: what the faults did.
        stopped: whether no more faults are to be done.

    Args:
        stack: what is hurt.
        matches: how many are live at once.
        pace: what a player thinks before a move on average, seconds.
        stuck: a match that does not go on for so many seconds is stuck.
        say: takes lines that tell how far it is.
    """

    def __init__(self, stack: Stack, matches: int, *, pace: float, stuck: float, say: Callable[[str], None]) -> None:
        self.ledger = Ledger(told=lambda line: say(f"BREAK {line}"))
        self.harms: list[Harm] = []
        self.stopped = False
        self._stack, self._matches, self._stuck, self._say = stack, matches, stuck, say
        self._pace = Pace(pace)
        self._began = time.monotonic()

    async def run(self, faults: Iterable[Fault]) -> None:
        """Plays, does the faults, and lets all matches end."""
        places = [asyncio.create_task(self._place(number)) for number in range(self._matches)]
        watching = asyncio.create_task(self._watch())
        try:
            await self._warm()
            for fault in faults:
                if self.stopped:
                    break
                self.harms.append(await self._inflict(fault))
                self._say(self.harms[-1].line())
            self._pace.last = True
            self._say("the last matches are played to an end")
            _, late = await asyncio.wait(places, timeout=_LAST_SECONDS)
            for match in self.ledger.live.values() if late else ():
                self.ledger.found(match, f"it did not end within {_LAST_SECONDS:.0f} s")
            complaints = list(self._stack.complaints())
            if complaints:
                self.ledger.found(None, f"{len(complaints)} errors in the logs, the first: {complaints[0]}")
        finally:
            for task in (*places, watching):
                task.cancel()
            for result in await asyncio.gather(*places, watching, return_exceptions=True):
                if isinstance(result, Exception):
                    self.ledger.found(None, repr(result))

    def summary(self) -> dict[str, Any]:
        """Figures, for JSON."""
        ledger = self.ledger
        return {
            "redis": self._stack.mode,
            "matches_at_once": self._matches,
            "seconds": round(time.monotonic() - self._began, 1),
            "moves_acknowledged": ledger.acknowledged,
            "matches_checked": {name: count for name, count in sorted(ledger.checked.items()) if name != "clocks"},
            "events_seen": ledger.events,
            "clocks_ran_out": ledger.checked["clocks"],
            "requests_repeated": ledger.repeated,
            "streams_resumed": ledger.resumed,
            "attempts_failed": dict(ledger.failures.most_common()),
            "sockets_closed": dict(ledger.closed.most_common()),
            "moves_refused": dict(ledger.refused.most_common()),
            "lost": {"moves": ledger.lost, "matches": ledger.lost_matches, "watchers_reset": ledger.resets},
            "breaks": len(ledger.breaks),
            "told": ledger.breaks[:TOLD],
            "faults": [harm.figures() for harm in self.harms],
        }

    async def _place(self, number: int) -> None:
        await asyncio.sleep(number * _SPREAD_SECONDS / 100)
        await Place(self._stack.urls, self.ledger, self._pace, number).run()

    async def _warm(self) -> None:
        """Waits until all places play."""
        deadline = time.monotonic() + _WARM_SECONDS
        while len(self.ledger.live) < 0.9 * self._matches or self.ledger.acknowledged < self._matches:
            if time.monotonic() > deadline:
                self.ledger.found(None, f"only {len(self.ledger.live)} of {self._matches} matches are live after {_WARM_SECONDS:.0f} s")
                return
            await asyncio.sleep(0.1)

    async def _inflict(self, fault: Fault) -> Harm:
        ledger, harm, began = self.ledger, Harm(fault.name), time.monotonic()
        before = ledger.repeated, ledger.resumed, ledger.failures.copy(), ledger.closed.copy()
        ledger.lossy = ledger.lossy or fault.loses
        live = list(ledger.live.values())
        try:
            harm.told = await fault.do(self._stack) or ""
        except Exception as wrong:  # whatever it is, the others are still to come
            ledger.found(None, f"{fault.name}: {type(wrong).__name__}: {wrong}")
        healed = time.monotonic()
        harm.seconds = healed - began
        while any(_stands(match, healed) for match in live):
            if time.monotonic() - healed > self._stuck:
                break  # the watch over all matches says which
            await asyncio.sleep(0.05)
        harm.moving = time.monotonic() - healed
        harm.wait, harm.silence = ledger.longest_wait(began), ledger.longest_silence(began)
        harm.repeated, harm.resumed = ledger.repeated - before[0], ledger.resumed - before[1]
        harm.failures, harm.closed = ledger.failures - before[2], ledger.closed - before[3]
        for how, count in harm.closed.items() if fault.is_told else ():
            if not how.startswith("1012"):
                ledger.found(None, f"{fault.name}: {count} live sockets ended with {how}")
        return harm

    async def _watch(self) -> None:
        """Tells how far it is, and finds matches that are stuck."""
        told = 0.0
        while True:
            await asyncio.sleep(0.5)
            now = time.monotonic()
            for match in self.ledger.live.values():
                if now - match.moved > self._stuck and not match.stuck:
                    match.stuck = True
                    self.ledger.found(
                        match, f"it has not gone on for {self._stuck:.0f} s, with {len(match.acknowledged)} moves acknowledged"
                    )
            if now - told > _PROGRESS_SECONDS:
                told, ledger = now, self.ledger
                self._say(
                    f"{now - self._began:4.0f} s: {ledger.acknowledged:,} moves acknowledged, {len(ledger.live)} matches live, "
                    f"{sum(ledger.checked.values()) - ledger.checked['clocks']:,} checked, {len(ledger.breaks)} breaks"
                )


def _stands(match: MatchLedger, since: float) -> bool:
    """Whether a match has not gone on since then."""
    return not match.over and not match.stuck and match.moved < since
