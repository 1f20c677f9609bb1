"""What holds in every match of Night Clan, tried on random ones: the rules' invariants, legality, storage and secrecy."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from services.night_clan import rules
from services.night_clan.rules import (
    CAPACITY,
    DECK,
    LOCATIONS,
    CardPlayed,
    Keep,
    Kind,
    Location,
    Move,
    Mulligan,
    Options,
    Phase,
    Play,
    Refusal,
    Relocate,
    State,
    Step,
    Variant,
)
from tests.services.night_clan.hidden import look, vary

T = TypeVar("T")

SEATS = st.integers(2, 4)
SEEDS = st.integers(0, 2**32)
VARIANTS = st.sampled_from(Variant)
PLIES = st.integers(0, 60)  # a match of four has 56 or a few more

thoroughly = settings(max_examples=60, deadline=None)


class RandomChance:
    """A chance good enough to play with."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        return tuple(self.rng.sample(items, len(items)))


def played(state: State, seat: int, move: Move, chance: rules.Chance) -> Step:
    step = rules.apply(state, seat, move, chance)
    assert isinstance(step, Step), step
    return step


def random_match(seats: int, variant: Variant, seed: int) -> Iterator[tuple[int | None, Step]]:
    """Every step of a match played at random, and who made it."""
    rng, chance = random.Random(seed), RandomChance(seed)
    step = rules.setup(Options(variant), seats, chance)
    yield None, step
    while movers := rules.to_move(step.state):
        seat = rng.choice(movers)
        step = played(step.state, seat, rng.choice(rules.legal(step.state, seat)), chance)
        yield seat, step


def random_state(seats: int, variant: Variant, seed: int, plies: int) -> State:
    """A match after so many random moves, or at its end."""
    for _, (_, step) in zip(range(plies + 1), random_match(seats, variant, seed), strict=False):
        state = step.state
    return state


@pytest.mark.rule("NC-01")
@pytest.mark.rule("NC-07")
@pytest.mark.rule("NC-08")
@given(SEATS, VARIANTS, SEEDS)
@thoroughly
def test_random_play_ends_after_seven_turns_a_player_with_every_card_on_a_full_board(seats: int, variant: Variant, seed: int) -> None:
    turns: list[tuple[int, int]] = []  # seat, plays
    for mover, step in random_match(seats, variant, seed):
        state = step.state
        for seat in range(seats):
            lying = [card.kind for cards in state.board for card in cards if card.owner == seat]
            assert Counter([*lying, *state.hands[seat], *state.decks[seat]]) == Counter(DECK)
        for location, cards in zip(LOCATIONS[seats], state.board, strict=True):
            assert len(cards) <= CAPACITY[location]
        ids = [card.card_id for cards in state.board for card in cards]
        assert sorted(ids) == sorted(f"c{number + 1}" for number in range(len(ids)))
        if mover is not None and any(isinstance(event, CardPlayed) for event in step.events):
            if turns and turns[-1][0] == mover:
                turns[-1] = (mover, turns[-1][1] + 1)
            else:
                turns.append((mover, 1))
    assert turns == [(seat, 2) for _ in range(6) for seat in range(seats)] + [(seat, 1) for seat in range(seats)]
    assert [len(cards) for cards in state.board] == [CAPACITY[location] for location in LOCATIONS[seats]]
    ranks = rules.outcome(state)
    assert ranks is not None
    assert sorted(ranks) == sorted(1 + sum(other < rank for other in ranks) for rank in ranks)


def every_move(state: State) -> list[Move]:
    """Every move that a client could send, and some ids of cards that are not there."""
    ids = [card.card_id for cards in state.board for card in cards]
    unknown = [f"c{len(ids) + 1}", "c0", ""]
    moves: list[Move] = [Keep(), Mulligan()]
    for location in Location:
        for kind in Kind:
            moves.append(Play(kind, location))
            relocated = [*ids, *unknown] if kind is Kind.NIGHT_WATCH else ids[:2]
            moves += [Play(kind, location, Relocate(card_id, to)) for card_id in relocated for to in Location]
    return moves


