"""Prometheus metrics of the gateway. Labels are bounded: route templates, methods and statuses, never ids."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter("gloaming_http_requests", "Requests, by method, route and status.", ["method", "route", "status"])
SECONDS = Histogram(
    "gloaming_http_seconds",
    "Time until a response begins, by method and route.",
    ["method", "route"],
    buckets=(0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1, 2.5, 5),
)
IN_FLIGHT = Gauge("gloaming_http_in_flight", "Requests being served now, open streams among them.")
STREAMS = Gauge("gloaming_event_streams", "Streams of server-sent events open now.")
RESUMED = Counter("gloaming_event_streams_resumed", "Streams that went on at another replica of their game's service.")

SOCKETS = Gauge("gloaming_sockets", "Live sockets open now, by subprotocol.", ["subprotocol"])
SOCKETS_CLOSED = Counter("gloaming_sockets_closed", "Live sockets that ended, by WebSocket close code.", ["code"])
SLOW_READERS = Counter("gloaming_slow_readers_cut", "Live sockets cut off because their client did not read.")
RELAYS_RESUMED = Counter("gloaming_relay_streams_resumed", "Streams to replicas that ended, their sockets going on at another.", ["game"])
