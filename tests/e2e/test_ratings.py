"""Ratings on the whole stack: rated matches that people play over REST."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from deploy.local import Local
from gateway.registry import GAMES

FOR_TWO = [game.id for game in GAMES.values() if game.min_seats == 2]


class Person:
    """Somebody who plays over REST."""

    def __init__(self, http: httpx.AsyncClient, player: str, token: str) -> None:
        self.player = player
        self._http = http
        self._headers = {"Authorization": f"Bearer {token}"}

    @classmethod
    async def sign_in(cls, http: httpx.AsyncClient, name: str) -> Person:
        """Signs in as a guest."""
        session = (await http.post("/v1/players", json={"name": name})).json()
        return cls(http, session["player"]["id"], session["accessToken"])

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request, which is granted."""
        answer = await self._http.request(method, path, json=body, headers=self._headers)
        assert answer.is_success, (method, path, answer.text)
        return answer.json()

    async def match_with(self, other: Person, game: str, *, rated: bool = True) -> str:
        """Has a match made with somebody else; returns its id."""
        room = await self.ask("POST", "/v1/rooms", {"game": game, "seats": 2, "settings": {"rated": rated}})
        path = f"/v1/rooms/{room['code']}"
        await other.ask("POST", f"{path}:join", {})
        await self.ask("POST", f"{path}:ready", {})
        await other.ask("POST", f"{path}:ready", {})
        started = await self.ask("POST", f"{path}:start", {})
        match_id: str = started["matchId"]
        return match_id

    async def counted(self, game: str) -> int:
        """How many matches of a game have been counted."""
        ratings = (await self.ask("GET", "/v1/players/me"))["ratings"]
        return next((rating["matches"] for rating in ratings if rating["game"] == game), 0)


async def until(condition: Callable[[], Any]) -> None:
    """Waits until something is so."""
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@asynccontextmanager
async def client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a gateway."""
    async with httpx.AsyncClient(base_url=url, timeout=20) as http:
        yield http


async def ready(url: str) -> bool:
    """Whether a gateway serves."""
    async with client(url) as http:
        try:
            return (await http.get("/readyz")).is_success
        except httpx.TransportError:
            return False


@pytest.mark.parametrize("game", FOR_TWO)
async def test_a_rated_match_between_two_people_counts_once_and_is_seen_at_every_gateway(everything: Local, game: str) -> None:
    async with client(everything.urls[0]) as http, client(everything.urls[1]) as elsewhere:
        ann, bob = await Person.sign_in(http, "Ann"), await Person.sign_in(http, "Bob")
        unrated = await ann.match_with(bob, game, rated=False)
        await ann.ask("POST", f"/v1/matches/{unrated}:resign", {})
        match_id = await ann.match_with(bob, game)
        rng = random.Random(game)
        for _ in range(6):
            for person in (ann, bob):
                if moves := (await person.ask("GET", f"/v1/matches/{match_id}/moves"))["moves"]:
                    await person.ask("POST", f"/v1/matches/{match_id}/moves", {"move": rng.choice(moves)})
        await bob.ask("POST", f"/v1/matches/{match_id}:resign", {})
        await until(lambda: ann.counted(game))
        shown = (await elsewhere.get(f"/v1/players/{ann.player}")).json()["ratings"]
        assert [(rating["game"], rating["matches"]) for rating in shown] == [(game, 1)]
        assert shown[0]["rating"] > 1500
        assert await bob.counted(game) == 1
        ranks, token = dict[str, int](), ""
        while True:
            page = (await elsewhere.get(f"/v1/games/{game}/leaderboard", params={"pageSize": 50, "pageToken": token})).json()
            ranks |= {entry["player"]: entry["rank"] for entry in page["entries"]}
            if not (token := page["nextPageToken"]):
                break
        assert ranks[ann.player] < ranks[bob.player]
        await bob.ask("DELETE", "/v1/players/me")
        assert (await elsewhere.get(f"/v1/players/{bob.player}")).status_code == 404


async def test_a_match_played_to_its_end_counts_as_it_ended(everything: Local) -> None:
    game = "clans_and_glory"
    async with client(everything.url) as http:
        ann, bob = await Person.sign_in(http, "Ann"), await Person.sign_in(http, "Bob")
        match_id = await ann.match_with(bob, game)
        while (match := await ann.ask("GET", f"/v1/matches/{match_id}"))["status"] != "FINISHED":
            for person in (ann, bob):
                if moves := (await person.ask("GET", f"/v1/matches/{match_id}/moves"))["moves"]:
                    await person.ask("POST", f"/v1/matches/{match_id}/moves", {"move": moves[0]})
        await until(lambda: ann.counted(game))
        by_player = {}
        for person in (ann, bob):
            (rating,) = (await person.ask("GET", "/v1/players/me"))["ratings"]
            by_player[person.player] = rating["rating"]
        ranks = {seat["player"]: match["outcome"]["ranks"][seat["seat"]] for seat in match["seats"]}
        if len(set(ranks.values())) == 1:
            assert set(by_player.values()) == {1500}
        else:
            assert min(by_player, key=lambda player: ranks[player]) == max(by_player, key=lambda player: by_player[player])


@pytest.mark.slow
@pytest.mark.scenario(22)
async def test_results_count_once_though_gateways_are_killed_while_they_count(tmp_path: Path) -> None:
    game, number = "night_clan", 45
    env = {"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0", "GLOAMING_RESULT_LEASE_MS": "500"}
    local = Local(tmp_path, gateways=3, env=env)
    await asyncio.to_thread(local.start)
    try:
        async with client(local.urls[2]) as http:
            ann, bob = await Person.sign_in(http, "Ann"), await Person.sign_in(http, "Bob")
            matches = [await ann.match_with(bob, game) for _ in range(number)]

            rng = random.Random(7)
            rounds = [matches[begin : begin + 15] for begin in range(0, number, 15)]
            for ended in rounds:
                for url in local.urls:
                    await until(lambda url=url: ready(url))  # type: ignore[misc]
                resigning = [(ann, bob)[index % 2].ask("POST", f"/v1/matches/{each}:resign", {}) for index, each in enumerate(ended)]
                await asyncio.gather(*resigning)
                # Each gateway asks for results about once a second.
                for name in ("gateway-1", "gateway-2"):
                    await asyncio.sleep(rng.uniform(0, 0.7))
                    local.kill(name)
                for name in ("gateway-1", "gateway-2"):
                    await asyncio.to_thread(local.restart, name)

            async def all_counted() -> bool:
                return await ann.counted(game) >= number

            await until(all_counted)

            async with Redis.from_url(local.redis_url) as redis:

                async def all_acknowledged() -> bool:
                    return not await redis.zcard(f"{game}:{{results}}:due")

                await until(all_acknowledged)
            assert [await ann.counted(game), await bob.counted(game)] == [number, number]
    finally:
        await asyncio.to_thread(local.stop)
