"""What clients were acknowledged and what watchers saw, held against what the record of the match says in the end."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gloaming.table.v1 import table_pb2
from services.kit import verify
from services.kit.game import Game
from tests.harness import EVERY_GAME

# A clock is started a moment before the move that it runs from is committed, on a busy machine a longer one. One that ran out twice did so
# at once.
_EARLIEST = 0.5
# So many breaks are told of; all are counted.
TOLD = 20
GAME_OF = {game.id: game for game in EVERY_GAME}


class Acknowledged(NamedTuple):
    """A move that a player was told is played; of a resignation the move is None."""

    player: str
    version: int
    move: Any


class Answered(NamedTuple):
    """How long a request took that was answered at `at`, all its repetitions and the pauses between them included, seconds."""

    at: float
    seconds: float


class Seen:
    """What one watcher saw of a match, in order.

    Attributes:
        player: who watches.
        cursors: of the events.
        events: the same, as they were sent.
        resets: how often it got a snapshot instead of what it missed.
        over: whether it saw the end.
    """

    def __init__(self, match: MatchLedger, player: str) -> None:
        self.player = player
        self.cursors: list[str] = []
        self.events: list[bytes] = []
        self.resets = 0
        self.over = False
        self._match = match
        self._changed = asyncio.Condition()

    async def event(self, event: Any) -> None:
        """Takes in an event."""
        self.cursors.append(event.cursor)
        self.events.append(event.SerializeToString(deterministic=True))
        self.over = event.event.HasField("match_finished")
        await self._go_on()

    async def snapshot(self, match: Any) -> None:
        """Takes in a match as it is; what was seen before is no part of its history."""
        self.cursors, self.events, self.over = [match.cursor], [], match.status == table_pb2.FINISHED
        self.resets += 1
        await self._go_on()

    async def beyond(self, count: int, seconds: float) -> None:
        """Waits for more than so many events, or the end, at most so long."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self.over or len(self.cursors) > count)
        except TimeoutError:
            pass

    async def _go_on(self) -> None:
        self._match.move_on()
        async with self._changed:
            self._changed.notify_all()


@dataclass
class MatchLedger:
    """One match.

    Attributes:
        moved: when it was seen to go on last, by the monotonic clock.
    """

    ledger: Ledger
    game: Game
    id: str
    moved: float = field(default_factory=time.monotonic)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    over: bool = False
    stuck: bool = False

    def move_on(self) -> None:
        """It went on."""
        self.moved = time.monotonic()

    def acknowledge(self, player: str, version: int, move: Any) -> None:
        """A player was told that a move is played."""
        self.acknowledged.append(Acknowledged(player, version, move))
        self.ledger.acknowledged += 1
        self.move_on()


