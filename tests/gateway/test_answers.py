"""Idempotency-Key on the gateway's own POSTs."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from redis.asyncio import Redis

from services.kit.errors import Unavailable, Unreadable
from tests.gateway.stand import Context, Stand, refuse

MATCH = {"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}]}


async def test_a_retried_sign_in_gets_the_same_player_and_tokens(gateway: Stand) -> None:
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    first, second = [await gateway.http.post("/v1/players", json={"name": " Ann"}, headers=headers) for _ in range(2)]
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert first.headers["location"] == second.headers["location"]
    assert first.headers["cache-control"] == second.headers["cache-control"]


async def test_many_at_once_under_one_key_make_one_player(gateway: Stand, redis: Redis) -> None:
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    answers = await asyncio.gather(*(gateway.http.post("/v1/players", json={"name": "Ann"}, headers=headers) for _ in range(20)))
    assert len({answer.text for answer in answers}) == 1
    assert len(await redis.keys("gateway:*:player")) == 1


async def test_another_body_under_the_same_key_is_refused(gateway: Stand) -> None:
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    await gateway.http.post("/v1/players", json={"name": "Ann"}, headers=headers)
    response = await gateway.http.post("/v1/players", json={"name": "Bea"}, headers=headers)
    assert (response.status_code, response.json()["reason"]) == (422, "REQUEST_ID_REUSED")


async def test_the_same_body_written_otherwise_is_the_same_body(gateway: Stand) -> None:
    headers = {"Idempotency-Key": str(uuid.uuid4()), "Content-Type": "application/json"}
    first = await gateway.http.post("/v1/players", content='{"name":"Ann"}', headers=headers)
    second = await gateway.http.post("/v1/players", content='{ "name" : "\\u0041nn" }', headers=headers)
    assert first.json() == second.json()


async def test_a_key_is_its_players_and_its_paths_alone(gateway: Stand) -> None:
    key = str(uuid.uuid4())
    one = await gateway.http.post("/v1/players", json={"name": "Ann"}, headers={"Idempotency-Key": key})
    gateway.be(one.json())
    mine = await gateway.http.post("/v1/matches", json=MATCH, headers={"Idempotency-Key": key})
    await gateway.sign_in("Bea")
    theirs = await gateway.http.post("/v1/matches", json=MATCH, headers={"Idempotency-Key": key})
    assert mine.status_code == theirs.status_code == 201
    assert mine.json()["id"] != theirs.json()["id"]


async def test_a_retried_creation_makes_no_second_match(gateway: Stand) -> None:
    await gateway.sign_in()
    headers = {"Idempotency-Key": "again"}
    first, second = [await gateway.http.post("/v1/matches", json=MATCH, headers=headers) for _ in range(2)]
    assert first.content == second.content
    assert first.headers["location"] == second.headers["location"] == f"/v1/matches/{first.json()['id']}"
    assert len(gateway.service.calls("CreateMatch")) == 1


async def test_a_creation_that_died_on_its_way_is_taken_up_with_the_same_id(gateway: Stand) -> None:
    await gateway.sign_in()
    create = gateway.service.verbs["CreateMatch"]

    async def lost(request: Any, context: Context) -> Any:
        await create(request, context)
        await refuse(context, Unavailable("STORAGE_UNAVAILABLE", "try again"))

    gateway.service.verbs["CreateMatch"] = lost
    headers = {"Idempotency-Key": "again"}
    assert (await gateway.http.post("/v1/matches", json=MATCH, headers=headers)).status_code == 503
    gateway.service.verbs["CreateMatch"] = create
    response = await gateway.http.post("/v1/matches", json=MATCH, headers=headers)
    assert response.status_code == 201
    assert {request.match_id for request in gateway.service.calls("CreateMatch")} == {response.json()["id"]}


async def test_a_refusal_is_judged_afresh_and_its_key_may_come_with_a_better_body(gateway: Stand) -> None:
    await gateway.sign_in()
    create = gateway.service.verbs["CreateMatch"]

    async def refused(request: Any, context: Context) -> Any:
        await refuse(context, Unreadable("settings.moveSeconds", "too many"))

    gateway.service.verbs["CreateMatch"] = refused
    headers = {"Idempotency-Key": "again"}
    worse = {**MATCH, "settings": {"moveSeconds": 1}}
    for _ in range(2):
        response = await gateway.http.post("/v1/matches", json=worse, headers=headers)
        assert (response.status_code, response.json()["violations"][0]["field"]) == (400, "settings.moveSeconds")
    gateway.service.verbs["CreateMatch"] = create
    assert (await gateway.http.post("/v1/matches", json=MATCH, headers=headers)).status_code == 201
    assert len((await gateway.http.get("/v1/players/me/matches")).json()["matches"]) == 1


@pytest.mark.parametrize("key", ["", "x" * 129, "a\tb", "é"])
@pytest.mark.parametrize("path", ["/v1/players:refresh", "/v1/players/me:signOut", "/v1/matches", "/v1/matches/night_clan-abcdefgh:resign"])
async def test_a_key_of_other_than_128_printable_characters_is_400(gateway: Stand, path: str, key: str) -> None:
    await gateway.sign_in()
    body = {"/v1/players:refresh": {"refreshToken": "x"}, "/v1/matches": MATCH}.get(path, {})
    response = await gateway.http.post(path, json=body, headers={b"Idempotency-Key": key.encode()})
    assert response.status_code == 400
    assert response.json()["violations"][0]["field"] == "Idempotency-Key"


async def test_a_sign_in_takes_no_key_that_could_be_guessed(gateway: Stand) -> None:
    response = await gateway.http.post("/v1/players", json={"name": "Ann"}, headers={"Idempotency-Key": "1"})
    assert (response.status_code, response.json()["violations"][0]["field"]) == (400, "Idempotency-Key")


async def test_answers_with_tokens_are_forgotten_after_ten_minutes_and_others_after_a_day(gateway: Stand, redis: Redis) -> None:
    await gateway.http.post("/v1/players", json={"name": "Ann"}, headers={"Idempotency-Key": str(uuid.uuid4())})
    (key,) = await redis.keys("gateway:answer:*")
    assert 590 < await redis.ttl(key) <= 600
    await redis.delete(key)
    await gateway.sign_in()
    await gateway.http.post("/v1/matches", json=MATCH, headers={"Idempotency-Key": "k"})
    (key,) = await redis.keys("gateway:answer:*")
    assert 86_000 < await redis.ttl(key) <= 86_400
