"""Dark Is the Night's codec: what goes over the wire is what the rules mean, and what cannot be read is named by its field."""

import random
from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

import pytest
from google.protobuf import json_format
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

from gloaming.dark_is_the_night.v1 import dark_is_the_night_pb2 as pb
from services.dark_is_the_night import codec, rules
from services.dark_is_the_night.rules import (
    Announcement,
    Arrow,
    ArrowShot,
    Bell,
    BellPlaced,
    BellRang,
    Camp,
    Cause,
    Compass,
    DawnNear,
    Event,
    Fact,
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
    Step,
    Sword,
    SwordSwung,
    Tokens,
    View,
)
from services.kit.errors import Unreadable

T = TypeVar("T")


def as_json(message: Message) -> object:
    return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)


@pytest.mark.parametrize(("enum", "proto"), [(Compass, pb.Compass.Direction), (Ring, pb.Ring.Direction), (Cause, pb.MonsterSighted.Cause)])
def test_enums_have_the_protos_names_and_numbers(enum: type[IntEnum], proto: EnumTypeWrapper) -> None:
    assert {member.name: member.value for member in enum} == {name: number for name, number in proto.items() if number}


# -------------------------------------------------------------------- options


@pytest.mark.parametrize("turns", [1, 5, 50])
def test_options_are_read_and_written(turns: int) -> None:
    message = codec.options_to_proto(Options(turns))
    assert as_json(message) == {"turnsToDawn": turns}
    assert codec.options_from_proto(message) == Options(turns)


@pytest.mark.rule("DN-14")
def test_dawn_comes_after_five_turns_unless_asked_otherwise() -> None:
    assert codec.options_from_proto(pb.Options()) == Options(5)


@pytest.mark.parametrize("turns", [0, 51, -1, 2**31 - 1, -(2**31)])
def test_a_number_of_turns_out_of_range_cannot_be_read(turns: int) -> None:
    with pytest.raises(Unreadable) as caught:
        codec.options_from_proto(pb.Options(turns_to_dawn=turns))
    assert caught.value.field == "turnsToDawn"


# ---------------------------------------------------------------------- moves


@pytest.mark.parametrize(
    ("move", "json"),
    [
        (Lair(12), {"lair": {"square": 12}}),
        (Camp(8), {"camp": {"square": 8}}),
        (Hunt(1), {"hunt": {"to": 1}}),
        (Hunt(2, Sword(2)), {"hunt": {"to": 2, "sword": {"square": 2}}}),
        (Hunt(3, Arrow(Compass.SOUTH)), {"hunt": {"to": 3, "arrow": {"direction": "SOUTH"}}}),
        (Hunt(4, Bell(11)), {"hunt": {"to": 4, "bell": {"square": 11}}}),
        (Hunt(5, Ham(1)), {"hunt": {"to": 5, "ham": {"square": 1}}}),
        (Prowl(Ring.CLOCKWISE), {"prowl": {"direction": "CLOCKWISE"}}),
        (Prowl(Ring.COUNTERCLOCKWISE, attack=True), {"prowl": {"direction": "COUNTERCLOCKWISE", "attack": True}}),
        (Feint(0), {"feint": {}}),
        (Feint(-2), {"feint": {"steps": -2}}),
        (Lured(Ring.COUNTERCLOCKWISE), {"lured": {"direction": "COUNTERCLOCKWISE"}}),
    ],
    ids=str,
)
def test_a_move_is_read_and_written(move: Move, json: dict[str, object]) -> None:
    message = codec.move_to_proto(move)
    assert json_format.MessageToDict(message) == json
    assert codec.move_from_proto(json_format.ParseDict(json, pb.Move())) == move
    assert codec.move_from_proto(message) == move


@pytest.mark.parametrize(
    ("json", "field"),
    [
        ({}, ""),
        ({"lair": {}}, "lair.square"),
        ({"lair": {"square": 13}}, "lair.square"),
        ({"lair": {"square": -1}}, "lair.square"),
        ({"camp": {}}, "camp.square"),
        ({"camp": {"square": 9}}, "camp.square"),
        ({"hunt": {}}, "hunt.to"),
        ({"hunt": {"to": 9}}, "hunt.to"),
        ({"hunt": {"to": 1, "sword": {}}}, "hunt.sword.square"),
        ({"hunt": {"to": 1, "sword": {"square": 13}}}, "hunt.sword.square"),
        ({"hunt": {"to": 1, "arrow": {}}}, "hunt.arrow.direction"),
        ({"hunt": {"to": 1, "arrow": {"direction": 5}}}, "hunt.arrow.direction"),
        ({"hunt": {"to": 1, "bell": {"square": 0}}}, "hunt.bell.square"),
        ({"hunt": {"to": 1, "ham": {"square": 100}}}, "hunt.ham.square"),
        ({"prowl": {}}, "prowl.direction"),
        ({"prowl": {"direction": 3, "attack": True}}, "prowl.direction"),
        ({"feint": {"steps": 3}}, "feint.steps"),
        ({"feint": {"steps": -3}}, "feint.steps"),
        ({"lured": {}}, "lured.direction"),
        ({"lured": {"direction": -1}}, "lured.direction"),
    ],
    ids=str,
)
def test_a_move_that_cannot_be_read_is_named_by_its_field(json: dict[str, object], field: str) -> None:
    with pytest.raises(Unreadable) as caught:
        codec.move_from_proto(json_format.ParseDict(json, pb.Move()))
    assert caught.value.field == field


