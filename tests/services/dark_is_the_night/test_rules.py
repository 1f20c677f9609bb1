"""The rules of Dark Is the Night, one after the other. The board, dark squares outside, lit ones inside, the fire in the middle:

     1   2   3
12  (1) (2) (3)  4
11  (8)  ^  (4)  5
10  (7) (6) (5)  6
     9   8   7
"""

from itertools import product

import pytest

from services.dark_is_the_night import rules
from services.dark_is_the_night.rules import (
    DARK,
    HUNTRESS,
    LIT,
    MONSTER,
    Action,
    Announcement,
    Arrow,
    ArrowShot,
    Bell,
    BellPlaced,
    BellRang,
    Camp,
    Cause,
    Compass,
    DawnNear,
    Event,
    Feint,
    FeintPlayed,
    Ham,
    HamDistance,
    HamPlaced,
    Hunt,
    HuntressCamped,
    HuntressMoved,
    Lair,
    Lured,
    MonsterAttacked,
    MonsterHid,
    MonsterMoved,
    MonsterSighted,
    Move,
    NightFell,
    Options,
    Phase,
    Prowl,
    Reason,
    Refusal,
    Ring,
    SideAnnounced,
    SquareLit,
    State,
    Step,
    Sword,
    SwordSwung,
    Tokens,
)

NORTH, EAST, SOUTH, WEST = Compass
CLOCKWISE, COUNTERCLOCKWISE = Ring

ALL = Tokens(arrows=2, bell=True, ham=True)
NONE = Tokens(arrows=0, bell=False, ham=False)


def new(turns_to_dawn: int = 5) -> State:
    return rules.setup(Options(turns_to_dawn), 2, None).state


def opened(lair: int = 8, camp: int = 1, turns_to_dawn: int = 5) -> State:
    """A match before its first turn."""
    state = made(new(turns_to_dawn), MONSTER, Lair(lair)).state
    return made(state, HUNTRESS, Camp(camp)).state


def hunting(
    huntress: int = 1, monster: int = 8, tokens: Tokens = ALL, lit: tuple[int, ...] = (), bell: int = 0, turns: int = 2, dawn: int = 5
) -> State:
    """The Huntress's turn, not her first."""
    state = opened()._replace(huntress=huntress, monster=monster, tokens=tokens, lit=lit, bell=bell, turns=turns, turns_to_dawn=dawn)
    return state if any(tokens) else state._replace(dawn=turns + dawn)


def prowling(
    monster: int = 8, huntress: int = 1, lit: tuple[int, ...] = (), bell: int = 0, turns: int = 3, tokens: Tokens = ALL, dawn: int = 5
) -> State:
    """The Monster's turn, not its first."""
    return hunting(huntress, monster, tokens, lit, bell, turns, dawn)._replace(phase=Phase.PROWL)


def made(state: State, seat: int, move: Move) -> Step:
    result = rules.apply(state, seat, move, None)
    assert isinstance(result, Step), result
    assert move in rules.legal(state, seat)
    return result


def refused(state: State, seat: int, move: Move) -> Reason:
    result = rules.apply(state, seat, move, None)
    assert isinstance(result, Refusal), "the move was to be refused"
    assert move not in rules.legal(state, seat)
    return result.reason


def acted(action: Action, to: int = 2, monster: int = 8, **position: object) -> Step:
    """The Huntress moves there, from the square before it, and acts."""
    state = hunting(huntress=(to - 2) % 8 + 1, monster=monster, **position)  # type: ignore[arg-type]
    step = made(state, HUNTRESS, Hunt(to, action))
    assert step.events[0] == HuntressMoved(to)
    return step


def public(step: Step) -> list[Event]:
    """What everybody but the Monster is told."""
    events = [rules.redact(event, HUNTRESS) for event in step.events]
    assert events == [rules.redact(event, None) for event in step.events]
    return events


# ---------------------------------------------------------------------- the board


@pytest.mark.rule("DN-01")
def test_the_board_has_eight_lit_squares_and_twelve_dark_ones() -> None:
    assert list(rules.legal(new(), MONSTER)) == [Lair(square) for square in range(1, 13)]
    camping = made(new(), MONSTER, Lair(1)).state
    assert list(rules.legal(camping, HUNTRESS)) == [Camp(square) for square in range(1, 9)]
    assert (tuple(range(1, 9)), tuple(range(1, 13))) == (LIT, DARK)


@pytest.mark.rule("DN-01")
@pytest.mark.parametrize("square", [0, 13, -1])
def test_there_are_no_other_squares(square: int) -> None:
    assert refused(new(), MONSTER, Lair(square)) == Reason.NO_SUCH_SQUARE
    assert refused(made(new(), MONSTER, Lair(1)).state, HUNTRESS, Camp(square)) == Reason.NO_SUCH_SQUARE
    assert refused(hunting(1), HUNTRESS, Hunt(2, Bell(square))) == Reason.NO_SUCH_SQUARE
    assert refused(hunting(1), HUNTRESS, Hunt(2, Ham(square))) == Reason.NO_SUCH_SQUARE


# ---------------------------------------------------------------------- the set-up


