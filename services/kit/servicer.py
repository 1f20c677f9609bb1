"""A game's gRPC service: every verb of its descriptor, served by `Matches`.

Here a call gets its caller, its typed error and its measurement, once for all verbs and games. Errors are rich (google.rpc.Status): an
`ErrorInfo` with a stable reason, `BadRequest` for what cannot be parsed, `RetryInfo` for what may pass.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, NoReturn

import grpc
import structlog
from google.protobuf.message import DecodeError, Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from services.kit import metrics
from services.kit.errors import DOMAIN, Error, Raced, Refused, RetryLater, Unreadable
from services.kit.game import Game
from services.kit.identity import Caller, Identity
from services.kit.matches import Matches

log = structlog.get_logger(__name__)

Unary = Callable[[Any, Caller], Awaitable[Message]]
Stream = Callable[[Any, Caller], AsyncGenerator[Message, None]]
Context = grpc.aio.ServicerContext[bytes, bytes]
_INTERNAL = status_pb2.Status(code=code_pb2.INTERNAL, message="this is our fault; it has been logged")


def handlers(game: Game, matches: Matches, identity: Identity) -> grpc.GenericRpcHandler:
    """The handlers of every verb that the game's service declares."""
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

    def handler(name: str, request: Any) -> grpc.RpcMethodHandler[bytes, bytes]:
        if name in streams:
            return grpc.unary_stream_rpc_method_handler(_stream(name, request, streams[name], identity))
        return grpc.unary_unary_rpc_method_handler(_unary(name, request, unary[name], identity))

    verbs = {m.name: handler(m.name, game.message(m.input_type.name)) for m in game.service.methods if not m.client_streaming}
    return grpc.method_handlers_generic_handler(game.service.full_name, verbs)


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
