"""Matches over REST, with a game service that answers as it is told."""

from __future__ import annotations

import asyncio
import base64
import time
from typing import Any

import jwt
import pytest
from redis.asyncio import Redis

from gloaming.night_clan.v1 import night_clan_pb2
from services.kit.errors import Forbidden, Raced, Refused, Throttled, Unavailable, Unreadable
from tests.gateway.stand import MATCH_ID, MOVE, Context, Stand, match, refuse

PATH = f"/v1/matches/{MATCH_ID}"
SEATS = [{"player": "me"}, {"bot": "STANDARD"}]


async def create(gateway: Stand, **body: Any) -> Any:
    return await gateway.http.post("/v1/matches", json={"game": "night_clan", "seats": SEATS, **body})


async def answering(gateway: Stand, verb: str, answer: Any) -> None:
    async def respond(request: Any, context: Context) -> Any:
        return answer(request) if callable(answer) else answer

    gateway.service.verbs[verb] = respond


async def test_a_match_is_made_for_the_caller_and_shown_to_them(gateway: Stand) -> None:
    player = (await gateway.sign_in("Ann"))["player"]["id"]
    response = await create(gateway, options={"variant": "DAY"}, settings={"moveSeconds": 0}, order="AS_LISTED")
    assert response.status_code == 201
    made = response.json()
    assert response.headers["location"] == f"/v1/matches/{made['id']}"
    assert made["view"]["hand"] == ["TROLL"]
    (asked,) = gateway.service.calls("CreateMatch")
    assert asked.match_id == made["id"]
    assert made["id"].startswith("night_clan-")
    assert len(made["id"]) == len("night_clan-") + 20
    assert [(seat.player, seat.name, seat.bot) for seat in asked.seats] == [(player, "Ann", 0), ("", "", 1)]
    assert asked.options.variant == night_clan_pb2.Options.DAY
    assert asked.settings.HasField("move_seconds")
    assert asked.order == 2


async def test_making_a_match_takes_the_gateways_own_token_and_reading_it_the_callers(gateway: Stand) -> None:
    session = await gateway.sign_in("Ann")
    await create(gateway)
    tokens = {verb: authorization.removeprefix("Bearer ") for verb, _, authorization in gateway.service.asked}
    assert jwt.decode(tokens["CreateMatch"], options={"verify_signature": False})["scope"] == "host relay"
    assert tokens["GetMatch"] == session["accessToken"]


async def test_a_seat_has_the_name_that_its_player_has_now(gateway: Stand) -> None:
    await gateway.sign_in("Ann")
    await gateway.http.patch("/v1/players/me", json={"name": "Bea"})
    await create(gateway)
    assert gateway.service.calls("CreateMatch")[0].seats[0].name == "Bea"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "game"),
        ({"game": "chess"}, "game"),
        ({"game": 1}, "game"),
        ({"game": None}, "game"),
        ({"game": "night_clan"}, "seats"),
        ({"game": "night_clan", "seats": []}, "seats"),
        ({"game": "night_clan", "seats": [{"player": "me"}]}, "seats"),
        ({"game": "night_clan", "seats": [{"player": "me"}] + [{"bot": "STANDARD"}] * 4}, "seats"),
        ({"game": "night_clan", "seats": [{"bot": "STANDARD"}] * 2}, "seats"),
        ({"game": "night_clan", "seats": [{"player": "me"}] * 2}, "seats"),
        ({"game": "night_clan", "seats": [{"player": "me"}, {"player": "you"}]}, "seats[1].player"),
        ({"game": "night_clan", "seats": [{"player": "me"}, {}]}, "seats[1]"),
        ({"game": "night_clan", "seats": [{"player": "me", "name": "x"}, {"bot": "STANDARD"}]}, "seats[0].name"),
        ({"game": "night_clan", "seats": SEATS, "matchId": "night_clan-aaaaaaaa"}, "matchId"),
        ({"game": "night_clan", "seats": SEATS, "options": {"variant": "DUSK"}}, "options.variant"),
        ({"game": "night_clan", "seats": SEATS, "order": "RANDOM"}, "order"),
    ],
)
async def test_a_match_that_cannot_be_read_is_400_and_no_service_is_asked(gateway: Stand, body: dict[str, Any], field: str) -> None:
    await gateway.sign_in()
    response = await gateway.http.post("/v1/matches", json=body)
    assert response.status_code == 400
    assert response.json()["violations"][0]["field"] == field
    assert gateway.service.asked == []
    assert (await gateway.http.get("/v1/players/me/matches")).json()["matches"] == []


