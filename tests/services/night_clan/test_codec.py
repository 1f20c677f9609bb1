"""Night Clan's codec: what goes over the wire is what the rules mean, and what cannot be read is named by its field."""

import random
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TypeVar

import pytest
from google.protobuf import json_format
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

from gloaming.night_clan.v1 import night_clan_pb2 as pb
from services.kit.errors import Unreadable
from services.night_clan import codec, rules
from services.night_clan.rules import (
    CardPlayed,
    CardRelocated,
    CardsDrawn,
    CardView,
    Effect,
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
    Phase,
    Play,
    Relocate,
    Step,
    Variant,
)

T = TypeVar("T")


class RandomChance:
    """A chance good enough to play with."""

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        return tuple(random.Random(label).sample(items, len(items)))


def as_json(message: Message) -> object:
    return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)


@pytest.mark.parametrize(
    ("enum", "proto"),
    [
        (Kind, pb.Card.Kind),
        (Location, pb.Location.Name),
        (Variant, pb.Options.Variant),
        (Phase, pb.View.Phase),
        (Effect, pb.LocationScored.Effect),
    ],
)
def test_enums_have_the_protos_names_and_numbers(enum: type[IntEnum], proto: EnumTypeWrapper) -> None:
    assert {member.name: member.value for member in enum} == {name: number for name, number in proto.items() if number}


# -------------------------------------------------------------------- options


def test_options_are_read_and_written() -> None:
    for variant in Variant:
        assert codec.options_from_proto(codec.options_to_proto(Options(variant))) == Options(variant)


@pytest.mark.rule("NC-09")
def test_a_variant_left_out_is_night() -> None:
    assert codec.options_from_proto(pb.Options()) == Options(Variant.NIGHT)


def test_an_unknown_variant_cannot_be_read() -> None:
    with pytest.raises(Unreadable) as caught:
        codec.options_from_proto(pb.Options.FromString(b"\x08\x09"))
    assert caught.value.field == "variant"


# ---------------------------------------------------------------------- moves


@pytest.mark.parametrize(
    ("move", "json"),
    [
        (Keep(), {"keep": {}}),
        (Mulligan(), {"mulligan": {}}),
        (Play(Kind.TROLL, Location.CHURCH), {"play": {"card": "TROLL", "location": "CHURCH"}}),
        (
            Play(Kind.NIGHT_WATCH, Location.BAR, Relocate("c12", Location.BLACK_FOREST)),
            {"play": {"card": "NIGHT_WATCH", "location": "BAR", "relocate": {"cardId": "c12", "to": "BLACK_FOREST"}}},
        ),
    ],
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
        ({"play": {}}, "play.card"),
        ({"play": {"card": "TROLL"}}, "play.location"),
        ({"play": {"card": 6, "location": "CHURCH"}}, "play.card"),
        ({"play": {"card": -1, "location": "CHURCH"}}, "play.card"),
        ({"play": {"card": "TROLL", "location": 9}}, "play.location"),
        ({"play": {"card": "NIGHT_WATCH", "location": "CHURCH", "relocate": {}}}, "play.relocate.cardId"),
        ({"play": {"card": "NIGHT_WATCH", "location": "CHURCH", "relocate": {"cardId": "c1"}}}, "play.relocate.to"),
        ({"play": {"card": "NIGHT_WATCH", "location": "CHURCH", "relocate": {"cardId": "c1", "to": 99}}}, "play.relocate.to"),
    ],
)
def test_a_move_that_cannot_be_read_is_named_by_its_field(json: dict[str, object], field: str) -> None:
    with pytest.raises(Unreadable) as caught:
        codec.move_from_proto(json_format.ParseDict(json, pb.Move()))
    assert caught.value.field == field


