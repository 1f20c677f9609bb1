"""/openapi.json says what the server does, and no more."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import jsonschema
import pytest
import schemathesis
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.errors import Unsatisfiable
from redis.asyncio import Redis
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.routing import WebSocketRoute

from gateway import transcoding
from gateway.comments import comments, extract
from gateway.registry import GAMES
from gateway.schemas import DRAFT
from gloaming.live.v1 import live_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from tests.gateway.stand import Stand, stand
from tests.harness import EVERY_GAME, Keys, table


@pytest.fixture
async def document(gateway: Stand) -> dict[str, Any]:
    described: dict[str, Any] = (await gateway.http.get("/openapi.json")).json()
    return described


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _walk(each)
    elif isinstance(value, list):
        for each in value:
            yield from _walk(each)


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


async def test_every_reference_leads_somewhere_and_every_schema_is_used(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    used = {each["$ref"].removeprefix("#/components/schemas/") for each in _walk(document) if isinstance(each.get("$ref"), str)}
    assert used == set(schemas)
    for name, schema in schemas.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert re.fullmatch(r"[A-Z][A-Za-z]+", name)


async def test_all_that_the_proto_files_say_is_said_here_too(document: dict[str, Any]) -> None:
    assert comments() == extract(), "the .proto files have changed: run python -m gateway.comments"
    for name, schema in document["components"]["schemas"].items():
        assert schema["description"], name
        for part in (schema, *schema.get("oneOf", [])):
            for field, each in part.get("properties", {}).items():
                assert each.get("description") or field == "game", (name, field)


async def test_what_the_server_always_sends_is_required_and_a_choice_is_a_union(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    match, page, game = schemas["NightClanMatch"], schemas["NightClanListEventsResponse"], schemas["Game"]
    assert set(match["properties"]) - set(match["required"]) == {"viewerSeat", "deadline", "outcome"}
    assert set(page["properties"]) - set(page["required"]) == {"snapshot"}
    assert set(schemas["NightClanCardPlayed"]["required"]) == {"seat", "card", "location"}
    assert set(game["properties"]) - set(game["required"]) == {"schemas"}
    assert [each["required"] for each in schemas["NightClanMove"]["oneOf"]] == [["keep"], ["mulligan"], ["play"]]
    assert all(each["additionalProperties"] is False for each in schemas["NightClanMove"]["oneOf"])
    event = jsonschema.Draft202012Validator({**schemas["NightClanEvent"], "components": document["components"]})
    assert event.is_valid({"handKept": {"seat": 0}})
    assert not event.is_valid({"handKept": {}})
    assert not event.is_valid({"handKept": {"seat": 0}, "cardsDrawn": {"seat": 0, "count": 1, "cards": []}})


async def test_page_sizes_are_told(document: dict[str, Any]) -> None:
    for path in ("/v1/matches/{match_id}/events", "/v1/players/me/matches"):
        (size,) = [each for each in document["paths"][path]["get"]["parameters"] if each["name"] == "pageSize"]
        assert re.fullmatch(rf"At most so many; 0 means {size['schema']['default']}, more than (\d+) means \1\.", size["description"])
    assert comments()["gloaming.night_clan.v1.ListEventsRequest.page_size"] == ("At most so many; 0 means 100, more than 500 means 500.")


async def test_every_operation_is_whole(document: dict[str, Any]) -> None:
    ids = []
    for method, path, operation in _operations(document):
        ids.append(operation["operationId"])
        assert operation["summary"]
        assert operation["tags"]
        named = {each["name"] for each in operation.get("parameters", []) if each["in"] == "path"}
        assert named == set(re.findall(r"{(\w+)}", path)), path
        assert any(status.startswith("2") for status in operation["responses"])
        assert ("requestBody" in operation) == (method in ("POST", "PATCH", "PUT")), path
    assert len(ids) == len(set(ids))


async def test_every_route_of_the_api_is_described(gateway: Stand, document: dict[str, Any]) -> None:
    described = {(method, path) for method, path, _ in _operations(document)}
    # What serves the description itself, and the keys, is not part of it.
    undescribed = {
        "/",
        "/web/{path}",
        "/openapi.json",
        "/docs",
        "/docs/start.js",
        "/docs/swagger-ui.css",
        "/docs/swagger-ui-bundle.js",
        "/.well-known/jwks.json",
        # For the operator's command alone.
        "/drainz",
        # Has a WebSocket, of which OpenAPI cannot tell.
        "/v1/live",
    }
    routes: list[Any] = [route for route in gateway.app.routes if not isinstance(route, WebSocketRoute)]
    served = {(method, route.path_format) for route in routes for method in route.methods if route.path_format not in undescribed}
    assert served == described


async def test_the_catalogue_has_schemas_that_stand_alone(gateway: Stand) -> None:
    games = (await gateway.http.get("/v1/games")).json()["games"]
    assert [each["id"] for each in games] == list(GAMES)
    for each in games:
        assert "schemas" not in each
        whole = (await gateway.http.get(f"/v1/games/{each['id']}")).json()
        assert whole | {"schemas": None} == each | {"schemas": None}
        for schema in whole["schemas"].values():
            assert schema["$schema"] == DRAFT
            jsonschema.Draft202012Validator.check_schema(schema)
    move = jsonschema.Draft202012Validator((await gateway.http.get("/v1/games/night_clan")).json()["schemas"]["move"])
    assert move.is_valid({"play": {"card": "TROLL", "location": "CHURCH"}})
    assert not move.is_valid({})
    assert not move.is_valid({"keep": {}, "mulligan": {}})
    assert not move.is_valid({"play": {"location": "MOON"}})
    response = await gateway.http.get("/v1/games/chess")
    assert (response.status_code, response.json()["reason"]) == (404, "GAME_NOT_FOUND")


async def test_games_are_told_apart_by_their_id(document: dict[str, Any]) -> None:
    body = document["paths"]["/v1/matches"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    schemas = document["components"]["schemas"]
    names = {game: game.title().replace("_", "") for game in GAMES}
    assert names["night_clan"] == "NightClan"
    assert body["discriminator"]["mapping"] == {game: f"#/components/schemas/{name}CreateMatch" for game, name in names.items()}
    assert [each["$ref"] for each in body["oneOf"]] == list(body["discriminator"]["mapping"].values())
    for game, name in names.items():
        create = schemas[f"{name}CreateMatch"]
        assert set(create["properties"]) == {"game", "options", "settings", "seats", "order"}
        assert create["properties"]["game"]["enum"] == [game]
        assert create["properties"]["seats"]["items"]["oneOf"][0]["properties"]["player"]["enum"] == ["me"]
        assert schemas[f"{name}Match"]["properties"]["game"]["enum"] == [game]
    move = schemas["SubmitMove"]
    assert (set(move["properties"]), move["required"], move["additionalProperties"]) == ({"move"}, ["move"], False)
    assert move["properties"]["move"]["anyOf"] == [{"$ref": f"#/components/schemas/{name}Move"} for name in names.values()]


async def test_the_frames_of_the_live_socket_are_described_as_they_are(document: dict[str, Any]) -> None:
    socket = document["x-websockets"]["/v1/live"]
    client, server = (
        jsonschema.Draft202012Validator({**socket[side], "components": document["components"]}) for side in ("client", "server")
    )
    client.validate({"requestId": "1", "move": {"matchId": "night_clan-abcdefgh", "move": {"keep": {}}, "expectedVersion": 1}})
    client.validate({"pong": {"nonce": "n"}})
    assert not client.is_valid({"requestId": "1", "resign": {}})
    sent = live_pb2.ServerFrame()
    sent.messages.add().result.request_id = "1"
    sent.messages.add().problem.retry_after = 1
    event = night_clan_pb2.Event(hand_kept=night_clan_pb2.HandKept(seat=1))
    happened = live_pb2.Event(match_id="night_clan-abcdefgh", time=Timestamp(seconds=1), event=event.SerializeToString())
    sent.messages.add().event.CopyFrom(happened)
    sent.messages.add().ping.nonce = "n"
    sent.messages.add().draining.SetInParent()
    server.validate(json.loads(transcoding.render(sent)))
    assert not server.is_valid({"messages": [{"event": {"matchId": "night_clan-abcdefgh"}}]})


@pytest.fixture
async def whole(keys: Keys, redis_url: str, redis: Redis) -> AsyncIterator[Stand]:
    """A gateway behind a real server, with the real services."""
    async with AsyncExitStack() as stack:
        tables = [await stack.enter_async_context(table(game, keys, redis_url)) for game in EVERY_GAME]
        services = {there.game.id: there.addresses[0] for there in tables}
        yield await stack.enter_async_context(stand(keys, redis_url, on_socket=True, services=services))


@pytest.mark.slow
async def test_whatever_is_sent_is_answered_as_the_document_says(whole: Stand) -> None:
    session = await whole.sign_in()
    match = (await whole.http.post("/v1/matches", json={"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}]})).json()
    url = str(whole.http.base_url)
    await asyncio.to_thread(_try_everything, url, session, match["id"])


def _try_everything(url: str, session: dict[str, Any], match_id: str) -> None:
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if operation.label in ("POST /v1/players/me:signOut", "DELETE /v1/players/me"):
            token = httpx.post(f"{url}/v1/players", json={"name": "Bea"}).json()["accessToken"]
        else:
            token = session["accessToken"]
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            _try(operation, mode, token, match_id)


def _try(operation: Any, mode: schemathesis.GenerationMode, token: str, match_id: str) -> None:
    known = {parameter.name for parameter in operation.query}

    @settings(max_examples=15, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        if "match_id" in case.path_parameters:
            case.path_parameters["match_id"] = match_id
        # Parameters of the query that nobody knows are ignored, as everywhere on the web.
        assume(set(case.query) <= known)
        if mode is schemathesis.GenerationMode.POSITIVE or "Authorization" in case.headers:
            case.headers["Authorization"] = f"Bearer {token}"
        # What is well-formed may still be against the rules.
        case.call_and_validate(excluded_checks=[positive_data_acceptance], timeout=10)

    # Some operations take nothing that could be wrong.
    with contextlib.suppress(Unsatisfiable):
        check()
