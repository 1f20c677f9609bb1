"""People at a private table, over REST alone: two gateways, two replicas of each game's service, one Redis."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.local import Local
from gateway.registry import GAMES
from tests.e2e.test_document import Checked
from tests.harness import eventually

OPTIONS: dict[str, Any] = {"night_knight": {"actionMs": 500, "ownCardDelayMs": 0, "countdownMs": 0}}


class Person:
    """A player who comes to the gateways in turn."""

    def __init__(self, http: httpx.AsyncClient, gateways: list[str], name: str) -> None:
        self._http = http
        self.gateways = gateways
        self._asked = 0
        self._headers: dict[str, str] = {}
        self.name = name
        self.id = ""

    async def sign_in(self) -> None:
        """Becomes a guest."""
        session = await self("POST", "/v1/players", {"name": self.name}, status=201)
        self.id = session["player"]["id"]
        self._headers = {"Authorization": f"Bearer {session['accessToken']}"}

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One request, to the next gateway."""
        self._asked += 1
        gateway = self.gateways[self._asked % len(self.gateways)]
        return await self._http.request(method, gateway + path, json=body, headers=self._headers)

    async def __call__(self, method: str, path: str, body: Any = None, *, status: int = 200) -> dict[str, Any]:
        """The same, where the answer is known."""
        response = await self.ask(method, path, body)
        assert response.status_code == status, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def play(self, match_id: str) -> dict[str, Any]:
        """Plays a match to its end with any legal moves, and returns it."""
        rng = random.Random(self.name)
        path = f"/v1/matches/{match_id}"
        while (match := await self("GET", path))["status"] != "FINISHED":
            moves = (await self("GET", f"{path}/moves"))["moves"]
            if not moves:
                await asyncio.sleep(0.02)
                continue
            response = await self.ask("POST", f"{path}/moves", {"move": rng.choice(moves)})
            # In real time its moment may have passed, or the match be over.
            late = GAMES[match["game"]].real_time and response.status_code in (409, 422)
            assert response.status_code == 200 or late, response.text
        return match


async def signed_in(http: httpx.AsyncClient, gateways: list[str], *names: str) -> list[Person]:
    """People of these names."""
    people = [Person(http, gateways, name) for name in names]
    for person in people:
        await person.sign_in()
    return people


@pytest.fixture
async def people(everything: Local) -> AsyncIterator[list[Person]]:
    """Four who have signed in."""
    async with httpx.AsyncClient(timeout=15) as http:
        yield await signed_in(http, everything.urls, "Ann", "Bob", "Cat", "Dan")


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("game", "count"), [("night_clan", 3), ("night_knight", 4)])
async def test_people_in_a_room_with_a_bot_play_a_match_to_its_end_and_then_once_more(people: list[Person], game: str, count: int) -> None:
    ann, *others = people[:count]
    asked = {"game": game, "settings": {"moveSeconds": 0, "startSeconds": 0}, "options": OPTIONS.get(game, {}), "seats": count + 1}
    code = (await ann("POST", "/v1/rooms", asked, status=201))["code"]
    path = f"/v1/rooms/{code}"
    await ann("POST", f"{path}:addBot")
    await asyncio.gather(*(person("POST", f"{path}:join") for person in others))
    assert (await people[-1].ask("GET", path)).json()["status"] == "OPEN"
    await asyncio.gather(*(person("POST", f"{path}:ready") for person in others))
    room = await ann("POST", f"{path}:start")
    assert room["status"] == "STARTED"
    assert {(await person("GET", path))["matchId"] for person in others} == {room["matchId"]}

    ends = await asyncio.gather(*(person.play(room["matchId"]) for person in (ann, *others)))
    first = ends[0]
    assert first["outcome"]["ending"] == "COMPLETED"
    assert sorted((seat["player"], seat["name"], seat["bot"]) for seat in first["seats"]) == sorted(
        (member["player"], member["name"], member["bot"]) for member in room["members"]
    )
    assert sorted(match["viewerSeat"] for match in ends) == [seat["seat"] for seat in first["seats"] if seat["player"]]

    again = await asyncio.gather(*(person.ask("POST", f"/v1/matches/{first['id']}:rematch") for person in (ann, *others)))
    assert sorted(answer.status_code for answer in again) == [200] * (count - 1) + [201]
    (second,) = {answer.json()["id"] for answer in again}
    ends = await asyncio.gather(*(person.play(second) for person in (ann, *others)))
    assert ends[0]["outcome"]["ending"] == "COMPLETED"
    assert [seat["player"] for seat in ends[0]["seats"]] == [seat["player"] for seat in first["seats"]]
    assert ends[0]["options"] == first["options"]
    listed = (await ann("GET", "/v1/players/me/matches"))["matches"]
    assert [match["id"] for match in listed] == [second, first["id"]]