@pytest.mark.parametrize(
    "match_id",
    [
        "x",
        "night_clan",
        "night_clan-",
        "night_clan-abc",
        "night_clan-ABCDEFGH",
        "chess-abcdefgh",
        "night_clan-" + "a" * 41,
        "night_clan-abcdefg%00",
        "-abcdefgh",
    ],
)
async def test_a_match_id_that_is_none_is_404(gateway: Stand, match_id: str) -> None:
    await gateway.sign_in()
    for method, path in [("GET", ""), ("GET", "/moves"), ("POST", "/moves"), ("GET", "/events"), ("GET", "/record"), ("POST", ":resign")]:
        response = await gateway.http.request(method, f"/v1/matches/{match_id}{path}", json={} if method == "POST" else None)
        assert (response.status_code, response.json()["reason"]) == (404, "MATCH_NOT_FOUND"), path
    assert gateway.service.asked == []


async def test_an_unchanged_match_is_304_whatever_the_time(gateway: Stand) -> None:
    await gateway.sign_in()
    gateway.service.matches[MATCH_ID] = match()
    first = await gateway.http.get(PATH)
    assert first.headers["vary"] == "Authorization"
    assert first.headers["cache-control"] == "private, no-cache"
    assert first.headers["etag"].startswith('W/"')
    assert first.json()["serverTime"]
    gateway.service.matches[MATCH_ID].server_time.seconds += 5
    for condition in (first.headers["etag"], first.headers["etag"].removeprefix("W/"), f'"x", {first.headers["etag"]}', "*"):
        again = await gateway.http.get(PATH, headers={"If-None-Match": condition})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert again.headers["vary"] == "Authorization"
    gateway.service.matches[MATCH_ID].version += 1
    assert (await gateway.http.get(PATH, headers={"If-None-Match": first.headers["etag"]})).status_code == 200


async def test_viewers_who_see_different_things_get_different_etags(gateway: Stand) -> None:
    await gateway.sign_in()
    gateway.service.matches[MATCH_ID] = match()
    mine = (await gateway.http.get(PATH)).headers["etag"]
    gateway.service.matches[MATCH_ID].view.hand[0] = night_clan_pb2.Card.RICHES
    assert (await gateway.http.get(PATH)).headers["etag"] != mine


async def test_a_move_goes_to_the_service_with_its_key_and_version(gateway: Stand) -> None:
    session = await gateway.sign_in()
    await answering(gateway, "SubmitMove", night_clan_pb2.SubmitMoveResponse(match_id=MATCH_ID, version=8, cursor="c"))
    headers = {"Idempotency-Key": "once", "If-Match": '"7"'}
    response = await gateway.http.post(f"{PATH}/moves", json={"move": MOVE}, headers=headers)
    assert response.json() == {"matchId": MATCH_ID, "version": 8, "cursor": "c", "events": []}
    ((verb, asked, authorization),) = gateway.service.asked
    assert (verb, asked.match_id, asked.request_id, asked.expected_version) == ("SubmitMove", MATCH_ID, "once", 7)
    assert asked.move.play.location == night_clan_pb2.Location.CHURCH
    assert authorization == f"Bearer {session['accessToken']}"


async def test_a_move_without_a_key_gets_one_of_its_own(gateway: Stand) -> None:
    await gateway.sign_in()
    await answering(gateway, "SubmitMove", night_clan_pb2.SubmitMoveResponse())
    await answering(gateway, "Resign", night_clan_pb2.ResignResponse())
    for _ in range(2):
        assert (await gateway.http.post(f"{PATH}/moves", json={"move": MOVE}, headers={"If-Match": "*"})).status_code == 200
        assert (await gateway.http.post(f"{PATH}:resign")).status_code == 200
    ids = [asked.request_id for _, asked, _ in gateway.service.asked]
    assert len(set(ids)) == 4
    assert all(16 <= len(each) <= 128 for each in ids)
    assert not any(asked.HasField("expected_version") for asked in gateway.service.calls("SubmitMove"))