@pytest.mark.rule("DN-02")
def test_the_monster_hides_then_the_huntress_camps_then_the_side_is_announced_and_she_begins() -> None:
    step = rules.setup(Options(), 2, None)
    assert step.events == (NightFell(),)
    assert rules.to_move(step.state) == (MONSTER,)
    step = made(step.state, MONSTER, Lair(9))
    assert step.events == (MonsterHid(9),)
    assert rules.to_move(step.state) == (HUNTRESS,)
    assert rules.view(step.state, HUNTRESS).side is None
    step = made(step.state, HUNTRESS, Camp(4))
    assert step.events == (HuntressCamped(4), SideAnnounced(SOUTH))
    assert rules.to_move(step.state) == (HUNTRESS,)
    view = rules.view(step.state, HUNTRESS)
    assert (view.huntress, view.monster, view.side, view.turns) == (4, None, SOUTH, 0)
    assert view.announcements == (Announcement(0, SideAnnounced(SOUTH)),)


@pytest.mark.rule("DN-02")
@pytest.mark.parametrize(
    ("side", "lairs"), [(NORTH, (1, 2, 3)), (EAST, (4, 5, 6)), (SOUTH, (7, 8, 9)), (WEST, (10, 11, 12))], ids=lambda value: str(value)
)
def test_the_side_is_that_of_the_lair(side: Compass, lairs: tuple[int, ...]) -> None:
    for lair in lairs:
        assert rules.view(opened(lair), None).side is side


@pytest.mark.rule("DN-02")
def test_each_seat_makes_its_own_moves_when_it_is_to() -> None:
    assert refused(new(), HUNTRESS, Camp(1)) == Reason.NOT_YOUR_TURN
    assert refused(new(), MONSTER, Camp(1)) == Reason.WRONG_ROLE
    assert refused(new(), MONSTER, Prowl(CLOCKWISE)) == Reason.WRONG_PHASE
    assert refused(new(), MONSTER, Lured(CLOCKWISE)) == Reason.WRONG_PHASE
    assert refused(hunting(), MONSTER, Prowl(CLOCKWISE)) == Reason.NOT_YOUR_TURN
    assert refused(hunting(), HUNTRESS, Prowl(CLOCKWISE)) == Reason.WRONG_ROLE
    assert refused(hunting(), HUNTRESS, Feint(1)) == Reason.WRONG_ROLE
    assert refused(hunting(), HUNTRESS, Lair(1)) == Reason.WRONG_ROLE
    assert refused(hunting(), HUNTRESS, Camp(1)) == Reason.WRONG_PHASE
    assert refused(prowling(), HUNTRESS, Hunt(2)) == Reason.NOT_YOUR_TURN
    assert refused(prowling(), MONSTER, Hunt(2)) == Reason.WRONG_ROLE
    assert refused(prowling(), MONSTER, Lair(1)) == Reason.WRONG_PHASE
    assert refused(prowling(), MONSTER, Lured(CLOCKWISE)) == Reason.WRONG_PHASE


# --------------------------------------------------------------------------- turns


@pytest.mark.rule("DN-03")
def test_the_first_turn_of_each_is_a_move_and_nothing_else() -> None:
    state = opened(lair=8, camp=1)
    assert list(rules.legal(state, HUNTRESS)) == [Hunt(2), Hunt(8)]
    for action in (Sword(2), Arrow(NORTH), Bell(1), Ham(1)):
        assert refused(state, HUNTRESS, Hunt(2, action)) == Reason.FIRST_TURN
    state = made(state, HUNTRESS, Hunt(2)).state
    assert list(rules.legal(state, MONSTER)) == [Prowl(CLOCKWISE), Prowl(COUNTERCLOCKWISE)]
    assert refused(state, MONSTER, Prowl(CLOCKWISE, attack=True)) == Reason.FIRST_TURN
    assert refused(state, MONSTER, Feint(0)) == Reason.FIRST_TURN
    state = made(state, MONSTER, Prowl(CLOCKWISE)).state
    assert Hunt(1, Sword(1)) in rules.legal(state, HUNTRESS)
    state = made(state, HUNTRESS, Hunt(1)).state
    assert len(rules.legal(state, MONSTER)) == 2 * 2 + 5


@pytest.mark.rule("DN-03")
def test_turns_alternate_and_each_is_counted() -> None:
    state = opened()
    for turn in range(1, 20):
        (seat,) = rules.to_move(state)
        assert seat == (HUNTRESS if turn % 2 else MONSTER)
        state = made(state, seat, rules.legal(state, seat)[0]).state
        assert rules.view(state, None).turns == turn


@pytest.mark.rule("DN-03")
def test_the_move_comes_first_and_cannot_be_left_out() -> None:
    assert refused(hunting(huntress=1), HUNTRESS, Hunt(1)) == Reason.NOT_ADJACENT
    assert refused(hunting(huntress=1, monster=1), HUNTRESS, Hunt(1, Sword(1))) == Reason.NOT_ADJACENT
    step = made(hunting(huntress=1), HUNTRESS, Hunt(2, Sword(2)))
    assert step.events == (HuntressMoved(2), SwordSwung(2, False))
    step = made(prowling(monster=8), MONSTER, Prowl(CLOCKWISE, attack=True))
    assert step.events == (MonsterMoved(9), MonsterAttacked(7, False))


