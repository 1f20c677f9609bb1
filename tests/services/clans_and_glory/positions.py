"""Positions of Clans and Glory as tests write them.

R, O, Y, G, B, P are the colours and W, the wolf, is grey: `R3` is the red resident of strength 3. Tables are written as they lie, the upper
row and the lower one: `..` is a free space, `##` a card that lies face down, and `|` parts two fields.
"""

from __future__ import annotations

from services.clans_and_glory.rules import FACE_DOWN, FREE, RESIDENTS, SET_UP, SLOTS, Color, FaceDown, Resident, State

COLORS = dict(zip("ROYGBPW", Color, strict=True))

# 22 of 24 spaces are taken. What is free lies near Y3, G3, B4 (field 1, slot 0) and near G4, P4 (field 3, slot 2): neither takes W5 or W6.
UPPER = "R3 O3 Y3 | .. G3 B3 | P3 R4 O4 | Y4 G4 .."
LOWER = "G6 R5 O5 | B4 Y5 G5 | B5 P5 R6 | O6 Y6 P4"
A_FREE, B_FREE = (1, 0), (3, 2)


def card(written: str) -> Resident:
    """A resident."""
    return Resident(COLORS[written[0]], int(written[1]))


def cards(written: str) -> tuple[Resident, ...]:
    """Residents, in the order written."""
    return tuple(map(card, written.split()))


def numbers(written: str) -> tuple[int, ...]:
    """Residents as a state holds a hand."""
    return tuple(sorted(map(RESIDENTS.index, cards(written))))


def position(
    upper: str,
    lower: str,
    hands: tuple[str, ...],
    shields: dict[int, tuple[int, ...]] | None = None,
    turn: int = 0,
    beneath: str = "",
) -> State:
    """A position in play. Columns that are not written are free; `beneath` names what lies face down, the upper row first, by seat 1."""
    fields = SET_UP[len(hands)].fields
    board, face_down, faces = [FREE] * (fields * SLOTS), [], iter(cards(beneath))
    for row, written in enumerate((upper, lower)):
        for column, held in enumerate(written.replace("|", " ").split()):
            space = column // 3 * SLOTS + row * 3 + column % 3
            if held == "##":
                board[space] = FACE_DOWN
                face_down.append(FaceDown(space, RESIDENTS.index(next(faces, card("R3"))), seat=1))
            elif held != "..":
                board[space] = RESIDENTS.index(card(held))
    return State(
        board=tuple(board),
        face_down=tuple(face_down),
        shields=tuple((shields or {}).get(field, ()) for field in range(fields)),
        hands=tuple(map(numbers, hands)),
        removed=(),
        turn=turn,
    )