# ------------------------------------------------------------ views and events

# What is told in announcements as well.
FACTS: list[tuple[Fact, dict[str, object]]] = [
    (SideAnnounced(Compass.WEST), {"sideAnnounced": {"side": "WEST"}}),
    (MonsterSighted(8, Cause.FIRELIGHT), {"monsterSighted": {"square": 8, "cause": "FIRELIGHT"}}),
    (MonsterSighted(1, Cause.FEINT), {"monsterSighted": {"square": 1, "cause": "FEINT"}}),
    (BellPlaced(12), {"bellPlaced": {"square": 12}}),
    (BellRang(12), {"bellRang": {"square": 12}}),
    (HamPlaced(6), {"hamPlaced": {"square": 6}}),
    (HamDistance(6, 0), {"hamDistance": {"square": 6, "distance": 0}}),
    (ArrowShot(Compass.EAST, 5, True, False), {"arrowShot": {"direction": "EAST", "square": 5, "burning": True, "hit": False}}),
    (ArrowShot(Compass.NORTH, 1, False, True), {"arrowShot": {"direction": "NORTH", "square": 1, "burning": False, "hit": True}}),
    (SwordSwung(4, True), {"swordSwung": {"square": 4, "hit": True}}),
    (MonsterAttacked(4, False), {"monsterAttacked": {"square": 4, "hit": False}}),
]


@pytest.mark.parametrize(
    ("event", "json"),
    [
        *FACTS,
        (NightFell(), {"nightFell": {}}),
        (MonsterHid(3), {"monsterHid": {"square": 3}}),
        (MonsterHid(None), {"monsterHid": {}}),
        (HuntressCamped(1), {"huntressCamped": {"square": 1}}),
        (HuntressMoved(2), {"huntressMoved": {"to": 2}}),
        (MonsterMoved(7), {"monsterMoved": {"to": 7}}),
        (MonsterMoved(None), {"monsterMoved": {}}),
        (SquareLit(8), {"squareLit": {"square": 8}}),
        (FeintPlayed(0), {"feintPlayed": {"steps": 0}}),
        (FeintPlayed(None), {"feintPlayed": {}}),
        (DawnNear(5), {"dawnNear": {"turnsLeft": 5}}),
    ],
    ids=str,
)
def test_an_event_is_written(event: Event, json: dict[str, object]) -> None:
    assert as_json(codec.event_to_proto(event)) == json


def view(announcements: Sequence[Announcement] = ()) -> View:
    return View(None, None, None, (), None, None, Tokens(2, True, False), True, None, 0, tuple(announcements))


@pytest.mark.parametrize(("fact", "json"), FACTS, ids=str)
def test_an_announcement_is_written_as_its_event(fact: Fact, json: dict[str, object]) -> None:
    (announcement,) = codec.view_to_proto(view([Announcement(4, fact)])).announcements
    assert as_json(announcement) == {"turn": 4, **json}


def test_what_is_not_there_is_left_out_of_a_view() -> None:
    assert as_json(codec.view_to_proto(view())) == {
        "litSquares": [],
        "tokens": {"arrows": 2, "bell": True, "ham": False},
        "feintLeft": True,
        "turns": 0,
        "announcements": [],
    }


def test_a_view_is_written_with_all_that_is_there() -> None:
    full = View(1, 12, Compass.EAST, (2, 5), 7, 3, Tokens(0, False, False), False, 0, 12, ())
    assert as_json(codec.view_to_proto(full)) == {
        "huntress": 1,
        "monster": 12,
        "side": "EAST",
        "litSquares": [2, 5],
        "bell": 7,
        "ham": 3,
        "tokens": {"arrows": 0, "bell": False, "ham": False},
        "feintLeft": False,
        "turnsLeft": 0,
        "turns": 12,
        "announcements": [],
    }


def test_views_of_whole_matches_are_written_as_they_are() -> None:
    for seed in range(5):
        rng = random.Random(seed)
        state = rules.setup(Options(), 2, None).state
        while movers := rules.to_move(state):
            step = rules.apply(state, movers[0], rng.choice(rules.legal(state, movers[0])), None)
            assert isinstance(step, Step)
            state = step.state
            for viewer in (0, 1, None):
                seen = rules.view(state, viewer)
                message = codec.view_to_proto(seen)
                optional = {name: getattr(message, name) if message.HasField(name) else None for name in ("huntress", "monster", "bell")}
                assert optional == {"huntress": seen.huntress, "monster": seen.monster, "bell": seen.bell}
                assert [told.turn for told in message.announcements] == [told.turn for told in seen.announcements]
                assert (message.turns, tuple(message.lit_squares), message.feint_left) == (seen.turns, seen.lit_squares, seen.feint_left)
                assert (message.turns_left if message.HasField("turns_left") else None) == seen.turns_left
