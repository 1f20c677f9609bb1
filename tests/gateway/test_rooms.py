"""Rooms: their rules by themselves, and over REST with one gateway and with two, and a game service that answers as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from gateway import room as rules
from gateway.answers import Answers
from gateway.host import Host
from gateway.news import News
from gateway.players import Players
from gateway.registry import GAMES
from gateway.room import OPEN, STARTED, STARTING, Room
from gateway.rooms import LETTERS, Rooms
from gateway.tokens import HostToken, Signer
from gateway.upstream import Services
from gloaming.gateway.v1 import gateway_pb2
from services.kit.errors import Error, Forbidden, NotFound, Raced, Refused, Unavailable, Unreadable
from services.kit.identity import Identity
from services.kit.storage import Storage
from tests.gateway.stand import Context, Stand, refuse, stand
from tests.harness import Keys, eventually

PLAYERS = ("ann", "bob", "cat", "dan", "eli")
STARTING_KEY = "gateway:{rooms}:starting"


class Guest:
    """A signed-in player, who comes to whichever gateway."""

    def __init__(self, session: dict[str, Any]) -> None:
        self.id: str = session["player"]["id"]
        self._headers = {"Authorization": f"Bearer {session['accessToken']}"}

    async def post(self, gateway: Stand, path: str, body: Any = None, **headers: str) -> httpx.Response:
        sent = self._headers | {name.replace("_", "-"): value for name, value in headers.items()}
        return await gateway.http.post(path, json=body, headers=sent)

    async def verb(self, gateway: Stand, code: str, verb: str, body: Any = None, **headers: str) -> httpx.Response:
        return await self.post(gateway, f"/v1/rooms/{code}:{verb}", body, **headers)

    async def done(self, gateway: Stand, code: str, verb: str, body: Any = None) -> dict[str, Any]:
        """A verb that is not refused."""
        response = await self.verb(gateway, code, verb, body)
        assert response.status_code == 200, response.text
        room: dict[str, Any] = response.json()
        return room

    async def open(self, gateway: Stand, **asked: Any) -> dict[str, Any]:
        response = await self.post(gateway, "/v1/rooms", {"game": "night_clan", **asked})
        assert response.status_code == 201, response.text
        room: dict[str, Any] = response.json()
        return room

    async def see(self, gateway: Stand, code: str) -> dict[str, Any]:
        response = await gateway.http.get(f"/v1/rooms/{code}", headers=self._headers)
        assert response.status_code == 200, response.text
        room: dict[str, Any] = response.json()
        return room


async def guest(gateway: Stand, name: str) -> Guest:
    response = await gateway.http.post("/v1/players", json={"name": name})
    return Guest(response.json())


async def guests(gateway: Stand, *names: str) -> list[Guest]:
    return [await guest(gateway, name) for name in names]


def names(room: dict[str, Any]) -> list[str]:
    return [member["name"] for member in room["members"]]


def reason(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["reason"]


@pytest.fixture
async def other(keys: Keys, redis_url: str, gateway: Stand) -> AsyncIterator[Stand]:
    """Another gateway beside the first, with the same Redis and the same service."""
    async with stand(keys, redis_url, services={"night_clan": f"127.0.0.1:{gateway.service.port}"}) as it:
        yield it


class Tickets:
    """Notes which tickets are cancelled; or refuses it. Those that were not live on until they are over."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.over: set[str] = set()
        self.refuses: Error | None = None

    async def cancel(self, ticket_id: str) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.cancelled.append(ticket_id)

    async def is_live(self, ticket_id: str) -> bool:
        return ticket_id not in self.over


@pytest.fixture
def tickets() -> Tickets:
    return Tickets()


@pytest.fixture
async def rooms(keys: Keys, redis_url: str, gateway: Stand, tickets: Tickets) -> AsyncIterator[Rooms]:
    """What other parts of a gateway use of its rooms."""
    storage, services, signer = Storage(redis_url), Services(gateway.settings.services, 5), Signer(keys.pem)
    answers = Answers(storage)
    players = Players(storage, Identity.from_file(keys.jwks, storage), signer, answers, access_seconds=900, refresh_seconds=900)
    host = Host(storage, services, HostToken(signer), index_seconds=900)
    async with services:
        yield Rooms(storage, services, players, answers, host, News(storage), seconds=7200, tickets=tickets)
    await storage.close()


# The rules by themselves.


def a_room(seats: int = 4, game: str = "night_clan") -> Room:
    return rules.opened("ABCDEF", "mark", gateway_pb2.CreateRoomRequest(game=game, seats=seats), "ann", "Ann")


_someone = st.sampled_from(PLAYERS)
_verbs = st.one_of(
    st.tuples(st.sampled_from(["join", "leave", "add_bot", "remove_bot", "start", "queue", "unqueue"]), _someone, st.sampled_from("abc")),
    st.tuples(st.just("kick"), _someone, _someone),
    st.tuples(st.just("say_ready"), _someone, st.booleans()),
    st.tuples(st.sampled_from(["started", "reopened"]), st.just(""), st.sampled_from("abc")),
)


