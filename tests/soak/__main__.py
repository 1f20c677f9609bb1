"""`make soak`: plays every game of the registry at random, a great many plies by its rules alone, and prints what came of it as JSON.

The same number of plies is the same matches in every run, and a break names its match. If there is one, the exit status is 1.
With `--reactions` it has so many grabs race each other in Night Knight instead, over two replicas and a Redis, half in each order (NK-19).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from services.kit import logs
from tests.harness import EVERY_GAME
from tests.soak import matches, reactions

PLIES = 1_000_000
# So many breaks are told of; all are counted.
_TOLD = 20


def main() -> int:
    """Plays all shares on all processors, tells how far it is on stderr, and prints the summary."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Plays every game at random, by its rules alone.")
    parser.add_argument("plies", nargs="?", type=int, default=PLIES, help=f"in all games together; {PLIES} by default")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="one for each processor by default")
    parser.add_argument("--reactions", type=int, metavar="N", help="instead: so many reactions that race each other in real time")
    asked = parser.parse_args()
    logs.configure("WARNING", "soak")  # the services run in this process
    if asked.reactions:
        raced = reactions.soak(asked.reactions, _tell)
        print(json.dumps(raced, indent=2))
        for ordering, of_it in raced.items():
            _tell(f"{ordering}: {of_it['decided']:,} reactions decided in {of_it['rounds']:,} rounds, {of_it['seconds']} s, no break")
        return 0  # a break is an AssertionError
    began, told = time.perf_counter(), 0.0
    found: dict[str, dict[str, Any]] = {
        game.id: {"plies": 0, "matches": 0, "sampled": 0, "longest_match": 0, "breaks": 0, "cpu_seconds": 0.0} for game in EVERY_GAME
    }
    breaks: list[str] = []
    with ProcessPoolExecutor(asked.processes, multiprocessing.get_context("spawn")) as processes:
        for future in as_completed([processes.submit(matches.play, share) for share in matches.shares(asked.plies)]):
            played = future.result()
            of_game = found[EVERY_GAME[played.share.game].id]
            for count, more in (("plies", played.plies), ("matches", played.matches), ("sampled", played.sampled)):
                of_game[count] += more
            of_game["longest_match"] = max(of_game["longest_match"], played.longest)
            of_game["breaks"] += len(played.breaks)
            of_game["cpu_seconds"] += played.seconds
            for line in played.breaks:
                _tell(line)
            breaks += played.breaks
            seconds = time.perf_counter() - began
            if seconds - told > 5:
                told = seconds
                plies = sum(each["plies"] for each in found.values())
                _tell(f"{plies:,} of {asked.plies:,} plies, {len(breaks)} breaks, {seconds:.0f} s")
    for each in found.values():
        each["cpu_seconds"] = round(each["cpu_seconds"], 1)
    total = {count: sum(each[count] for each in found.values()) for count in ("plies", "matches", "sampled", "breaks")}
    seconds = round(time.perf_counter() - began, 1)
    summary = {**total, "seconds": seconds, "processes": asked.processes, "games": found, "told": sorted(breaks)[:_TOLD]}
    print(json.dumps(summary, indent=2))
    _tell(f"{total['plies']:,} plies in {total['matches']:,} matches, {total['breaks']} breaks, {seconds} s")
    return 1 if breaks else 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