@pytest.mark.rule("DN-04")
@pytest.mark.parametrize("square", LIT)
def test_the_huntress_moves_to_the_lit_squares_on_either_side(square: int) -> None:
    neighbours = {1: {8, 2}, 2: {1, 3}, 3: {2, 4}, 4: {3, 5}, 5: {4, 6}, 6: {5, 7}, 7: {6, 8}, 8: {7, 1}}[square]
    for to in LIT:
        if to in neighbours:
            assert made(hunting(square), HUNTRESS, Hunt(to)).state.huntress == to
        else:  # diagonally, through the fire, too far, or not at all
            assert refused(hunting(square), HUNTRESS, Hunt(to)) == Reason.NOT_ADJACENT


@pytest.mark.rule("DN-04")
@pytest.mark.parametrize("square", DARK)
def test_the_dark_squares_are_a_ring_also_over_the_missing_corners(square: int) -> None:
    clockwise = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1][square - 1]
    assert made(prowling(square), MONSTER, Prowl(CLOCKWISE)).events == (MonsterMoved(clockwise),)
    assert made(prowling(clockwise), MONSTER, Prowl(COUNTERCLOCKWISE)).state.monster == square


# -------------------------------------------------------------------------- attacks


@pytest.mark.rule("DN-05")
@pytest.mark.parametrize(("monster", "huntress"), list(enumerate([1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 1], start=1)))
def test_the_monster_hits_the_lit_square_in_front_of_it_and_no_other(monster: int, huntress: int) -> None:
    before = (monster - 2) % 12 + 1
    for square in LIT:
        step = made(prowling(before, square), MONSTER, Prowl(CLOCKWISE, attack=True))
        hit = square == huntress
        assert step.events == (MonsterMoved(monster), MonsterAttacked(huntress, hit))
        assert rules.outcome(step.state) == ((2, 1) if hit else None)
        assert rules.to_move(step.state) == (() if hit else (HUNTRESS,))


@pytest.mark.rule("DN-05")
def test_a_miss_announces_the_square_attacked() -> None:
    step = made(prowling(monster=4, huntress=1), MONSTER, Prowl(CLOCKWISE, attack=True))
    assert public(step) == [MonsterMoved(None), MonsterAttacked(4, False)]
    assert rules.view(step.state, HUNTRESS).announcements[-1] == Announcement(4, MonsterAttacked(4, False))


@pytest.mark.rule("DN-05")
def test_the_monster_need_not_attack() -> None:
    step = made(prowling(monster=12, huntress=1), MONSTER, Prowl(CLOCKWISE))
    assert step.events == (MonsterMoved(1),)
    assert rules.outcome(step.state) is None


@pytest.mark.rule("DN-06")
@pytest.mark.parametrize(
    ("to", "reach"), [(1, {12, 1}), (2, {2}), (3, {3, 4}), (4, {5}), (5, {6, 7}), (6, {8}), (7, {9, 10}), (8, {11})], ids=str
)
def test_the_sword_strikes_a_dark_square_next_to_the_huntress_one_of_two_at_a_corner(to: int, reach: set[int]) -> None:
    before = to % 8 + 1
    for square, monster in product(DARK, DARK):
        state = hunting(before, monster)
        if square not in reach:
            assert refused(state, HUNTRESS, Hunt(to, Sword(square))) == Reason.OUT_OF_REACH
            continue
        step = made(state, HUNTRESS, Hunt(to, Sword(square)))
        assert step.events == (HuntressMoved(to), SwordSwung(square, square == monster))
        assert rules.outcome(step.state) == ((1, 2) if square == monster else None)


@pytest.mark.rule("DN-06")
def test_a_strike_that_misses_says_so_and_uses_nothing_up() -> None:
    step = acted(Sword(1), to=1, monster=12)
    assert public(step) == [HuntressMoved(1), SwordSwung(1, False)]
    assert step.state.tokens == ALL
    assert rules.to_move(step.state) == (MONSTER,)


# --------------------------------------------------------------------------- tokens


@pytest.mark.rule("DN-07")
def test_each_of_two_arrows_the_bell_and_the_ham_is_used_once() -> None:
    state = hunting(huntress=1, monster=5)
    for to, action, left in (
        (2, Arrow(NORTH), (1, True, True)),
        (1, Bell(9), (1, False, True)),
        (2, Arrow(NORTH), (0, False, True)),
        (1, Ham(5), (0, False, False)),
    ):
        state = made(state, HUNTRESS, Hunt(to, action)).state
        assert state.tokens == left
        assert rules.view(state, None).tokens == left
        state = state._replace(phase=Phase.HUNT, monster=5)  # as though the Monster's turn were over
    for action in (Arrow(NORTH), Bell(1), Ham(1)):
        assert refused(state, HUNTRESS, Hunt(2, action)) == Reason.NO_TOKEN_LEFT
    assert rules.legal(state, HUNTRESS) == (Hunt(2), Hunt(2, Sword(2)), Hunt(8), Hunt(8, Sword(11)))


@pytest.mark.rule("DN-07")
def test_a_turn_has_one_token_or_the_sword_or_neither() -> None:
    moves = rules.legal(hunting(huntress=2), HUNTRESS)
    # To lit 3 or 1, both corners: nothing, the sword either way, an arrow in four directions, the bell or the ham on twelve squares.
    assert len(moves) == 2 * (1 + 2 + 4 + 12 + 12)
    for action in (None, Sword(1), Arrow(SOUTH), Bell(7), Ham(7)):
        assert rules.to_move(made(hunting(huntress=2, monster=5), HUNTRESS, Hunt(1, action)).state) == (MONSTER,)


