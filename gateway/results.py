"""Results: how rated matches ended, fetched from the games' services and counted for ratings, each once.

Every gateway asks every game's service. A result that is handed out is acknowledged only when all that follows from it is stored; who stops
before that has it come again, here or elsewhere, and `Ratings.count` knows that it was counted. So none is lost and none counts twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Collection
from dataclasses import dataclass
from types import TracebackType

import grpc
import grpc.aio
import structlog

from gateway.metrics import RESULT_SECONDS, RESULTS
from gateway.players import Players
from gateway.problems import reason_of
from gateway.ratings import Ratings
from gateway.registry import GAMES, game_of
from gateway.tokens import HostToken
from gateway.upstream import Services
from gloaming.relay.v1 import relay_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import Error, NotFound

_PAGE = 100
# Its own: tests that watch the shared one would see it move in the background.
_chance = random.Random()

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often what is done, in seconds; each time somewhat more or less, so that gateways do not ask together.

    Args:
        idle: the pause before a service is asked again that had few results.
        longest: the pause, which doubles from `idle` on, of a service that does not answer.
        sweep: the time between two looks at ratings whose players' profiles may have expired.
        swept: how many ratings are looked at.
    """

    idle: float = 1.0
    longest: float = 30.0
    sweep: float = 60.0
    swept: int = 100


PACE = Pace()


class Results:
    """Counts results, one task a game. Open it where the event loop runs, within `services`: `async with results`."""

    def __init__(self, services: Services, token: HostToken, players: Players, ratings: Ratings, pace: Pace = PACE) -> None:
        self._services = services
        self._token = token
        self._players = players
        self._ratings = ratings
        self._pace = pace
        self._tasks: list[asyncio.Task[None]] = []

    async def _run(self, game: str) -> None:
        """Counts a game's results, for ever."""
        pause, cursor, swept_at = self._pace.idle, 0, time.monotonic()
        while True:
            try:
                came = await self._turn(game)
                if time.monotonic() >= swept_at + self._pace.sweep:
                    swept_at = time.monotonic()
                    cursor = await self._sweep(game, cursor)
            except (Error, grpc.aio.AioRpcError) as fault:
                if pause == self._pace.idle:
                    reason = fault.reason if isinstance(fault, Error) else reason_of(fault) or fault.code().name
                    _log.warning("results wait", game=game, reason=reason)
                pause = min(2 * pause, self._pace.longest)
            except Exception:
                # A fault of ours must not end it for good: what could not be counted comes again.
                _log.exception("results failed", game=game)
                pause = self._pace.longest
            else:
                pause = self._pace.idle
                if came > _PAGE // 2:
                    continue
            await asyncio.sleep(_chance.uniform(0.75, 1.25) * pause)

    async def _turn(self, game: str) -> int:
        """Counts what a service hands out now, the oldest first; returns how many results there were.

        Raises:
            grpc.aio.AioRpcError: the service cannot be asked now.
            Unavailable: STORAGE_UNAVAILABLE.
        """
        listed = await self._services[game].call("ListResults", self._token.authorization, relay_pb2.ListResultsRequest(page_size=_PAGE))
        results: list[relay_pb2.Result] = list(listed.results)
        if not results:
            return 0
        players = {seat.player for result in results for seat in result.seats if seat.player}
        known = (await self._players.known(players)).keys()
        done = [result.match_id for result in results if await self._count(game, result, known)]
        # Whoever was forgotten meanwhile may have been given a rating after theirs had been removed. Should this be cut short, it is done
        # when the results come again, since they are not acknowledged yet.
        for player in players - (await self._players.known(players)).keys():
            await self._ratings.forget(player, [game])
        acknowledged = relay_pb2.AcknowledgeResultsRequest(match_ids=done)
        await self._services[game].call("AcknowledgeResults", self._token.authorization, acknowledged)
        return len(results)

    async def _count(self, game: str, result: relay_pb2.Result, known: Collection[str]) -> bool:
        """Counts one result; returns whether it is done with, which it is not where it stumbles upon a fault of ours."""
        if result.outcome.ending == table_pb2.Outcome.ABANDONED:
            outcome = "abandoned"
        elif not _is_sound(game, result):
            _log.error("a result is unsound", game=game, match=result.match_id)
            outcome = "unsound"
        else:
            try:
                outcome = "counted" if await self._ratings.count(game, result, known) else "repeated"
            except Error:
                raise
            except Exception:
                # It comes again, and does not keep others waiting.
                _log.exception("a result cannot be counted", game=game, match=result.match_id)
                outcome = "failed"
        RESULTS.labels(game, outcome).inc()
        if outcome == "counted":
            RESULT_SECONDS.observe(max(0.0, time.time() - result.finish_time.ToMilliseconds() / 1000))
        return outcome != "failed"

    async def _sweep(self, game: str, cursor: int) -> int:
        """Removes ratings of players whose profiles have expired, of some at a time; returns where to go on."""
        following, players = await self._ratings.some(game, cursor, self._pace.swept)
        known = await self._players.known(players)
        for player in players:
            if player not in known:
                await self._ratings.forget(player, [game])
        return following

    async def __aenter__(self) -> Results:
        self._tasks = [asyncio.create_task(self._run(game)) for game in GAMES]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _is_sound(game: str, result: relay_pb2.Result) -> bool:
    """Whether a result can be counted: a match of the game, at least two seats, a rank for each, nobody twice."""
    players = [seat.player for seat in result.seats if seat.player]
    with contextlib.suppress(NotFound):
        return (
            game_of(result.match_id).id == game
            and len(result.seats) >= 2
            and len(result.outcome.ranks) == len(result.seats)
            and len(set(players)) == len(players)
        )
    return False
