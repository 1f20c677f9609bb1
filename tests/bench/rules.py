"""What a ply costs in each game's rules: the legal moves and one of them applied, in random play, or a window of time that ends."""

from __future__ import annotations

import random
import time
from typing import Any

from services.kit.chance import Chance
from services.kit.game import Game
from tests import simulator
from tests.harness import EVERY_GAME

MATCHES = 600


def measure() -> dict[str, Any]:
    """Mean time of a ply over random play with every number of seats, per game."""
    return {game.id: _game(game) for game in EVERY_GAME}


def _game(game: Game) -> dict[str, Any]:
    rng, plies, windows, choices, seconds = random.Random(1), 0, 0, 0, 0.0
    options = game.codec.options_from_proto(game.message("Options")())
    counts = range(game.info.min_seats, game.info.max_seats + 1)
    for n in range(MATCHES):
        chance = Chance(rng.randbytes(32))
        state = game.rules.setup(options, counts[n % len(counts)], chance).state
        while not simulator.is_over(game, state):
            seats = game.rules.to_move(state)
            if simulator.window(game, state) is not None and (not seats or rng.random() < simulator.WINDOW_ENDS):
                began = time.perf_counter()
                state = simulator.window_ends(game, state, chance).state
                seconds += time.perf_counter() - began
                windows += 1
                continue
            seat = rng.choice(seats)
            began = time.perf_counter()
            legal = game.rules.legal(state, seat)
            seconds += time.perf_counter() - began
            move = rng.choice(legal)
            began = time.perf_counter()
            state = game.rules.apply(state, seat, move, chance).state
            seconds += time.perf_counter() - began
            plies, choices = plies + 1, choices + len(legal)
    return {
        "plies": plies + windows,
        **({"of_them_windows_that_ended": windows} if game.info.real_time else {}),
        "legal_moves_a_ply": round(choices / plies, 1),
        "microseconds_a_ply": round(1e6 * seconds / (plies + windows), 2),
    }
