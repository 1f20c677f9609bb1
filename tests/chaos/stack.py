"""What is put under load: gateways, replicas of every game and a Redis, all of them to be hurt."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from deploy.local import Local
from deploy.processes import Child
from services.kit.game import Game
from tests import unlimited
from tests.harness import EVERY_GAME, eventually
from tests.topologies import Cluster, Server

# A replica has so long for the deadlines that it claimed: a pause beyond it is one that another makes good meanwhile.
LEASE_SECONDS = 2.0
ENV = {"GLOAMING_LEASE_MS": str(int(1000 * LEASE_SECONDS))}
# After so long a master that does not answer is replaced: not for being slow on a machine that is busy with all of this.
NODE_TIMEOUT_MS = "3000"
MODES = ("always", "everysec", "cluster")
_READY_SECONDS = 60.0


class Stack:
    """Everything, and a Redis of one of three kinds.

    Args:
        directory: where its data and logs are.
        mode: whether Redis writes each command to disk before it answers (`always`) or all of them once a second (`everysec`), or is a
            cluster of three masters with a replica each, which get everything a moment later (`cluster`).
        replicas: of each game.
        gateways: how many.
        env: variables for every process.
    """

    def __init__(self, directory: Path, mode: str, *, replicas: int = 2, gateways: int = 2, env: Mapping[str, str] | None = None) -> None:
        self.mode = mode
        self.cluster = Cluster(directory / "cluster", {"cluster-node-timeout": NODE_TIMEOUT_MS}) if mode == "cluster" else None
        (directory / "redis").mkdir(parents=True, exist_ok=True)
        self.redis = [] if self.cluster else [Server(directory / "redis", {"appendonly": "yes", "appendfsync": mode})]
        if self.cluster:
            self.redis = self.cluster.servers
        settings = {"GLOAMING_BOT_DELAY_MS": "300", "GLOAMING_ACCESS_TOKEN_SECONDS": "7200", **unlimited.ENVIRONMENT, **(env or {})}
        url = self.cluster.url if self.cluster else self.redis[0].url
        self.local = Local(directory / "local", replicas=replicas, gateways=gateways, env={"REDIS_URL": url, **settings})

    @property
    def urls(self) -> list[str]:
        """Of the gateways."""
        return self.local.urls

    @property
    def children(self) -> dict[str, Child]:
        """Every process by its name."""
        return self.local.children | {child.name: child for child in self._stores()}

    def names(self, of: str = "") -> list[str]:
        """The processes of one kind, a game's id or `gateway`; or all but Redis."""
        return [name for name in self.local.children if not of or name == of or name.rpartition("-")[0] == of]

    async def start(self) -> None:
        """Starts it and waits until it serves."""
        await asyncio.to_thread(self.cluster.start if self.cluster else self.redis[0].start)
        await asyncio.to_thread(self.local.start)

    async def stop(self) -> None:
        """Stops it."""
        await asyncio.to_thread(self.local.stop)
        for server in self.redis:
            await asyncio.to_thread(server.stop)

    async def bring_back(self, name: str) -> None:
        """Starts a process again that has ended, and waits until it serves."""
        self.local.restart(name)
        await self.serves(name)

    async def serves(self, name: str) -> None:
        """Waits until a process serves."""
        kind, _, number = name.rpartition("-")
        if kind == "gateway":
            url = self.urls[int(number) - 1]
            await eventually(lambda: asyncio.to_thread(_is_ready, url), _READY_SECONDS)
            return
        game = next(game for game in EVERY_GAME if game.id == kind)
        async with grpc.aio.insecure_channel(self.local.services[kind][int(number) - 1]) as channel:
            await eventually(lambda: _is_serving(channel, game), _READY_SECONDS)

    async def all_serve(self) -> None:
        """Waits until every process that runs serves."""
        await asyncio.gather(*(self.serves(name) for name in self.names() if self.local.children[name].running))

    def complaints(self) -> Iterator[str]:
        """What the processes logged as errors, or beside their log."""
        for log in sorted(self.local.logs.glob("*.log")):
            for line in log.read_text(errors="replace").splitlines():
                if not line.startswith("{") or '"level": "error"' in line or '"level": "critical"' in line:
                    yield f"{log.name}: {line[:400]}"

    def _stores(self) -> list[Child]:
        return [server.child for server in self.redis]

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for child in self.children.values():
            child.signal(signal.SIGCONT)
        await self.stop()


async def _is_serving(channel: grpc.aio.Channel, game: Game) -> bool:
    try:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=game.service.full_name))
    except grpc.aio.AioRpcError as fault:
        # It says nothing of the game until it has asked Redis once.
        if fault.code() not in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE):
            raise
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def _is_ready(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer:
        return bool(answer.status == 200)
    return False


def metrics(url: str) -> dict[str, float]:
    """The samples of a metrics page, by name and labels as it writes them."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line and not line.startswith("#")}
