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
SERVING = Gauge("gloaming_upstream_serving", "1 while a game's service serves, as this gateway sees it, else 0.", ["game"])
STREAMS = Gauge("gloaming_event_streams", "Streams of server-sent events open now.")
RESUMED = Counter("gloaming_event_streams_resumed", "Streams that went on at another replica of their game's service.")

THROTTLED = Counter(
    "gloaming_throttled",
    "Calls refused for being too many, by kind (sign_in, making, socket, move) and by whose limit (player, address).",
    ["kind", "of"],
)

SOCKETS = Gauge("gloaming_sockets", "Live sockets open now, by subprotocol.", ["subprotocol"])
SOCKETS_CLOSED = Counter("gloaming_sockets_closed", "Live sockets that ended, by WebSocket close code.", ["code"])
SLOW_READERS = Counter("gloaming_slow_readers_cut", "Live sockets cut off because their client did not read.")
RELAYS_RESUMED = Counter("gloaming_relay_streams_resumed", "Streams to replicas that ended, their sockets going on at another.", ["game"])

ROOMS = Counter(
    "gloaming_rooms", "Rooms, by what became of them: opened, started, refused (by the game's service), ended (left).", ["what"]
)

TICKETS = Counter(
    "gloaming_tickets", "Tickets that ended, by what became of them: matched, cancelled, expired, failed.", ["game", "outcome"]
)
TICKETS_WAITING = Gauge("gloaming_tickets_waiting", "Tickets that wait in all of a game's matchmaking, as this gateway saw last.", ["game"])
TICKET_SECONDS = Histogram(
    "gloaming_ticket_seconds",
    "How long tickets waited until their match was there.",
    ["game"],
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 30, 60, 120, 300, 600),
)

WEBHOOKS = Counter(
    "gloaming_webhooks",
    "Notices to webhooks, by what became of a try: told, failed, given_up, dropped (no news any more), gone (410), disabled.",
    ["outcome"],
)
WEBHOOK_SECONDS = Histogram(
    "gloaming_webhook_seconds",
    "Time from when a notice was taken in until its webhook took it.",
    buckets=(0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 300, 3600, 86_400),
)

RESULTS = Counter(
    "gloaming_results",
    "Results of rated matches, by what became of them: counted, repeated, abandoned, unsound, failed.",
    ["game", "outcome"],
)
RESULT_SECONDS = Histogram(
    "gloaming_result_seconds",
    "Time from the end of a rated match until it is counted.",
    buckets=(0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 300, 3600, 86_400),
)