# ---------------------------------------------------------------------------- arrows

# Where arrows end that are shot north, east, south and west; `*` marks those that cross the fire.
FLIGHTS = {
    1: "1 4 9 12",
    2: "2 4 8* 12",
    3: "3 4 7 12",
    4: "3 5 7 11*",
    5: "3 6 7 10",
    6: "2* 6 8 10",
    7: "1 6 9 10",
    8: "1 5* 9 11",
}
EVERY_FLIGHT = [
    (lit, direction, int(end.rstrip("*")), end.endswith("*"))
    for lit, ends in FLIGHTS.items()
    for direction, end in zip(Compass, ends.split(), strict=True)
]


@pytest.mark.rule("DN-08")
@pytest.mark.parametrize(("to", "direction", "square", "burning"), [flight for flight in EVERY_FLIGHT if not flight[3]])
def test_an_arrow_flies_straight_and_kills_a_monster_where_it_ends(to: int, direction: Compass, square: int, burning: bool) -> None:
    for monster in DARK:
        step = acted(Arrow(direction), to, monster)
        hit = monster == square
        assert step.events == (HuntressMoved(to), ArrowShot(direction, square, False, hit))
        assert rules.outcome(step.state) == ((1, 2) if hit else None)
        assert step.state.lit == ()


@pytest.mark.rule("DN-08")
@pytest.mark.parametrize(("to", "direction", "square", "burning"), [flight for flight in EVERY_FLIGHT if flight[3]])
def test_an_arrow_through_the_fire_harms_nobody_and_lights_the_square(to: int, direction: Compass, square: int, burning: bool) -> None:
    for monster in DARK:
        step = acted(Arrow(direction), to, monster)
        assert step.events == (HuntressMoved(to), ArrowShot(direction, square, True, False), SquareLit(square))
        assert rules.outcome(step.state) is None
        assert step.state.lit == rules.view(step.state, None).lit_squares == (square,)


@pytest.mark.rule("DN-08")
def test_only_four_squares_can_be_lit_each_from_across_the_fire() -> None:
    assert {(lit, square) for lit, _, square, burning in EVERY_FLIGHT if burning} == {(2, 8), (4, 11), (6, 2), (8, 5)}


# --------------------------------------------------------------------------- firelight


@pytest.mark.rule("DN-09")
def test_a_monster_that_steps_onto_a_lit_up_square_announces_it_every_time() -> None:
    state = prowling(monster=7, huntress=1, lit=(8,))
    step = made(state, MONSTER, Prowl(CLOCKWISE))
    assert step.events == (MonsterMoved(8), MonsterSighted(8, Cause.FIRELIGHT))
    assert public(step) == [MonsterMoved(None), MonsterSighted(8, Cause.FIRELIGHT)]
    state = made(step.state, HUNTRESS, Hunt(2)).state
    off = made(state, MONSTER, Prowl(CLOCKWISE))
    assert off.events == (MonsterMoved(9),)
    state = made(off.state, HUNTRESS, Hunt(1)).state
    assert MonsterSighted(8, Cause.FIRELIGHT) in made(state, MONSTER, Prowl(COUNTERCLOCKWISE)).events


@pytest.mark.rule("DN-09")
def test_lighting_the_square_on_which_the_monster_stands_announces_nothing() -> None:
    there, elsewhere = acted(Arrow(SOUTH), to=2, monster=8), acted(Arrow(SOUTH), to=2, monster=9)
    assert there.events == elsewhere.events == (HuntressMoved(2), ArrowShot(SOUTH, 8, True, False), SquareLit(8))
    stepped_off = made(there.state, MONSTER, Prowl(CLOCKWISE))
    assert stepped_off.events == (MonsterMoved(9),)


@pytest.mark.rule("DN-09")
def test_it_attacks_from_a_lit_up_square_after_announcing_it() -> None:
    step = made(prowling(monster=7, huntress=6, lit=(8,)), MONSTER, Prowl(CLOCKWISE, attack=True))
    assert step.events == (MonsterMoved(8), MonsterSighted(8, Cause.FIRELIGHT), MonsterAttacked(6, True))
    assert rules.outcome(step.state) == (2, 1)


# --------------------------------------------------------------------------------- bell


@pytest.mark.rule("DN-10")
@pytest.mark.parametrize("square", DARK)
def test_the_bell_lies_on_any_dark_square_until_the_monster_steps_on_it(square: int) -> None:
    monster = (square - 2) % 12 + 1
    step = acted(Bell(square), to=2, monster=monster)
    assert step.events == (HuntressMoved(2), BellPlaced(square))
    assert rules.view(step.state, None).bell == square
    step = made(step.state, MONSTER, Prowl(CLOCKWISE))
    assert step.events == (MonsterMoved(square), BellRang(square))
    assert public(step) == [MonsterMoved(None), BellRang(square)]
    assert rules.view(step.state, None).bell is None


@pytest.mark.rule("DN-10")
def test_the_bell_rings_once() -> None:
    state = made(prowling(monster=7, bell=8), MONSTER, Prowl(CLOCKWISE)).state
    state = made(state, HUNTRESS, Hunt(2)).state
    state = made(made(state, MONSTER, Prowl(CLOCKWISE)).state, HUNTRESS, Hunt(1)).state
    assert made(state, MONSTER, Prowl(COUNTERCLOCKWISE)).events == (MonsterMoved(8),)


