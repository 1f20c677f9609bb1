"""The outermost layer of the gateway: request ids, the access log, metrics, and the last resort."""

from __future__ import annotations

import time

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway import metrics, problems
from gateway.protocol import link_of
from services.kit import logs, tracing

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})

_FRAMED_TWICE = "a request has Content-Length or Transfer-Encoding, not both"

_log = structlog.get_logger("gateway.access")


class Edge:
    """Wraps the whole application (pure ASGI: a stream passes through it untouched).

    The log tells of a request by its route, never by its query or its headers, where tokens could be.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request (ASGI)."""
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope = _as_get(scope)
        request_id = logs.begin(_request_id(scope)).encode()
        method = scope["method"] if scope["method"] in _METHODS else "other"
        with tracing.NOTHING if tracing.tracer is None or scope["path"] in _QUIET else tracing.request(method):
            await self._request(method, request_id, scope, receive, send)

    async def _request(self, method: str, request_id: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one HTTP request."""
        began = time.perf_counter()
        status = 0

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id), (b"x-content-type-options", b"nosniff")]
                if scope["app"].state.leaving.is_set():
                    message["headers"].append((b"connection", b"close"))
                metrics.SECONDS.labels(method, _route(scope)).observe(time.perf_counter() - began)
                if tracing.tracer is not None:
                    tracing.answered(method, _route(scope), status)
            await send(message)

        with metrics.IN_FLIGHT.track_inprogress():
            try:
                if _framed_twice(scope):
                    await problems.problem(400, "BAD_REQUEST", _FRAMED_TWICE, headers={"Connection": "close"})(scope, receive, observed)
                else:
                    await self._app(scope, receive, observed)
            except Exception as fault:
                _log.error("unforeseen", exc_info=fault)
                if not status:
                    await problems.internal()(scope, receive, observed)
        route = _route(scope)
        metrics.REQUESTS.labels(method, route, status).inc()
        say = _log.debug if route in _QUIET else _log.info
        say("request", method=method, route=route, status=status, ms=round((time.perf_counter() - began) * 1000, 1))

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one live socket; it is logged when it has ended."""
        began = time.perf_counter()
        request_id = logs.begin(_request_id(scope)).encode()
        status = 0

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] in ("websocket.accept", "websocket.http.response.start"):
                status = message.get("status", 101)
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id)]
                metrics.SECONDS.labels("GET", _route(scope)).observe(time.perf_counter() - began)
            await send(message)

        try:
            await self._app(scope, receive, observed)
        except Exception as fault:
            _log.error("unforeseen", exc_info=fault)
            if not status:
                await problems.internal()(scope, receive, observed)
        route = _route(scope)
        metrics.REQUESTS.labels("GET", route, status).inc()
        link = link_of(scope)
        code = link.closed_with if link is not None and status == 101 else None
        _log.info("socket", route=route, status=status, code=code, seconds=round(time.perf_counter() - began, 1))


def _as_get(scope: Scope) -> Scope:
    """A HEAD is a GET whose body the server leaves out (RFC 9110, 9.3.2); it asks for no stream, which would have no end."""
    headers = [(name, value) for name, value in scope["headers"] if name != b"accept"]
    return {**scope, "method": "GET", "headers": headers}


def _framed_twice(scope: Scope) -> bool:
    """Whether it could end in two places, and so hide another request from who only looks at one of them (RFC 9112, 6.1)."""
    return {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}


def _request_id(scope: Scope) -> str:
    """What the client calls the request."""
    return next((str(value, "latin-1") for name, value in scope["headers"] if name == b"x-request-id"), "")


def _route(scope: Scope) -> str:
    """The template of the route, which has no ids in it."""
    route = scope.get("route")
    return route.path_format if route is not None else "none"
