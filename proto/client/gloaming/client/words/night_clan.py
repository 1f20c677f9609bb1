"""Night Clan in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gloaming.client.words.common import a, count, listed, word
from gloaming.night_clan.v1 import night_clan_pb2 as pb

_EFFECTS = {
    pb.LocationScored.SPOILED: "Spoiled by Trolls. ",
    pb.LocationScored.NEGATED: "Mistletoe holds the Trolls. ",
}


def event(happened: pb.Event, names: Sequence[str]) -> str:
    """An event in a sentence or two."""
    match happened.WhichOneof("kind"):
        case "hand_kept":
            return f"{names[happened.hand_kept.seat]} keeps the hand."
        case "hand_shown":
            return f"{names[happened.hand_shown.seat]} shows {_cards(happened.hand_shown.cards)} and draws anew."
        case "cards_drawn":
            drawn = happened.cards_drawn
            which = f": {_cards(drawn.cards)}" if drawn.cards else ""
            return f"{names[drawn.seat]} draws {count(drawn.count, 'card')}{which}."
        case "card_played":
            played = happened.card_played
            card = a(kind(played.card.kind)) if played.card.HasField("kind") else "a card face down"
            return f"{names[played.seat]} plays {card} ({played.card.card_id}) at {place(played.location)}."
        case "card_relocated":
            moved = happened.card_relocated
            return f"{names[moved.seat]}'s Night Watch takes {moved.card_id} from {place(getattr(moved, 'from'))} to {place(moved.to)}."
        case "location_scored":
            return _scored(happened.location_scored, names)
        case _:
            return ""


def move(done: pb.Move, names: Sequence[str]) -> str:
    """A move in a few words."""
    match done.WhichOneof("kind"):
        case "keep":
            return "keep the hand"
        case "mulligan":
            return "show the hand and draw anew"
        case _:
            played = done.play
            said = f"{kind(played.card)} to {place(played.location)}"
            if not played.HasField("relocate"):
                return said
            if played.relocate.to == played.location:
                return f"{said}, fetching {played.relocate.card_id}"
            return f"{said}, sending {played.relocate.card_id} to {place(played.relocate.to)}"


def kind(card: pb.Card.Kind) -> str:
    """A card's name."""
    return word(pb.Card.Kind, card)


def place(location: pb.Location.Name) -> str:
    """A Location's name."""
    return f"the {word(pb.Location.Name, location)}"


def _cards(cards: Iterable[pb.Card.Kind]) -> str:
    return listed(kind(card) for card in cards)


def _scored(scored: pb.LocationScored, names: Sequence[str]) -> str:
    of = {seat: Counter(kind(card.kind) for card in scored.cards if card.owner == seat) for seat in range(len(names))}
    cards = "; ".join(
        f"{names[seat]} {listed(f'{number} × {card}' if number > 1 else card for card, number in each.items())}"
        for seat, each in of.items()
        if each
    )
    points = listed((f"{names[seat]} {number:+}" for seat, number in enumerate(scored.points) if number), "no points")
    taken = f" {names[scored.taken_by]} takes the Location." if scored.HasField("taken_by") else ""
    name = word(pb.Location.Name, scored.location)
    return f"The {name}: {cards or 'nothing'}. {_EFFECTS.get(scored.effect, '')}{points[0].upper()}{points[1:]}.{taken}"
