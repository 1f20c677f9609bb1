"""JSON Schemas (draft 2020-12) of protobuf messages, as `gateway.transcoding` reads and writes them.

A message that a client may send is closed (unknown fields are refused) and requires nothing, for proto3 leaves defaults out. A message that
only the server sends stays open, so that a newer server does not break an older client, and requires the fields that are always there:
those without presence, and messages, unless they are `optional` or their comment in the .proto file says "absent" or "only". A message
that is one choice and nothing else is a union of objects with one key each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from gateway.comments import comments
from gateway.registry import GAMES, descriptor_of
from gateway.transcoding import of_game

Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_NOTHING: frozenset[str] = frozenset()
_AT_TIMES = re.compile(r"\b(absent|only)\b", re.IGNORECASE)

_SCALARS: Mapping[int, Schema] = {
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
    FieldDescriptor.TYPE_INT32: {"type": "integer", "format": "int32"},
    FieldDescriptor.TYPE_UINT32: {"type": "integer", "format": "int64", "minimum": 0, "maximum": 2**32 - 1},
    FieldDescriptor.TYPE_FLOAT: {"type": "number", "format": "float"},
    FieldDescriptor.TYPE_DOUBLE: {"type": "number", "format": "double"},
}

_WELL_KNOWN: Mapping[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": r"^-?\d+(\.\d{1,9})?s$"},
    "google.protobuf.Struct": {"type": "object", "additionalProperties": True},
}


class Schemas:
    """Schemas that refer to one another by name.

    Args:
        inputs: messages that a client may send; all that they hold may be sent too.
        prefix: where the named schemas are to stand.
    """

    def __init__(self, inputs: Iterable[Descriptor] = (), prefix: str = "#/components/schemas/") -> None:
        self.named: dict[str, Schema] = {}
        self._prefix = prefix
        self._owners: dict[str, str] = {}
        self._inputs: set[str] = set()
        for descriptor in inputs:
            self._admit(descriptor)

    def _admit(self, descriptor: Descriptor) -> None:
        if descriptor.full_name not in self._inputs and descriptor.full_name not in _WELL_KNOWN:
            self._inputs.add(descriptor.full_name)
            for field in descriptor.fields:
                if field.message_type is not None:
                    self._admit(field.message_type)
                if named := of_game(field):
                    for game in GAMES.values():
                        self._admit(descriptor_of(game.messages[named]))

    def ref(self, descriptor: Descriptor | EnumDescriptor) -> Schema:
        """Returns a reference to the schema of a message or an enum."""
        if descriptor.full_name in _WELL_KNOWN:
            return dict(_WELL_KNOWN[descriptor.full_name])
        name = name_of(descriptor)
        if self._owners.setdefault(name, descriptor.full_name) != descriptor.full_name:
            raise ValueError(f"{descriptor.full_name} and {self._owners[name]} would both be named {name}")
        if name not in self.named:
            self.named[name] = {}  # stands for itself while it is being made
            if isinstance(descriptor, EnumDescriptor):
                self.named[name] = _enum(descriptor)
            else:
                self.named[name] = self.object(descriptor)
        return {"$ref": self._prefix + name}

    def object(self, descriptor: Descriptor, omit: frozenset[str] = _NOTHING) -> Schema:
        """Returns the schema of a message in place, without some of its fields (see `transcoding.build`)."""
        fields = [field for field in descriptor.fields if field.json_name not in omit]
        closed = bool(omit) or descriptor.full_name in self._inputs
        schema: Schema = {"type": "object", **_described(descriptor.full_name)}
        properties = {field.json_name: self._field(field, _below(omit, field.json_name)) | _described(field.full_name) for field in fields}
        more: Schema = {"additionalProperties": False} if closed else {}
        if fields and all(_chosen(field) for field in fields) and len({_chosen(field) for field in fields}) == 1:
            one = [{"type": "object", "properties": {name: value}, "required": [name], **more} for name, value in properties.items()]
            return schema | {"oneOf": one}
        if properties:
            schema["properties"] = properties
        if not closed and (always := [field.json_name for field in fields if _always(field)]):
            schema["required"] = always
        return schema | more

    def each(self, message: str) -> Schema:
        """Returns the schema of the messages of one name, of whichever game; told apart by `game` where they have it."""
        descriptors = {game.id: descriptor_of(game.messages[message]) for game in GAMES.values()}
        refs = {game: self.ref(descriptor) for game, descriptor in descriptors.items()}
        if not all("game" in descriptor.fields_by_name for descriptor in descriptors.values()):
            return {"anyOf": list(refs.values())}
        for game, descriptor in descriptors.items():
            self.named[name_of(descriptor)]["properties"]["game"] = {"type": "string", "enum": [game]}
        return one_of_games(refs)

    def standalone(self, descriptor: Descriptor) -> Schema:
        """Returns the schema of a message as a document of its own."""
        alone = Schemas(prefix="#/$defs/")
        alone._inputs = self._inputs
        return {"$schema": DRAFT, **alone.ref(descriptor), "$defs": alone.named}

    def _field(self, field: FieldDescriptor, omit: frozenset[str]) -> Schema:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return {"type": "object", "additionalProperties": self._value(field.message_type.fields_by_name["value"], _NOTHING)}
        value = self._value(field, omit)
        return {"type": "array", "items": value} if field.is_repeated else value

    def _value(self, field: FieldDescriptor, omit: frozenset[str]) -> Schema:
        if field.enum_type is not None:
            return self.ref(field.enum_type)
        if field.message_type is not None:
            return self.object(field.message_type, omit) if omit else self.ref(field.message_type)
        if named := of_game(field):
            return self.each(named)
        return dict(_SCALARS[field.type])


def _chosen(field: FieldDescriptor) -> str:
    """The choice that a field belongs to, or nothing; for `optional`, protobuf makes a choice of one."""
    oneof = field.containing_oneof
    return "" if oneof is None or oneof.name == f"_{field.name}" else oneof.name


def _always(field: FieldDescriptor) -> bool:
    """Whether the server always sends a field."""
    if not field.has_presence:
        return True
    return field.message_type is not None and field.containing_oneof is None and not _AT_TIMES.search(comments().get(field.full_name, ""))


def _described(full_name: str) -> Schema:
    comment = comments().get(full_name)
    return {"description": comment} if comment else {}


def _enum(descriptor: EnumDescriptor) -> Schema:
    values = [f"`{value.name}`: {comments().get(f'{descriptor.full_name}.{value.name}', '')}" for value in descriptor.values]
    about = comments().get(descriptor.full_name, "")
    return {"type": "string", "enum": [value.name for value in descriptor.values], "description": "\n\n".join([about, *values])}


def one_of_games(refs: Mapping[str, Schema]) -> Schema:
    """Returns the schema of an object of one of the games, told apart by `game`."""
    return {
        "oneOf": list(refs.values()),
        "discriminator": {"propertyName": "game", "mapping": {game: ref["$ref"] for game, ref in refs.items()}},
    }


def name_of(descriptor: Descriptor | EnumDescriptor) -> str:
    """Returns the name of a message's schema: what is a game's own begins with the game, `NightClanLocationName`."""
    package = descriptor.file.package
    owner = package.split(".")[1]
    own = descriptor.full_name.removeprefix(f"{package}.").replace(".", "")
    return own if owner in ("table", "gateway") else "".join(word.capitalize() for word in owner.split("_")) + own


def _below(omit: frozenset[str], name: str) -> frozenset[str]:
    return frozenset(path[len(name) + 1 :] for path in omit if path.startswith(f"{name}.")) if omit else omit
