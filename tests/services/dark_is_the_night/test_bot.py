"""The STANDARD bot: it plays legally, well, fast, and from its seat's view alone, in either role."""

import random
import time
from collections import Counter

import pytest

from services.dark_is_the_night import bot, rules
from services.dark_is_the_night.rules import (
    DARK,
    HUNTRESS,
    LIT,
    MONSTER,
    Announcement,
    Arrow,
    BellRang,
    Camp,
    Cause,
    Compass,
    Fact,
    HamDistance,
    HamPlaced,
    Hunt,
    Lair,
    Lured,
    MonsterAttacked,
    MonsterSighted,
    Move,
    Options,
    Phase,
    Prowl,
    Ring,
    SideAnnounced,
    State,
    Step,
    Sword,
    SwordSwung,
    Tokens,
    View,
)
from tests.services.dark_is_the_night.hidden import possible


def play(bots: set[int], seed: int) -> tuple[State, list[float]]:
    """A match of bots in those seats, random play in the others: its end, and the seconds each of the bots' choices took."""
    rng = random.Random(seed)
    state, times = rules.setup(Options(), 2, None).state, []
    while movers := rules.to_move(state):
        seat = movers[0]
        moves = rules.legal(state, seat)
        if seat in bots:
            view = rules.view(state, seat)
            start = time.perf_counter()
            move = bot.choose(view, seat, moves, rng)
            times.append(time.perf_counter() - start)
            assert move in moves
        else:
            move = rng.choice(moves)
        step = rules.apply(state, seat, move, None)
        assert isinstance(step, Step)
        state = step.state
    return state, times


@pytest.mark.parametrize("seat", [HUNTRESS, MONSTER], ids=["Huntress", "Monster"])
def test_the_bot_beats_random_play_in_either_role_before_dawn(seat: int) -> None:
    matches = 500
    ends = Counter(rules.outcome(play({seat}, seed)[0]) for seed in range(matches))
    decided = matches - ends[1, 1]
    won = ends[(1, 2) if seat == HUNTRESS else (2, 1)]
    assert decided >= 0.75 * matches
    assert won >= 0.85 * decided