@pytest.mark.rule("DN-10")
def test_the_bell_put_where_the_monster_stands_rings_at_once() -> None:
    step = acted(Bell(8), to=2, monster=8)
    assert step.events == (HuntressMoved(2), BellPlaced(8), BellRang(8))
    assert (step.state.bell, step.state.tokens.bell) == (0, False)
    assert rules.to_move(step.state) == (MONSTER,)


# ---------------------------------------------------------------------------------- ham


@pytest.mark.rule("DN-11")
@pytest.mark.parametrize(
    ("monster", "to", "left"),
    [
        (1, 1, 0),  # there already: no step
        (2, 1, 0),  # one away, either side
        (12, 1, 0),
        (3, 2, 1),
        (11, 12, 1),  # over the corner
        (4, 3, 2),
        (5, 4, 3),
        (6, 5, 4),
        (8, 9, 4),  # five away the other way round
        (9, 10, 3),
        (10, 11, 2),
    ],
)
def test_the_monster_comes_one_square_closer_to_the_ham_and_says_how_far_it_is(monster: int, to: int, left: int) -> None:
    step = acted(Ham(1), to=4, monster=monster)
    assert step.events == (HuntressMoved(4), HamPlaced(1), MonsterMoved(to), HamDistance(1, left))
    assert step.state.monster == to
    assert step.state.tokens.ham is False
    assert (step.state.ham, step.state.turns, rules.to_move(step.state)) == (0, 3, (MONSTER,))


@pytest.mark.rule("DN-11")
@pytest.mark.parametrize(("way", "to"), [(CLOCKWISE, 8), (COUNTERCLOCKWISE, 6)])
def test_where_both_ways_are_equal_the_monster_chooses_within_the_huntress_turn(way: Ring, to: int) -> None:
    step = acted(Ham(1), to=4, monster=7)
    assert step.events == (HuntressMoved(4), HamPlaced(1))
    assert rules.to_move(step.state) == (MONSTER,)
    assert list(rules.legal(step.state, MONSTER)) == [Lured(CLOCKWISE), Lured(COUNTERCLOCKWISE)]
    assert rules.view(step.state, HUNTRESS).ham == 1
    for move in (Prowl(CLOCKWISE), Prowl(CLOCKWISE, attack=True), Feint(0), Lair(1)):
        assert refused(step.state, MONSTER, move) == Reason.MUST_CHOOSE_WAY
    assert refused(step.state, MONSTER, Hunt(5)) == Reason.WRONG_ROLE
    assert refused(step.state, HUNTRESS, Hunt(5)) == Reason.NOT_YOUR_TURN
    lured = made(step.state, MONSTER, Lured(way))
    assert lured.events == (MonsterMoved(to), HamDistance(1, 5))
    assert rules.view(lured.state, HUNTRESS).ham is None
    # The Monster's own turn comes after it.
    assert (lured.state.turns, lured.state.phase) == (3, Phase.PROWL)
    assert made(lured.state, MONSTER, Prowl(CLOCKWISE)).state.turns == 4


@pytest.mark.rule("DN-11")
def test_a_ham_where_the_monster_stands_moves_it_nowhere_and_sets_nothing_off() -> None:
    step = acted(Ham(8), to=4, monster=8, lit=(8,))
    assert public(step) == [HuntressMoved(4), HamPlaced(8), MonsterMoved(None), HamDistance(8, 0)]
    assert step.state.monster == 8


@pytest.mark.rule("DN-16")
def test_a_ham_at_distance_one_looks_like_one_where_the_monster_stands() -> None:
    assert public(acted(Ham(8), to=4, monster=8)) == public(acted(Ham(8), to=4, monster=9)) == public(acted(Ham(8), to=4, monster=7))


@pytest.mark.rule("DN-11")
@pytest.mark.rule("DN-13")
def test_a_lured_step_rings_the_bell_and_is_seen_in_firelight_before_the_distance_is_told() -> None:
    step = acted(Ham(10), to=4, monster=7, lit=(8,))
    assert step.events[2:] == (MonsterMoved(8), MonsterSighted(8, Cause.FIRELIGHT), HamDistance(10, 2))
    step = acted(Ham(10), to=4, monster=7, bell=8)
    assert step.events[2:] == (MonsterMoved(8), BellRang(8), HamDistance(10, 2))
    assert step.state.bell == 0


@pytest.mark.rule("DN-11")
@pytest.mark.rule("DN-13")
def test_a_step_to_the_ham_that_the_monster_chose_sets_off_what_lies_there() -> None:
    state = acted(Ham(1), to=4, monster=7, lit=(8,), bell=6).state
    lit = made(state, MONSTER, Lured(CLOCKWISE))
    assert lit.events == (MonsterMoved(8), MonsterSighted(8, Cause.FIRELIGHT), HamDistance(1, 5))
    rung = made(state, MONSTER, Lured(COUNTERCLOCKWISE))
    assert rung.events == (MonsterMoved(6), BellRang(6), HamDistance(1, 5))
    assert rung.state.bell == 0
    assert rules.view(rung.state, None).announcements[-3:] == (
        Announcement(3, HamPlaced(1)),
        Announcement(3, BellRang(6)),
        Announcement(3, HamDistance(1, 5)),
    )


