"""`make bench`: prints what this machine measured as JSON. Compare ratios within one run, not times between runs."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from services.kit import logs
from tests.bench import crowd, machine, matching, memory, moves, pillow, rest, rules

BENCHES: dict[str, Callable[[], Any]] = {
    "rules": rules.measure,
    "rest_move": lambda: asyncio.run(rest.measure()),
    "moves": moves.measure,
    "pillow": pillow.measure,
    "crowd": crowd.measure,
    "matching": lambda: asyncio.run(matching.measure()),
    "memory": lambda: asyncio.run(memory.measure()),
}


def main() -> None:
    """Runs the benches that are asked for, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measures, and prints JSON.")
    parser.add_argument("bench", nargs="*", choices=[*BENCHES, []], help="which; all by default")
    logs.configure("WARNING", "bench")  # some serve in this process
    measured: dict[str, Any] = machine.described()
    names = parser.parse_args().bench or list(BENCHES)
    began, took = time.perf_counter(), []
    for number, name in enumerate(names, 1):
        _tell(f"{name} … ({number} of {len(names)}, after {time.perf_counter() - began:.0f} s)")
        start = time.perf_counter()
        measured[name] = BENCHES[name]()
        took.append(f"{name} {time.perf_counter() - start:.0f} s")
    print(json.dumps(measured, indent=2))
    _tell(f"measured on {measured['cores']} cores in {time.perf_counter() - began:.0f} s: {', '.join(took)}")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
