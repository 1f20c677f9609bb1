"""What a move costs over REST, beside what its way costs with nothing on it.

The floors: a gateway's round trip (GET /healthz), a unary gRPC call that returns what it was sent, a script that returns 1. Samples are
taken in turn, so that the machine's moods reach all alike.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from redis.asyncio import Redis

from deploy.local import Local
from gloaming.client import Client
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.table.v1 import table_pb2
from tests import unlimited
from tests.bench.echo import PAYLOAD, echo

MATCHES = 60
_ENV = {"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0", **unlimited.ENVIRONMENT}


async def measure() -> dict[str, Any]:
    """Median times in ms of one client's moves in Night Clan and of the floors, and their ratio."""
    samples: dict[str, list[float]] = {"move": [], "gateway": [], "grpc": [], "script": []}
    with tempfile.TemporaryDirectory() as data, Local(Path(data), env=_ENV) as local:
        async with (
            Client(local.url) as ann,
            httpx.AsyncClient(base_url=local.url) as bare,
            echo() as echoed,
            Redis.from_url(local.redis_url) as redis,
        ):
            await ann.sign_in("Ann")
            game = ann.game(night_clan_pb2)

            async def floors() -> None:
                samples["gateway"].append(await _timed(lambda: bare.get("/healthz")))
                samples["grpc"].append(await _timed(lambda: echoed.unary(PAYLOAD)))
                samples["script"].append(await _timed(lambda: redis.eval("return 1", 0)))

            for _ in range(MATCHES):
                match = await game.create_match()
                while (await game.match(match.id)).status != table_pb2.FINISHED:
                    if moves := (await game.moves(match.id)).moves:
                        samples["move"].append(await _timed(partial(game.play, match.id, moves[0])))
                        await floors()
    medians = {name: statistics.median(times) * 1000 for name, times in samples.items()}
    floor = medians["gateway"] + medians["grpc"] + medians["script"]
    return {
        "samples": len(samples["move"]),
        "p50_ms": {name: round(median, 3) for name, median in medians.items()},
        "move_to_floors": round(medians["move"] / floor, 2),
    }


async def _timed(call: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await call()
    return time.perf_counter() - began
