"""How many moves a game of turns takes, and what one costs of each process' CPU: what `deploy/CAPACITY.md` reckons with.

Many players at once, each alone against a bot and without a pause, read what they may do and do it (two calls a move, as a client does).
The load generator shares the machine, so that moves a second are fewer than the processes could do; CPU a move is theirs alone.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from deploy.local import Local
from gateway.registry import GAMES
from gloaming.clans_and_glory.v1 import clans_and_glory_pb2
from gloaming.client import Client
from gloaming.dark_is_the_night.v1 import dark_is_the_night_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.table.v1 import table_pb2
from tests import unlimited
from tests.bench.machine import cpu_seconds

PLAYERS, SECONDS = 12, 12.0
_OF_TURNS: dict[str, ModuleType] = {
    "night_clan": night_clan_pb2,
    "clans_and_glory": clans_and_glory_pb2,
    "dark_is_the_night": dark_is_the_night_pb2,
}
_ENV = {"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0", **unlimited.ENVIRONMENT}


def measure() -> dict[str, Any]:
    """Moves a second, those of bots among them, and the CPU of one in µs by process, for each game of turns."""
    return {game: asyncio.run(_measure(game)) for game in GAMES if game in _OF_TURNS}


async def _measure(game: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as data, Local(Path(data), env=_ENV) as local:
        pids = {name: child.pid for name, child in local.children.items() if child.pid and name in ("redis", "gateway", game)}
        until = time.perf_counter() + SECONDS
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        counts = await asyncio.gather(*(_play(local.url, game, until) for _ in range(PLAYERS)))
        took = time.perf_counter() - until + SECONDS
        spent = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}
    matches, moves = (sum(each) for each in zip(*counts, strict=True))
    return {
        "matches_begun": matches,
        "moves": moves,
        "moves_per_second": round(moves / took),
        "cpu_us_a_move": {name: round(1e6 * seconds / moves) for name, seconds in spent.items()},
    }


async def _play(url: str, game: str, until: float) -> tuple[int, int]:
    """Plays match after match, and returns how many were begun, and how many versions they went through: one a move, bots' included."""
    matches = moves = 0
    async with Client(url) as client:
        await client.sign_in("Ann")
        table = client.game(_OF_TURNS[game])
        while time.perf_counter() < until:
            match = await table.create_match()
            matches += 1
            while match.status != table_pb2.FINISHED and time.perf_counter() < until:
                if legal := (await table.moves(match.id)).moves:
                    await table.play(match.id, legal[0])
                match = await table.match(match.id)
            moves += match.version
    return matches, moves
