"""A game's service as a process of its own, for what only a real process can show: signals, exit codes, logs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from deploy.processes import Child, free_port
from services.kit.game import Game
from tests.harness import Keys


class Process:
    """A process that serves a game.

    Args:
        directory: where its log goes.
        settings: as ServiceSettings has them.
    """

    def __init__(self, game: Game, keys: Keys, redis_url: str, directory: Path, **settings: object) -> None:
        self.port = free_port()
        self.log = directory / f"{game.id}-{self.port}.log"
        chosen = {"jwks_file": keys.jwks, "listen": f"127.0.0.1:{self.port}", "metrics_listen": "", "bot_delay_ms": 0, **settings}
        environment = {f"GLOAMING_{name.upper()}": str(value) for name, value in chosen.items()}
        self._game = game
        self._child = Child(
            game.id,
            [sys.executable, "-m", f"services.{game.id}"],
            self.log,
            env={**os.environ, "REDIS_URL": redis_url, **environment},
        )

    async def start(self) -> None:
        """Starts it and waits until it serves."""
        self._child.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.port}") as channel, asyncio.timeout(20):
            stub: Any = health_pb2_grpc.HealthStub(channel)
            watching = stub.Watch(health_pb2.HealthCheckRequest(service=self._game.service.full_name), wait_for_ready=True)
            async for answer in watching:
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    break
            watching.cancel()

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        self._child.signal(number)

    async def ended(self) -> str:
        """Waits until it has ended, and returns how."""
        assert await asyncio.to_thread(self._child.wait, 20), "it goes on running"
        return self._child.exit_status

    async def stop(self) -> None:
        """Ends it, also where it is stopped."""
        self.signal(signal.SIGCONT)
        await asyncio.to_thread(self._child.stop)


@asynccontextmanager
async def process(game: Game, keys: Keys, redis_url: str, directory: Path, **settings: object) -> AsyncIterator[Process]:
    """Starts a process that serves a game, and ends it in the end."""
    running = Process(game, keys, redis_url, directory, **settings)
    try:
        await running.start()
        yield running
    finally:
        await running.stop()
