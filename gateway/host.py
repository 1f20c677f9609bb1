"""Hosting: how the gateway has a match made, for whoever formed it: one player with bots, a room, a rematch or tickets.

Whoever forms a match mints its id first, in the same step that claims who is to play. Making it may then be repeated with the same request
until it is there: the game's service makes a match only where there is none of that id.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message

from gateway.players import matches_key
from gateway.registry import Game
from gateway.tokens import HostToken
from gateway.upstream import Services
from services.kit.problems import STATUS_BY_CODE
from services.kit.storage import Script, Storage

_INDEX = Script(Path(__file__).parent / "lua" / "index_match.lua")
MOST_MATCHES = 1000
_ALPHABET = string.ascii_lowercase + string.digits


def mint(game: Game) -> str:
    """An id for a match that is to be made."""
    return f"{game.id}-{''.join(secrets.choice(_ALPHABET) for _ in range(20))}"


class Host:
    """Makes matches at the game services.

    Args:
        index_seconds: how long a player's index of matches is kept without a new one.
    """

    def __init__(self, storage: Storage, services: Services, token: HostToken, *, index_seconds: float) -> None:
        self._storage = storage
        self._services = services
        self._token = token
        self._index_ms = int(index_seconds * 1000)

    async def make(self, game: Game, request: Message) -> None:
        """Makes a match unless it is there, and puts it into the index of each of its players.

        Args:
            request: the game's CreateMatchRequest, complete with the match's id and the players' names.

        Raises:
            grpc.aio.AioRpcError: the service refuses it, and nothing is left of it; or does not answer, and it may be asked again.
        """
        asked: Any = request
        players = [seat.player for seat in asked.seats if seat.player]
        # Indexed first: a match that nobody could find again would be lost, while one that was never made drops out of the index.
        for player in players:
            await self._storage.run(_INDEX, [matches_key(player)], [asked.match_id, MOST_MATCHES, self._index_ms])
        try:
            await self._services[game.id].call("CreateMatch", self._token.authorization, request)
        except grpc.aio.AioRpcError as refusal:
            if STATUS_BY_CODE.get(refusal.code(), 500) < 500:
                await self._forget(players, asked.match_id)
            raise

    async def _forget(self, players: Sequence[str], match_id: str) -> None:
        for player in players:
            await self._storage.call(self._storage.redis.zrem(matches_key(player), match_id))
