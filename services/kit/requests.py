"""What callers ask for, checked before anything is looked up: each function returns what is meant, or raises `errors.Unreadable`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.message import Message

from gloaming.table.v1 import table_pb2
from services.kit.errors import Unreadable
from services.kit.game import Value
from services.kit.sessions import Listed

_DEFAULT_MOVE_SECONDS, _MOST_MOVE_SECONDS = 60, 604_800
_DEFAULT_START_SECONDS, _MOST_START_SECONDS = 10, 60
_LONGEST_NAME = 40
_PLAYER_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_REQUEST_ID = re.compile(r"[\x20-\x7e]{0,128}")
_PAGE, _LARGEST_PAGE = 100, 500


def value(reader: Callable[[Any], Value], message: Message, field: str) -> Value:
    """A game's value, from the field of a request that holds it."""
    try:
        return reader(message)
    except Unreadable as fault:
        raise fault.within(field) from fault


def settings(asked: table_pb2.Settings) -> table_pb2.Settings:
    """The platform's settings, defaults filled in."""
    seconds = asked.move_seconds if asked.HasField("move_seconds") else _DEFAULT_MOVE_SECONDS
    if not 0 <= seconds <= _MOST_MOVE_SECONDS:
        raise Unreadable("settings.moveSeconds", f"must be 0 to {_MOST_MOVE_SECONDS}")
    start = asked.start_seconds if asked.HasField("start_seconds") else _DEFAULT_START_SECONDS
    if not 0 <= start <= _MOST_START_SECONDS:
        raise Unreadable("settings.startSeconds", f"must be 0 to {_MOST_START_SECONDS}")
    return table_pb2.Settings(
        move_seconds=seconds,
        spectators=asked.spectators if asked.HasField("spectators") else True,
        rated=asked.rated,
        start_seconds=start,
    )


def order(asked: int) -> int:
    """How seats are numbered (ALL-04)."""
    if asked not in table_pb2.Seating.Order.values():
        raise Unreadable("order", "must be DRAWN or AS_LISTED")
    return asked or table_pb2.Seating.DRAWN


def listed(info: table_pb2.GameInfo, seats: Sequence[table_pb2.SeatRequest]) -> tuple[Listed, ...]:
    """Who is to sit."""
    if not info.min_seats <= len(seats) <= info.max_seats:
        raise Unreadable("seats", f"must be {info.min_seats} to {info.max_seats}")
    for n, seat in enumerate(seats):
        match seat.WhichOneof("occupant"):
            case "player" if not _PLAYER_ID.fullmatch(seat.player):
                raise Unreadable(f"seats[{n}].player", "not a player's id")
            case "player" if any(seat.player == other.player for other in seats[:n]):
                raise Unreadable(f"seats[{n}].player", "sits twice")
            case "bot" if seat.bot != table_pb2.Bot.STANDARD:
                raise Unreadable(f"seats[{n}].bot", "must be STANDARD")
            case None:
                raise Unreadable(f"seats[{n}]", "must be a player or a bot")
        if len(seat.name) > _LONGEST_NAME:
            raise Unreadable(f"seats[{n}].name", f"must be at most {_LONGEST_NAME} characters")
    nameless = [n for n, seat in enumerate(seats) if seat.bot and not seat.name]
    bots = {n: f"Bot {number}" if len(nameless) > 1 else "Bot" for number, n in enumerate(nameless, 1)}
    return tuple(Listed(seat.player, seat.bot, seat.name or bots.get(n, seat.player)) for n, seat in enumerate(seats))


def request_id(asked: str) -> str:
    """The name of a request (AIP-155); empty for none."""
    if not _REQUEST_ID.fullmatch(asked):
        raise Unreadable("requestId", "must be at most 128 printable ASCII characters")
    return asked


def page_size(asked: int, largest: int = _LARGEST_PAGE) -> int:
    """How many things a page has at most (AIP-158)."""
    if asked < 0:
        raise Unreadable("pageSize", "must not be negative")
    return min(asked or _PAGE, largest)
