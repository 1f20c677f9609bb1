"""Sign-in, tokens, profiles."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from typing import Any

import jwt
import pytest
from redis.asyncio import Redis

from services.kit.identity import revocation_key
from tests.gateway.stand import Context, Stand


async def refresh(gateway: Stand, token: str, **headers: str) -> Any:
    return await gateway.http.post("/v1/players:refresh", json={"refreshToken": token}, headers=headers)


async def test_a_guest_gets_a_player_and_tokens_that_work(gateway: Stand) -> None:
    session = await gateway.sign_in("Ann")
    assert session["player"]["name"] == "Ann"
    assert session["player"]["id"][0] == "p"
    assert len(session["player"]["id"]) == 17
    me = await gateway.http.get("/v1/players/me")
    assert me.json() == session["player"]
    assert (await gateway.http.get(f"/v1/players/{session['player']['id']}", headers={"Authorization": ""})).json() == session["player"]


async def test_signing_in_says_where_the_player_is_and_is_not_to_be_stored(gateway: Stand) -> None:
    response = await gateway.http.post("/v1/players", json={"name": "Ann"})
    assert response.headers["location"] == f"/v1/players/{response.json()['player']['id']}"
    assert response.headers["cache-control"] == "no-store"


async def test_an_access_token_says_what_services_check(gateway: Stand) -> None:
    session = await gateway.sign_in("Ann")
    claims = jwt.decode(session["accessToken"], options={"verify_signature": False})
    assert claims | {"iat": 0, "exp": 0, "jti": ""} == {
        "iss": "gloaming",
        "aud": "gloaming",
        "sub": session["player"]["id"],
        "name": "Ann",
        "scope": "play",
        "gen": 0,
        "iat": 0,
        "exp": 0,
        "jti": "",
    }
    assert claims["exp"] - claims["iat"] == 900
    assert jwt.get_unverified_header(session["accessToken"])["alg"] == "EdDSA"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  Ann ", "Ann"),
        ("Ange\u0301lique", "Angélique"),
        ("愛" * 40, "愛" * 40),
        ("🦊", "🦊"),
        ("a b", "a b"),
        ("O'Neil <b>", "O'Neil <b>"),
    ],
)
async def test_names_are_composed_and_stripped(gateway: Stand, given: str, kept: str) -> None:
    assert (await gateway.sign_in(given))["player"]["name"] == kept


@pytest.mark.parametrize(
    "name", ["", "  ", "x" * 41, "a\nb", "a\u0000b", "a\u202eb", "a\u200bb", "\ue000", "\U000e0001", "a\u2028b", "\u0378", "a\u0085b"]
)
async def test_names_that_are_empty_long_or_unseen_are_refused(gateway: Stand, name: str) -> None:
    response = await gateway.http.post("/v1/players", json={"name": name})
    assert response.status_code == 400
    assert [violation["field"] for violation in response.json()["violations"]] == ["name"]
    session = await gateway.sign_in()
    assert (await gateway.http.patch("/v1/players/me", json={"name": name})).status_code == 400
    assert (await gateway.http.get("/v1/players/me")).json() == session["player"]


async def test_a_player_can_be_renamed(gateway: Stand) -> None:
    await gateway.sign_in("Ann")
    assert (await gateway.http.patch("/v1/players/me", json={"name": "Bea"})).json()["name"] == "Bea"
    assert (await gateway.http.patch("/v1/players/me", json={})).json()["name"] == "Bea"
    assert (await gateway.http.get("/v1/players/me")).json()["name"] == "Bea"


@pytest.mark.parametrize("player", ["p" + "a" * 16, "p" + "a" * 15, "me2", "p{x}", "%20", "p" + "é" * 16])
async def test_a_player_who_is_not_there_is_not_found(gateway: Stand, player: str) -> None:
    response = await gateway.http.get(f"/v1/players/{player}")
    assert (response.status_code, response.json()["reason"]) == (404, "PLAYER_NOT_FOUND")


async def test_refreshing_gives_another_pair_with_the_newest_name(gateway: Stand) -> None:
    first = await gateway.sign_in("Ann")
    await gateway.http.patch("/v1/players/me", json={"name": "Bea"})
    second = (await refresh(gateway, first["refreshToken"])).json()
    assert second["player"] == first["player"] | {"name": "Bea"}
    assert second["refreshToken"] != first["refreshToken"]
    gateway.be(second)
    assert (await gateway.http.get("/v1/players/me")).status_code == 200


async def test_a_client_that_lost_the_answer_refreshes_again_with_the_old_token(gateway: Stand) -> None:
    session = await gateway.sign_in()
    answers = [await refresh(gateway, session["refreshToken"]) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    for answer in answers:
        assert (await refresh(gateway, answer.json()["refreshToken"])).status_code == 200


async def test_a_used_refresh_token_dies_a_minute_later(gateway: Stand, redis: Redis) -> None:
    session = await gateway.sign_in()
    await refresh(gateway, session["refreshToken"])
    key = f"gateway:{{{session['player']['id']}}}:refresh"
    digest = hashlib.sha256(session["refreshToken"].partition(".")[2].encode()).digest()
    expiry = await redis.zscore(key, digest)
    seconds, micros = await redis.time()
    assert expiry is not None
    assert 50_000 < expiry - (seconds * 1000 + micros / 1000) <= 60_000
    await redis.zadd(key, {digest: seconds * 1000})
    response = await refresh(gateway, session["refreshToken"])
    assert (response.status_code, response.json()["reason"]) == (401, "REFRESH_TOKEN_INVALID")


async def test_using_an_old_token_again_does_not_lengthen_its_grace(gateway: Stand, redis: Redis) -> None:
    session = await gateway.sign_in()
    key = f"gateway:{{{session['player']['id']}}}:refresh"
    digest = hashlib.sha256(session["refreshToken"].partition(".")[2].encode()).digest()
    await refresh(gateway, session["refreshToken"])
    expiry = await redis.zscore(key, digest)
    await asyncio.sleep(0.01)
    await refresh(gateway, session["refreshToken"])
    assert await redis.zscore(key, digest) == expiry


async def test_a_player_has_at_most_twenty_refresh_tokens(gateway: Stand, redis: Redis) -> None:
    session = await gateway.sign_in()
    newest = session["refreshToken"]
    for _ in range(30):
        newest = (await refresh(gateway, newest)).json()["refreshToken"]
    assert await redis.zcard(f"gateway:{{{session['player']['id']}}}:refresh") == 20
    assert (await refresh(gateway, newest)).status_code == 200


@pytest.mark.parametrize("token", ["", "x", ".", "p" + "a" * 16 + ".x", "p" + "a" * 16, "{}.a", "p" + "a" * 16 + ".é🦊", "a" * 5000])
async def test_a_refresh_token_of_nobody_is_401(gateway: Stand, token: str) -> None:
    response = await refresh(gateway, token)
    assert (response.status_code, response.json()["reason"]) == (401, "REFRESH_TOKEN_INVALID")


async def test_signing_out_revokes_every_token_at_once(gateway: Stand) -> None:
    first = await gateway.sign_in()
    second = (await refresh(gateway, first["refreshToken"])).json()
    assert (await gateway.http.post("/v1/players/me:signOut")).json() == {}
    for session in (first, second):
        gateway.be(session)
        response = await gateway.http.get("/v1/players/me")
        assert (response.status_code, response.json()["reason"]) == (401, "TOKEN_REVOKED")
        assert response.headers["www-authenticate"] == "Bearer"
        assert (await refresh(gateway, session["refreshToken"])).status_code == 401


async def test_signing_out_is_repeated_under_its_key_and_refused_without(gateway: Stand) -> None:
    await gateway.sign_in()
    headers = {"Idempotency-Key": "out"}
    assert (await gateway.http.post("/v1/players/me:signOut", headers=headers)).status_code == 200
    assert (await gateway.http.post("/v1/players/me:signOut", headers=headers, json={})).status_code == 200
    assert (await gateway.http.post("/v1/players/me:signOut")).status_code == 401


async def test_a_refresh_that_races_a_sign_out_leaves_no_good_token(gateway: Stand) -> None:
    for _ in range(20):
        session = await gateway.sign_in()
        out = gateway.http.post("/v1/players/me:signOut")
        renewals = [refresh(gateway, session["refreshToken"]) for _ in range(4)]
        answered, *renewed = await asyncio.gather(out, *renewals)
        assert answered.status_code == 200
        for each in renewed:
            if each.status_code == 200:
                gateway.be(each.json())
                assert (await gateway.http.get("/v1/players/me")).status_code == 401
                assert (await refresh(gateway, each.json()["refreshToken"])).status_code == 401


async def test_two_sign_outs_never_lower_what_is_revoked(gateway: Stand, redis: Redis) -> None:
    session = await gateway.sign_in()
    await asyncio.gather(*(gateway.http.post("/v1/players/me:signOut") for _ in range(8)))
    player = session["player"]["id"]
    generation = int(await redis.hget(f"gateway:{{{player}}}:player", "generation") or 0)
    assert int(await redis.get(revocation_key(player)) or 0) == generation


async def test_a_revocation_outlives_every_access_token(gateway: Stand, redis: Redis) -> None:
    session = await gateway.sign_in()
    await gateway.http.post("/v1/players/me:signOut")
    assert 900 < await redis.ttl(revocation_key(session["player"]["id"])) <= 960


async def test_forgetting_a_player_leaves_nothing_but_the_revocation(gateway: Stand, redis: Redis) -> None:
    session = await gateway.sign_in()
    player = session["player"]["id"]
    await gateway.http.post("/v1/matches", json={"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}]})
    assert (await gateway.http.delete("/v1/players/me")).json() == {}
    assert await redis.keys("*") == [revocation_key(player).encode()]
    assert (await gateway.http.get("/v1/players/me")).json()["reason"] == "TOKEN_REVOKED"
    assert (await refresh(gateway, session["refreshToken"])).status_code == 401
    assert (await gateway.http.get(f"/v1/players/{player}")).status_code == 404


async def guest(gateway: Stand, name: str) -> tuple[str, dict[str, str]]:
    """Another player's id and headers."""
    session = (await gateway.http.post("/v1/players", json={"name": name})).json()
    return session["player"]["id"], {"Authorization": f"Bearer {session['accessToken']}"}


