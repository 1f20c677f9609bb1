"""What the viewers of Night Knight may not know: every pile (NK-03), and what is revealed until they are shown it (NK-04)."""

from __future__ import annotations

import random
from typing import Any

from services.night_knight import rules
from services.night_knight.rules import Move, Phase, State


def vary(state: State, viewer: int | None, rng: random.Random) -> State:
    """The match as it might be as well, for all that the viewer may know: other cards wherever it has seen none."""
    known = _known(state, viewer)
    unknown = [(seat, at) for seat, pile in enumerate(state.piles) for at in range(len(pile)) if (seat, at) not in known]
    kinds = [state.piles[seat][at] for seat, at in unknown]
    rng.shuffle(kinds)
    piles = [list(pile) for pile in state.piles]
    for (seat, at), kind in zip(unknown, kinds, strict=True):
        piles[seat][at] = kind
    return state._replace(piles=tuple(map(tuple, piles)))


def look(state: State, seat: int, move: Move) -> Any:
    """What everybody else sees of a move: all of it. One that closes the round before everybody sees their own card shows that card."""
    nothing: Any = None
    step = rules.apply(state, seat, move, nothing)
    assert isinstance(step, rules.Step)
    return None if any(isinstance(event, rules.OwnCardShown) for event in step.events) else move


def _known(state: State, viewer: int | None) -> set[tuple[int, int]]:
    """Seat and place in the pile of the cards that the viewer sees, and of those that it has just seen going to the bottom."""
    known = set()
    if state.phase is Phase.ACTION:
        known |= {(seat, 0) for seat, kind in rules.view(state, viewer).cards if kind is not None}
    if state.last_round is not None:
        known |= {(seat, len(state.piles[seat]) - 1) for seat, card, right, _ in state.last_round.results if card and not right}
    return known
