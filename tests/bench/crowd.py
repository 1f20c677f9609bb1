"""Five hundred matches of six bots at once, and four players in one more: all matches must end, and the players should not notice."""

from __future__ import annotations

import secrets
import sys
import time
import urllib.request
from collections.abc import Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from gloaming.night_knight.v1 import night_knight_pb2 as pb
from gloaming.table.v1 import table_pb2
from tests.bench.load import ROUNDS_A_MATCH, Host, Room, Untrue
from tests.bench.machine import cpu_seconds
from tests.bench.pillow import grab, serving

MATCHES, BOTS = 500, 6
# They begin one after the other within about the time of a round: made all at once, they would reveal all at once, too.
SPREAD_SECONDS = 5.0
# The players, in a match without countdowns, react one after the other, so long apart.
PAUSE_SECONDS = 0.05
MOST_SECONDS = 180.0


def measure() -> dict[str, Any]:
    """How long the matches took, and how fast the players' reactions came back meanwhile.

    Raises:
        Untrue: a match did not end.
    """
    with serving() as (local, server):
        host = Host(server)
        page = f"http://{local.metrics['night_knight'][0]}/metrics"
        began, before = time.perf_counter(), {name: cpu_seconds(pid) for name, pid in server.pids.items()}
        ids = []
        for number in range(MATCHES):
            time.sleep(max(0.0, began + number * SPREAD_SECONDS / MATCHES - time.perf_counter()))
            ids.append(_bots(host))
        took, counted = _play(host, page, began)
        seconds = time.perf_counter() - began
        cores = {name: round((cpu_seconds(pid) - before[name]) / seconds, 2) for name, pid in server.pids.items()}
        ended = [host.stub.GetMatch(pb.GetMatchRequest(match_id=match_id), metadata=host.metadata) for match_id in ids]
        host.close()
    rounds = sorted(match.view.round for match in ended)
    if any(match.status != table_pb2.FINISHED for match in ended):
        raise Untrue(f"{sum(match.status != table_pb2.FINISHED for match in ended)} of {MATCHES} matches did not end in {seconds:.0f} s")
    took.sort()
    return {
        "matches": MATCHES,
        "seconds": round(seconds, 1),
        "rounds_a_match": {"fewest": rounds[0], "median": rounds[MATCHES // 2], "most": rounds[-1]},
        "bots_moves_per_second": round(counted["gloaming_moves_total", "bot"] / seconds),
        "players": {
            "reactions": len(took),
            "p50_ms": round(1000 * took[(len(took) - 1) // 2], 2),
            "p99_ms": round(1000 * took[int((len(took) - 1) * 0.99)], 2),
            "slowest_ms": round(1000 * took[-1], 2),
        },
        "cores": cores,
    }


def _bots(host: Host) -> str:
    """A new match of bots, with the usual times."""
    seats = [table_pb2.SeatRequest(bot=table_pb2.Bot.STANDARD)] * BOTS
    request = pb.CreateMatchRequest(match_id=f"night_knight-{secrets.token_hex(12)}", seats=seats)
    return str(host.stub.CreateMatch(request, metadata=host.metadata).id)


def _play(host: Host, page: str, began: float) -> tuple[list[float], Mapping[tuple[str, str], float]]:
    """Reacts for four players until all matches of bots are over, and returns how long it took each time, and what the service counted."""
    took: list[float] = []
    counted = _counted(page)
    looked = time.perf_counter()
    while True:
        room = host.room()
        try:
            for player in room.players:
                player.await_first_round()
            for number in range(1, ROUNDS_A_MATCH + 1):
                took += _round(room, number)
                if time.perf_counter() - looked > 1:
                    looked, counted = time.perf_counter(), _counted(page)
                    over = counted.get(("gloaming_matches_total", "completed"), 0.0)
                    if round(looked - began) % 10 == 0:
                        print(f"{over:.0f} of {MATCHES} matches are over after {looked - began:.0f} s", file=sys.stderr, flush=True)
                    if over >= MATCHES or looked - began > MOST_SECONDS:
                        return took, counted
        finally:
            room.close()


def _round(room: Room, number: int) -> list[float]:
    took = []
    for player in room.players:
        time.sleep(PAUSE_SECONDS)
        took.append(grab(room, player, number))
    return took


def _counted(page: str) -> dict[tuple[str, str], float]:
    """What the service has counted, by name and label."""
    with urllib.request.urlopen(page, timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {(sample.name, "".join(sample.labels.values())): sample.value for family in families for sample in family.samples}
