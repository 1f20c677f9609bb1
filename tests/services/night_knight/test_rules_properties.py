"""What holds in every match of Night Knight, tried on random ones: the rules' invariants, legality, storage and secrecy."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from services.night_knight import rules
from services.night_knight.rules import (
    DECK,
    PILE_SIZE,
    PILLOWS,
    ROUNDS,
    SQUIRE_DECK,
    Action,
    CardsRevealed,
    Kind,
    Move,
    Options,
    Ordering,
    OwnCardShown,
    Peek,
    Phase,
    React,
    Reacted,
    Refusal,
    RoundResolved,
    State,
    Step,
    Verdict,
)
from tests.services.night_knight.hidden import look, vary

T = TypeVar("T")

SEATS = st.integers(3, 6)
SEEDS = st.integers(0, 2**32)
OPTIONS = st.builds(
    Options,
    squire=st.booleans(),
    action_ms=st.sampled_from([500, 2000, 4000]),
    own_card_delay_ms=st.sampled_from([0, 150, 2000]),
    countdown_ms=st.integers(0, 10_000),
    ordering=st.sampled_from(Ordering),
    max_compensation_ms=st.integers(0, 300),
)
PLIES = st.integers(0, 300)

# How likely the window ends before anybody else moves.
ENDS = {Phase.COUNTDOWN: 0.7, Phase.ACTION: 0.15, Phase.RESOLUTION: 0.6}

thoroughly = settings(max_examples=60, deadline=None)


class RandomChance:
    """A chance good enough to play with."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        return tuple(self.rng.sample(items, len(items)))


def played(state: State, seat: int, move: Move) -> Step:
    step = rules.apply(state, seat, move, RandomChance(0))
    assert isinstance(step, Step), step
    return step


def timeout(state: State) -> Step:
    return rules.on_timeout(state, RandomChance(0))


def random_match(seats: int, options: Options, seed: int) -> Iterator[Step]:
    """Every step of a match played at random: by moves, and by windows that end."""
    rng = random.Random(seed)
    step = rules.setup(options, seats, RandomChance(seed))
    yield step
    while step.state.phase is not Phase.FINISHED:
        movers = rules.to_move(step.state)
        if not movers or rng.random() < ENDS[step.state.phase]:
            step = timeout(step.state)
        else:
            seat = rng.choice(movers)
            step = played(step.state, seat, rng.choice(rules.legal(step.state, seat)))
        yield step


def random_state(seats: int, options: Options, seed: int, plies: int) -> State:
    """A match after so many random steps, or at its end."""
    for _, step in zip(range(plies + 1), random_match(seats, options, seed), strict=False):
        state = step.state
    return state


@pytest.mark.rule("NK-01")
@pytest.mark.rule("NK-03")
@pytest.mark.rule("NK-15")
@pytest.mark.rule("NK-16")
@pytest.mark.rule("NK-20")
@given(SEATS, OPTIONS, SEEDS)
@thoroughly
def test_random_play_ends_with_every_card_accounted_for(seats: int, options: Options, seed: int) -> None:
    deck = Counter(SQUIRE_DECK if options.squire else DECK)
    unseen: Counter[Kind] | None = None
    gone: Counter[Kind] = Counter()
    for step in random_match(seats, options, seed):
        state = step.state
        for event in step.events:
            if isinstance(event, RoundResolved):
                gone.update(result.card for result in event.results if result.right and result.card)
        piles = Counter(kind for pile in state.piles for kind in pile)
        unseen = deck - piles if unseen is None else unseen
        assert unseen.total() == deck.total() - seats * PILE_SIZE[seats]
        assert piles + gone + unseen == deck
        assert state.round <= ROUNDS
        assert (rules.outcome(state) is None) == (state.phase is not Phase.FINISHED)
    ranks = rules.outcome(state)
    assert ranks is not None
    if all(state.piles):
        assert ranks == (2,) * seats
    else:
        assert ranks == tuple(1 + sum(len(other) < len(pile) for other in state.piles) for pile in state.piles)


@pytest.mark.rule("NK-10")
@pytest.mark.rule("NK-13")
@pytest.mark.rule("NK-19")
@given(SEATS, OPTIONS, SEEDS)
@thoroughly
def test_pillows_are_never_oversold_and_ranks_have_no_gaps(seats: int, options: Options, seed: int) -> None:
    for step in random_match(seats, options, seed):
        view = rules.view(step.state, None)
        granted = [reaction for reaction in view.reactions if reaction.verdict is Verdict.GRANTED]
        assert view.pillows_left == PILLOWS[seats] - len(granted) >= 0
        assert [reaction.rank for reaction in view.reactions] == list(range(1, len(view.reactions) + 1))
        reacted = [reaction.seat for reaction in view.reactions]
        assert len(set(reacted)) == len(reacted)
        assert not set(reacted) & set(view.out)
        if view.phase is Phase.ACTION:
            assert view.pillows_left
            assert rules.to_move(step.state)


@pytest.mark.rule("NK-04")
@given(SEATS, OPTIONS, SEEDS)
@thoroughly
def test_every_round_reveals_then_shows_own_cards_then_resolves(seats: int, options: Options, seed: int) -> None:
    told: list[type] = []
    for step in random_match(seats, options, seed):
        for event in step.events:
            if isinstance(event, rules.RoundStarted):
                assert told in ([], [CardsRevealed, OwnCardShown, RoundResolved], [RoundResolved])
                assert (told == [RoundResolved]) == (step.state.last_round is not None and not step.state.last_round.cards)
                told = []
            elif isinstance(event, CardsRevealed | OwnCardShown | RoundResolved):
                told.append(type(event))


