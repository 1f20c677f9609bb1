"""Hosting: how the gateway has a match made, for whoever formed it: one player with bots, a room, a rematch or tickets.

Whoever forms a match mints its id first, in the same step that claims who is to play. Making it may then be repeated with the same request
until it is there: the game's service makes a match only where there is none of that id.
"""

from __future__ import annotations

import asyncio
import secrets
import string
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message

from gateway.players import live_key, matches_key
from gateway.registry import Game
from gateway.tokens import HostToken
from gateway.upstream import Services
from gloaming.table.v1 import table_pb2
from services.kit import logs
from services.kit.errors import NotFound, Refused
from services.kit.limits import Buckets, Rate
from services.kit.problems import STATUS_BY_CODE
from services.kit.storage import Script, Storage

_INDEX = Script(Path(__file__).parent / "lua" / "index_match.lua")
MOST_MATCHES = 1000
# A match is indexed before it is made: until so long after, not being there yet does not mean being gone.
SETTLED_MS = 60_000
# So many matches of a player are looked at at once, to see which of them have ended; and for one player, so seldom after a few times.
_LOOKS_AT_ONCE = 16
_LOOKS = Rate(interval=2.0, burst=3)
_ALPHABET = string.ascii_lowercase + string.digits


def mint(game: Game) -> str:
    """An id for a match that is to be made."""
    return f"{game.id}-{''.join(secrets.choice(_ALPHABET) for _ in range(20))}"


class Host:
    """Makes matches at the game services.

    Args:
        index_seconds: how long a player's index of matches is kept without a new one.
        most_live: how many matches a player may have going when asking for another; 0 is no limit.
    """

    def __init__(self, storage: Storage, services: Services, token: HostToken, *, index_seconds: float, most_live: int = 0) -> None:
        self._storage = storage
        self._services = services
        self._token = token
        self._index_ms = int(index_seconds * 1000)
        self._most_live = most_live
        self._looks = Buckets(_LOOKS)

    async def admit(self, player: str, authorization: str, match_id: str = "") -> None:
        """Makes sure that a player may ask for a match. Who asks for several at once may come to have a few more than the limit.

        Args:
            authorization: the player's own.
            match_id: the match, where it has its id already: it may be one of those that the player has.

        Raises:
            Refused: TOO_MANY_MATCHES; the player has too many that have not ended.
        """
        if not self._most_live:
            return
        key, redis = live_key(player), self._storage.redis
        if await self._storage.call(redis.zcard(key)) < self._most_live:
            return
        # Those that have ended are found now, and not before: nothing tells the gateway when one ends.
        listed: Any = await self._storage.call(redis.zrange(key, 0, -1, withscores=True))
        live = {each.decode(): int(made) for each, made in listed}
        if match_id in live:
            return
        if not self._looks.take(player):
            gate = asyncio.Semaphore(_LOOKS_AT_ONCE)
            over = await asyncio.gather(*(self._is_over(each, made, authorization, gate) for each, made in live.items()))
            ended = [each for each, is_over in zip(live, over, strict=True) if is_over]
            if ended:
                await self._storage.call(redis.zrem(key, *ended))
            if len(live) - len(ended) < self._most_live:
                return
        raise Refused("TOO_MANY_MATCHES", f"you have {self._most_live} matches going, the most that one player may; finish or resign some")

    async def _is_over(self, match_id: str, made: int, authorization: str, gate: asyncio.Semaphore) -> bool:
        """Whether a match has ended, or is not there; of one whose service cannot say, that is not known."""
        async with gate:
            try:
                upstream = self._services.of_match(match_id)
                match = await upstream.call("GetMatch", authorization, upstream.request("GetMatch")(match_id=match_id))
            except NotFound:
                return True
            except grpc.aio.AioRpcError as refusal:
                return refusal.code() is grpc.StatusCode.NOT_FOUND and made < time.time() * 1000 - SETTLED_MS
        return bool(match.status == table_pb2.FINISHED)

    async def make(self, game: Game, request: Message) -> None:
        """Makes a match unless it is there, and puts it into the index of each of its players.

        Args:
            request: the game's CreateMatchRequest, complete with the match's id and the players' names.

        Raises:
            grpc.aio.AioRpcError: the service refuses it, and nothing is left of it; or does not answer, and it may be asked again.
        """
        asked: Any = request
        logs.about(asked.match_id)
        players = [seat.player for seat in asked.seats if seat.player]
        # Indexed first: a match that nobody could find again would be lost, while one that was never made drops out of the index.
        for player in players:
            await self._storage.run(_INDEX, [matches_key(player), live_key(player)], [asked.match_id, MOST_MATCHES, self._index_ms])
        try:
            await self._services[game.id].call("CreateMatch", self._token.authorization, request)
        except grpc.aio.AioRpcError as refusal:
            if STATUS_BY_CODE.get(refusal.code(), 500) < 500:
                await self._forget(players, asked.match_id)
            raise

    async def _forget(self, players: Sequence[str], match_id: str) -> None:
        for player in players:
            for key in (matches_key(player), live_key(player)):
                await self._storage.call(self._storage.redis.zrem(key, match_id))
