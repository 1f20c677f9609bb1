"""Clans and Glory's codec: what goes over the wire is what the rules mean, and what cannot be read is named by its field."""

import random
from collections.abc import Sequence
from typing import TypeVar

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message

from gloaming.clans_and_glory.v1 import clans_and_glory_pb2 as pb
from services.clans_and_glory import codec, rules
from services.clans_and_glory.rules import (
    Color,
    Event,
    FieldScored,
    FieldView,
    HandDealt,
    Options,
    Place,
    Resident,
    ResidentPlaced,
    ShieldPlaced,
    SlotView,
    Step,
    Taken,
)
from services.kit.errors import Unreadable

T = TypeVar("T")

RED_3, GREY_8 = Resident(Color.RED, 3), Resident(Color.GREY, 8)


class RandomChance:
    """A chance good enough to play with."""

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        return tuple(random.Random(label).sample(items, len(items)))


def as_json(message: Message) -> object:
    return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)


def test_colours_have_the_protos_names_and_numbers() -> None:
    assert {color.name: color.value for color in Color} == {name: number for name, number in pb.Resident.Color.items() if number}


def test_there_are_no_options() -> None:
    assert codec.options_from_proto(codec.options_to_proto(Options())) == Options()
    assert codec.options_from_proto(pb.Options()) == Options()


# ---------------------------------------------------------------------- moves


@pytest.mark.parametrize(
    ("move", "json"),
    [
        (Place(RED_3, 0, 0), {"place": {"card": {"color": "RED", "strength": 3}}}),
        (
            Place(GREY_8, 5, 4, face_down=True, shield=True),
            {"place": {"card": {"color": "GREY", "strength": 8}, "field": 5, "slot": 4, "faceDown": True, "shield": True}},
        ),
        (Place(RED_3, 1, 2, shield=True), {"place": {"card": {"color": "RED", "strength": 3}, "field": 1, "slot": 2, "shield": True}}),
    ],
)
def test_a_move_is_read_and_written(move: Place, json: dict[str, object]) -> None:
    message = codec.move_to_proto(move)
    assert json_format.MessageToDict(message) == json
    assert codec.move_from_proto(json_format.ParseDict(json, pb.Move())) == move
    assert codec.move_from_proto(message) == move


GOOD = {"color": "RED", "strength": 3}


@pytest.mark.parametrize(
    ("json", "field"),
    [
        ({}, ""),
        ({"place": {}}, "place.card"),
        ({"place": {"field": 1, "slot": 1}}, "place.card"),
        ({"place": {"card": {}}}, "place.card.color"),
        ({"place": {"card": {"color": 8, "strength": 3}}}, "place.card.color"),
        ({"place": {"card": {"color": -1, "strength": 3}}}, "place.card.color"),
        ({"place": {"card": {"color": "RED"}}}, "place.card.strength"),
        ({"place": {"card": {"color": "RED", "strength": 2}}}, "place.card.strength"),
        ({"place": {"card": {"color": "RED", "strength": 9}}}, "place.card.strength"),
        ({"place": {"card": GOOD, "field": 6}}, "place.field"),
        ({"place": {"card": GOOD, "field": -1}}, "place.field"),
        ({"place": {"card": GOOD, "slot": 6}}, "place.slot"),
        ({"place": {"card": GOOD, "slot": -2147483648}}, "place.slot"),
    ],
)
def test_a_move_that_cannot_be_read_is_named_by_its_field(json: dict[str, object], field: str) -> None:
    with pytest.raises(Unreadable) as caught:
        codec.move_from_proto(json_format.ParseDict(json, pb.Move()))
    assert caught.value.field == field


# ------------------------------------------------------------ views and events


@pytest.mark.parametrize(
    ("event", "json"),
    [
        (
            HandDealt(1, 2, (RED_3, GREY_8)),
            {"handDealt": {"seat": 1, "count": 2, "cards": [{"color": "RED", "strength": 3}, {"color": "GREY", "strength": 8}]}},
        ),
        (HandDealt(0, 9, ()), {"handDealt": {"seat": 0, "count": 9, "cards": []}}),
        (
            ResidentPlaced(None, 3, 5, RED_3, False),
            {"residentPlaced": {"field": 3, "slot": 5, "resident": {"color": "RED", "strength": 3}, "faceDown": False}},
        ),
        (
            ResidentPlaced(0, 0, 0, RED_3, True),
            {"residentPlaced": {"seat": 0, "field": 0, "slot": 0, "resident": {"color": "RED", "strength": 3}, "faceDown": True}},
        ),
        (ResidentPlaced(0, 0, 1, None, True), {"residentPlaced": {"seat": 0, "field": 0, "slot": 1, "faceDown": True}}),
        (ShieldPlaced(0, 4), {"shieldPlaced": {"seat": 0, "field": 4}}),
        (
            FieldScored(2, (Taken(0, (RED_3,)), Taken(1, ())), (GREY_8,)),
            {
                "fieldScored": {
                    "field": 2,
                    "taken": [{"seat": 0, "residents": [{"color": "RED", "strength": 3}]}, {"seat": 1, "residents": []}],
                    "left": [{"color": "GREY", "strength": 8}],
                }
            },
        ),
    ],
)
def test_an_event_is_written(event: Event, json: dict[str, object]) -> None:
    assert as_json(codec.event_to_proto(event)) == json


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_views_of_a_whole_match_are_written_as_they_are(seats: int) -> None:
    rng, chance = random.Random(5), RandomChance()
    state = rules.setup(Options(), seats, chance).state
    while movers := rules.to_move(state):
        step = rules.apply(state, movers[0], rng.choice(rules.legal(state, movers[0])), chance)
        assert isinstance(step, Step)
        state = step.state
        for viewer in (None, *range(seats)):
            view = rules.view(state, viewer)
            message = codec.view_to_proto(view)
            assert tuple(map(resident, message.hand)) == view.hand
            assert (tuple(message.hand_sizes), tuple(message.shields_left)) == (view.hand_sizes, view.shields_left)
            assert (message.removed_count, tuple(message.scores)) == (view.removed_count, view.scores)
            assert tuple(map(field_view, message.fields)) == view.fields
            assert [pb.Event(field_scored=scored) for scored in message.scoring] == [codec.event_to_proto(s) for s in view.scoring]
    assert message.scoring


def resident(message: pb.Resident) -> Resident:
    return Resident(Color(message.color), message.strength)


def field_view(message: pb.Field) -> FieldView:
    slots = tuple(SlotView(resident(slot.resident) if slot.HasField("resident") else None, slot.face_down) for slot in message.slots)
    return FieldView(message.campfire, slots, tuple(message.shields))
