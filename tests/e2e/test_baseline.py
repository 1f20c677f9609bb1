"""A client that was generated from the protos of the last release plays against what is here today, over REST and over gRPC."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf import json_format

from deploy.local import Local
from services.kit.cursor import START
from services.kit.game import Game
from tests import protos
from tests.harness import IN_TURNS


class OldClient:
    """A signed-in client of the last release.

    Args:
        http: of a gateway.
        channel: of the game's service.
    """

    def __init__(self, game: Game, http: httpx.AsyncClient, channel: grpc.aio.Channel) -> None:
        self._game = game
        self._protos = protos.baseline()
        self._http = http
        self._channel = channel
        self._token = ""

    def of_game(self, name: str) -> Any:
        """A message class of the game, as it was."""
        return self._protos.game(self._game.id, name)

    async def sign_in(self) -> None:
        """Gets a token."""
        request = self._protos.message("gloaming.gateway.v1.CreatePlayerRequest")(name="Ann")
        kind = self._protos.message("gloaming.gateway.v1.Session")
        session = await self.rest("POST", "/v1/players", kind, json_format.MessageToDict(request))
        self._token = session.access_token

    async def rest(self, method: str, path: str, kind: Any, body: Any = None) -> Any:
        """What a call over REST answers."""
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        answer = await self._http.request(method, path, json=body, headers=headers)
        assert answer.is_success, answer.text
        return json_format.Parse(answer.text, kind(), ignore_unknown_fields=True)

    def _path(self, verb: str) -> str:
        return f"/{self._game.service.full_name}/{verb}"

    async def call(self, verb: str, kind: Any, **fields: Any) -> Any:
        """What a call over gRPC answers."""
        request = self.of_game(f"{verb}Request")(**fields)
        call: Any = self._channel.unary_unary(self._path(verb), type(request).SerializeToString, kind.FromString)
        return await call(request, metadata=[("authorization", f"Bearer {self._token}")], timeout=10, wait_for_ready=True)

    async def watch(self, match_id: str) -> list[Any]:
        """All that is streamed of a match that is over."""
        request = self.of_game("WatchMatchRequest")(match_id=match_id, after_cursor=START)
        kind = self.of_game("WatchMatchResponse")
        call: Any = self._channel.unary_stream(self._path("WatchMatch"), type(request).SerializeToString, kind.FromString)
        return [message async for message in call(request, metadata=[("authorization", f"Bearer {self._token}")], timeout=10)]


@pytest.mark.scenario(27)
@pytest.mark.parametrize("game", IN_TURNS, ids=lambda game: game.id)
async def test_a_client_of_the_last_release_plays_a_match_to_its_end(game: Game, everything: Local) -> None:
    async with (
        httpx.AsyncClient(base_url=everything.urls[0], timeout=10) as http,
        grpc.aio.insecure_channel(everything.services[game.id][0]) as channel,
        asyncio.timeout(60),
    ):
        client = OldClient(game, http, channel)
        match, moves, played = client.of_game("Match"), client.of_game("ListMovesResponse"), client.of_game("SubmitMoveResponse")
        await client.sign_in()
        seats = [{"player": "me"}, *[{"bot": "STANDARD"}] * (game.info.min_seats - 1)]
        made = await client.rest("POST", "/v1/matches", match, {"game": game.id, "seats": seats, "settings": {"moveSeconds": 0}})
        path, turns = f"/v1/matches/{made.id}", 0
        while True:
            if turns % 2:
                legal = await client.rest("GET", f"{path}/moves", moves)
                there = await client.rest("GET", path, match)
            else:
                legal = await client.call("ListMoves", moves, match_id=made.id)
                there = await client.call("GetMatch", match, match_id=made.id)
            if there.outcome.ranks:
                break
            if not legal.moves:
                await asyncio.sleep(0.01)
                continue
            turns += 1
            if turns % 2:
                done = await client.call("SubmitMove", played, match_id=made.id, move=legal.moves[0], request_id=str(turns))
            else:
                done = await client.rest("POST", f"{path}/moves", played, {"move": json_format.MessageToDict(legal.moves[0])})
            assert done.version > legal.version
        assert turns > 1
        told = await client.rest("GET", f"{path}/events?pageSize=500", client.of_game("ListEventsResponse"))
        record = await client.rest("GET", f"{path}/record", client.of_game("Record"))
        assert record == await client.call("GetRecord", client.of_game("Record"), match_id=made.id)
        assert record.outcome == there.outcome
        streamed = await client.watch(made.id)
        assert [news.event.cursor for news in streamed if news.HasField("event")][-1] == told.events[-1].cursor
