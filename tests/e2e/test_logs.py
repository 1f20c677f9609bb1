"""What a gateway and services log while people play, read as an operator reads it: all of a request by its id, and nobody's secret."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import httpx

from deploy.local import Local
from gateway.registry import GAMES
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.night_clan.v1.night_clan_pb2_grpc import NightClanServiceStub
from tests import unlimited
from tests.live import live

NAME = "hippolyta@example.org"
ENV = {"REDIS_URL": "", "GLOAMING_LOG_LEVEL": "DEBUG", "GLOAMING_BOT_DELAY_MS": "0", **unlimited.ENVIRONMENT}


class Sentinels:
    """What must be in no log, as it is handed out."""

    def __init__(self) -> None:
        self.words: set[str] = {NAME}

    def of(self, session: Mapping[str, Any]) -> Mapping[str, str]:
        """Takes down what is secret of a sign-in, and returns what its player's requests have."""
        self.words |= {session["accessToken"], session["refreshToken"], session["accessToken"].split(".")[2]}
        return {"Authorization": f"Bearer {session['accessToken']}"}


def logged(local: Local) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """What each process of ours has logged."""
    names = [name for name in local.children if name.split("-")[0] in (*GAMES, "gateway")]
    return {name: [json.loads(line) for line in local.children[name].log.read_text().splitlines()] for name in names}


async def play(http: httpx.AsyncClient, headers: Mapping[str, str], match_id: str, sentinels: Sentinels) -> str:
    """Plays a match to its end, and returns the id of the request that played the last move."""
    last = ""
    async with asyncio.timeout(60):
        while (match := (await http.get(f"/v1/matches/{match_id}", headers=headers)).json())["status"] != "FINISHED":
            moves = (await http.get(f"/v1/matches/{match_id}/moves", headers=headers)).json()["moves"]
            sentinels.words |= {f'"{card}"' for card in match["view"]["hand"]}
            if moves:
                played = await http.post(f"/v1/matches/{match_id}/moves", headers=headers, json={"move": moves[0]})
                assert played.status_code == 200, played.text
                last = played.headers["x-request-id"]
            await asyncio.sleep(0.01)
    sentinels.words.add((await http.get(f"/v1/matches/{match_id}/record", headers=headers)).json()["seed"])
    return last


async def test_logs_join_what_belongs_to_a_request_and_tell_no_secret(tmp_path: Path) -> None:
    sentinels = Sentinels()
    local = Local(tmp_path, env=ENV)
    await asyncio.to_thread(local.start)
    try:
        async with httpx.AsyncClient(base_url=local.url, timeout=20) as http:
            session = (await http.post("/v1/players", json={"name": NAME})).json()
            headers = sentinels.of(session)
            seats = [{"player": "me"}, {"bot": "STANDARD"}]
            asked = {"game": "night_clan", "seats": seats, "settings": {"moveSeconds": 0, "rated": True}}
            made = await http.post("/v1/matches", headers={**headers, "X-Request-Id": "making-1"}, json=asked)
            assert made.headers["x-request-id"] == "making-1"
            match_id = made.json()["id"]
            last = await play(http, headers, match_id, sentinels)

            # A room, whose code lets people in, and a ticket.
            room = (await http.post("/v1/rooms", headers=headers, json={"game": "night_clan"})).json()["code"]
            sentinels.words.add(room)
            assert (await http.get(f"/v1/rooms/{room}", headers=headers)).is_success
            assert (await http.post(f"/v1/rooms/{room}:addBot", headers=headers)).is_success
            assert (await http.post(f"/v1/rooms/{room}:ready", headers=headers)).is_success
            started = await http.post(f"/v1/rooms/{room}:start", headers=headers)
            assert (await http.post("/v1/tickets", headers=headers, json={"game": "night_clan", "seats": {"min": 2, "max": 2}})).is_success

            # What goes wrong is logged as well, with secrets where they do not belong.
            token = session["accessToken"]
            for path in (
                f"/v1/matches/{token}",
                f"/v1/rooms/{token}",
                f"/v1/matches/night_clan-{token[:30]}",
                f"/{token}",
                f"/v1/games?t={token}",
            ):
                await http.get(path, headers=headers)
            await http.get(f"/v1/matches/{match_id}", headers={**headers, "X-Request-Id": token})
            await http.post("/v1/matches", headers=headers, content=f'{{"game": "{token}"')
            await http.post("/v1/players:refresh", json={"refreshToken": session["refreshToken"][:-2]})
            async with live(local.url.replace("http", "ws") + "/v1/live", token) as socket:
                await socket.watch(started.json()["matchId"])
                await socket.watch(token)
            headers = sentinels.of((await http.post("/v1/players:refresh", json={"refreshToken": session["refreshToken"]})).json())
            assert (await http.get("/v1/players/me", headers=headers)).is_success

            # Over gRPC too.
            async with grpc.aio.insecure_channel(local.services["night_clan"][0]) as channel:
                stub: Any = NightClanServiceStub(channel)
                metadata = [("authorization", headers["Authorization"]), ("x-request-id", "by-grpc.1")]
                await stub.GetMatch(night_clan_pb2.GetMatchRequest(match_id=match_id), metadata=metadata)
                for wrong in (token, "night_clan-" + token[:30].lower()):
                    with suppress(grpc.aio.AioRpcError):
                        await stub.GetMatch(night_clan_pb2.GetMatchRequest(match_id=wrong), metadata=metadata)
            assert (await http.post("/v1/players/me:signOut", headers=headers)).is_success
            assert (await http.get("/v1/players/me", headers=headers)).status_code == 401
    finally:
        await asyncio.to_thread(local.stop)

    lines = logged(local)
    for name, these in lines.items():
        assert these
        for line in these:
            assert {"service", "event", "level", "timestamp"} <= set(line), name
            assert line["level"] != "error", line

    def of(name: str, request_id: str) -> list[Mapping[str, Any]]:
        return [line for line in lines[name] if line.get("request_id") == request_id and line["event"] in ("request", "call")]

    # Made and played: the gateway and the service say the same of the same request.
    assert [(line["event"], line["route"], line["match"]) for line in of("gateway", "making-1")] == [("request", "/v1/matches", match_id)]
    assert {(line["event"], line["method"], line["match"]) for line in of("night_clan", "making-1")} == {
        ("call", "CreateMatch", match_id),
        ("call", "GetMatch", match_id),
    }
    (request,) = of("gateway", last)
    (call,) = of("night_clan", last)
    assert (request["route"], request["status"], request["match"]) == ("/v1/matches/{match_id}/moves", 200, match_id)
    assert (call["method"], call["code"], call["match"]) == ("SubmitMove", "OK", match_id)
    assert started.json()["matchId"] in {line.get("match") for line in of("gateway", started.headers["x-request-id"])}
    assert [(line["method"], line["match"]) for line in of("night_clan", "by-grpc.1") if line["code"] == "OK"] == [("GetMatch", match_id)]

    written = "\n".join(child.log.read_text() for child in local.children.values())
    found = {word for word in sentinels.words if re.search(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", written)}
    assert found == set()
    assert "Bearer" not in written
    assert "eyJ" not in written  # how a JWT begins
