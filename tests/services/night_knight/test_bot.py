"""The STANDARD bot: it reacts legally, like a person, well, fast, and from its seat's view alone."""

import random
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import pytest

from services.night_knight import bot, rules
from services.night_knight.rules import Action, Card, Kind, Options, Peek, Phase, React, State, Step, View, right_action

T = TypeVar("T")

DRAGON, KING, ATTACKER, DEFENDER = Kind
KINDS = dict(zip("SKAD", Kind, strict=True))


class RandomChance:
    """A chance good enough to play with."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        return tuple(self.rng.sample(items, len(items)))


def timeout(state: State) -> State:
    return rules.on_timeout(state, RandomChance(0)).state


def reacted(state: State, seat: int, move: rules.Move) -> State:
    step = rules.apply(state, seat, move, RandomChance(0))
    assert isinstance(step, Step)
    return step.state


def play(bot_seats: set[int], seats: int, seed: int) -> tuple[tuple[int, ...], list[float]]:
    """A match of the bot against random play that is as fast: ranks, and the seconds each of the bot's choices took."""
    rng, times = random.Random(seed), []
    state = rules.setup(Options(), seats, RandomChance(seed)).state
    while state.phase is not Phase.FINISHED:
        state = timeout(timeout(state))  # all see all cards before the fastest reacts
        due = [(bot.think_ms(rules.view(state, seat), seat, rng), seat) for seat in range(seats)]
        for _, seat in sorted((ms, seat) for ms, seat in due if ms is not None):
            if state.phase is not Phase.ACTION:
                break
            moves, view = rules.legal(state, seat), rules.view(state, seat)
            start = time.perf_counter()
            move = bot.choose(view, seat, moves, rng) if seat in bot_seats else rng.choice(moves)
            if seat in bot_seats:
                times.append(time.perf_counter() - start)
            assert move in moves
            state = reacted(state, seat, move)
        if state.phase is Phase.RESOLUTION:
            state = timeout(state)
    ranks = rules.outcome(state)
    assert ranks is not None
    return ranks, times


@pytest.mark.parametrize("seats", [3, 4, 5, 6])
def test_the_bot_beats_random_play(seats: int) -> None:
    first = 0
    for seed in range(60):
        ranks, _ = play({seed % seats}, seats, seed)
        first += ranks[seed % seats] == 1 and ranks.count(1) == 1
    assert first / 60 >= 0.85


@pytest.mark.parametrize("seats", [3, 4, 5, 6])
def test_bots_among_themselves_come_to_an_end_and_choose_fast(seats: int) -> None:
    times = []
    for seed in range(5):
        ranks, taken = play(set(range(seats)), seats, seed)
        assert 1 in ranks
        times += taken
    assert sorted(times)[len(times) // 2] < 0.005  # some hundredths of a millisecond; five, for a machine that is busy


# ------------------------------------------------------------------------ when


def seen(cards: str, seats: Sequence[int] | None = None, phase: Phase = Phase.ACTION) -> View:
    """A view of these cards by seat; `?` is one still hidden."""
    fronts = tuple(Card(seat, KINDS.get(letter)) for seat, letter in zip(seats or range(len(cards)), cards, strict=True))
    return View(1, phase, 2, fronts, (), (12,) * 4, (), None)


def test_the_bot_takes_about_as_long_as_people_do() -> None:
    rng = random.Random(1)
    times = [bot.think_ms(seen("ADSS"), 0, rng) for _ in range(20_000)]
    known = [ms for ms in times if ms is not None]
    assert len(known) == 20_000
    assert statistics.mean(known) == pytest.approx(450, abs=25)
    assert min(known) >= 180
    hundredths = statistics.quantiles(known, n=100)
    assert hundredths[0] < 300  # hundredths[k] is the (k + 1)th
    assert hundredths[49] < 450 < hundredths[94]  # more tail after than before
    assert 700 < hundredths[98] < 1200


def test_the_bot_has_nothing_to_do_but_in_an_action_phase_that_it_is_in() -> None:
    rng = random.Random(1)
    state = rules.setup(Options(), 4, RandomChance(1)).state
    assert bot.think_ms(rules.view(state, 0), 0, rng) is None
    out = timeout(reacted(state, 0, Peek(1)))
    assert bot.think_ms(rules.view(out, 0), 0, rng) is None
    assert bot.think_ms(rules.view(out, 1), 1, rng) is not None
    passed = reacted(out, 1, React(1, Action.PASS))
    assert bot.think_ms(rules.view(passed, 1), 1, rng) is None
    resolution = timeout(timeout(passed))
    assert resolution.phase is Phase.RESOLUTION
    assert [bot.think_ms(rules.view(resolution, seat), seat, rng) for seat in range(4)] == [None] * 4


# ------------------------------------------------------------------------ what


def moves(seat: int = 0, seats: int = 4) -> list[React]:
    throws = [React(1, Action.THROW, target) for target in range(seats) if target != seat]
    return [*throws, *(React(1, action) for action in Action if action is not Action.THROW)]


def choices(view: View, number: int = 2000) -> list[React]:
    rng = random.Random(2)
    chosen = [bot.choose(view, 0, moves(), rng) for _ in range(number)]
    return [move for move in chosen if isinstance(move, React)]


def usual(view: View) -> set[tuple[Action, int | None]]:
    """What the bot does when it does not err."""
    counted = Counter(choices(view))
    return {(move.action, move.target) for move, times in counted.items() if times > counted.total() * 0.2}


@pytest.mark.rule("NK-06")
@pytest.mark.rule("NK-07")
@pytest.mark.rule("NK-08")
@pytest.mark.rule("NK-09")
@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        ("ADSS", {(Action.THROW, 1)}),
        ("AASD", {(Action.THROW, 3)}),
        ("ADSD", {(Action.THROW, 1), (Action.THROW, 3)}),
        ("AASS", {(Action.PASS, None)}),
        ("DASS", {(Action.SHIELD, None)}),
        ("DDSS", {(Action.PASS, None)}),
        ("SADS", {(Action.SLEEP, None)}),
        ("SADK", {(Action.PASS, None)}),
        ("KADS", {(Action.PASS, None)}),
    ],
)
def test_the_bot_does_what_its_card_asks_for(cards: str, expected: set[tuple[Action, int | None]]) -> None:
    assert usual(seen(cards)) == expected


