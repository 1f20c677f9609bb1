"""Backup and restore of all that is stored, by keys: from any kind of Redis (one, Sentinel, Cluster) into any other.

What belongs together (a match, a player: the keys of one hash tag) is taken in one step and put back in one; different matches are from
slightly different moments. Ratings are taken first, with the marks of the matches that are counted in them: every match that ends after
that is handed out again once it is restored, and is known by its mark if it was counted. Tickets are not kept: who waited asks again.

A file is gzip of: records, each behind its length (four bytes, big-endian), in MessagePack; then a length of 0 and the SHA-256 of all
before it. The first record is {format, version, time}, every other one the keys of one tag: [key, DUMP, expiry in ms or -1], …
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import os
import re
import secrets
import struct
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias, cast

import msgspec
from redis.exceptions import ResponseError

from gateway.ratings import COUNTED_MS
from gateway.registry import GAMES
from services.kit.deadlines import Deadlines
from services.kit.settings import ServiceSettings
from services.kit.storage import Script, Storage

_LUA = Path(__file__).parent / "lua"
_DUMP, _RESTORE = Script(_LUA / "dump.lua"), Script(_LUA / "restore.lua")

FORMAT, VERSION = "gloaming backup", 1
_LENGTH = struct.Struct(">I")
_SCANNED = 1000
# So many tags at once; so many keys at most of a tag whose keys need not be of one moment.
_AT_ONCE, _KEYS_AT_ONCE = 64, 500
# DUMP ends with the number of its format (two bytes, little-endian) and a checksum (eight).
_DUMP_VERSION = slice(-10, -8)

_OWNERS = ("gateway", *GAMES)
_OWNED = re.compile(rb"(?:" + b"|".join(re.escape(owner.encode()) for owner in _OWNERS) + rb"):")
_TAG = re.compile(rb"\{([^}]+)\}")
_MATCH = re.compile(rb"(" + b"|".join(re.escape(game.encode()) for game in GAMES) + rb"):\{([^}/]+)\}:match")
_DEADLINES = re.compile(rb"([a-z_]+):\{deadlines/(\d+)\}:(clock|due)")
# What lives for moments, or means nothing later. A result acknowledged a moment ago would not be handed out again.
_LEFT_OUT = re.compile(rb"gateway:\{tickets/|gateway:\{backup\}:|gateway:limit:|[a-z_]+:\{results\}:acknowledged$")
# What is there as soon as processes run, though nobody has done anything.
_NOTHING = re.compile(rb"[a-z_]+:\{deadlines/\d+\}:|gateway:limit:|gateway:\{backup\}:")
_COUNTED = re.compile(rb"gateway:\{ratings/([a-z_]+)\}:counted:")
_RATINGS = re.compile(rb"gateway:\{ratings/([a-z_]+)\}:(players|board)$")
# A key that is made after the names were read belongs to its tag all the same.
_SIBLINGS = ("match", "events", "answers", "present", "round")
_OF_PLAYER = ("player", "refresh", "matches", "live", "rooms", "notices")
_PROBE = "gateway:{backup}:probe"
_PROBE_MS = 10_000

Group: TypeAlias = list[tuple[bytes, bytes, int]]


class BackupError(Exception):
    """A backup or a restore that cannot be; the message says why in a sentence."""


@dataclass
class Counts:
    """What was done.

    Attributes:
        keys: by owner.
        expired: keys that were not put back, since they have expired.
    """

    keys: Counter[str] = field(default_factory=Counter)
    matches: int = 0
    players: int = 0
    expired: int = 0

    def add(self, group: Group) -> None:
        """Counts the keys of a tag."""
        for key, _, _ in group:
            self.keys[key.partition(b":")[0].decode()] += 1
            self.matches += _MATCH.fullmatch(key) is not None
            self.players += key.startswith(b"gateway:{") and key.endswith(b"}:player")

    def plain(self) -> dict[str, Any]:
        """The counts as what JSON is made of."""
        return {"keys": dict(sorted(self.keys.items())), "matches": self.matches, "players": self.players, "expired": self.expired}


class _Checked(NamedTuple):
    """What a file holds, once it is sure to be whole: its header, how many shards of deadlines each game has, the newest format of DUMP."""

    header: dict[str, Any]
    shards: dict[str, int]
    dumps: int


async def back_up(storage: Storage, path: Path) -> Counts:
    """Writes all that is stored to a new file, which only its owner may read. It is there when it is whole, or not at all.

    Raises:
        BackupError: the file is there already, or cannot be written.
        Unavailable: Redis does not answer.
        ResponseError: its user may not read all keys.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            counts = await write(storage, file)
            file.flush()
            os.fsync(file.fileno())
        # Not renamed: it must not take the place of another file.
        os.link(partial, path)
    except FileExistsError as fault:
        raise BackupError(f"{path} is there already; name another file.") from fault
    except OSError as fault:
        raise BackupError(f"{path} cannot be written: {fault.strerror}.") from fault
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
    return counts


