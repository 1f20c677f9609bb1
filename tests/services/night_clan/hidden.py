"""What the viewers of Night Clan may not know (NC-11): others' hands, the order of decks, and what lies face down, their own cards too."""

from __future__ import annotations

import random
from typing import Any

from services.night_clan.rules import FACE_DOWN_AT_NIGHT, Keep, Kind, Move, Play, State, Variant


def vary(state: State, viewer: int | None, rng: random.Random) -> State:
    """The match as it might be as well, for all that the viewer may know: other hands, decks and face-down cards."""
    hands, decks, board = list(state.hands), list(state.decks), list(state.board)
    for owner in range(len(hands)):
        hidden = list(decks[owner])
        if owner != viewer:
            hidden += hands[owner]
        lying = [card for cards in board for card in cards if card.owner == owner and not face_up(state, card.kind)]
        hidden += [card.kind for card in lying]
        face_down = rng.sample([kind for kind in hidden if kind in FACE_DOWN_AT_NIGHT], len(lying))
        for card, kind in zip(lying, face_down, strict=True):
            board = [tuple(card._replace(kind=kind) if other is card else other for other in cards) for cards in board]
            hidden.remove(kind)
        rng.shuffle(hidden)
        if owner != viewer:
            size = len(hands[owner])
            hands[owner], hidden = tuple(sorted(hidden[:size])), hidden[size:]
        decks[owner] = tuple(hidden)
    return state._replace(hands=tuple(hands), decks=tuple(decks), board=tuple(board))


def look(state: State, seat: int, move: Move) -> Any:
    """What everybody else sees of a move: any card will do for one that is played face down. A mulligan and the last card show more."""
    if isinstance(move, Play):
        is_last = sum(map(len, state.hands)) == 1
        return None if is_last else move if face_up(state, move.card) else move.location
    return move if isinstance(move, Keep) else None


def face_up(state: State, kind: Kind) -> bool:
    """Whether a card of that kind lies face up (NC-09)."""
    return state.variant is Variant.DAY or kind not in FACE_DOWN_AT_NIGHT
