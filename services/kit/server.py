"""The process of a game service: starts, serves, drains, stops.

python -m services.<game>                       serves
python -m services.<game> verify record.json    checks the record of a finished match
python -m services.<game> shadow                replays stored matches with this code, before it serves
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

from services.kit import logs, shadow, tracing, verify
from services.kit.game import Game
from services.kit.garbage import collect_seldom
from services.kit.identity import Identity
from services.kit.limits import Buckets, rate
from services.kit.live import Live
from services.kit.matches import Matches
from services.kit.operator import Operator
from services.kit.servicer import handlers
from services.kit.settings import ServiceSettings, Unstartable, read, unknown
from services.kit.storage import Storage
from services.kit.tls import Certificate
from services.kit.version import VERSION

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
# For strangers: who says nothing, says too much, or keeps more going than a player needs is shown out.
_PUBLIC_OPTIONS = [
    ("grpc.so_reuseport", 0),
    # As much as a frame of the live socket may have, and some for what is around it.
    ("grpc.max_receive_message_length", 72 * 1024),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.max_concurrent_streams", 100),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 300_000),
    # Then calls go on, and new ones find other replicas and a renewed certificate.
    ("grpc.max_connection_age_ms", 1_800_000),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 2),
]


def main(game: Game, arguments: Sequence[str] | None = None) -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(prog=f"python -m services.{game.id}", description=f"{game.info.title}: its game service.")
    parser.add_argument("--version", action="version", version=f"gloaming {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", help="serve the game (the default)")
    check = commands.add_parser("verify", help="check that every shuffle, move and score of a record follows from its seed")
    check.add_argument("record", type=Path, help="the record, as JSON")
    shadow.arguments(commands.add_parser("shadow", help="replay stored matches with this code, and say which come out otherwise"))
    asked = parser.parse_args(arguments)
    if asked.command == "verify":
        sys.exit(verify.main(game, asked.record))
    if asked.command == "shadow":
        sys.exit(shadow.main(game, asked))
    settings = read(ServiceSettings)
    logs.configure(settings.log_level, game.id)
    tracing.configure(game.id)
    for name in unknown(ServiceSettings):
        log.warning("unknown_setting", variable=name)
    try:
        uvloop.run(serve(game, settings))
    except Unstartable as fault:
        sys.exit(str(fault))
    finally:
        tracing.stop()


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
        log.info("serving", version=VERSION, port=replica.port, public=replica.public_port, metrics=settings.metrics_listen)
        await replica.ended_or(stopping)
        log.info("draining", seconds=settings.drain_seconds)
    log.info("stopped")


class Replica:
    """One replica of a game's service: entering starts it, leaving drains and stops it.

    Attributes:
        port: the port that gRPC is served on.
        public_port: the one for players from outside; None where there is none.
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
        self._operator = Operator(game, self._storage, self._matches)
        self._certificate, self._public_certificate = settings.certificate(), settings.public_certificate()
        self._health = HealthServicer()
        verbs = handlers(game, self._matches, self._live, self._operator, identity)
        self._server = self._make(_OPTIONS, verbs)
        self._public = None
        if self._public_certificate:
            counting = identity.counting(Buckets(rate(settings.public_limit_calls)))
            outside = handlers(game, self._matches, self._live, self._operator, counting)
            self._public = self._make(_PUBLIC_OPTIONS, _Public(game, outside))
        self._probed = self._make(_PUBLIC_OPTIONS) if settings.health_listen else None
        self._stopping = asyncio.Event()

    def _make(self, options: Sequence[tuple[str, int]], *verbs: grpc.GenericRpcHandler) -> grpc.aio.Server:
        """A server of health, and of a game's verbs with reflection."""
        server = grpc.aio.server(options=options)
        server.add_generic_rpc_handlers(verbs)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        if verbs:
            names = (self._game.service.full_name, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name)
            reflection.enable_server_reflection(names, server)
        return server

    async def __aenter__(self) -> Replica:
        settings = self._settings
        self.port = _listen("GLOAMING_LISTEN", self._server, settings.listen, self._certificate)
        self.public_port: int | None = None
        if self._public is not None:
            self.public_port = _listen("GLOAMING_PUBLIC_LISTEN", self._public, settings.public_listen, self._public_certificate)
        if self._probed is not None:
            _listen("GLOAMING_HEALTH_LISTEN", self._probed, settings.health_listen)
        try:
            self._metrics = _serve_metrics(self._settings.metrics_listen) if self._settings.metrics_listen else None
        except OSError as fault:
            raise Unstartable(f"GLOAMING_METRICS_LISTEN: cannot listen on {self._settings.metrics_listen}: {fault}") from fault
        self._servers = [each for each in (self._server, self._public, self._probed) if each is not None]
        for server in self._servers:
            await server.start()
        self._running = asyncio.create_task(self._matches.run(self._stopping))
        self._reporting = asyncio.create_task(_report_health(self._health, self._game, self._storage))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reporting.cancel()
        await self._health.enter_graceful_shutdown()
        self._matches.drain()
        self._live.drain()
        await asyncio.gather(*(server.stop(self._settings.drain_seconds) for server in self._servers))
        self._stopping.set()
        try:
            await self._running
        finally:
            await self._storage.close()
            if self._metrics:
                self._metrics.shutdown()
                self._metrics.server_close()

    async def ended_or(self, stopping: asyncio.Event) -> None:
        """Waits until it is told to stop, by the process or by an operator, or its sweep has failed: a replica that serves no deadlines
        must not go on looking healthy.
        """
        told = [asyncio.create_task(event.wait()) for event in (stopping, self._operator.drained)]
        await asyncio.wait({self._running, *told}, return_when=asyncio.FIRST_COMPLETED)
        for task in told:
            task.cancel()


class _Public(grpc.GenericRpcHandler):
    """A game's own verbs, of all that a replica has: what gateways alone may ask for is not there."""

    def __init__(self, game: Game, verbs: grpc.GenericRpcHandler) -> None:
        self._prefix = f"/{game.service.full_name}/"
        self._verbs = verbs

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        return self._verbs.service(call) if call.method.startswith(self._prefix) else None


def _listen(setting: str, server: grpc.aio.Server, address: str, certificate: Certificate | None = None) -> int:
    """Has a server listen, and returns its port."""
    try:
        if certificate is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, certificate.server())
    except RuntimeError as fault:
        raise Unstartable(f"{setting}: cannot listen on {address}; is it taken?") from fault


def _serve_metrics(listen: str) -> WSGIServer:
    host, _, port = listen.rpartition(":")
    server, _ = start_http_server(int(port), host)
    return server


async def _report_health(health: HealthServicer, game: Game, storage: Storage) -> None:
    """Keeps the health service true: the process lives (the empty name), the game is served (its own name) while Redis answers."""
    await health.set("", health_pb2.HealthCheckResponse.SERVING)
    while True:
        alive = await storage.alive(game.id)
        status = health_pb2.HealthCheckResponse.SERVING if alive else health_pb2.HealthCheckResponse.NOT_SERVING
        await health.set(game.service.full_name, status)
        await asyncio.sleep(_READY_SECONDS)
