"""What a move costs over REST, beside what its way costs with nothing on it.

The floors: a gateway's round trip (GET /healthz), a unary gRPC call that returns what it was sent, a script that returns 1. Samples are
taken in turn, so that the machine's moods reach all alike.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import httpx
from redis.asyncio import Redis

from deploy.local import Local
from gloaming.client import Client
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.table.v1 import table_pb2

MATCHES = 60
_ECHO = "/bench.Echo/Echo"
_PAYLOAD = b"x" * 120


async def measure() -> dict[str, Any]:
    """Median times in ms of one client's moves in Night Clan and of the floors, and their ratio."""
    samples: dict[str, list[float]] = {"move": [], "gateway": [], "grpc": [], "script": []}
    with tempfile.TemporaryDirectory() as data, Local(Path(data), env={"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0"}) as local:
        async with (
            Client(local.url) as ann,
            httpx.AsyncClient(base_url=local.url) as bare,
            _echo() as echo,
            Redis.from_url(local.redis_url) as redis,
        ):
            await ann.sign_in("Ann")
            game = ann.game(night_clan_pb2)

            async def floors() -> None:
                samples["gateway"].append(await _timed(lambda: bare.get("/healthz")))
                samples["grpc"].append(await _timed(lambda: echo(_PAYLOAD)))
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


@asynccontextmanager
async def _echo() -> AsyncIterator[Callable[[bytes], Awaitable[bytes]]]:
    """A gRPC server in a process of its own that returns what it is sent, and a way to call it."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.bench.rest", stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    try:
        port = int(await process.stdout.readline())
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call: Any = channel.unary_unary(_ECHO)
            yield lambda payload: call(payload)
    finally:
        process.terminate()
        await process.wait()


async def _serve_echo() -> None:
    async def echo(payload: bytes, _: object) -> bytes:
        return payload

    server = grpc.aio.server()
    handler = grpc.method_handlers_generic_handler("bench.Echo", {"Echo": grpc.unary_unary_rpc_method_handler(echo)})
    server.add_generic_rpc_handlers((handler,))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(_serve_echo())
