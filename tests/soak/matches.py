"""Matches played at random by the rules alone, and what every step of them is held to."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from services.kit.chance import Chance
from services.kit.game import Game
from tests import simulator
from tests.harness import EVERY_GAME
from tests.simulator import Turn, seed

# So many plies are played at a time by a process, the last match to its end.
_SHARE = 5_000
# One in so many states is looked at closely.
_SAMPLE = 50


class Share(NamedTuple):
    """A part of the work: so many plies of one game."""

    game: int  # its place in the registry
    number: int
    plies: int


class Played(NamedTuple):
    """What came of a share."""

    share: Share
    plies: int
    matches: int
    sampled: int
    longest: int
    seconds: float
    breaks: list[str]


def shares(plies: int) -> Iterator[Share]:
    """The plies, as many for each game, its shares in turn with those of the others."""
    left = [plies // len(EVERY_GAME) + (n < plies % len(EVERY_GAME)) for n in range(len(EVERY_GAME))]
    number = 0
    while any(left):
        for game, rest in enumerate(left):
            if rest:
                yield Share(game, number, min(rest, _SHARE))
                left[game] -= min(rest, _SHARE)
        number += 1


def play(share: Share) -> Played:
    """Plays a share."""
    game, began = EVERY_GAME[share.game], time.perf_counter()
    tables = simulator.tables(game)
    plies = matches = sampled = longest = 0
    breaks = []
    while plies < share.plies:
        # With all shares together, each table gets as many matches.
        options, seats = tables[(share.number + matches) % len(tables)]
        name, length = f"soak/{share.number}/{matches}", 0
        matches += 1
        rng = random.Random(f"look/{name}")
        try:
            before: Turn | None = None
            for turn in simulator.random_match(game, options, seats, name):
                length += before is not None
                quick(game, before, turn)
                before = turn
                if rng.randrange(_SAMPLE) == 0:
                    close(game, turn, seats)
                    sampled += 1
            assert before is not None
            ended(game, before, seats)
            close(game, before, seats)
            sampled += 1
        except Exception as fault:  # whatever it is, it is a break
            breaks.append(f"{game.id}, {seats} seats, {options}, match {name!r}, after {length} plies: {type(fault).__name__}: {fault}")
            # Also where a match breaks at once this comes to an end.
            length = max(length, 1)
        plies, longest = plies + length, max(longest, length)
    return Played(share, plies, matches, sampled, longest, time.perf_counter() - began, breaks)


def quick(game: Game, before: Turn | None, turn: Turn) -> None:
    """What every step is held to. That what is listed as legal is accepted, and that a match ends at all, the simulator sees to."""
    assert turn.events, "a step without an event"
    if before is not None:
        assert game.rules.outcome(before.state) is None, "an outcome before the end"
    for seat in game.rules.to_move(turn.state):
        assert game.rules.legal(turn.state, seat), f"seat {seat} is to move and has no move"


def close(game: Game, turn: Turn, seats: int) -> None:
    """What a sample is held to: storage, legality, and what viewers are sent."""
    state = turn.state
    stored = msgspec.msgpack.encode(state)
    restored = msgspec.msgpack.decode(stored, type=game.rules.State)
    assert restored == state, "another state comes back from storage"
    assert msgspec.msgpack.encode(restored) == stored, "a state from storage is stored otherwise"
    movers = game.rules.to_move(state)
    assert list(movers) == [seat for seat in range(seats) if game.rules.legal(state, seat)], "others have moves than those to move"
    assert simulator.window(game, restored) == simulator.window(game, state), "another window is open after storage"
    chance = Chance(seed("look"))
    legal = {simulator.move_bytes(game, move): move for seat in movers for move in game.rules.legal(state, seat)}
    for seat in range(seats):
        own = [simulator.move_bytes(game, move) for move in game.rules.legal(state, seat)]
        assert len(set(own)) == len(own), f"seat {seat} has a move twice"
        for name, move in legal.items():
            accepted = not simulator.is_refusal(game.rules.apply(state, seat, move, chance))
            assert accepted == (name in own), f"seat {seat}: {move} is {'' if accepted else 'not '}accepted"
    assert msgspec.msgpack.encode(state) == stored, "judging moves changed the state"
    for move in legal.values():
        assert game.codec.move_from_proto(game.codec.move_to_proto(move)) == move, f"{move} is another one over the wire"
    for viewer in simulator.viewers(seats):
        view = simulator.view_bytes(game, state, viewer)
        assert view == simulator.view_bytes(game, restored, viewer), f"viewer {viewer} sees something else after storage"
        assert all(simulator.seen(game, turn.events, viewer)), f"viewer {viewer} is sent an empty event"
    over = game.rules.end_early(state)
    assert simulator.is_over(game, over), "a match that was ended goes on"


def ended(game: Game, last: Turn, seats: int) -> None:
    """What the end of a match is held to."""
    ranks = game.rules.outcome(last.state)
    assert ranks is not None, "nobody is to move, and there is no outcome"
    assert len(ranks) == seats, "not a rank for each seat"
    counted = tuple(1 + sum(other < rank for other in ranks) for rank in ranks)
    assert tuple(ranks) == counted or set(ranks) == {2}, f"ranks {ranks}"