async def write(storage: Storage, file: IO[bytes]) -> Counts:
    """Writes all that is stored. Raises as `back_up`."""
    counts = Counts()
    with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
        writer = _Writer(packed)
        writer.put({"format": FORMAT, "version": VERSION, "time": round(time.time() * 1000)})
        async for group in _groups(storage):
            counts.add(group)
            writer.put(group)
        writer.end()
    return counts


async def restore(storage: Storage, path: Path, *, replace: bool = False) -> Counts:
    """Puts all back that a file holds. Nothing is written unless the file is whole, and Redis can read it.

    Args:
        replace: what is stored is removed before; else nothing may be there.

    Raises:
        BackupError: the file is not whole or no backup, Redis is too old for it, or not empty.
        Unavailable: Redis does not answer.
        ResponseError: its user may not write all keys.
    """
    checked = _check(path)
    await _check_version(storage, checked)
    there = [key async for keys in storage.scan("*", _SCANNED) for key in keys if _OWNED.match(key) and not _NOTHING.match(key)]
    if there and not replace:
        raise BackupError(f"This Redis is not empty: {len(set(there))} keys of Gloaming are there. --replace removes them first.")
    for keys in _parts(there, _KEYS_AT_ONCE):
        await asyncio.gather(*(storage.call(storage.redis.unlink(key)) for key in keys))

    counts, matches, pending = Counts(), [], []
    for group in _read(path):
        pending.append(group)
        matches += [found[2].decode() for key, _, _ in group if (found := _MATCH.fullmatch(key))]
        if len(pending) == _AT_ONCE:
            await _put_back(storage, pending, counts)
            pending.clear()
    await _put_back(storage, pending, counts)
    await _wake(storage, matches, checked.shards)
    return counts


