"""Matches in Redis: load, commit, and the stream of their events.

A match is three keys in one slot, `<game>:{<match id>}:…`: `match` (a hash: version, meta, table, state), `events` (a stream, ids
`version-n`) and `answers` (a hash by player and request id). Every change goes through `commit`, which compares the version. The stream
is the truth of what happened; the bell rung with each commit only says that there is more of it.

While somebody with a seat watches there is also `present` (a sorted set of leases). Who came or went is told by `present.lua` between two
commits, so that nobody's version is another one for it; a commit that tells of a seat compares who is connected.

A match in real time has a fourth, `round` (a hash: the round that is open, the pillows left, who reacted, what is pending). There `react`
orders reactions between two commits; a commit also compares how many it has taken in, and closes no round in which one is pending, so that
none falls between.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import structlog

from services.kit import cursor
from services.kit.cursor import Cursor
from services.kit.errors import NotFound, Unavailable
from services.kit.game import Game, Value
from services.kit.storage import Argument, Script, Storage

_LUA = Path(__file__).parent / "lua"
_LOAD, _COMMIT, _PRESENT = Script(_LUA / "load.lua"), Script(_LUA / "commit.lua"), Script(_LUA / "present.lua")
_LENGTH = struct.Struct(">I")

# The layout of Meta, Table and Entry. Raise it when they change, and keep reading the old ones.
SCHEMA = 1


class Listed(msgspec.Struct, frozen=True, array_like=True):
    """Who was to sit, as listed by whoever made the match: a player's id or a kind of bot."""

    player: str
    bot: int
    name: str


class Meta(msgspec.Struct, frozen=True, array_like=True):
    """What never changes in a match. The seed leaves this process only in the record of a finished match."""

    kit_schema: int
    game_schema: int
    seed: bytes
    order: int
    options: bytes
    settings: bytes
    listed: tuple[Listed, ...]


class _Schemas(msgspec.Struct, frozen=True, array_like=True):
    """What every Meta begins with, whatever comes to follow: the numbers of the layouts that the rest has."""

    kit: int
    game: int


class Seat(msgspec.Struct, frozen=True, array_like=True):
    """A seat.

    Args:
        player: its player's id; empty for a bot.
        name: the name that others see.
        bot: the kind of bot seated here from the start, or 0.
        resigned: whether its player resigned (ALL-01).
        stand_in: whether the bot keeps it until its player acts again (ALL-02).
        timeouts: how many clocks in a row ran out (ALL-02).
        due: when its wake-up is due, ms, credit up to the table's `credit` included; None while it may not move or has no clock.
    """

    player: str
    name: str
    bot: int = 0
    resigned: bool = False
    stand_in: bool = False
    timeouts: int = 0
    due: int | None = None

    @property
    def automatic(self) -> bool:
        """Whether a bot moves for it."""
        return bool(self.bot) or self.resigned or self.stand_in


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    """How a match ended: a table.v1 Ending, and ranks by seat."""

    ending: int
    ranks: tuple[int, ...]


class Window(msgspec.Struct, frozen=True, array_like=True):
    """A window of time of a match in real time: its number, and when it ends, ms, credit up to the table's `credit` included.

    While the match waits for its players the number is its complement: so the layout is that of the releases before.
    """

    number: int
    due: int


class Table(msgspec.Struct, frozen=True, array_like=True):
    """What the platform keeps beside the state: seats, the credit (ms) that dues include, the outcome, and the window in real time."""

    seats: tuple[Seat, ...]
    credit: int = 0
    outcome: Outcome | None = None
    window: Window | None = None


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """An event in the stream, already as each viewer may know it.

    Args:
        public: the event's bytes for spectators, and for every seat that knows no more.
        private: the bytes for the seats that know more.
        act: on the first event of a commit, the RecordedMove that made it; for the record alone.
        final: whether the match ends with it.
    """

    public: bytes
    private: dict[int, bytes] = {}
    act: bytes = b""
    final: bool = False

    def seen_by(self, viewer: int | None) -> bytes:
        """The event's bytes for a viewer."""
        return self.public if viewer is None else self.private.get(viewer, self.public)


