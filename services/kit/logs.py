"""Structured logs: one JSON object a line, to standard error. Never a token, a seed, a hand or a body."""

from __future__ import annotations

import logging
import sys

import structlog


def configure(level: str, service: str) -> None:
    """Sends this process's logs, the libraries' too, to standard error as JSON."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
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
