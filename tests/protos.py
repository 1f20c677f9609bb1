"""The protos of other releases: those that were released (`proto/baseline.binpb`), and some to come, with values and fields more."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

BASELINE = Path(__file__).parents[1] / "proto" / "baseline.binpb"
# In the protos to come every enum has one value more, and every message a field.
VALUE, FIELD, KIND = 1000, 2000, 2001

Files = descriptor_pb2.FileDescriptorSet
_Field = descriptor_pb2.FieldDescriptorProto


class Protos:
    """The message classes of a release, apart from those that are imported."""

    def __init__(self, files: Files) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            self._pool.Add(file)

    def message(self, name: str) -> Any:
        """The class of a message, by its full name."""
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(name))

    def game(self, game_id: str, name: str) -> Any:
        """The class of a game's message."""
        return self.message(f"gloaming.{game_id}.v1.{name}")


@cache
def baseline() -> Protos:
    """What clients of the last release were generated from."""
    return Protos(Files.FromString(BASELINE.read_bytes()))


@cache
def to_come() -> Protos:
    """The baseline, every enum of it with one value more, every message with a field, every `oneof kind` with a kind."""
    files = Files.FromString(BASELINE.read_bytes())
    for file in files.file:
        if file.package.startswith("gloaming"):
            _extend(file)
    return Protos(files)


def _extend(holder: Any) -> None:
    for enum in holder.enum_type:
        enum.value.add(name=f"{enum.name.upper()}_TO_COME", number=VALUE)
    for message in holder.message_type if isinstance(holder, descriptor_pb2.FileDescriptorProto) else holder.nested_type:
        if message.options.map_entry:
            continue
        _extend(message)
        message.field.add(name="to_come", number=FIELD, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL, json_name="toCome")
        for n, oneof in enumerate(message.oneof_decl):
            if oneof.name == "kind":
                kind = {"number": KIND, "type": _Field.TYPE_STRING, "label": _Field.LABEL_OPTIONAL, "oneof_index": n}
                message.field.add(name="kind_to_come", json_name="kindToCome", **kind)


def filled(kind: Any, choice: int, depth: int = 5) -> Any:
    """A message with everything set, of each choice one thing, and every enum at the value that only the protos to come have."""
    message = kind()
    _fill(message, message.DESCRIPTOR, choice, depth)
    return message


def _fill(message: Message, descriptor: Descriptor, choice: int, depth: int) -> None:
    for field in descriptor.fields:
        real = field.containing_oneof
        if real is not None and len(real.fields) > 1 and real.fields[choice % len(real.fields)] is not field:
            continue
        if field.message_type is None:
            value = _SCALARS.get(field.type, 1)
            if field.enum_type is not None and VALUE not in field.enum_type.values_by_number:
                value = 0
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)
        elif field.message_type.full_name == "google.protobuf.Timestamp":
            (getattr(message, field.name).add() if field.is_repeated else getattr(message, field.name)).FromSeconds(1_800_000_000)
        elif not field.message_type.full_name.startswith("google.") and not field.message_type.GetOptions().map_entry and depth:
            inner = getattr(message, field.name).add() if field.is_repeated else getattr(message, field.name)
            inner.SetInParent()
            _fill(inner, field.message_type, choice, depth - 1)


_SCALARS: dict[int, Any] = {
    FieldDescriptor.TYPE_BOOL: True,
    FieldDescriptor.TYPE_STRING: "to come",
    FieldDescriptor.TYPE_BYTES: b"to come",
    FieldDescriptor.TYPE_ENUM: VALUE,
}