def _do(room: Room, verb: str, who: str, what: Any) -> Room:
    match verb:
        case "join":
            return rules.join(room, who, who.title())
        case "leave":
            return rules.leave(room, who)
        case "kick":
            return rules.kick(room, who, what)
        case "add_bot":
            return rules.add_bot(room, who, what)
        case "remove_bot":
            return rules.remove_bot(room, who)
        case "say_ready":
            return rules.say_ready(room, who, what)
        case "start":
            return rules.start(room, who, what)
        case "started":
            return rules.started(room, what)
        case "reopened":
            return rules.reopened(room, what)
        case "unqueue":
            return rules.unqueued(room, what)
        case _:
            return rules.queued(room, what)


@given(st.sampled_from([2, 3, 4]), st.lists(_verbs, max_size=60))
@settings(max_examples=400, deadline=None)
def test_whatever_is_done_a_room_keeps_its_seats_its_host_and_nobody_twice(seats: int, verbs: list[tuple[str, str, Any]]) -> None:
    room = a_room(seats)
    out: set[str] = set()
    for verb, who, what in verbs:
        before = room
        with contextlib.suppress(Forbidden, Refused):
            room = _do(room, verb, who, what)
        if verb == "kick" and room is not before:
            out.add(what)
        assert room.version == before.version + (room is not before)
        assert (room == before) == (room is before)
        assert len(room.members) <= seats
        assert all(count == 1 for count in Counter(room.players).values())
        assert out == set(room.barred)
        assert not out & set(room.players)
        if not room.players:
            return  # it has ended
        assert room.host in room.players
        assert next(member for member in room.members if member.player == room.host).ready
        if before.host not in room.players:
            assert room.host == next(player for player in before.players if player in room.players)
        if room.members != before.members:
            assert not room.ticket_id
        if before.status == STARTING:
            assert room.members == before.members
        if room.status != OPEN:
            assert room.match_id
            assert len(room.players) <= len(before.players)
        assert before.status != STARTED or room.status == STARTED


def test_each_verb_may_be_done_twice_with_the_end_of_once() -> None:
    room = rules.join(rules.join(a_room(), "bob", "Bob"), "cat", "Cat")
    for verb, who, what in [
        ("join", "dan", ""),
        ("leave", "bob", ""),
        ("kick", "ann", "bob"),
        ("add_bot", "ann", "mark-1"),
        ("say_ready", "bob", True),
        ("queue", "", "ticket"),
    ]:
        once = _do(room, verb, who, what)
        assert once is not room
        assert _do(once, verb, who, what) is once, verb
    ready = rules.say_ready(rules.say_ready(room, "bob", True), "cat", True)
    once = rules.start(ready, "ann", "first")
    assert rules.start(once, "ann", "second") is once
    assert rules.start(once, "bob", "third") is once
    assert once.match_id == "first"


@pytest.mark.parametrize("game", GAMES)
def test_a_room_starts_with_the_fewest_and_with_the_most_that_its_game_takes(game: str) -> None:
    fewest, most = GAMES[game].min_seats, GAMES[game].max_seats
    room = a_room(most, game)
    while len(room.members) < fewest:
        with pytest.raises(Refused, match="TOO_FEW_MEMBERS"):
            rules.start(room, "ann", "m")
        room = rules.add_bot(room, "ann", f"mark-{len(room.members)}")
    assert rules.start(room, "ann", "m").status == STARTING
    while len(room.members) < most:
        room = rules.add_bot(room, "ann", f"mark-{len(room.members)}")
    assert rules.start(room, "ann", "m").status == STARTING
    with pytest.raises(Refused, match="ROOM_FULL"):
        rules.add_bot(room, "ann", "one more")


# Over REST.


async def test_a_room_is_opened_with_its_host_in_it(gateway: Stand) -> None:
    ann = await guest(gateway, "Ann")
    response = await ann.post(
        gateway, "/v1/rooms", {"game": "night_clan", "options": {"variant": "DAY"}, "settings": {"moveSeconds": 0}, "seats": 3}
    )
    room = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == f"/v1/rooms/{room['code']}"
    assert re.fullmatch(f"[{LETTERS}]{{6}}", room["code"])
    assert room.pop("expireTime")
    assert room == {
        "code": room["code"],
        "game": "night_clan",
        "options": {"variant": "DAY"},
        "settings": {"moveSeconds": 0},
        "seats": 3,
        "host": ann.id,
        "members": [{"player": ann.id, "name": "Ann", "bot": "KIND_UNSPECIFIED", "ready": True}],
        "status": "OPEN",
        "matchId": "",
        "ticketId": "",
        "version": 1,
    }


