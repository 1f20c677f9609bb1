"""The STANDARD bot: it plays legally, well, fast, and from its seat's view alone."""

import random
import time
from collections.abc import Sequence
from typing import TypeVar

import pytest

from services.night_clan import bot, rules
from services.night_clan.rules import (
    CardView,
    Keep,
    Kind,
    Location,
    LocationView,
    Mulligan,
    Options,
    Phase,
    Play,
    Relocate,
    Step,
    Variant,
    View,
)

T = TypeVar("T")


class RandomChance:
    """A chance good enough to play with."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        return tuple(self.rng.sample(items, len(items)))


def play(bot_seats: set[int], seats: int, variant: Variant, seed: int) -> tuple[tuple[int, ...], list[float]]:
    """A match of the bot against random play: ranks, and the seconds each of the bot's choices took."""
    rng, chance = random.Random(seed), RandomChance(seed)
    state, times = rules.setup(Options(variant), seats, chance).state, []
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


def wins(matches: int, seats: int, variant: Variant) -> float:
    """How often the bot alone is first, its seat going round."""
    first = 0
    for seed in range(matches):
        ranks, _ = play({seed % seats}, seats, variant, seed)
        first += ranks[seed % seats] == 1 and ranks.count(1) == 1
    return first / matches


@pytest.mark.parametrize(
    ("seats", "variant", "matches", "at_least"),
    [
        (2, Variant.NIGHT, 400, 0.70),
        (3, Variant.NIGHT, 100, 0.55),
        (4, Variant.NIGHT, 60, 0.45),
        (2, Variant.DAY, 100, 0.85),
        (4, Variant.DAY, 40, 0.80),
    ],
)
def test_the_bot_beats_random_play(seats: int, variant: Variant, matches: int, at_least: float) -> None:
    assert wins(matches, seats, variant) >= at_least


@pytest.mark.parametrize("seats", [2, 3, 4])
@pytest.mark.parametrize("variant", Variant)
def test_the_bot_plays_legally_against_itself_and_fast(seats: int, variant: Variant) -> None:
    times = [taken for seed in range(5) for taken in play(set(range(seats)), seats, variant, seed)[1]]
    assert sorted(times)[len(times) // 2] < 0.005  # a millisecond or less; five, for a machine that is busy


def test_the_bot_decides_the_same_from_the_same_view_and_dice() -> None:
    state = rules.setup(Options(), 2, RandomChance(1)).state._replace(phase=Phase.PLAY, plays_left=2)
    view, moves = rules.view(state, 0), rules.legal(state, 0)
    assert len({bot.choose(view, 0, moves, random.Random(3)) for _ in range(10)}) == 1


# Single decisions, on a board of a Church and a Library with room for three more cards each.


def seen(locations: dict[Location, str], hand: tuple[Kind, ...], seats: int = 2) -> View:
    """A view; `0D` is seat 0's Daughter, `1?` a face-down card of seat 1."""
    kinds = dict(zip("TMRDN", Kind, strict=True))
    number, places = 0, []
    for location, written in locations.items():
        cards = []
        for card in written.split():
            number += 1
            cards.append(CardView(f"c{number}", int(card[0]), card[1] != "?", kinds.get(card[1])))
        places.append(LocationView(location, len(cards) + 3, tuple(cards)))
    return View(Phase.PLAY, tuple(places), hand, (len(hand), 3), (4, 4), 2, (), ())


CHURCH, LIBRARY = Location.CHURCH, Location.LIBRARY


def decided(view: View, *moves: rules.Move) -> rules.Move:
    choices = {bot.choose(view, 0, moves, random.Random(seed)) for seed in range(10)}
    (choice,) = choices
    return choice


@pytest.mark.rule("NC-14")
def test_a_troll_goes_where_others_lose_by_it() -> None:
    view = seen({CHURCH: "0D 0D 0D", LIBRARY: "1D 1D 1D"}, (Kind.TROLL,))
    assert decided(view, Play(Kind.TROLL, CHURCH), Play(Kind.TROLL, LIBRARY)) == Play(Kind.TROLL, LIBRARY)


@pytest.mark.rule("NC-15")
def test_mistletoe_goes_where_a_troll_spoils_own_cards() -> None:
    view = seen({CHURCH: "0D 0D 1T 0R", LIBRARY: "1D 1D 1R"}, (Kind.MISTLETOE,))
    assert decided(view, Play(Kind.MISTLETOE, CHURCH), Play(Kind.MISTLETOE, LIBRARY)) == Play(Kind.MISTLETOE, CHURCH)


@pytest.mark.rule("NC-14")
def test_riches_go_where_no_troll_lies() -> None:
    view = seen({CHURCH: "1T 1D", LIBRARY: "1D 0D"}, (Kind.RICHES,))
    assert decided(view, Play(Kind.RICHES, CHURCH), Play(Kind.RICHES, LIBRARY)) == Play(Kind.RICHES, LIBRARY)


@pytest.mark.rule("NC-10")
def test_a_night_watch_fetches_an_own_card_from_a_troll() -> None:
    view = seen({CHURCH: "1T 0R", LIBRARY: "1D 0D"}, (Kind.NIGHT_WATCH,))
    fetch = Play(Kind.NIGHT_WATCH, LIBRARY, Relocate("c2", LIBRARY))
    assert decided(view, Play(Kind.NIGHT_WATCH, LIBRARY), fetch) == fetch


@pytest.mark.rule("NC-10")
def test_a_night_watch_sends_another_players_card_to_a_troll() -> None:
    view = seen({CHURCH: "0T", LIBRARY: "1D 1R 0D"}, (Kind.NIGHT_WATCH,))
    send = Play(Kind.NIGHT_WATCH, LIBRARY, Relocate("c3", CHURCH))
    assert decided(view, Play(Kind.NIGHT_WATCH, LIBRARY), Play(Kind.NIGHT_WATCH, LIBRARY, Relocate("c2", CHURCH)), send) == send


@pytest.mark.rule("NC-04")
def test_the_bot_keeps_a_hand_or_takes_a_mulligan() -> None:
    view = seen({CHURCH: ""}, (Kind.DAUGHTER, Kind.NIGHT_WATCH, Kind.NIGHT_WATCH))
    assert decided(view, Keep()) == Keep()
    assert decided(view, Keep(), Mulligan()) == Mulligan()
