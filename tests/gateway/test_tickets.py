"""Tickets over REST and the live socket, with a game service that answers as it is told."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from redis import Redis as BlockingRedis
from redis.asyncio import Redis
from websockets.typing import Subprotocol

from gateway.news import News
from gateway.ratings import Skill
from gateway.room import Room
from gateway.settings import bands
from gloaming.gateway.v1 import gateway_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import Refused, Unavailable, Unreadable
from services.kit.storage import Storage
from tests.gateway.stand import Context, Stand, refuse, stand
from tests.harness import Keys, eventually
from tests.live import BOTH, live

BASE = "gateway:{tickets/night_clan}"
PAIR = {"min": 2, "max": 2}
LUA = Path(__file__).parents[2] / "gateway" / "lua"


class Person:
    """Somebody who asks a gateway for matches."""

    def __init__(self, gateway: Stand, name: str) -> None:
        self.name = name
        self.token = gateway.keys.token(name)
        self._gateway = gateway

    async def call(self, method: str, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", **more.pop("headers", {})}
        return await self._gateway.http.request(method, path, headers=headers, timeout=40, **more)

    async def wish(self, *, headers: Any = (), **asked: Any) -> Any:
        return await self.call("POST", "/v1/tickets", json={"game": "night_clan", **asked}, headers=dict(headers))

    async def wait(self, ticket: Any, seconds: int = 20) -> dict[str, Any]:
        """The ticket, as soon as it is over."""
        while True:
            response = await self.call("GET", f"/v1/tickets/{ticket['id']}?wait={seconds}s")
            assert response.status_code == 200, response.text
            got: dict[str, Any] = response.json()
            if got["status"] not in ("WAITING", "FORMING"):
                return got

    async def ticket(self, **asked: Any) -> dict[str, Any]:
        response = await self.wish(**asked)
        assert response.status_code == 201, response.text
        made: dict[str, Any] = response.json()
        return made


def people(gateway: Stand, *names: str) -> list[Person]:
    return [Person(gateway, name) for name in names]


@asynccontextmanager
async def gateways(keys: Keys, redis_url: str, count: int, **more: Any) -> AsyncIterator[list[Stand]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(stand(keys, redis_url, **more)) for _ in range(count)]


def seated(gateway: Stand) -> list[list[str]]:
    """The players of each match that was made."""
    made = {request.match_id: [seat.player for seat in request.seats if seat.player] for request in gateway.service.calls("CreateMatch")}
    return list(made.values())


async def forming(redis: Redis) -> str:
    """The match that is being made."""
    found: list[Any] = await redis.zrange(f"{BASE}:forming", 0, -1)
    (match_id,) = found
    return str(match_id, "ascii")


async def refusing(gateway: Stand, error: Any) -> None:
    async def create(request: Any, context: Context) -> Any:
        await refuse(context, error)

    gateway.service.verbs["CreateMatch"] = create


# Asking


async def test_a_ticket_says_what_it_waits_for(gateway: Stand) -> None:
    (ann,) = people(gateway, "ann")
    response = await ann.wish(options={"variant": "DAY"}, settings={"moveSeconds": 30})
    assert response.status_code == 201
    ticket = response.json()
    assert response.headers["location"] == f"/v1/tickets/{ticket['id']}"
    assert ticket["id"].startswith("night_clan-")
    assert (ticket["status"], ticket["players"], ticket["matchId"]) == ("WAITING", ["ann"], "")
    assert ticket["options"] == {"variant": "DAY"}
    assert ticket["settings"]["moveSeconds"] == 30
    assert ticket["seats"] == {"min": 2, "max": 4}
    assert "failure" not in ticket
    explanation = ticket["explanation"]
    assert (explanation["rating"], explanation["band"], explanation["nextBand"], explanation["seatsWanted"]) == (1500, 100, 200, 4)
    times = {name: moment(explanation[name]) - moment(ticket["createTime"]) for name in explanation if name.endswith("Time")}
    assert {name: round(seconds) for name, seconds in times.items()} == {"widenTime": 5, "fewerTime": 10, "botsTime": 20, "expireTime": 30}
    assert explanation["summary"] == (
        "Looking for 3 others rated within 100 of 1500; within 200 in 5 seconds; 2 at the table will do in 10 seconds; "
        "bots take free seats in 20 seconds."
    )


def moment(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"game": ""}, "game"),
        ({"game": "chess"}, "game"),
        ({"game": 1}, "game"),
        ({"options": {"variant": "DUSK"}}, "options.variant"),
        ({"options": {"x": 1}}, "options.x"),
        ({"seats": {"min": 1}}, "seats.min"),
        ({"seats": {"max": 5}}, "seats.max"),
        ({"seats": {"min": 3, "max": 2}}, "seats.max"),
        ({"seats": {"min": -2}}, "seats.min"),
        ({"seats": {"min": 0, "max": 0}}, "seats.min"),
        ({"seats": {"min": 0}}, "seats.min"),
        ({"seats": {"max": 0}}, "seats.max"),
        ({"settings": {"moveSeconds": -1}}, "settings.moveSeconds"),
        ({"settings": {"moveSeconds": 1_000_000}}, "settings.moveSeconds"),
        ({"botsAfterSeconds": -2}, "botsAfterSeconds"),
        ({"botsAfterSeconds": 601}, "botsAfterSeconds"),
        ({"botsAfterSeconds": 1.5}, "botsAfterSeconds"),
        ({"party": 7}, "party"),
        ({"players": ["bob"]}, "players"),
    ],
)
async def test_a_wish_that_cannot_be_read_is_400_and_nothing_waits(gateway: Stand, redis: Redis, body: dict[str, Any], field: str) -> None:
    (ann,) = people(gateway, "ann")
    response = await ann.wish(**body)
    assert (response.status_code, response.json()["violations"][0]["field"]) == (400, field)
    assert not [key async for key in redis.scan_iter("gateway:{tickets/*")]


@pytest.mark.parametrize("wait", ["25", "s", "-1s", "31s", "30.001s", "1e1s", "٣s", "1s&wait=2s", "1.2345s", "100s"])
async def test_a_wait_that_is_none_is_400(gateway: Stand, wait: str) -> None:
    (ann,) = people(gateway, "ann")
    ticket = await ann.ticket()
    response = await ann.call("GET", f"/v1/tickets/{ticket['id']}?wait={wait}")
    assert (response.status_code, response.json()["violations"][0]["field"]) == (400, "wait")


async def test_a_ticket_is_seen_by_its_players_alone(gateway: Stand) -> None:
    ann, bob = people(gateway, "ann", "bob")
    ticket = await ann.ticket()
    for person, path in [(bob, ticket["id"]), (ann, "night_clan-aaaaaaaaaaaa"), (ann, "chess-aaaaaaaaaaaa"), (ann, "x"), (ann, "%00")]:
        for method in ("GET", "DELETE"):
            response = await person.call(method, f"/v1/tickets/{path}")
            assert (response.status_code, response.json()["reason"]) == (404, "TICKET_NOT_FOUND"), (person.name, method, path)
    assert (await ann.call("GET", f"/v1/tickets/{ticket['id']}")).json()["status"] == "WAITING"
    for method, path in [("POST", "/v1/tickets"), ("GET", f"/v1/tickets/{ticket['id']}"), ("DELETE", f"/v1/tickets/{ticket['id']}")]:
        assert (await gateway.http.request(method, path)).status_code == 401


async def test_the_same_wish_again_is_the_same_ticket_and_another_is_refused(gateway: Stand) -> None:
    (ann,) = people(gateway, "ann")
    ticket = await ann.ticket()
    # What is left out has its default.
    again = await ann.wish(options={}, settings={"moveSeconds": 60, "rated": False}, seats={"max": 4})
    assert (again.status_code, again.json()["id"]) == (200, ticket["id"])
    for other in ({"options": {"variant": "DAY"}}, {"settings": {"rated": True}}, {"seats": PAIR}, {"botsAfterSeconds": 5}):
        refused = await ann.wish(**other)
        assert (refused.status_code, refused.json()["reason"]) == (422, "TICKET_EXISTS")
    assert (await ann.wish(game="clans_and_glory")).status_code == 201
    await ann.call("DELETE", f"/v1/tickets/{ticket['id']}")
    assert (await ann.ticket(seats=PAIR))["id"] != ticket["id"]


async def test_a_retry_under_a_key_gets_the_first_answer(gateway: Stand) -> None:
    (ann,) = people(gateway, "ann")
    key = {"Idempotency-Key": "once"}
    first = await ann.wish(headers=key)
    await ann.call("DELETE", f"/v1/tickets/{first.json()['id']}")
    again = await ann.wish(headers=key)
    assert (again.status_code, again.content) == (201, first.content)
    reused = await ann.wish(headers=key, seats=PAIR)
    assert (reused.status_code, reused.json()["reason"]) == (422, "REQUEST_ID_REUSED")


# Meeting


async def test_two_who_wish_for_the_same_meet_under_their_names(gateway: Stand) -> None:
    sessions = [await gateway.sign_in(name) for name in ("Ann", "Bob")]
    ids = []
    for session in sessions:
        gateway.be(session)
        response = await gateway.http.post("/v1/tickets", json={"game": "night_clan", "seats": PAIR, "settings": {"rated": True}})
        ids.append(response.json()["id"])
    found = []
    for session, ticket_id in zip(sessions, ids, strict=True):
        gateway.be(session)
        found.append((await gateway.http.get(f"/v1/tickets/{ticket_id}?wait=10s")).json())
        mine = (await gateway.http.get("/v1/players/me/matches")).json()["matches"]
        assert [match["id"] for match in mine] == [found[-1]["matchId"]]
    assert {ticket["status"] for ticket in found} == {"MATCHED"}
    assert found[0]["matchId"] == found[1]["matchId"]
    assert "explanation" not in found[0]
    (asked,) = gateway.service.calls("CreateMatch")
    assert {(seat.player, seat.name) for seat in asked.seats} == {(s["player"]["id"], s["player"]["name"]) for s in sessions}
    assert (asked.match_id, asked.order, asked.settings.rated) == (found[0]["matchId"], table_pb2.Seating.DRAWN, True)


async def test_only_who_wishes_for_the_same_meets(gateway: Stand) -> None:
    different: list[dict[str, Any]] = [
        {},
        {"options": {"variant": "DAY"}},
        {"settings": {"moveSeconds": 5}},
        {"settings": {"rated": True}},
        {"settings": {"spectators": False}},
    ]
    for n, wish in enumerate(different):
        await people(gateway, f"p{n}")[0].ticket(seats=PAIR, **wish)
    (late,) = people(gateway, "late")
    assert (await late.wait(await late.ticket(seats=PAIR, options={"variant": "DAY"})))["status"] == "MATCHED"
    assert [sorted(players) for players in seated(gateway)] == [["late", "p1"]]


async def test_the_most_seats_are_taken_at_first_and_fewer_after_some_time(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with stand(keys, redis_url, ticket_patience_seconds=1.5) as gateway:
        four = people(gateway, "ann", "bob", "cat", "dan")
        tickets = [await person.ticket() for person in four]
        assert len({(await person.wait(ticket))["matchId"] for person, ticket in zip(four, tickets, strict=True)}) == 1
        began = time.monotonic()
        three = people(gateway, "eve", "fay", "gil")
        tickets = [await person.ticket(seats={"min": 3, "max": 4}) for person in three]
        assert len({(await person.wait(ticket))["matchId"] for person, ticket in zip(three, tickets, strict=True)}) == 1
        assert time.monotonic() - began >= 1.4
        assert sorted(map(len, seated(gateway))) == [3, 4]


async def test_nobody_plays_with_fewer_or_more_than_they_wish_for(gateway: Stand) -> None:
    ann, bob, cat, dan = people(gateway, "ann", "bob", "cat", "dan")
    await ann.ticket(seats={"min": 3, "max": 3})
    await bob.ticket(seats={"min": 3, "max": 3})
    waits = await cat.ticket(seats=PAIR)
    assert (await cat.call("GET", f"/v1/tickets/{waits['id']}?wait=0.3s")).json()["status"] == "WAITING"
    assert (await dan.wait(await dan.ticket(seats=PAIR)))["status"] == "MATCHED"
    assert [sorted(players) for players in seated(gateway)] == [["cat", "dan"]]


async def test_bots_take_free_seats_when_their_time_has_come(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with stand(keys, redis_url, ticket_bots_seconds=1) as gateway:
        ann, bob, cat = people(gateway, "ann", "bob", "cat")
        never = await bob.ticket(botsAfterSeconds=-1, seats={"min": 3, "max": 4})
        assert "botsTime" not in never["explanation"]
        began = time.monotonic()
        at_once = await ann.ticket(botsAfterSeconds=0, seats={"min": 3, "max": 3})
        assert (await ann.wait(at_once))["status"] == "MATCHED"
        assert time.monotonic() - began < 0.9
        # As the operator has set, and with bots up to the fewest seats.
        assert (await cat.wait(await cat.ticket()))["status"] == "MATCHED"
        first, second = gateway.service.calls("CreateMatch")
        assert [(seat.player, seat.bot) for seat in first.seats] == [("ann", 0), ("", 1), ("", 1)]
        assert [(seat.player, seat.bot) for seat in second.seats] == [("cat", 0), ("", 1)]
        assert (await bob.call("GET", f"/v1/tickets/{never['id']}")).json()["status"] == "WAITING"


async def test_ratings_come_near_at_first_and_farther_with_time(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with stand(keys, redis_url, ticket_bands="0:100,1:400") as gateway:
        ann, bob, cat = people(gateway, "ann", "bob", "cat")
        for player, rating in {"ann": 1500, "bob": 1700, "cat": 2000}.items():
            await redis.hset("gateway:{ratings/night_clan}:players", player, Skill(mu=rating / 60).write())
        began = time.monotonic()
        tickets = [await person.ticket(seats=PAIR, botsAfterSeconds=-1) for person in (ann, bob, cat)]
        assert [ticket["explanation"]["rating"] for ticket in tickets] == [1500, 1700, 2000]
        assert (await ann.wait(tickets[0]))["status"] == "MATCHED"
        assert time.monotonic() - began >= 0.9
        assert [sorted(players) for players in seated(gateway)] == [["ann", "bob"]]
        alone = (await cat.call("GET", f"/v1/tickets/{tickets[2]['id']}")).json()["explanation"]
        assert alone["band"] == 400
        assert "widenTime" not in alone


# Waiting


async def test_a_wait_ends_with_the_time_given_or_at_once_when_nothing_changes_any_more(gateway: Stand, redis: Redis) -> None:
    (ann,) = people(gateway, "ann")
    ticket = await ann.ticket()
    began = time.monotonic()
    assert (await ann.call("GET", f"/v1/tickets/{ticket['id']}?wait=0.5s")).json()["status"] == "WAITING"
    assert 0.4 < time.monotonic() - began < 3
    waiting = asyncio.create_task(ann.call("GET", f"/v1/tickets/{ticket['id']}?wait=30s"))
    await eventually(lambda: listened(redis, "ann"))
    assert (await ann.call("DELETE", f"/v1/tickets/{ticket['id']}")).json()["status"] == "CANCELLED"
    assert (await waiting).json()["status"] == "CANCELLED"
    assert (await ann.call("GET", f"/v1/tickets/{ticket['id']}?wait=30s")).json()["status"] == "CANCELLED"
    assert time.monotonic() - began < 5


async def listened(redis: Redis, player: str) -> bool:
    """Whether a gateway hears that player's news."""
    counted: list[Any] = await redis.execute_command("PUBSUB", "SHARDNUMSUB", f"gateway:{{{player}}}:news")  # type: ignore[no-untyped-call]
    return bool(counted[1])


