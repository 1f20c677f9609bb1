"""Night Knight's codec: what goes over the wire is what the rules mean, and what cannot be read is named by its field."""

import random
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TypeVar

import pytest
from google.protobuf import json_format
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

from gloaming.night_knight.v1 import night_knight_pb2 as pb
from services.kit.errors import Unreadable
from services.night_knight import codec, rules
from services.night_knight.rules import (
    Action,
    Card,
    CardsRevealed,
    Event,
    Evidence,
    Kind,
    Move,
    Options,
    Ordering,
    OwnCardShown,
    Peek,
    Peeked,
    Phase,
    React,
    Reacted,
    Reaction,
    Reason,
    Result,
    Round,
    RoundResolved,
    RoundStarted,
    Step,
    Verdict,
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
        (Action, pb.React.Action),
        (Verdict, pb.Reaction.Verdict),
        (Ordering, pb.Options.Ordering),
        (Phase, pb.View.Phase),
    ],
)
def test_enums_have_the_protos_names_and_numbers(enum: type[IntEnum], proto: EnumTypeWrapper) -> None:
    assert {member.name: member.value for member in enum} == {name: number for name, number in proto.items() if number}


# -------------------------------------------------------------------- options


@pytest.mark.parametrize(
    "options", [Options(), Options(True, 500, 0, 0, Ordering.COMPENSATED, 0), Options(False, 30_000, 2_000, 10_000, Ordering.ARRIVAL, 300)]
)
def test_options_are_read_and_written(options: Options) -> None:
    message = codec.options_to_proto(options)
    assert codec.options_from_proto(message) == options
    assert len(message.ListFields()) >= len(Options._fields) - 1  # all but squire have presence or no zero


@pytest.mark.rule("NK-13")
@pytest.mark.rule("NK-04")
@pytest.mark.rule("NK-19")
def test_options_left_out_have_their_defaults() -> None:
    assert codec.options_from_proto(pb.Options()) == Options()
    assert as_json(codec.options_to_proto(Options())) == {
        "squire": False,
        "actionMs": 4000,
        "ownCardDelayMs": 150,
        "countdownMs": 2000,
        "ordering": "ARRIVAL",
        "maxCompensationMs": 150,
    }


@pytest.mark.rule("NK-13")
@pytest.mark.rule("NK-04")
@pytest.mark.rule("NK-19")
@pytest.mark.parametrize(
    ("field", "least", "most"),
    [("actionMs", 500, 30_000), ("ownCardDelayMs", 0, 2_000), ("countdownMs", 0, 10_000), ("maxCompensationMs", 0, 300)],
)
def test_times_are_read_within_their_ranges_only(field: str, least: int, most: int) -> None:
    for ms in (least, most):
        assert as_json(codec.options_to_proto(codec.options_from_proto(json_format.ParseDict({field: ms}, pb.Options()))))[field] == ms  # type: ignore[index]
    for ms in (least - 1, most + 1, -(2**31), 2**31 - 1):
        with pytest.raises(Unreadable) as caught:
            codec.options_from_proto(json_format.ParseDict({field: ms}, pb.Options()))
        assert caught.value.field == field


def test_an_unknown_ordering_cannot_be_read() -> None:
    with pytest.raises(Unreadable) as caught:
        codec.options_from_proto(json_format.ParseDict({"ordering": 9}, pb.Options()))
    assert caught.value.field == "ordering"


# ---------------------------------------------------------------------- moves


@pytest.mark.parametrize(
    ("move", "json"),
    [
        (Peek(1), {"peek": {"round": 1}}),
        (React(300, Action.THROW, 0), {"react": {"round": 300, "action": "THROW", "target": 0}}),
        (React(2, Action.SHIELD), {"react": {"round": 2, "action": "SHIELD"}}),
        (React(2, Action.SLEEP), {"react": {"round": 2, "action": "SLEEP"}}),
        (React(2, Action.TOUCH), {"react": {"round": 2, "action": "TOUCH"}}),
        (React(2, Action.PASS), {"react": {"round": 2, "action": "PASS"}}),
    ],
)
def test_a_move_is_read_and_written(move: Move, json: dict[str, object]) -> None:
    message = codec.move_to_proto(move)
    assert json_format.MessageToDict(message) == json
    assert codec.move_from_proto(json_format.ParseDict(json, pb.Move())) == move
    assert codec.move_from_proto(message) == move


@pytest.mark.rule("NK-19")
def test_when_a_reaction_was_received_is_no_clients_to_say() -> None:
    message = codec.move_to_proto(React(2, Action.PASS, received_ms=77))
    read = codec.move_from_proto(message)
    assert isinstance(read, React)
    assert read.received_ms == 0


@pytest.mark.parametrize(
    ("json", "field"),
    [
        ({}, ""),
        ({"peek": {}}, "peek.round"),
        ({"peek": {"round": -1}}, "peek.round"),
        ({"peek": {"round": 301}}, "peek.round"),
        ({"react": {}}, "react.round"),
        ({"react": {"round": 2**31 - 1, "action": "PASS"}}, "react.round"),
        ({"react": {"round": 1}}, "react.action"),
        ({"react": {"round": 1, "action": 6}}, "react.action"),
        ({"react": {"round": 1, "action": -1}}, "react.action"),
        ({"react": {"round": 1, "action": "THROW"}}, "react.target"),
        ({"react": {"round": 1, "action": "SHIELD", "target": 1}}, "react.target"),
        ({"react": {"round": 1, "action": "SLEEP", "target": 0}}, "react.target"),
        ({"react": {"round": 1, "action": "TOUCH", "target": 1}}, "react.target"),
        ({"react": {"round": 1, "action": "PASS", "target": 1}}, "react.target"),
    ],
)
def test_a_move_that_cannot_be_read_is_named_by_its_field(json: dict[str, object], field: str) -> None:
    with pytest.raises(Unreadable) as caught:
        codec.move_from_proto(json_format.ParseDict(json, pb.Move()))
    assert caught.value.field == field
    assert len(str(caught.value)) < 200


