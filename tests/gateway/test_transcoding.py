"""Messages in and out of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import jsonschema
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway import transcoding
from gateway.registry import GAMES, descriptor_of
from gateway.schemas import Schemas
from gloaming.gateway.v1 import gateway_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from services.kit.errors import Unreadable

EVERY_MESSAGE = [(game.id, name) for game in GAMES.values() for name in game.messages]


def violation(body: str | bytes, kind: type[Message] = night_clan_pb2.SubmitMoveRequest, **more: Any) -> tuple[str, str]:
    """The field and the description of what is wrong with a body."""
    with pytest.raises(Unreadable) as wrong:
        transcoding.parse(body if isinstance(body, bytes) else body.encode(), kind, **more)
    return wrong.value.field, wrong.value.description


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("", ""),
        ("{", ""),
        ("nul", ""),
        ("[]", ""),
        ('"text"', ""),
        ("null", ""),
        ("1", ""),
        ("{} {}", ""),
        ("{'move':{}}", ""),
        ('{"move":{},}', ""),
        ('\ufeff{"move":{}}', ""),
        (b"\xff\xfe{}", ""),
        (b'{"requestId":"\xed\xa0\x80"}', ""),
        ('{"expectedVersion":NaN}', ""),
        ('{"expectedVersion":Infinity}', ""),
        ('{"expectedVersion":-Infinity}', ""),
        ('{"expectedVersion":%s}' % ("9" * 5000), ""),
        ('{"move":{},"move":{}}', ""),
        ('{"move":{"keep":{},"keep":{}}}', ""),
        ("[" * 100_000, ""),
        ('{"move":' * 20_000, ""),
        ('{"expectedVersion":1e999}', "expectedVersion"),
        ('{"expectedVersion":1.5}', "expectedVersion"),
        ('{"expectedVersion":true}', "expectedVersion"),
        ('{"expectedVersion":"1"}', "expectedVersion"),
        ('{"expectedVersion":2147483648}', "expectedVersion"),
        ('{"expectedVersion":-2147483649}', "expectedVersion"),
        ('{"expectedVersion":null}', "expectedVersion"),
        ('{"expectedVersion":{}}', "expectedVersion"),
        ('{"expectedVersion":[]}', "expectedVersion"),
        ('{"expected_version":1}', '"expected_version"'),
        ('{"requestId":1}', "requestId"),
        ('{"requestId":"\\ud800"}', "requestId"),
        ('{"move":null}', "move"),
        ('{"move":[]}', "move"),
        ('{"move":"keep"}', "move"),
        ('{"move":{"keep":null}}', "move.keep"),
        ('{"move":{"keep":{"x":1}}}', "move.keep.x"),
        ('{"move":{"keep":{},"mulligan":{}}}', "move.mulligan"),
        ('{"move":{"leave":{}}}', "move.leave"),
        ('{"move":{"play":{"location":"MOON"}}}', "move.play.location"),
        ('{"move":{"play":{"location":2}}}', "move.play.location"),
        ('{"move":{"play":{"location":"\\ud800"}}}', "move.play.location"),
        ('{"move":{"play":{"location":"church"}}}', "move.play.location"),
        ('{"move":{"play":{"relocate":{"cardId":{}}}}}', "move.play.relocate.cardId"),
        ('{"__proto__":{}}', '"__proto__"'),
        ('{"":1}', '""'),
        ('{"%s":1}' % ("x" * 5000), '"' + "x" * 64 + '..."'),
        ('{"[gloaming.table.v1.game]":1}', '"[gloaming.table.v1.game]"'),
        ('{"\\ud800":1}', '"\\ud800"'),
    ],
)
def test_a_body_that_cannot_be_read_names_its_field(body: str | bytes, field: str) -> None:
    named, description = violation(body)
    assert named == field
    assert description.encode()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"seats":{}}', "seats"),
        ('{"seats":[null]}', "seats[0]"),
        ('{"seats":[{"player":"me"},{"player":"me","bot":"STANDARD"}]}', "seats[1].bot"),
        ('{"seats":[{"player":"me"},{"bot":"SMART"}]}', "seats[1].bot"),
        ('{"settings":{"spectators":1}}', "settings.spectators"),
        ('{"settings":{"moveSeconds":"60"}}', "settings.moveSeconds"),
    ],
)
def test_elements_of_arrays_are_named_by_their_index(body: str, field: str) -> None:
    assert violation(body, night_clan_pb2.CreateMatchRequest)[0] == field


def test_a_name_as_protobuf_has_it_is_told_how_json_has_it() -> None:
    assert violation('{"expected_version":1}')[1] == "is written expectedVersion"


def test_fields_bound_elsewhere_are_not_taken_from_the_body() -> None:
    assert violation('{"matchId":"x"}', omit=frozenset({"matchId"})) == ("matchId", "is not given in the body")
    body = '{"seats":[{"player":"me","name":"Ann"}]}'
    assert violation(body, night_clan_pb2.CreateMatchRequest, omit=frozenset({"seats.name"}))[0] == "seats[0].name"


def test_a_whole_number_may_be_written_with_a_fraction_of_nothing() -> None:
    assert transcoding.parse(b'{"expectedVersion":7.0}', night_clan_pb2.SubmitMoveRequest).expected_version == 7


def test_fields_without_presence_are_always_printed_and_text_is_utf8() -> None:
    assert json.loads(transcoding.render(night_clan_pb2.Card(owner=0))) == {"cardId": "", "owner": 0, "faceUp": False}
    assert transcoding.render(gateway_pb2.CreatePlayerRequest(name="Zoë 🦊")) == '{"name":"Zoë 🦊"}'.encode()


def _strategy(descriptor: Descriptor, whole: bool, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects of a message, in the canonical form; whole: with every message that it may hold, as the server sends them."""
    always: dict[str, st.SearchStrategy[Any]] = {}
    plain: dict[str, st.SearchStrategy[Any]] = {}
    choices: dict[str, st.SearchStrategy[Any]] = {}
    for field in descriptor.fields:
        value = _value(field, whole, depth)
        if value is not None:
            chosen = field.containing_oneof is not None and field.containing_oneof.name != f"_{field.name}"
            there = whole and field.message_type is not None and not field.is_repeated
            target = choices if chosen else always if there else plain
            target[field.json_name] = st.lists(value, max_size=3) if field.is_repeated else value
    objects = st.fixed_dictionaries(always, optional=plain)
    if not choices:
        return objects
    one = st.one_of(*(st.builds(lambda item, name=name: {name: item}, item) for name, item in choices.items()))
    return st.builds(lambda left, right: {**left, **right}, objects, one)