async def test_nobody_is_matched_with_a_player_who_was_deleted(gateway: Stand, redis: Redis) -> None:
    _, ann = await guest(gateway, "Ann")
    bob_id, bob = await guest(gateway, "Bob")
    asked = {"game": "night_clan", "seats": {"min": 2, "max": 2}, "botsAfterSeconds": -1}
    made = await gateway.http.post("/v1/tickets", json=asked, headers=bob)
    assert made.status_code == 201
    assert (await gateway.http.delete("/v1/players/me", headers=bob)).status_code == 200
    ticket = (await gateway.http.post("/v1/tickets", json=asked, headers=ann)).json()["id"]
    waited = (await gateway.http.get(f"/v1/tickets/{ticket}?wait=1s", headers=ann)).json()
    assert waited["status"] == "WAITING"
    assert gateway.service.calls("CreateMatch") == []
    assert [key for key in await redis.keys("*") if bob_id.encode() in key] == [revocation_key(bob_id).encode()]


async def test_a_deleted_player_is_in_no_open_room_any_more_and_another_hosts_it(gateway: Stand, redis: Redis) -> None:
    ann_id, ann = await guest(gateway, "Ann")
    bob_id, bob = await guest(gateway, "Bob")
    hosted, joined, alone, started = [
        (await gateway.http.post("/v1/rooms", json={"game": "night_clan"}, headers=by)).json()["code"] for by in (bob, ann, bob, bob)
    ]
    for code, by, verb in (
        (hosted, ann, "join"),
        (hosted, ann, "ready"),
        (joined, bob, "join"),
        (started, ann, "join"),
        (started, ann, "ready"),
        (started, bob, "start"),
    ):
        assert (await gateway.http.post(f"/v1/rooms/{code}:{verb}", headers=by)).status_code == 200

    assert (await gateway.http.delete("/v1/players/me", headers=bob)).status_code == 200
    for code in (hosted, joined):
        room = (await gateway.http.get(f"/v1/rooms/{code}", headers=ann)).json()
        assert (room["host"], [member["player"] for member in room["members"]]) == (ann_id, [ann_id])
    assert (await gateway.http.get(f"/v1/rooms/{alone}", headers=ann)).status_code == 404
    room = (await gateway.http.get(f"/v1/rooms/{started}", headers=ann)).json()
    assert (room["host"], len(room["members"])) == (bob_id, 2)
    assert [key for key in await redis.keys("*") if bob_id.encode() in key] == [revocation_key(bob_id).encode()]
    assert (await gateway.http.post(f"/v1/rooms/{hosted}:addBot", headers=ann)).status_code == 200
    assert (await gateway.http.post(f"/v1/rooms/{hosted}:start", headers=ann)).json()["status"] == "STARTED"


