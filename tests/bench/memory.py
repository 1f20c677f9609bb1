"""What a match keeps in Redis, of two players each."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from deploy.redis_server import RedisServer
from gloaming.table.v1 import table_pb2
from services.kit.game import Game
from tests.harness import EVERY_GAME, Keys, Table, attempt, play_out, table

MATCHES = 50
# So many moves into a match it counts as half played.
PLIES = 14


async def measure() -> dict[str, Any]:
    """Bytes a match, by what its keys take (MEMORY USAGE) and by how much the server grew; live ones half played."""
    return {game.id: await _game(game) for game in EVERY_GAME}


async def _game(game: Game) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as data, RedisServer(Path(data)) as server:
        async with Redis.from_url(server.url) as redis, table(game, Keys(Path(data)), server.url) as there:
            return {"live": await _grown(redis, there, live=True), "finished": await _grown(redis, there, live=False)}


async def _grown(redis: Redis, there: Table, *, live: bool) -> dict[str, Any]:
    await redis.flushall()
    # A match before measuring: the first brings what all share.
    rng = random.Random(1)
    await _play(redis, there, rng, live=live)
    before, keys_before = (await redis.info("memory"))["used_memory"], set(await redis.keys())
    for _ in range(MATCHES):
        await _play(redis, there, rng, live=live)
    grown = (await redis.info("memory"))["used_memory"] - before
    keys = set(await redis.keys()) - keys_before
    usage = sum([int(await redis.memory_usage(key, samples=0) or 0) for key in keys])
    return {"bytes_of_keys": usage // MATCHES, "bytes_grown": grown // MATCHES}


async def _play(redis: Redis, there: Table, rng: random.Random, *, live: bool) -> None:
    players = there.everyone()
    while True:
        match_id = await there.create()
        if not live:
            await play_out(match_id, *players, pick=rng.choice, request_ids=True)
            return
        while (match := await players[0].get(match_id)).version <= PLIES and match.status == table_pb2.PLAYING:
            for player in players:
                if moves := await player.moves(match_id):
                    await attempt(player, match_id, rng.choice(moves), request_id=f"request-{match.version:02}-{player.player:>025}")
        if match.status == table_pb2.PLAYING:
            return
        # It was over before: another one in its stead.
        await redis.delete(*await redis.keys(f"{there.game.id}:{{{match_id}}}:*"))