# -------------------------------------------------------------------------------- feint


@pytest.mark.rule("DN-12")
@pytest.mark.parametrize(("steps", "to"), [(-2, 11), (-1, 12), (0, 1), (1, 2), (2, 3)])
def test_a_feint_announces_the_square_and_moves_up_to_two_either_way_in_secret(steps: int, to: int) -> None:
    step = made(prowling(monster=1, huntress=5), MONSTER, Feint(steps))
    assert step.events == (MonsterSighted(1, Cause.FEINT), FeintPlayed(steps), MonsterMoved(to))
    assert public(step) == [MonsterSighted(1, Cause.FEINT), FeintPlayed(None), MonsterMoved(None)]
    assert step.state.monster == to
    assert rules.to_move(step.state) == (HUNTRESS,)
    assert rules.view(step.state, None).feint_left is False


@pytest.mark.rule("DN-12")
def test_the_feint_is_played_once_and_takes_the_whole_turn() -> None:
    state = made(prowling(monster=1, huntress=5), MONSTER, Feint(0)).state
    assert state.turns == 4
    state = made(state, HUNTRESS, Hunt(6)).state
    for steps in (-2, -1, 0, 1, 2):
        assert refused(state, MONSTER, Feint(steps)) == Reason.NO_TOKEN_LEFT
    assert len(rules.legal(state, MONSTER)) == 4


@pytest.mark.rule("DN-12")
@pytest.mark.parametrize("steps", [-3, 3])
def test_a_feint_goes_no_further_than_two(steps: int) -> None:
    assert refused(prowling(), MONSTER, Feint(steps)) == Reason.OUT_OF_REACH


# ----------------------------------------------------------------------------- each step


@pytest.mark.rule("DN-13")
def test_a_feint_of_two_across_the_bell_rings_it() -> None:
    step = made(prowling(monster=1, huntress=5, bell=2), MONSTER, Feint(2))
    assert step.events == (MonsterSighted(1, Cause.FEINT), FeintPlayed(2), MonsterMoved(3), BellRang(2))
    assert (step.state.monster, step.state.bell) == (3, 0)
    # Whether it stayed on the bell's square is not to be seen.
    assert public(step) == public(made(prowling(monster=1, huntress=5, bell=2), MONSTER, Feint(1)))


@pytest.mark.rule("DN-13")
def test_a_feint_of_two_is_seen_on_its_first_square_and_on_its_second() -> None:
    step = made(prowling(monster=6, huntress=1, lit=(5, 8)), MONSTER, Feint(2))
    assert step.events[2:] == (MonsterMoved(8), MonsterSighted(8, Cause.FIRELIGHT))
    step = made(prowling(monster=6, huntress=1, lit=(5,)), MONSTER, Feint(-2))
    assert step.events[2:] == (MonsterMoved(4), MonsterSighted(5, Cause.FIRELIGHT))
    step = made(prowling(monster=6, huntress=1, lit=(8,), bell=7), MONSTER, Feint(2))
    assert step.events[2:] == (MonsterMoved(8), BellRang(7), MonsterSighted(8, Cause.FIRELIGHT))


@pytest.mark.rule("DN-13")
def test_a_lit_square_is_announced_before_a_bell_on_it() -> None:
    said = (MonsterSighted(8, Cause.FIRELIGHT), BellRang(8))
    assert made(prowling(monster=7, lit=(8,), bell=8), MONSTER, Prowl(CLOCKWISE)).events[1:] == said
    assert made(prowling(monster=7, lit=(8,), bell=8), MONSTER, Feint(2)).events[3:] == said
    assert acted(Ham(8), to=4, monster=7, lit=(8,), bell=8).events[3:] == (*said, HamDistance(8, 0))


@pytest.mark.rule("DN-13")
def test_staying_put_on_a_lit_square_announces_nothing_more() -> None:
    step = made(prowling(monster=8, huntress=1, lit=(8,)), MONSTER, Feint(0))
    assert step.events == (MonsterSighted(8, Cause.FEINT), FeintPlayed(0), MonsterMoved(8))


@pytest.mark.rule("DN-13")
def test_tokens_share_a_square() -> None:
    assert acted(Bell(8), to=2, monster=5, lit=(8,)).state.bell == 8
    step = acted(Ham(8), to=2, monster=5, lit=(8,), bell=8)
    assert (step.state.bell, step.state.lit) == (8, (8,))
    assert step.events[1:] == (HamPlaced(8), MonsterMoved(6), HamDistance(8, 2))


@pytest.mark.rule("DN-13")
def test_a_lit_square_may_be_shot_at_again() -> None:
    step = acted(Arrow(SOUTH), to=6, monster=8, lit=(8,))
    assert step.events[1:] == (ArrowShot(SOUTH, 8, False, True),)
    assert rules.outcome(step.state) == (1, 2)
    again = acted(Arrow(SOUTH), to=2, monster=8, lit=(8,))  # across the fire: it burns there already
    assert again.events[1:] == (ArrowShot(SOUTH, 8, True, False),)
    assert (again.state.lit, again.state.tokens.arrows) == ((8,), 1)


# ---------------------------------------------------------------------------------- dawn

