"""What is really answered is as /openapi.json says, for every game."""

from __future__ import annotations

import asyncio
import random
import re
from typing import Any

import httpx
import httpx_sse
import jsonschema
import pytest

from deploy.local import Local
from gateway.registry import GAMES
from services.kit.cursor import Cursor

_PLIES = 60


class Checked:
    """A player whose every answer is held against the document."""

    def __init__(self, http: httpx.AsyncClient, document: dict[str, Any]) -> None:
        self.http = http
        self._components = document["components"]
        self._operations = {
            (method.upper(), re.compile(re.sub(r"{\w+}", "[^/:]+", path))): operation
            # What is written out goes before what a parameter stands for.
            for path, item in sorted(document["paths"].items(), key=lambda described: "{" in described[0])
            for method, operation in item.items()
        }

    def check(self, schema: dict[str, Any], value: Any) -> None:
        """Raises unless a value is as a schema of the document says."""
        jsonschema.Draft202012Validator({**schema, "components": self._components}).validate(value)

    async def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """One request and its answer."""
        answer = await self.http.request(method, path, json=body)
        plain = path.partition("?")[0]
        operation = next(each for (verb, shape), each in self._operations.items() if verb == method and shape.fullmatch(plain))
        described = operation["responses"].get(str(answer.status_code)) or operation["responses"]["default"]
        kind = answer.headers["content-type"].partition(";")[0]
        self.check(described["content"][kind]["schema"], answer.json())
        return answer.json()


@pytest.mark.parametrize("game", GAMES)
async def test_every_answer_of_a_match_is_as_the_document_says(everything: Local, game: str) -> None:
    rng = random.Random(game)
    async with httpx.AsyncClient(base_url=everything.url, timeout=15) as http:
        ask = Checked(http, (await http.get("/openapi.json")).json())
        session = await ask("POST", "/v1/players", {"name": "Ann"})
        http.headers["Authorization"] = f"Bearer {session['accessToken']}"
        await ask("GET", "/v1/players/me")
        await ask("GET", "/v1/games")
        schemas = (await ask("GET", f"/v1/games/{game}"))["schemas"]
        seats = [{"player": "me"}, *[{"bot": "STANDARD"}] * (GAMES[game].min_seats - 1)]
        match = await ask("POST", "/v1/matches", {"game": game, "seats": seats, "settings": {"startSeconds": 0}})
        path = f"/v1/matches/{match['id']}"

        for _ in range(_PLIES):
            match = await ask("GET", path)
            jsonschema.Draft202012Validator(schemas["view"]).validate(match["view"])
            if match["status"] == "FINISHED":
                break
            moves = (await ask("GET", f"{path}/moves"))["moves"]
            for move in moves:
                jsonschema.Draft202012Validator(schemas["move"]).validate(move)
            if moves:
                await ask("POST", f"{path}/moves", {"move": rng.choice(moves)})
            else:
                await asyncio.sleep(0.02)
        assert (await ask("GET", "/v1/players/me/matches"))["matches"]
        assert (await ask("GET", f"{path}/events?after={Cursor(1, 0, b'foreign')}"))["snapshot"]
        await ask("POST", f"{path}:resign", {})
        page = await ask("GET", f"{path}/events?pageSize=500")
        for each in page["events"]:
            jsonschema.Draft202012Validator(schemas["event"]).validate(each["event"])
        if GAMES[game].real_time:
            return  # bots play on, at the pace of its rounds

        async with asyncio.timeout(60):
            while (await ask("GET", f"{path}/record")).get("reason") == "MATCH_NOT_FINISHED":  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert (await ask("GET", path))["outcome"]
        page = await ask("GET", f"{path}/events?pageSize=500")
        async with httpx_sse.aconnect_sse(http, "GET", f"{path}/events", headers={"Accept": "text/event-stream"}) as source:
            streamed = [each.json() async for each in source.aiter_sse() if each.data]
        assert streamed[: len(page["events"])] == page["events"]
        for each in streamed:
            jsonschema.Draft202012Validator(schemas["event"]).validate(each["event"])