async def test_a_party_does_not_wait_for_a_player_who_was_deleted(gateway: Stand) -> None:
    _, ann = await guest(gateway, "Ann")
    _, bob = await guest(gateway, "Bob")
    code = (await gateway.http.post("/v1/rooms", json={"game": "night_clan"}, headers=ann)).json()["code"]
    for verb in ("join", "ready"):
        assert (await gateway.http.post(f"/v1/rooms/{code}:{verb}", headers=bob)).status_code == 200
    asked = {"game": "night_clan", "party": code, "seats": {"min": 3}, "botsAfterSeconds": -1}
    ticket = (await gateway.http.post("/v1/tickets", json=asked, headers=ann)).json()["id"]
    assert (await gateway.http.delete("/v1/players/me", headers=bob)).status_code == 200
    assert (await gateway.http.get(f"/v1/tickets/{ticket}", headers=ann)).json()["status"] == "CANCELLED"
    room = (await gateway.http.get(f"/v1/rooms/{code}", headers=ann)).json()
    assert (room["ticketId"], [member["name"] for member in room["members"]]) == ("", ["Ann"])


async def test_a_deletion_that_stopped_half_way_is_gone_on_with_by_asking_again(gateway: Stand, redis: Redis) -> None:
    bob_id, bob = await guest(gateway, "Bob")
    code = (await gateway.http.post("/v1/rooms", json={"game": "night_clan"}, headers=bob)).json()["code"]
    # As if another kind of key stood where its last step writes.
    await redis.hset(revocation_key(bob_id), "in", "the way")
    assert not (await gateway.http.delete("/v1/players/me", headers=bob)).is_success
    await redis.delete(revocation_key(bob_id))
    assert (await gateway.http.delete("/v1/players/me", headers=bob)).status_code == 200
    assert (await gateway.http.get("/v1/players/me", headers=bob)).json()["reason"] == "TOKEN_REVOKED"
    _, ann = await guest(gateway, "Ann")
    assert (await gateway.http.get(f"/v1/rooms/{code}", headers=ann)).status_code == 404