LAST = [
    (Tokens(1, False, False), Arrow(NORTH)),
    (Tokens(1, False, False), Arrow(SOUTH)),
    (Tokens(0, True, False), Bell(1)),
    (Tokens(0, False, True), Ham(1)),
]


@pytest.mark.rule("DN-14")
@pytest.mark.parametrize(("tokens", "action"), LAST, ids=["arrow", "fire", "bell", "ham"])
def test_five_turns_after_the_last_token_whichever_it_is_it_is_dawn_and_a_draw(tokens: Tokens, action: Action) -> None:
    step = acted(action, to=2, monster=10, tokens=tokens)
    assert DawnNear(5) in step.events
    movers: list[int] = []
    state = step.state
    while movers_now := rules.to_move(state):
        assert rules.view(state, None).turns_left == 5 - len(movers)
        movers += movers_now
        state = made(state, movers[-1], rules.legal(state, movers[-1])[0]).state
    assert movers == [MONSTER, HUNTRESS, MONSTER, HUNTRESS, MONSTER]
    assert rules.outcome(state) == (1, 1)
    assert rules.view(state, None).turns_left == 0


@pytest.mark.rule("DN-14")
def test_the_dawn_is_not_counted_down_to_before_the_last_token() -> None:
    for tokens, action in ((Tokens(2, False, False), Arrow(NORTH)), (Tokens(1, True, False), Bell(1)), (Tokens(0, True, True), Ham(1))):
        step = acted(action, to=2, monster=5, tokens=tokens)
        assert not any(isinstance(event, DawnNear) for event in step.events)
        assert rules.view(step.state, None).turns_left is None


@pytest.mark.rule("DN-14")
def test_a_last_ham_counts_from_its_turn_also_where_the_monster_has_to_choose() -> None:
    step = acted(Ham(1), to=4, monster=7, tokens=Tokens(0, False, True))
    assert step.events == (HuntressMoved(4), HamPlaced(1), DawnNear(5))
    assert rules.view(step.state, None).turns_left == 5
    lured = made(step.state, MONSTER, Lured(CLOCKWISE)).state
    assert rules.view(lured, None).turns_left == 5
    assert rules.view(made(lured, MONSTER, Prowl(CLOCKWISE)).state, None).turns_left == 4


@pytest.mark.rule("DN-14")
@pytest.mark.parametrize("turns", [1, 2, 50])
def test_how_many_turns_remain_is_an_option(turns: int) -> None:
    step = acted(Bell(1), to=2, monster=5, tokens=Tokens(0, True, False), dawn=turns)
    assert step.events[-1] == DawnNear(turns)
    assert step.state.dawn == 3 + turns
    if turns == 1:
        assert rules.outcome(made(step.state, MONSTER, Prowl(CLOCKWISE)).state) == (1, 1)


@pytest.mark.rule("DN-14")
def test_a_kill_in_the_last_turn_before_dawn_counts() -> None:
    state = prowling(monster=12, huntress=1, turns=7)._replace(tokens=NONE, dawn=8)
    step = made(state, MONSTER, Prowl(CLOCKWISE, attack=True))
    assert rules.outcome(step.state) == (2, 1)
    missed = made(state, MONSTER, Prowl(COUNTERCLOCKWISE, attack=True))
    assert rules.outcome(missed.state) == (1, 1)


@pytest.mark.rule("DN-14")
def test_a_last_arrow_that_kills_ends_the_match_at_once() -> None:
    step = acted(Arrow(NORTH), to=2, monster=2, tokens=Tokens(1, False, False))
    assert step.events == (HuntressMoved(2), ArrowShot(NORTH, 2, False, True))
    assert rules.outcome(step.state) == (1, 2)


@pytest.mark.rule("DN-15")
def test_a_match_still_open_after_two_hundred_turns_is_a_draw() -> None:
    state = opened()
    while rules.to_move(state):
        (seat,) = rules.to_move(state)
        assert rules.outcome(state) is None
        state = made(state, seat, rules.legal(state, seat)[0]).state
    assert (state.turns, state.tokens) == (200, ALL)
    assert rules.outcome(state) == (1, 1)
    assert rules.view(state, None).turns_left is None


@pytest.mark.rule("DN-15")
def test_a_kill_in_the_two_hundredth_turn_counts() -> None:
    step = made(prowling(monster=12, huntress=1, turns=199), MONSTER, Prowl(CLOCKWISE, attack=True))
    assert (step.state.turns, rules.outcome(step.state)) == (200, (2, 1))


@pytest.mark.rule("DN-15")
def test_no_dawn_comes_later_than_that() -> None:
    step = acted(Bell(1), to=2, monster=5, tokens=Tokens(0, True, False), turns=198)
    assert step.events[-1] == DawnNear(1)
    assert rules.outcome(made(step.state, MONSTER, Prowl(CLOCKWISE)).state) == (1, 1)


# ------------------------------------------------------------------------------- secrecy


@pytest.mark.rule("DN-16")
def test_only_the_monster_sees_its_square() -> None:
    state = hunting(monster=8)
    assert [rules.view(state, viewer).monster for viewer in (HUNTRESS, MONSTER, None)] == [None, 8, None]
    assert rules.view(new(), MONSTER).monster is None


