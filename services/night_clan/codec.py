"""Night Clan's values to and from protobuf (`gloaming.night_clan.v1`). Both sides use the same enum names and numbers."""

import re
from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

from gloaming.night_clan.v1 import night_clan_pb2 as pb
from services.kit.errors import Unreadable
from services.night_clan.rules import (
    CardPlayed,
    CardRelocated,
    CardsDrawn,
    CardView,
    Event,
    HandKept,
    HandShown,
    Keep,
    Kind,
    Location,
    LocationScored,
    LocationView,
    Move,
    Mulligan,
    Options,
    Play,
    Relocate,
    Variant,
    View,
)

E = TypeVar("E", bound=IntEnum)

_CARD_ID = re.compile(r"c[1-9][0-9]{0,6}")

# ------------------------------------------------------------------- options


def options_to_proto(options: Options) -> pb.Options:
    """The options, defaults filled in."""
    return pb.Options(variant=options.variant.name)


def options_from_proto(message: pb.Options) -> Options:
    """The options asked for; an unspecified variant is NIGHT. Raises Unreadable for an unknown one."""
    if message.variant == pb.Options.VARIANT_UNSPECIFIED:
        return Options()
    return Options(_member(Variant, message.variant, "variant"))


# --------------------------------------------------------------------- moves


def move_to_proto(move: Move) -> pb.Move:
    """A move as clients send it."""
    if isinstance(move, Keep):
        return pb.Move(keep=pb.Keep())
    if isinstance(move, Mulligan):
        return pb.Move(mulligan=pb.Mulligan())
    relocate = pb.Relocate(card_id=move.relocate.card_id, to=move.relocate.to.name) if move.relocate else None
    return pb.Move(play=pb.Play(card=move.card.name, location=move.location.name, relocate=relocate))


def move_from_proto(message: pb.Move) -> Move:
    """The move that a client sent. Raises Unreadable, its field relative to the move, for one that cannot be a move in any match."""
    kind = message.WhichOneof("kind")
    if kind == "keep":
        return Keep()
    if kind == "mulligan":
        return Mulligan()
    if kind == "play":
        return _play(message.play)
    raise Unreadable("", "one of keep, mulligan and play must be set")


def _play(message: pb.Play) -> Play:
    card = _member(Kind, message.card, "play.card")
    location = _member(Location, message.location, "play.location")
    if not message.HasField("relocate"):
        return Play(card, location)
    card_id = message.relocate.card_id
    if not _CARD_ID.fullmatch(card_id):
        raise Unreadable("play.relocate.cardId", "must be a card's id, such as c1")
    return Play(card, location, Relocate(card_id, _member(Location, message.relocate.to, "play.relocate.to")))


def _member(enum: type[E], number: int, field: str) -> E:
    """The member of that number; Unreadable for 0, which is what a field left out holds, and for numbers without a name."""
    try:
        return enum(number)
    except ValueError:
        names = ", ".join(member.name for member in enum)
        raise Unreadable(field, f"must be one of {names}") from None


# ----------------------------------------------------------- views and events


def view_to_proto(view: View) -> pb.View:
    """What a viewer may know, as it is sent."""
    return pb.View(
        phase=view.phase.name,
        locations=[_location(location) for location in view.locations],
        hand=_names(view.hand),
        hand_sizes=view.hand_sizes,
        deck_sizes=view.deck_sizes,
        plays_left=view.plays_left,
        scoring=[_location_scored(scored) for scored in view.scoring],
        scores=view.scores,
    )


def event_to_proto(event: Event) -> pb.Event:
    """An event as it is sent."""
    match event:
        case HandKept(seat):
            return pb.Event(hand_kept=pb.HandKept(seat=seat))
        case HandShown(seat, cards):
            return pb.Event(hand_shown=pb.HandShown(seat=seat, cards=_names(cards)))
        case CardsDrawn(seat, count, cards):
            return pb.Event(cards_drawn=pb.CardsDrawn(seat=seat, count=count, cards=_names(cards)))
        case CardPlayed(seat, card, location):
            return pb.Event(card_played=pb.CardPlayed(seat=seat, card=_card(card), location=location.name))
        case CardRelocated(seat, card_id, origin, to):
            # `from` is a word of Python's own
            return pb.Event(card_relocated=pb.CardRelocated(seat=seat, card_id=card_id, to=to.name, **{"from": origin.name}))
        case LocationScored():
            return pb.Event(location_scored=_location_scored(event))


def _card(card: CardView) -> pb.Card:
    return pb.Card(card_id=card.card_id, owner=card.owner, face_up=card.face_up, kind=card.kind.name if card.kind else None)


def _location(location: LocationView) -> pb.Location:
    return pb.Location(location=location.location.name, capacity=location.capacity, cards=[_card(card) for card in location.cards])


def _location_scored(scored: LocationScored) -> pb.LocationScored:
    return pb.LocationScored(
        location=scored.location.name,
        cards=[_card(card) for card in scored.cards],
        taken_by=scored.taken_by,
        effect=scored.effect.name,
        points=scored.points,
    )


def _names(kinds: Iterable[Kind]) -> list[str]:
    return [kind.name for kind in kinds]