class _Writer:
    """Writes records, and at the end what they add up to."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def put(self, record: Any) -> None:
        packed = msgspec.msgpack.encode(record)
        self._write(_LENGTH.pack(len(packed)))
        self._write(packed)

    def end(self) -> None:
        self._write(_LENGTH.pack(0))
        self._file.write(self._digest.digest())

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(data)


async def _groups(storage: Storage) -> AsyncIterator[Group]:
    """Yields all that is stored, the keys of one tag at a time."""
    counted_until: dict[bytes, int] = {}
    for game in GAMES:
        keys = [f"gateway:{{ratings/{game}}}:{what}" for what in ("players", "board")]
        now, group = await _take(storage, keys)
        counted_until[game.encode()] = now
        if group:
            yield group

    tags: dict[bytes, set[bytes]] = {}
    async for found in storage.scan("*", _SCANNED):
        for key in found:
            if _OWNED.match(key) and not _LEFT_OUT.match(key) and not _RATINGS.match(key):
                tags.setdefault(_tag(key), set()).add(key)
    wanted = [part for tag in sorted(tags, key=_early) for part in _whole(tag, tags[tag])]
    for parts in _parts(wanted, _AT_ONCE):
        for _, group in await asyncio.gather(*(_take(storage, part) for part in parts)):
            # A match that was counted after the ratings had been taken is not in them.
            kept = [
                each
                for each in group
                if not (counted := _COUNTED.match(each[0])) or each[2] - COUNTED_MS <= counted_until.get(counted[1], 0)
            ]
            if kept:
                yield kept


def _whole(tag: bytes, keys: set[bytes]) -> Iterator[list[str]]:
    """The keys of a tag, all that there may be by now; in parts only where they need not be of one moment."""
    names = {key.decode() for key in keys}
    for key in keys:
        owner, word = key.partition(b":")[0].decode(), tag.decode()
        if _MATCH.fullmatch(key):
            names |= {f"{owner}:{{{word}}}:{what}" for what in _SIBLINGS}
        elif key == b"gateway:{%b}:player" % tag:
            names |= {f"gateway:{{{word}}}:{what}" for what in _OF_PLAYER}
    listed = sorted(names)
    yield from map(list, _parts(listed, _KEYS_AT_ONCE)) if tag.startswith(b"ratings/") else [listed]


async def _take(storage: Storage, keys: Sequence[str]) -> tuple[int, Group]:
    """The keys that there are of one slot, as they stand at one moment, and that moment in ms."""
    now, *taken = await storage.run(_DUMP, keys, [])
    dumps, expiries = taken[::2], taken[1::2]
    return now, [(key.encode(), dump, expiry) for key, dump, expiry in zip(keys, dumps, expiries, strict=True) if dump is not None]


def _early(tag: bytes) -> tuple[bool, bytes]:
    """Clocks of service come first: no clock of a match is charged for the time between."""
    return not tag.startswith(b"deadlines/"), tag


def _tag(key: bytes) -> bytes:
    found = _TAG.search(key)
    return found[1] if found else key


def _parts(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _records(path: Path) -> Iterator[bytes]:
    """The records of a file; whoever has read them all knows that it is whole.

    Raises:
        BackupError: it is not.
    """
    digest = hashlib.sha256()
    try:
        with gzip.open(path, "rb") as file:

            def read(size: int) -> bytes:
                data = file.read(size)
                if len(data) < size:
                    raise EOFError
                return data

            while True:
                head = read(_LENGTH.size)
                digest.update(head)
                (length,) = _LENGTH.unpack(head)
                if not length:
                    break
                record = read(length)
                digest.update(record)
                yield record
            if file.read(digest.digest_size + 1) != digest.digest():
                raise BackupError(f"{path} is damaged: its checksum is wrong. Nothing was restored.")
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        raise BackupError(f"{path} is no backup, or not whole. Nothing was restored.") from fault
    except OSError as fault:
        raise BackupError(f"{path} cannot be read: {fault.strerror or fault}.") from fault


def _check(path: Path) -> _Checked:
    """Reads a file through.

    Raises:
        BackupError: it is not whole, or no backup, or of a newer release.
    """
    header: dict[str, Any] | None = None
    shards: dict[str, int] = {}
    dumps = 0
    for record in _records(path):
        try:
            if header is None:
                header = msgspec.msgpack.decode(record, type=dict[str, Any])
                if header.get("format") != FORMAT:
                    raise msgspec.ValidationError
                if header.get("version") != VERSION:
                    raise BackupError(f"{path} was written by a newer release: restore it with that.")
                continue
            for key, dump, _ in _group(record):
                dumps = max(dumps, int.from_bytes(dump[_DUMP_VERSION], "little"))
                if found := _DEADLINES.fullmatch(key):
                    game = found[1].decode()
                    shards[game] = max(shards.get(game, 0), int(found[2]) + 1)
        except msgspec.DecodeError as fault:
            raise BackupError(f"{path} is no backup. Nothing was restored.") from fault
    if header is None:
        raise BackupError(f"{path} is no backup. Nothing was restored.")
    return _Checked(header, shards, dumps)


def _read(path: Path) -> Iterator[Group]:
    records = _records(path)
    next(records)
    return map(_group, records)


def _group(record: bytes) -> Group:
    return msgspec.msgpack.decode(record, type=list[tuple[bytes, bytes, int]])


async def _check_version(storage: Storage, checked: _Checked) -> None:
    """Makes sure that Redis reads what another wrote: a newer one reads what an older one did, and not the other way round."""
    await storage.call(storage.redis.set(_PROBE, "", px=_PROBE_MS))
    dump: Any = await storage.call(storage.redis.dump(_PROBE))
    await storage.call(storage.redis.delete(_PROBE))
    if int.from_bytes(dump[_DUMP_VERSION], "little") < checked.dumps:
        raise _too_old()


def _too_old() -> BackupError:
    return BackupError(
        "This Redis is older than the one that the backup is of, and cannot read it: restore into one that is as new or newer."
    )


async def _put_back(storage: Storage, groups: Iterable[Group], counts: Counts) -> None:
    async def put(group: Group) -> None:
        keys = [key.decode() for key, _, _ in group]
        arguments = [argument for _, dump, expiry in group for argument in (dump, expiry)]
        now = await storage.run(_RESTORE, keys, arguments)
        kept = [each for each in group if each[2] < 0 or each[2] > now]
        counts.add(kept)
        counts.expired += len(group) - len(kept)

    try:
        await asyncio.gather(*map(put, groups))
    except ResponseError as fault:
        if "DUMP payload version" in str(fault):
            raise _too_old() from fault
        raise


async def _wake(storage: Storage, matches: Iterable[str], shards: dict[str, int]) -> None:
    """Has every match looked at soon: it may have been taken in another moment than its deadline, and its result be uncounted."""
    default = cast(int, ServiceSettings.model_fields["deadline_shards"].default)
    deadlines = {game: Deadlines(game, storage, _Pace(shards.get(game, default))) for game in GAMES}
    for part in _parts(list(matches), _AT_ONCE):
        await asyncio.gather(*(deadlines[match_id.rpartition("-")[0]].schedule(match_id, 0) for match_id in part))


@dataclass
class _Pace:
    """The pace of deadlines, as far as scheduling goes."""

    deadline_shards: int
    outage_ms: int = 3_000
    sweep_ms: int = 1_000
    lease_ms: int = 5_000
