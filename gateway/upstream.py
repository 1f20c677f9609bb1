"""Calls to the game services: one channel a game, every verb by its descriptor.

A call that finds no service (UNAVAILABLE), or one that is just stopping (CANCELLED), is tried again at once, on another address where there
is one: every verb may be repeated, since reads change nothing, CreateMatch makes a match only where there is none, and moves carry a
request id. gRPC does this itself, by the policy in `_config`.

A channel is made for the replicas that there are; when the target's name has others, or the certificate was renewed, new calls get another.
gRPC itself looks names up again only when it loses a connection, which leaves a new replica idle.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, cast

import grpc
import grpc.aio
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2

from gateway.registry import GAMES, Game, Method, game_of
from gateway.targets import Dialer, resolve
from gloaming.operator.v1 import operator_pb2
from gloaming.relay.v1 import relay_pb2
from services.kit import logs, tracing
from services.kit.tls import Certificate, Pems

_PROBE_SECONDS = 1.0
# What every service serves beside its game's own verbs.
_RESULTS = "/gloaming.relay.v1.ResultService"
_TURNS = "/gloaming.relay.v1.TurnService"
_OPERATOR = "/gloaming.operator.v1.OperatorService"
_BESIDE = {
    "Check": Method("/grpc.health.v1.Health/Check", health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse, False),
    "ListResults": Method(f"{_RESULTS}/ListResults", relay_pb2.ListResultsRequest, relay_pb2.ListResultsResponse, False),
    "AcknowledgeResults": Method(
        f"{_RESULTS}/AcknowledgeResults", relay_pb2.AcknowledgeResultsRequest, relay_pb2.AcknowledgeResultsResponse, False
    ),
    "ListTurns": Method(f"{_TURNS}/ListTurns", relay_pb2.ListTurnsRequest, relay_pb2.ListTurnsResponse, False),
    "AcknowledgeTurns": Method(f"{_TURNS}/AcknowledgeTurns", relay_pb2.AcknowledgeTurnsRequest, relay_pb2.AcknowledgeTurnsResponse, False),
    "ListMatches": Method(f"{_OPERATOR}/ListMatches", operator_pb2.ListMatchesRequest, operator_pb2.ListMatchesResponse, True),
    "InspectMatch": Method(f"{_OPERATOR}/InspectMatch", operator_pb2.InspectMatchRequest, operator_pb2.InspectMatchResponse, False),
    "EndMatch": Method(f"{_OPERATOR}/EndMatch", operator_pb2.EndMatchRequest, operator_pb2.EndMatchResponse, False),
    "Drain": Method(f"{_OPERATOR}/Drain", operator_pb2.DrainRequest, operator_pb2.DrainResponse, False),
}


class _Line:
    """A channel to the replicas that there were at one time.

    Attributes:
        addresses: where they are.
        pems: the certificate it was made with.
        verbs: what can be called.
        calls: how many calls are under way.
    """

    def __init__(self, game: Game, dial: Dialer, addresses: set[str]) -> None:
        self.addresses = addresses
        self.pems: Pems | None = dial.pems
        self.calls = 0
        self._channel = dial(addresses, _options(game))
        self.verbs: dict[str, Callable[..., Any]] = {name: self._verb(each) for name, each in {**game.methods, **_BESIDE}.items()}

    def _verb(self, method: Method) -> Callable[..., Any]:
        make = self._channel.unary_stream if method.streams else self._channel.unary_unary
        return make(method.path, request_serializer=method.request.SerializeToString, response_deserializer=method.response.FromString)

    async def close(self) -> None:
        """Ends every call."""
        await self._channel.close()


class Upstream:
    """One game's service.

    Args:
        game: the game.
        target: where it is, as gRPC names targets.
        seconds: how long a call may take.
        voucher: gives the value of `authorization` by which services know the gateway.
        certificate: with it the service is called by TLS.
    """

    def __init__(self, game: Game, target: str, seconds: float, voucher: Callable[[], str], certificate: Certificate | None) -> None:
        self.game = game
        self._target = target
        self._seconds = seconds
        self._voucher = voucher
        self._dial = Dialer(target, certificate)
        self._line = _Line(game, self._dial, {target})
        # Those that others have taken the place of, until their calls have ended.
        self._left: set[_Line] = set()
        self._closing: set[asyncio.Task[None]] = set()

    async def look(self) -> None:
        """Finds out where the replicas are, and has new calls go there."""
        addresses = await resolve(self._target) or self._line.addresses
        if (addresses, self._dial.pems) == (self._line.addresses, self._line.pems):
            return
        old, self._line = self._line, _Line(self.game, self._dial, addresses)
        self._left.add(old)
        self._close_unused(old)

    def _close_unused(self, line: _Line) -> None:
        if line in self._left and not line.calls:
            self._left.remove(line)
            task = asyncio.create_task(line.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _start(self, verb: str, request: Message, **options: Any) -> Any:
        line = self._line
        call = line.verbs[verb](request, **options)

        def ended(_: object) -> None:
            line.calls -= 1
            self._close_unused(line)

        line.calls += 1
        call.add_done_callback(ended)
        return call

    def request(self, verb: str) -> type[Message]:
        """Returns what a verb takes."""
        return self.game.methods[verb].request

    async def call(self, verb: str, authorization: str, request: Message) -> Any:
        """Calls a verb and returns its answer.

        Raises:
            grpc.aio.AioRpcError: the service refuses, or does not answer in time.
        """
        with tracing.NOTHING if tracing.tracer is None else tracing.call(self.game.service, verb):
            return await self._start(verb, request, timeout=self._seconds, metadata=self._metadata(authorization))

    def stream(self, verb: str, authorization: str, request: Message) -> grpc.aio.UnaryStreamCall[Message, Any]:
        """Calls a verb that streams; the stream lasts until it ends or is cancelled."""
        call = self._start(verb, request, metadata=self._metadata(authorization))
        return cast("grpc.aio.UnaryStreamCall[Message, Any]", call)

    def _metadata(self, authorization: str) -> Sequence[tuple[str, str]]:
        """What goes with a call: whose it is, and the id of the request that it is made for."""
        known = logs.request_id()
        metadata = (("authorization", authorization), *((("x-request-id", known),) if known else ()))
        return metadata if tracing.tracer is None else (*metadata, *tracing.headers(self._voucher()))

    async def health(self) -> str:
        """Returns what the service says of itself: SERVING, NOT_SERVING, …, or UNREACHABLE."""
        try:
            answer = await self._start("Check", health_pb2.HealthCheckRequest(service=self.game.service), timeout=_PROBE_SECONDS)
        except grpc.aio.AioRpcError as error:
            return "UNREACHABLE" if error.code() is not grpc.StatusCode.NOT_FOUND else "SERVICE_UNKNOWN"
        return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)

    async def close(self) -> None:
        """Ends every call."""
        for line in (self._line, *self._left):
            await line.close()
        await asyncio.gather(*self._closing)


class Services:
    """Every game's service. Open it where the event loop runs: `async with services`.

    Args:
        targets: where each game is.
        seconds: how long a call may take.
        voucher: gives the value of `authorization` by which services know the gateway.
        certificate: with it services are called by TLS.
        look_seconds: how long what was found of names and certificates is good.
    """

    def __init__(
        self,
        targets: Mapping[str, str],
        seconds: float,
        voucher: Callable[[], str] = str,
        certificate: Certificate | None = None,
        look_seconds: float = 3.0,
    ) -> None:
        self._targets = dict(targets)
        self._seconds = seconds
        self._voucher = voucher
        self._certificate = certificate
        self._look_seconds = look_seconds
        self._upstreams: dict[str, Upstream] = {}
        self._looking: asyncio.Task[None] | None = None

    def __getitem__(self, game: str) -> Upstream:
        return self._upstreams[game]

    def of_match(self, match_id: str) -> Upstream:
        """Returns the service that a match lives in.

        Raises:
            NotFound: MATCH_NOT_FOUND.
        """
        return self._upstreams[game_of(match_id).id]

    async def health(self) -> dict[str, str]:
        """Returns what each game's service says of itself."""
        answers = await asyncio.gather(*(upstream.health() for upstream in self._upstreams.values()))
        return dict(zip(self._upstreams, answers, strict=True))

    async def __aenter__(self) -> Services:
        self._upstreams = {
            game.id: Upstream(game, self._targets[game.id], self._seconds, self._voucher, self._certificate) for game in GAMES.values()
        }
        self._looking = asyncio.create_task(self._keep_looking())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        for upstream in self._upstreams.values():
            await upstream.close()

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.gather(*(upstream.look() for upstream in self._upstreams.values()))
            await asyncio.sleep(self._look_seconds)