async def test_a_match_that_is_being_made_is_made_though_one_of_its_players_is_deleted(gateway: Stand) -> None:
    _, ann = await guest(gateway, "Ann")
    bob_id, bob = await guest(gateway, "Bob")
    create, begun, go_on = gateway.service.verbs["CreateMatch"], asyncio.Event(), asyncio.Event()

    async def slow(request: Any, context: Context) -> Any:
        begun.set()
        await go_on.wait()
        return await create(request, context)

    gateway.service.verbs["CreateMatch"] = slow
    asked = {"game": "night_clan", "seats": {"min": 2, "max": 2}, "botsAfterSeconds": -1}
    ticket, _ = [(await gateway.http.post("/v1/tickets", json=asked, headers=each)).json()["id"] for each in (ann, bob)]
    async with asyncio.timeout(10):
        await begun.wait()
    assert (await gateway.http.delete("/v1/players/me", headers=bob)).status_code == 200
    go_on.set()
    matched = (await gateway.http.get(f"/v1/tickets/{ticket}?wait=10s", headers=ann)).json()
    if matched["status"] == "FORMING":
        matched = (await gateway.http.get(f"/v1/tickets/{ticket}?wait=10s", headers=ann)).json()
    assert matched["status"] == "MATCHED"
    (made,) = gateway.service.matches
    assert matched["matchId"] == made
    assert bob_id in {seat.player for seat in gateway.service.calls("CreateMatch")[0].seats}