@dataclass(frozen=True, slots=True)
class Placed:
    """An entry at its place: the cursor right after it, and its time in ms."""

    cursor: Cursor
    time: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class Bell:
    """One ring: the entries of a commit, and the id of the entry right before them."""

    follows: str
    placed: tuple[Placed, ...]


class Answered(NamedTuple):
    """What a request made: the entries first to last of a version; and the fingerprint of its body."""

    version: int
    first: int
    last: int
    fingerprint: str


class Round(NamedTuple):
    """A round as stored.

    Args:
        number: its number.
        decided: how many reactions were.
        acts: their RecordedMoves in order, as far as the session's state has not taken them in.
        pending: the seats whose reactions are not decided yet, as far as they were loaded.
        due: when the first of those is to be decided, ms.
        by_players: whether players made any of those that the session's state has taken in since it was committed.
    """

    number: int = 0
    decided: int = 0
    acts: tuple[bytes, ...] = ()
    pending: frozenset[int] = frozenset()
    due: int | None = None
    by_players: bool = False


class Asked(NamedTuple):
    """A reaction to be ordered: its seat, the kind of action, the round trip of its line, the reaction and the RecordedMove without what
    is to be decided, and the answer that its request is to get.
    """

    seat: int
    action: int
    round_trip_ms: int
    reaction: bytes
    act: bytes
    answer: Answer | None


class Place(IntEnum):
    """What is returned for a reaction that got no event of its own, instead of the event's number."""

    PENDING = -1
    ANSWERED = -2
    REACTED = -3


class Ordered(NamedTuple):
    """What came of reactions.

    Args:
        now: the storage's time, ms.
        due: when the next pending one is to be decided, ms; None when none is pending.
        places: for each, the number of its event, or a `Place`.
        placed: every event after the one that the caller knew.
        mark: the mark of those that this call made.
    """

    now: int
    due: int | None
    places: list[int]
    placed: tuple[Placed, ...]
    mark: bytes


class Present(NamedTuple):
    """Who watches a match.

    Args:
        connected: the seats that are connected, as events have told.
        present: the seats that have a lease.
    """

    connected: frozenset[int]
    present: frozenset[int]


@dataclass(frozen=True, slots=True)
class Session:
    """A match as loaded.

    Args:
        match_id: its id.
        now: the storage's time, ms.
        answer: what the request got when it was first tried; None if it is new.
        version: the version; the match has been created at 1.
        cursor: the place of the newest event.
        meta, table: what is stored.
        state: the state, in real time with the reactions taken in that were ordered since the commit.
        stored: the state as committed.
        round: the round of a match in real time.
        connected: the seats whose players watch, as events have told.
        present: those of them that have a lease; the others are about to be told of.
        acted: when a player acted last with a commit, ms, less the credit by then; None where no release has noted it yet.
        watched: when a player came or went last, ms.
    """

    match_id: str
    now: int
    answer: Answered | None
    version: int
    cursor: Cursor
    meta: Meta
    table: Table
    state: Value
    stored: Value
    round: Round
    connected: frozenset[int] = frozenset()
    present: frozenset[int] = frozenset()
    acted: int | None = None
    watched: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a retry of the same request gets: its field in the match's answers, and the fingerprint of its body."""

    field: str
    fingerprint: str


# In the order in which the scripts take them.
_KEYS = ("match", "events", "answers", "bell", "round")

log = structlog.get_logger(__name__)

_entry = msgspec.msgpack.Decoder(Entry)
_schemas = msgspec.msgpack.Decoder(_Schemas)
_meta = msgspec.msgpack.Decoder(Meta)
_table = msgspec.msgpack.Decoder(Table)


