"""Structured logs: one JSON object a line, to standard error. Never a token, a seed, a hand or a body.

`request_id` joins what belongs to one request, in the gateway and in the services that it calls; `match` is the id of the match that it
concerns; `trace_id`, where requests are traced, leads to its trace.
"""

from __future__ import annotations

import logging
import re
import secrets
import sys

import structlog

from services.kit import tracing

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MATCH_ID = re.compile(r"[a-z_]{1,32}-[a-z0-9]{8,40}")


def configure(level: str, service: str) -> None:
    """Sends this process's logs, the libraries' too, to standard error as JSON."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _traced,
        lambda _, __, event: {"service": service, **event},
    ]
    render: list[structlog.typing.Processor] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[*shared, *render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render], foreign_pre_chain=shared
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)


def begin(request_id: str) -> str:
    """Begins a request: whatever is logged in this task from now on has its id.

    Args:
        request_id: what the caller calls it; unless that is short and plain it gets an id here.

    Returns:
        its id.
    """
    known = request_id if _REQUEST_ID.fullmatch(request_id) else secrets.token_hex(8)
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=known)
    return known


def about(match_id: str) -> None:
    """Says which match the request concerns. What cannot be a match's id is not repeated: it may be anything."""
    if _MATCH_ID.fullmatch(match_id):
        structlog.contextvars.bind_contextvars(match=match_id)
        if tracing.tracer is not None:
            tracing.about(match_id)


def request_id() -> str:
    """The id of the request that is being served, if any."""
    known: str = structlog.contextvars.get_contextvars().get("request_id", "")
    return known


def _traced(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    if tracing.tracer is not None and (trace_id := tracing.trace_id()):
        event["trace_id"] = trace_id
    return event
