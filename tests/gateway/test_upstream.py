"""Calls to game services that come and go."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from redis.asyncio import Redis

from gateway.registry import GAMES, game_of
from gateway.settings import GatewaySettings
from gloaming.night_clan.v1 import night_clan_pb2
from services.kit.errors import NotFound
from tests.gateway.stand import MATCH_ID, MOVE, NIGHT_CLAN, Context, Service, Stand, match, stand
from tests.harness import Keys

PATH = f"/v1/matches/{MATCH_ID}"


def test_a_game_is_all_that_its_descriptor_says() -> None:
    game = GAMES["night_clan"]
    assert (game.title, game.min_seats, game.max_seats, game.real_time) == ("Night Clan", 2, 4, False)
    assert game.service == "gloaming.night_clan.v1.NightClanService"
    assert game.methods["WatchMatch"].streams
    assert game.methods["SubmitMove"].request is night_clan_pb2.SubmitMoveRequest
    assert game_of("night_clan-abcdefgh") is game
    with pytest.raises(NotFound):
        game_of("night_clan-abcdefgh\n")


def test_targets_may_hold_commas(keys: Keys) -> None:
    for text, target in [
        ("night_clan=127.0.0.1:50051", "127.0.0.1:50051"),
        ("night_clan=ipv4:127.0.0.1:1,127.0.0.1:2", "ipv4:127.0.0.1:1,127.0.0.1:2"),
        ("night_clan=dns:///night-clan:50051", "dns:///night-clan:50051"),
    ]:
        others = [f"{game}=127.0.0.1:{n}" for n, game in enumerate(GAMES, start=1) if game != "night_clan"]
        for services in ([text, *others], [*others, text]):
            given = {"jwks_file": keys.jwks, "signing_key_file": keys.pem, "services": ",".join(services)}
            settings = GatewaySettings.model_validate(given)
            assert settings.services == {"night_clan": target, **dict(other.split("=") for other in others)}


@pytest.mark.parametrize("text", ["", "night_clan", "night_clan=", "chess=127.0.0.1:1", "night_clan=a:1,chess=b:1"])
@pytest.mark.parametrize("others", ["", ",".join(f"{game}=a:1" for game in GAMES if game != "night_clan")])
def test_a_game_without_a_target_is_told_at_once(keys: Keys, text: str, others: str) -> None:
    with pytest.raises(ValueError, match=f"one target for each of {', '.join(GAMES)}"):
        GatewaySettings.model_validate(
            {"jwks_file": keys.jwks, "signing_key_file": keys.pem, "services": ",".join(filter(None, [text, others]))}
        )


async def test_a_call_that_finds_no_service_is_made_again_under_the_same_request_id(gateway: Stand) -> None:
    await gateway.sign_in()
    turns = iter(range(9))

    async def submit(request: Any, context: Context) -> Any:
        if next(turns) == 0:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "going down")
        return night_clan_pb2.SubmitMoveResponse(version=8)

    gateway.service.verbs["SubmitMove"] = submit
    response = await gateway.http.post(f"{PATH}/moves", json={"move": MOVE})
    assert response.status_code == 200
    first, second = gateway.service.calls("SubmitMove")
    assert first.request_id == second.request_id


async def test_a_replica_that_stops_goes_unnoticed_where_there_is_another(keys: Keys, redis_url: str, redis: Redis) -> None:
    other = Service()
    await other.start()
    first = Service()
    await first.start()
    targets = {"night_clan": f"ipv4:127.0.0.1:{first.port},127.0.0.1:{other.port}"}
    async with stand(keys, redis_url, services=targets) as gateway:
        await gateway.sign_in()
        first.matches[MATCH_ID] = other.matches[MATCH_ID] = match()
        for turn in range(60):
            if turn == 20:
                await first.stop()
            if turn == 40:
                await first.start()
                await asyncio.sleep(0.3)
            assert (await gateway.http.get(PATH)).status_code == 200
        # Calls take turns, also with the one that came back.
        assert len(first.calls("GetMatch")) > 10
        assert len(other.calls("GetMatch")) > 20
    await first.stop()
    await other.stop()


async def test_a_service_that_is_away_is_503_and_back_again_soon(gateway: Stand) -> None:
    await gateway.sign_in()
    gateway.service.matches[MATCH_ID] = match()
    await gateway.service.stop()
    response = await gateway.http.get(PATH)
    assert (response.status_code, response.json()["reason"], response.headers["retry-after"]) == (503, "UNAVAILABLE", "1")
    assert "127.0.0.1" not in response.text
    await gateway.service.start()
    for _ in range(30):
        response = await gateway.http.get(PATH)
        if response.status_code == 200:
            break
        await asyncio.sleep(0.1)
    assert response.status_code == 200


async def test_a_service_that_is_slow_is_503(keys: Keys, redis_url: str, redis: Redis) -> None:
    async def slow(request: Any, context: Context) -> Any:
        await asyncio.sleep(5)

    async with stand(keys, redis_url, rpc_seconds=0.2) as gateway:
        await gateway.sign_in()
        gateway.service.verbs["GetMatch"] = slow
        response = await gateway.http.get(PATH)
    assert (response.status_code, response.json()["reason"]) == (503, "DEADLINE_EXCEEDED")


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.DATA_LOSS]
)
async def test_a_service_that_fails_is_500_without_a_word_of_it(gateway: Stand, code: grpc.StatusCode) -> None:
    await gateway.sign_in()

    async def fail(request: Any, context: Context) -> Any:
        await context.abort(code, "secret at 10.0.0.1")

    gateway.service.verbs["GetMatch"] = fail
    response = await gateway.http.get(PATH)
    assert (response.status_code, response.json()["reason"]) == (500, "INTERNAL")
    assert "secret" not in response.text


async def test_a_refusal_without_a_reason_has_its_codes_name(gateway: Stand) -> None:
    await gateway.sign_in()

    async def refused(request: Any, context: Context) -> Any:
        await context.abort(grpc.StatusCode.NOT_FOUND, "from something in between")

    gateway.service.verbs["GetMatch"] = refused
    response = await gateway.http.get(PATH)
    assert (response.status_code, response.json()["reason"]) == (404, "NOT_FOUND")


async def test_ready_says_what_is_not(gateway: Stand) -> None:
    response = await gateway.http.get("/readyz")
    serving = dict.fromkeys(GAMES, "SERVING")
    assert (response.status_code, response.json()) == (
        200,
        {"ready": True, "draining": False, "storage": True, "services": serving, "allServing": True},
    )
    gateway.app.state.draining.set()
    response = await gateway.http.get("/readyz")
    assert (response.status_code, response.json()) == (
        503,
        {"ready": False, "draining": True, "storage": True, "services": serving, "allServing": True},
    )


async def test_a_game_that_is_away_takes_no_gateway_out_of_service_and_is_told(gateway: Stand) -> None:
    assert 'gloaming_upstream_serving{game="night_clan"} 1.0' in (await gateway.http.get("/metrics")).text
    await gateway.service.health.set(NIGHT_CLAN.service, health_pb2.HealthCheckResponse.NOT_SERVING)
    response = await gateway.http.get("/readyz")
    assert (response.status_code, response.json()) == (
        200,
        {
            "ready": True,
            "draining": False,
            "storage": True,
            "services": dict.fromkeys(GAMES, "SERVING") | {"night_clan": "NOT_SERVING"},
            "allServing": False,
        },
    )
    metrics = (await gateway.http.get("/metrics")).text
    assert 'gloaming_upstream_serving{game="night_clan"} 0.0' in metrics
    assert 'gloaming_upstream_serving{game="night_knight"} 1.0' in metrics
    await gateway.service.stop()
    response = await gateway.http.get("/readyz")
    assert (response.status_code, response.json()["services"]) == (200, dict.fromkeys(GAMES, "UNREACHABLE"))
    assert 'gloaming_upstream_serving{game="night_knight"} 0.0' in (await gateway.http.get("/metrics")).text
    assert (await gateway.http.get("/healthz")).json() == {"alive": True}


async def test_without_storage_it_is_not_ready_and_says_503(keys: Keys, redis: Redis) -> None:
    async with stand(keys, "redis://127.0.0.1:1/0") as gateway:
        response = await gateway.http.get("/readyz")
        assert (response.status_code, response.json()["storage"]) == (503, False)
        response = await gateway.http.post("/v1/players", json={"name": "Ann"})
        assert (response.status_code, response.json()["reason"]) == (503, "STORAGE_UNAVAILABLE")
        assert response.headers["retry-after"] == "1"
        assert (await gateway.http.get("/v1/games")).status_code == 200