class Ledger:
    """All matches.

    Args:
        lossy: whether the storage may lose what it acknowledged: then losses and their consequences are counted, and no breaks.
        told: takes each break as it is found.
    """

    def __init__(self, *, lossy: bool = False, told: Callable[[str], None] = lambda _: None) -> None:
        self.lossy = lossy
        self._told = told
        self.live: dict[str, MatchLedger] = {}
        self.acknowledged = 0
        self.checked: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.closed: Counter[str] = Counter()
        self.lost = 0
        self.lost_matches = 0
        self.resets = 0
        self.repeated = 0
        self.resumed = 0
        self.events = 0
        self.breaks: list[str] = []
        self.answered: deque[Answered] = deque(maxlen=100_000)

    def match(self, game: Game, match_id: str) -> MatchLedger:
        """A match that was made."""
        self.live[match_id] = match = MatchLedger(self, game, match_id)
        return match

    def found(self, match: MatchLedger | None, what: str) -> None:
        """Something is not as it was promised."""
        self.breaks.append(f"{match.id}: {what}" if match else what)
        if len(self.breaks) <= TOLD:
            self._told(self.breaks[-1])

    def answer(self, began: float, failed: int) -> None:
        """A request was answered after it had failed so often."""
        now = time.monotonic()
        self.answered.append(Answered(now, now - began))
        self.repeated += failed > 0

    def longest_wait(self, since: float) -> float:
        """How long a request took at most of those that were answered since then, seconds."""
        return max((each.seconds for each in self.answered if each.at >= since), default=0.0)

    def longest_silence(self, since: float) -> float:
        """The longest time since then in which no request was answered, seconds."""
        times = [since, *(each.at for each in self.answered if each.at >= since), time.monotonic()]
        return max(later - earlier for earlier, later in itertools.pairwise(times))

    def hold(self, match: MatchLedger, record: Any, seen: Sequence[tuple[Seen, Sequence[Any]]]) -> None:
        """Holds a finished match to what was promised.

        Args:
            match: the match.
            record: its record.
            seen: what each watcher saw, and all events as they are told now to the same player.
        """
        for each, whole in seen:
            self._hold_watcher(match, each, whole)
        try:
            list(verify.check(match.game, record))
        except verify.Mismatch as fault:
            self.found(match, f"its record is not true: {fault}")
        self._hold_moves(match, record)
        self._hold_clocks(match, record)
        self.checked[match.game.id] += 1

    def _hold_watcher(self, match: MatchLedger, seen: Seen, whole: Sequence[Any]) -> None:
        # Who resigned only watches from then on: afterwards they are told of their own past as all the others are.
        resigned = {each.player for each in match.acknowledged if each.move is None}
        self.events += len(seen.cursors)
        self.resets += seen.resets
        if seen.resets and not self.lossy:
            self.found(match, "a watcher got a snapshot instead of what it had missed")
        cursors = [event.cursor for event in whole]
        told = [event.SerializeToString(deterministic=True) for event in whole]
        if len(set(cursors)) != len(cursors):
            self.found(match, "an event stands in its history twice")
        if not whole or not whole[-1].event.HasField("match_finished"):
            self.found(match, "its history has no end")
        start = len(cursors) - len(seen.cursors) if seen.resets else 0
        if seen.cursors != cursors[start:]:
            repeated = len(seen.cursors) - len(set(seen.cursors))
            missing = len(set(cursors[start:]) - set(seen.cursors))
            self.found(match, f"a watcher saw {repeated} events twice, and {missing} of {len(cursors[start:])} not at all")
        elif seen.player not in resigned and seen.events != told[len(told) - len(seen.events) :]:
            self.found(match, "a watcher was told something else than what is told afterwards")

    def _hold_moves(self, match: MatchLedger, record: Any) -> None:
        """Every acknowledged move is there, in its place, and no other of a player's."""
        seats = {seat.player: seat.seat for seat in record.seats if seat.player}
        moves = [move for move in record.moves if move.played.by == table_pb2.Played.PLAYER and move.WhichOneof("done") != "window_ended"]
        there = 0
        for each in match.acknowledged:
            if match.game.real_time:
                found = [move for move in moves if move.played.seat == seats[each.player] and _same_turn(each, move)]
            else:
                # The match begins at version 1, and each move makes one.
                place = each.version - 2
                at = record.moves[place : place + 1] if place >= 0 else []
                found = [move for move in at if move.played.seat == seats[each.player] and _same_turn(each, move)]
            if len(found) == 1:
                there += 1
            elif found:
                self.found(match, f"an acknowledged move is in the record {len(found)} times: {each}")
            elif self.lossy:
                self.lost += 1
            else:
                self.found(match, f"an acknowledged move is not in the record: {each}")
        if len(moves) != there:
            self.found(match, f"its players played {len(moves)} moves, and were told of {there} of them")

    def _hold_clocks(self, match: MatchLedger, record: Any) -> None:
        """A clock plays for its seat no sooner after that seat's last move than it runs: each ran out once."""
        last = dict.fromkeys(range(len(record.seats)), record.create_time.ToMilliseconds())
        for move in record.moves:
            seat, at = move.played.seat, move.played.time.ToMilliseconds()
            if move.played.by == table_pb2.Played.CLOCK and not match.game.real_time:
                self.checked["clocks"] += 1
                if at - last[seat] < 1000 * record.settings.move_seconds * _EARLIEST:
                    self.found(match, f"the clock of seat {seat} ran out {at - last[seat]} ms after its last move")
            last[seat] = at


def _same_turn(each: Acknowledged, move: Any) -> bool:
    """Whether a recorded move is the acknowledged one."""
    if each.move is None:
        return bool(move.WhichOneof("done") == "resignation")
    return bool(move.HasField("move") and move.move == each.move)
