"""Plays any game by its rules alone, without a service: what the generic tests and the playthroughs have in common."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from services.kit.chance import Chance
from services.kit.errors import Unreadable
from services.kit.game import Game, Refusal, Step, Value, Window

# More steps than any match takes, however badly it is played.
ENDLESS = 5_000

# In real time: how likely the window ends before anybody else moves.
WINDOW_ENDS = 0.25

# Picks a move: the state, the seat, and its legal moves.
Pick = Callable[[Value, int, list[Value]], Value]


class Hidden(Protocol):
    """`tests/services/<game>/hidden.py`: what a game's viewers may not know."""

    def vary(self, state: Value, viewer: int | None, rng: random.Random) -> Value:
        """Another state that the viewer cannot tell from this one, after a play that it could have watched as well."""

    def look(self, state: Value, seat: int, move: Value) -> Any:
        """What everybody else sees of a legal move: equal for moves that look alike; None for one that shows what was hidden before."""


@dataclass(frozen=True)
class Turn:
    """One step of a match: who did what, from which state, and what came of it.

    The first has no mover and no state before: it is the deal. Any other without a mover is the end of a window of time.
    """

    before: Value
    seat: int | None
    move: Value
    state: Value
    events: tuple[Value, ...]

    @property
    def is_window_end(self) -> bool:
        """Whether it is the end of a window of time."""
        return self.seat is None and self.before is not None


def hidden(game: Game) -> Hidden:
    """The game's `hidden.py`."""
    return cast(Hidden, importlib.import_module(f"tests.services.{game.id}.hidden"))


def seed(*names: object) -> bytes:
    """A match's seed, the same in every run."""
    return hashlib.sha256("/".join(map(str, names)).encode()).digest()


def option_sets(game: Game) -> list[Value]:
    """Every way to set the options that have few values, the others at their defaults."""
    message = game.message("Options")
    few: list[list[tuple[str, Any]]] = []
    for field in message.DESCRIPTOR.fields:
        if field.type == FieldDescriptor.TYPE_ENUM:
            few.append([(field.name, value.number) for value in field.enum_type.values if value.number])
        elif field.type == FieldDescriptor.TYPE_BOOL:
            few.append([(field.name, False), (field.name, True)])
    return [game.codec.options_from_proto(message(**dict(chosen))) for chosen in itertools.product(*few)]


def seat_counts(game: Game) -> range:
    """How many may play."""
    return range(game.info.min_seats, game.info.max_seats + 1)


def tables(game: Game) -> list[tuple[Value, int]]:
    """Every set of options with every number of seats."""
    return [(options, seats) for options in option_sets(game) for seats in seat_counts(game)]


def viewers(seats: int) -> tuple[int | None, ...]:
    """A spectator and every seat."""
    return (None, *range(seats))


def window(game: Game, state: Value) -> Window | None:
    """The present window of time of a game in real time; None of any other, and once the match is finished."""
    return game.real_time.window(state) if game.real_time else None


def window_ends(game: Game, state: Value, chance: Chance) -> Step:
    """What the end of the present window gives."""
    assert game.real_time, "a game in turns has no windows"
    return game.real_time.on_timeout(state, chance)


def is_over(game: Game, state: Value) -> bool:
    """Whether nothing can happen any more: nobody is to move, and no window is open."""
    return not game.rules.to_move(state) and window(game, state) is None


def is_refusal(result: Step | Refusal) -> TypeGuard[Refusal]:
    """Whether a move was refused: isinstance, looked up once for each type, since it is slow and asked millions of times."""
    kind = type(result)
    if kind not in _REFUSALS:
        _REFUSALS[kind] = isinstance(result, Refusal)
    return _REFUSALS[kind]


_REFUSALS: dict[type, bool] = {}


def at_random(rng: random.Random) -> Pick:
    """Picks any move."""
    return lambda _state, _seat, moves: rng.choice(moves)


