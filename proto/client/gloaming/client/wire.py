"""Messages in JSON, those of games in them as well.

A field of bytes that is marked `of_game` holds a message of the game that its message is about; in JSON that message stands there itself.
"""

from __future__ import annotations

import base64
import importlib
import json
from typing import Any, TypeVar, cast

from google.protobuf import descriptor_pool, json_format, message_factory
from google.protobuf.message import Message

from gloaming.table.v1 import table_pb2

M = TypeVar("M", bound=Message)


def parse(text: str, kind: type[M]) -> M:
    """Reads a message; what is newer than the generated code is skipped."""
    body = json.loads(text)
    if not isinstance(body, dict):  # of other JSON json_format makes an empty message
        raise json_format.ParseError("a message is an object")
    for field in kind.DESCRIPTOR.fields:
        if (name := _of_game(field)) and field.json_name in body:
            packed = _pack(str(body.get("game", "")), name, body[field.json_name])
            body[field.json_name] = base64.b64encode(packed).decode()
    return json_format.ParseDict(body, kind(), ignore_unknown_fields=True)


def game_module(game: str) -> Any:
    """Returns a game's generated module, `gloaming.night_clan.v1.night_clan_pb2`, by its id.

    Raises:
        LookupError: there is none here.
    """
    if not game.isidentifier():
        raise LookupError(game)
    try:
        return importlib.import_module(f"gloaming.{game}.v1.{game}_pb2")
    except ModuleNotFoundError as fault:
        raise LookupError(game) from fault


def _of_game(field: Any) -> str:
    return cast(str, field.GetOptions().Extensions[_extension()])


def _extension() -> Any:
    return table_pb2.of_game


def _pack(game: str, name: str, body: dict[str, Any]) -> bytes:
    """Returns a message of a game as bytes; none of a game that is newer than the generated code."""
    try:
        game_module(game)
        kind = message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(f"gloaming.{game}.v1.{name}"))
    except LookupError:
        return b""
    return json_format.ParseDict(body, kind(), ignore_unknown_fields=True).SerializeToString()
