"""The games that the gateway serves: one line a game. All else that it knows of a game stands in the descriptor of the game's service."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

from google.protobuf.descriptor import Descriptor, FileDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gloaming.clans_and_glory.v1 import clans_and_glory_pb2
from gloaming.dark_is_the_night.v1 import dark_is_the_night_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.night_knight.v1 import night_knight_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import NotFound

_MODULES: tuple[ModuleType, ...] = (
    night_clan_pb2,
    clans_and_glory_pb2,
    dark_is_the_night_pb2,
    night_knight_pb2,
)

_MATCH_ID = re.compile(r"([a-z_]+)-[a-z0-9]{8,40}")


@dataclass(frozen=True, slots=True)
class Method:
    """A verb of a game's service.

    Args:
        path: its name on the wire, `/package.Service/Method`.
        request: what it takes.
        response: what it returns, or streams.
        streams: whether it streams.
    """

    path: str
    request: type[Message]
    response: type[Message]
    streams: bool


@dataclass(frozen=True, slots=True)
class Game:
    """A game, as its descriptor tells.

    Args:
        id: as in match ids and paths.
        title: its name, for people.
        min_seats: fewest seats.
        max_seats: most seats.
        real_time: whether moves race each other.
        service: the full name of its gRPC service.
        methods: the service's verbs, by name.
        messages: the file's messages, by name: `Options`, `Move`, `View`, `Event`, `Match`, …
    """

    id: str
    title: str
    min_seats: int
    max_seats: int
    real_time: bool
    service: str
    methods: Mapping[str, Method]
    messages: Mapping[str, type[Message]]

    @classmethod
    def of(cls, module: ModuleType) -> Game:
        """Reads a generated module, whose file holds exactly one service with the option `gloaming.table.v1.game`."""
        file = cast(FileDescriptor, module.DESCRIPTOR)
        (service,) = file.services_by_name.values()
        # The stubs type the extension as a plain descriptor.
        info: table_pb2.GameInfo = service.GetOptions().Extensions[cast(Any, table_pb2.game)]
        return cls(
            id=info.id,
            title=info.title,
            min_seats=info.min_seats,
            max_seats=info.max_seats,
            real_time=info.real_time,
            service=service.full_name,
            # What takes a stream of requests (`Play`) is for integrators by gRPC: sockets go by the relay.
            methods={method.name: _method(service.full_name, method) for method in service.methods if not method.client_streaming},
            messages={name: GetMessageClass(message) for name, message in file.message_types_by_name.items()},
        )


def _method(service: str, method: MethodDescriptor) -> Method:
    return Method(
        path=f"/{service}/{method.name}",
        request=GetMessageClass(method.input_type),
        response=GetMessageClass(method.output_type),
        streams=method.server_streaming,
    )


def descriptor_of(message: type[Message] | Message) -> Descriptor:
    """Returns a message's descriptor, by its public type."""
    return cast(Descriptor, message.DESCRIPTOR)


GAMES: Mapping[str, Game] = {game.id: game for game in map(Game.of, _MODULES)}


def game_of(match_id: str) -> Game:
    """Returns the game that a match id begins with.

    Raises:
        NotFound: MATCH_NOT_FOUND; it is no match id, or of no game that is served here.
    """
    shaped = _MATCH_ID.fullmatch(match_id)
    game = GAMES.get(shaped[1]) if shaped else None
    if game is None:
        raise NotFound("MATCH_NOT_FOUND", "there is no match of this id")
    return game