@pytest.mark.parametrize("condition", ["7", '"x"', "", '""', 'W/"7"', '"7", "8"', '"-1"', '"2147483648"', '"99999999999"', '"٧"'])
async def test_an_if_match_that_is_no_version_is_400(gateway: Stand, condition: str) -> None:
    await gateway.sign_in()
    response = await gateway.http.post(f"{PATH}/moves", json={"move": MOVE}, headers={b"If-Match": condition.encode()})
    assert (response.status_code, response.json()["violations"][0]["field"]) == (400, "If-Match")


@pytest.mark.parametrize(
    "body", [{"move": MOVE, "matchId": MATCH_ID}, {"move": MOVE, "requestId": "x"}, {"move": MOVE, "expectedVersion": 1}]
)
async def test_what_path_and_headers_say_is_not_taken_from_the_body(gateway: Stand, body: dict[str, Any]) -> None:
    await gateway.sign_in()
    response = await gateway.http.post(f"{PATH}/moves", json=body)
    assert (response.status_code, response.json()["violations"][0]["description"]) == (400, "is not given in the body")


@pytest.mark.parametrize(
    ("error", "status", "headers"),
    [
        (Unreadable("move.play.card", "must be a card"), 400, {}),
        (Forbidden("NOT_YOUR_SEAT", "no seat of yours"), 403, {}),
        (Raced("RACED", "others were first"), 409, {}),
        (Raced("VERSION_MISMATCH", "the match is at version 8"), 412, {}),
        (Refused("LOCATION_FULL", "the Church is full"), 422, {}),
        (Throttled("TOO_MANY", "slow down", retry_after=2.2), 429, {"retry-after": "3"}),
        (Unavailable("STORAGE_UNAVAILABLE", "try again", retry_after=0.5), 503, {"retry-after": "1"}),
    ],
)
@pytest.mark.scenario(2)
async def test_a_refusal_keeps_its_reason(gateway: Stand, error: Any, status: int, headers: dict[str, str]) -> None:
    await gateway.sign_in()

    async def refused(request: Any, context: Context) -> Any:
        await refuse(context, error)

    gateway.service.verbs["SubmitMove"] = refused
    response = await gateway.http.post(f"{PATH}/moves", json={"move": MOVE})
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem == {
        "type": f"urn:gloaming:problem:{error.reason}",
        "title": error.reason.replace("_", " ").capitalize(),
        "status": status,
        "detail": error.detail,
        "reason": error.reason,
        "violations": [{"field": error.field, "description": error.description}] if isinstance(error, Unreadable) else [],
    }
    assert response.headers.items() >= headers.items()


@pytest.mark.parametrize(
    ("query", "after", "size"),
    [("", "", 0), ("?after=AAAAAQABBDe4y97K", "AAAAAQABBDe4y97K", 0), ("?pageSize=5", "", 5), ("?pageSize=2147483647", "", 2**31 - 1)],
)
async def test_a_page_of_events_is_asked_for_as_the_query_says(gateway: Stand, query: str, after: str, size: int) -> None:
    await gateway.sign_in()
    await answering(gateway, "ListEvents", night_clan_pb2.ListEventsResponse(next_cursor="c"))
    assert (await gateway.http.get(f"{PATH}/events{query}")).json() == {"events": [], "nextCursor": "c", "more": False}
    (asked,) = gateway.service.calls("ListEvents")
    assert (asked.after_cursor, asked.page_size) == (after, size)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("after=x", "after"),
        ("after=%00", "after"),
        ("after=%ed%a0%80", "after"),
        ("after=" + "A" * 5000, "after"),
        ("after=a&after=b", "after"),
        ("pageSize=-1", "pageSize"),
        ("pageSize=", "pageSize"),
        ("pageSize=1.0", "pageSize"),
        ("pageSize=2147483648", "pageSize"),
        ("pageSize=" + "9" * 5000, "pageSize"),
        ("pageSize=%D9%A7", "pageSize"),
        ("pageSize=1&pageSize=2", "pageSize"),
    ],
)
async def test_a_query_that_cannot_be_read_is_400(gateway: Stand, query: str, field: str) -> None:
    await gateway.sign_in()
    response = await gateway.http.get(f"{PATH}/events?{query}")
    assert (response.status_code, response.json()["violations"][0]["field"]) == (400, field)


