"""Errors in the words of HTTP (RFC 9457): the one table of statuses, and the problem that the live frames tell."""

from __future__ import annotations

import math
from collections.abc import Mapping

import grpc

from gloaming.gateway.v1 import gateway_pb2
from gloaming.live.v1 import live_pb2
from services.kit.errors import Error, RetryLater, Unreadable

TYPE_PREFIX = "urn:gloaming:problem:"

# By reason where a reason says more than its code.
STATUS_BY_CODE: Mapping[grpc.StatusCode, int] = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.FAILED_PRECONDITION: 422,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.CANCELLED: 503,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 503,
}
STATUS_BY_REASON: Mapping[str, int] = {"VERSION_MISMATCH": 412}


def status_of(error: Error) -> int:
    """Returns the HTTP status of an error."""
    return STATUS_BY_REASON.get(error.reason) or STATUS_BY_CODE[error.code]


def title(reason: str) -> str:
    """Returns a reason for people."""
    return reason.replace("_", " ").capitalize()


def violations(error: Error) -> list[gateway_pb2.Violation]:
    """Returns the fields that were wrong."""
    return [gateway_pb2.Violation(field=error.field, description=error.description)] if isinstance(error, Unreadable) else []


def live_problem(error: Error | None, request_id: str = "", match_id: str = "") -> live_pb2.Problem:
    """Returns the problem that a live frame tells of an error; None is one that nobody foresaw, and says nothing of itself."""
    if error is None:
        detail, reason, status = "this is our fault; it has been logged", "INTERNAL", 500
    else:
        detail, reason, status = error.detail, error.reason, status_of(error)
    return live_pb2.Problem(
        request_id=request_id,
        match_id=match_id,
        type=TYPE_PREFIX + reason,
        title=title(reason),
        status=status,
        detail=detail,
        reason=reason,
        violations=violations(error) if error else (),
        retry_after=max(1, math.ceil(error.retry_after)) if isinstance(error, RetryLater) else None,
    )
