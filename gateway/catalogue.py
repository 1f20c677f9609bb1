"""The catalogue of games, read from their descriptors."""

from __future__ import annotations

from google.protobuf import json_format
from starlette.requests import Request
from starlette.responses import Response

from gateway.exchange import JSON
from gateway.operations import operation, says
from gateway.registry import GAMES, Game, descriptor_of
from gateway.schemas import Schemas
from gateway.transcoding import render
from gloaming.gateway.v1 import gateway_pb2
from services.kit.errors import NotFound


class Catalogue:
    """The resource `games`. It changes with a release only, so each body is made once."""

    def __init__(self) -> None:
        self._all = render(gateway_pb2.ListGamesResponse(games=[_game(game) for game in GAMES.values()]))
        self._each = {game.id: render(_whole(game)) for game in GAMES.values()}

    @operation("GET", "/v1/games", tag="games", answers={200: says(gateway_pb2.ListGamesResponse)}, authorized=False)
    async def list_games(self, request: Request) -> Response:
        """Every game, without its schemas."""
        return Response(self._all, media_type=JSON)

    @operation(
        "GET", "/v1/games/{game_id:identifier}", tag="games", answers={200: says(gateway_pb2.Game)}, problems=(404,), authorized=False
    )
    async def get_game(self, request: Request) -> Response:
        """A game, with JSON Schemas of its options, moves, views and events."""
        body = self._each.get(request.path_params["game_id"])
        if body is None:
            raise NotFound("GAME_NOT_FOUND", "there is no game of this id")
        return Response(body, media_type=JSON)


def _game(game: Game) -> gateway_pb2.Game:
    return gateway_pb2.Game(
        id=game.id,
        title=game.title,
        seats=gateway_pb2.Seats(min=game.min_seats, max=game.max_seats),
        real_time=game.real_time,
        service=game.service,
    )


def _whole(game: Game) -> gateway_pb2.Game:
    whole = _game(game)
    schemas = Schemas([descriptor_of(game.messages[name]) for name in ("Options", "Move")])
    for part in ("options", "move", "view", "event"):
        json_format.ParseDict(schemas.standalone(descriptor_of(game.messages[part.capitalize()])), getattr(whole.schemas, part))
    return whole
