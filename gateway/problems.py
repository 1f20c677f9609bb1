"""Errors as clients see them: RFC 9457, `application/problem+json`, with gRPC's reason beside it.

Whatever a handler raises, `answer_for` turns it into one `gloaming.gateway.v1.Problem`: the kit's errors, a game service's refusal
(`grpc.aio.AioRpcError`, read by the google.rpc rich error model), and what belongs to HTTP alone. Which code is which status says the one
table in `services.kit.problems`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus

import grpc
import structlog
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from starlette.exceptions import HTTPException
from starlette.responses import Response

from gateway.transcoding import render
from gloaming.gateway.v1 import gateway_pb2
from services.kit.errors import Error, RetryLater
from services.kit.problems import STATUS_BY_CODE, STATUS_BY_REASON, TYPE_PREFIX, status_of, title, violations

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1

_UNREACHABLE = "the game's service cannot be reached; try again"
# Said where a game's service gave no reason: the code is one.
WITHOUT_REASON = {
    grpc.StatusCode.UNAVAILABLE: _UNREACHABLE,
    grpc.StatusCode.CANCELLED: _UNREACHABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: "the game's service takes too long; try again",
}

# Reason and detail of what HTTP alone refuses, by its status; of any other, the last.
OF_HTTP = {
    404: ("PATH_NOT_FOUND", "there is nothing at this path"),
    405: ("METHOD_NOT_ALLOWED", "this path has other methods; see the header Allow"),
    400: ("BAD_REQUEST", "the request is malformed"),
}

_log = structlog.get_logger(__name__)


class Unacceptable(Exception):
    """What only HTTP knows to refuse: a body too large, a content type that is not JSON."""

    def __init__(self, status: HTTPStatus, reason: str, detail: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.detail = detail


def problem(
    status: int,
    reason: str,
    detail: str,
    *,
    wrong: Sequence[gateway_pb2.Violation] = (),
    retry_after: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Returns a problem as a response. `type` and `title` follow from the reason."""
    body = gateway_pb2.Problem(
        type=TYPE_PREFIX + reason,
        title=title(reason),
        status=status,
        detail=detail,
        reason=reason,
        violations=wrong,
    )
    more = dict(headers or {})
    if status == 401:
        more["WWW-Authenticate"] = "Bearer"
    if status in (429, 503):
        # Whole seconds (RFC 9110, 10.2.3), never zero.
        more["Retry-After"] = str(max(1, math.ceil(retry_after or RETRY_SECONDS)))
    return Response(render(body), status, more, MEDIA_TYPE)


def answer_for(error: Exception) -> Response:
    """Returns the response to any exception; one that nobody foresaw is logged and answered 500 without a detail."""
    match error:
        case Error():
            return _of_kit(error)
        case grpc.aio.AioRpcError():
            return _of_service(error)
        case Unacceptable():
            return problem(error.status, error.reason, error.detail)
        case HTTPException():
            return _of_starlette(error)
        case _:
            _log.error("unforeseen", exc_info=error)
            return internal()


def internal() -> Response:
    """The last resort."""
    return problem(500, "INTERNAL", "something went wrong here; it has been recorded")


def _of_kit(error: Error) -> Response:
    return problem(
        status_of(error),
        error.reason,
        error.detail,
        wrong=violations(error),
        retry_after=error.retry_after if isinstance(error, RetryLater) else None,
    )


def _of_service(error: grpc.aio.AioRpcError) -> Response:
    code, (reason, details) = error.code(), _read(error)
    status = STATUS_BY_REASON.get(reason) or STATUS_BY_CODE.get(code)
    if status is None:
        # gRPC's own words may hold addresses: they are for the log.
        _log.error("service failed", code=code.name, detail=error.details())
        return internal()
    if not reason:
        # Not a refusal of the service's: something on the way to it, or its own slowness.
        return problem(status, code.name, WITHOUT_REASON.get(code, "the game's service refuses, and does not say why"))
    wrong, retry_after = [], None
    for detail in details:
        if isinstance(detail, error_details_pb2.BadRequest):
            wrong = [gateway_pb2.Violation(field=each.field, description=each.description) for each in detail.field_violations]
        elif isinstance(detail, error_details_pb2.RetryInfo):
            retry_after = detail.retry_delay.ToTimedelta().total_seconds()
    return problem(status, reason, error.details() or "", wrong=wrong, retry_after=retry_after)


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """Returns the reason that a service gave, or nothing when it gave none."""
    return _read(error)[0]


def _read(error: grpc.aio.AioRpcError) -> tuple[str, list[error_details_pb2.BadRequest | error_details_pb2.RetryInfo]]:
    try:
        # Typed for grpc.Call; grpc.aio's errors answer the same questions.
        rich = rpc_status.from_call(error)  # type: ignore[arg-type]
    except ValueError:  # the rich status contradicts the plain one
        rich = None
    reason, details = "", []
    for packed in rich.details if rich is not None else ():
        for kind in (error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo):
            detail = kind()
            if packed.Unpack(detail):
                if isinstance(detail, error_details_pb2.ErrorInfo):
                    reason = detail.reason
                else:
                    details.append(detail)
    return reason, details


def _of_starlette(error: HTTPException) -> Response:
    reason, detail = OF_HTTP.get(error.status_code, OF_HTTP[400])
    return problem(error.status_code, reason, detail, headers=error.headers)
