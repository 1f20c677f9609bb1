"""Prometheus metrics of the game services. Labels are bounded: verbs, codes and kinds, never ids."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram, Info

from services.kit.version import VERSION

_FAST = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1, 2.5)

# Of every process: gloaming_build_info{version="…"} is 1.
Info("gloaming_build", "The release that runs.").info({"version": VERSION})

STORAGE_SECONDS = Histogram("gloaming_storage_seconds", "Time of a storage call, by script.", ["script"], buckets=_FAST)
RPC_SECONDS = Histogram("gloaming_rpc_seconds", "Time of an RPC, by method.", ["method"], buckets=_FAST)
RPCS = Counter("gloaming_rpcs", "RPCs, by method and gRPC code.", ["method", "code"])
MATCHES = Counter("gloaming_matches", "Matches, by what became of them: created, completed, resigned, abandoned.", ["what"])
MOVES = Counter("gloaming_moves", "Accepted moves, by who decided them: player, bot, clock.", ["by"])
REFUSALS = Counter("gloaming_refusals", "Moves refused, by kind: unreadable, refused, raced.", ["kind"])
RACES = Counter("gloaming_races", "Commits that found a newer version and were judged again.")
WATCHERS = Gauge("gloaming_watchers", "Watchers connected now.")
LIVE_STREAMS = Gauge("gloaming_live_streams", "Streams of gateways (Relay) and of players (Play) open now.", ["method"])
RESUME_MISSES = Counter("gloaming_resume_misses", "Watchers whose cursor did not fit, or lay too far back: they got a snapshot.")
# A reaction on its way, at the gateway: `ingress` from its receipt to its write to the service, `total` to the handing over of its answer.
# At the service: `order` from its receipt until it is ordered, `resolve` a commit that closes a round, `fanout` from the first thing that
# waits to be told until that is written.
PILLOW_SECONDS = Histogram(
    "gloaming_pillow_resolution_seconds",
    "Time of a reaction in a game of real time, by stage: ingress, order, resolve, fanout, total.",
    ["stage"],
    buckets=(0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1),
)
REACTIONS = Counter("gloaming_reactions", "Reactions decided, by verdict.", ["verdict"])
COMPENSATION = Histogram(
    "gloaming_compensation_seconds",
    "What was given back of a line's round trip, for each reaction so ordered (NK-19).",
    buckets=(0, 0.01, 0.025, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.3),
)
SLOW_READERS = Counter("gloaming_slow_readers", "Streams cut off because they read slower than things happen.")
DEADLINE_LATENESS = Histogram(
    "gloaming_deadline_lateness_seconds", "How late a deadline was acted on.", buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60)
)
CREDITED = Counter("gloaming_credited_seconds", "Time without service that clocks were credited with.")