async def test_who_signs_out_stays_in_their_rooms(gateway: Stand) -> None:
    bob_id, bob = await guest(gateway, "Bob")
    _, ann = await guest(gateway, "Ann")
    code = (await gateway.http.post("/v1/rooms", json={"game": "night_clan"}, headers=bob)).json()["code"]
    assert (await gateway.http.post("/v1/players/me:signOut", headers=bob)).status_code == 200
    assert (await gateway.http.get(f"/v1/rooms/{code}", headers=ann)).json()["host"] == bob_id


async def test_every_key_of_a_player_expires(gateway: Stand, redis: Redis) -> None:
    session = await gateway.sign_in()
    await refresh(gateway, session["refreshToken"], **{"Idempotency-Key": "k"})
    await gateway.http.post("/v1/matches", json={"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}]})
    await gateway.http.patch("/v1/players/me", json={"name": "Bea"})
    await gateway.http.post("/v1/players/me:signOut")
    keys = await redis.keys("*")
    assert len(keys) == 6
    for key in keys:
        # Whoever is forgotten is forgotten with their profile; who was seen is known for longer.
        assert 0 < await redis.ttl(key) <= (180 if b"{guests/" in key else 90) * 86_400, key


async def test_redis_holds_no_token(gateway: Stand, redis: Redis) -> None:
    key = str(uuid.uuid4())
    response = await gateway.http.post("/v1/players", json={"name": "Ann"}, headers={"Idempotency-Key": key})
    session = response.json()
    await refresh(gateway, session["refreshToken"], **{"Idempotency-Key": key})
    held = b""
    for name in await redis.keys("*"):
        held += await redis.dump(name) or b""
    for secret in (session["accessToken"], session["refreshToken"], session["refreshToken"].partition(".")[2], key):
        assert secret.encode() not in held


@pytest.mark.scenario(8)
@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer a.b.c", "Bearer \x7f", "Bearer " + "a" * 9000, "bearer é"]
)
async def test_a_token_that_is_none_is_401(gateway: Stand, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization.encode()}
    for method, path in [("GET", "/v1/players/me"), ("GET", "/v1/matches/night_clan-abcdefgh"), ("POST", "/v1/matches")]:
        response = await gateway.http.request(method, path, headers=headers)  # type: ignore[arg-type]
        if (
            path.endswith("abcdefgh")
            and authorization
            and len(authorization) < 4096
            and authorization.isprintable()
            and authorization.isascii()
        ):
            continue  # for the game's service to judge
        assert response.status_code == 401, (path, authorization)
        assert response.json()["reason"] in ("TOKEN_MISSING", "TOKEN_INVALID")


@pytest.mark.scenario(8)
async def test_expired_foreign_and_host_tokens_are_refused(gateway: Stand) -> None:
    player = (await gateway.sign_in())["player"]["id"]
    for token, status, reason in [
        (gateway.keys.token(player, seconds=-1), 401, "TOKEN_EXPIRED"),
        (gateway.keys.token(player, scope="host"), 403, "SCOPE_MISSING"),
        (jwt.encode({"sub": player, "gen": 9, "scope": "play", "exp": 1 << 33}, "k" * 32, "HS256", {"kid": "x"}), 401, "TOKEN_INVALID"),
    ]:
        gateway.http.headers["Authorization"] = f"Bearer {token}"
        response = await gateway.http.get("/v1/players/me")
        assert (response.status_code, response.json()["reason"]) == (status, reason)