class Sessions:
    """The matches of one game in storage."""

    def __init__(self, game: Game, storage: Storage) -> None:
        self._game = game
        self._storage = storage
        self._state = msgspec.msgpack.Decoder(game.rules.State)
        self._match_id = re.compile(f"{game.id}-[a-z0-9]{{8,40}}")

    def is_match_id(self, text: str) -> bool:
        """Whether this could be the id of a match of the game. Nothing else ever becomes part of a key."""
        return bool(self._match_id.fullmatch(text))

    def bell(self, match_id: str) -> str:
        """The sharded channel that is rung at each commit of a match."""
        return self._key(match_id, "bell")

    async def load(self, match_id: str, answer: Answer | None = None) -> Session:
        """Reads a match, and what the request got if it was answered before.

        Raises:
            NotFound: MATCH_NOT_FOUND.
            Unavailable: SCHEMA_NEWER when a newer release wrote it; MATCH_UNREADABLE when what is stored is damaged; STORAGE_UNAVAILABLE.
        """
        if not self.is_match_id(match_id):
            raise NotFound("MATCH_NOT_FOUND", "there is no match of this id")
        names = ("match", "answers", "present", "round") if self._game.real_time else ("match", "answers", "present")
        keys = [self._key(match_id, what) for what in names]
        loaded = await self._storage.run(_LOAD, keys, [answer.field if answer else ""])
        now, answered, round_, present, version, last, mark, meta, table, state, connected, acted, watched = loaded
        if version is None:
            raise NotFound("MATCH_NOT_FOUND", "there is no match of this id")
        try:
            self._readable(_schemas.decode(meta))
            known, seated, committed = _meta.decode(meta), _table.decode(table), self._state.decode(state)
        except (msgspec.DecodeError, TypeError) as fault:
            # Not what it says: that may quote the state.
            log.error("match_unreadable", match_id=match_id, fault=type(fault).__name__)
            raise Unavailable("MATCH_UNREADABLE", "what is stored of this match is damaged; its operator has to see to it") from fault
        return Session(
            match_id=match_id,
            now=now,
            answer=_answered(answered),
            version=int(version),
            cursor=Cursor(int(version), int(last), mark),
            meta=known,
            table=seated,
            state=committed,
            stored=committed,
            round=_round(round_),
            connected=_seats(connected or b""),
            present=frozenset(int(member.partition(b" ")[0]) for member in present) & _seats(connected or b""),
            acted=None if acted is None else int(acted),
            watched=int(watched or 0),
        )

    def raised(self, meta: Meta) -> Meta | None:
        """The Meta to be committed with a match that an older release stored: the rest is of today's layouts from then on, and a replica of
        that release must not read it by its own. None where nothing changes.
        """
        if (meta.kit_schema, meta.game_schema) == (SCHEMA, self._game.schema):
            return None
        return msgspec.structs.replace(meta, kit_schema=SCHEMA, game_schema=self._game.schema)

    async def commit(
        self,
        match_id: str,
        *,
        judged: int,
        table: Table,
        state: Value,
        entries: Sequence[Entry],
        keep_seconds: float,
        latest: int | None = None,
        reactions: int = 0,
        round_: str = "",
        meta: Meta | None = None,
        answer: Answer | None = None,
        connected: tuple[frozenset[int], frozenset[int]] | None = None,
        acted: int | None = None,
    ) -> Bell | None:
        """Commits the version after the one that was judged, if that is still the newest; version 0 is no match at all.

        Args:
            latest: the last moment, ms, at which the wake-up that was scheduled for this commit is sure to see it.
            reactions: how many reactions of the round were judged with it.
            round_: what it does to the round, as commit.lua has it.
            connected: the seats that are connected, as they were judged and from now on, if it tells of any; nobody once a match has ended.
            acted: when a player did it, ms, less the credit by then; None if no player did.

        Returns:
            The entries at their places, or None if another commit or a reaction came first, or one is pending in a round that this would
            close, or others are connected: then nothing changed.

        Raises:
            Unavailable: it took longer than until `latest`, and nothing changed; or STORAGE_UNAVAILABLE as always.
        """
        mark = secrets.token_bytes(cursor.MARK_BYTES)
        keys = [self._key(match_id, what) for what in _KEYS]
        arguments: list[Argument] = [
            judged,
            mark,
            int(keep_seconds * 1000),
            "" if latest is None else latest,
            msgspec.msgpack.encode(meta) if meta else "",
            msgspec.msgpack.encode(table),
            msgspec.msgpack.encode(state),
            answer.field if answer else "",
            f"{judged + 1} 0 {len(entries) - 1} {answer.fingerprint}" if answer else "",
            reactions,
            round_,
            "-" if connected is None else _spaced(connected[0]),
            "" if table.outcome else "-" if connected is None else _spaced(connected[1]),
            "" if acted is None else acted,
            *map(msgspec.msgpack.encode, entries),
        ]
        done, time, follows = await self._storage.run(_COMMIT, keys, arguments)
        if done < 0:
            raise Unavailable("STORAGE_UNAVAILABLE", "this took too long to be stored; try again")
        placed = (Placed(Cursor(judged + 1, n, mark), time, entry) for n, entry in enumerate(entries))
        return Bell(follows.decode(), tuple(placed)) if done else None

    async def attend(self, match_id: str, leases: Iterable[tuple[str, int]]) -> Present | None:
        """Takes in who watches a match, as `"seat replica"` and for how long, ms; returns who does, or None if there is no such match."""
        arguments: list[Argument] = []
        for member, ms in leases:
            arguments += (member, ms)
        answer = await self._storage.run(_PRESENT, self._present_keys(match_id), ["", "", "", "", "", len(arguments) // 2, *arguments])
        return Present(_seats(answer[1]), _seats(answer[2])) if answer else None

    async def tell_presence(self, session: Session, judged: Present, connected: frozenset[int], entries: Sequence[Entry]) -> Bell | None:
        """Has it told that other seats are connected from now on; None if the match or who watches is not as judged: nothing changed."""
        mark = secrets.token_bytes(cursor.MARK_BYTES)
        arguments: list[Argument] = [session.version, _spaced(judged.connected), _spaced(judged.present), _spaced(connected), mark, 0]
        arguments += map(msgspec.msgpack.encode, entries)
        done, *made = await self._storage.run(_PRESENT, self._present_keys(session.match_id), arguments) or [0]
        if not done:
            return None
        now, last, appended = made
        placed = [Placed(Cursor(session.version, last + n, mark), now, entry) for n, entry in enumerate(entries[:appended], start=1)]
        return Bell(f"{session.version}-{last}", tuple(placed))

    async def last_entry(self, session: Session) -> Placed:
        """Reads the newest entry of a session."""
        return (await self._range(session.match_id, session.cursor.entry, session.cursor.entry, 1))[0]

    async def entries(self, match_id: str, after: Cursor, most: int | None = None) -> list[Placed]:
        """Reads the entries, at most so many, after a place, in order."""
        return await self._range(match_id, f"({after.entry}" if after != cursor.BEGINNING else "-", "+", most)

    async def react(self, script: Script, session: Session, number: int, asked: Iterable[Asked]) -> Ordered | None:
        """Has reactions ordered, all in one step, and what is due decided; None if the match has gone on from the session: then nothing
        changed.
        """
        mark = secrets.token_bytes(cursor.MARK_BYTES)
        arguments: list[Argument] = [session.version, number, session.cursor.n, mark]
        for seat, action, round_trip_ms, reaction, act, answer in asked:
            arguments += (seat, action, round_trip_ms, reaction, act, *((answer.field, answer.fingerprint) if answer else ("", "")))
        keys = [self._key(session.match_id, what) for what in _KEYS]
        done, *made = await self._storage.run(script, keys, arguments)
        if not done:
            return None
        now, _, due, places, news = made
        placed = tuple([Placed(Cursor(session.version, n, marked), time, _entry.decode(entry)) for n, time, marked, entry in news])
        return Ordered(now, None if due < 0 else due, places, placed, mark)

    async def made_by(self, match_id: str, answered: Answered) -> list[Placed]:
        """Reads what a request made."""
        return await self._range(match_id, f"{answered.version}-{answered.first}", f"{answered.version}-{answered.last}", None)

    async def cursor_at(self, match_id: str, version: int, n: int) -> Cursor:
        """The place of an event by its numbers."""
        (there,) = await self._range(match_id, f"{version}-{n}", f"{version}-{n}", 1)
        return there.cursor

    async def fits(self, match_id: str, place: Cursor) -> bool:
        """Whether a place belongs to the match's history."""
        if place == cursor.BEGINNING:
            return True
        return any(there.cursor == place for there in await self._range(match_id, place.entry, place.entry, 1))

    async def _range(self, match_id: str, low: str, high: str, most: int | None) -> list[Placed]:
        found: Any = await self._storage.call(self._storage.redis.xrange(self._key(match_id, "events"), low, high, most))
        return [_placed(entry_id, fields) for entry_id, fields in found]

    def _present_keys(self, match_id: str) -> list[str]:
        return [self._key(match_id, what) for what in ("match", "events", "bell", "present")]

    def _key(self, match_id: str, what: str) -> str:
        return f"{self._game.id}:{{{match_id}}}:{what}"

    def _readable(self, schemas: _Schemas) -> None:
        if schemas.kit > SCHEMA or schemas.game > self._game.schema:
            raise Unavailable("SCHEMA_NEWER", "a newer release keeps this match; try again")


@lru_cache(4096)  # In real time the same few bodies come again and again.
def _fingerprint(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


def answer_for(verb: str, player: str, request_id: str, body: bytes) -> Answer | None:
    """The answer's place for a player's request, or None when the request has no id."""
    return Answer(f"{player}:{verb}:{request_id}", _fingerprint(body)) if request_id else None


def read_bell(message: bytes) -> Bell:
    """Reads what commit.lua publishes, and a game's script for reactions."""
    head, _, rest = message.partition(b"\n")
    follows, version, first, time = head.decode().split()
    mark, rest = rest[: cursor.MARK_BYTES], rest[cursor.MARK_BYTES :]
    entries = enumerate(_blobs(rest), int(first))
    return Bell(follows, tuple(Placed(Cursor(int(version), n, mark), int(time), _entry.decode(blob)) for n, blob in entries))


def place_of(message: bytes) -> Cursor:
    """The first place that a bell tells of, without reading the rest."""
    at = message.index(b"\n")
    _, version, first, _ = message[:at].split()
    return Cursor(int(version), int(first), message[at + 1 : at + 1 + cursor.MARK_BYTES])


def _blobs(rest: bytes) -> Iterable[bytes]:
    at = 0
    while at < len(rest):
        (length,) = _LENGTH.unpack_from(rest, at)
        yield rest[at + _LENGTH.size : at + _LENGTH.size + length]
        at += _LENGTH.size + length


def _placed(entry_id: bytes, fields: dict[bytes, bytes]) -> Placed:
    version, _, n = entry_id.partition(b"-")
    return Placed(Cursor(int(version), int(n), fields[b"mark"]), int(fields[b"time"]), _entry.decode(fields[b"entry"]))


def _seats(spaced: bytes) -> frozenset[int]:
    return frozenset(map(int, spaced.split()))


def _spaced(seats: frozenset[int]) -> str:
    return " ".join(map(str, sorted(seats)))


def _answered(answered: bytes | None) -> Answered | None:
    if not answered:
        return None
    version, first, last, fingerprint = answered.decode().split()
    return Answered(int(version), int(first), int(last), fingerprint)


def _round(stored: Sequence[bytes]) -> Round:
    if not stored:
        return Round()
    fields = dict(zip(stored[::2], stored[1::2], strict=True))
    count = int(fields[b"count"])
    return Round(
        number=int(fields[b"number"]),
        decided=count,
        acts=tuple([fields[b"reaction:%d" % rank] for rank in range(1, count + 1)]),
        # Behind a seat's mark stands where its event is, once there is one.
        pending=frozenset(int(name[5:]) for name, place in fields.items() if name.startswith(b"seat:") and place.endswith(b" ")),
        due=int(fields[b"due"]) if b"due" in fields else None,
    )
