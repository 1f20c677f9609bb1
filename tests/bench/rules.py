"""What a ply costs in each game's rules: the legal moves and one of them applied, in random play."""

from __future__ import annotations

import random
import time
from typing import Any

from services.kit.chance import Chance
from services.kit.game import Game
from tests.harness import EVERY_GAME

MATCHES = 600


def measure() -> dict[str, Any]:
    """Mean time of legal + apply over random play with every number of seats, per game."""
    return {game.id: _game(game) for game in EVERY_GAME}


def _game(game: Game) -> dict[str, Any]:
    rng, plies, choices, seconds = random.Random(1), 0, 0, 0.0
    options = game.codec.options_from_proto(game.message("Options")())
    counts = range(game.info.min_seats, game.info.max_seats + 1)
    for n in range(MATCHES):
        chance = Chance(rng.randbytes(32))
        state = game.rules.setup(options, counts[n % len(counts)], chance).state
        while seats := game.rules.to_move(state):
            seat = rng.choice(seats)
            began = time.perf_counter()
            legal = game.rules.legal(state, seat)
            seconds += time.perf_counter() - began
            move = rng.choice(legal)
            began = time.perf_counter()
            state = game.rules.apply(state, seat, move, chance).state
            seconds += time.perf_counter() - began
            plies, choices = plies + 1, choices + len(legal)
    return {"plies": plies, "legal_moves_a_ply": round(choices / plies, 1), "microseconds_a_ply": round(1e6 * seconds / plies, 2)}
