"""Whole matches, written down: `<game>.json` beside this file holds what every move leads to, for people to read and tests to replay."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from services.kit.chance import Chance
from services.kit.game import Game, Refusal, Value
from tests import simulator

Json = dict[str, Any]

HERE = Path(__file__).parent
# Who does what next: a seat and its move, or nobody where a window of time ends.
Act = tuple[int | None, Value]
WINDOW_ENDED: Act = (None, None)

# Of so many matches the one in which most kinds of things happen is kept.
_CANDIDATES = 60


def path(game: Game) -> Path:
    """Where a game's playthroughs are."""
    return HERE / f"{game.id}.json"


def record(game: Game) -> list[Json]:
    """One match for every set of options with every number of seats, the bot and chance playing in turns."""
    return [
        max((_play(game, options, seats, simulator.seed(game.id, "playthrough", number)) for number in range(_CANDIDATES)), key=_variety)
        for options, seats in simulator.tables(game)
    ]


def replay(game: Game, written: Json) -> Json:
    """The same match by today's rules."""
    options = game.codec.options_from_proto(json_format.ParseDict(written["options"], game.message("Options")()))
    moves = iter(written["steps"])

    def next_act() -> Act | None:
        step = next(moves, None)
        if step is None or "windowEnded" in step:
            return step and WINDOW_ENDED
        return step["seat"], game.codec.move_from_proto(json_format.ParseDict(step["move"], game.message("Move")()))

    return _written(game, options, written["seats"], bytes.fromhex(written["seed"]), lambda _: next_act())


def text(matches: list[Json]) -> str:
    """Matches as JSON that reads and compares well: a line a step."""
    return "[\n" + ",\n".join(_match_text(match) for match in matches) + "\n]\n"


def _match_text(match: Json) -> str:
    lines = []
    for key, value in match.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            body = ",\n".join(f"   {json.dumps(item)}" for item in value)
            lines.append(f"  {json.dumps(key)}: [\n{body}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return " {\n" + ",\n".join(lines) + "\n }"


def _play(game: Game, options: Value, seats: int, seed: bytes) -> Json:
    rng = random.Random(seed)
    # In real time some matches are calm, and some hasty.
    ends = rng.uniform(simulator.WINDOW_ENDS, 1) if game.info.real_time else 0

    def pick(state: Value) -> Act | None:
        movers = game.rules.to_move(state)
        if simulator.window(game, state) is not None and (not movers or rng.random() < ends):
            return WINDOW_ENDED
        if not movers:
            return None
        seat = rng.choice(movers)
        moves = game.rules.legal(state, seat)
        by_bot = rng.random() < 0.5
        return seat, game.bot.choose(game.rules.view(state, seat), seat, moves, rng) if by_bot else rng.choice(moves)

    return _written(game, options, seats, seed, pick)


def _written(game: Game, options: Value, seats: int, seed: bytes, next_act: Callable[[Value], Act | None]) -> Json:
    """Plays a match and writes down what everybody saw of it."""
    chance = Chance(seed)
    step = game.rules.setup(options, seats, chance)
    state, deal, steps = step.state, _public(game, step.events), list[Json]()
    while chosen := next_act(state):
        seat, move = chosen
        if seat is None:
            step = simulator.window_ends(game, state, chance)
            steps.append({"windowEnded": {}, "events": _public(game, step.events)})
            state = step.state
            continue
        step = game.rules.apply(state, seat, move, chance)
        if isinstance(step, Refusal):
            # Written in place of its events, so that a comparison points at it.
            steps.append({"seat": seat, "move": _json(game.codec.move_to_proto(move)), "refused": f"{step.reason}: {step.detail}"})
            break
        steps.append({"seat": seat, "move": _json(game.codec.move_to_proto(move)), "events": _public(game, step.events)})
        state = step.state
    ranks = game.rules.outcome(state)
    return {
        "seed": seed.hex(),
        "options": _json(game.codec.options_to_proto(options)),
        "seats": seats,
        "deal": deal,
        "steps": steps,
        "view": _json(game.codec.view_to_proto(game.rules.view(state, None))),
        "ranks": list(ranks or ()),
    }


def _public(game: Game, events: tuple[Value, ...]) -> list[Json]:
    return [_json(simulator.event(game, event, None)) for event in events]


def _json(message: Message) -> Json:
    return json_format.MessageToDict(message)


def _variety(match: Json) -> float:
    """How many kinds of moves and events there are in a match, told apart by the names of their fields and by their words; less its length.

    Of two in which about as much happens the shorter one is read more gladly.
    """
    steps = match["steps"]
    return (
        len({shape for step in steps for shape in (*_shapes(step.get("move")), *(s for e in step["events"] for s in _shapes(e)))})
        - len(steps) / 20
    )


def _shapes(value: Any, at: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        yield f"{at}{{{','.join(value)}}}"
        for key, inner in value.items():
            yield from _shapes(inner, f"{at}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _shapes(inner, at)
    elif isinstance(value, str) and value.isupper():
        yield f"{at}={value}"
