"""Nothing that is sent causes a 500, and what is refused changes nothing."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import httpx
import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.core import NotSet

from deploy.local import Local
from tests.harness import eventually

# So many bodies in all: `FUZZ_BODIES=10000 make test ARGS="-k random_bodies -o faulthandler_timeout=0"` for a long run.
BODIES = int(os.environ.get("FUZZ_BODIES", "1000"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_random_bodies_get_a_typed_refusal_and_change_nothing(everything: Local) -> None:
    async with httpx.AsyncClient(base_url=everything.url, timeout=15) as http:
        session = (await http.post("/v1/players", json={"name": "Ann"})).json()
        http.headers["Authorization"] = f"Bearer {session['accessToken']}"
        asked = {"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}], "settings": {"moveSeconds": 0}}
        match = (await http.post("/v1/matches", json=asked | {"order": "AS_LISTED"})).json()

        async def state() -> list[Any]:
            paths = ("/v1/players/me", "/v1/players/me/matches", f"/v1/matches/{match['id']}/events", f"/v1/matches/{match['id']}/moves")
            return [(await http.get(path)).json() for path in paths]

        async def is_bot_done() -> bool:
            # It keeps its hand, or takes a mulligan first: a move more.
            return bool((await http.get(f"/v1/matches/{match['id']}")).json()["toMove"] == [0])

        await eventually(is_bot_done)
        before = await state()
        sent = await asyncio.to_thread(_send, everything.url, session["accessToken"], match["id"])
        assert sent >= BODIES
        assert await state() == before


def _send(url: str, token: str, match_id: str) -> int:
    """Sends bodies that break the document's schema to every operation that takes one; returns how many were sent."""
    document = httpx.get(f"{url}/openapi.json").json()
    found: list[Any] = [each.ok() for each in schemathesis.openapi.from_dict(_bodies_alone(document)).get_all_operations()]  # type: ignore[union-attr]
    operations = [operation for operation in found if list(operation.body)]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with httpx.Client(base_url=url, timeout=15, headers=headers) as http:
        return sum(_send_to(http, document, operation, match_id, -(-BODIES // len(operations))) for operation in operations)


def _bodies_alone(document: dict[str, Any]) -> dict[str, Any]:
    """The document without parameters and tokens: more than half of the time goes into making those up, and none is sent."""
    bare = {key: value for key, value in document.items() if key != "security"}
    bare["components"] = {key: value for key, value in document["components"].items() if key != "securitySchemes"}
    bare["paths"] = {
        path: {
            method: {key: value for key, value in operation.items() if key not in ("parameters", "security")}
            for method, operation in item.items()
        }
        for path, item in document["paths"].items()
    }
    return bare


def _send_to(http: httpx.Client, document: dict[str, Any], operation: Any, match_id: str, bodies: int) -> int:
    path, method = operation.path, operation.method
    (content,) = document["paths"][path][method]["requestBody"]["content"].values()
    good = jsonschema.Draft202012Validator({**content["schema"], "components": document["components"]})
    cases = operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)
    sent = 0

    @settings(max_examples=bodies, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(body=cases.map(lambda case: case.body).filter(lambda body: not isinstance(body, NotSet) and not good.is_valid(body)))
    def send(body: Any) -> None:
        nonlocal sent
        answer = http.request(method, path.replace("{match_id}", match_id), content=body if isinstance(body, bytes) else json.dumps(body))
        sent += 1
        assert 400 <= answer.status_code < 500, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["reason"]

    send()
    return sent
