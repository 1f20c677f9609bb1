"""Turns: whose turn it has come to be and which matches have ended, handed out until somebody says that those who want to know were told.

A commit after which a player is to move, or that ends a match, has the match woken a moment later (`Matches.wake`): then its id is put
into the outbox of its game, `<game>:{turns}:due`. So a replica that dies right after a commit loses nothing. What is handed out is read
from the match itself, as it is then. Turns are handed out at least once: whoever tells of them has to know which version they have told of.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from gloaming.relay.v1 import relay_pb2
from services.kit import requests
from services.kit.errors import NotFound, Unavailable, Unreadable
from services.kit.game import Game
from services.kit.identity import Caller
from services.kit.messages import Messages
from services.kit.sessions import Session, Sessions, Table
from services.kit.settings import ServiceSettings
from services.kit.storage import Script, Storage

_LUA = Path(__file__).parent / "lua"
_PUT, _CLAIM, _ACKNOWLEDGE = (Script(_LUA / f"{verb}.lua") for verb in ("put_turn", "claim_turns", "acknowledge_turns"))
_PAGE = 100
_ACKNOWLEDGED_AT_MOST = 1000
_CLAIMED = re.compile(r"\d{1,15}", re.ASCII)
# What nobody has asked for by then is no news any more.
_KEEP_MS = 86_400_000


class Turns:
    """The outbox of one game's turns.

    Args:
        credit: how much a match's clocks have been credited with by now, ms.

    Attributes:
        noted: whether anything is put into it at all.
    """

    def __init__(
        self,
        game: Game,
        storage: Storage,
        sessions: Sessions,
        messages: Messages,
        settings: ServiceSettings,
        credit: Callable[[str], int],
    ) -> None:
        self.noted = settings.webhooks
        self._game = game
        self._storage = storage
        self._sessions = sessions
        self._messages = messages
        self._credit = credit
        self._lease_ms = settings.result_lease_ms
        self._key = f"{game.id}:{{turns}}:due"

    def to_move(self, table: Table, state: Any) -> list[int]:
        """The seats whose players are to move, of whom others may want to know: none in real time, where it would be too late."""
        if self._game.real_time or table.outcome:
            return []
        return [n for n in self._game.rules.to_move(state) if table.seats[n].player and not table.seats[n].automatic]

    async def put(self, session: Session) -> None:
        """Has a match handed out from now on, if a player is to move in it or it has ended."""
        table = session.table
        if self.noted and (self.to_move(table, session.state) or (table.outcome and any(seat.player for seat in table.seats))):
            await self._storage.run(_PUT, [self._key], [session.match_id, _KEEP_MS])

    async def hand_out(self, request: Any, caller: Caller) -> Message:
        """Hands out turns, each of them to nobody else for the length of a lease."""
        caller.require("relay")
        size = requests.page_size(request.page_size, _PAGE)
        claimed, *claimed_ids = await self._storage.run(_CLAIM, [self._key], [size, self._lease_ms])
        match_ids = [match_id.decode() for match_id in claimed_ids]
        found = await asyncio.gather(*map(self._turn, match_ids), return_exceptions=True)
        turns, gone = [], []
        for match_id, turn in zip(match_ids, found, strict=True):
            if isinstance(turn, relay_pb2.Turn):
                turns.append(turn)
            elif isinstance(turn, NotFound):
                gone.append(match_id)
            elif not isinstance(turn, Unavailable):  # else it comes again, here or from a replica that can read it
                raise turn
        if gone:
            await self._storage.run(_ACKNOWLEDGE, [self._key], [claimed, *gone])
        return relay_pb2.ListTurnsResponse(turns=turns, claim=str(claimed))

    async def acknowledge(self, request: Any, caller: Caller) -> Message:
        """Hands turns out no more."""
        caller.require("relay")
        if len(request.match_ids) > _ACKNOWLEDGED_AT_MOST:
            raise Unreadable("matchIds", f"must be at most {_ACKNOWLEDGED_AT_MOST}")
        if not _CLAIMED.fullmatch(request.claim):
            raise Unreadable("claim", "must be the claim with which they were handed out")
        if match_ids := [match_id for match_id in request.match_ids if self._sessions.is_match_id(match_id)]:
            await self._storage.run(_ACKNOWLEDGE, [self._key], [request.claim, *match_ids])
        return relay_pb2.AcknowledgeTurnsResponse()

    async def _turn(self, match_id: str) -> relay_pb2.Turn:
        """Who is to move in a match.

        Raises:
            NotFound: the match is kept no more.
            Unavailable: it cannot be read now.
        """
        session = await self._sessions.load(match_id)
        last = await self._sessions.last_entry(session)
        return self._messages.turn(session, self.to_move(session.table, session.state), last, self._credit(match_id))