@pytest.mark.rule("NK-14")
@pytest.mark.parametrize("target", [-1, 0, 3, 6, 2**31 - 1])
def test_whether_a_target_is_in_the_match_is_for_the_rules_to_say(target: int) -> None:
    move = codec.move_from_proto(pb.Move(react=pb.React(round=1, action="THROW", target=target)))
    assert move == React(1, Action.THROW, target)
    state = rules.on_timeout(rules.setup(Options(), 3, RandomChance()).state, RandomChance()).state
    refusal = rules.apply(state, 0, move, RandomChance())
    assert isinstance(refusal, rules.Refusal)
    assert refusal.reason is Reason.NO_SUCH_TARGET


# ------------------------------------------------------------ views and events

EVIDENCE = {"receivedMs": 412, "roundTripMs": 80, "compensationMs": 60, "capMs": 60, "rule": "NK-10"}


@pytest.mark.parametrize(
    ("event", "json"),
    [
        (RoundStarted(1, (12, 0, 3)), {"roundStarted": {"round": 1, "pileSizes": [12, 0, 3]}}),
        (Peeked(0), {"peeked": {"seat": 0}}),
        (
            CardsRevealed(2, (Card(0, None), Card(2, Kind.SLEEPING_DRAGON))),
            {"cardsRevealed": {"round": 2, "cards": [{"seat": 0}, {"seat": 2, "card": "SLEEPING_DRAGON"}]}},
        ),
        (
            OwnCardShown(2, (Card(0, Kind.KING_OF_SILENCE),)),
            {"ownCardShown": {"round": 2, "cards": [{"seat": 0, "card": "KING_OF_SILENCE"}]}},
        ),
        (
            Reacted(Reaction(1, Action.THROW, 0, Verdict.GRANTED, 1, Evidence(412, 80, 60, 60, "NK-10"))),
            {"reacted": {"seat": 1, "action": "THROW", "target": 0, "verdict": "GRANTED", "rank": 1, "evidence": EVIDENCE}},
        ),
        (
            Reacted(Reaction(0, Action.PASS, None, Verdict.PASSED, 2, Evidence(412, 80, 60, 60, "NK-10"))),
            {"reacted": {"seat": 0, "action": "PASS", "verdict": "PASSED", "rank": 2, "evidence": EVIDENCE}},
        ),
        (
            RoundResolved(3, (Result(0, Kind.ATTACKING_KNIGHT, True, "NK-07"), Result(1, None, False, "NK-05"))),
            {
                "roundResolved": {
                    "round": 3,
                    "results": [
                        {"seat": 0, "card": "ATTACKING_KNIGHT", "right": True, "rule": "NK-07"},
                        {"seat": 1, "right": False, "rule": "NK-05"},
                    ],
                }
            },
        ),
    ],
)
def test_an_event_is_written(event: Event, json: dict[str, object]) -> None:
    assert as_json(codec.event_to_proto(event)) == json


def test_views_of_a_whole_match_are_written_as_they_are() -> None:
    rng, chance = random.Random(5), RandomChance()
    state = rules.setup(Options(), 4, chance).state
    while state.phase is not Phase.FINISHED:
        movers = rules.to_move(state)
        if not movers or rng.random() < (0.7 if state.phase is Phase.COUNTDOWN else 0.3):
            state = rules.on_timeout(state, chance).state
        else:
            seat = rng.choice(movers)
            step = rules.apply(state, seat, rng.choice(rules.legal(state, seat)), chance)
            assert isinstance(step, Step)
            state = step.state
        for viewer in (0, 3, None):
            view = rules.view(state, viewer)
            message = codec.view_to_proto(view)
            assert (message.round, Phase(message.phase), message.pillows_left) == (view.round, view.phase, view.pillows_left)
            assert cards(message.cards) == view.cards
            assert reactions(message.reactions) == view.reactions
            assert (tuple(message.pile_sizes), tuple(message.out)) == (view.pile_sizes, view.out)
            assert (last_round(message.last_round) if message.HasField("last_round") else None) == view.last_round
            assert not message.HasField("phase_end_time")


def cards(messages: Iterable[pb.Card]) -> tuple[Card, ...]:
    return tuple(Card(card.seat, Kind(card.card) if card.HasField("card") else None) for card in messages)


def reactions(messages: Iterable[pb.Reaction]) -> tuple[Reaction, ...]:
    return tuple(
        Reaction(
            message.seat,
            Action(message.action),
            message.target if message.HasField("target") else None,
            Verdict(message.verdict),
            message.rank,
            Evidence(
                message.evidence.received_ms,
                message.evidence.round_trip_ms,
                message.evidence.compensation_ms,
                message.evidence.cap_ms,
                message.evidence.rule,
            ),
        )
        for message in messages
    )


def last_round(message: pb.Round) -> Round:
    results = tuple(
        Result(result.seat, Kind(result.card) if result.HasField("card") else None, result.right, result.rule) for result in message.results
    )
    return Round(message.round, cards(message.cards), reactions(message.reactions), results)
