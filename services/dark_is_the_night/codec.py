"""Dark Is the Night's values to and from protobuf (`gloaming.dark_is_the_night.v1`). Both sides use the same enum names and numbers."""

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

from gloaming.dark_is_the_night.v1 import dark_is_the_night_pb2 as pb
from services.dark_is_the_night.rules import (
    DARK,
    FEINTS,
    LIT,
    Action,
    Announcement,
    Arrow,
    ArrowShot,
    Bell,
    BellPlaced,
    BellRang,
    Camp,
    Compass,
    DawnNear,
    Event,
    Feint,
    FeintPlayed,
    Ham,
    HamDistance,
    HamPlaced,
    Hunt,
    HuntressCamped,
    HuntressMoved,
    Lair,
    Lured,
    MonsterAttacked,
    MonsterHid,
    MonsterMoved,
    MonsterSighted,
    Move,
    NightFell,
    Options,
    Prowl,
    Ring,
    SideAnnounced,
    SquareLit,
    Sword,
    SwordSwung,
    View,
)
from services.kit.errors import Unreadable

E = TypeVar("E", bound=IntEnum)

_TURNS_TO_DAWN = range(1, 51)  # DN-14

# ------------------------------------------------------------------- options


def options_to_proto(options: Options) -> pb.Options:
    """The options, defaults filled in."""
    return pb.Options(turns_to_dawn=options.turns_to_dawn)


def options_from_proto(message: pb.Options) -> Options:
    """The options asked for, defaults filled in. Raises Unreadable for a number of turns out of range."""
    if not message.HasField("turns_to_dawn"):
        return Options()
    return Options(_within(_TURNS_TO_DAWN, message.turns_to_dawn, "turnsToDawn"))


# --------------------------------------------------------------------- moves


def move_to_proto(move: Move) -> pb.Move:
    """A move as clients send it."""
    match move:
        case Lair(square):
            return pb.Move(lair=pb.Square(square=square))
        case Camp(square):
            return pb.Move(camp=pb.Square(square=square))
        case Hunt():
            return pb.Move(hunt=_hunt(move))
        case Prowl(way, attack):
            return pb.Move(prowl=pb.Prowl(direction=way.name, attack=attack))
        case Feint(steps):
            return pb.Move(feint=pb.Feint(steps=steps))
        case Lured(way):
            return pb.Move(lured=pb.Lured(direction=way.name))


def _hunt(hunt: Hunt) -> pb.Hunt:
    match hunt.action:
        case None:
            return pb.Hunt(to=hunt.to)
        case Sword(square):
            return pb.Hunt(to=hunt.to, sword=pb.Square(square=square))
        case Arrow(direction):
            return pb.Hunt(to=hunt.to, arrow=pb.Arrow(direction=direction.name))
        case Bell(square):
            return pb.Hunt(to=hunt.to, bell=pb.Square(square=square))
        case Ham(square):
            return pb.Hunt(to=hunt.to, ham=pb.Square(square=square))


def move_from_proto(message: pb.Move) -> Move:
    """The move that a client sent. Raises Unreadable, its field relative to the move, for one that cannot be a move in any match."""
    kind = message.WhichOneof("kind")
    if kind == "lair":
        return Lair(_within(DARK, message.lair.square, "lair.square"))
    if kind == "camp":
        return Camp(_within(LIT, message.camp.square, "camp.square"))
    if kind == "hunt":
        return Hunt(_within(LIT, message.hunt.to, "hunt.to"), _action(message.hunt))
    if kind == "prowl":
        return Prowl(_member(Ring, message.prowl.direction, "prowl.direction"), message.prowl.attack)
    if kind == "feint":
        return Feint(_within(FEINTS, message.feint.steps, "feint.steps"))
    if kind == "lured":
        return Lured(_member(Ring, message.lured.direction, "lured.direction"))
    raise Unreadable("", "one of lair, camp, hunt, prowl, feint and lured must be set")


def _action(message: pb.Hunt) -> Action | None:
    action = message.WhichOneof("action")
    if action == "sword":
        return Sword(_within(DARK, message.sword.square, "hunt.sword.square"))
    if action == "arrow":
        return Arrow(_member(Compass, message.arrow.direction, "hunt.arrow.direction"))
    if action == "bell":
        return Bell(_within(DARK, message.bell.square, "hunt.bell.square"))
    if action == "ham":
        return Ham(_within(DARK, message.ham.square, "hunt.ham.square"))
    return None


def _within(numbers: Sequence[int], number: int, field: str) -> int:
    """The number, which must be one of those, an unbroken run."""
    if number not in numbers:
        raise Unreadable(field, f"must be {numbers[0]} to {numbers[-1]}")
    return number


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
        huntress=view.huntress,
        monster=view.monster,
        side=view.side.name if view.side else None,
        lit_squares=view.lit_squares,
        bell=view.bell,
        tokens=pb.Tokens(arrows=view.tokens.arrows, bell=view.tokens.bell, ham=view.tokens.ham),
        feint_left=view.feint_left,
        turns_left=view.turns_left,
        turns=view.turns,
        announcements=map(_announcement, view.announcements),
        ham=view.ham,
    )


def _announcement(announcement: Announcement) -> pb.Announcement:
    """An announcement; each kind is the event's message, under the same name."""
    event = event_to_proto(announcement.fact)
    kind = event.WhichOneof("kind")
    assert kind is not None
    return pb.Announcement(turn=announcement.turn, **{kind: getattr(event, kind)})


def event_to_proto(event: Event) -> pb.Event:
    """An event as it is sent."""
    match event:
        case NightFell():
            return pb.Event(night_fell=pb.NightFell())
        case MonsterHid(square):
            return pb.Event(monster_hid=pb.MonsterHid(square=square))
        case HuntressCamped(square):
            return pb.Event(huntress_camped=pb.HuntressCamped(square=square))
        case SideAnnounced(side):
            return pb.Event(side_announced=pb.SideAnnounced(side=side.name))
        case HuntressMoved(to):
            return pb.Event(huntress_moved=pb.HuntressMoved(to=to))
        case MonsterMoved(now):
            return pb.Event(monster_moved=pb.MonsterMoved(to=now))
        case MonsterSighted(square, cause):
            return pb.Event(monster_sighted=pb.MonsterSighted(square=square, cause=cause.name))
        case BellPlaced(square):
            return pb.Event(bell_placed=pb.BellPlaced(square=square))
        case BellRang(square):
            return pb.Event(bell_rang=pb.BellRang(square=square))
        case HamPlaced(square):
            return pb.Event(ham_placed=pb.HamPlaced(square=square))
        case HamDistance(square, distance):
            return pb.Event(ham_distance=pb.HamDistance(square=square, distance=distance))
        case ArrowShot(direction, square, burning, hit):
            return pb.Event(arrow_shot=pb.ArrowShot(direction=direction.name, square=square, burning=burning, hit=hit))
        case SquareLit(square):
            return pb.Event(square_lit=pb.SquareLit(square=square))
        case SwordSwung(square, hit):
            return pb.Event(sword_swung=pb.SwordSwung(square=square, hit=hit))
        case MonsterAttacked(square, hit):
            return pb.Event(monster_attacked=pb.MonsterAttacked(square=square, hit=hit))
        case FeintPlayed(steps):
            return pb.Event(feint_played=pb.FeintPlayed(steps=steps))
        case DawnNear(turns_left):
            return pb.Event(dawn_near=pb.DawnNear(turns_left=turns_left))