@pytest.mark.rule("NC-06")
@pytest.mark.rule("NC-10")
@given(SEATS, VARIANTS, SEEDS, PLIES)
@thoroughly
def test_legal_is_exactly_what_apply_accepts_and_a_refusal_changes_nothing(seats: int, variant: Variant, seed: int, plies: int) -> None:
    state = random_state(seats, variant, seed, plies)
    before = msgspec.msgpack.encode(state)
    for seat in range(seats):
        moves = every_move(state)
        accepted = {move for move in moves if not isinstance(rules.apply(state, seat, move, RandomChance(0)), Refusal)}
        legal = rules.legal(state, seat)
        assert set(legal) == accepted
        assert len(set(legal)) == len(legal)
        assert bool(legal) == (seat in rules.to_move(state))
        assert rules.legal(state, seat) == legal
    assert msgspec.msgpack.encode(state) == before


@given(SEATS, VARIANTS, SEEDS)
@thoroughly
def test_a_state_survives_storage_and_is_small(seats: int, variant: Variant, seed: int) -> None:
    for _, step in random_match(seats, variant, seed):
        stored = msgspec.msgpack.encode(step.state)
        restored = msgspec.msgpack.decode(stored, type=State)
        assert restored == step.state
        assert len(stored) < 350 * seats
        for seat in range(seats):
            assert rules.legal(restored, seat) == rules.legal(step.state, seat)
            assert rules.view(restored, seat) == rules.view(step.state, seat)


# -------------------------------------------------------------------- secrecy


@pytest.mark.rule("NC-11")
@given(SEATS, VARIANTS, SEEDS, PLIES, st.randoms(use_true_random=False))
@thoroughly
def test_what_a_viewer_gets_does_not_depend_on_what_it_may_not_know(
    seats: int, variant: Variant, seed: int, plies: int, rng: random.Random
) -> None:
    state = random_state(seats, variant, seed, plies)
    assume(state.phase is not Phase.FINISHED)
    for viewer in (None, *range(seats)):
        other = vary(state, viewer, rng)
        assert rules.view(other, viewer) == rules.view(state, viewer)
        assert rules.to_move(other) == rules.to_move(state)
        if viewer is None:
            continue
        assert rules.legal(other, viewer) == rules.legal(state, viewer)
        for move in rng.sample(every_move(state), 50):
            one, two = (rules.apply(secret, viewer, move, RandomChance(seed)) for secret in (state, other))
            if isinstance(one, Refusal):
                assert one == two


@pytest.mark.rule("NC-11")
@given(SEATS, VARIANTS, SEEDS, PLIES, st.randoms(use_true_random=False))
@thoroughly
def test_what_others_see_of_a_move_does_not_depend_on_what_they_may_not_know(
    seats: int, variant: Variant, seed: int, plies: int, rng: random.Random
) -> None:
    state = random_state(seats, variant, seed, plies)
    assume(rules.to_move(state))
    mover = rng.choice(rules.to_move(state))
    move = rng.choice(rules.legal(state, mover))
    step = played(state, mover, move, RandomChance(seed))
    assume(step.state.phase is not Phase.FINISHED)
    for viewer in (None, *(seat for seat in range(seats) if seat != mover)):
        other = vary(state, viewer, rng)
        # The same move to the eye: any card will do for one that is played face down.
        alike = [candidate for candidate in rules.legal(other, mover) if look(other, mover, candidate) == look(state, mover, move)]
        if not alike or look(state, mover, move) is None:  # the other secrets rule the move out; or it shows them
            continue
        other_step = played(other, mover, rng.choice(alike), RandomChance(seed + 1))
        assert [rules.redact(event, viewer) for event in other_step.events] == [rules.redact(event, viewer) for event in step.events]
        assert rules.view(other_step.state, viewer) == rules.view(step.state, viewer)


@pytest.mark.rule("NC-11")
@given(SEATS, VARIANTS, SEEDS)
@thoroughly
def test_hands_are_told_in_sorted_order_only(seats: int, variant: Variant, seed: int) -> None:
    for _, step in random_match(seats, variant, seed):
        for event in step.events:
            if isinstance(event, rules.CardsDrawn | rules.HandShown):
                assert list(event.cards) == sorted(event.cards)
        for seat in range(seats):
            hand = rules.view(step.state, seat).hand
            assert list(hand) == sorted(hand)