async def test_a_ticket_is_streamed_at_each_change_to_its_end(served: Stand) -> None:
    ann, bob = people(served, "ann", "bob")
    ticket = await ann.ticket(seats=PAIR)
    headers = {"Authorization": f"Bearer {ann.token}", "Accept": "text/event-stream"}
    seen = []
    async with served.http.stream("GET", f"/v1/tickets/{ticket['id']}", headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        event = ""
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                event = line.removeprefix("event: ")
            elif line.startswith("data: "):
                seen.append((event, json.loads(line.removeprefix("data: "))))
                if len(seen) == 1:
                    await bob.ticket(seats=PAIR)
    assert {event for event, _ in seen} == {"ticket"}
    assert seen[0][1]["status"] == "WAITING"
    assert seen[-1][1]["status"] == "MATCHED"
    assert seen[-1][1]["matchId"] == served.service.calls("CreateMatch")[0].match_id


@pytest.mark.parametrize("subprotocol", BOTH)
async def test_a_live_socket_tells_of_its_players_tickets(served: Stand, subprotocol: Subprotocol, redis: Redis) -> None:
    ann, bob = people(served, "ann", "bob")
    async with live(served.live_url, ann.token, subprotocol) as one, live(served.live_url, ann.token, subprotocol) as two:
        await eventually(lambda: one.pings and two.pings)
        await eventually(lambda: listened(redis, "ann"))
        ticket = await ann.ticket(seats=PAIR, options={"variant": "DAY"})
        for socket in (one, two):
            told = await socket.next("ticket")
            assert (told.id, told.status, told.game) == (ticket["id"], gateway_pb2.Ticket.WAITING, "night_clan")
            assert night_clan_pb2.Options.FromString(told.options).variant == night_clan_pb2.Options.DAY
            assert told.explanation.summary
        await bob.ticket(seats=PAIR, options={"variant": "DAY"})
        for socket in (one, two):
            told = await socket.next("ticket")
            assert told.status == gateway_pb2.Ticket.MATCHED
            assert told.match_id == served.service.calls("CreateMatch")[0].match_id
        assert one.inbox() == []


async def test_a_socket_that_comes_later_is_told_of_what_becomes_of_a_ticket(served: Stand, redis: Redis) -> None:
    ann, bob = people(served, "ann", "bob")
    ticket = await ann.ticket(seats=PAIR)
    async with live(served.live_url, ann.token) as socket:
        await eventually(lambda: listened(redis, "ann"))
        await bob.ticket(seats=PAIR)
        told = await socket.next("ticket")
        assert (told.id, told.status) == (ticket["id"], gateway_pb2.Ticket.MATCHED)


async def test_news_that_was_lost_is_made_up_for(served: Stand, redis: Redis) -> None:
    (ann,) = people(served, "ann")
    async with live(served.live_url, ann.token) as socket:
        await eventually(lambda: listened(redis, "ann"))
        ticket_id = (await ann.ticket())["id"]
        assert (await socket.next("ticket")).status == gateway_pb2.Ticket.WAITING
        # It ends, and nobody rings.
        await redis.eval((LUA / "ticket_end.lua").read_text(), 1, BASE, ticket_id, "CANCELLED", 0, 600_000)
        await redis.client_kill_filter(_type="pubsub")
        assert (await socket.next("ticket")).status == gateway_pb2.Ticket.CANCELLED


# Ceasing to


async def test_a_ticket_is_cancelled_once_and_for_all(gateway: Stand) -> None:
    ann, bob = people(gateway, "ann", "bob")
    path = f"/v1/tickets/{(await ann.ticket(seats=PAIR))['id']}"
    for _ in range(2):
        response = await ann.call("DELETE", path)
        assert (response.status_code, response.json()["status"]) == (200, "CANCELLED")
    waits = await bob.ticket(seats=PAIR)
    assert (await bob.call("GET", f"/v1/tickets/{waits['id']}?wait=0.3s")).json()["status"] == "WAITING"
    assert gateway.service.calls("CreateMatch") == []


async def test_it_is_too_late_to_cancel_once_others_have_been_found(gateway: Stand) -> None:
    ann, bob = people(gateway, "ann", "bob")
    made, create = asyncio.Event(), gateway.service.verbs["CreateMatch"]

    async def slowly(request: Any, context: Context) -> Any:
        await made.wait()
        return await create(request, context)

    gateway.service.verbs["CreateMatch"] = slowly
    ticket = await ann.ticket(seats=PAIR)
    await bob.ticket(seats=PAIR)
    await eventually(lambda: gateway.service.calls("CreateMatch"))
    assert (await ann.call("GET", f"/v1/tickets/{ticket['id']}")).json()["status"] == "FORMING"
    for _ in range(2):
        response = await ann.call("DELETE", f"/v1/tickets/{ticket['id']}")
        assert (response.status_code, response.json()["reason"]) == (422, "TICKET_MATCHED")
        made.set()
        assert (await ann.wait(ticket))["status"] == "MATCHED"
    assert (await ann.ticket(seats=PAIR))["status"] == "WAITING"


async def test_cancelling_and_matching_at_once_end_in_one_way(gateway: Stand) -> None:
    ways: Counter[str] = Counter()
    for n in range(40):
        ann, bob = people(gateway, f"ann{n}", f"bob{n}")
        # Wishes of their own for each round.
        wish: dict[str, Any] = {"seats": PAIR, "settings": {"moveSeconds": n + 1}, "botsAfterSeconds": -1}
        ticket = await ann.ticket(**wish)

        async def cancel(ann: Person = ann, ticket: dict[str, Any] = ticket, delay: float = n / 8000) -> Any:
            await asyncio.sleep(delay)
            return await ann.call("DELETE", f"/v1/tickets/{ticket['id']}")

        other, cancelled = await asyncio.gather(bob.ticket(**wish), cancel())
        if cancelled.status_code == 200:
            assert cancelled.json()["status"] == "CANCELLED"
            assert (await bob.call("GET", f"/v1/tickets/{other['id']}?wait=0.05s")).json()["status"] == "WAITING"
        else:
            assert (cancelled.status_code, cancelled.json()["reason"]) == (422, "TICKET_MATCHED")
            assert (await ann.wait(ticket))["matchId"] == (await bob.wait(other))["matchId"]
        ways[str(cancelled.status_code)] += 1
    assert sum(ways.values()) == 40


# Faults


@pytest.mark.scenario(15)
async def test_of_ten_tickets_at_once_by_one_player_one_lives(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with gateways(keys, redis_url, 2) as both:
        anns = [Person(both[n % 2], "ann") for n in range(10)]
        same = await asyncio.gather(*(ann.wish() for ann in anns))
        assert sorted(response.status_code for response in same) == [200] * 9 + [201]
        assert len({response.json()["id"] for response in same}) == 1
        await anns[0].call("DELETE", f"/v1/tickets/{same[0].json()['id']}")
        different = await asyncio.gather(*(ann.wish(settings={"moveSeconds": n + 1}) for n, ann in enumerate(anns)))
        assert sorted(response.status_code for response in different) == [201] + [422] * 9
        assert {response.json().get("reason", "TICKET_EXISTS") for response in different} == {"TICKET_EXISTS"}
        assert await redis.zcard(f"{BASE}:due") == 1


@pytest.mark.scenario(16)
async def test_whoever_goes_away_while_waiting_is_in_no_match(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with stand(keys, redis_url, ticket_unseen_seconds=1) as gateway:
        ann, bob, cat, dan = people(gateway, "ann", "bob", "cat", "dan")
        gone = await ann.ticket(seats=PAIR)
        here = await bob.ticket(seats={"min": 3, "max": 3})
        waiting = asyncio.create_task(bob.wait(here, 5))
        await eventually(lambda: listened(redis, "bob"))
        # Longer than a ticket may go unseen. That of who waits is looked at all the while.
        await asyncio.sleep(1.2)
        late = await cat.ticket(seats=PAIR)
        assert (await cat.call("GET", f"/v1/tickets/{late['id']}?wait=0.3s")).json()["status"] == "WAITING"
        assert gateway.service.calls("CreateMatch") == []
        assert (await ann.call("GET", f"/v1/tickets/{gone['id']}")).json()["status"] == "EXPIRED"
        again = await ann.ticket(seats=PAIR)
        assert (await ann.wait(again))["status"] == "MATCHED"
        await dan.ticket(seats={"min": 3, "max": 3})
        await people(gateway, "eve")[0].ticket(seats={"min": 3, "max": 3})
        assert (await waiting)["status"] == "MATCHED"
        assert sorted(map(sorted, seated(gateway))) == [["ann", "cat"], ["bob", "dan", "eve"]]


@pytest.mark.scenario(16)
async def test_a_ticket_that_nobody_looks_at_expires_by_itself(keys: Keys, redis_url: str, redis: Redis) -> None:
    before = outcomes("expired")
    async with stand(keys, redis_url, ticket_unseen_seconds=1) as gateway:
        (ann,) = people(gateway, "ann")
        ticket = await ann.ticket()
        await eventually(lambda: outcomes("expired") > before)
        assert await redis.hgetall(f"{BASE}:players") == {}
        assert (await ann.call("GET", f"/v1/tickets/{ticket['id']}")).json()["status"] == "EXPIRED"
        assert 0 < await redis.pttl(f"{BASE}:ticket:{ticket['id']}") <= 600_000


def outcomes(outcome: str) -> float:
    return REGISTRY.get_sample_value("gloaming_tickets_total", {"game": "night_clan", "outcome": outcome}) or 0


@pytest.mark.scenario(16)
async def test_a_live_socket_looks_at_its_players_tickets_and_a_closed_one_does_not(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with stand(keys, redis_url, on_socket=True, ticket_unseen_seconds=1) as gateway:
        (ann,) = people(gateway, "ann")
        ticket = await ann.ticket()
        async with live(gateway.live_url, ann.token) as socket:
            await asyncio.sleep(2)
            assert await redis.hget(f"{BASE}:ticket:{ticket['id']}", "status") == b"WAITING"
            assert socket.inbox() == []
        await eventually(lambda: hash_of(redis, ticket["id"], "status", b"EXPIRED"))


async def hash_of(redis: Redis, ticket_id: str, name: str, value: bytes) -> bool:
    return bool(await redis.hget(f"{BASE}:ticket:{ticket_id}", name) == value)


@pytest.mark.scenario(16)
async def test_a_poll_whose_client_is_gone_looks_at_nothing(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with stand(keys, redis_url, on_socket=True, ticket_unseen_seconds=1) as gateway:
        (ann,) = people(gateway, "ann")
        ticket = await ann.ticket()
        waiting = asyncio.create_task(ann.call("GET", f"/v1/tickets/{ticket['id']}?wait=30s"))
        await eventually(lambda: listened(redis, "ann"))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await eventually(lambda: hash_of(redis, ticket["id"], "status", b"EXPIRED"))


@pytest.mark.scenario(17)
@pytest.mark.parametrize("made", [False, True])
async def test_a_match_is_made_once_though_its_matcher_dies_on_the_way(keys: Keys, redis_url: str, redis: Redis, made: bool) -> None:
    """It dies before the service has made the match, or after that and before the tickets know."""
    async with stand(keys, redis_url) as other:
        async with stand(keys, redis_url) as dying:
            create = other.service.verbs["CreateMatch"]

            async def hang(request: Any, context: Context) -> Any:
                if made:
                    await create(request, context)
                await asyncio.Event().wait()

            dying.service.verbs["CreateMatch"] = hang
            ann, bob = people(dying, "ann", "bob")
            tickets = [await person.ticket(seats=PAIR) for person in (ann, bob)]
            await eventually(lambda: dying.service.calls("CreateMatch"))
        match_id = await forming(redis)
        assert other.service.calls("CreateMatch") == []
        await redis.zadd(f"{BASE}:forming", {match_id: 0})  # the lease is over
        for person, ticket in zip(people(other, "ann", "bob"), tickets, strict=True):
            got = await person.wait(ticket)
            assert (got["status"], got["matchId"]) == ("MATCHED", match_id)
            mine = (await person.call("GET", "/v1/players/me/matches")).json()["matches"]
            assert [match["id"] for match in mine] == [match_id]
        assert list(other.service.matches) == [match_id]
        assert await redis.zcard(f"{BASE}:forming") == 0


async def test_a_service_that_is_away_delays_a_match_and_loses_nobody(gateway: Stand, redis: Redis) -> None:
    ann, bob = people(gateway, "ann", "bob")
    create = gateway.service.verbs["CreateMatch"]
    await refusing(gateway, Unavailable("DRAINING", "away"))
    tickets = [await person.ticket(seats=PAIR) for person in (ann, bob)]
    await eventually(lambda: len(gateway.service.calls("CreateMatch")) >= 3)  # gRPC's own tries
    assert (await ann.call("GET", f"/v1/tickets/{tickets[0]['id']}?wait=0.3s")).json()["status"] == "FORMING"
    gateway.service.verbs["CreateMatch"] = create
    match_id = await forming(redis)
    await redis.zadd(f"{BASE}:forming", {match_id: 0})
    assert [(await person.wait(ticket))["matchId"] for person, ticket in zip((ann, bob), tickets, strict=True)] == [match_id] * 2


@pytest.mark.scenario(18)
async def test_four_matchers_at_once_put_nobody_into_two_matches(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with gateways(keys, redis_url, 4) as four:
        crowd = [Person(four[n % 4], f"p{n}") for n in range(80)]
        tickets = await asyncio.gather(*(person.ticket(seats={"min": 4, "max": 4}, botsAfterSeconds=-1) for person in crowd))
        got = await asyncio.gather(*(person.wait(ticket) for person, ticket in zip(crowd, tickets, strict=True)))
        assert {ticket["status"] for ticket in got} == {"MATCHED"}
        matches = [players for gateway in four for players in seated(gateway)]
        assert Counter(player for players in matches for player in players) == Counter(person.name for person in crowd)
        assert {len(players) for players in matches} == {4}


@pytest.mark.scenario(19)
async def test_an_old_timeout_does_nothing_to_a_newer_ticket(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with stand(keys, redis_url, ticket_unseen_seconds=2) as gateway:
        (ann,) = people(gateway, "ann")
        old = await ann.ticket(botsAfterSeconds=1)
        await ann.call("DELETE", f"/v1/tickets/{old['id']}")
        new = await ann.ticket(botsAfterSeconds=-1)
        # An entry of the old one that came late, and whatever a gateway still does for it.
        await redis.zadd(f"{BASE}:due", {old["id"]: 0})
        await eventually(lambda: gone_from(redis, f"{BASE}:due", old["id"]))
        assert await redis.eval((LUA / "ticket_end.lua").read_text(), 1, BASE, old["id"], "EXPIRED", 0, 600_000) == 0
        assert (await ann.call("DELETE", f"/v1/tickets/{old['id']}")).json()["status"] == "CANCELLED"
        assert (await ann.call("GET", f"/v1/tickets/{new['id']}?wait=1.5s")).json()["status"] == "WAITING"
        assert (await ann.wish(botsAfterSeconds=-1)).json()["id"] == new["id"]
        assert gateway.service.calls("CreateMatch") == []


async def gone_from(redis: Redis, key: str, member: str) -> bool:
    return bool(await redis.zscore(key, member) is None)


@pytest.mark.scenario(20)
@pytest.mark.parametrize(
    ("error", "reason"),
    [(Unreadable("options.variant", "is poison"), "INVALID_ARGUMENT"), (Refused("POISONED", "it is poison"), "POISONED")],
)
async def test_a_poisoned_wish_fails_and_others_go_on(gateway: Stand, error: Any, reason: str) -> None:
    create = gateway.service.verbs["CreateMatch"]

    async def picky(request: Any, context: Context) -> Any:
        if request.settings.move_seconds == 13:
            await refuse(context, error)
        return await create(request, context)

    gateway.service.verbs["CreateMatch"] = picky
    ann, bob, cat, dan, eve = people(gateway, "ann", "bob", "cat", "dan", "eve")
    poison: dict[str, Any] = {"settings": {"moveSeconds": 13}}
    alone = await eve.ticket(**poison, botsAfterSeconds=0, seats={"min": 4, "max": 4})
    poisoned = [await person.ticket(**poison, seats=PAIR) for person in (ann, bob)]
    healthy = [await person.ticket(seats=PAIR) for person in (cat, dan)]
    for person, ticket in zip((eve, ann, bob), (alone, *poisoned), strict=True):
        got = await person.wait(ticket)
        assert (got["status"], got["failure"]["reason"], got["matchId"]) == ("FAILED", reason, "")
        assert "poison" in got["failure"]["detail"]
        assert (await person.call("GET", "/v1/players/me/matches")).json()["matches"] == []
    for person, ticket in zip((cat, dan), healthy, strict=True):
        assert (await person.wait(ticket))["status"] == "MATCHED"
    # Whoever failed may wish again.
    assert (await ann.ticket(seats={"min": 3, "max": 3}))["status"] == "WAITING"


@pytest.mark.scenario(20)
async def test_a_service_that_breaks_over_a_wish_is_not_asked_for_ever(gateway: Stand, redis: Redis) -> None:
    async def broken(request: Any, context: Context) -> Any:
        raise RuntimeError("broken")

    gateway.service.verbs["CreateMatch"] = broken
    (ann,) = people(gateway, "ann")
    waiting = asyncio.create_task(ann.wait(await ann.ticket(botsAfterSeconds=0)))
    for tries in (1, 2):

        def tried(tries: int = tries) -> bool:
            return len(gateway.service.calls("CreateMatch")) == tries

        await eventually(tried)
        match_id = await forming(redis)
        await redis.zadd(f"{BASE}:forming", {match_id: 0})
    got = await waiting
    assert (got["status"], got["failure"]["reason"]) == ("FAILED", "SERVICE_FAILED")


# Parties


async def party(gateway: Stand, *names: str, **asked: Any) -> tuple[str, list[Person]]:
    """A room's code, and its players, the host first."""
    members = people(gateway, *names)
    code = (await members[0].call("POST", "/v1/rooms", json={"game": "night_clan", **asked})).json()["code"]
    for member in members[1:]:
        assert (await member.call("POST", f"/v1/rooms/{code}:join")).status_code == 200
        assert (await member.call("POST", f"/v1/rooms/{code}:ready")).status_code == 200
    return code, members


async def test_a_party_is_matched_all_or_none(gateway: Stand) -> None:
    code, (ann, bob, cat) = await party(gateway, "ann", "bob", "cat")
    ticket = await ann.ticket(party=code, seats={"min": 4, "max": 4})
    assert sorted(ticket["players"]) == ["ann", "bob", "cat"]
    assert (await bob.call("GET", f"/v1/rooms/{code}")).json()["ticketId"] == ticket["id"]
    assert (await bob.wish()).json()["reason"] == "TICKET_EXISTS"
    code_two, (dan, eve) = await party(gateway, "dan", "eve")
    two = await dan.ticket(party=code_two, seats={"min": 4, "max": 4})
    assert (await eve.call("GET", f"/v1/tickets/{two['id']}?wait=0.3s")).json()["status"] == "WAITING"
    (fay,) = people(gateway, "fay")
    match_id = (await fay.wait(await fay.ticket(seats={"min": 4, "max": 4})))["matchId"]
    for member in (ann, bob, cat):
        assert (await member.wait(ticket))["matchId"] == match_id
    assert [sorted(players) for players in seated(gateway)] == [["ann", "bob", "cat", "fay"]]


async def test_a_party_is_for_its_host_and_fits_the_seats(gateway: Stand) -> None:
    code, (ann, bob, _) = await party(gateway, "ann", "bob", "cat")
    assert (await bob.wish(party=code)).status_code == 403
    assert (await ann.wish(party="ZZZZZZ")).status_code == 404
    response = await ann.wish(party=code, seats=PAIR)
    assert (response.status_code, response.json()["reason"]) == (422, "PARTY_TOO_LARGE")


async def test_a_party_that_changes_loses_its_ticket(gateway: Stand) -> None:
    code, (ann, bob) = await party(gateway, "ann", "bob")
    ticket = await ann.ticket(party=code)
    assert (await bob.call("POST", f"/v1/rooms/{code}:leave")).status_code == 200
    assert (await ann.call("GET", f"/v1/tickets/{ticket['id']}")).json()["status"] == "CANCELLED"
    assert (await ann.ticket(party=code))["players"] == ["ann"]


async def test_a_party_that_is_not_ready_any_more_loses_its_ticket(gateway: Stand) -> None:
    code, (ann, bob) = await party(gateway, "ann", "bob")
    ticket = await ann.ticket(party=code)
    room = (await bob.call("POST", f"/v1/rooms/{code}:ready", json={"ready": False})).json()
    assert room["ticketId"] == ""
    assert (await ann.call("GET", f"/v1/tickets/{ticket['id']}")).json()["status"] == "CANCELLED"
    assert (await ann.wish(party=code)).json()["reason"] == "NOT_READY"


async def test_a_party_wishes_for_what_its_room_is_for_and_has_one_ticket(gateway: Stand) -> None:
    code, (ann, _) = await party(gateway, "ann", "bob", options={"variant": "DAY"}, settings={"moveSeconds": 30})
    wish: dict[str, Any] = {"options": {"variant": "DAY"}, "settings": {"moveSeconds": 30}, "party": code}
    others = {
        "game": wish | {"game": "clans_and_glory", "options": {}},
        "options": wish | {"options": {}},
        "settings": wish | {"settings": {"moveSeconds": 31}},
    }
    for name, other in others.items():
        refused = await ann.wish(**other)
        assert (refused.status_code, refused.json()["reason"]) == (422, "PARTY_WISH_DIFFERS")
        assert name in refused.json()["detail"]
    ticket = await ann.ticket(**wish)
    # What is left out has its default, and letters may be small.
    again = await ann.wish(**wish | {"settings": {"moveSeconds": 30, "spectators": True}, "party": code.lower()})
    assert (again.status_code, again.json()["id"]) == (200, ticket["id"])
    assert (await ann.wish(**wish, seats=PAIR)).json()["reason"] == "TICKET_EXISTS"
    for other in others.values():
        assert (await ann.wish(**other)).json()["reason"] == "PARTY_WISH_DIFFERS"
    room = (await ann.call("GET", f"/v1/rooms/{code}")).json()
    assert room["ticketId"] == ticket["id"]


def held_up(gateway: Stand) -> asyncio.Event:
    """Has no match made until this is set."""
    create, goes_on = gateway.service.verbs["CreateMatch"], asyncio.Event()

    async def slow(request: Any, context: Context) -> Any:
        await goes_on.wait()
        return await create(request, context)

    gateway.service.verbs["CreateMatch"] = slow
    return goes_on


async def test_while_a_party_s_match_is_being_made_its_room_does_not_change(gateway: Stand) -> None:
    goes_on = held_up(gateway)
    code, (ann, bob) = await party(gateway, "ann", "bob")
    (cat,) = people(gateway, "cat")
    ticket = await ann.ticket(party=code, seats=PAIR, botsAfterSeconds=0)
    path = f"/v1/tickets/{ticket['id']}"
    if ticket["status"] == "WAITING":
        ticket = (await ann.call("GET", f"{path}?wait=10s")).json()
    assert ticket["status"] == "FORMING"
    before = (await ann.call("GET", f"/v1/rooms/{code}")).json()
    assert before["ticketId"] == ticket["id"]
    verbs: list[tuple[Person, str, Any]] = [
        (cat, "join", {}),
        (bob, "leave", {}),
        (ann, "leave", {}),
        (ann, "kick", {"player": "bob"}),
        (ann, "addBot", {}),
        (bob, "ready", {"ready": False}),
        (ann, "start", {}),
    ]
    for person, verb, body in verbs:
        refused = await person.call("POST", f"/v1/rooms/{code}:{verb}", json=body)
        assert (refused.status_code, refused.json()["reason"]) == (422, "TICKET_MATCHED"), verb
    assert (await bob.call("GET", f"/v1/rooms/{code}")).json() == before
    goes_on.set()
    assert (await ann.wait(ticket))["status"] == "MATCHED"
    assert (await bob.call("GET", f"/v1/rooms/{code}")).json()["ticketId"] == ""
    assert (await bob.call("POST", f"/v1/rooms/{code}:leave")).status_code == 200
    assert seated(gateway) == [["ann", "bob"]]


@pytest.mark.parametrize("end", ["CANCELLED", "EXPIRED", "FAILED", "MATCHED"])
async def test_however_a_party_s_ticket_ends_its_room_has_it_no_more_and_its_players_hear_of_it(
    keys: Keys, redis_url: str, redis: Redis, end: str
) -> None:
    async with stand(keys, redis_url, ticket_unseen_seconds=1 if end == "EXPIRED" else 30) as gateway:
        if end == "FAILED":
            await refusing(gateway, Refused("POISONED", "it is poison"))
        goes_on = held_up(gateway)
        code, (ann, bob) = await party(gateway, "ann", "bob")
        storage, heard = Storage(redis_url), list[Any]()
        news = News(storage)
        async with news, news.listen("bob", heard.append):
            ticket = await ann.ticket(party=code, botsAfterSeconds=0 if end in ("FAILED", "MATCHED") else -1, seats={"min": 3, "max": 3})
            if end == "CANCELLED":
                assert (await bob.call("DELETE", f"/v1/tickets/{ticket['id']}")).status_code == 200
            goes_on.set()
            # Once that they look for others, and once that they do not, although nobody looks at the room.
            await eventually(lambda: heard.count(("room", code)) == 2)
            stored: Any = await redis.get(f"gateway:{{room/{code}}}:room")
            assert msgspec.msgpack.decode(stored, type=Room).ticket_id == ""
            assert (await ann.call("GET", f"/v1/tickets/{ticket['id']}")).json()["status"] == end
            assert (await bob.call("GET", f"/v1/rooms/{code}")).json()["ticketId"] == ""
        await storage.close()


# Order and bounds


async def test_nothing_of_matchmaking_is_kept_for_ever(gateway: Stand, redis: Redis) -> None:
    ann, bob, cat = people(gateway, "ann", "bob", "cat")
    tickets = [await person.ticket(seats=PAIR) for person in (ann, bob)]
    await ann.wait(tickets[0])
    gone = await cat.ticket()
    await cat.call("DELETE", f"/v1/tickets/{gone['id']}")
    keys = [key async for key in redis.scan_iter("gateway:{tickets/night_clan}*")]
    assert len(keys) == 4  # three tickets and a match
    assert all([0 < await redis.pttl(key) <= 600_000 for key in keys])


async def test_tickets_are_counted_by_what_became_of_them(gateway: Stand) -> None:
    before = {outcome: outcomes(outcome) for outcome in ("matched", "cancelled")}
    waited = REGISTRY.get_sample_value("gloaming_ticket_seconds_count", {"game": "night_clan"}) or 0
    ann, bob, cat = people(gateway, "ann", "bob", "cat")
    tickets = [await person.ticket(seats=PAIR) for person in (ann, bob)]
    await ann.wait(tickets[0])
    gone = await cat.ticket()
    for _ in range(2):
        await cat.call("DELETE", f"/v1/tickets/{gone['id']}")
    assert {outcome: outcomes(outcome) - count for outcome, count in before.items()} == {"matched": 2, "cancelled": 1}
    assert (REGISTRY.get_sample_value("gloaming_ticket_seconds_count", {"game": "night_clan"}) or 0) - waited == 2


@pytest.mark.parametrize("text", ["", "5:100", "0:100,5:100", "0:200,5:100", "0:100,0:200", "0:any,5:100", "0:x", "0:100,", "any"])
def test_bands_that_do_not_widen_are_refused(keys: Keys, text: str) -> None:
    from pydantic import ValidationError

    from gateway.registry import GAMES
    from gateway.settings import GatewaySettings

    fields = {"jwks_file": keys.jwks, "signing_key_file": keys.pem, "services": dict.fromkeys(GAMES, "x:1"), "ticket_bands": text}
    with pytest.raises(ValidationError, match="ticket_bands"):
        GatewaySettings.model_validate(fields)


def test_bands_are_read_in_milliseconds() -> None:
    assert bands("0:100,2.5:200,20:any") == ((0, 100), (2500, 200), (20_000, None))


# The forming script, against what it should do.

UNSEEN, PATIENCE, STEPS = 30_000, 10_000, ((0, 100), (5_000, 200), (10_000, 400), (20_000, None))


@st.composite
def waiting(draw: st.DrawFn) -> dict[str, Any]:
    """A ticket as it may be stored; times in ms before now."""
    low = draw(st.integers(2, 4))
    high = draw(st.integers(low, 4))
    return {
        "size": draw(st.sampled_from([1, 1, 1, 2, 3])),
        "min": low,
        "max": high,
        "rating": draw(st.sampled_from([1200, 1390, 1450, 1500, 1500, 1500, 1560, 1800])),
        "age": draw(st.sampled_from([2_000, 7_000, 12_000, 25_000])),
        "unseen": draw(st.sampled_from([0, 0, 0, 0, 60_000])),
        "bots": draw(st.sampled_from([None, 0, 5_000, 15_000])),
    }


class Model:
    """What the script has to keep, and when it has to find a match."""

    def __init__(self, tickets: dict[str, dict[str, Any]]) -> None:
        self.tickets = {name: ticket for name, ticket in tickets.items() if ticket["size"] <= ticket["max"]}

    def band(self, name: str) -> float:
        age, widest = self.tickets[name]["age"], 0.0
        for since, band in STEPS:
            if age >= since:
                widest = float("inf") if band is None else band
        return widest

    def seen(self, name: str) -> bool:
        return bool(self.tickets[name]["unseen"] <= UNSEEN)

    def near(self, one: str, other: str) -> bool:
        far = abs(self.tickets[one]["rating"] - self.tickets[other]["rating"])
        return bool(far <= min(self.band(one), self.band(other)))

    def bots_due(self, name: str) -> bool:
        ticket = self.tickets[name]
        return bool(ticket["bots"] is not None and ticket["age"] >= ticket["bots"])

    def patient(self, name: str) -> bool:
        return bool(self.tickets[name]["age"] < PATIENCE and not self.bots_due(name))

    def good(self, seed: str, group: set[str], bots: int) -> bool:
        """Whether these may play together, found by one of them."""
        those = [self.tickets[name] for name in group]
        seats = sum(ticket["size"] for ticket in those) + bots
        fits = all(ticket["min"] <= seats <= ticket["max"] for ticket in those)
        full = all(ticket["max"] == seats for ticket in those)
        if bots:
            agreed = all(map(self.bots_due, group)) and seats == self.tickets[seed]["min"]
        else:
            agreed = full or not all(map(self.patient, group))
        return fits and agreed and all(map(self.seen, group)) and all(self.near(seed, name) for name in group)

    def groups(self, seed: str) -> list[tuple[int, int]]:
        """Every good match of a ticket: how many players, how many bots."""
        from itertools import combinations

        others = [name for name in self.tickets if name != seed]
        found = []
        for count in range(4):
            for some in combinations(others, count):
                group = {seed, *some}
                size = sum(self.tickets[name]["size"] for name in group)
                if size <= self.tickets[seed]["max"]:
                    found += [(size, bots) for bots in range(4) if self.good(seed, group, bots)]
        return found


@settings(max_examples=150, deadline=None)
@given(tickets=st.lists(waiting(), min_size=1, max_size=7))
def test_a_match_is_formed_whenever_there_is_one_and_only_of_who_may_meet(redis_url: str, tickets: list[dict[str, Any]]) -> None:
    model = Model({f"t{n}": ticket for n, ticket in enumerate(tickets)})
    form = (LUA / "ticket_form.lua").read_text()
    with BlockingRedis.from_url(redis_url, decode_responses=True) as redis:
        redis.flushdb()
        seconds, micros = redis.time()
        now = seconds * 1000 + micros // 1000
        for name, ticket in model.tickets.items():
            created = now - ticket["age"]
            fields = {
                "status": "WAITING",
                "version": 1,
                "wish": "w",
                "players": " ".join(f"{name}p{n}" for n in range(ticket["size"])),
                "size": ticket["size"],
                "min": ticket["min"],
                "max": ticket["max"],
                "rating": ticket["rating"],
                "created": created,
                "seen": now - ticket["unseen"],
                "bots": -1 if ticket["bots"] is None else created + ticket["bots"],
            }
            redis.hset(f"{BASE}:ticket:{name}", mapping=fields)
            redis.zadd(f"{BASE}:queue:w", {name: ticket["rating"]})
            redis.zadd(f"{BASE}:due", {name: now})
        taken: set[str] = set()
        steps = [value for since, band in STEPS for value in (since, -1 if band is None else band)]
        for seed in list(model.tickets):
            match_id = secrets.token_hex(4)
            arguments = [seed, match_id, UNSEEN, PATIENCE, 10_000, 64, 5_000, *steps]
            before = redis.hgetall(f"{BASE}:ticket:{seed}")
            said = redis.eval(form, 1, BASE, *arguments)
            possible = model.groups(seed) if seed in model.tickets else []
            if seed in taken:
                assert said == ["GONE"]
            elif not model.seen(seed):
                assert said == ["STALE"]
                assert redis.hgetall(f"{BASE}:ticket:{seed}") == before
            elif said[0] == "WAITING":
                assert possible == []
                assert 0 < said[1] <= 10_000
            else:
                assert said == ["FORMED"]
                assert redis.eval(form, 1, BASE, *arguments) == said  # a retry
                match = redis.hgetall(f"{BASE}:match:{match_id}")
                group, bots = match["tickets"].split(), int(match["bots"])
                assert len(set(group)) == len(group)
                assert not taken & set(group)
                assert model.good(seed, set(group), bots)
                # The most without bots, and the fewest bots with.
                size = sum(model.tickets[name]["size"] for name in group)
                assert (bots == 0, size) == max((other == 0, players) for players, other in possible)
                for name in group:
                    assert redis.hmget(f"{BASE}:ticket:{name}", "status", "match") == ["FORMING", match_id]
                    assert redis.zscore(f"{BASE}:queue:w", name) is None
                    assert redis.zscore(f"{BASE}:due", name) is None
                    del model.tickets[name]
                taken |= set(group)
                model_names = set(redis.zrange(f"{BASE}:queue:w", 0, -1))
                assert model_names == set(model.tickets)
