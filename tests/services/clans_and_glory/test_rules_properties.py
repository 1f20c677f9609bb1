"""What holds in every match of Clans and Glory, tried on random ones: the rules' invariants, legality, storage and secrecy."""

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from services.clans_and_glory import rules
from services.clans_and_glory.rules import (
    FACE_DOWN,
    FREE,
    RESIDENTS,
    SET_UP,
    SLOTS,
    FieldScored,
    HandDealt,
    Move,
    Options,
    Place,
    Refusal,
    State,
    Step,
)
from tests.services.clans_and_glory.hidden import look, vary

T = TypeVar("T")

SEATS = st.integers(2, 4)
SEEDS = st.integers(0, 2**32)
PLIES = st.integers(0, 30)  # a match of four has 28
ROUNDS = {2: 8, 3: 8, 4: 7}

# Every move that a client could send, and some onto spaces that no field has.
EVERY_MOVE = [
    Place(resident, field, slot, face_down, shield)
    for resident in RESIDENTS
    for field in range(7)
    for slot in range(SLOTS + 1)
    for face_down in (False, True)
    for shield in (False, True)
]

thoroughly = settings(max_examples=60, deadline=None)


class RandomChance:
    """A chance good enough to play with."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        return tuple(self.rng.sample(items, len(items)))


class NoChance:
    """For moves: they draw nothing from chance."""

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        raise AssertionError(f"nothing is to be shuffled here, yet {label} was")


def played(state: State, seat: int, move: Move) -> Step:
    step = rules.apply(state, seat, move, NoChance())
    assert isinstance(step, Step), step
    return step


def random_match(seats: int, seed: int) -> Iterator[tuple[int | None, Step]]:
    """Every step of a match played at random, and who made it."""
    rng = random.Random(seed)
    step = rules.setup(Options(), seats, RandomChance(seed))
    yield None, step
    while movers := rules.to_move(step.state):
        (seat,) = movers
        step = played(step.state, seat, rng.choice(rules.legal(step.state, seat)))
        yield seat, step


def random_state(seats: int, seed: int, plies: int) -> State:
    """A match after so many random moves, or at its end."""
    for _, (_, step) in zip(range(plies + 1), random_match(seats, seed), strict=False):
        state = step.state
    return state


def late_state(seats: int, seed: int) -> State:
    """A match before a move that is to be face down, or else before its last move: where a table is nearly full."""
    for _, step in random_match(seats, seed):
        if rules.to_move(step.state):
            state = step.state
            if rules.legal(state, rules.to_move(state)[0])[0].face_down:
                break
    return state


STATES = st.one_of(st.builds(random_state, SEATS, SEEDS, PLIES), st.builds(late_state, SEATS, SEEDS))


@pytest.mark.rule("CG-03")
@pytest.mark.rule("CG-09")
@given(SEATS, SEEDS)
@thoroughly
def test_random_play_ends_after_the_last_seats_last_card_and_no_resident_is_lost(seats: int, seed: int) -> None:
    this = SET_UP[seats]
    movers = []
    for mover, step in random_match(seats, seed):
        state = step.state
        lying = [held for held in state.board if held < FREE]
        beneath = [card.resident for card in state.face_down]
        everything = [*lying, *beneath, *state.removed, *(card for hand in state.hands for card in hand)]
        assert sorted(everything) == list(range(this.in_play))
        assert sorted(card.space for card in state.face_down) == [space for space, held in enumerate(state.board) if held == FACE_DOWN]
        for seat in range(seats):
            assert sum(stack.count(seat) for stack in state.shields) + rules.view(state, None).shields_left[seat] == 5
        movers += [mover] if mover is not None else []
        taken = this.fields * len(this.occupied) + len(movers)
        assert state.board.count(FREE) == this.fields * SLOTS - taken
    assert movers == list(range(seats)) * ROUNDS[seats]
    assert [len(hand) for hand in state.hands] == [1] * (seats - 1) + [0]
    ranks = rules.outcome(state)
    assert ranks is not None
    assert list(ranks) == [1 + sum(other < rank for other in ranks) for rank in ranks]


@pytest.mark.rule("CG-10")
@pytest.mark.rule("CG-11")
@given(SEATS, SEEDS)
@thoroughly
def test_every_face_up_resident_is_scored_once_by_ascending_strength(seats: int, seed: int) -> None:
    for _, step in random_match(seats, seed):
        state = step.state
    scorings = [event for event in step.events if isinstance(event, FieldScored)]
    assert tuple(scorings) == rules.view(state, None).scoring
    points = [0] * seats
    for field, scored in enumerate(scorings):
        assert scored.field == field
        assert tuple(taken.seat for taken in scored.taken) == state.shields[field]
        strengths = [{resident.strength for resident in taken.residents} for taken in scored.taken if taken.residents]
        strengths += [{resident.strength} for resident in scored.left]
        assert all(len(one) == 1 for one in strengths)
        assert [one for (one,) in strengths] == sorted(one for (one,) in strengths)
        residents = [resident for taken in scored.taken for resident in taken.residents] + list(scored.left)
        assert residents == [RESIDENTS[held] for held in sorted(state.board[field * SLOTS : (field + 1) * SLOTS]) if held < FREE]
        for taken in scored.taken:
            points[taken.seat] += sum(resident.strength for resident in taken.residents)
    assert rules.view(state, None).scores == tuple(points)


@pytest.mark.rule("CG-06")
@pytest.mark.rule("CG-07")
@pytest.mark.rule("CG-08")
@given(STATES)
@settings(thoroughly, max_examples=40)
def test_legal_is_exactly_what_apply_accepts_and_a_refusal_changes_nothing(state: State) -> None:
    before = msgspec.msgpack.encode(state)
    for seat in range(len(state.hands)):
        moves = EVERY_MOVE if seat in rules.to_move(state) else EVERY_MOVE[::97]
        accepted = {move for move in moves if not isinstance(rules.apply(state, seat, move, NoChance()), Refusal)}
        legal = rules.legal(state, seat)
        assert set(legal) == accepted
        assert len(set(legal)) == len(legal)
        assert bool(legal) == (seat in rules.to_move(state))
        assert rules.legal(state, seat) == legal
    assert msgspec.msgpack.encode(state) == before


@pytest.mark.rule("CG-06")
@pytest.mark.rule("CG-07")
@given(STATES)
@thoroughly
def test_what_fits_is_what_the_rule_says_told_by_rows_and_columns(state: State) -> None:
    """CG-06 once more, as slow and plain as can be."""
    assume(rules.to_move(state))
    (seat,) = rules.to_move(state)
    view = rules.view(state, seat)
    table = {
        (slot // 3, field * 3 + slot % 3): seen.resident
        for field, fields in enumerate(view.fields)
        for slot, seen in enumerate(fields.slots)
        if seen.resident or not seen.face_down
    }
    fitting = set()
    for (row, column), resident in table.items():
        near = [table.get(place) for place in ((row, column - 1), (row, column + 1), (1 - row, column))]
        lying = [other for other in near if other]
        fitting |= {
            (card, column // 3, row * 3 + column % 3)
            for card in view.hand
            if resident is None and (not lying or any(card.color is other.color or card.strength == other.strength for other in lying))
        }
    legal = rules.legal(state, seat)
    assert {(move.card, move.field, move.slot) for move in legal if not move.face_down} == fitting
    assert {move.face_down for move in legal} == {not fitting}


@given(SEATS, SEEDS)
@thoroughly
def test_a_state_survives_storage_and_is_small(seats: int, seed: int) -> None:
    for _, step in random_match(seats, seed):
        stored = msgspec.msgpack.encode(step.state)
        restored = msgspec.msgpack.decode(stored, type=State)
        assert restored == step.state
        assert len(stored) < 200
        for seat in range(seats):
            assert rules.legal(restored, seat) == rules.legal(step.state, seat)
            assert rules.view(restored, seat) == rules.view(step.state, seat)


# -------------------------------------------------------------------- secrecy


@pytest.mark.rule("CG-03")
@pytest.mark.rule("CG-07")
@given(STATES, st.randoms(use_true_random=False))
@thoroughly
def test_what_a_viewer_gets_does_not_depend_on_what_it_may_not_know(state: State, rng: random.Random) -> None:
    for viewer in (None, *range(len(state.hands))):
        other = vary(state, viewer, rng)
        assert rules.view(other, viewer) == rules.view(state, viewer)
        assert rules.view(rules.end_early(other), viewer) == rules.view(rules.end_early(state), viewer)
        assert rules.to_move(other) == rules.to_move(state)
        assert rules.outcome(other) == rules.outcome(state)
        if viewer is None:
            continue
        assert rules.legal(other, viewer) == rules.legal(state, viewer)
        for move in rng.sample(EVERY_MOVE, 50):
            one, two = (rules.apply(secret, viewer, move, NoChance()) for secret in (state, other))
            if isinstance(one, Refusal):
                assert one == two
            else:
                assert isinstance(two, Step)
                assert one.events == two.events


@pytest.mark.rule("CG-07")
@pytest.mark.rule("CG-09")
@given(STATES, st.randoms(use_true_random=False))
@settings(thoroughly, max_examples=200)
def test_what_others_see_of_a_move_does_not_depend_on_what_they_may_not_know(state: State, rng: random.Random) -> None:
    assume(rules.to_move(state))
    (mover,) = rules.to_move(state)
    move = rng.choice(rules.legal(state, mover))
    step = played(state, mover, move)
    for viewer in (None, *(seat for seat in range(len(state.hands)) if seat != mover)):
        other = vary(state, viewer, rng)
        alike = [candidate for candidate in rules.legal(other, mover) if look(other, mover, candidate) == look(state, mover, move)]
        if not alike:  # the other secrets rule the move out
            continue
        other_step = played(other, mover, rng.choice(alike))
        assert [rules.redact(event, viewer) for event in other_step.events] == [rules.redact(event, viewer) for event in step.events]
        assert rules.view(other_step.state, viewer) == rules.view(step.state, viewer)


@given(STATES, st.randoms(use_true_random=False))
@thoroughly
def test_other_secrets_are_another_deal_of_the_same_residents(state: State, rng: random.Random) -> None:
    for viewer in (None, *range(len(state.hands))):
        other = vary(state, viewer, rng)
        assert sorted(residents(other)) == sorted(residents(state))
        if viewer is not None:
            assert other.hands[viewer] == state.hands[viewer]
            assert [card for card in other.face_down if card.seat == viewer] == [card for card in state.face_down if card.seat == viewer]


def residents(state: State) -> list[int]:
    return [*state.removed, *(card for hand in state.hands for card in hand), *(card.resident for card in state.face_down)]


@pytest.mark.rule("CG-03")
@given(SEATS, SEEDS)
@thoroughly
def test_hands_are_told_in_sorted_order_only(seats: int, seed: int) -> None:
    for _, step in random_match(seats, seed):
        for event in step.events:
            if isinstance(event, HandDealt):
                assert list(event.cards) == sorted(event.cards, key=RESIDENTS.index)
        for seat in range(seats):
            hand = rules.view(step.state, seat).hand
            assert list(hand) == sorted(hand, key=RESIDENTS.index)
