"""Clans and Glory's values to and from protobuf (`gloaming.clans_and_glory.v1`). Both sides use the same colours and numbers."""

from collections.abc import Iterable

from gloaming.clans_and_glory.v1 import clans_and_glory_pb2 as pb
from services.clans_and_glory.rules import (
    RESIDENTS,
    SET_UP,
    SLOTS,
    Color,
    Event,
    FieldScored,
    FieldView,
    HandDealt,
    Move,
    Options,
    Place,
    Resident,
    ResidentPlaced,
    ShieldPlaced,
    SlotView,
    View,
)
from services.kit.errors import Unreadable

# ------------------------------------------------------------------- options


def options_to_proto(options: Options) -> pb.Options:
    """The options, of which there are none."""
    return pb.Options()


def options_from_proto(message: pb.Options) -> Options:
    """The options, of which there are none."""
    return Options()


# --------------------------------------------------------------------- moves


def move_to_proto(move: Move) -> pb.Move:
    """A move as clients send it."""
    return pb.Move(
        place=pb.Place(card=_resident(move.card), field=move.field, slot=move.slot, face_down=move.face_down, shield=move.shield)
    )


def move_from_proto(message: pb.Move) -> Move:
    """The move that a client sent. Raises Unreadable, its field relative to the move, for one that cannot be a move in any match."""
    if not message.HasField("place"):
        raise Unreadable("", "place must be set")
    place = message.place
    if not place.HasField("card"):
        raise Unreadable("place.card", "must be set")
    return Place(
        Resident(_color(place.card.color, "place.card.color"), _within(_STRENGTHS, place.card.strength, "place.card.strength")),
        _within(_FIELDS, place.field, "place.field"),
        _within(range(SLOTS), place.slot, "place.slot"),
        place.face_down,
        place.shield,
    )


_FIELDS = range(max(this.fields for this in SET_UP.values()))
_STRENGTHS = range(RESIDENTS[0].strength, RESIDENTS[-1].strength + 1)


def _color(number: int, field: str) -> Color:
    """The colour of that number; Unreadable for 0, which is what a field left out holds, and for numbers without a name."""
    try:
        return Color(number)
    except ValueError:
        raise Unreadable(field, f"must be one of {', '.join(color.name for color in Color)}") from None


def _within(numbers: range, number: int, field: str) -> int:
    if number not in numbers:
        raise Unreadable(field, f"must be {numbers[0]} to {numbers[-1]}")
    return number


# ----------------------------------------------------------- views and events


def view_to_proto(view: View) -> pb.View:
    """What a viewer may know, as it is sent."""
    return pb.View(
        fields=[_field(field) for field in view.fields],
        hand=_residents(view.hand),
        hand_sizes=view.hand_sizes,
        shields_left=view.shields_left,
        removed_count=view.removed_count,
        scoring=[_field_scored(scored) for scored in view.scoring],
        scores=view.scores,
    )


def event_to_proto(event: Event) -> pb.Event:
    """An event as it is sent."""
    match event:
        case HandDealt(seat, count, cards):
            return pb.Event(hand_dealt=pb.HandDealt(seat=seat, count=count, cards=_residents(cards)))
        case ResidentPlaced(by, field, slot, resident, face_down):
            return pb.Event(
                resident_placed=pb.ResidentPlaced(
                    seat=by, field=field, slot=slot, resident=_resident(resident) if resident else None, face_down=face_down
                )
            )
        case ShieldPlaced(seat, field):
            return pb.Event(shield_placed=pb.ShieldPlaced(seat=seat, field=field))
        case FieldScored():
            return pb.Event(field_scored=_field_scored(event))


def _resident(resident: Resident) -> pb.Resident:
    return pb.Resident(color=resident.color.name, strength=resident.strength)


def _residents(residents: Iterable[Resident]) -> list[pb.Resident]:
    return [_resident(resident) for resident in residents]


def _slot(slot: SlotView) -> pb.Slot:
    return pb.Slot(resident=_resident(slot.resident) if slot.resident else None, face_down=slot.face_down)


def _field(field: FieldView) -> pb.Field:
    return pb.Field(campfire=field.campfire, slots=[_slot(slot) for slot in field.slots], shields=field.shields)


def _field_scored(scored: FieldScored) -> pb.FieldScored:
    return pb.FieldScored(
        field=scored.field,
        taken=[pb.FieldScored.Taken(seat=taken.seat, residents=_residents(taken.residents)) for taken in scored.taken],
        left=_residents(scored.left),
    )
