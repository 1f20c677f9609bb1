"""What holds in every match of Dark Is the Night, tried on random ones: the rules' invariants, legality, storage and secrecy."""

import random
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from services.dark_is_the_night import rules
from services.dark_is_the_night.rules import (
    HUNTRESS,
    MONSTER,
    TURN_LIMIT,
    Arrow,
    Bell,
    Camp,
    Compass,
    DawnNear,
    Feint,
    Ham,
    Hunt,
    Lair,
    Lured,
    MonsterMoved,
    Move,
    Options,
    Phase,
    Prowl,
    Refusal,
    Ring,
    State,
    Step,
    Sword,
)
from tests.services.dark_is_the_night.hidden import look, possible, vary

SEEDS = st.integers(0, 2**32)
DAWNS = st.sampled_from([1, 2, 5, 50])
PLIES = st.integers(0, 60)

thoroughly = settings(max_examples=60, deadline=None)

# Every move that there is, and some that a client could not even send.
EVERY_MOVE: list[Move] = [
    *map(Lair, range(-1, 14)),
    *map(Camp, range(-1, 14)),
    *map(Hunt, range(-1, 14)),
    *(Hunt(to, Sword(square)) for to in range(10) for square in range(14)),
    *(Hunt(to, Arrow(direction)) for to in range(10) for direction in Compass),
    *(Hunt(to, Bell(square)) for to in range(10) for square in range(14)),
    *(Hunt(to, Ham(square)) for to in range(10) for square in range(14)),
    *(Prowl(way, attack) for way in Ring for attack in (False, True)),
    *map(Feint, range(-4, 5)),
    *map(Lured, Ring),
]


def played(state: State, seat: int, move: Move) -> Step:
    step = rules.apply(state, seat, move, None)
    assert isinstance(step, Step), step
    return step


def random_match(dawn: int, seed: int) -> Iterator[Step]:
    """Every step of a match played at random; some Huntresses keep their tokens for long."""
    rng = random.Random(seed)
    thrift = rng.choice([0.0, 0.9, 0.99])
    step = rules.setup(Options(dawn), 2, None)
    yield step
    while movers := rules.to_move(step.state):
        moves = rules.legal(step.state, movers[0])
        if rng.random() < thrift:
            moves = [move for move in moves if not isinstance(move, Hunt) or not move.action] or moves
        step = played(step.state, movers[0], rng.choice(moves))
        yield step


def random_state(dawn: int, seed: int, plies: int) -> State:
    """A match after so many random moves; or sooner, where it has not so many."""
    steps = list(random_match(dawn, seed))
    return steps[plies % len(steps)].state


@pytest.mark.rule("DN-07")
@pytest.mark.rule("DN-14")
@pytest.mark.rule("DN-15")
@given(DAWNS, SEEDS)
@thoroughly
def test_random_play_ends_by_a_kill_or_at_dawn_and_no_token_comes_back(dawn: int, seed: int) -> None:
    last_token = None
    before = None
    for step in random_match(dawn, seed):
        state = step.state
        if before:
            assert all(now <= then for now, then in zip(state.tokens, before.tokens, strict=True))
            assert sum(before.tokens) - sum(state.tokens) in (0, 1)
            assert state.feint_left <= before.feint_left
            assert set(before.lit) <= set(state.lit) <= {2, 5, 8, 11}
            assert state.turns - before.turns in (0, 1)
            assert state.monster not in (state.bell, 0) or state.phase is Phase.LAIR
        for event in step.events:
            if isinstance(event, DawnNear):
                last_token = state.turns
                assert not any(state.tokens)
        assert (state.ranks == ()) == (state.phase is not Phase.FINISHED)
        assert (state.phase is Phase.LURED) == (state.ham > 0)
        before = state
    assert rules.to_move(state) == ()
    ranks = rules.outcome(state)
    if ranks == (1, 1):
        assert state.turns == TURN_LIMIT if last_token is None else min(TURN_LIMIT, last_token + dawn)
    else:
        assert ranks in ((1, 2), (2, 1))
        assert state.turns <= (TURN_LIMIT if last_token is None else last_token + dawn)


@pytest.mark.rule("DN-03")
@pytest.mark.rule("DN-07")
@given(DAWNS, SEEDS, PLIES)
@thoroughly
def test_legal_is_exactly_what_apply_accepts_and_a_refusal_changes_nothing(dawn: int, seed: int, plies: int) -> None:
    state = random_state(dawn, seed, plies)
    before = msgspec.msgpack.encode(state)
    for seat in (HUNTRESS, MONSTER):
        accepted = {move for move in EVERY_MOVE if not isinstance(rules.apply(state, seat, move, None), Refusal)}
        legal = rules.legal(state, seat)
        assert set(legal) == accepted
        assert len(set(legal)) == len(legal)
        assert bool(legal) == (seat in rules.to_move(state))
        assert rules.legal(state, seat) == legal
    assert msgspec.msgpack.encode(state) == before


