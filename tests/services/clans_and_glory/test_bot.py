"""The STANDARD bot: it plays legally, well, fast, and from its seat's view alone."""

import random
import time
from collections.abc import Sequence
from typing import TypeVar

import pytest

from services.clans_and_glory import bot, rules
from services.clans_and_glory.rules import Options, Place, State, Step
from tests.services.clans_and_glory.hidden import vary
from tests.services.clans_and_glory.positions import B_FREE, LOWER, UPPER, card, position

T = TypeVar("T")


class RandomChance:
    """A chance good enough to play with."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        return tuple(self.rng.sample(items, len(items)))


def play(bot_seats: set[int], seats: int, seed: int) -> tuple[tuple[int, ...], list[float]]:
    """A match of the bot against random play: ranks, and the seconds each of the bot's choices took."""
    rng, chance = random.Random(seed), RandomChance(seed)
    state, times = rules.setup(Options(), seats, chance).state, []
    while movers := rules.to_move(state):
        seat = movers[0]
        moves = rules.legal(state, seat)
        if seat in bot_seats:
            view = rules.view(state, seat)
            start = time.perf_counter()
            move = bot.choose(view, seat, moves, rng)
            times.append(time.perf_counter() - start)
            assert move in moves
        else:
            move = rng.choice(moves)
        step = rules.apply(state, seat, move, chance)
        assert isinstance(step, Step)
        state = step.state
    ranks = rules.outcome(state)
    assert ranks is not None
    return ranks, times


def wins(matches: int, seats: int) -> float:
    """How often the bot alone is first, its seat going round."""
    first = 0
    for seed in range(matches):
        ranks, _ = play({seed % seats}, seats, seed)
        first += ranks[seed % seats] == 1 and ranks.count(1) == 1
    return first / matches


@pytest.mark.parametrize(("seats", "matches", "at_least"), [(2, 500, 0.9), (3, 100, 0.85), (4, 100, 0.85)])
def test_the_bot_beats_random_play(seats: int, matches: int, at_least: float) -> None:
    assert wins(matches, seats) >= at_least


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_the_bot_plays_legally_against_itself_and_fast(seats: int) -> None:
    times = [taken for seed in range(10) for taken in play(set(range(seats)), seats, seed)[1]]
    assert sorted(times)[len(times) // 2] < 0.003  # a quarter of a millisecond; three, for a machine that is busy


def test_the_bot_decides_the_same_from_the_same_view_and_dice() -> None:
    state = rules.setup(Options(), 2, RandomChance(1)).state
    view, moves = rules.view(state, 0), rules.legal(state, 0)
    assert len({bot.choose(view, 0, moves, random.Random(3)) for _ in range(10)}) == 1


def test_the_bot_decides_the_same_whatever_it_may_not_know() -> None:
    state = rules.setup(Options(), 3, RandomChance(2)).state
    others = [vary(state, 0, random.Random(seed)) for seed in range(10)]
    assert len({bot.choose(rules.view(other, 0), 0, rules.legal(other, 0), random.Random(3)) for other in others}) == 1


# Single decisions.


def decided(state: State, *moves: Place) -> Place:
    view = rules.view(state, 0)
    (choice,) = {bot.choose(view, 0, moves or rules.legal(state, 0), random.Random(seed)) for seed in range(10)}
    return choice


@pytest.mark.rule("CG-10")
def test_a_weak_resident_goes_where_it_moves_another_players_shields_down() -> None:
    # G3 fits both free spaces. On field 3, which has 4s and 6s, it leaves the 6s to nobody; on field 1 it does nothing.
    state = position(UPPER.replace("G3", "W3"), LOWER, ("G3 W5", "W6"), shields={0: (0,) * 5, 3: (1, 1)})
    assert decided(state) == Place(card("G3"), *B_FREE)


@pytest.mark.rule("CG-10")
def test_a_strong_resident_goes_where_an_own_shield_takes_it() -> None:
    # On field 1 the second shield is the seat's own and takes the 6s; elsewhere G6 does nothing for it.
    state = position("R3 O3 Y3 | .. G3 B3", "G5 R5 O5 | R6", ("G6 W5 W4", "W6 B6"), shields={0: (0, 0, 0, 0), 1: (1, 0)})
    moves = [move for move in rules.legal(state, 0) if move.card == card("G6") and (move.field != 1 or move.slot == 0)]
    assert {move.field for move in moves} == {1, 2, 3}
    assert decided(state, *moves) == Place(card("G6"), 1, 0)


@pytest.mark.rule("CG-08")
def test_a_last_shield_goes_where_it_takes_most() -> None:
    # Nothing fits, and seat 0 has no turn after this one: the first shield of field 3 gets three 4s, that of field 1 two 3s.
    state = position(UPPER, LOWER, ("W5 W6", "W3"), shields={0: (0,) * 4})
    choice = decided(state, *(move for move in rules.legal(state, 0) if move.card == card("W5")))
    assert choice == Place(card("W5"), *B_FREE, face_down=True, shield=True)


@pytest.mark.rule("CG-08")
def test_a_shield_that_would_get_nothing_is_kept_while_there_are_turns() -> None:
    state = position("R3 O3 Y3", "R4 O4", ("Y4 W5 W6 B5 B6 P5 P6", "W3 W4 G3 G4 G5 G6"), shields={0: (1, 1)})
    assert decided(state, Place(card("Y4"), 0, 5), Place(card("Y4"), 0, 5, shield=True)) == Place(card("Y4"), 0, 5)


@pytest.mark.rule("CG-08")
def test_a_shield_is_placed_at_once_where_it_gets_most() -> None:
    state = position("R6 O6 Y6", "G6 B6", ("P6 W3 W4 W5 R5 O5 Y5", "R3 O3 Y3 R4 O4 Y4"))
    assert decided(state, Place(card("P6"), 0, 5), Place(card("P6"), 0, 5, shield=True)) == Place(card("P6"), 0, 5, shield=True)


def test_strengths_that_are_all_on_the_table_still_count() -> None:
    state = position("R3 O3 Y3 | W3", "G3 B3 P3", ("R4 W5", "W6"), shields={0: (0,), 1: (1, 0, 0, 0)})
    worth = bot._worths([3] * 6, 0, bot._shares(rules.view(state, 0)))
    assert worth[0] == 18