async def test_without_a_number_as_many_may_come_as_the_game_takes(gateway: Stand) -> None:
    ann = await guest(gateway, "Ann")
    for game in GAMES.values():
        assert (await ann.open(gateway, game=game.id))["seats"] == game.max_seats


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "game"),
        ({"game": "chess"}, "game"),
        ({"game": 1}, "game"),
        ({"options": {"variant": "DAY"}}, "game"),
        ({"game": "night_clan", "seats": 1}, "seats"),
        ({"game": "night_clan", "seats": 5}, "seats"),
        ({"game": "dark_is_the_night", "seats": 3}, "seats"),
        ({"game": "night_clan", "seats": "2"}, "seats"),
        ({"game": "night_clan", "options": {"variant": "DUSK"}}, "options.variant"),
        ({"game": "clans_and_glory", "options": {"variant": "DAY"}}, "options.variant"),
        ({"game": "night_clan", "settings": {"moveSeconds": -1}}, "settings.moveSeconds"),
        ({"game": "night_clan", "code": "ABCDEF"}, "code"),
    ],
)
async def test_a_room_that_cannot_be_read_is_400_and_not_opened(gateway: Stand, redis: Redis, body: dict[str, Any], field: str) -> None:
    ann = await guest(gateway, "Ann")
    response = await ann.post(gateway, "/v1/rooms", body)
    assert response.status_code == 400
    assert response.json()["violations"][0]["field"] == field
    assert await redis.keys("gateway:{room/*") == []


async def test_whoever_knows_the_code_may_look_before_joining_and_write_it_small(gateway: Stand) -> None:
    ann, bob = await guests(gateway, "Ann", "Bob")
    room = await ann.open(gateway)
    assert await bob.see(gateway, room["code"].lower()) == room
    assert names(await bob.done(gateway, room["code"].lower(), "join")) == ["Ann", "Bob"]


@pytest.mark.parametrize("code", ["ABCDEF", "ABCDE", "ABCDEFG", "ABC1EF", "ABCDEI", "%00", "é" * 6, "ß" * 3, "A" * 5000])
async def test_a_code_of_no_room_is_404(gateway: Stand, code: str) -> None:
    await gateway.sign_in()
    assert reason(await gateway.http.get(f"/v1/rooms/{code}")) == (404, "ROOM_NOT_FOUND")
    for verb in ("join", "leave", "addBot", "removeBot", "ready", "start"):
        assert reason(await gateway.http.post(f"/v1/rooms/{code}:{verb}")) == (404, "ROOM_NOT_FOUND")
    assert reason(await gateway.http.post(f"/v1/rooms/{code}:kick", json={"player": "p"})) == (404, "ROOM_NOT_FOUND")


async def test_without_a_token_nothing_is_told_or_done(gateway: Stand) -> None:
    code = (await (await guest(gateway, "Ann")).open(gateway))["code"]
    assert reason(await gateway.http.get(f"/v1/rooms/{code}")) == (401, "TOKEN_MISSING")
    for verb in ("join", "leave", "kick", "addBot", "removeBot", "ready", "start"):
        assert reason(await gateway.http.post(f"/v1/rooms/{code}:{verb}")) == (401, "TOKEN_MISSING")
    assert reason(await gateway.http.post("/v1/rooms", json={"game": "night_clan"})) == (401, "TOKEN_MISSING")


async def test_members_come_and_get_ready_and_the_host_has_their_match_made(gateway: Stand) -> None:
    ann, bob, cat = await guests(gateway, "Ann", "Bob", "Cat")
    room = await ann.open(gateway, options={"variant": "DAY"}, settings={"moveSeconds": 30})
    code = room["code"]
    await bob.done(gateway, code, "join")
    await ann.done(gateway, code, "addBot")
    await cat.done(gateway, code, "join")
    await bob.done(gateway, code, "ready")
    assert reason(await ann.verb(gateway, code, "start")) == (422, "NOT_READY")
    await cat.done(gateway, code, "ready", {"ready": True})
    room = await ann.done(gateway, code, "start")
    assert (room["status"], room["matchId"].partition("-")[0]) == ("STARTED", "night_clan")
    (asked,) = gateway.service.calls("CreateMatch")
    assert asked.match_id == room["matchId"]
    seats = [(seat.player, seat.bot, seat.name) for seat in asked.seats]
    assert seats == [(ann.id, 0, "Ann"), (bob.id, 0, "Bob"), ("", 1, ""), (cat.id, 0, "Cat")]
    assert (asked.options.variant, asked.settings.move_seconds, asked.order) == (2, 30, 1)
    assert await cat.see(gateway, code) == room
    for player in (ann, bob, cat):
        assert (await player.done(gateway, code, "start"))["matchId"] == room["matchId"]
    assert len(gateway.service.calls("CreateMatch")) == 1


async def test_who_is_ready_stays_so_whoever_comes_or_goes(gateway: Stand) -> None:
    ann, bob, cat = await guests(gateway, "Ann", "Bob", "Cat")
    code = (await ann.open(gateway))["code"]
    await bob.done(gateway, code, "join")
    await bob.done(gateway, code, "ready")
    room = await cat.done(gateway, code, "join")
    assert [member["ready"] for member in room["members"]] == [True, True, False]
    room = await bob.done(gateway, code, "ready", {"ready": False})
    assert [member["ready"] for member in room["members"]] == [True, False, False]
    # Bob is the next host, and the host is always ready.
    room = await ann.done(gateway, code, "leave")
    assert (room["host"], [member["ready"] for member in room["members"]]) == (bob.id, [True, False])
    assert reason(await bob.verb(gateway, code, "ready", {"ready": False})) == (422, "HOST_IS_READY")