def _value(field: FieldDescriptor, whole: bool, depth: int) -> st.SearchStrategy[Any] | None:
    if field.message_type is not None:
        if field.message_type.full_name == "google.protobuf.Timestamp":
            return st.just("2026-01-02T03:04:05.678Z")
        if field.message_type.full_name.startswith("google.protobuf."):
            return st.dictionaries(st.text(st.characters(codec="utf-8")), st.booleans() | st.text(st.characters(codec="utf-8")), max_size=2)
        return _strategy(field.message_type, whole, depth + 1) if depth < 8 else None
    if field.enum_type is not None:
        return st.sampled_from([value.name for value in field.enum_type.values])
    return {
        FieldDescriptor.TYPE_BOOL: st.booleans(),
        FieldDescriptor.TYPE_STRING: st.text(st.characters(codec="utf-8"), max_size=8),
        FieldDescriptor.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    }[field.type]


@pytest.mark.parametrize(("game", "name"), EVERY_MESSAGE)
def test_every_message_is_read_as_protobuf_reads_it_and_is_as_its_schema_says(game: str, name: str) -> None:
    kind = GAMES[game].messages[name]
    descriptor = descriptor_of(kind)
    sent = jsonschema.Draft202012Validator(Schemas([descriptor]).standalone(descriptor))
    received = jsonschema.Draft202012Validator(Schemas().standalone(descriptor))
    sent.check_schema(sent.schema)

    @settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(_strategy(descriptor, whole=False), _strategy(descriptor, whole=True))
    def check(partial: dict[str, Any], whole: dict[str, Any]) -> None:
        for value in (partial, whole):
            sent.validate(value)
            message = transcoding.build(value, kind)
            assert message == json_format.ParseDict(value, kind())
            printed = json.loads(transcoding.render(message))
            assert printed == json_format.MessageToDict(message, always_print_fields_with_no_presence=True)
            assert transcoding.build(printed, kind) == message
        received.validate(printed)

    check()


@pytest.mark.parametrize(("game", "name"), EVERY_MESSAGE)
def test_what_a_schema_for_requests_refuses_is_refused(game: str, name: str) -> None:
    kind = GAMES[game].messages[name]
    descriptor = descriptor_of(kind)
    schema = jsonschema.Draft202012Validator(Schemas([descriptor]).standalone(descriptor), format_checker=_FORMATS)
    junk = st.recursive(
        st.none() | st.booleans() | st.integers(-3, 3) | st.just(0.5) | st.sampled_from(["", "TROLL", "x"]),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([f.json_name for f in descriptor.fields] + ["x"]), inner)
        ),
        max_leaves=4,
    )

    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.dictionaries(st.sampled_from([field.json_name for field in descriptor.fields] + ["x"]), junk, max_size=3))
    def check(value: dict[str, Any]) -> None:
        # The one thing that a schema asks for and a message does not: that one of a choice be there.
        empty = _empty(schema.iter_errors(value))
        try:
            transcoding.build(value, kind)
        except Unreadable:
            read = False
        else:
            read = True
        if not empty and _exclusive(descriptor, value):
            assert read == schema.is_valid(value)

    check()


_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks("date-time", raises=ValueError)
def _is_time(value: object) -> bool:
    if isinstance(value, str):
        Timestamp().FromJsonString(value)
    return True


def _empty(errors: Iterable[jsonschema.ValidationError]) -> bool:
    return any((error.validator == "oneOf" and error.instance == {}) or _empty(error.context or ()) for error in errors)


def _exclusive(descriptor: Descriptor, value: Any) -> bool:
    """Whether no message of several fields holds two of one choice, which its schema does not say."""
    if not isinstance(value, dict):
        return True
    fields = {field.json_name: field for field in descriptor.fields}
    mixed = len({field.containing_oneof for field in descriptor.fields}) > 1
    chosen = [fields[name].containing_oneof.name for name in value if name in fields and fields[name].containing_oneof is not None]  # type: ignore[union-attr]
    if mixed and len(chosen) != len(set(chosen)):
        return False
    return all(
        _exclusive(fields[name].message_type, each)  # type: ignore[arg-type]
        for name, item in value.items()
        if name in fields and fields[name].message_type is not None
        for each in (item if isinstance(item, list) else [item])
    )
