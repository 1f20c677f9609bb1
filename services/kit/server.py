"""The process of a game service: starts, serves, drains, stops.

python -m services.<game>                       serves
python -m services.<game> verify record.json    checks the record of a finished match
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from wsgiref.simple_server import WSGIServer

import grpc
import jwt
import structlog
import uvloop
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection
from prometheus_client import start_http_server

from services.kit import logs, verify
from services.kit.game import Game
from services.kit.garbage import collect_seldom
from services.kit.identity import Identity
from services.kit.live import Live
from services.kit.matches import Matches
from services.kit.servicer import handlers
from services.kit.settings import ServiceSettings, read
from services.kit.storage import Storage

log = structlog.get_logger(__name__)

_READY_SECONDS = 1.0
_OPTIONS = [
    # Two processes on one port would share it silently.
    ("grpc.so_reuseport", 0),
    # A gateway's relay puts many frames into one message.
    ("grpc.max_receive_message_length", 2 * 1024 * 1024),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
]


def main(game: Game, arguments: Sequence[str] | None = None) -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(prog=f"python -m services.{game.id}", description=f"{game.info.title}: its game service.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", help="serve the game (the default)")
    check = commands.add_parser("verify", help="check that every shuffle, move and score of a record follows from its seed")
    check.add_argument("record", type=Path, help="the record, as JSON")
    asked = parser.parse_args(arguments)
    if asked.command == "verify":
        sys.exit(verify.main(game, asked.record))
    settings = read(ServiceSettings)
    logs.configure(settings.log_level, game.id)
    try:
        uvloop.run(serve(game, settings))
    except Unstartable as fault:
        sys.exit(str(fault))


async def serve(game: Game, settings: ServiceSettings) -> None:
    """Serves a game until SIGTERM or SIGINT; then lets calls finish, sends watchers elsewhere, and stops.

    Raises:
        Unstartable: the settings do not let it.
    """
    stopping = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopping.set)
    async with Replica(game, settings) as replica:
        collect_seldom()
        log.info("serving", port=replica.port, metrics=settings.metrics_listen)
        await replica.ended_or(stopping)
        log.info("draining", seconds=settings.drain_seconds)
    log.info("stopped")


class Unstartable(Exception):
    """A replica cannot start as it is set up; the message says what to set."""


class Replica:
    """One replica of a game's service: entering starts it, leaving drains and stops it.

    Attributes:
        port: the port that gRPC is served on.
    """

    def __init__(self, game: Game, settings: ServiceSettings) -> None:
        self._game = game
        self._settings = settings
        self._storage = Storage(settings.redis_url, wait_replicas=settings.wait_replicas, wait_ms=settings.wait_ms)
        try:
            identity = Identity.from_file(settings.jwks_file, self._storage)
        except (OSError, ValueError, KeyError, AttributeError, jwt.PyJWTError) as fault:
            raise Unstartable(f"GLOAMING_JWKS_FILE: {settings.jwks_file} is not a set of public keys (JWKS): {fault}") from fault
        self._matches = Matches(game, self._storage, identity, settings)
        self._live = Live(game, self._matches, identity)
        self._health = HealthServicer()
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers((handlers(game, self._matches, self._live, identity),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (game.service.full_name, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name)
        reflection.enable_server_reflection(names, self._server)
        self._stopping = asyncio.Event()

    async def __aenter__(self) -> Replica:
        try:
            self.port = self._server.add_insecure_port(self._settings.listen)
        except RuntimeError as fault:
            raise Unstartable(f"GLOAMING_LISTEN: cannot listen on {self._settings.listen}; is it taken?") from fault
        try:
            self._metrics = _serve_metrics(self._settings.metrics_listen) if self._settings.metrics_listen else None
        except OSError as fault:
            raise Unstartable(f"GLOAMING_METRICS_LISTEN: cannot listen on {self._settings.metrics_listen}: {fault}") from fault
        await self._server.start()
        self._running = asyncio.create_task(self._matches.run(self._stopping))
        self._reporting = asyncio.create_task(_report_health(self._health, self._game, self._storage))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reporting.cancel()
        await self._health.enter_graceful_shutdown()
        self._matches.drain()
        self._live.drain()
        await self._server.stop(self._settings.drain_seconds)
        self._stopping.set()
        try:
            await self._running
        finally:
            await self._storage.close()
            if self._metrics:
                self._metrics.shutdown()
                self._metrics.server_close()

    async def ended_or(self, stopping: asyncio.Event) -> None:
        """Waits until it is told to stop, or its sweep has failed: a replica that serves no deadlines must not go on looking healthy."""
        stop = asyncio.create_task(stopping.wait())
        await asyncio.wait({self._running, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()


def _serve_metrics(listen: str) -> WSGIServer:
    host, _, port = listen.rpartition(":")
    server, _ = start_http_server(int(port), host)
    return server


async def _report_health(health: HealthServicer, game: Game, storage: Storage) -> None:
    """Keeps the health service true: the process lives (the empty name), the game is served (its own name) while Redis answers."""
    await health.set("", health_pb2.HealthCheckResponse.SERVING)
    while True:
        alive = await storage.alive()
        status = health_pb2.HealthCheckResponse.SERVING if alive else health_pb2.HealthCheckResponse.NOT_SERVING
        await health.set(game.service.full_name, status)
        await asyncio.sleep(_READY_SECONDS)