async def test_what_only_members_or_the_host_may_do_is_refused_to_others_and_changes_nothing(gateway: Stand) -> None:
    ann, bob, cat = await guests(gateway, "Ann", "Bob", "Cat")
    code = (await ann.open(gateway))["code"]
    await bob.done(gateway, code, "join")
    before = await ann.see(gateway, code)
    for verb in ("kick", "addBot", "removeBot", "ready", "start"):
        body = {"player": bob.id} if verb == "kick" else None
        assert reason(await cat.verb(gateway, code, verb, body)) == (403, "NOT_A_MEMBER")
        if verb != "ready":
            assert reason(await bob.verb(gateway, code, verb, body)) == (403, "NOT_THE_HOST")
    assert reason(await ann.verb(gateway, code, "kick", {"player": ann.id})) == (422, "KICKS_ONESELF")
    assert reason(await ann.verb(gateway, code, "kick", {"player": cat.id})) == (422, "NO_SUCH_MEMBER")
    assert reason(await ann.verb(gateway, code, "removeBot")) == (422, "NO_BOT")
    for nobody in ({}, {"player": ""}, {"player": 1}, {"name": "Bob"}):
        assert (await ann.verb(gateway, code, "kick", nobody)).status_code == 400
    strange: list[Any] = [{"ready": "yes"}, {"ready": None}, {"set": True}, []]
    for nonsense in strange:
        assert (await bob.verb(gateway, code, "ready", nonsense)).status_code == 400
    assert (await bob.verb(gateway, code, "leave", {"player": ann.id})).status_code == 400
    assert await ann.see(gateway, code) == before
    assert (await cat.done(gateway, code, "leave")) == before


async def test_whom_the_host_sends_out_does_not_come_back(gateway: Stand) -> None:
    ann, bob, cat = await guests(gateway, "Ann", "Bob", "Cat")
    code = (await ann.open(gateway))["code"]
    await bob.done(gateway, code, "join")
    assert names(await ann.done(gateway, code, "kick", {"player": bob.id})) == ["Ann"]
    assert reason(await bob.verb(gateway, code, "join")) == (403, "KICKED")
    assert names(await ann.done(gateway, code, "kick", {"player": bob.id})) == ["Ann"]
    # Nor when there is another host.
    await cat.done(gateway, code, "join")
    await ann.done(gateway, code, "leave")
    assert reason(await bob.verb(gateway, code, "join")) == (403, "KICKED")


async def test_a_room_without_players_ends_whatever_bots_are_in_it(gateway: Stand, redis: Redis) -> None:
    ann, bob = await guests(gateway, "Ann", "Bob")
    code = (await ann.open(gateway))["code"]
    await ann.done(gateway, code, "addBot")
    room = await ann.done(gateway, code, "leave")
    assert (room["host"], names(room)) == ("", ["Bot"])
    assert reason(await bob.verb(gateway, code, "join")) == (404, "ROOM_NOT_FOUND")
    assert reason(await ann.verb(gateway, code, "leave")) == (404, "ROOM_NOT_FOUND")
    assert await redis.keys("gateway:{room/*") == []


async def test_bots_come_and_go_and_take_seats(gateway: Stand) -> None:
    ann, bob = await guests(gateway, "Ann", "Bob")
    code = (await ann.open(gateway, seats=3))["code"]
    room = await ann.done(gateway, code, "addBot")
    assert room["members"][1] == {"player": "", "name": "Bot", "bot": "STANDARD", "ready": True}
    await ann.done(gateway, code, "addBot")
    assert reason(await ann.verb(gateway, code, "addBot")) == (422, "ROOM_FULL")
    assert reason(await bob.verb(gateway, code, "join")) == (422, "ROOM_FULL")
    await ann.done(gateway, code, "removeBot")
    assert names(await bob.done(gateway, code, "join")) == ["Ann", "Bot", "Bob"]


async def test_once_it_has_started_nothing_but_going_is_possible(gateway: Stand) -> None:
    ann, bob, cat = await guests(gateway, "Ann", "Bob", "Cat")
    code = (await ann.open(gateway))["code"]
    for verb in ("join", "ready"):
        await bob.done(gateway, code, verb)
    room = await ann.done(gateway, code, "start")
    assert reason(await cat.verb(gateway, code, "join")) == (422, "ROOM_STARTED")
    assert reason(await ann.verb(gateway, code, "kick", {"player": bob.id})) == (422, "ROOM_STARTED")
    assert reason(await ann.verb(gateway, code, "addBot")) == (422, "ROOM_STARTED")
    assert reason(await ann.verb(gateway, code, "removeBot")) == (422, "ROOM_STARTED")
    assert reason(await bob.verb(gateway, code, "ready", {"ready": False})) == (422, "ROOM_STARTED")
    assert await bob.done(gateway, code, "join") == room
    assert names(await ann.done(gateway, code, "leave")) == ["Bob"]
    assert (await bob.see(gateway, code))["matchId"] == room["matchId"]