@pytest.mark.rule("DN-16")
@pytest.mark.parametrize("event", [MonsterHid(3), MonsterMoved(3), FeintPlayed(2)], ids=str)
def test_where_the_monster_goes_is_told_to_the_monster_alone(event: MonsterHid | MonsterMoved | FeintPlayed) -> None:
    assert rules.redact(event, MONSTER) == event
    for viewer in (HUNTRESS, None):
        assert rules.redact(event, viewer) == type(event)(None)


@pytest.mark.rule("DN-16")
def test_what_is_announced_is_told_to_all() -> None:
    said: list[Event] = [
        MonsterSighted(1, Cause.FEINT),
        BellRang(2),
        HamDistance(3, 4),
        MonsterAttacked(5, False),
        SideAnnounced(WEST),
        SwordSwung(6, False),
    ]
    for event, viewer in product(said, (HUNTRESS, MONSTER, None)):
        assert rules.redact(event, viewer) == event


@pytest.mark.rule("DN-16")
def test_a_feint_looks_the_same_whatever_its_steps() -> None:
    looks = [public(made(prowling(monster=5, huntress=1), MONSTER, Feint(steps))) for steps in (-2, -1, 0, 1, 2)]
    assert all(look == looks[0] for look in looks)


@pytest.mark.rule("DN-16")
def test_the_huntress_has_the_same_moves_and_refusals_wherever_the_monster_is() -> None:
    states = [hunting(huntress=2, monster=monster) for monster in DARK]
    assert len({tuple(rules.legal(state, HUNTRESS)) for state in states}) == 1
    for move in (Hunt(2), Hunt(4, Sword(5)), Hunt(3, Sword(9)), Prowl(CLOCKWISE), Camp(1)):
        assert len({rules.apply(state, HUNTRESS, move, None) for state in states}) == 1


@pytest.mark.rule("DN-16")
@pytest.mark.parametrize(
    "step",
    [
        acted(Sword(2), to=2, monster=2),
        made(prowling(monster=12, huntress=1), MONSTER, Prowl(CLOCKWISE, attack=True)),
        made(prowling(monster=12, huntress=5, turns=199), MONSTER, Prowl(CLOCKWISE)),
    ],
    ids=["Huntress", "Monster", "dawn"],
)
def test_after_the_end_everybody_sees_the_monster(step: Step) -> None:
    for viewer in (HUNTRESS, MONSTER, None):
        assert rules.view(step.state, viewer).monster == step.state.monster
    for seat, move in ((HUNTRESS, Hunt(3)), (MONSTER, Prowl(CLOCKWISE))):
        assert refused(step.state, seat, move) == Reason.MATCH_FINISHED


@pytest.mark.rule("DN-16")
def test_a_view_tells_the_public_history_turn_by_turn() -> None:
    state = opened(lair=8, camp=1)
    for move in (
        Hunt(2),
        Prowl(CLOCKWISE),  # to 9
        Hunt(3, Bell(11)),
        Prowl(CLOCKWISE, attack=True),  # to 10
        Hunt(2, Arrow(SOUTH)),
        Prowl(CLOCKWISE),  # to 11, the bell's
        Hunt(1, Sword(12)),
        Feint(-2),  # to 9
        Hunt(2, Ham(8)),
    ):
        (seat,) = rules.to_move(state)
        state = made(state, seat, move).state
    view = rules.view(state, HUNTRESS)
    assert [(told.turn, told.fact) for told in view.announcements] == [
        (0, SideAnnounced(SOUTH)),
        (3, BellPlaced(11)),
        (4, MonsterAttacked(7, False)),
        (5, ArrowShot(SOUTH, 8, True, False)),
        (6, BellRang(11)),
        (7, SwordSwung(12, False)),
        (8, MonsterSighted(11, Cause.FEINT)),
        (9, HamPlaced(8)),
        (9, MonsterSighted(8, Cause.FIRELIGHT)),
        (9, HamDistance(8, 0)),
    ]
    assert (view.turns, view.huntress, view.lit_squares, view.bell, view.feint_left) == (9, 2, (8,), None, False)
    assert view.tokens == (1, False, False)


# ------------------------------------------------------------------------------ ended early


@pytest.mark.parametrize(
    "state", [new(), made(new(), MONSTER, Lair(3)).state, hunting(), prowling()], ids=["lair", "camp", "hunt", "prowl"]
)
def test_a_match_that_ends_early_is_finished_without_an_outcome_and_keeps_its_secret(state: State) -> None:
    ended = rules.end_early(state)
    assert rules.to_move(ended) == ()
    assert rules.outcome(ended) is None
    assert rules.view(ended, HUNTRESS) == rules.view(state, HUNTRESS)
    assert rules.view(ended, HUNTRESS).monster is None
    assert refused(ended, HUNTRESS, Hunt(2)) == Reason.MATCH_FINISHED


def test_moves_and_events_of_different_kinds_are_never_equal() -> None:
    moves: list[Move] = [Lair(1), Camp(1), Hunt(1), Prowl(CLOCKWISE), Feint(1), Lured(CLOCKWISE)]
    events: list[Event] = [MonsterHid(1), HuntressCamped(1), HuntressMoved(1), MonsterMoved(1), BellPlaced(1), BellRang(1), SquareLit(1)]
    assert all((one == other) == (one is other) for group in (moves, events) for one in group for other in group)
