"""`make bench`: prints what this machine measured as JSON. Compare ratios within one run, not times between runs."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

from tests.bench import crowd, machine, matching, memory, pillow, rest, rules

BENCHES: dict[str, Callable[[], Any]] = {
    "rules": rules.measure,
    "rest_move": lambda: asyncio.run(rest.measure()),
    "pillow": pillow.measure,
    "crowd": crowd.measure,
    "matching": lambda: asyncio.run(matching.measure()),
    "memory": lambda: asyncio.run(memory.measure()),
}


def main() -> None:
    """Runs the benches that are asked for, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measures, and prints JSON.")
    parser.add_argument("bench", nargs="*", choices=[*BENCHES, []], help="which; all by default")
    measured: dict[str, Any] = machine.described()
    for name in parser.parse_args().bench or BENCHES:
        print(f"{name} …", file=sys.stderr, flush=True)
        measured[name] = BENCHES[name]()
    print(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