@pytest.mark.scenario(9)
async def test_of_fifty_who_race_for_the_last_seat_one_gets_it(gateway: Stand, other: Stand) -> None:
    ann, *crowd = await guests(gateway, "Ann", *(f"Guest {n}" for n in range(50)))
    code = (await ann.open(gateway, seats=3))["code"]
    await ann.done(gateway, code, "addBot")
    answers = await asyncio.gather(*(each.verb((gateway, other)[n % 2], code, "join") for n, each in enumerate(crowd)))
    got = [each for each, answer in zip(crowd, answers, strict=True) if answer.status_code == 200]
    assert len(got) == 1
    assert {reason(answer) for answer in answers if answer.status_code != 200} == {(422, "ROOM_FULL")}
    assert [member["player"] for member in (await ann.see(gateway, code))["members"]] == [ann.id, "", got[0].id]


@pytest.mark.scenario(9)
async def test_a_leavers_seat_is_taken_by_one_of_those_who_race_for_it(gateway: Stand, other: Stand) -> None:
    ann, bob, *crowd = await guests(gateway, "Ann", "Bob", *(f"Guest {n}" for n in range(20)))
    code = (await ann.open(gateway, seats=2))["code"]
    await bob.done(gateway, code, "join")
    left, *answers = await asyncio.gather(
        bob.verb(gateway, code, "leave"), *(each.verb((gateway, other)[n % 2], code, "join") for n, each in enumerate(crowd))
    )
    assert left.status_code == 200
    answers += [await each.verb(gateway, code, "join") for each in crowd]
    players = {member["player"] for member in (await ann.see(gateway, code))["members"]}
    assert len(players) == 2
    assert {each.id for each, answer in zip(crowd * 2, answers, strict=True) if answer.status_code == 200} == players - {ann.id}


async def test_many_changes_at_once_through_two_gateways_are_all_made(gateway: Stand, other: Stand) -> None:
    ann, bob, cat, dan = await guests(gateway, "Ann", "Bob", "Cat", "Dan")
    code = (await ann.open(gateway))["code"]
    for each in (bob, cat, dan):
        await each.done(gateway, code, "join")
    at_first = (await ann.see(gateway, code))["version"]
    turns = range(10)

    async def change_their_mind(each: Guest, gateway: Stand) -> None:
        for n in turns:
            await each.done(gateway, code, "ready", {"ready": n % 2 == 0})

    await asyncio.gather(change_their_mind(bob, gateway), change_their_mind(cat, other), change_their_mind(dan, other))
    assert (await ann.see(other, code))["version"] == at_first + 3 * len(turns)


async def test_a_room_that_two_gateways_start_at_once_has_one_match(gateway: Stand, other: Stand) -> None:
    ann, bob = await guests(gateway, "Ann", "Bob")
    code = (await ann.open(gateway))["code"]
    for verb in ("join", "ready"):
        await bob.done(gateway, code, verb)
    await ann.done(gateway, code, "addBot")
    answers = await asyncio.gather(*(ann.verb((gateway, other)[n % 2], code, "start") for n in range(10)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["matchId"] for answer in answers}) == 1
    assert len(gateway.service.matches) == 1


async def test_a_start_that_its_gateway_left_is_gone_on_with_by_another(gateway: Stand, other: Stand, redis: Redis) -> None:
    ann, bob = await guests(gateway, "Ann", "Bob")
    code = (await ann.open(gateway))["code"]
    for verb in ("join", "ready"):
        await bob.done(gateway, code, verb)
    create = gateway.service.verbs["CreateMatch"]

    async def away(request: Any, context: Context) -> Any:
        await refuse(context, Unavailable("STORAGE_UNAVAILABLE", "try again"))

    gateway.service.verbs["CreateMatch"] = away
    assert (await ann.verb(gateway, code, "start")).status_code == 503
    room = await bob.see(gateway, code)
    assert (room["status"], room["matchId"]) == ("STARTING", "")
    for player in (ann, bob):
        assert reason(await player.verb(gateway, code, "leave")) == (422, "ROOM_STARTED")
    gateway.service.verbs["CreateMatch"] = create
    (minted,) = {request.match_id for request in gateway.service.calls("CreateMatch")}
    # As if the lease had passed.
    assert await redis.zadd(STARTING_KEY, {code: 1}, xx=True, ch=True) == 1

    async def is_started() -> bool:
        return bool((await bob.see(gateway, code))["status"] == "STARTED")

    await eventually(is_started)
    assert (await bob.see(other, code))["matchId"] == minted
    assert list(gateway.service.matches) == [minted]

    async def is_settled() -> bool:
        left: int = await redis.zcard(STARTING_KEY)
        return left == 0

    await eventually(is_settled)


async def test_a_start_that_did_not_come_to_an_end_is_gone_on_with_by_any_member_who_asks(gateway: Stand, other: Stand) -> None:
    ann, bob = await guests(gateway, "Ann", "Bob")
    code = (await ann.open(gateway))["code"]
    for verb in ("join", "ready"):
        await bob.done(gateway, code, verb)
    create = gateway.service.verbs["CreateMatch"]

    async def lost(request: Any, context: Context) -> Any:
        await create(request, context)
        await refuse(context, Unavailable("STORAGE_UNAVAILABLE", "try again"))

    gateway.service.verbs["CreateMatch"] = lost
    assert (await ann.verb(gateway, code, "start")).status_code == 503
    gateway.service.verbs["CreateMatch"] = create
    room = await bob.done(other, code, "start")
    assert (room["status"], [room["matchId"]]) == ("STARTED", list(gateway.service.matches))