@pytest.mark.rule("NK-04")
@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        ("?KAD", {Action.PASS}),
        ("?SSS", {Action.PASS}),  # a knight has nobody to fight, and dragons are few
        ("?DDD", {Action.PASS}),  # as likely a defender, and a King is possible
        ("?AAA", {Action.PASS}),
        ("?ADD", {Action.THROW}),  # an attacker is likelier than a defender now
        ("?AAD", {Action.SHIELD}),
    ],
)
def test_the_bot_goes_by_what_it_sees_while_its_own_card_is_hidden(cards: str, expected: set[Action]) -> None:
    assert {action for action, _ in usual(seen(cards))} == expected


@pytest.mark.parametrize("cards", ["ADSS", "AASS", "DASS", "SADS", "SADK", "ADDD"])
def test_the_bot_errs_as_often_as_it_is_told_to(cards: str) -> None:
    view = seen(cards)
    wanted, _ = right_action(KINDS[cards[0]], [KINDS[letter] for letter in cards])
    defenders = {seat for seat, letter in enumerate(cards) if letter == "D"}
    number = 10_000
    wrong = [
        move
        for move in choices(view, number)
        if move.action is not (wanted or Action.PASS) or (move.action is Action.THROW and move.target not in defenders)
    ]
    assert len(wrong) / number == pytest.approx(bot.MISTAKES, abs=0.015)
    assert {Action.TOUCH, Action.SHIELD, Action.SLEEP, Action.THROW, Action.PASS} - {move.action for move in wrong} <= {
        wanted or Action.PASS
    }


@pytest.mark.parametrize("mistakes", [0.0, 1.0])
def test_mistakes_can_be_tuned(mistakes: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bot, "MISTAKES", mistakes)
    assert [move == React(1, Action.SLEEP) for move in choices(seen("SADS"), 100)] == [mistakes == 0.0] * 100


def test_the_bot_decides_the_same_from_the_same_view_and_dice() -> None:
    assert len({bot.choose(seen("ADDS"), 0, moves(), random.Random(3)) for _ in range(10)}) == 1


def test_asked_where_it_has_nothing_to_do_the_bot_does_the_least() -> None:
    assert bot.choose(seen("", phase=Phase.COUNTDOWN), 0, [Peek(1)], random.Random(1)) == Peek(1)
    assert bot.choose(seen("ADSS", phase=Phase.RESOLUTION), 0, moves(), random.Random(1)) == React(1, Action.PASS)
