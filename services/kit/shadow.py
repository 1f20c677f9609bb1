"""Replays what is stored with the code at hand, before that code serves: `python -m services.<game> shadow`.

A finished match is played again from its seed and its moves. Each of its events, as each viewer got it, its outcome, its scores and what
each viewer sees of its end must come out as they are stored. A live match must be one that can be loaded, and its state the one that its
moves lead to, for each viewer and with the same legal moves. Reads alone; the Redis user of the game's own service may do all of it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from google.protobuf import json_format
from google.protobuf.message import Message

from gloaming.table.v1 import table_pb2
from services.kit import cursor, verify
from services.kit.errors import NotFound, Unavailable
from services.kit.game import NOBODY_WINS, Game, Value
from services.kit.messages import Messages
from services.kit.sessions import Entry, Outcome, Placed, Session, Sessions
from services.kit.settings import Redis, read
from services.kit.storage import Storage
from services.kit.verify import Turn
from services.kit.version import VERSION

# So many that differ are named; the others are counted.
_NAMED_AT_MOST = 100
_PROGRESS_SECONDS = 5.0


class Difference(NamedTuple):
    """Where a match first comes out otherwise.

    Args:
        where: a version and an event, or what of the end.
        what: what of it, by the names that it has in JSON.
        values: what is stored and what was replayed; it may be what not everybody in the match may know.
    """

    where: str
    what: str
    values: str = ""


@dataclass
class Tally:
    """What was found.

    Args:
        finished: finished matches that come out the same.
        live: live ones of which the same is true.
        differing: matches that come out otherwise.
        unreadable: matches that cannot be loaded.
        skipped: matches that were not looked at: they are still live, or belong to another game.
    """

    finished: int = 0
    live: int = 0
    differing: int = 0
    unreadable: int = 0
    skipped: int = 0

    @property
    def looked_at(self) -> int:
        """How many were replayed."""
        return self.finished + self.live + self.differing + self.unreadable


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what the command takes."""
    parser.add_argument("records", nargs="*", type=Path, help="records as JSON, or folders of them; none: what is stored at REDIS_URL")
    parser.add_argument("--live", action="store_true", help="look at matches that are under way, too")
    parser.add_argument("--rate", type=_positive, default=50, help="so many matches, or steps of looking for them, a second (default 50)")
    parser.add_argument("--most", type=_positive, default=sys.maxsize, help="so many matches at most (default all)")
    parser.add_argument("--show", action="store_true", help="print values that differ, though not everybody in a match may know them")


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError("must be an integer from 1")
    return int(text)


def main(game: Game, asked: argparse.Namespace) -> int:
    """Prints each match that comes out otherwise and what was found; returns 0 when all come out the same, 1 when one does not or cannot be
    loaded, 2 when it could not look.
    """
    try:
        tally = asyncio.run(_look(game, asked))
    except (Unavailable, OSError, ValueError) as fault:
        print(f"cannot look: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 2
    print(
        f"{game.info.title}, by gloaming {VERSION}: {tally.finished} finished and {tally.live} live matches come out the same; "
        f"{tally.differing} differ, {tally.unreadable} cannot be loaded; {tally.skipped} were not looked at."
    )
    return 1 if tally.differing or tally.unreadable else 0


async def _look(game: Game, asked: argparse.Namespace) -> Tally:
    if asked.records:
        return await _judge(game, _of_files(game, asked.records), asked)
    storage = Storage(read(Redis).redis_url)
    try:
        return await _judge(game, _of_storage(game, storage, asked.live, asked.rate), asked)
    finally:
        await storage.close()


class _Found(NamedTuple):
    """A match as it was found: the difference, if there is one; `readable`, `live` and `skipped` are what `Tally` counts."""

    name: str
    difference: Difference | None = None
    readable: bool = True
    live: bool = False
    skipped: bool = False


async def _judge(game: Game, found: AsyncIterator[_Found], asked: argparse.Namespace) -> Tally:
    tally, told = Tally(), time.monotonic()
    async for match in found:
        if match.skipped:
            tally.skipped += 1
        elif not match.readable:
            tally.unreadable += 1
        elif match.difference:
            tally.differing += 1
        elif match.live:
            tally.live += 1
        else:
            tally.finished += 1
        if match.difference and tally.differing + tally.unreadable <= _NAMED_AT_MOST:
            print(_line(match, match.difference, asked.show), flush=True)
        if time.monotonic() - told > _PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"{tally.looked_at} matches, {tally.differing + tally.unreadable} not the same", file=sys.stderr)
        if tally.looked_at >= asked.most:
            break
    return tally


def _line(match: _Found, difference: Difference, show: bool) -> str:
    verdict = "DIFFERS" if match.readable else "CANNOT BE LOADED"
    values = f": {difference.values}" if show and difference.values else ""
    return f"{verdict} {match.name} {difference.where}: {difference.what}{values}"


