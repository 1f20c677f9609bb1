"""`make chaos`: hundreds of matches of all games are played by clients that check everything, while one thing after the other breaks.

Every kind of process is killed, told to stop and paused; scripts are flushed; Redis is restarted from its append-only file, or its
masters are replaced. Then every acknowledged move must stand in its match's record, none twice; no watcher may have seen a gap or a repeat;
no match may be stuck; a clock that ran out must have done so once. Progress and a table go to stderr, the figures as JSON to stdout; with a
break the exit status is 1. What a Redis that answers before it has written (`everysec`), or that copies afterwards (`cluster`), loses when
it is killed is counted instead. Ctrl-C lets the matches end and tells what came of them so far.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop

from tests.chaos import churn
from tests.chaos.faults import Fault, every
from tests.chaos.run import HEAD, Chaos
from tests.chaos.stack import ENV, MODES, Stack

MATCHES, PACE_SECONDS, STUCK_SECONDS = 200, 4.0, 60.0


def say(line: str) -> None:
    """Tells how far it is."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Does what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Faults under load, and what they break.")
    parser.add_argument("--redis", choices=MODES, default=MODES[0], help=f"which kind of Redis; {MODES[0]} by default")
    parser.add_argument("--matches", type=int, default=MATCHES, help=f"live at once; {MATCHES} by default")
    parser.add_argument(
        "--pace", type=float, default=PACE_SECONDS, help=f"seconds before each move of a player; {PACE_SECONDS:g} by default"
    )
    parser.add_argument("--seconds", type=float, default=0.0, help="goes on for so long with faults at random; each once by default")
    parser.add_argument("--only", default="", metavar="REGEX", help="only faults with this in their name: `redis|FLUSH`")
    parser.add_argument("--data", type=Path, help="a new directory that keeps logs and data; thrown away by default")
    parser.add_argument("--churn", type=int, metavar="N", help="instead: so many matches come and go, and what is left is counted")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        where = asked.data or Path(directory)
        if where.exists() and any(where.iterdir()):
            parser.error(f"--data takes a new directory, and there is something in {where}")
        where.mkdir(parents=True, exist_ok=True)
        return uvloop.run(churn.main(where, asked.churn, say) if asked.churn else chaos(where, asked))


async def chaos(directory: Path, asked: argparse.Namespace) -> int:
    """Does the faults, prints what came of them, and returns the exit status."""
    say("starting …")
    async with Stack(directory, asked.redis, env=ENV) as stack:
        it = Chaos(stack, asked.matches, pace=asked.pace, stuck=STUCK_SECONDS, say=say)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: setattr(it, "stopped", True))
        faults = [fault for fault in every(stack) if re.search(asked.only, fault.name, re.IGNORECASE)]
        await it.run(_lasting(faults, asked.seconds))
    found = it.summary()
    say("\n".join(["", HEAD, *(harm.line() for harm in it.harms), ""]))
    matches = sum(found["matches_checked"].values())
    say(
        f"{found['moves_acknowledged']:,} moves acknowledged in {found['seconds']:.0f} s, {matches:,} matches checked, "
        f"{found['requests_repeated']:,} requests repeated, {found['breaks']} breaks; lost: {found['lost']}"
    )
    print(json.dumps(found, indent=2))
    return 1 if found["breaks"] else 0


def _lasting(faults: list[Fault], seconds: float) -> Iterator[Fault]:
    """Each once, and then any of them until so many seconds have passed."""
    until = time.monotonic() + seconds
    yield from faults
    while faults and time.monotonic() < until:
        yield random.choice(faults)


if __name__ == "__main__":
    sys.exit(main())