def _options(game: Game) -> list[tuple[str, Any]]:
    return [
        ("grpc.service_config", json.dumps(_config(game))),
        # A service that comes back is found soon; gRPC's own pauses grow to two minutes.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 2_000),
        # A connection that went silent is noticed under a stream that has nothing to say.
        ("grpc.keepalive_time_ms", 20_000),
        ("grpc.keepalive_timeout_ms", 5_000),
        ("grpc.http2.max_pings_without_data", 0),
    ]


def _config(game: Game) -> dict[str, Any]:
    """The channel's service config (https://github.com/grpc/grpc/blob/master/doc/service_config.md)."""
    return {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [
            {
                "name": [{"service": game.service}],
                "retryPolicy": {
                    "maxAttempts": 3,
                    "initialBackoff": "0.01s",
                    "maxBackoff": "0.2s",
                    "backoffMultiplier": 10,
                    # A server that is just stopping cancels what reached it and was not looked at yet.
                    "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"],
                },
            }
        ],
        # A service that keeps failing is not asked thrice as often. One of whose two replicas refuses is, however long it takes: as in a
        # rollout, where those of the older release refuse what the newer one wrote. (gRPC takes a whole number for thousandths.)
        "retryThrottling": {"maxTokens": 100, "tokenRatio": 1.5},
    }