def match(game: Game, options: Value, seats: int, chance: Chance, rng: random.Random, pick: Pick) -> Iterator[Turn]:
    """Every step of a match, the mover drawn from those who may move; in real time windows end in between."""
    step = game.rules.setup(options, seats, chance)
    yield Turn(None, None, None, step.state, tuple(step.events))
    for _ in range(ENDLESS):
        state = step.state
        movers = game.rules.to_move(state)
        if window(game, state) is not None and (not movers or rng.random() < WINDOW_ENDS):
            step = window_ends(game, state, chance)
            yield Turn(state, None, None, step.state, tuple(step.events))
            continue
        if not movers:
            return
        seat = rng.choice(movers)
        move = pick(state, seat, list(game.rules.legal(state, seat)))
        step = game.rules.apply(state, seat, move, chance)
        assert not is_refusal(step), f"seat {seat}: {move} is listed as legal and refused: {step}"
        yield Turn(state, seat, move, step.state, tuple(step.events))
    raise AssertionError(f"a match of {seats} was not over after {ENDLESS} moves: the rules have to end every match")


def replayed(game: Game, record: Any) -> Iterator[Turn]:
    """Every step of a recorded match, up to its end: in real time reactions may have been on their way when it came."""
    chance = Chance(bytes.fromhex(record.seed))
    step = game.rules.setup(game.codec.options_from_proto(record.options), len(record.seats), chance)
    yield Turn(None, None, None, step.state, tuple(step.events))
    for recorded in record.moves:
        state, seat = step.state, recorded.played.seat
        if is_over(game, state):
            return
        match recorded.WhichOneof("done"):
            case "window_ended":
                step = window_ends(game, state, chance)
                yield Turn(state, None, None, step.state, tuple(step.events))
            case "resignation":
                yield Turn(state, seat, None, state, ())
            case _:
                move = game.codec.move_from_proto(recorded.move)
                step = game.rules.apply(state, seat, move, chance)
                yield Turn(state, seat, move, step.state, tuple(step.events))


def random_match(game: Game, options: Value, seats: int, number: object) -> Iterator[Turn]:
    """Every step of a match played at random, the same for the same number."""
    rng = random.Random(f"{number}")
    return match(game, options, seats, Chance(seed(game.id, number)), rng, at_random(rng))


@functools.cache
def pool(game: Game, options: Value, seats: int, matches: int = 3) -> list[Value]:
    """Every move that was legal for any seat at any moment of some random matches."""
    found: dict[bytes, Value] = {}
    for number in range(matches):
        for turn in random_match(game, options, seats, f"pool/{number}"):
            for seat in game.rules.to_move(turn.state):
                for move in game.rules.legal(turn.state, seat):
                    found.setdefault(move_bytes(game, move), move)
    return list(found.values())


class Neighbours:
    """Moves that differ from one another in one field: what a client would try that means to learn something.

    Args:
        game: the game.
        moves: the moves whose values are tried.
    """

    def __init__(self, game: Game, moves: Iterable[Value]) -> None:
        self._game = game
        self._values: dict[tuple[str, ...], dict[Any, None]] = {}
        for move in moves:
            for path, value in _leaves(game.codec.move_to_proto(move)):
                self._values.setdefault(path, {})[value] = None

    def of(self, move: Value) -> Iterator[Value]:
        """The neighbours of a move that can be read."""
        message = self._game.codec.move_to_proto(move)
        for path, value in list(_leaves(message)):
            for other in self._values[path]:
                if other != value:
                    changed = self._game.message("Move").FromString(message.SerializeToString())
                    setattr(functools.reduce(getattr, path[:-1], changed), path[-1], other)
                    with contextlib.suppress(Unreadable):
                        yield self._game.codec.move_from_proto(changed)


def _leaves(message: Message, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated or (field.has_presence and not message.HasField(field.name)):
            continue
        value = getattr(message, field.name)
        if field.message_type:
            yield from _leaves(value, (*path, field.name))
        else:
            yield (*path, field.name), value


def move_bytes(game: Game, move: Value) -> bytes:
    """A move as bytes: its name among all moves."""
    return game.codec.move_to_proto(move).SerializeToString(deterministic=True)


def view_bytes(game: Game, state: Value, viewer: int | None) -> bytes:
    """What a viewer gets of a state, as bytes."""
    return game.codec.view_to_proto(game.rules.view(state, viewer)).SerializeToString(deterministic=True)


def event(game: Game, value: Value, viewer: int | None) -> Message:
    """What a viewer gets of an event."""
    return game.codec.event_to_proto(game.rules.redact(value, viewer))


def seen(game: Game, events: tuple[Value, ...], viewer: int | None) -> list[bytes]:
    """What a viewer gets of events, as bytes."""
    return [event(game, value, viewer).SerializeToString(deterministic=True) for value in events]
