"""What it costs to match a ticket, by how many wait.

Those who wait are parties of three who want a fourth, so that none of them can do with another. A ticket comes that none of them can take,
which is the most that looking can cost; then one that the nearest of them takes. Samples are taken in turn, so that the machine's moods
reach all alike.
"""

from __future__ import annotations

import itertools
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from deploy.redis_server import RedisServer
from gateway.matching import Pace
from services.kit.storage import Argument, Script, Storage

FEW, MANY, SAMPLES = 1_000, 20_000, 300
_LUA = Path(__file__).parents[2] / "gateway" / "lua"
_CREATE, _FORM, _END, _SETTLE = (Script(_LUA / f"ticket_{verb}.lua") for verb in ("create", "form", "end", "settle"))
_PACE = Pace(patience=0)


class Queue:
    """A game's matchmaking with so many waiting.

    Attributes:
        samples: ms, by what came of the ticket.
    """

    def __init__(self, storage: Storage, name: str) -> None:
        self.samples: dict[str, list[float]] = {"waits": [], "matched": []}
        self._storage = storage
        self._keys = [f"gateway:{{tickets/{name}}}"]
        self._ids = map("{}{:06d}".format, itertools.repeat(name), itertools.count())
        self._chance = random.Random(1)

    async def create(self, size: int, seats: int) -> str:
        """Makes a ticket, and returns its id."""
        ticket_id = next(self._ids)
        rating = round(self._chance.gauss(1500, 300))
        players = [f"{ticket_id}p{n}" for n in range(size)]
        arguments: list[Argument] = [ticket_id, "w", ticket_id, "", seats, seats, rating, -1, _PACE.unseen * 100, 10_000, *players]
        await self._storage.run(_CREATE, self._keys, arguments)
        return ticket_id

    async def sample(self) -> None:
        """Times a ticket that has to wait, and one that is matched."""
        for outcome, seats in (("waits", 2), ("matched", 4)):
            began = time.perf_counter()
            ticket_id = await self.create(1, seats)
            steps: list[Argument] = [value for since, band in _PACE.bands for value in (since, -1 if band is None else band)]
            arguments: list[Argument] = [ticket_id, f"m{ticket_id}", _PACE.unseen * 100, 0, _PACE.again, _PACE.near, _PACE.lease, *steps]
            said, *_ = await self._storage.run(_FORM, self._keys, arguments)
            self.samples[outcome].append((time.perf_counter() - began) * 1000)
            assert said == (b"WAITING" if outcome == "waits" else b"FORMED"), said
            if outcome == "waits":
                await self._storage.run(_END, self._keys, [ticket_id, "CANCELLED", 0, 1000])
            else:
                await self._storage.run(_SETTLE, self._keys, [f"m{ticket_id}", "MATCHED", "", "", 1000])
                await self.create(3, 4)


async def measure() -> dict[str, Any]:
    """Median ms of making a ticket and looking for a match, with few and with many waiting, and the ratio of many to few."""
    with tempfile.TemporaryDirectory() as data, RedisServer(Path(data)) as server:
        storage = Storage(server.url)
        try:
            queues = {count: Queue(storage, f"q{count}x") for count in (FEW, MANY)}
            for count, queue in queues.items():
                for _ in range(count):
                    await queue.create(3, 4)
            for _ in range(SAMPLES):
                for queue in queues.values():
                    await queue.sample()
        finally:
            await storage.close()
    medians = {count: {name: statistics.median(times) for name, times in queue.samples.items()} for count, queue in queues.items()}
    return {
        "samples": SAMPLES,
        "p50_ms": {f"{count} waiting": {name: round(ms, 3) for name, ms in each.items()} for count, each in medians.items()},
        "many_to_few": {name: round(medians[MANY][name] / medians[FEW][name], 2) for name in medians[FEW]},
    }
