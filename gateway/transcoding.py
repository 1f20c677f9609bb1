"""Protobuf messages as JSON: the one way in and out of every REST body, and of every text frame of the live socket.

The dialect is canonical proto3 JSON (https://protobuf.dev/programming-guides/json/). Going out, fields without presence are always printed.
Coming in, only the canonical form is taken, as the published schemas say: names in lowerCamelCase, enums by name, 32-bit integers as
numbers, no null.

A field of bytes that is marked `of_game` holds a message of the game whose id, or whose match's id, stands beside it: in JSON it is that
message.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

import msgspec
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from gateway.registry import GAMES, Game, descriptor_of, game_of
from gloaming.table.v1 import table_pb2
from services.kit.errors import Unreadable

M = TypeVar("M", bound=Message)
_NOTHING: frozenset[str] = frozenset()


def render(message: Message) -> bytes:
    """Writes a message as JSON in UTF-8."""
    return msgspec.json.encode(plain(message))


def plain(message: Message) -> Any:
    """Returns a message as what JSON is made of; not to be changed, since parts of it are shared.

    The same as `json_format.MessageToDict`, which is some times slower, but for messages of a game, which stand as themselves.
    """
    shape = _shape(descriptor_of(message))
    if shape.known is not None:
        return shape.known(message)
    value = shape.defaults.copy()
    for field, item in message.ListFields():
        name, write = shape.fields[field.number]
        value[name] = write(item, message)
    return value


def parse(body: bytes, message_class: type[M], *, omit: frozenset[str] = _NOTHING) -> M:
    """Reads a message from JSON: `read` and then `build`."""
    return build(read(body), message_class, omit=omit)


def read(body: bytes, what: str = "body") -> dict[str, Any]:
    """Reads a JSON object.

    Args:
        what: what it is called where it is refused.

    Raises:
        Unreadable: it is not UTF-8, not JSON (RFC 8259), not an object, nested too deeply, or has a name twice.
    """
    try:
        value = _decoder().decode(body.decode())
    except UnicodeDecodeError as fault:
        raise Unreadable("", f"the {what} is not UTF-8") from fault
    except RecursionError:
        raise Unreadable("", f"the {what} is nested too deeply") from None
    except json.JSONDecodeError as fault:
        where = f"line {fault.lineno} column {fault.colno}"
        raise Unreadable("", f"the {what} is not JSON: {fault.msg}: {where}" if body else f"the {what} is empty") from fault
    except ValueError as fault:  # an integer of thousands of digits
        raise Unreadable("", f"the {what} has a number that is too long") from fault
    if not isinstance(value, dict):
        raise Unreadable("", f"the {what} is not a JSON object")
    return value


def build(value: Mapping[str, Any], message_class: type[M], *, omit: frozenset[str] = _NOTHING) -> M:
    """Makes a message of a JSON object.

    Args:
        omit: fields that the body may not hold, as dotted paths, since they are bound elsewhere: `matchId`, `seats.name`.

    Raises:
        Unreadable: a field is unknown, or its value is not of its type.
    """
    message = message_class()
    _fill(message, value, "", omit)
    return message


@functools.cache
def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, item in pairs:
        if name in value:
            raise Unreadable("", f"{_shown(name)} is there twice in one object")
        value[name] = item
    return value


def _no_constant(name: str) -> NoReturn:
    raise Unreadable("", f"{name} is no number in JSON")


def _shown(text: str) -> str:
    """A client's word, fit to be quoted back."""
    return json.dumps(text if len(text) <= 64 else text[:64] + "...")