def test_the_bot_plays_legally_against_itself_and_fast() -> None:
    times = [taken for seed in range(10) for taken in play({HUNTRESS, MONSTER}, seed)[1]]
    assert sorted(times)[len(times) // 2] < 0.005  # most take a tenth of that


def test_a_long_match_takes_no_longer_to_think_about() -> None:
    rng = random.Random(1)
    state = rules.setup(Options(), 2, None).state
    while state.turns < 198:  # nobody strikes and no token is used
        (seat,) = rules.to_move(state)
        quiet = [move for move in rules.legal(state, seat) if move in (Hunt(1), Hunt(2), *map(Prowl, Ring), Lair(1), Camp(1))]
        step = rules.apply(state, seat, rng.choice(quiet), None)
        assert isinstance(step, Step)
        state = step.state
    view, moves = rules.view(state, HUNTRESS), rules.legal(state, HUNTRESS)
    start = time.perf_counter()
    bot.choose(view, HUNTRESS, moves, rng)
    assert time.perf_counter() - start < 0.1  # some milliseconds; more, for a machine that is busy


def test_the_bot_decides_the_same_from_the_same_view_and_dice() -> None:
    state = rules.setup(Options(), 2, None).state
    view, moves = rules.view(state, MONSTER), rules.legal(state, MONSTER)
    assert len({bot.choose(view, MONSTER, moves, random.Random(3)) for _ in range(10)}) == 1


# ----------------------------------------------------------------- what it works out


@pytest.mark.rule("DN-16")
@pytest.mark.parametrize("seed", range(30))
def test_it_thinks_the_monster_on_exactly_the_squares_that_fit_all_announcements(seed: int) -> None:
    rng = random.Random(seed)
    state = rules.setup(Options(), 2, None).state
    while movers := rules.to_move(state):
        moves = rules.legal(state, movers[0])
        if rng.random() < 0.5:  # else tokens are soon used
            moves = [move for move in moves if not isinstance(move, Hunt) or not move.action] or moves
        step = rules.apply(state, movers[0], rng.choice(moves), None)
        assert isinstance(step, Step)
        state = step.state
        if state.huntress and not state.ranks:
            chances = bot.Trail(rules.view(state, HUNTRESS)).chances
            assert set(chances) == possible(state)
            assert sum(chances.values()) == pytest.approx(1)


SPENT = Tokens(0, False, False)
FEW = Tokens(1, True, True)


def seen(
    *facts: tuple[int, Fact], turns: int, huntress: int = 1, monster: int | None = None, tokens: Tokens = SPENT, lit: tuple[int, ...] = ()
) -> View:
    """A view after those announcements, the feint played; where the Monster is given, its last turn showed it there."""
    shown: list[tuple[int, Fact]] = [] if monster is None else [(turns - turns % 2, MonsterSighted(monster, Cause.FIRELIGHT))]
    told = [Announcement(0, SideAnnounced(Compass.NORTH)), *(Announcement(turn, fact) for turn, fact in [*shown, *facts])]
    return View(huntress, monster, Compass.NORTH, lit, None, None, tokens, False, None if any(tokens) else 50, turns, tuple(told))


def choices(view: View, seat: int, phase: Phase) -> set[Move]:
    """What the bot does in that position, as the dice may have it."""
    state = rules.setup(Options(), 2, None).state
    state = state._replace(phase=phase, huntress=view.huntress or 0, tokens=view.tokens, feint_left=view.feint_left, turns=view.turns)
    moves = rules.legal(state, seat)
    return {bot.choose(view, seat, moves, random.Random(seed)) for seed in range(20)}


def test_after_the_side_is_announced_all_its_squares_are_as_likely() -> None:
    assert bot.Trail(seen(turns=0)).chances == pytest.approx({1: 1 / 3, 2: 1 / 3, 3: 1 / 3})


def test_an_unheard_step_leads_either_way_as_likely() -> None:
    chances = bot.Trail(seen((1, SwordSwung(1, False)), (1, SwordSwung(3, False)), turns=2)).chances
    assert chances == pytest.approx({1: 1 / 2, 3: 1 / 2})


@pytest.mark.rule("DN-11")
def test_the_distance_to_the_ham_tells_the_square_or_leaves_two() -> None:
    sighted = (2, MonsterSighted(2, Cause.FIRELIGHT))
    assert bot.Trail(seen(sighted, (3, HamPlaced(5)), (3, HamDistance(5, 2)), turns=3)).chances == {3: 1.0}
    assert bot.Trail(seen(sighted, (3, HamPlaced(8)), turns=3)).chances == {2: 1.0}  # the Monster has still to choose
    assert bot.Trail(seen(sighted, (3, HamPlaced(8)), (3, HamDistance(8, 5)), turns=3)).chances == {1: 0.5, 3: 0.5}


# --------------------------------------------------------------------- single decisions


@pytest.mark.rule("DN-06")
def test_the_huntress_strikes_a_monster_that_rang_the_bell_within_her_reach() -> None:
    assert choices(seen((4, BellRang(2)), turns=4, huntress=1), HUNTRESS, Phase.HUNT) == {Hunt(2, Sword(2))}


@pytest.mark.rule("DN-08")
def test_the_huntress_keeps_her_arrows_for_a_monster_out_of_her_swords_reach() -> None:
    near = seen((4, MonsterSighted(8, Cause.FIRELIGHT)), turns=4, huntress=7, tokens=FEW, lit=(8,))
    assert choices(near, HUNTRESS, Phase.HUNT) == {Hunt(6, Sword(8))}
    far = seen((4, MonsterSighted(5, Cause.FIRELIGHT)), turns=4, huntress=8, tokens=FEW, lit=(5,))
    assert not any(move == Hunt(to, Arrow(Compass.EAST)) for move in choices(far, HUNTRESS, Phase.HUNT) for to in (1, 7))  # they miss
    across = seen((4, BellRang(4)), turns=4, huntress=8, tokens=FEW)
    assert choices(across, HUNTRESS, Phase.HUNT) == {Hunt(1, Arrow(Compass.EAST))}


@pytest.mark.rule("DN-05")
def test_the_huntress_keeps_away_from_a_monster_that_she_cannot_strike() -> None:
    # It attacked lit 8, so it is on dark 11; from lit 1 she could strike 12 or 1 in vain, and be struck.
    view = seen((4, MonsterAttacked(8, False)), turns=4, huntress=2)
    assert choices(view, HUNTRESS, Phase.HUNT) <= {Hunt(3), Hunt(3, Sword(3)), Hunt(3, Sword(4))}


@pytest.mark.rule("DN-05")
@pytest.mark.parametrize(
    ("monster", "huntress", "way"), [(1, 2, Ring.CLOCKWISE), (1, 1, Ring.COUNTERCLOCKWISE), (6, 4, Ring.COUNTERCLOCKWISE)]
)
def test_the_monster_attacks_where_it_hits(monster: int, huntress: int, way: Ring) -> None:
    assert choices(seen(turns=5, huntress=huntress, monster=monster), MONSTER, Phase.PROWL) == {Prowl(way, attack=True)}


@pytest.mark.rule("DN-05")
def test_the_monster_never_gives_itself_away_by_attacking_in_vain() -> None:
    for monster in DARK:
        for huntress in LIT:
            if monster not in bot.THREAT[huntress]:
                assert choices(seen(turns=5, huntress=huntress, monster=monster), MONSTER, Phase.PROWL) <= set(map(Prowl, Ring))


@pytest.mark.rule("DN-11")
def test_the_monster_lets_itself_be_lured_to_where_it_attacks_next() -> None:
    # To 8 or 6, from where it reaches 5, in front of which the Huntress is.
    view = seen((5, HamPlaced(1)), turns=5, huntress=4, monster=7)
    assert choices(view, MONSTER, Phase.LURED) == {Lured(Ring.COUNTERCLOCKWISE)}
