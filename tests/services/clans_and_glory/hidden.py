"""What the viewers of Clans and Glory may not know: hands and residents removed (CG-03), and what others played face down (CG-07)."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

from services.clans_and_glory.rules import Move, State


def vary(state: State, viewer: int | None, rng: random.Random) -> State:
    """The match as it might be as well, for all that the viewer was told: other hands, residents removed and faces of face-down cards.

    All that lies open, all numbers of cards, the viewer's own hand and its own face-down cards stay. What might be inferred does not: who
    played face down had nothing that fitted, and may now hold, or have held, something that did.
    """
    secret = [seat for seat in range(len(state.hands)) if seat != viewer]
    residents = [
        *state.removed,
        *(card for seat in secret for card in state.hands[seat]),
        *(card.resident for card in state.face_down if card.seat in secret),
    ]
    rng.shuffle(residents)
    dealt = iter(residents)
    return state._replace(
        removed=tuple(islice(dealt, len(state.removed))),
        hands=tuple(tuple(sorted(islice(dealt, len(hand)))) if seat in secret else hand for seat, hand in enumerate(state.hands)),
        face_down=tuple(card._replace(resident=next(dealt)) if card.seat in secret else card for card in state.face_down),
    )


def look(state: State, seat: int, move: Move) -> Any:
    """What everybody else sees of a move: any card will do for one that is played face down (CG-07). Scoring shows nothing hidden."""
    return (move.field, move.slot, move.shield) if move.face_down else move
