"""How much a player and an address may ask for, with gateways on real sockets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from prometheus_client import REGISTRY
from pydantic import ValidationError
from redis.asyncio import Redis
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from gateway.limits import LIMITED, address_of
from gateway.registry import GAMES
from gateway.settings import GatewaySettings
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.table.v1 import table_pb2
from services.kit.limits import Buckets, Rate
from tests.gateway.stand import MATCH_ID, MOVE, Context, Stand, World, live_stand, match, stand
from tests.harness import Keys
from tests.live import BOTH, live

KEEP = night_clan_pb2.Move(keep=night_clan_pb2.Keep())
SEATS = [{"player": "me"}, {"bot": "STANDARD"}]


@asynccontextmanager
async def limited(keys: Keys, redis_url: str, **settings: Any) -> AsyncIterator[Stand]:
    """A gateway on a socket, with some limits."""
    async with stand(keys, redis_url, on_socket=True, **settings) as it:
        yield it


async def sign_in(it: Stand, **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await it.http.post("/v1/players", json={"name": "Ann"}, headers=sent)


async def create(it: Stand, token: str, **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"game": "night_clan", "seats": SEATS}
    return await it.http.post("/v1/matches", json=body, headers={"Authorization": f"Bearer {token}", **sent})


async def submit(it: Stand, token: str) -> httpx.Response:
    return await it.http.post(f"/v1/matches/{MATCH_ID}/moves", json={"move": MOVE}, headers={"Authorization": f"Bearer {token}"})


def refused(answer: httpx.Response) -> int:
    """Asserts that an answer says to come back later, and returns in how many seconds."""
    assert answer.status_code == 429, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["reason"] == "RATE_LIMITED"
    return int(answer.headers["retry-after"])


def throttled(kind: str, of: str) -> float:
    return REGISTRY.get_sample_value("gloaming_throttled_total", {"kind": kind, "of": of}) or 0


async def test_a_burst_goes_through_then_429_says_how_long_to_wait_and_that_is_enough(keys: Keys, redis_url: str, redis: Redis) -> None:
    before = throttled("sign_in", "address")
    async with limited(keys, redis_url, limit_sign_ins="60:3") as it:
        answers = [await sign_in(it) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [201, 201, 201, 429]
        wait = refused(answers[-1])
        assert wait == 1
        (key,) = [key async for key in redis.scan_iter("gateway:limit:*")]
        assert key == b"gateway:limit:{sign_in:127.0.0.1}"
        assert 0 < await redis.pttl(key) <= 3000
        await asyncio.sleep(wait)
        assert (await sign_in(it)).status_code == 201
        refused(await sign_in(it))
    assert throttled("sign_in", "address") == before + 2


async def test_refreshing_counts_as_signing_in(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, limit_sign_ins="1:2") as it:
        session = (await sign_in(it)).json()
        body = {"refreshToken": session["refreshToken"]}
        assert (await it.http.post("/v1/players:refresh", json=body)).status_code == 200
        assert 50 < refused(await it.http.post("/v1/players:refresh", json=body)) <= 60


async def test_each_player_has_a_limit_of_their_own(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, limit_making="1:2", limit_making_address="1:5") as it:
        ann, bob = [(await sign_in(it)).json()["accessToken"] for _ in range(2)]
        assert [(await create(it, ann)).status_code for _ in range(6)] == [201, 201, 429, 429, 429, 429]
        # What Ann was refused took nothing from the address that they share.
        assert [(await create(it, bob)).status_code for _ in range(3)] == [201, 201, 429]


async def test_rooms_and_rematches_and_tickets_count_with_matches(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, limit_making="1:1") as it:
        token = (await it.sign_in())["accessToken"]
        assert (await create(it, token)).status_code == 201
        for path, body in (
            ("/v1/matches", {"game": "night_clan", "seats": SEATS}),
            (f"/v1/matches/{MATCH_ID}:rematch", {}),
            ("/v1/rooms", {"game": "night_clan"}),
            ("/v1/rooms/ABCDEF:join", {}),
            ("/v1/rooms/ABCDEF:start", {}),
            ("/v1/tickets", {"game": "night_clan"}),
        ):
            refused(await it.http.post(path, json=body))
        assert (await it.http.get("/v1/players/me")).status_code == 200


BY_CODE: tuple[tuple[str, str, dict[str, Any] | None], ...] = (
    ("GET", "/v1/rooms/{}", None),
    ("POST", "/v1/rooms/{}:join", {}),
    ("POST", "/v1/rooms/{}:leave", {}),
    ("POST", "/v1/rooms/{}:kick", {"player": "p"}),
    ("POST", "/v1/rooms/{}:addBot", {}),
    ("POST", "/v1/rooms/{}:removeBot", {}),
    ("POST", "/v1/rooms/{}:ready", {}),
    ("POST", "/v1/rooms/{}:start", {}),
    ("POST", "/v1/tickets", {"game": "night_clan", "party": "{}"}),
)


async def by_code(it: Stand, asked: tuple[str, str, dict[str, Any] | None], code: str) -> httpx.Response:
    method, path, body = asked
    if body is not None and "party" in body:
        body = body | {"party": code}
    return await it.http.request(method, path.format(code), json=body)


@pytest.mark.parametrize("asked", BY_CODE, ids=lambda asked: asked[1])
async def test_codes_of_rooms_cannot_be_tried_without_end(
    keys: Keys, redis_url: str, redis: Redis, asked: tuple[str, str, dict[str, Any] | None]
) -> None:
    before = throttled("room", "player")
    async with limited(keys, redis_url, limit_rooms="1:2") as it:
        await it.sign_in()
        there = (await it.http.post("/v1/rooms", json={"game": "night_clan"})).json()["code"]
        for code in ("ABCDEF", "ABCDEG"):
            answer = await by_code(it, asked, code)
            assert (answer.status_code, answer.json()["reason"]) == (404, "ROOM_NOT_FOUND")
        assert 50 < refused(await by_code(it, asked, "ABCDEH")) <= 60
        # Nor is it said then which code is one.
        refused(await by_code(it, asked, there))
        assert (await it.http.get("/v1/players/me")).status_code == 200
    assert throttled("room", "player") == before + 2


async def test_codes_that_are_tried_at_once_are_counted_each(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, limit_rooms="1:3") as it:
        await it.sign_in()
        answers = await asyncio.gather(*(it.http.get(f"/v1/rooms/ABCDE{letter}") for letter in "ABCDEFGH"))
        assert sorted(answer.status_code for answer in answers) == [404] * 3 + [429] * 5


async def test_all_players_of_an_address_try_codes_together(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, limit_rooms_address="1:3") as it:
        answers = []
        for _ in range(4):
            await it.sign_in()
            answers.append((await it.http.get("/v1/rooms/ABCDEF")).status_code)
        assert answers == [404, 404, 404, 429]


async def test_who_looks_at_a_room_that_is_there_is_not_limited_nor_by_other_refusals(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, limit_rooms="1:2", limit_rooms_address="1:2") as it:
        await it.sign_in()
        code = (await it.http.post("/v1/rooms", json={"game": "night_clan"})).json()["code"]
        assert {(await it.http.get(f"/v1/rooms/{code}")).status_code for _ in range(10)} == {200}
        assert {(await it.http.post(f"/v1/rooms/{code}:removeBot")).status_code for _ in range(5)} == {422}
        await it.sign_in()
        assert {(await it.http.post(f"/v1/rooms/{code}:ready")).status_code for _ in range(5)} == {403}
        assert await redis.keys("gateway:limit:{room:*") == []
        assert (await it.http.get("/v1/rooms/ABCDEF")).status_code == 404
        assert len(await redis.keys("gateway:limit:{room:*")) == 2
        for key in await redis.keys("gateway:limit:{room:*"):
            assert 0 < await redis.pttl(key) <= 60_000
        # What was tried stays counted, whatever is given back after.
        assert {(await it.http.get(f"/v1/rooms/{code}")).status_code for _ in range(5)} == {200}
        assert (await it.http.get("/v1/rooms/ABCDEF")).status_code == 404
        refused(await it.http.get("/v1/rooms/ABCDEF"))


async def test_all_players_of_an_address_share_its_limit_at_all_gateways(keys: Keys, redis_url: str, redis: Redis) -> None:
    more = {"limit_making_address": "1:3"}
    async with limited(keys, redis_url, **more) as one, limited(keys, redis_url, **more) as other:
        tokens = [(await sign_in(one)).json()["accessToken"] for _ in range(4)]
        answers = await asyncio.gather(*(create(it, token) for it, token in zip((one, other, one, other), tokens, strict=True)))
        assert sorted(answer.status_code for answer in answers) == [201, 201, 201, 429]


async def test_who_has_no_good_token_is_told_so_and_counts_nowhere(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, limit_making="1:1", limit_moves="1:1") as it:
        for _ in range(3):
            assert (await create(it, "x")).status_code == 401
        assert [key async for key in redis.scan_iter("gateway:limit:*")] == []


async def test_a_forged_address_is_not_believed(keys: Keys, redis_url: str, redis: Redis) -> None:
    for trusted in ("", "10.0.0.0/8"):
        await redis.flushdb()
        async with limited(keys, redis_url, limit_sign_ins="1:2", trusted_proxies=trusted) as it:
            answers = [await sign_in(it, X_Forwarded_For=f"203.0.113.{n}", Forwarded=f"for=203.0.113.{n}") for n in range(3)]
            assert [answer.status_code for answer in answers] == [201, 201, 429]


async def test_a_trusted_proxy_says_who_is_behind_it_and_what_its_client_put_before_is_not_believed(
    keys: Keys, redis_url: str, redis: Redis
) -> None:
    async with limited(keys, redis_url, limit_sign_ins="1:2", trusted_proxies="127.0.0.0/8, 10.0.0.0/8") as it:
        forged = [await sign_in(it, X_Forwarded_For=f"198.51.100.{n}, 203.0.113.7, 10.1.2.3") for n in range(3)]
        assert [answer.status_code for answer in forged] == [201, 201, 429]
        assert (await sign_in(it, X_Forwarded_For="203.0.113.8, 10.1.2.3")).status_code == 201
        keys_now = {key async for key in redis.scan_iter("gateway:limit:*")}
        assert keys_now == {b"gateway:limit:{sign_in:203.0.113.7}", b"gateway:limit:{sign_in:203.0.113.8}"}


@pytest.mark.parametrize(
    "forwarded", ["", "unknown", "_hidden, _more", ",,,", "\u00e9".encode("latin-1").decode("latin-1"), "9" * 5000, "::1%" + "z" * 3000]
)
async def test_an_address_that_is_none_is_counted_all_the_same(keys: Keys, redis_url: str, redis: Redis, forwarded: str) -> None:
    async with limited(keys, redis_url, limit_sign_ins="1:2", trusted_proxies="127.0.0.1") as it:
        headers = [(b"X-Forwarded-For", forwarded.encode("latin-1"))]
        answers = [await it.http.post("/v1/players", json={"name": "Ann"}, headers=headers) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [201, 201, 429]
        assert all(len(key) < 100 for key in await redis.keys("gateway:limit:*"))


@pytest.mark.parametrize(
    ("client", "counted"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", "unknown"),
        ("somewhere", "unknown"),
    ],
)
def test_ipv6_counts_by_the_network_of_a_household(client: str, counted: str) -> None:
    assert address_of({"client": (client, 1)}) == counted
    assert address_of({"client": None}) == "unknown"


async def test_moves_are_limited_by_player_without_a_round_trip(keys: Keys, redis_url: str, redis: Redis) -> None:
    async def respond(request: Any, context: Context) -> Any:
        return night_clan_pb2.SubmitMoveResponse()

    async with limited(keys, redis_url, limit_moves="60:3") as it:
        it.service.verbs["SubmitMove"] = respond
        ann, bob = keys.token("ann"), keys.token("bob")
        answers = [await submit(it, ann) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        wait = refused(answers[-1])
        assert len(it.service.calls("SubmitMove")) == 3
        assert (await submit(it, bob)).status_code == 200
        assert [key async for key in redis.scan_iter("gateway:limit:*")] == []
        await asyncio.sleep(wait)
        assert (await submit(it, ann)).status_code == 200


@pytest.mark.parametrize("subprotocol", BOTH)
async def test_a_move_too_many_on_a_socket_is_a_problem_and_the_socket_and_others_go_on(
    keys: Keys, redis_url: str, redis: Redis, subprotocol: Subprotocol
) -> None:
    world = World()
    async with (
        live_stand(keys, redis_url, world, limit_moves="60:2") as it,
        live(it.live_url, keys.token("ann"), subprotocol) as ann,
        live(it.live_url, keys.token("bob"), subprotocol) as bob,
    ):
        await ann.watch(MATCH_ID)
        answers = [await ann.move(MATCH_ID, KEEP) for _ in range(3)]
        assert [answer.HasField("problem") for answer in answers] == [False, False, True]
        problem = answers[-1].problem
        assert (problem.status, problem.reason, problem.match_id, problem.retry_after) == (429, "RATE_LIMITED", MATCH_ID, 1)
        assert len(world.played[MATCH_ID]) == 2
        assert not (await bob.move(MATCH_ID, KEEP)).HasField("problem")
        # A move over REST comes out of the same bucket.
        refused(await submit(it, keys.token("ann")))
        await asyncio.sleep(problem.retry_after)
        assert not (await ann.move(MATCH_ID, KEEP)).HasField("problem")


async def test_a_socket_too_many_is_refused_in_the_handshake(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with live_stand(keys, redis_url, World(), limit_sockets="1:2", limit_sockets_address="1:4") as it:
        for _ in range(2):
            async with live(it.live_url, keys.token("ann")):
                pass
        with pytest.raises(InvalidStatus) as denied:
            async with live(it.live_url, keys.token("ann")):
                pass
        response = denied.value.response
        assert (response.status_code, response.headers["content-type"]) == (429, "application/problem+json")
        assert 50 < int(response.headers["retry-after"]) <= 60
        for _ in range(2):
            async with live(it.live_url, keys.token("bob")):
                pass
        with pytest.raises(InvalidStatus, match="429"):
            async with live(it.live_url, keys.token("cat")):
                pass


async def test_without_redis_what_is_counted_there_fails_as_the_rest_does(keys: Keys) -> None:
    async with limited(keys, "redis://127.0.0.1:1/0", limit_sign_ins="60:60", limit_making="60:60", limit_sockets="60:60") as it:
        for answer in (await sign_in(it), await create(it, keys.token("ann"))):
            assert (answer.status_code, answer.json()["reason"]) == (503, "STORAGE_UNAVAILABLE")
            assert int(answer.headers["retry-after"]) >= 1


async def test_zero_switches_a_limit_off(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, limit_sign_ins="0") as it:
        assert {answer.status_code for answer in await asyncio.gather(*(sign_in(it) for _ in range(150)))} == {201}


@pytest.mark.parametrize("value", ["", "x", "60", "60:", ":60", "0:1", "1:0", "-1:1", "1.5:1", "60:120:1", "00", "1:99999999", "٣:١"])
def test_a_limit_that_cannot_be_read_is_refused_at_the_start(keys: Keys, value: str) -> None:
    given = {"jwks_file": keys.jwks, "signing_key_file": keys.pem, "services": dict.fromkeys(GAMES, "x:1")}
    with pytest.raises(ValidationError, match="limit_moves"):
        GatewaySettings.model_validate({**given, "limit_moves": value})


@pytest.mark.parametrize("value", ["*", "10.0.0.1/8", "proxy", "10.0.0.0/8,*"])
def test_proxies_are_trusted_by_network_alone(keys: Keys, value: str) -> None:
    given = {"jwks_file": keys.jwks, "signing_key_file": keys.pem, "services": dict.fromkeys(GAMES, "x:1")}
    with pytest.raises(ValidationError, match="trusted_proxies"):
        GatewaySettings.model_validate({**given, "trusted_proxies": value})


def test_a_whole_burst_fits_at_any_rate_and_the_one_after_it_does_not() -> None:
    for burst in (1, 7, 400, 10_000):
        buckets = Buckets(Rate(interval=1000 / 3, burst=burst))
        assert [bool(buckets.take("ann")) for _ in range(burst + 1)] == [False] * burst + [True]


def test_buckets_in_a_process_are_bounded_and_forget_who_was_there_longest_ago() -> None:
    buckets = Buckets(Rate(interval=1000, burst=1), most=2)
    assert not buckets.take("ann")
    assert not buckets.take("bob")
    assert buckets.take("ann")
    assert not buckets.take("cat")
    assert [name for name in ("bob", "cat") if buckets.take(name)] == ["bob", "cat"]
    assert not buckets.take("ann")


# Live matches.


async def made(it: Stand, count: int) -> list[str]:
    answers = [await create(it, it.http.headers["Authorization"].removeprefix("Bearer ")) for _ in range(count)]
    assert [answer.status_code for answer in answers] == [201] * count
    return [answer.json()["id"] for answer in answers]


async def test_a_player_has_so_many_matches_going_and_those_that_ended_make_room(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, most_live_matches=3) as it:
        token = (await it.sign_in())["accessToken"]
        first, second, _ = await made(it, 3)
        answer = await create(it, token)
        assert (answer.status_code, answer.json()["reason"]) == (422, "TOO_MANY_MATCHES")
        assert "3 matches" in answer.json()["detail"]
        assert len(it.service.calls("CreateMatch")) == 3
        it.service.matches[first] = match(first, status=table_pb2.FINISHED)
        it.service.matches[second] = match(second, status=table_pb2.FINISHED)
        await made(it, 2)
        assert (await create(it, token)).status_code == 422
        await it.sign_in("Bob")
        await made(it, 1)


async def test_a_retry_under_its_key_finds_the_match_that_was_the_last_allowed(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, most_live_matches=1) as it:
        token = (await it.sign_in())["accessToken"]
        first = await create(it, token, Idempotency_Key="k")
        again = await create(it, token, Idempotency_Key="k")
        assert (first.status_code, again.status_code, again.json()["id"]) == (201, 201, first.json()["id"])
        assert (await create(it, token, Idempotency_Key="l")).status_code == 422
        # A refusal is no answer to keep: the same key goes through once there is room.
        it.service.matches[first.json()["id"]] = match(first.json()["id"], status=table_pb2.FINISHED)
        assert (await create(it, token, Idempotency_Key="l")).status_code == 201


async def test_tickets_and_rooms_and_rematches_are_asked_for_in_vain_too(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, most_live_matches=1) as it:
        player = (await it.sign_in())["player"]["id"]
        room = (await it.http.post("/v1/rooms", json={"game": "night_clan"})).json()
        assert (await it.http.post(f"/v1/rooms/{room['code']}:addBot", json={})).status_code == 200
        assert (await it.http.post(f"/v1/rooms/{room['code']}:ready", json={"ready": True})).status_code == 200
        await made(it, 1)
        done = match(status=table_pb2.FINISHED)
        done.seats[0].player = player
        it.service.matches[MATCH_ID] = done
        for path, body in (
            ("/v1/tickets", {"game": "night_clan"}),
            (f"/v1/rooms/{room['code']}:start", {}),
            (f"/v1/matches/{MATCH_ID}:rematch", {}),
        ):
            answer = await it.http.post(path, json=body)
            assert (answer.status_code, answer.json()["reason"]) == (422, "TOO_MANY_MATCHES"), path


async def test_who_keeps_asking_in_vain_has_their_matches_looked_at_only_now_and_then(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, most_live_matches=2) as it:
        token = (await it.sign_in())["accessToken"]
        await made(it, 2)
        looked = len(it.service.calls("GetMatch"))
        began = time.monotonic()
        assert {(await create(it, token)).status_code for _ in range(30)} == {422}
        assert len(it.service.calls("GetMatch")) - looked <= 2 * (3 + (time.monotonic() - began) / 2)


async def test_matches_of_a_service_that_does_not_answer_are_taken_for_going(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with limited(keys, redis_url, most_live_matches=1) as it:
        token = (await it.sign_in())["accessToken"]
        await made(it, 1)
        await it.service.stop()
        assert (await create(it, token)).status_code == 422


async def test_429_is_described_with_its_header_where_it_can_be(gateway: Stand) -> None:
    paths = (await gateway.http.get("/openapi.json")).json()["paths"]
    described = {
        each["operationId"]
        for path in paths.values()
        for each in path.values()
        if "Retry-After" in each["responses"].get("429", {}).get("headers", {})
    }
    assert described == set(LIMITED)
