"""Whole matches, written down: `<game>.json` beside this file holds what every move leads to, for people to read and tests to replay."""

from __future__ import annotations

import json
import math
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
    return _written(game, options, seats, seed, (_in_real_time if game.real_time else _in_turns)(game, rng))


def _in_turns(game: Game, rng: random.Random) -> Callable[[Value], Act | None]:
    """The bot and chance, in turns."""

    def pick(state: Value) -> Act | None:
        movers = game.rules.to_move(state)
        if not movers:
            return None
        seat = rng.choice(movers)
        moves = game.rules.legal(state, seat)
        return seat, _by_bot(game, state, seat, rng) if rng.random() < 0.5 else rng.choice(moves)

    return pick


def _in_real_time(game: Game, rng: random.Random) -> Callable[[Value], Act | None]:
    """The bot when it has thought, chance at any moment of a window, each about as often; and windows when their time is up.

    The bot is asked where the kit asks it: when its time has come, and nowhere else.
    """
    real_time = game.real_time
    assert real_time
    # Some matches are calm, and some hasty.
    haste = rng.uniform(0.1, 0.5)
    now, number, ends = 0.0, 0, 0.0
    bots: dict[int, float] = {}
    chances: dict[int, float] = {}

    def pick(state: Value) -> Act | None:
        nonlocal now, number, ends
        window, movers = real_time.window(state), game.rules.to_move(state)
        if window is None:
            return None
        if window.number != number:
            number, ends = window.number, now + window.ms
            chances.clear()
            chances.update({seat: now + rng.random() * window.ms for seat in movers if rng.random() < haste})
        thoughts = {seat: real_time.think_ms(game.rules.view(state, seat), seat, rng) for seat in movers}
        for seat in bots.keys() - {seat for seat, ms in thoughts.items() if ms is not None}:
            del bots[seat]
        for seat, ms in thoughts.items():
            if ms is not None and seat not in bots:
                bots[seat] = now + ms if rng.random() < 0.5 else math.inf
        due = [(time, seat, by_bot) for by_bot, times in ((False, chances), (True, bots)) for seat, time in times.items() if seat in movers]
        time, seat, by_bot = min(due, default=(math.inf, 0, False))
        if time >= ends:
            now = ends
            return WINDOW_ENDED
        now = time
        return seat, _by_bot(game, state, seat, rng) if by_bot else rng.choice(game.rules.legal(state, seat))

    return pick


def _by_bot(game: Game, state: Value, seat: int, rng: random.Random) -> Value:
    return game.bot.choose(game.rules.view(state, seat), seat, game.rules.legal(state, seat), rng)


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