@given(DAWNS, SEEDS)
@thoroughly
def test_a_state_survives_storage_and_is_small(dawn: int, seed: int) -> None:
    for step in random_match(dawn, seed):
        stored = msgspec.msgpack.encode(step.state)
        restored = msgspec.msgpack.decode(stored, type=State)
        assert restored == step.state
        assert msgspec.msgpack.encode(restored) == stored
        assert len(stored) < 60 + 12 * len(step.state.told)
        for seat in (HUNTRESS, MONSTER):
            assert rules.legal(restored, seat) == rules.legal(step.state, seat)
            assert rules.view(restored, seat) == rules.view(step.state, seat)


@pytest.mark.rule("DN-13")
@given(DAWNS, SEEDS)
@thoroughly
def test_what_is_announced_fits_where_the_monster_is(dawn: int, seed: int) -> None:
    for step in random_match(dawn, seed):
        if step.state.monster and not step.state.ranks:
            assert step.state.monster in possible(step.state)


# -------------------------------------------------------------------- secrecy


@pytest.mark.rule("DN-16")
@given(DAWNS, SEEDS, PLIES, st.randoms(use_true_random=False))
@thoroughly
def test_what_a_viewer_gets_does_not_depend_on_what_it_may_not_know(dawn: int, seed: int, plies: int, rng: random.Random) -> None:
    state = random_state(dawn, seed, plies)
    for viewer in (None, HUNTRESS, MONSTER):
        other = vary(state, viewer, rng)
        assert rules.view(other, viewer) == rules.view(state, viewer)
        assert rules.to_move(other) == rules.to_move(state)
        assert rules.outcome(other) == rules.outcome(state)
        assert rules.view(rules.end_early(other), viewer) == rules.view(rules.end_early(state), viewer)
        if viewer is None:
            continue
        assert rules.legal(other, viewer) == rules.legal(state, viewer)
        for move in EVERY_MOVE:
            one, two = (rules.apply(secret, viewer, move, None) for secret in (state, other))
            assert isinstance(one, Refusal) == isinstance(two, Refusal)
            if isinstance(one, Refusal):
                assert one == two


@pytest.mark.rule("DN-16")
@given(DAWNS, SEEDS, PLIES, st.randoms(use_true_random=False))
@thoroughly
def test_what_others_see_of_a_move_does_not_depend_on_what_they_may_not_know(dawn: int, seed: int, plies: int, rng: random.Random) -> None:
    state = random_state(dawn, seed, plies)
    assume(rules.to_move(state))
    (mover,) = rules.to_move(state)
    other = vary(state, None, rng)
    for move in rules.legal(state, mover):
        seen = look(state, mover, move)
        alike = [candidate for candidate in rules.legal(other, mover) if look(other, mover, candidate) == seen]
        if seen is None or not alike:  # it shows the Monster; or the other square rules it out
            continue
        step, other_step = played(state, mover, move), played(other, mover, rng.choice(alike))
        for viewer in {None, HUNTRESS} if mover == MONSTER else {None}:
            assert [rules.redact(event, viewer) for event in other_step.events] == [rules.redact(event, viewer) for event in step.events]
            assert rules.view(other_step.state, viewer) == rules.view(step.state, viewer)


@pytest.mark.rule("DN-16")
@given(DAWNS, SEEDS, PLIES)
@thoroughly
def test_the_huntress_learns_of_her_own_move_what_is_announced_and_no_more(dawn: int, seed: int, plies: int) -> None:
    state = random_state(dawn, seed, plies)
    for move in rules.legal(state, HUNTRESS):
        by_look: dict[str, tuple[object, object]] = {}
        for square in possible(state):
            other = state._replace(monster=square)
            if (seen := look(other, HUNTRESS, move)) is not None:
                step = played(other, HUNTRESS, move)
                told = [rules.redact(event, HUNTRESS) for event in step.events], rules.view(step.state, HUNTRESS)
                assert by_look.setdefault(repr(seen), told) == told


@pytest.mark.rule("DN-16")
@given(DAWNS, SEEDS)
@thoroughly
def test_every_turn_of_the_monsters_and_every_ham_is_one_movement_to_the_eye(dawn: int, seed: int) -> None:
    before = None
    for step in random_match(dawn, seed):
        moved = [event for event in step.events if isinstance(event, MonsterMoved)]
        assert {rules.redact(event, HUNTRESS) for event in moved} <= {MonsterMoved(None)}
        assert len(moved) <= 1
        if before and before.phase is Phase.PROWL:
            assert len(moved) == 1
        before = step.state
