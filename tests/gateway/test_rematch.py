"""Rematches: two gateways in front of each game's real service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from gateway.registry import GAMES
from gloaming.table.v1 import table_pb2
from services.kit.errors import Unavailable, Unreadable
from services.kit.game import Game
from tests.gateway.stand import MATCH_ID, Context, Stand, match, refuse, stand
from tests.harness import EVERY_GAME, Keys, Player, Table, play_out, quick, table


class Guest:
    """A signed-in player, who comes to whichever gateway, and plays at the service."""

    def __init__(self, session: dict[str, Any], playing: Player) -> None:
        self.id: str = session["player"]["id"]
        self.playing = playing
        self._headers = {"Authorization": f"Bearer {session['accessToken']}"}

    async def ask(self, gateway: Stand, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        sent = self._headers | {name.replace("_", "-"): value for name, value in headers.items()}
        return await gateway.http.request(method, path, json=body, headers=sent)

    async def rematch(self, gateway: Stand, match_id: str, **headers: str) -> httpx.Response:
        return await self.ask(gateway, "POST", f"/v1/matches/{match_id}:rematch", **headers)


class Hall:
    """A game's service and two gateways in front of it."""

    def __init__(self, there: Table, gateways: tuple[Stand, Stand]) -> None:
        self.there = there
        self.gateways = gateways

    async def guest(self, name: str) -> Guest:
        session = (await self.gateways[0].http.post("/v1/players", json={"name": name})).json()
        return Guest(session, self.there.player(session["player"]["id"], token=session["accessToken"]))

    async def seated(self) -> tuple[list[str], list[Guest]]:
        """As many as the game takes at most, with a bot in the second seat where three may sit; and those of them who are no bots."""
        most = self.there.game.info.max_seats
        seats: list[str] = []
        people: list[Guest] = []
        for n in range(most):
            if n == 1 and most > 2:
                seats.append("bot")
            else:
                people.append(await self.guest(f"Guest {n}"))
                seats.append(people[-1].id)
        return seats, people


@asynccontextmanager
async def hall(game: Game, keys: Keys, redis_url: str) -> AsyncIterator[Hall]:
    async with table(game, keys, redis_url) as there:
        services = {game.id: there.addresses[0]}
        async with stand(keys, redis_url, services=services) as one, stand(keys, redis_url, services=services) as other:
            yield Hall(there, (one, other))


def who(match: dict[str, Any]) -> list[tuple[int, str, str]]:
    return [(seat["seat"], seat["player"], seat["bot"]) for seat in match["seats"]]


