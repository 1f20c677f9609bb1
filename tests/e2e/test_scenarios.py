"""What breaks servers like this one, tried over real sockets: two gateways, two replicas of the game's service, one Redis."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.parse
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import httpx_sse
import pytest
from google.protobuf import json_format

from deploy.local import Local
from gloaming.client import Client, ProblemError
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.table.v1 import table_pb2
from services.night_clan.game import GAME
from tests.harness import Player, Refused

ME_AND_BOT = [{"player": "me"}, {"bot": "STANDARD"}]


class Person:
    """A signed-in player with plain HTTP, to send what no client of ours would."""

    def __init__(self, http: httpx.AsyncClient, gateways: list[str], session: dict[str, Any]) -> None:
        self.http = http
        self.gateways = gateways
        self.session = session
        self.id: str = session["player"]["id"]
        self.token: str = session["accessToken"]

    async def request(self, method: str, path: str, body: Any = None, gateway: int = 0, **headers: str) -> httpx.Response:
        """One request to one of the gateways, as it is."""
        sent = {"Authorization": f"Bearer {self.token}", **{name.replace("_", "-"): value for name, value in headers.items()}}
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        return await self.http.request(method, self.gateways[gateway] + path, content=content, headers=sent)

    async def new_match(self, **more: Any) -> dict[str, Any]:
        """A match against a bot."""
        body = {"game": "night_clan", "seats": ME_AND_BOT, "settings": {"moveSeconds": 0}, "order": "AS_LISTED", **more}
        response = await self.request("POST", "/v1/matches", body)
        assert response.status_code == 201, response.text
        made: dict[str, Any] = response.json()
        return made

    async def moves(self, match_id: str) -> list[Any]:
        """The legal moves, once there are any or the match is over."""
        async with asyncio.timeout(10):
            while True:
                if moves := (await self.request("GET", f"/v1/matches/{match_id}/moves")).json()["moves"]:
                    return list(moves)
                if (await self.request("GET", f"/v1/matches/{match_id}")).json()["status"] == "FINISHED":
                    return []
                await asyncio.sleep(0.005)

    async def play_out(self, match_id: str) -> None:
        """Plays first moves to the end."""
        while moves := await self.moves(match_id):
            response = await self.request("POST", f"/v1/matches/{match_id}/moves", {"move": moves[0]})
            assert response.status_code == 200, response.text


@pytest.fixture
async def ann(everything: Local) -> AsyncIterator[Person]:
    """A player."""
    async with httpx.AsyncClient(timeout=15) as http:
        answer = await http.post(f"{everything.url}/v1/players", json={"name": "Ann"})
        yield Person(http, everything.urls, answer.json())


@pytest.mark.scenario(1)
async def test_a_player_who_moves_twice_at_once_through_two_gateways_gets_an_answer_to_each(ann: Person) -> None:
    match_id = (await ann.new_match())["id"]
    accepted = 0
    while moves := await ann.moves(match_id):
        path = f"/v1/matches/{match_id}/moves"
        answers = await asyncio.gather(*(ann.request("POST", path, {"move": moves[0]}, gateway=n % 2) for n in range(4)))
        accepted += sum(answer.status_code == 200 for answer in answers)
        for answer in answers:
            assert answer.status_code == 200 or (answer.status_code in (409, 422) and answer.json()["reason"])
    moved = [event for event in await _events(ann, match_id) if _kind(event) in ("cardPlayed", "handKept") and _seat(event) == 0]
    assert accepted == len(moved) == 14


@pytest.mark.scenario(2)
async def test_every_kind_of_illegal_move_names_the_same_reason_over_rest_and_grpc(ann: Person, everything: Local) -> None:
    match_id = (await ann.new_match())["id"]
    over_grpc = Player(GAME, everything.services["night_clan"], ann.token, ann.id)
    seen = set()

    async def both(move: dict[str, Any]) -> str:
        rest = await ann.request("POST", f"/v1/matches/{match_id}/moves", {"move": move})
        assert rest.status_code == 422, rest.text
        assert rest.headers["content-type"] == "application/problem+json"
        with pytest.raises(Refused) as refused:
            await over_grpc.submit(match_id, json_format.ParseDict(move, night_clan_pb2.Move()))
        assert refused.value.code == grpc.StatusCode.FAILED_PRECONDITION
        assert (refused.value.reason, refused.value.detail) == (rest.json()["reason"], rest.json()["detail"])
        seen.add(refused.value.reason)
        return str(rest.json()["reason"])

    def play(card: str, location: str, **relocate: str) -> dict[str, Any]:
        return {"play": {"card": card, "location": location, **({"relocate": relocate} if relocate else {})}}

    try:
        assert await both(play("DAUGHTER", "CHURCH")) == "NOT_IN_PLAY"
        while len(moves := await ann.moves(match_id)) == 1 or "play" not in moves[0]:
            await ann.request("POST", f"/v1/matches/{match_id}/moves", {"move": moves[0]})
        assert await both({"keep": {}}) == "NOT_IN_SETUP"
        while moves := await ann.moves(match_id):
            hand = (await ann.request("GET", f"/v1/matches/{match_id}")).json()["view"]["hand"]
            missing = {"TROLL", "MISTLETOE", "RICHES", "DAUGHTER", "NIGHT_WATCH"} - set(hand)
            assert await both(play(missing.pop(), "CHURCH")) == "CARD_NOT_IN_HAND"
            assert await both(play(hand[0], "BLACK_FOREST")) == "NO_SUCH_LOCATION"
            if "NIGHT_WATCH" in hand:
                free = next(move["play"]["location"] for move in moves)
                assert await both(play("NIGHT_WATCH", free, cardId="c99", to="CHURCH")) == "NO_SUCH_CARD"
            else:
                free = next(move["play"]["location"] for move in moves)
                assert await both(play(hand[0], free, cardId="c1", to="CHURCH")) == "NOT_A_NIGHT_WATCH"
            view = (await ann.request("GET", f"/v1/matches/{match_id}")).json()["view"]
            for there in view["locations"]:
                if len(there["cards"]) == there["capacity"]:
                    assert await both(play(hand[0], there["location"])) == "LOCATION_FULL"
            await ann.request("POST", f"/v1/matches/{match_id}/moves", {"move": moves[-1]})
        assert await both(play("DAUGHTER", "CHURCH")) == "MATCH_FINISHED"
        assert await both({"mulligan": {}}) == "MATCH_FINISHED"
    finally:
        await over_grpc.close()
    assert seen >= {"NOT_IN_PLAY", "NOT_IN_SETUP", "CARD_NOT_IN_HAND", "NO_SUCH_LOCATION", "NOT_A_NIGHT_WATCH", "LOCATION_FULL"}


@pytest.mark.scenario(3)
async def test_a_move_whose_answer_was_lost_is_retried_through_the_other_gateway_and_played_once(ann: Person) -> None:
    match_id = (await ann.new_match())["id"]
    path = f"/v1/matches/{match_id}/moves"
    first, *_ = await ann.moves(match_id)
    answer = await ann.request("POST", path, {"move": first}, Idempotency_Key="first")
    second, *_ = await ann.moves(match_id)
    await ann.request("POST", path, {"move": second}, Idempotency_Key="second")
    retry = await ann.request("POST", path, {"move": first}, gateway=1, Idempotency_Key="first")
    assert (retry.status_code, retry.content) == (200, answer.content)
    other = await ann.request("POST", path, {"move": second}, gateway=1, Idempotency_Key="first")
    assert (other.status_code, other.json()["reason"]) == (422, "REQUEST_ID_REUSED")
    # The key is looked at before the precondition.
    stale = await ann.request("POST", path, {"move": first}, Idempotency_Key="first", If_Match='"1"')
    assert stale.content == answer.content


@pytest.mark.scenario(3)
async def test_a_match_asked_for_twice_under_one_key_is_made_once(ann: Person) -> None:
    body = {"game": "night_clan", "seats": ME_AND_BOT}
    answers = await asyncio.gather(*(ann.request("POST", "/v1/matches", body, gateway=n % 2, Idempotency_Key="one") for n in range(6)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    mine = (await ann.request("GET", "/v1/players/me/matches")).json()["matches"]
    assert len(mine) == 1


@pytest.mark.scenario(6)
async def test_a_move_sent_again_after_its_turn_has_passed_is_refused_and_changes_nothing(ann: Person) -> None:
    match_id = (await ann.new_match())["id"]
    path = f"/v1/matches/{match_id}/moves"
    await ann.request("POST", path, {"move": {"keep": {}}})
    moves = await ann.moves(match_id)
    for move in moves[:1]:
        await ann.request("POST", path, {"move": move})
    version = (await ann.request("GET", f"/v1/matches/{match_id}")).json()["version"]
    stale = await ann.request("POST", path, {"move": moves[0]}, If_Match='"2"')
    assert (stale.status_code, stale.json()["reason"]) == (412, "VERSION_MISMATCH")
    again = await ann.request("POST", path, {"move": {"keep": {}}})
    assert (again.status_code, again.json()["reason"]) == (422, "NOT_IN_SETUP")
    assert (await ann.request("GET", f"/v1/matches/{match_id}")).json()["version"] == version


@pytest.mark.scenario(8)
async def test_signing_out_ends_every_token_at_both_gateways_and_every_service_at_once(ann: Person, everything: Local) -> None:
    match_id = (await ann.new_match())["id"]
    answer = await ann.request("POST", "/v1/players/me:signOut", {})
    assert answer.status_code < 300, answer.text
    for gateway in (0, 1):
        for path in (f"/v1/matches/{match_id}", f"/v1/matches/{match_id}/moves", f"/v1/matches/{match_id}/events", "/v1/players/me"):
            refused = await ann.request("GET", path, gateway=gateway)
            assert (refused.status_code, refused.json()["reason"]) == (401, "TOKEN_REVOKED")
            assert match_id not in refused.text
    for address in everything.services["night_clan"]:
        player = Player(GAME, address, ann.token, ann.id)
        with pytest.raises(Refused) as refused_there:
            await player.get(match_id)
        assert refused_there.value.reason == "TOKEN_REVOKED"
        await player.close()
    renewed = await ann.http.post(f"{everything.url}/v1/players:refresh", json={"refreshToken": ann.session["refreshToken"]})
    assert renewed.status_code == 401


@pytest.mark.scenario(10)
async def test_tokens_are_in_no_log_no_url_and_no_error(ann: Person, everything: Local) -> None:
    match = await ann.new_match()
    refresh = ann.session["refreshToken"]
    answers = [
        await ann.request("GET", f"/v1/matches/{match['id']}?access_token={ann.token}"),
        await ann.request("GET", f"/v1/matches/night_clan-nosuchmatch?token={ann.token}"),
        await ann.request("POST", "/v1/players:refresh", {"refreshToken": refresh + "x"}),
        await ann.request("POST", "/v1/players:refresh", {"refreshToken": refresh, "other": refresh}),
        await ann.request("GET", f"/v1/nowhere/{ann.token}"),
        await ann.request("GET", "/v1/players/me", Authorization=f"Bearer {ann.token}x"),
        await ann.request("POST", f"/v1/matches/{match['id']}/moves", {"move": {"play": {"card": ann.token}}}),
    ]
    secret = re.compile("|".join(map(re.escape, (ann.token.split(".")[2], refresh.split(".")[-1], urllib.parse.quote(refresh)))))
    for answer in answers[1:]:
        assert answer.status_code >= 400
        if "nowhere" not in str(answer.url) and "token=" not in str(answer.url):
            assert not secret.search(answer.text)
    for log in everything.logs.iterdir():
        assert not secret.search(log.read_text()), log.name


@pytest.mark.scenario(11)
@pytest.mark.scenario(12)
async def test_a_stream_of_events_resumed_through_the_other_gateway_has_no_gap_and_no_repeat(ann: Person) -> None:
    match_id = (await ann.new_match())["id"]
    playing = asyncio.create_task(ann.play_out(match_id))
    seen: list[str] = []
    newest, gateway = "", 0
    while "matchFinished" not in newest:
        url = f"{ann.gateways[gateway]}/v1/matches/{match_id}/events"
        headers = {"Authorization": f"Bearer {ann.token}", "Accept": "text/event-stream"}
        if seen:
            headers["Last-Event-ID"] = seen[-1]
        async with httpx_sse.aconnect_sse(ann.http, "GET", url, headers=headers) as source:
            count = 0
            async for event in source.aiter_sse():
                if not event.data:
                    continue
                assert event.event == "event"
                seen.append(event.id)
                newest = event.data
                count += 1
                if count == 4:
                    break
        gateway = 1 - gateway
    await playing
    assert seen == [event["cursor"] for event in await _events(ann, match_id)]
    # A stream asked for after the end says so, and EventSource stops asking.
    over = await ann.request("GET", f"/v1/matches/{match_id}/events", Accept="text/event-stream", Last_Event_ID=seen[-1])
    assert over.status_code == 204


@pytest.mark.scenario(12)
async def test_a_watcher_goes_on_while_replicas_stop_and_come_back(tmp_path: Path) -> None:
    local = Local(tmp_path, replicas=2, env={"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0"})
    await asyncio.to_thread(local.start)
    try:
        async with Client(local.url, attempts=12) as ann:  # it outlasts the only gateway's restart, however slow the machine
            await ann.sign_in("Ann")
            game = ann.game(night_clan_pb2)
            match = await game.create_match(settings=table_pb2.Settings(move_seconds=0))

            async def watch() -> list[str]:
                return [message.event.cursor async for message in game.watch(match.id)]

            watching = asyncio.create_task(watch())
            names = ["night_clan-1", "night_clan-2", "gateway"]
            plies = 0
            while (now := await game.match(match.id)).status != table_pb2.FINISHED:
                if not (moves := (await game.moves(match.id)).moves):
                    await asyncio.sleep(0.01)
                    continue
                await game.play(match.id, moves[0])
                plies += 1
                if plies % 4 == 0 and names:
                    for address in local.services["night_clan"]:
                        # The one that was taken down before is back, however slow the machine: one at a time is what a service outlasts.
                        async with grpc.aio.insecure_channel(address) as channel, asyncio.timeout(20):
                            await channel.channel_ready()
                    name = names.pop()
                    await asyncio.to_thread(local.children[name].stop if plies % 8 else local.children[name].kill)
                    local.restart(name)
            async with asyncio.timeout(30):
                seen = await watching
            whole = [event.cursor async for event in game.events(match.id)]
            assert seen == whole
            assert len((await game.record(match.id)).moves) == now.version - 1
    finally:
        await asyncio.to_thread(local.stop)


async def test_matches_of_mine_come_newest_first_in_pages(ann: Person) -> None:
    made = [(await ann.new_match())["id"] for _ in range(5)]
    listed: list[str] = []
    token = ""
    while True:
        page = (await ann.request("GET", f"/v1/players/me/matches?pageSize=2&pageToken={token}")).json()
        listed += [match["id"] for match in page["matches"]]
        token = page["nextPageToken"]
        if not token:
            break
    assert listed == made[::-1]


async def test_an_unchanged_match_is_not_sent_again(ann: Person) -> None:
    match_id = (await ann.new_match())["id"]
    first = await ann.request("GET", f"/v1/matches/{match_id}")
    again = await ann.request("GET", f"/v1/matches/{match_id}", gateway=1, If_None_Match=first.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")
    assert {"Authorization"} <= set(first.headers["vary"].split(", "))
    assert "private" in first.headers["cache-control"]


async def test_a_client_catches_a_refusal_by_its_reason(everything: Local) -> None:
    async with Client(everything.url) as ann:
        await ann.sign_in("Ann")
        game = ann.game(night_clan_pb2)
        match = await game.create_match(settings=table_pb2.Settings(move_seconds=0))
        with pytest.raises(ProblemError) as refused:
            await game.play(match.id, night_clan_pb2.Move(play=night_clan_pb2.Play(card="TROLL", location="CHURCH")))
        assert (refused.value.status, refused.value.reason) == (422, "NOT_IN_PLAY")


async def _events(person: Person, match_id: str) -> list[dict[str, Any]]:
    answer = await person.request("GET", f"/v1/matches/{match_id}/events?pageSize=500")
    return list(answer.json()["events"])


def _kind(event: dict[str, Any]) -> str:
    (kind,) = event["event"]
    return str(kind)


def _seat(event: dict[str, Any]) -> int:
    return int(event["event"][_kind(event)]["seat"])
