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

from gloaming.operator.v1 import operator_pb2
from gloaming.relay.v1 import relay_pb2
from services.kit import logs, metrics, tracing
from services.kit.errors import DOMAIN, Error, Raced, Refused, RetryLater, Unreadable
from services.kit.game import Game
from services.kit.identity import Caller, Identity
from services.kit.live import Live
from services.kit.matches import Matches
from services.kit.operator import Operator

log = structlog.get_logger(__name__)

Unary = Callable[[Any, Caller], Awaitable[Message]]
Stream = Callable[[Any, Caller], AsyncGenerator[Message, None]]
Duplex = Callable[[Caller, AsyncIterator[bytes]], AsyncGenerator[bytes, None]]
Context = grpc.aio.ServicerContext[bytes, bytes]
_RELAY = f"/{relay_pb2.DESCRIPTOR.services_by_name['RelayService'].full_name}/Relay"
_RESULTS = relay_pb2.DESCRIPTOR.services_by_name["ResultService"].full_name
_TURNS = relay_pb2.DESCRIPTOR.services_by_name["TurnService"].full_name
_OPERATOR = operator_pb2.DESCRIPTOR.services_by_name["OperatorService"].full_name
_INTERNAL = status_pb2.Status(code=code_pb2.INTERNAL, message="this is our fault; it has been logged")


def handlers(game: Game, matches: Matches, live: Live, operator: Operator, identity: Identity) -> grpc.GenericRpcHandler:
    """The handlers of every verb that the game's service declares, of the relay, of results and turns, and of what operators ask for."""
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
        return grpc.unary_unary_rpc_method_handler(_unary(name, request, unary[name], identity, game.service.full_name))

    verbs = {f"/{game.service.full_name}/{method.name}": handler(method) for method in game.service.methods}
    verbs[_RELAY] = grpc.stream_stream_rpc_method_handler(_duplex("Relay", live.relay, identity))
    results: dict[str, tuple[Any, Unary]] = {
        "ListResults": (relay_pb2.ListResultsRequest, matches.results.hand_out),
        "AcknowledgeResults": (relay_pb2.AcknowledgeResultsRequest, matches.results.acknowledge),
    }
    for name, (request, verb) in results.items():
        verbs[f"/{_RESULTS}/{name}"] = grpc.unary_unary_rpc_method_handler(_unary(name, request, verb, identity))
    turns: dict[str, tuple[Any, Unary]] = {
        "ListTurns": (relay_pb2.ListTurnsRequest, matches.turns.hand_out),
        "AcknowledgeTurns": (relay_pb2.AcknowledgeTurnsRequest, matches.turns.acknowledge),
    }
    for name, (request, verb) in turns.items():
        verbs[f"/{_TURNS}/{name}"] = grpc.unary_unary_rpc_method_handler(_unary(name, request, verb, identity))
    operators: dict[str, tuple[Any, Unary]] = {
        "InspectMatch": (operator_pb2.InspectMatchRequest, operator.inspect),
        "EndMatch": (operator_pb2.EndMatchRequest, operator.end),
        "Drain": (operator_pb2.DrainRequest, operator.drain),
    }
    for name, (request, verb) in operators.items():
        verbs[f"/{_OPERATOR}/{name}"] = grpc.unary_unary_rpc_method_handler(_unary(name, request, verb, identity, _OPERATOR))
    listing = _stream("ListMatches", operator_pb2.ListMatchesRequest, operator.find, identity)
    verbs[f"/{_OPERATOR}/ListMatches"] = grpc.unary_stream_rpc_method_handler(listing)
    return _Handlers(verbs)


class _Handlers(grpc.GenericRpcHandler):
    """Handlers by the path of their call."""

    def __init__(self, handlers: Mapping[str, grpc.RpcMethodHandler[bytes, bytes]]) -> None:
        self._handlers = handlers

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        return self._handlers.get(call.method)


def _unary(name: str, request: Any, verb: Unary, identity: Identity, service: str = "") -> Callable[[bytes, Context], Awaitable[bytes]]:
    """A verb that answers once.

    Args:
        service: whose verb it is, for traces and the log; none of a verb that gateways call all the time, whether anything happens or not.
    """

    async def answer(body: bytes, metadata: Mapping[str, str], context: Context) -> bytes:
        started = time.perf_counter()
        code = "CANCELLED"
        try:
            # Before the body: a caller with no good token learns nothing, not even what would be wrong with it.
            caller = await identity.caller(metadata.get("authorization"))
            said = (await verb(_read(request, body), caller)).SerializeToString()
            metrics.RPCS.labels(name, "OK").inc()
            code = "OK"
            return said
        except Exception as fault:
            code = fault.code.name if isinstance(fault, Error) else "INTERNAL"
            return await _abort(name, fault, context)
        finally:
            seconds = time.perf_counter() - started
            metrics.RPC_SECONDS.labels(name).observe(seconds)
            if tracing.tracer is not None:
                tracing.ended(code)
            say = log.info if service else log.debug
            say("call", method=name, code=code, ms=round(seconds * 1000, 1))

    async def call(body: bytes, context: Context) -> bytes:
        metadata = _metadata(context)
        logs.begin(metadata.get("x-request-id", ""))
        with tracing.NOTHING if tracing.tracer is None or not service else tracing.served(service, name, metadata, identity):
            return await answer(body, metadata, context)

    return call


def _stream(name: str, request: Any, verb: Stream, identity: Identity) -> Callable[[bytes, Context], AsyncIterator[bytes]]:
    async def call(body: bytes, context: Context) -> AsyncIterator[bytes]:
        metadata = _metadata(context)
        logs.begin(metadata.get("x-request-id", ""))
        metrics.WATCHERS.inc()
        try:
            caller = await identity.caller(metadata.get("authorization"))
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
        metadata = _metadata(context)
        logs.begin(metadata.get("x-request-id", ""))
        metrics.LIVE_STREAMS.labels(name).inc()
        try:
            caller = await identity.caller(metadata.get("authorization"))
            async with aclosing(verb(caller, received)) as written:
                async for body in written:
                    yield body
            metrics.RPCS.labels(name, "OK").inc()
        except Exception as fault:
            await _abort(name, fault, context)
        finally:
            metrics.LIVE_STREAMS.labels(name).dec()

    return call


def _metadata(context: Context) -> dict[str, str]:
    """What came with a call; of several of a name, the first."""
    found: dict[str, str] = {}
    for key, value in context.invocation_metadata() or ():
        found.setdefault(key, value if isinstance(value, str) else value.decode("ascii", "replace"))
    return found


def _read(request: Any, body: bytes) -> Any:
    try:
        asked = request.FromString(body)
    except DecodeError as fault:
        raise Unreadable("", "not a protobuf message of this kind") from fault
    if match_id := getattr(asked, "match_id", ""):
        logs.about(match_id)
    return asked


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