# Where matches come from.


async def _of_files(game: Game, paths: Sequence[Path]) -> AsyncIterator[_Found]:
    """Records that were kept, each replayed as `verify` does; a record has no events.

    Raises:
        OSError: there is no such file.
    """
    for path in paths:
        for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
            record = game.message("Record")()
            try:
                json_format.Parse(file.read_text(), record, ignore_unknown_fields=True)
            except (UnicodeDecodeError, json_format.ParseError):
                record.Clear()
            if record.game != game.id:
                no_record = Difference("as a whole", "it is not a record")
                yield _Found(str(file), skipped=True) if record.game else _Found(str(file), no_record, readable=False)
                continue
            _, wrong = _replay(game, record)
            yield _Found(str(file), Difference("record", *_said(wrong)) if wrong else None)


async def _of_storage(game: Game, storage: Storage, live: bool, rate: int) -> AsyncIterator[_Found]:
    """The matches in Redis.

    Raises:
        Unavailable: Redis does not answer.
    """
    sessions, messages = Sessions(game, storage), Messages(game)
    pause = 1 / rate
    async with aclosing(storage.scan(f"{game.id}:{{{game.id}-*}}:match")) as steps:
        async for keys in steps:
            await asyncio.sleep(pause)
            for key in dict.fromkeys(keys):
                match_id = key.decode().split("{", 1)[1].partition("}")[0]
                if not sessions.is_match_id(match_id):
                    continue
                began = time.monotonic()
                found = await _of_match(game, sessions, messages, match_id, live)
                if found:
                    yield found
                await asyncio.sleep(max(0.0, pause - (time.monotonic() - began)))


async def _of_match(game: Game, sessions: Sessions, messages: Messages, match_id: str, live: bool) -> _Found | None:
    """A match in Redis; None if it is gone meanwhile."""
    try:
        session = await sessions.load(match_id)
    except NotFound:
        return None
    except Unavailable as fault:
        if fault.reason == "STORAGE_UNAVAILABLE":
            raise
        return _Found(match_id, Difference("as a whole", fault.reason, fault.detail), readable=False)
    except (msgspec.MsgspecError, TypeError, ValueError) as fault:
        return _Found(match_id, Difference("as a whole", type(fault).__name__, str(fault)), readable=False)
    under_way = session.table.outcome is None
    if under_way and not live:
        return _Found(match_id, skipped=True)
    # What was committed since is not in the session.
    placed = [each for each in await sessions.entries(match_id, cursor.BEGINNING) if each.cursor[:2] <= session.cursor[:2]]
    if not placed:
        return None
    return _Found(match_id, difference(game, messages, session, placed), live=under_way)


# How a match is judged.


def difference(game: Game, messages: Messages, session: Session, placed: Sequence[Placed]) -> Difference | None:
    """Where a stored match first comes out otherwise; None where it does not.

    Args:
        placed: all of its events.
    """
    seats = len(session.table.seats)
    # `verify` takes a match that is under way for one that was given up here.
    outcome = session.table.outcome or Outcome(table_pb2.Outcome.ABANDONED, NOBODY_WINS * seats)
    try:
        record: Any = messages.record(session, outcome, placed)
        turns, fault = _replay(game, record)
        replayed = _Replayed(game, messages, session, turns)
        if found := replayed.first_of_events(placed, record, fault):
            return found
        if fault:
            return Difference(f"version {session.version}", *_said(fault))
        state = replayed.state
        if session.table.outcome and session.table.outcome.ending != table_pb2.Outcome.COMPLETED:
            state = game.rules.end_early(state)
        return next(_of_states(game, session, state), None)
    except Exception as broken:  # Code that is not at home with what is stored may fail at anything, and that is what is to be found.
        return Difference(f"version {session.version}", *_said(broken))


def _replay(game: Game, record: Any) -> tuple[list[Turn], Exception | None]:
    """What the deal and each move led to, and what ended that before its time."""
    turns: list[Turn] = []
    try:
        for _ in verify.check(game, record, turns.append):
            pass
    except Exception as fault:  # as above
        return turns, fault
    return turns, None


def _said(fault: Exception) -> tuple[str, str]:
    """What is wrong, and the same with values."""
    if isinstance(fault, verify.Mismatch):
        return str(fault).partition(":")[0], str(fault)
    return f"the replay fails: {type(fault).__name__}", str(fault)


