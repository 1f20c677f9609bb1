"""Clans and Glory in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gloaming.clans_and_glory.v1 import clans_and_glory_pb2 as pb
from gloaming.client.words.common import count, listed, word


def event(happened: pb.Event, names: Sequence[str]) -> str:
    """An event in a sentence or two."""
    match happened.WhichOneof("kind"):
        case "hand_dealt":
            dealt = happened.hand_dealt
            which = f": {_residents(dealt.cards)}" if dealt.cards else ""
            return f"{names[dealt.seat]} is dealt {count(dealt.count, 'resident')}{which}."
        case "resident_placed":
            placed = happened.resident_placed
            where = space(placed.field, placed.slot)
            if not placed.HasField("seat"):
                return f"{resident(placed.resident).capitalize()} lies on {where}."
            if not placed.face_down:
                return f"{names[placed.seat]} plays {resident(placed.resident)} to {where}."
            which = f" ({resident(placed.resident)})" if placed.HasField("resident") else ""
            return f"{names[placed.seat]} plays a card face down{which} to {where}."
        case "shield_placed":
            return f"{names[happened.shield_placed.seat]} puts a shield on field {happened.shield_placed.field}."
        case "field_scored":
            scored = happened.field_scored
            taken = [f"{names[each.seat]}'s shield takes {_residents(each.residents)}" for each in scored.taken]
            left = [f"{_residents(scored.left)} stay behind"] if scored.left else []
            return f"Field {scored.field}: {'; '.join([*taken, *left]) or 'nobody'}."
        case _:
            return ""


def move(done: pb.Move, names: Sequence[str]) -> str:
    """A move in a few words."""
    place = done.place
    return (
        f"{resident(place.card)} to {space(place.field, place.slot)}"
        f"{', face down' if place.face_down else ''}{', with a shield' if place.shield else ''}"
    )


def resident(card: pb.Resident) -> str:
    """A resident: its colour and strength."""
    return f"{word(pb.Resident.Color, card.color).lower()} {card.strength}"


def space(field: int, slot: int) -> str:
    """A space, by its field and its number there."""
    return f"field {field}, space {slot}"


def _residents(cards: Iterable[pb.Resident]) -> str:
    return listed(resident(card) for card in cards)