@pytest.mark.parametrize(
    "game", [pytest.param(game, id=game.id, marks=[pytest.mark.slow] if game.real_time else []) for game in EVERY_GAME]
)
async def test_the_same_sit_in_the_same_seats_again_in_one_match_however_many_ask(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    async with hall(game, keys, redis_url) as there:
        seats, people = await there.seated()
        one, other = there.gateways
        first, last = people[0], people[-1]
        match_id = await there.there.create(*seats, options=quick(game), order="DRAWN", spectators=False)
        await play_out(match_id, *(each.playing for each in people))
        before = (await first.ask(one, "GET", f"/v1/matches/{match_id}")).json()

        answers = await asyncio.gather(first.rematch(one, match_id), last.rematch(other, match_id))
        assert sorted(answer.status_code for answer in answers) == [200, 201]
        assert len({answer.json()["id"] for answer in answers}) == 1
        again = answers[0].json()
        assert answers[0].headers["location"] == answers[1].headers["location"] == f"/v1/matches/{again['id']}"
        assert again["id"] != match_id
        assert who(again) == who(before)
        assert (again["options"], again["settings"]) == (before["options"], before["settings"])
        assert again["viewerSeat"] == before["viewerSeat"]
        assert answers[1].json()["viewerSeat"] != again["viewerSeat"]
        for each in people:
            later = await each.rematch(other, match_id)
            assert (later.status_code, later.json()["id"]) == (200, again["id"])
            listed = (await each.ask(one, "GET", "/v1/players/me/matches")).json()["matches"]
            assert [summary["id"] for summary in listed] == [again["id"]]
        # The rematch has one of its own, once it is finished.
        refused = await first.rematch(one, again["id"])
        if refused.status_code != 201:  # in real time it may be by now
            assert (refused.status_code, refused.json()["reason"]) == (422, "MATCH_NOT_FINISHED")
        assert 0 < await redis.pttl(f"gateway:{{{match_id}}}:rematch") <= 90 * 86_400_000


async def test_only_who_had_a_seat_may_ask_also_one_who_resigned_it(keys: Keys, redis_url: str, redis: Redis) -> None:
    (game,) = [game for game in EVERY_GAME if game.id == "night_clan"]
    async with hall(game, keys, redis_url) as there:
        ann, bob, cat = [await there.guest(name) for name in ("Ann", "Bob", "Cat")]
        gateway = there.gateways[0]
        match_id = await there.there.create(ann.id, bob.id)
        for each, status, word in ((ann, 422, "MATCH_NOT_FINISHED"), (cat, 403, "NOT_YOUR_SEAT")):
            answer = await each.rematch(gateway, match_id)
            assert (answer.status_code, answer.json()["reason"]) == (status, word)
        await bob.playing.resign(match_id)
        answer = await cat.rematch(gateway, match_id)
        assert (answer.status_code, answer.json()["reason"]) == (403, "NOT_YOUR_SEAT")
        assert await redis.exists(f"gateway:{{{match_id}}}:rematch") == 0

        # The names are those that players have by now.
        await ann.ask(gateway, "PATCH", "/v1/players/me", {"name": "Anna"})
        answer = await bob.rematch(gateway, match_id)
        assert answer.status_code == 201
        assert [seat["name"] for seat in answer.json()["seats"]] == ["Anna", "Bob"]
        assert not any(seat["resigned"] for seat in answer.json()["seats"])


async def test_nobody_who_was_deleted_is_seated_again(keys: Keys, redis_url: str, redis: Redis) -> None:
    (game,) = [game for game in EVERY_GAME if game.id == "night_clan"]
    async with hall(game, keys, redis_url) as there:
        ann, bob = await there.guest("Ann"), await there.guest("Bob")
        match_id = await there.there.create(ann.id, bob.id)
        await bob.playing.resign(match_id)
        assert (await bob.ask(there.gateways[0], "DELETE", "/v1/players/me")).status_code == 200
        for _ in range(2):
            answer = await ann.rematch(there.gateways[0], match_id, Idempotency_Key="k")
            assert (answer.status_code, answer.json()["reason"]) == (422, "PLAYER_GONE")
        assert await redis.exists(f"gateway:{{{match_id}}}:rematch") == 0
        assert (await ann.ask(there.gateways[0], "GET", "/v1/players/me/matches")).json()["matches"] == []


async def test_a_rematch_that_is_there_is_found_though_one_was_deleted_since(keys: Keys, redis_url: str, redis: Redis) -> None:
    (game,) = [game for game in EVERY_GAME if game.id == "night_clan"]
    async with hall(game, keys, redis_url) as there:
        ann, bob = await there.guest("Ann"), await there.guest("Bob")
        match_id = await there.there.create(ann.id, bob.id)
        await bob.playing.resign(match_id)
        made = await bob.rematch(there.gateways[0], match_id)
        assert made.status_code == 201
        assert (await bob.ask(there.gateways[0], "DELETE", "/v1/players/me")).status_code == 200
        answer = await ann.rematch(there.gateways[1], match_id)
        assert (answer.status_code, answer.json()["id"]) == (200, made.json()["id"])
        assert answer.headers["location"] == made.headers["location"]
        # One that was claimed and never made is not.
        await redis.set(f"gateway:{{{match_id}}}:rematch", "night_clan-nevermade")
        answer = await ann.rematch(there.gateways[0], match_id)
        assert (answer.status_code, answer.json()["reason"]) == (422, "PLAYER_GONE")


# With a game service that answers as it is told.


async def finished(gateway: Stand) -> str:
    """A finished match of the caller with a bot."""
    player = (await gateway.sign_in())["player"]["id"]
    there = match(status=table_pb2.FINISHED)
    there.seats[0].player = player
    gateway.service.matches[MATCH_ID] = there
    return f"/v1/matches/{MATCH_ID}:rematch"


async def test_a_retry_under_its_key_gets_the_first_answer(gateway: Stand) -> None:
    path = await finished(gateway)
    first, second = [await gateway.http.post(path, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.content == second.content
    assert first.headers["location"] == second.headers["location"]
    assert (await gateway.http.post(path)).status_code == 200
    assert len({request.match_id for request in gateway.service.calls("CreateMatch")}) == 1


async def test_a_rematch_whose_making_failed_is_made_by_whoever_asks_next(gateway: Stand) -> None:
    path = await finished(gateway)
    create = gateway.service.verbs["CreateMatch"]

    async def away(request: Any, context: Context) -> Any:
        await refuse(context, Unavailable("STORAGE_UNAVAILABLE", "try again"))

    gateway.service.verbs["CreateMatch"] = away
    assert (await gateway.http.post(path)).status_code == 503
    gateway.service.verbs["CreateMatch"] = create
    answer = await gateway.http.post(path)
    assert answer.is_success
    assert {request.match_id for request in gateway.service.calls("CreateMatch")} == {answer.json()["id"]}


async def test_what_the_service_refuses_is_told_and_in_nobodys_list(gateway: Stand) -> None:
    path = await finished(gateway)

    async def refused(request: Any, context: Context) -> Any:
        await refuse(context, Unreadable("options.variant", "there is no such variant any more"))

    gateway.service.verbs["CreateMatch"] = refused
    for _ in range(2):
        answer = await gateway.http.post(path)
        assert (answer.status_code, answer.json()["violations"][0]["field"]) == (400, "options.variant")
    assert (await gateway.http.get("/v1/players/me/matches")).json()["matches"] == []


@pytest.mark.parametrize("body", [{"seats": []}, [], 1])
async def test_a_rematch_takes_no_body(gateway: Stand, body: Any) -> None:
    path = await finished(gateway)
    assert (await gateway.http.post(path, json=body)).status_code == 400
    assert gateway.service.calls("CreateMatch") == []


@pytest.mark.parametrize("match_id", ["x", "chess-abcdefgh", *(f"{game}-nosuchmatch" for game in GAMES if game == "night_clan")])
async def test_a_match_that_is_none_has_no_rematch(gateway: Stand, match_id: str) -> None:
    await gateway.sign_in()
    answer = await gateway.http.post(f"/v1/matches/{match_id}:rematch")
    assert (answer.status_code, answer.json()["reason"]) == (404, "MATCH_NOT_FOUND")