class _Replayed:
    """A match that was replayed, held against what is stored.

    Attributes:
        state: the state that was committed last, as replayed; known once the events have been gone through.
    """

    def __init__(self, game: Game, messages: Messages, session: Session, turns: Sequence[Turn]) -> None:
        self.state: Value = None
        self._game = game
        self._messages = messages
        self._session = session
        self._turns = turns

    def first_of_events(self, placed: Sequence[Placed], record: Any, fault: Exception | None) -> Difference | None:
        """The first event that differs; and where a move has no turn, the fault there was instead."""
        if not self._turns:
            return Difference("version 1", *_said(fault)) if fault else None
        self.state, awaited = self._turns[0].state, self._entries(self._turns[0])
        moves = iter(zip(record.moves, self._turns[1:], strict=False))
        for there in placed:
            mine: Entry | None = None
            if there.entry.act:
                move, turn = next(moves, (None, None))
                if turn is None:
                    return Difference(f"version {there.cursor.version}", *_said(fault or verify.Mismatch("a move more than replayed")))
                made = self._entries(turn)
                if self._is_reaction(move):
                    # Its own event is stored as it is ordered, what it leads to with the next version.
                    if turn.events is None:
                        continue
                    mine = made.popleft()
                if mine is None or there.cursor.version < self._session.version:
                    self.state = turn.state
                awaited.extend(made)
            if mine is None:
                if self._of_platform(there.entry):
                    continue
                if not awaited:
                    return Difference(self._where(there), "an event more than replayed")
                mine = awaited.popleft()
            if found := self._of_entry(there, mine):
                return found
        # A live round's last reaction may have been ordered, and what it leads to not be stored yet.
        if awaited and self._session.table.outcome and not fault:
            return Difference(f"version {self._session.version}", "an event less than replayed")
        return None

    def _entries(self, turn: Turn) -> deque[Entry]:
        return deque(self._messages.entries(turn.events or (), len(self._session.table.seats)))

    def _is_reaction(self, move: Any) -> bool:
        return self._game.real_time is not None and move.WhichOneof("done") == "move" and move.HasField("reaction")

    def _of_platform(self, entry: Entry) -> bool:
        event = self._game.message("Event").FromString(entry.public)
        return bool(event.HasField("seat_changed") or event.HasField("match_finished"))

    def _of_entry(self, there: Placed, mine: Entry) -> Difference | None:
        event = self._game.message("Event")
        for viewer in (None, *range(len(self._session.table.seats))):
            stored, replayed = there.entry.seen_by(viewer), mine.seen_by(viewer)
            if stored != replayed:
                what, values = next(_differing(event.FromString(stored), event.FromString(replayed)), ("the order of its bytes", ""))
                return Difference(self._where(there), f"{what}, as {_who(viewer)} it", values)
        return None

    @staticmethod
    def _where(there: Placed) -> str:
        return f"version {there.cursor.version}, event {there.cursor.n}"


def _of_states(game: Game, session: Session, replayed: Value) -> Iterator[Difference]:
    """What differs between the state as stored and as replayed: views, who is to move, legal moves."""
    where = f"version {session.version}"
    for viewer in (None, *range(len(session.table.seats))):
        stored_view, replayed_view = (game.codec.view_to_proto(game.rules.view(state, viewer)) for state in (session.state, replayed))
        for what, values in _differing(stored_view, replayed_view):
            yield Difference(where, f"view.{what}, as {_who(viewer)} it", values)
    movers = [sorted(game.rules.to_move(state)) for state in (session.state, replayed)]
    if movers[0] != movers[1]:
        yield Difference(where, "who is to move", _both(*movers))
    for seat in movers[0]:
        legal = [sorted(_moves(game, state, seat)) for state in (session.state, replayed)]
        if legal[0] != legal[1]:
            yield Difference(where, f"the legal moves of seat {seat}", f"{len(legal[0])} stored, {len(legal[1])} replayed")


def _moves(game: Game, state: Value, seat: int) -> Iterator[bytes]:
    for move in game.rules.legal(state, seat):
        yield game.codec.move_to_proto(move).SerializeToString(deterministic=True)


def _who(viewer: int | None) -> str:
    return "spectators see" if viewer is None else f"seat {viewer} sees"


def _both(stored: object, replayed: object) -> str:
    return f"stored {stored}, replayed {replayed}"


def _differing(stored: Message, replayed: Message, path: str = "") -> Iterator[tuple[str, str]]:
    """Each field in which two messages of a kind differ, by its path in JSON, with both values."""
    for field in stored.DESCRIPTOR.fields:
        name, left, right = f"{path}{field.json_name}", getattr(stored, field.name), getattr(replayed, field.name)
        if field.has_presence and stored.HasField(field.name) != replayed.HasField(field.name):
            yield name, "stored alone" if stored.HasField(field.name) else "replayed alone"
        elif not field.is_repeated and field.message_type is not None:
            yield from _differing(left, right, f"{name}.")
        elif not field.is_repeated or field.message_type is None:
            if left != right:
                yield name, _both(left, right)
        elif len(left) != len(right):
            yield name, _both(len(left), len(right))
        else:
            for n, (one, other) in enumerate(zip(left, right, strict=True)):
                yield from _differing(one, other, f"{name}[{n}].")
