"""Leaderboards over REST."""

from __future__ import annotations

import base64
import binascii
import re

from starlette.requests import Request
from starlette.responses import Response

from gateway import exchange
from gateway.exchange import Answer
from gateway.matches import MOST_A_PAGE, PAGE
from gateway.operations import operation, says
from gateway.players import Players
from gateway.ratings import Ratings
from gateway.registry import GAMES
from gloaming.gateway.v1 import gateway_pb2
from services.kit.errors import NotFound, Unreadable

_TOKEN = re.compile(r"(-?\d{1,9})\.(p[a-z2-7]{16})")


class Leaderboards:
    """The resource `leaderboard` of each game."""

    def __init__(self, players: Players, ratings: Ratings) -> None:
        self._players = players
        self._ratings = ratings

    @operation(
        "GET",
        "/v1/games/{game_id:identifier}/leaderboard",
        tag="games",
        answers={200: says(gateway_pb2.Leaderboard)},
        parameters=("pageSize", "pageToken"),
        problems=(404,),
        authorized=False,
    )
    async def get_leaderboard(self, request: Request) -> Response:
        """A game's leaderboard, best first.

        Everybody of whom a rated match has been counted is in it. Players who are forgotten are left out, so that a page may be shorter
        than asked for.
        """
        game = request.path_params["game_id"]
        if game not in GAMES:
            raise NotFound("GAME_NOT_FOUND", "there is no game of this id")
        size = min(exchange.int_query(request, "pageSize", 0) or PAGE, MOST_A_PAGE)
        places = await self._ratings.page(game, _read_token(exchange.text_query(request, "pageToken")), size + 1)
        page = places[:size]
        profiles = await self._players.known(place.player for place in page)
        answer = gateway_pb2.Leaderboard(game=game)
        for place in page:
            if profile := profiles.get(place.player):
                rating = place.skill.message(game)
                answer.entries.add(rank=place.rank, player=profile.id, name=profile.name, rating=rating)
            else:
                await self._ratings.forget(place.player, [game])
        if len(places) > size:
            answer.next_page_token = _write_token(page[-1].score, page[-1].player)
        return Answer(answer)


def _write_token(score: int, player: str) -> str:
    return base64.urlsafe_b64encode(f"{score}.{player}".encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str] | None:
    if not token:
        return None
    try:
        place = _TOKEN.fullmatch(base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode("ascii"))
    except (binascii.Error, ValueError):
        place = None
    if place is None:
        raise Unreadable("pageToken", "must be the nextPageToken of a page")
    return int(place[1]), place[2]