async def test_an_option_that_the_game_does_not_take_is_told_at_the_start_and_the_room_stays_open(people: list[Person]) -> None:
    ann, bob, *_ = people
    asked = {"game": "dark_is_the_night", "options": {"turnsToDawn": -1}}
    path = f"/v1/rooms/{(await ann('POST', '/v1/rooms', asked, status=201))['code']}"
    await bob("POST", f"{path}:join")
    await bob("POST", f"{path}:ready")
    refused = await ann("POST", f"{path}:start", status=400)
    assert [each["field"] for each in refused["violations"]] == ["options.turnsToDawn"]
    room = await bob("GET", path)
    assert (room["status"], room["matchId"]) == ("OPEN", "")
    assert (await ann("GET", "/v1/players/me/matches"))["matches"] == []


@pytest.mark.slow
@pytest.mark.scenario(17)
@pytest.mark.scenario(22)
async def test_a_start_in_the_middle_of_which_its_gateway_was_killed_is_finished_by_another(tmp_path: Path) -> None:
    local = Local(tmp_path, gateways=2, env={"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0"})
    await asyncio.to_thread(local.start)
    try:
        async with httpx.AsyncClient(timeout=15) as http:
            first, second = local.urls
            ann, bob = await signed_in(http, [second], "Ann", "Bob")
            path = f"/v1/rooms/{(await ann('POST', '/v1/rooms', {'game': 'night_clan'}, status=201))['code']}"
            await bob("POST", f"{path}:join")
            await bob("POST", f"{path}:ready")

            local.children["night_clan"].signal(signal.SIGSTOP)
            ann.gateways = [first]
            starting = asyncio.create_task(ann.ask("POST", f"{path}:start"))

            async def status(wanted: str) -> bool:
                return bool((await bob("GET", path))["status"] == wanted)

            await eventually(lambda: status("STARTING"))
            local.kill("gateway-1")
            with pytest.raises(httpx.HTTPError):
                await starting
            local.children["night_clan"].signal(signal.SIGCONT)

            await eventually(lambda: status("STARTED"), 30)
            ann.gateways = [second]
            match_id = (await ann("GET", path))["matchId"]
            for person in (ann, bob):
                assert [match["id"] for match in (await person("GET", "/v1/players/me/matches"))["matches"]] == [match_id]
    finally:
        await asyncio.to_thread(local.stop)


async def test_every_answer_of_a_room_is_as_the_document_says(everything: Local) -> None:
    async with httpx.AsyncClient(base_url=everything.url, timeout=15) as http:
        ask = Checked(http, (await http.get("/openapi.json")).json())
        tokens = {}
        for name in ("Ann", "Bob"):
            session = await ask("POST", "/v1/players", {"name": name})
            tokens[name] = session["accessToken"]

        async def as_(name: str, method: str, path: str, body: Any = None) -> Any:
            http.headers["Authorization"] = f"Bearer {tokens[name]}"
            return await ask(method, path, body)

        for game in GAMES.values():
            asked = {"game": game.id, "settings": {"moveSeconds": 0}, "options": OPTIONS.get(game.id, {})}
            room = await as_("Ann", "POST", "/v1/rooms", asked)
            path = f"/v1/rooms/{room['code']}"
            while len((await as_("Ann", "POST", f"{path}:addBot"))["members"]) < game.max_seats:
                pass
            assert (await as_("Bob", "POST", f"{path}:join"))["reason"] == "ROOM_FULL"
            await as_("Ann", "POST", f"{path}:removeBot")
            room = await as_("Bob", "POST", f"{path}:join")
            await as_("Bob", "POST", f"{path}:ready", {})
            await as_("Bob", "GET", path)
            assert (await as_("Bob", "POST", f"{path}:kick", {"player": room["host"]}))["reason"] == "NOT_THE_HOST"
            room = await as_("Ann", "POST", f"{path}:start")
            assert room["status"] == "STARTED"
            assert (await as_("Bob", "POST", f"/v1/matches/{room['matchId']}:rematch"))["reason"] == "MATCH_NOT_FINISHED"
            for name in ("Ann", "Bob"):
                await as_(name, "POST", f"{path}:leave")
            assert (await as_("Ann", "GET", path))["reason"] == "ROOM_NOT_FOUND"
