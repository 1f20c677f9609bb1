"""Results of rated matches, handed out until somebody says that they are counted.

A match that has finished is woken once more (`Matches.wake`), and puts its id into the outbox of its game, `<game>:{results}:due`: so a
replica that dies between the end and that loses nothing. What is handed out is read from the match itself. Results are handed out at least
once: whoever counts them has to know which it has counted.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from gloaming.relay.v1 import relay_pb2
from services.kit import requests
from services.kit.errors import NotFound, Unavailable, Unreadable
from services.kit.game import Game
from services.kit.identity import Caller
from services.kit.messages import Messages
from services.kit.sessions import Sessions
from services.kit.settings import ServiceSettings
from services.kit.storage import Script, Storage

_LUA = Path(__file__).parent / "lua"
_PUT, _CLAIM, _ACKNOWLEDGE = (Script(_LUA / f"{verb}.lua") for verb in ("put_result", "claim_results", "acknowledge_results"))
_PAGE = 100
_ACKNOWLEDGED_AT_MOST = 1000
# A wake-up of a finished match comes twice, a lease apart; an acknowledged result is remembered for so many of them.
_LEASES_REMEMBERED = 12
_DAY_MS = 86_400_000


class Results:
    """The outbox of one game's results."""

    def __init__(self, game: Game, storage: Storage, sessions: Sessions, messages: Messages, settings: ServiceSettings) -> None:
        self._storage = storage
        self._sessions = sessions
        self._messages = messages
        self._settings = settings
        self._keys = [f"{game.id}:{{results}}:due", f"{game.id}:{{results}}:acknowledged"]

    async def put(self, match_id: str) -> None:
        """Has the result of a finished match handed out from now on."""
        keep_ms = int(self._settings.finished_ttl_days * _DAY_MS)
        await self._storage.run(_PUT, self._keys, [match_id, keep_ms])

    async def hand_out(self, request: Any, caller: Caller) -> Message:
        """Hands out results, each of them to nobody else for the length of a lease."""
        caller.require("relay")
        size = requests.page_size(request.page_size, _PAGE)
        claimed = await self._storage.run(_CLAIM, self._keys[:1], [size, self._settings.result_lease_ms])
        match_ids = [match_id.decode() for match_id in claimed]
        found = await asyncio.gather(*map(self._result, match_ids), return_exceptions=True)
        results, gone = [], []
        for match_id, result in zip(match_ids, found, strict=True):
            if isinstance(result, relay_pb2.Result):
                results.append(result)
            elif isinstance(result, NotFound):
                gone.append(match_id)
            elif not isinstance(result, Unavailable):  # else it comes again, here or from a replica that can read it
                raise result
        if gone:
            await self._acknowledge(gone)
        return relay_pb2.ListResultsResponse(results=results)

    async def acknowledge(self, request: Any, caller: Caller) -> Message:
        """Hands results out no more."""
        caller.require("relay")
        if len(request.match_ids) > _ACKNOWLEDGED_AT_MOST:
            raise Unreadable("matchIds", f"must be at most {_ACKNOWLEDGED_AT_MOST}")
        if match_ids := [match_id for match_id in request.match_ids if self._sessions.is_match_id(match_id)]:
            await self._acknowledge(match_ids)
        return relay_pb2.AcknowledgeResultsResponse()

    async def _acknowledge(self, match_ids: list[str]) -> None:
        remember_ms = _LEASES_REMEMBERED * self._settings.lease_ms
        await self._storage.run(_ACKNOWLEDGE, self._keys, [remember_ms, *match_ids])

    async def _result(self, match_id: str) -> relay_pb2.Result:
        """The result of a match.

        Raises:
            NotFound: the match is kept no more, or a failover of the storage has lost its end.
            Unavailable: it cannot be read now.
        """
        session = await self._sessions.load(match_id)
        if not session.table.outcome:
            raise NotFound("MATCH_NOT_FOUND", "the match has not ended")
        return self._messages.result(session, session.table.outcome, await self._sessions.last_entry(session))
