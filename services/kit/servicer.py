"""A game's gRPC service: every verb of its descriptor, served by `Matches`; and beside it what gateways ask for.

Here a call gets its caller, its typed error and its measurement, once for all verbs and games. Errors are rich (google.rpc.Status): an
`ErrorInfo` with a stable reason, `BadRequest` for what cannot be parsed, `RetryInfo` for what may pass.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, NoReturn

import grpc
import structlog
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError, Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from gloaming.relay.v1 import relay_pb2
from services.kit import metrics
from services.kit.errors import DOMAIN, Error, Raced, Refused, RetryLater, Unreadable
from services.kit.game import Game
from services.kit.identity import Caller, Identity
from services.kit.live import Live
from services.kit.matches import Matches

log = structlog.get_logger(__name__)

Unary = Callable[[Any, Caller], Awaitable[Message]]
Stream = Callable[[Any, Caller], AsyncGenerator[Message, None]]
Duplex = Callable[[Caller, AsyncIterator[bytes]], AsyncGenerator[bytes, None]]
Context = grpc.aio.ServicerContext[bytes, bytes]
_RELAY = f"/{relay_pb2.DESCRIPTOR.services_by_name['RelayService'].full_name}/Relay"
_RESULTS = relay_pb2.DESCRIPTOR.services_by_name["ResultService"].full_name
_INTERNAL = status_pb2.Status(code=code_pb2.INTERNAL, message="this is our fault; it has been logged")


def handlers(game: Game, matches: Matches, live: Live, identity: Identity) -> grpc.GenericRpcHandler:
    """The handlers of every verb that the game's service declares, of the relay and of the results."""
    unary: dict[str, Unary] = {
        "CreateMatch": matches.create,
        "GetMatch": lambda request, caller: matches.get(request.match_id, caller),
        "ListMoves": lambda request, caller: matches.moves(request.match_id, caller),
        "SubmitMove": matches.submit,
        "Resign": matches.resign,
        "ListEvents": matches.events,
        "GetRecord": lambda request, caller: matches.record(request.match_id, caller),
    }
    streams: dict[str, Stream] = {"WatchMatch": matches.watch}
    duplexes: dict[str, Duplex] = {"Play": live.play}

    def handler(method: MethodDescriptor) -> grpc.RpcMethodHandler[bytes, bytes]:
        name, request = method.name, game.message(method.input_type.name)
        if method.client_streaming:
            return grpc.stream_stream_rpc_method_handler(_duplex(name, duplexes[name], identity))
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(_stream(name, request, streams[name], identity))
        return grpc.unary_unary_rpc_method_handler(_unary(name, request, unary[name], identity))

    verbs = {f"/{game.service.full_name}/{method.name}": handler(method) for method in game.service.methods}
    verbs[_RELAY] = grpc.stream_stream_rpc_method_handler(_duplex("Relay", live.relay, identity))
    results: dict[str, tuple[Any, Unary]] = {
        "ListResults": (relay_pb2.ListResultsRequest, matches.results.hand_out),
        "AcknowledgeResults": (relay_pb2.AcknowledgeResultsRequest, matches.results.acknowledge),
    }
    for name, (request, verb) in results.items():
        verbs[f"/{_RESULTS}/{name}"] = grpc.unary_unary_rpc_method_handler(_unary(name, request, verb, identity))
    return _Handlers(verbs)


class _Handlers(grpc.GenericRpcHandler):
    """Handlers by the path of their call."""

    def __init__(self, handlers: Mapping[str, grpc.RpcMethodHandler[bytes, bytes]]) -> None:
        self._handlers = handlers

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        return self._handlers.get(call.method)


def _unary(name: str, request: Any, verb: Unary, identity: Identity) -> Callable[[bytes, Context], Awaitable[bytes]]:
    async def call(body: bytes, context: Context) -> bytes:
        started = time.perf_counter()
        try:
            # Before the body: a caller with no good token learns nothing, not even what would be wrong with it.
            caller = await identity.caller(_authorization(context))
            answer = (await verb(_read(request, body), caller)).SerializeToString()
            metrics.RPCS.labels(name, "OK").inc()
            return answer
        except Exception as fault:
            return await _abort(name, fault, context)
        finally:
            metrics.RPC_SECONDS.labels(name).observe(time.perf_counter() - started)

    return call


def _stream(name: str, request: Any, verb: Stream, identity: Identity) -> Callable[[bytes, Context], AsyncIterator[bytes]]:
    async def call(body: bytes, context: Context) -> AsyncIterator[bytes]:
        metrics.WATCHERS.inc()
        try:
            caller = await identity.caller(_authorization(context))
            async with aclosing(verb(_read(request, body), caller)) as messages:
                async for message in messages:
                    yield message.SerializeToString()
            metrics.RPCS.labels(name, "OK").inc()
        except Exception as fault:
            await _abort(name, fault, context)
        finally:
            metrics.WATCHERS.dec()

    return call


def _duplex(name: str, verb: Duplex, identity: Identity) -> Callable[[AsyncIterator[bytes], Context], AsyncIterator[bytes]]:
    async def call(received: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        metrics.LIVE_STREAMS.labels(name).inc()
        try:
            caller = await identity.caller(_authorization(context))
            async with aclosing(verb(caller, received)) as written:
                async for body in written:
                    yield body
            metrics.RPCS.labels(name, "OK").inc()
        except Exception as fault:
            await _abort(name, fault, context)
        finally:
            metrics.LIVE_STREAMS.labels(name).dec()

    return call


def _authorization(context: Context) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == "authorization":
            return value if isinstance(value, str) else value.decode("ascii", "replace")
    return None


def _read(request: Any, body: bytes) -> Any:
    try:
        return request.FromString(body)
    except DecodeError as fault:
        raise Unreadable("", "not a protobuf message of this kind") from fault


async def _abort(name: str, fault: Exception, context: Context) -> NoReturn:
    """Ends a call with the one status that its fault maps to."""
    if not isinstance(fault, Error):
        log.error("call_failed", method=name, exc_info=fault)
        metrics.RPCS.labels(name, "INTERNAL").inc()
        await context.abort_with_status(rpc_status.to_status(_INTERNAL))
    metrics.RPCS.labels(name, fault.code.name).inc()
    if isinstance(fault, Unreadable | Refused | Raced):
        metrics.REFUSALS.labels(type(fault).__name__.lower()).inc()
    raise AssertionError(await context.abort_with_status(rpc_status.to_status(status_of(fault))))


def status_of(fault: Error) -> status_pb2.Status:
    """The google.rpc.Status of an error."""
    code, _ = fault.code.value
    status = status_pb2.Status(code=code, message=fault.detail)
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=fault.reason, domain=DOMAIN))
    if isinstance(fault, Unreadable):
        violation = error_details_pb2.BadRequest.FieldViolation(field=fault.field, description=fault.description)
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    if isinstance(fault, RetryLater):
        info = error_details_pb2.RetryInfo()
        info.retry_delay.FromNanoseconds(int(fault.retry_after * 1e9))
        status.details.add().Pack(info)
    return status
