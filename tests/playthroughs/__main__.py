"""`python -m tests.playthroughs [game ...]` writes playthroughs anew, of these games or of all. Read the difference before it is kept."""

from __future__ import annotations

import sys

from tests.harness import EVERY_GAME
from tests.playthroughs import playthrough

if __name__ == "__main__":
    for game in EVERY_GAME:
        if not sys.argv[1:] or game.id in sys.argv[1:]:
            playthrough.path(game).write_text(playthrough.text(playthrough.record(game)))
            print(f"wrote {playthrough.path(game)}")
