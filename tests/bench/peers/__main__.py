"""`make bench-peers`: our pillow path and other game servers on the same work, as JSON.

Compare within one run only: the noise between runs is larger.
"""

from __future__ import annotations

import argparse
import json
import sys

from tests import node
from tests.bench import machine, pillow
from tests.bench.peers.contest import Contestant, contest
from tests.bench.peers.peer import Peer, PeerError

# Some 5 to 8 s each, start and warm-up included, on two cores. boardgame.io has no 50 rooms: 10 fill its process already.
PEERS = [
    Peer("colyseus", "server.mjs", "client.mjs", rounds={1: 8000, 10: 1000, 50: 200}),
    Peer("boardgame.io", "server.cjs", "client.cjs", rounds={1: 2000, 10: 200}),
]
CONTESTANTS = [
    Contestant(pillow.NAME, tuple(pillow.ROUNDS), pillow.contestant),
    *(Contestant(peer.name, tuple(peer.rounds), peer.measure) for peer in PEERS),
]


def main() -> int:
    """Runs those that are asked for, or all."""
    names = [contestant.name for contestant in CONTESTANTS]
    numbers = sorted({rooms for contestant in CONTESTANTS for rooms in contestant.rooms})
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description="Measures in turn, and prints JSON.")
    parser.add_argument("contestant", nargs="*", choices=[*names, []], help="which; all by default")
    parser.add_argument("--rooms", type=int, nargs="+", choices=numbers, default=numbers, help="how many rooms at once; all by default")
    parser.add_argument("--turns", type=int, default=3, help="how often each is measured (default: 3)")
    asked = parser.parse_args()
    chosen = [contestant for contestant in CONTESTANTS if contestant.name in (asked.contestant or names)]
    try:
        measured = {"node": node.version(), **machine.described(), **contest(chosen, asked.rooms, asked.turns, pillow.NAME)}
    except (node.NodeError, PeerError, pillow.PillowError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(measured, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