# In plain dictionaries: protobuf's own look-ups do not survive half a surrogate pair (SystemError).
@functools.cache
def _fields(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    return {field.json_name: field for field in descriptor.fields}


@functools.cache
def _numbers(enum: EnumDescriptor) -> dict[str, int]:
    return {value.name: value.number for value in enum.values}


@functools.cache
def of_game(field: FieldDescriptor) -> str:
    """The name of the game's message that a field holds packed; empty for any other field."""
    return str(field.GetOptions().Extensions[cast(Any, table_pb2.of_game)]) if field.type == FieldDescriptor.TYPE_BYTES else ""


def _game_beside(message: Any) -> Game:
    """The game of a message's field that is marked `of_game`."""
    return GAMES[message.game] if "game" in _fields(descriptor_of(message)) else game_of(message.match_id)


def _game_named(descriptor: Descriptor, value: Mapping[str, Any], path: str) -> Game:
    """The same of a message that is being read."""
    if "game" not in _fields(descriptor):
        return game_of(_string(value.get("matchId", ""), _join(path, "matchId")))
    if (game := GAMES.get(_string(value.get("game", ""), _join(path, "game")))) is None:
        raise Unreadable(_join(path, "game"), f"must be one of {', '.join(GAMES)}")
    return game


class _Shape(NamedTuple):
    """How a message is written: its fields' names and ways by number, and what is there when nothing is set; or as JSON knows it itself."""

    fields: dict[int, tuple[str, Callable[[Any, Any], Any]]]
    defaults: dict[str, Any]
    known: Callable[[Any], Any] | None = None


@functools.cache
def _shape(descriptor: Descriptor) -> _Shape:
    if descriptor.full_name == "google.protobuf.Timestamp":
        return _Shape({}, {}, lambda message: message.ToJsonString())
    if descriptor.full_name.startswith("google.protobuf."):
        return _Shape({}, {}, lambda message: json_format.MessageToDict(message, always_print_fields_with_no_presence=True))
    fields: dict[int, tuple[str, Callable[[Any, Any], Any]]] = {}
    defaults: dict[str, Any] = {}
    for field in descriptor.fields:
        write = _writer(field)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            each = _writer(field.message_type.fields_by_name["value"])
            fields[field.number] = (field.json_name, _map_of(each))
            defaults[field.json_name] = {}
        elif field.is_repeated:
            fields[field.number] = (field.json_name, _list_of(write))
            defaults[field.json_name] = []
        else:
            fields[field.number] = (field.json_name, write)
            if not field.has_presence:
                defaults[field.json_name] = {} if of_game(field) else write(field.default_value, None)
    return _Shape(fields, defaults)


def _list_of(write: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda items, message: [write(item, message) for item in items]


def _map_of(write: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda entries, message: {
        (str(key).lower() if isinstance(key, bool) else str(key)): write(entries[key], message) for key in entries
    }


def _writer(field: FieldDescriptor) -> Callable[[Any, Any], Any]:
    if field.message_type is not None:
        return lambda item, _: plain(item)
    if field.enum_type is not None:
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda item, _: names.get(item, item)
    if named := of_game(field):
        return lambda item, message: plain(_game_beside(message).messages[named].FromString(item))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda item, _: base64.b64encode(item).decode()
    if field.cpp_type in (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64):
        return lambda item, _: str(item)
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        raise NotImplementedError(f"{field.full_name}: numbers with a fraction are not written")
    return lambda item, _: item


def _fill(message: Message, value: Any, path: str, omit: frozenset[str]) -> None:
    if not isinstance(value, Mapping):
        raise Unreadable(path, "must be an object")
    descriptor = descriptor_of(message)
    fields = _fields(descriptor)
    for name, item in value.items():
        field = fields.get(name)
        if field is None or name in omit:
            raise Unreadable(_join(path, name), _unknown(descriptor, name, omit))
        where = f"{path}.{name}" if path else name
        if field.containing_oneof is not None and (other := message.WhichOneof(field.containing_oneof.name)) is not None:
            raise Unreadable(where, f"cannot go together with {descriptor.fields_by_name[other].json_name}")
        deeper = frozenset(path[len(name) + 1 :] for path in omit if path.startswith(f"{name}.")) if omit else omit
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            _fill_map(getattr(message, field.name), field.message_type, item, where)
        elif field.is_repeated:
            if not isinstance(item, list):
                raise Unreadable(where, "must be an array")
            values = getattr(message, field.name)
            for index, element in enumerate(item):
                if field.message_type is not None:
                    _message(values.add(), element, f"{where}[{index}]", deeper)
                else:
                    values.append(_scalar(field, element, f"{where}[{index}]"))
        elif field.message_type is not None:
            child = getattr(message, field.name)
            child.SetInParent()
            _message(child, item, where, deeper)
        elif named := of_game(field):
            inner = _game_named(descriptor, value, path).messages[named]()
            _fill(inner, item, where, deeper)
            setattr(message, field.name, inner.SerializeToString())
        else:
            setattr(message, field.name, _scalar(field, item, where))


def _fill_map(entries: Any, entry: Descriptor, value: Any, path: str) -> None:
    key_field, value_field = entry.fields_by_name["key"], entry.fields_by_name["value"]
    if key_field.type != FieldDescriptor.TYPE_STRING:
        raise NotImplementedError(f"{entry.full_name}: only maps by string are read")
    if not isinstance(value, Mapping):
        raise Unreadable(path, "must be an object")
    for name, item in value.items():
        key = _string(name, path)
        if value_field.message_type is not None:
            _message(entries[key], item, _join(path, name), _NOTHING)
        else:
            entries[key] = _scalar(value_field, item, _join(path, name))


def _message(message: Message, value: Any, path: str, omit: frozenset[str]) -> None:
    if not message.DESCRIPTOR.full_name.startswith("google.protobuf."):
        _fill(message, value, path, omit)
        return
    try:
        json_format.ParseDict(value, message)
    except (json_format.ParseError, RecursionError, TypeError, ValueError) as fault:
        raise Unreadable(path, f"is not a {message.DESCRIPTOR.name}") from fault


def _join(path: str, name: str) -> str:
    """A path that may end in a client's word."""
    name = name if name.isalnum() and name.isascii() and len(name) <= 64 else _shown(name)
    return f"{path}.{name}" if path else name


def _unknown(descriptor: Descriptor, name: str, omit: frozenset[str]) -> str:
    if name in omit:
        return "is not given in the body"
    field = next((field for field in descriptor.fields if field.name == name), None)
    return f"is written {field.json_name}" if field is not None and field.json_name not in omit else "there is no such field"


def _scalar(field: FieldDescriptor, value: Any, path: str) -> Any:
    if value is None:
        raise Unreadable(path, "is null; leave the field out")
    return _SCALARS[field.cpp_type](field, value, path)


def _boolean(field: FieldDescriptor, value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise Unreadable(path, "must be true or false")
    return value


def _text(field: FieldDescriptor, value: Any, path: str) -> str | bytes:
    if field.type == FieldDescriptor.TYPE_STRING:
        return _string(value, path)
    try:
        return base64.b64decode(_string(value, path), validate=True)
    except binascii.Error as fault:
        raise Unreadable(path, "must be base64") from fault


def _string(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise Unreadable(path, "must be a string")
    try:
        value.encode()
    except UnicodeEncodeError as fault:
        raise Unreadable(path, "has half a surrogate pair") from fault
    return value


def _enum(field: FieldDescriptor, value: Any, path: str) -> int:
    assert field.enum_type is not None
    numbers = _numbers(field.enum_type)
    number = numbers.get(value) if isinstance(value, str) else None
    if number is None:
        # The zero value is the field left out: it is taken, and not offered.
        raise Unreadable(path, f"must be one of {', '.join(name for name, known in numbers.items() if known)}")
    return number


def _integer(low: int, high: int, *, as_text: bool = False) -> Callable[[FieldDescriptor, Any, str], int]:
    def read(field: FieldDescriptor, value: Any, path: str) -> int:
        if as_text and isinstance(value, str) and value.isascii() and value.removeprefix("-").isdecimal() and len(value) <= 20:
            value = int(value)
        # JSON has one kind of number: 1.0 is the integer 1.
        if isinstance(value, bool) or not isinstance(value, int | float) or (isinstance(value, float) and not value.is_integer()):
            raise Unreadable(path, "must be an integer")
        if not low <= value <= high:
            raise Unreadable(path, f"must be from {low} to {high}")
        return int(value)

    return read


def _number(field: FieldDescriptor, value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable(path, "must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or (field.cpp_type == FieldDescriptor.CPPTYPE_FLOAT and abs(number) > 3.4e38):
        raise Unreadable(path, "is out of range")
    return number


_SCALARS: dict[int, Callable[[FieldDescriptor, Any, str], Any]] = {
    FieldDescriptor.CPPTYPE_BOOL: _boolean,
    FieldDescriptor.CPPTYPE_STRING: _text,
    FieldDescriptor.CPPTYPE_ENUM: _enum,
    FieldDescriptor.CPPTYPE_INT32: _integer(-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: _integer(0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: _integer(-(2**63), 2**63 - 1, as_text=True),
    FieldDescriptor.CPPTYPE_UINT64: _integer(0, 2**64 - 1, as_text=True),
    FieldDescriptor.CPPTYPE_FLOAT: _number,
    FieldDescriptor.CPPTYPE_DOUBLE: _number,
}
