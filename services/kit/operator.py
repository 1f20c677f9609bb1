"""What the operator's command asks of a game's service (gloaming.operator.v1): its matches, what is stored of one, its end, and the
replica's own.

Who asks has a token with the scope `operator`. What changes something, or tells what is hidden, is logged: who asked, and why.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import unicodedata
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import structlog
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from gloaming.operator.v1 import operator_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import NotFound, Unavailable, Unreadable
from services.kit.game import Game
from services.kit.identity import Caller
from services.kit.matches import Matches
from services.kit.sessions import Session
from services.kit.storage import Script, Storage

SCOPE = "operator"
_INSPECT = Script(Path(__file__).parent / "lua" / "inspect.lua")
# So many keys of the storage are looked at for each message of a list.
_LOOKED_AT = 1000
# So many matches are read at once.
_READ_AT_ONCE = 32
_LONGEST_REASON = 200
_INT32 = 2**31 - 1
# In the order in which the script takes them.
_KEYS = ("match", "events", "answers", "present", "round")

log = structlog.get_logger(__name__)


class Operator:
    """What operators may do with one game's matches, and with this replica.

    Attributes:
        drained: set when this replica was told to stop.
    """

    def __init__(self, game: Game, storage: Storage, matches: Matches) -> None:
        self._game = game
        self._storage = storage
        self._matches = matches
        self._prefix = re.compile(f"{game.id}-[a-z0-9]{{0,40}}")
        self.drained = asyncio.Event()

    async def find(self, request: Any, caller: Caller) -> AsyncGenerator[Message, None]:
        """Lists matches as they are found."""
        caller.require(SCOPE)
        prefix = request.prefix or f"{self._game.id}-"
        if not self._prefix.fullmatch(prefix):
            raise Unreadable("prefix", f"must be {self._game.id}- and at most 40 lower-case letters or digits")
        if request.status not in table_pb2.MatchStatus.values():
            raise Unreadable("status", "must be PLAYING or FINISHED")
        async for keys in self._storage.scan(f"{self._game.id}:{{{prefix}*}}:match", _LOOKED_AT):
            ids = [key.decode(errors="replace").partition("{")[2].partition("}")[0] for key in keys]
            found = []
            for start in range(0, len(ids), _READ_AT_ONCE):
                read = await asyncio.gather(*(self._found(match_id, request) for match_id in ids[start : start + _READ_AT_ONCE]))
                found += [summary for summary in read if summary]
            if found:
                yield operator_pb2.ListMatchesResponse(matches=found)

    async def inspect(self, request: Any, caller: Caller) -> Message:
        """Tells what is stored of a match."""
        caller.require(SCOPE)
        reason = _reason(request.reason) if request.reveal_secrets else ""
        session = await self._matches.load(request.match_id)
        stored = await self._storage.run(_INSPECT, [f"{self._game.id}:{{{request.match_id}}}:{what}" for what in _KEYS], [])
        if not stored:
            raise NotFound("MATCH_NOT_FOUND", "there is no match of this id")
        first, last, events, answers, size, expires, present = stored
        told = operator_pb2.InspectMatchResponse(
            game=self._game.id,
            summary=self._summary(session),
            match=self._matches.shown(session, None).SerializeToString(),
            create_time=_timestamp(first),
            update_time=_timestamp(last),
            expire_time=_timestamp(expires) if expires > 0 else None,
            events=events,
            answers=answers,
            stored_bytes=min(size, _INT32),
        )
        for member, until in zip(present[::2], present[1::2], strict=True):
            seat, _, replica = member.decode().partition(" ")
            told.watchers.add(seat=int(seat), replica=replica, expire_time=_timestamp(int(float(until))))
        if request.reveal_secrets:
            # Before it is told: what was told must have been logged.
            log.warning("secrets_revealed", match_id=request.match_id, operator=caller.player, reason=reason)
            told.secrets.seed = session.meta.seed.hex()
            told.secrets.state = msgspec.json.encode(_named(session.state)).decode()
            for seat in range(len(session.table.seats)):
                shown = self._matches.shown(session, seat)
                told.secrets.views.add(game=self._game.id, seat=seat, match=shown.SerializeToString())
        return told

    async def end(self, request: Any, caller: Caller) -> Message:
        """Ends a match, unless it has ended."""
        caller.require(SCOPE)
        reason = _reason(request.reason)
        session, ended = await self._matches.end(request.match_id)
        if ended:
            log.warning("match_ended", match_id=request.match_id, operator=caller.player, reason=reason)
        return operator_pb2.EndMatchResponse(summary=self._summary(session), ended=ended)

    async def drain(self, request: Any, caller: Caller) -> Message:
        """Has this replica stop."""
        caller.require(SCOPE)
        log.warning("told_to_drain", operator=caller.player)
        self.drained.set()
        return operator_pb2.DrainResponse(game=self._game.id, process=f"{socket.gethostname()}:{os.getpid()}")

    async def _found(self, match_id: str, request: Any) -> operator_pb2.MatchSummary | None:
        """What is told of a match, if it is one of those that are asked for; of a damaged one its id, whatever is asked for."""
        try:
            session = await self._matches.load(match_id)
        except NotFound:
            return None  # it was dropped meanwhile
        except Unavailable as fault:
            if fault.reason == "MATCH_UNREADABLE":
                return operator_pb2.MatchSummary(match_id=match_id)
            if fault.reason != "SCHEMA_NEWER":
                raise
            return None
        return self._summary(session) if _fits(session, request) else None

    def _summary(self, session: Session) -> operator_pb2.MatchSummary:
        match: Any = self._matches.shown(session, None)
        return operator_pb2.MatchSummary(
            match_id=match.id,
            status=match.status,
            version=match.version,
            seats=match.seats,
            settings=match.settings,
            outcome=match.outcome if match.HasField("outcome") else None,
        )


def _fits(session: Session, request: Any) -> bool:
    """Whether a match is one of those that are asked for."""
    status = table_pb2.FINISHED if session.table.outcome else table_pb2.PLAYING
    seats = session.table.seats
    return (
        (not request.status or request.status == status)
        and (not request.player or any(seat.player == request.player for seat in seats))
        and (not request.name or any(request.name.casefold() in seat.name.casefold() for seat in seats))
    )


def _reason(asked: str) -> str:
    """Why something is asked for, which is logged.

    Raises:
        Unreadable: it is not 1 to 200 printable characters.
    """
    reason = asked.strip()
    if not 1 <= len(reason) <= _LONGEST_REASON or any(unicodedata.category(character)[0] == "C" for character in reason):
        raise Unreadable("reason", f"must be 1 to {_LONGEST_REASON} printable characters")
    return reason


def _named(value: Any) -> Any:
    """A state with the names of its fields, all the way down."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _named(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, (tuple, list)):
        return [_named(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _named(item) for key, item in value.items()}
    return msgspec.to_builtins(value)


def _timestamp(ms: int) -> Timestamp:
    return Timestamp(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)