@pytest.mark.parametrize("card_id", ["", "c", "1", "c0", "c01", "C1", " c1", "c1\n", "c1 ", "c-1", "c٣", "c12345678", "c" * 100_000])
def test_a_card_id_that_no_card_can_have_cannot_be_read(card_id: str) -> None:
    message = pb.Move(play=pb.Play(card="NIGHT_WATCH", location="CHURCH", relocate=pb.Relocate(card_id=card_id, to="BAR")))
    with pytest.raises(Unreadable) as caught:
        codec.move_from_proto(message)
    assert caught.value.field == "play.relocate.cardId"
    assert len(str(caught.value)) < 200


# ------------------------------------------------------------ views and events


@pytest.mark.parametrize(
    ("event", "json"),
    [
        (HandKept(0), {"handKept": {"seat": 0}}),
        (HandShown(1, (Kind.RICHES, Kind.NIGHT_WATCH)), {"handShown": {"seat": 1, "cards": ["RICHES", "NIGHT_WATCH"]}}),
        (CardsDrawn(0, 2, ()), {"cardsDrawn": {"seat": 0, "count": 2, "cards": []}}),
        (
            CardPlayed(0, CardView("c1", 0, False, None), Location.CHURCH),
            {"cardPlayed": {"seat": 0, "card": {"cardId": "c1", "owner": 0, "faceUp": False}, "location": "CHURCH"}},
        ),
        (
            CardPlayed(1, CardView("c2", 1, True, Kind.DAUGHTER), Location.BAR),
            {"cardPlayed": {"seat": 1, "card": {"cardId": "c2", "owner": 1, "faceUp": True, "kind": "DAUGHTER"}, "location": "BAR"}},
        ),
        (
            CardRelocated(1, "c2", Location.BAR, Location.TOWER),
            {"cardRelocated": {"seat": 1, "cardId": "c2", "from": "BAR", "to": "TOWER"}},
        ),
        (
            LocationScored(Location.BAR, (CardView("c1", 0, True, Kind.TROLL),), 0, Effect.SPOILED, (0, 0)),
            {
                "locationScored": {
                    "location": "BAR",
                    "cards": [{"cardId": "c1", "owner": 0, "faceUp": True, "kind": "TROLL"}],
                    "takenBy": 0,
                    "effect": "SPOILED",
                    "points": [0, 0],
                }
            },
        ),
        (
            LocationScored(Location.BAR, (), None, Effect.NO_TROLL, (-1, 2)),
            {"locationScored": {"location": "BAR", "cards": [], "effect": "NO_TROLL", "points": [-1, 2]}},
        ),
    ],
)
def test_an_event_is_written(event: Event, json: dict[str, object]) -> None:
    assert as_json(codec.event_to_proto(event)) == json


def test_views_of_a_whole_match_are_written_as_they_are() -> None:
    rng, chance = random.Random(5), RandomChance()
    state = rules.setup(Options(), 3, chance).state
    while movers := rules.to_move(state):
        step = rules.apply(state, movers[0], rng.choice(rules.legal(state, movers[0])), chance)
        assert isinstance(step, Step)
        state = step.state
        for viewer in (0, 1, 2, None):
            view = rules.view(state, viewer)
            message = codec.view_to_proto(view)
            assert Phase(message.phase) is view.phase
            assert kinds(message.hand) == view.hand
            assert (tuple(message.hand_sizes), tuple(message.deck_sizes)) == (view.hand_sizes, view.deck_sizes)
            assert (message.plays_left, tuple(message.scores)) == (view.plays_left, view.scores)
            assert tuple(map(location_view, message.locations)) == view.locations
            assert [pb.Event(location_scored=scored) for scored in message.scoring] == [codec.event_to_proto(s) for s in view.scoring]


def location_view(message: pb.Location) -> LocationView:
    cards = tuple(
        CardView(card.card_id, card.owner, card.face_up, Kind(card.kind) if card.HasField("kind") else None) for card in message.cards
    )
    return LocationView(Location(message.location), message.capacity, cards)


def kinds(numbers: Iterable[int]) -> tuple[Kind, ...]:
    return tuple(map(Kind, numbers))
