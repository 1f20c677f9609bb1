"""Calls to the game services: one channel a game, every verb by its descriptor.

A call that finds no service (UNAVAILABLE) is tried again at once, on another address where there is one: every verb may be repeated, since
reads change nothing, CreateMatch makes a match only where there is none, and moves carry a request id. gRPC does this itself, by the policy
in `_config`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, cast

import grpc
import grpc.aio
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2

from gateway.registry import GAMES, Game, Method, game_of
from gloaming.relay.v1 import relay_pb2

_PROBE_SECONDS = 1.0
# What every service serves beside its game's own verbs.
_RESULTS = "/gloaming.relay.v1.ResultService"
_BESIDE = {
    "ListResults": Method(f"{_RESULTS}/ListResults", relay_pb2.ListResultsRequest, relay_pb2.ListResultsResponse, False),
    "AcknowledgeResults": Method(
        f"{_RESULTS}/AcknowledgeResults", relay_pb2.AcknowledgeResultsRequest, relay_pb2.AcknowledgeResultsResponse, False
    ),
}


class Upstream:
    """One game's service.

    Args:
        game: the game.
        target: where it is, as gRPC names targets.
        seconds: how long a call may take.
    """

    def __init__(self, game: Game, target: str, seconds: float) -> None:
        self.game = game
        self._seconds = seconds
        self._channel = grpc.aio.insecure_channel(target, options=_options(game))
        self._verbs: dict[str, Callable[..., Any]] = {name: self._verb(each) for name, each in {**game.methods, **_BESIDE}.items()}
        self._health = self._channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )

    def _verb(self, method: Method) -> Callable[..., Any]:
        make = self._channel.unary_stream if method.streams else self._channel.unary_unary
        return make(method.path, request_serializer=method.request.SerializeToString, response_deserializer=method.response.FromString)

    def request(self, verb: str) -> type[Message]:
        """Returns what a verb takes."""
        return self.game.methods[verb].request

    async def call(self, verb: str, authorization: str, request: Message) -> Any:
        """Calls a verb and returns its answer.

        Raises:
            grpc.aio.AioRpcError: the service refuses, or does not answer in time.
        """
        return await self._verbs[verb](request, timeout=self._seconds, metadata=(("authorization", authorization),))

    def stream(self, verb: str, authorization: str, request: Message) -> grpc.aio.UnaryStreamCall[Message, Any]:
        """Calls a verb that streams; the stream lasts until it ends or is cancelled."""
        call = self._verbs[verb](request, metadata=(("authorization", authorization),))
        return cast("grpc.aio.UnaryStreamCall[Message, Any]", call)

    async def health(self) -> str:
        """Returns what the service says of itself: SERVING, NOT_SERVING, …, or UNREACHABLE."""
        try:
            answer = await self._health(health_pb2.HealthCheckRequest(service=self.game.service), timeout=_PROBE_SECONDS)
        except grpc.aio.AioRpcError as error:
            return "UNREACHABLE" if error.code() is not grpc.StatusCode.NOT_FOUND else "SERVICE_UNKNOWN"
        return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)

    async def close(self) -> None:
        """Ends every call."""
        await self._channel.close()


class Services:
    """Every game's service. Open it where the event loop runs: `async with services`.

    Args:
        targets: where each game is.
        seconds: how long a call may take.
    """

    def __init__(self, targets: Mapping[str, str], seconds: float) -> None:
        self._targets = dict(targets)
        self._seconds = seconds
        self._upstreams: dict[str, Upstream] = {}

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
        self._upstreams = {game.id: Upstream(game, self._targets[game.id], self._seconds) for game in GAMES.values()}
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for upstream in self._upstreams.values():
            await upstream.close()


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
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            }
        ],
        # A service that keeps failing is not asked thrice as often.
        "retryThrottling": {"maxTokens": 100, "tokenRatio": 0.5},
    }