async def test_a_note_of_a_room_that_did_not_start_after_all_is_taken_away(gateway: Stand, redis: Redis) -> None:
    ann = await guest(gateway, "Ann")
    code = (await ann.open(gateway))["code"]
    await redis.zadd(STARTING_KEY, {code: 1, "ABCDEF": 1})

    async def is_settled() -> bool:
        left: int = await redis.zcard(STARTING_KEY)
        return left == 0

    await eventually(is_settled)
    assert (await ann.see(gateway, code))["status"] == "OPEN"


async def test_a_match_that_the_service_refuses_opens_the_room_again(gateway: Stand) -> None:
    ann, bob = await guests(gateway, "Ann", "Bob")
    code = (await ann.open(gateway))["code"]
    for verb in ("join", "ready"):
        await bob.done(gateway, code, verb)
    create = gateway.service.verbs["CreateMatch"]

    async def refused(request: Any, context: Context) -> Any:
        await refuse(context, Unreadable("options.variant", "not on Sundays"))

    gateway.service.verbs["CreateMatch"] = refused
    response = await ann.verb(gateway, code, "start")
    assert (response.status_code, response.json()["violations"]) == (400, [{"field": "options.variant", "description": "not on Sundays"}])
    room = await bob.see(gateway, code)
    assert (room["status"], room["matchId"], names(room)) == ("OPEN", "", ["Ann", "Bob"])
    for player in (ann, bob):
        assert (await player.post(gateway, "/v1/rooms", {"game": "night_clan"})).status_code == 201
    gateway.service.verbs["CreateMatch"] = create
    assert (await ann.done(gateway, code, "start"))["status"] == "STARTED"
    minted = {request.match_id for request in gateway.service.calls("CreateMatch")}
    assert len(minted) == 2


# Retries.


