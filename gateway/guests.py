"""Guests who have not been seen for long are forgotten, with all they own: as if they had asked for it themselves.

A guest is seen whenever they sign in or refresh their tokens. Who has a match going is left alone until it is over. `gateway.players` notes
when each was seen: `gateway:{guests/<shard>}:seen`, sorted sets of players by when that was last, in ms. Every gateway sweeps them: a claim
is leased, and forgetting may be repeated, so that whoever dies on the way is replaced.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
import grpc.aio
import structlog

from gateway.players import Players, guests_keys, live_key
from gateway.problems import reason_of
from gateway.upstream import Services
from gloaming.table.v1 import table_pb2
from services.kit.errors import Error, NotFound
from services.kit.storage import Script, Storage

_LUA = Path(__file__).parent / "lua"
_CLAIM, _SETTLE = Script(_LUA / "guest_claim.lua"), Script(_LUA / "guest_settle.lua")
# So many of a guest's matches are looked at at once.
_LOOKS_AT_ONCE = 16
# Its own: tests that watch the shared one would see it move in the background.
_chance = random.Random()

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often what is done, in seconds.

    Args:
        sweep: the time between two sweeps, somewhat more or less.
        lease: how long a gateway has for the guests it claimed, before another may take them.
        playing: how long a guest is left alone who has a match going.
        most: how many guests of one set are claimed at once.
    """

    sweep: float = 60.0
    lease: float = 60.0
    playing: float = 3600.0
    most: int = 50


PACE = Pace()


class Guests:
    """Forgets guests. Open it where the event loop runs, within `services`: `async with guests`.

    Args:
        seconds: for how long a guest was not seen who is forgotten.
    """

    def __init__(self, storage: Storage, services: Services, players: Players, *, seconds: float, pace: Pace = PACE) -> None:
        self._storage = storage
        self._services = services
        self._players = players
        self._unseen_ms = round(seconds * 1000)
        self._pace = pace
        self._sweeping: asyncio.Task[None] | None = None

    async def sweep(self) -> int:
        """Forgets those who are due now; returns how many.

        Raises:
            Unavailable: STORAGE_UNAVAILABLE.
        """
        forgotten = 0
        for key in guests_keys():
            while True:
                arguments = [self._unseen_ms, round(self._pace.lease * 1000), self._pace.most]
                since, claimed, *players = await self._storage.run(_CLAIM, [key], arguments)
                for player in players:
                    forgotten += await self._look(key, player.decode(), since, claimed)
                if len(players) < self._pace.most:
                    break
        if forgotten:
            _log.info("guests forgotten", guests=forgotten)
        return forgotten

    async def _look(self, key: str, player: str, since: int, claimed: int) -> bool:
        """Forgets a guest who was claimed; returns whether it did. What fails is left to whoever claims them next."""
        try:
            if await self._is_playing(player):
                again = round((self._pace.playing - self._pace.lease) * 1000)
                await self._storage.run(_SETTLE, [key], [player, claimed, max(0, again)])
                return False
            if not await self._players.forget_unseen(player, since):
                await self._players.see(player)  # whoever saw them had no time to note it
                return False
            await self._storage.run(_SETTLE, [key], [player, claimed, ""])
        except (Error, grpc.aio.AioRpcError) as fault:
            reason = fault.reason if isinstance(fault, Error) else reason_of(fault) or fault.code().name
            _log.warning("a guest is not forgotten yet", reason=reason)
            return False
        return True

    async def _is_playing(self, player: str) -> bool:
        """Whether a match of a guest's is going.

        Raises:
            grpc.aio.AioRpcError: a service cannot be asked.
        """
        try:
            profile = await self._players.profile(player)
        except NotFound:
            return False  # it has expired, or they are half forgotten
        live: Any = await self._storage.call(self._storage.redis.zrange(live_key(player), 0, -1))
        authorization, gate = self._players.authorization(profile), asyncio.Semaphore(_LOOKS_AT_ONCE)

        async def is_going(match_id: str) -> bool:
            async with gate:
                try:
                    upstream = self._services.of_match(match_id)
                    match = await upstream.call("GetMatch", authorization, upstream.request("GetMatch")(match_id=match_id))
                except NotFound:
                    return False
                except grpc.aio.AioRpcError as refusal:
                    if refusal.code() is grpc.StatusCode.NOT_FOUND:
                        return False
                    raise
            return bool(match.status != table_pb2.FINISHED)

        return any(await asyncio.gather(*(is_going(match_id.decode()) for match_id in live)))

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_chance.uniform(0.75, 1.25) * self._pace.sweep)
            try:
                await self.sweep()
            except Error as fault:
                _log.warning("guests wait", reason=fault.reason)
            except Exception:
                # A fault of ours must not end it for good.
                _log.exception("guests failed")

    async def __aenter__(self) -> Guests:
        self._sweeping = asyncio.create_task(self._sweep())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