def every_move(state: State) -> list[Move]:
    """Every move that a client could send for the rounds about the present one, and targets that are not there."""
    rounds = range(state.round - 1, state.round + 2)
    targets = [None, -1, *range(7)]
    reactions = [React(round_, action, target) for round_ in rounds for action in Action for target in targets]
    return [*map(Peek, rounds), *reactions]


@pytest.mark.rule("NK-14")
@given(SEATS, OPTIONS, SEEDS, PLIES)
@thoroughly
def test_legal_is_exactly_what_apply_accepts_and_a_refusal_changes_nothing(seats: int, options: Options, seed: int, plies: int) -> None:
    state = random_state(seats, options, seed, plies)
    before = msgspec.msgpack.encode(state)
    for seat in range(seats):
        accepted = {move for move in every_move(state) if not isinstance(rules.apply(state, seat, move, RandomChance(0)), Refusal)}
        legal = rules.legal(state, seat)
        assert set(legal) == accepted
        assert len(set(legal)) == len(legal)
        assert bool(legal) == (seat in rules.to_move(state))
        assert rules.legal(state, seat) == legal
    assert msgspec.msgpack.encode(state) == before


@given(SEATS, OPTIONS, SEEDS)
@thoroughly
def test_a_state_survives_storage_and_is_small(seats: int, options: Options, seed: int) -> None:
    for step in random_match(seats, options, seed):
        stored = msgspec.msgpack.encode(step.state)
        restored = msgspec.msgpack.decode(stored, type=State)
        assert restored == step.state
        assert len(stored) < 120 * seats
        assert rules.window(restored) == rules.window(step.state)
        assert rules.outcome(restored) == rules.outcome(step.state)
        if step.state.phase is not Phase.FINISHED:
            assert timeout(restored) == timeout(step.state)
        for seat in range(seats):
            assert rules.legal(restored, seat) == rules.legal(step.state, seat)
            assert rules.view(restored, seat) == rules.view(step.state, seat)


# -------------------------------------------------------------------- secrecy


@pytest.mark.rule("NK-03")
@pytest.mark.rule("NK-04")
@given(SEATS, OPTIONS, SEEDS, PLIES, st.randoms(use_true_random=False))
@thoroughly
def test_what_a_viewer_gets_does_not_depend_on_what_it_may_not_know(
    seats: int, options: Options, seed: int, plies: int, rng: random.Random
) -> None:
    state = random_state(seats, options, seed, plies)
    for viewer in (None, *range(seats)):
        other = vary(state, viewer, rng)
        assert rules.view(other, viewer) == rules.view(state, viewer)
        assert rules.view(rules.end_early(other), viewer) == rules.view(rules.end_early(state), viewer)
        assert rules.to_move(other) == rules.to_move(state)
        assert rules.window(other) == rules.window(state)
        assert rules.outcome(other) == rules.outcome(state)
        if viewer is None:
            continue
        assert rules.legal(other, viewer) == rules.legal(state, viewer)
        for move in rng.sample(every_move(state), 50):
            one, two = (rules.apply(secret, viewer, move, RandomChance(0)) for secret in (state, other))
            if isinstance(one, Refusal):
                assert one == two


@pytest.mark.rule("NK-04")
@given(SEATS, OPTIONS, SEEDS, PLIES, st.randoms(use_true_random=False))
@thoroughly
def test_what_others_see_of_a_move_does_not_depend_on_what_they_may_not_know(
    seats: int, options: Options, seed: int, plies: int, rng: random.Random
) -> None:
    state = random_state(seats, options, seed, plies)
    assume(rules.to_move(state))
    mover = rng.choice(rules.to_move(state))
    move = rng.choice(rules.legal(state, mover))
    assume(look(state, mover, move) is not None)
    step = played(state, mover, move)
    for viewer in (None, *(seat for seat in range(seats) if seat != mover)):
        other = vary(state, viewer, rng)
        assert look(other, mover, move) == look(state, mover, move)
        other_step = played(other, mover, move)
        assert [rules.redact(event, viewer) for event in other_step.events] == [rules.redact(event, viewer) for event in step.events]
        assert rules.view(other_step.state, viewer) == rules.view(step.state, viewer)


@pytest.mark.rule("NK-04")
@given(SEATS, OPTIONS, SEEDS, PLIES, st.randoms(use_true_random=False))
@thoroughly
def test_a_reveal_tells_a_seat_nothing_of_its_own_card_and_spectators_nothing(
    seats: int, options: Options, seed: int, plies: int, rng: random.Random
) -> None:
    state = random_state(seats, options._replace(own_card_delay_ms=150), seed, plies)
    assume(state.phase is Phase.COUNTDOWN and len(state.out) < seats)
    revealed = timeout(state)
    for viewer in (None, *range(seats)):
        other = vary(revealed.state, viewer, rng)  # other own cards, and others' as they are
        before = other._replace(phase=Phase.COUNTDOWN)
        again = timeout(before)
        assert again.state == other
        assert [rules.redact(event, viewer) for event in again.events] == [rules.redact(event, viewer) for event in revealed.events]


@pytest.mark.rule("NK-04")
@given(SEATS, OPTIONS, SEEDS)
@thoroughly
def test_a_reaction_tells_nothing_of_cards_until_they_are_shown(seats: int, options: Options, seed: int) -> None:
    for step in random_match(seats, options, seed):
        resolved = [isinstance(event, RoundResolved) for event in step.events]
        if any(isinstance(event, Reacted) for event in step.events) and not any(resolved):
            assert len(step.events) == 1
