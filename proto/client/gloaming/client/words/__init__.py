"""What happens in matches, in words: `words.event("night_clan", event, names)` is "Ann plays a Daughter (c3) at the Church."

`names` are those of the seats in turn order, `words.seat_names(match.seats)`. A game that has no words of its own here is told in the words
of its messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from gloaming.client.words import clans_and_glory, dark_is_the_night, night_clan, night_knight
from gloaming.client.words.common import finished, label, seat_changed, seat_names

__all__ = ["event", "finished", "move", "seat_names"]

_GAMES: dict[str, ModuleType] = {
    "clans_and_glory": clans_and_glory,
    "dark_is_the_night": dark_is_the_night,
    "night_clan": night_clan,
    "night_knight": night_knight,
}


def event(game: str, happened: Any, names: Sequence[str]) -> str:
    """An event in a sentence or two; empty for what nobody needs to be told, and for what is newer than this client."""
    kind = happened.WhichOneof("kind")
    match kind:
        case None:
            return ""
        case "seat_changed":
            return seat_changed(happened.seat_changed.seat, names)
        case "match_finished":
            return finished(happened.match_finished.outcome, names)
        case _:
            said: str = _GAMES[game].event(happened, names) if game in _GAMES else _generic(kind, getattr(happened, kind), names)
            return said


def move(game: str, done: Any, names: Sequence[str]) -> str:
    """A move in a few words, as in "Daughter to the Church"."""
    kind = done.WhichOneof("kind")
    if kind is None:
        return ""
    said: str = _GAMES[game].move(done, names) if game in _GAMES else _generic(kind, getattr(done, kind), names)
    return said


def _generic(kind: str, message: Message, names: Sequence[str]) -> str:
    said = [f"{field.name.replace('_', ' ')} {_value(field, value, names)}" for field, value in message.ListFields()]
    return label(kind) + (": " + ", ".join(said) if said else "")


def _value(field: FieldDescriptor, value: Any, names: Sequence[str]) -> str:
    if field.name == "seat" and value < len(names):
        return str(names[value])
    if isinstance(value, Message):
        return "(" + ", ".join(_value(inner, each, names) for inner, each in value.ListFields()) + ")"
    if hasattr(value, "__len__") and not isinstance(value, str | bytes):
        return " ".join(_value(field, each, names) for each in value)
    if field.enum_type is not None and value in field.enum_type.values_by_number:
        return label(str(field.enum_type.values_by_number[value].name))
    return str(value)