async def test_moves_and_records_come_from_the_service(gateway: Stand) -> None:
    await gateway.sign_in()
    await answering(
        gateway, "ListMoves", night_clan_pb2.ListMovesResponse(match_id=MATCH_ID, version=7, moves=[night_clan_pb2.Move(keep={})])
    )
    await answering(gateway, "GetRecord", night_clan_pb2.Record(match_id=MATCH_ID, seed="aa"))
    assert (await gateway.http.get(f"{PATH}/moves")).json() == {"matchId": MATCH_ID, "version": 7, "moves": [{"keep": {}}]}
    assert (await gateway.http.get(f"{PATH}/record")).json()["seed"] == "aa"


async def test_my_matches_are_listed_newest_first_a_page_at_a_time(gateway: Stand) -> None:
    await gateway.sign_in()
    made = [(await create(gateway)).json()["id"] for _ in range(7)]
    seen, token, pages = [], "", 0
    while True:
        page = (await gateway.http.get("/v1/players/me/matches", params={"pageSize": 3, "pageToken": token})).json()
        seen += [each["id"] for each in page["matches"]]
        pages += 1
        token = page["nextPageToken"]
        if not token:
            break
    assert pages == 3
    assert sorted(seen) == sorted(made)
    assert seen[0] == made[-1]
    assert (await gateway.http.get("/v1/players/me/matches")).json()["matches"][0] == {
        "id": made[-1],
        "game": "night_clan",
        "status": "PLAYING",
        "version": 1,
        "seats": [
            {"seat": 0, "player": "p", "name": "Ann", "bot": "KIND_UNSPECIFIED", "resigned": False, "standIn": False, "connected": False},
            {"seat": 1, "player": "", "name": "Bot", "bot": "STANDARD", "resigned": False, "standIn": False, "connected": False},
        ],
        "viewerSeat": 0,
        "toMove": [0],
    }


async def test_matches_of_one_millisecond_are_each_listed_once(gateway: Stand, redis: Redis) -> None:
    player = (await gateway.sign_in())["player"]["id"]
    ids = [f"night_clan-{letter * 8}" for letter in "abcdefgh"]
    for each in ids:
        gateway.service.matches[each] = match(each)
    await redis.zadd(f"gateway:{{{player}}}:matches", dict.fromkeys(ids[:6], 1700000000000) | {ids[6]: 1, ids[7]: 1_800_000_000_000})
    seen, token = [], ""
    for _ in range(8):
        page = (await gateway.http.get("/v1/players/me/matches", params={"pageSize": 1, "pageToken": token})).json()
        seen += [each["id"] for each in page["matches"]]
        token = page["nextPageToken"]
        # What marks the place may be gone by the time of the next page.
        await redis.zrem(f"gateway:{{{player}}}:matches", seen[-1])
    assert seen == [ids[7], *reversed(ids[:6]), ids[6]]
    assert token == ""


async def test_a_match_that_is_gone_drops_out_of_the_index_but_not_one_being_made(gateway: Stand, redis: Redis) -> None:
    player = (await gateway.sign_in())["player"]["id"]
    now = int(time.time() * 1000)
    key = f"gateway:{{{player}}}:matches"
    await redis.zadd(key, {"night_clan-gonegone": now - 120_000, "night_clan-beingmade": now})
    assert (await gateway.http.get("/v1/players/me/matches")).json() == {"matches": [], "nextPageToken": ""}
    assert await redis.zrange(key, 0, -1) == [b"night_clan-beingmade"]


@pytest.mark.parametrize(
    "token", ["x", "é", "%00", base64.b64encode(b"1.x").decode(), base64.urlsafe_b64encode(b"x.night_clan-abcdefgh").decode(), "A" * 9000]
)
async def test_a_page_token_of_nobody_is_400(gateway: Stand, token: str) -> None:
    await gateway.sign_in()
    response = await gateway.http.get("/v1/players/me/matches", params={"pageToken": token})
    assert (response.status_code, response.json()["violations"][0]["field"]) == (400, "pageToken")


async def test_a_player_has_at_most_a_thousand_matches_listed(gateway: Stand, redis: Redis) -> None:
    player = (await gateway.sign_in())["player"]["id"]
    key = f"gateway:{{{player}}}:matches"
    await redis.zadd(key, {f"night_clan-{n:08}": n for n in range(1000)})
    newest = (await create(gateway)).json()["id"]
    assert await redis.zcard(key) == 1000
    assert await redis.zscore(key, "night_clan-00000000") is None
    assert await redis.zscore(key, newest)


async def test_many_matches_can_be_made_at_once(gateway: Stand) -> None:
    await gateway.sign_in()
    answers = await asyncio.gather(*(create(gateway) for _ in range(30)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 30