async def test_a_retried_opening_opens_no_second_room(gateway: Stand, other: Stand, redis: Redis) -> None:
    ann = await guest(gateway, "Ann")
    body = {"game": "night_clan"}
    answers = await asyncio.gather(*(ann.post((gateway, other)[n % 2], "/v1/rooms", body, Idempotency_Key="again") for n in range(10)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert len(await redis.keys("gateway:{room/*")) == 1
    again = await ann.post(gateway, "/v1/rooms", {**body, "seats": 2}, Idempotency_Key="again")
    assert reason(again) == (422, "REQUEST_ID_REUSED")


async def test_a_code_that_is_taken_is_not_given_twice(gateway: Stand, redis: Redis) -> None:
    ann, bob = await guests(gateway, "Ann", "Bob")
    first = (await ann.post(gateway, "/v1/rooms", {"game": "night_clan"}, Idempotency_Key="k")).json()["code"]
    theirs = (await bob.open(gateway))["code"]
    # Ann's request comes again as if it had never been carried out, and its code were Bob's room's.
    (claim,) = await redis.keys("gateway:answer:*")
    await redis.hdel(claim, "answer")
    await redis.copy(f"gateway:{{room/{theirs}}}:room", f"gateway:{{room/{first}}}:room", replace=True)
    second = (await ann.post(gateway, "/v1/rooms", {"game": "night_clan"}, Idempotency_Key="k")).json()
    assert second["code"] not in (first, theirs)
    assert second["host"] == ann.id
    assert (await ann.see(gateway, first))["host"] == bob.id


async def test_a_retry_under_its_key_adds_no_other_bot(gateway: Stand, other: Stand) -> None:
    ann = await guest(gateway, "Ann")
    code = (await ann.open(gateway))["code"]
    answers = await asyncio.gather(*(ann.verb((gateway, other)[n % 2], code, "addBot", Idempotency_Key="one") for n in range(6)))
    assert {answer.status_code for answer in answers} == {200}
    assert names(await ann.see(gateway, code)) == ["Ann", "Bot"]
    await ann.verb(gateway, code, "addBot", Idempotency_Key="two")
    assert names(await ann.see(gateway, code)) == ["Ann", "Bot", "Bot"]


async def test_the_last_to_leave_who_asks_again_under_its_key_gets_the_same_answer(gateway: Stand) -> None:
    ann = await guest(gateway, "Ann")
    code = (await ann.open(gateway))["code"]
    first, second = [await ann.verb(gateway, code, "leave", Idempotency_Key="bye") for _ in range(2)]
    assert first.status_code == second.status_code == 200
    assert first.json() == second.json()


async def test_a_write_that_is_repeated_because_its_answer_was_lost_is_done_once(gateway: Stand, rooms: Rooms, redis: Redis) -> None:
    ann = await guest(gateway, "Ann")
    code = (await ann.open(gateway))["code"]
    opened, _ = await rooms._load(code)
    joined = rules.join(opened, "bob", "Bob")
    first, second = [await rooms._put(opened, joined) for _ in range(2)]
    assert first[:2] == second[:2]
    assert first[0]
    # Nor is it done when others have gone on from it, or gone back.
    left = rules.leave(joined, "bob")
    assert (await rooms._put(joined, left))[0]
    assert not (await rooms._put(opened, joined))[0]
    assert (await rooms._load(code))[0] == left
    ended = rules.leave(left, ann.id)
    assert [(await rooms._put(left, ended))[:2] for _ in range(2)] == [(True, b"")] * 2
    assert await redis.keys("gateway:{room/*") == []
    assert not (await rooms._put(left, joined))[0]


async def test_a_start_that_is_written_after_its_lease_is_not_written(gateway: Stand, rooms: Rooms) -> None:
    ann = await guest(gateway, "Ann")
    code = (await ann.open(gateway))["code"]
    await ann.done(gateway, code, "addBot")
    room, _ = await rooms._load(code)
    starting = rules.start(room, ann.id, "night_clan-abcdefgh")
    assert not (await rooms._put(room, starting, latest=1))[0]
    assert (await ann.see(gateway, code))["status"] == "OPEN"
    assert (await rooms._put(room, starting, latest=2**53))[0]


# How long it is kept.


async def test_a_room_in_which_nothing_happens_ends_and_a_change_puts_that_off(gateway: Stand, redis: Redis) -> None:
    ann, bob = await guests(gateway, "Ann", "Bob")
    code = (await ann.open(gateway))["code"]
    key = f"gateway:{{room/{code}}}:room"
    assert 7_190_000 < await redis.pttl(key) <= 7_200_000
    await redis.pexpire(key, 60_000)
    before = (await bob.see(gateway, code))["expireTime"]
    await ann.done(gateway, code, "ready")  # nothing new
    assert (await bob.see(gateway, code))["expireTime"] == before
    room = await bob.done(gateway, code, "join")
    assert room["expireTime"] > before
    assert 7_190_000 < await redis.pttl(key) <= 7_200_000
    await bob.done(gateway, code, "ready")
    await ann.done(gateway, code, "start")
    assert 86_390_000 < await redis.pttl(key) <= 86_400_000
    for every in await redis.keys("gateway:*room*"):
        assert await redis.pttl(every) > 0, every


async def test_at_most_so_many_rooms_of_a_player_are_noted(gateway: Stand, redis: Redis) -> None:
    ann = await guest(gateway, "Ann")
    for _ in range(25):
        await ann.open(gateway)
    assert await redis.zcard(f"gateway:{{{ann.id}}}:rooms") == 20


# What other parts of the gateway use.


async def test_members_and_whoever_is_sent_out_hear_of_it(gateway: Stand, redis_url: str) -> None:
    ann, bob, cat = await guests(gateway, "Ann", "Bob", "Cat")
    code = (await ann.open(gateway))["code"]
    for each in (bob, cat):
        await each.done(gateway, code, "join")
    heard: dict[str, asyncio.Queue[Any]] = {each.id: asyncio.Queue() for each in (ann, bob, cat)}
    storage = Storage(redis_url)
    async with News(storage) as news, contextlib.AsyncExitStack() as stack:
        for each in (ann, bob, cat):
            await stack.enter_async_context(news.listen(each.id, heard[each.id].put_nowait))
            assert await heard[each.id].get() is None

        async def all_hear(*those: Guest) -> None:
            async with asyncio.timeout(5):
                assert {await heard[each.id].get() for each in those} == {("room", code)}
            assert all(queue.empty() for queue in heard.values())

        await bob.done(gateway, code, "ready")
        await all_hear(ann, bob, cat)
        await ann.done(gateway, code, "kick", {"player": bob.id})
        await all_hear(ann, bob, cat)
        await cat.done(gateway, code, "leave")
        await all_hear(ann, cat)
        assert reason(await cat.verb(gateway, code, "ready")) == (403, "NOT_A_MEMBER")
        await ann.done(gateway, code, "leave")
        await all_hear(ann)
    await storage.close()


async def test_the_rooms_of_a_player_are_those_that_they_are_in(gateway: Stand, rooms: Rooms) -> None:
    ann, bob = await guests(gateway, "Ann", "Bob")
    first, second, third = [(await ann.open(gateway))["code"] for _ in range(3)]
    await bob.done(gateway, second, "join")
    await ann.done(gateway, third, "leave")
    await ann.done(gateway, second, "kick", {"player": bob.id})
    assert sorted(await rooms.of(ann.id)) == sorted((first, second))
    assert await rooms.of(bob.id) == ()
    seen = await rooms.read(bob.id, second)
    assert isinstance(seen, gateway_pb2.Room)
    assert [member.player for member in seen.members] == [ann.id]
    assert await rooms.read(ann.id, third) is None


async def test_a_party_is_the_players_of_a_room_when_its_host_asks_and_all_are_ready(gateway: Stand, rooms: Rooms) -> None:
    ann, bob = await guests(gateway, "Ann", "Bob")
    code = (await ann.open(gateway))["code"]
    await ann.done(gateway, code, "addBot")
    await bob.done(gateway, code, "join")
    with pytest.raises(Refused, match="NOT_READY"):
        await rooms.party(code, ann.id)
    await bob.done(gateway, code, "ready")
    players, theirs = await rooms.party(code.lower(), ann.id)
    assert players == (ann.id, bob.id)
    assert theirs == gateway_pb2.CreateTicketRequest(game="night_clan", options=theirs.options, settings=theirs.settings)
    for player, word in ((bob.id, "NOT_THE_HOST"), ("somebody", "NOT_A_MEMBER")):
        with pytest.raises(Forbidden, match=word):
            await rooms.party(code, player)
    for none in ("ABCDEF", "", "x"):
        with pytest.raises(NotFound, match="ROOM_NOT_FOUND"):
            await rooms.party(none, ann.id)
    await ann.done(gateway, code, "start")
    with pytest.raises(Refused, match="ROOM_STARTED"):
        await rooms.party(code, ann.id)
    with pytest.raises(Refused, match="ROOM_STARTED"):
        await rooms.queued(code, "ticket")


async def a_queued_room(gateway: Stand, rooms: Rooms) -> tuple[str, Guest, Guest]:
    ann, bob = await guests(gateway, "Ann", "Bob")
    code = (await ann.open(gateway))["code"]
    for verb in ("join", "ready"):
        await bob.done(gateway, code, verb)
    players, _ = await rooms.party(code, ann.id)
    await rooms.queued(code, "ticket-1", players)
    assert (await rooms._load(code))[0].ticket_id == "ticket-1"
    return code, ann, bob


def changes(ann: Guest, bob: Guest) -> dict[str, Callable[[Room], Room]]:
    """Whatever changes a room of these two that look for others."""
    return {
        "join": lambda room: rules.join(room, "cat", "Cat"),
        "leave": lambda room: rules.leave(room, bob.id),
        "kick": lambda room: rules.kick(room, ann.id, bob.id),
        "addBot": lambda room: rules.add_bot(room, ann.id, "mark"),
        "ready": lambda room: rules.say_ready(room, bob.id, False),
        "start": lambda room: rules.start(room, ann.id, "night_clan-abcdefgh"),
    }


@pytest.mark.parametrize("verb", ["join", "leave", "kick", "addBot", "ready", "start"])
async def test_a_ticket_is_cancelled_when_its_party_changes(gateway: Stand, rooms: Rooms, tickets: Tickets, verb: str) -> None:
    code, ann, bob = await a_queued_room(gateway, rooms)
    await rooms._change(code, lambda room: rules.say_ready(room, bob.id, True))
    assert tickets.cancelled == []
    room, _ = await rooms._change(code, changes(ann, bob)[verb])
    assert tickets.cancelled == ["ticket-1"]
    assert room.ticket_id == ""


async def test_a_ticket_that_has_ended_is_the_room_s_no_more_whether_that_is_told_or_not(
    gateway: Stand, rooms: Rooms, tickets: Tickets
) -> None:
    code, ann, bob = await a_queued_room(gateway, rooms)
    tickets.over.add("ticket-1")
    seen = await rooms.read(bob.id, code)
    assert isinstance(seen, gateway_pb2.Room)
    assert seen.ticket_id == ""
    players, _ = await rooms.party(code, ann.id)
    await rooms.queued(code, "ticket-2", players)
    await rooms.party_over(code, "ticket-1")
    assert (await rooms._load(code))[0].ticket_id == "ticket-2"
    await rooms.party_over(code, "ticket-2")
    assert (await rooms._load(code))[0].ticket_id == ""
    await rooms.party_over("ABCDEF", "ticket-2")
    assert tickets.cancelled == []


async def test_a_ticket_for_players_who_have_changed_meanwhile_is_not_taken(gateway: Stand, rooms: Rooms) -> None:
    ann, bob = await guests(gateway, "Ann", "Bob")
    code = (await ann.open(gateway))["code"]
    party, _ = await rooms.party(code, ann.id)
    await bob.done(gateway, code, "join")
    with pytest.raises(Raced, match="PARTY_CHANGED"):
        await rooms.queued(code, "ticket-1", party)
    assert (await ann.see(gateway, code))["ticketId"] == ""


@pytest.mark.parametrize("verb", ["join", "leave", "kick", "addBot", "ready", "start"])
async def test_where_it_is_too_late_to_cancel_the_party_stays_as_it_is(gateway: Stand, rooms: Rooms, tickets: Tickets, verb: str) -> None:
    code, ann, bob = await a_queued_room(gateway, rooms)
    tickets.refuses = Refused("TICKET_MATCHED", "others have been found")
    before = await rooms._load(code)
    with pytest.raises(Refused, match="TICKET_MATCHED"):
        await rooms._change(code, changes(ann, bob)[verb])
    assert await rooms._load(code) == before


async def test_where_tickets_cannot_be_reached_a_party_does_not_change(gateway: Stand, rooms: Rooms, tickets: Tickets) -> None:
    code, _, bob = await a_queued_room(gateway, rooms)
    tickets.refuses = Unavailable("STORAGE_UNAVAILABLE", "try again")
    before = await rooms._load(code)
    with pytest.raises(Unavailable):
        await rooms._change(code, lambda room: rules.leave(room, bob.id))
    assert await rooms._load(code) == before
