"""Traces of requests by OpenTelemetry, from the gateway through a game's service to Redis, for operators who collect them.

Off unless OTEL_EXPORTER_OTLP_ENDPOINT says where they go (OTLP over gRPC); the other OTEL_* variables are the SDK's own. Whoever has a span
to make asks first whether `tracer` is None, which is all that it costs when off.

A trace is one request: what no request asked for (sweeps, clocks, bots) has none. So it is with reactions on the live socket, which share
messages and round trips with many others; `gloaming_pillow_resolution_seconds` tells of them. Streams are traced until they have begun.

The trace context of a client is not taken up: it could have every request of its own recorded. A service takes up a gateway's alone, which
proves by its token that it is one. A span says what was called, how it ended, which match and which request it was for; never a path, a
key, a message or an exception's words, which may hold what nobody may read.

These few spans are made here and not by opentelemetry-instrumentation-*: those of ASGI and gRPC take up any caller's context and make a
span or an event of each message of a stream, and that of redis-py does not see the lanes of `storage`. No global provider is set, so that
no library adds spans of its own.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import grpc
import structlog
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from services.kit.errors import Error

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider

    from services.kit.identity import Identity

VOUCHER = "gloaming-gateway"
# For `with`, where nothing is traced.
NOTHING = nullcontext()
# What is left to say when a process ends may take so long.
_FLUSH_SECONDS = 2.0
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
# By the semantic conventions these are a server's faults; others are answers.
_FAULTS = {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
_URL = re.compile(r"https?://[^\s/?#]+/?")
_CONTEXT = TraceContextTextMapPropagator()
# What every span has, by its name in the log.
_COMMON = {"request_id": "gloaming.request_id", "match": "gloaming.match_id"}

tracer: trace.Tracer | None = None
_provider: TracerProvider | None = None


def configure(service: str) -> None:
    """Traces this process's requests from now on, if its environment asks for it; a wrong one ends the process with a sentence.

    Args:
        service: what this process is, unless OTEL_SERVICE_NAME says so.
    """
    global tracer, _provider
    environ = os.environ
    name, endpoint = _first(_ENDPOINTS)
    if not endpoint or environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none":
        return
    if not _URL.fullmatch(endpoint):
        sys.exit(f"{name}: give the address of a collector, as in http://127.0.0.1:4317.")
    if _first(_PROTOCOLS)[1] not in ("", "grpc"):
        sys.exit(f"{_first(_PROTOCOLS)[0]}: traces are sent over grpc alone; leave it out.")
    try:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        sys.exit(f"{name} asks for traces, which need OpenTelemetry's SDK: install the extra, gloaming[tracing], or leave it out.")
    named = {"service.namespace": "gloaming"} | ({} if environ.get("OTEL_SERVICE_NAME") else {"service.name": service})
    _provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = _provider.get_tracer("gloaming")


def _first(names: Sequence[str]) -> tuple[str, str]:
    """The first of these variables that is set, and its value."""
    return next(((name, value) for name in names if (value := os.environ.get(name))), (names[-1], ""))


def stop() -> None:
    """Sends what is left to send; a collector that does not answer is not waited for long."""
    global _provider
    if _provider is None:
        return
    sending = threading.Thread(target=_provider.shutdown, daemon=True)
    _provider = None
    sending.start()
    sending.join(_FLUSH_SECONDS)


def trace_id() -> str:
    """The trace that is being made, as 32 hexadecimal digits; empty for none."""
    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else ""


def about(match_id: str) -> None:
    """Says which match the request is for that is being traced, if any is."""
    span = trace.get_current_span()
    if span.is_recording():
        span.set_attribute(_COMMON["match"], match_id)


@contextmanager
def request(method: str) -> Iterator[None]:
    """An HTTP request, which begins a trace of its own."""
    with _made(method, SpanKind.SERVER, {"http.request.method": method}, trace.set_span_in_context(trace.INVALID_SPAN)):
        yield


def answered(method: str, route: str, status: int) -> None:
    """Says how the HTTP request that is being traced was answered, and ends its span: a stream goes on, what it was asked is over."""
    span = trace.get_current_span()
    if span.is_recording():
        span.update_name(f"{method} {route}")
        span.set_attributes({"http.route": route, "http.response.status_code": status})
        if status >= 500:
            span.set_status(StatusCode.ERROR)
        span.end()


@contextmanager
def call(service: str, verb: str) -> Iterator[None]:
    """A call to a game's service, where a request that is traced makes it."""
    if not trace.get_current_span().is_recording():
        yield
        return
    with _made(f"{service}/{verb}", SpanKind.CLIENT, _rpc(service, verb)):
        try:
            yield
            ended("OK")
        except grpc.aio.AioRpcError as fault:
            ended(fault.code().name)
            raise


@contextmanager
def served(service: str, verb: str, metadata: Mapping[str, str], identity: Identity) -> Iterator[None]:
    """A call to this service: part of the gateway's trace, or for other callers one of its own."""
    parent = trace.set_span_in_context(trace.INVALID_SPAN)
    if "traceparent" in metadata and _is_gateway(metadata, identity):
        parent = _CONTEXT.extract(metadata, parent)
    with _made(f"{service}/{verb}", SpanKind.SERVER, _rpc(service, verb), parent):
        yield


def ended(code: str) -> None:
    """Says with which gRPC code the call ended that is being traced, if any is."""
    span = trace.get_current_span()
    if span.is_recording():
        span.set_attribute("rpc.response.status_code", code)
        if code in _FAULTS:
            span.set_status(StatusCode.ERROR)


@contextmanager
def stored(verb: str) -> Iterator[None]:
    """A script, or a command, at Redis, where a request that is traced runs it."""
    if not trace.get_current_span().is_recording():
        yield
        return
    with _made(verb, SpanKind.CLIENT, {"db.system.name": "redis", "db.operation.name": verb}) as span:
        try:
            yield
        except Exception:
            span.set_status(StatusCode.ERROR)
            raise


def headers(voucher: str) -> Sequence[tuple[str, str]]:
    """The gRPC metadata by which a service goes on with the trace that is being made; none where there is none.

    Args:
        voucher: the value of `authorization` that proves a gateway.
    """
    carried: dict[str, str] = {}
    _CONTEXT.inject(carried)
    return (*carried.items(), (VOUCHER, voucher)) if carried else ()


def _rpc(service: str, verb: str) -> dict[str, Any]:
    return {"rpc.system.name": "grpc", "rpc.method": f"{service}/{verb}"}


@contextmanager
def _made(name: str, kind: SpanKind, attributes: dict[str, Any], parent: Context | None = None) -> Iterator[Span]:
    """A span that is the current one; what is raised in it is not told."""
    assert tracer is not None
    known = structlog.contextvars.get_contextvars()
    attributes |= {attribute: known[name] for name, attribute in _COMMON.items() if name in known}
    span = tracer.start_span(name, parent, kind, attributes)
    with trace.use_span(span, record_exception=False, set_status_on_exception=False):
        try:
            yield span
        finally:
            if span.is_recording():
                span.end()


def _is_gateway(metadata: Mapping[str, str], identity: Identity) -> bool:
    try:
        caller = identity.says(metadata.get(VOUCHER))
    except Error:
        return False
    return "relay" in caller.scopes and caller.expires > time.time()
