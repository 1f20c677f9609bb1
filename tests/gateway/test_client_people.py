"""The Python client's rooms, tickets, profiles and limits, against a real gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from gloaming.client import Client, ProblemError
from gloaming.gateway.v1 import gateway_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.table.v1 import table_pb2
from tests.gateway.stand import Stand, match, stand
from tests.harness import Keys


@pytest.fixture
async def ann(served: Stand) -> AsyncIterator[Client]:
    async with Client(str(served.http.base_url)) as client:
        await client.sign_in("Ann")
        yield client


async def _made(request: Any, context: Any) -> night_clan_pb2.Match:
    return match(request.match_id, version=1)


async def test_a_room_is_opened_filled_watched_and_started(served: Stand, ann: Client) -> None:
    async with Client(str(served.http.base_url)) as bob:
        await bob.sign_in("Bob")
        options = night_clan_pb2.Options(variant=night_clan_pb2.Options.DAY)
        room = await ann.game(night_clan_pb2).create_room(seats=4, options=options, settings=table_pb2.Settings(move_seconds=0))
        assert night_clan_pb2.Options.FromString(room.options) == options
        watching = bob.rooms.watch(room.code)
        assert len((await anext(watching)).members) == 1
        assert [member.name for member in (await bob.rooms.join(room.code)).members] == ["Ann", "Bob"]
        assert len((await anext(watching)).members) == 2
        with pytest.raises(ProblemError, match="NOT_READY"):
            await ann.rooms.start(room.code)
        assert (await bob.rooms.ready(room.code)).members[1].ready
        assert not (await bob.rooms.ready(room.code, False)).members[1].ready
        await bob.rooms.ready(room.code)
        assert len((await ann.rooms.add_bot(room.code)).members) == 3
        assert len((await ann.rooms.remove_bot(room.code)).members) == 2
        served.service.verbs["CreateMatch"] = _made
        started = await ann.rooms.start(room.code)
        assert (started.status, started.match_id[:10]) == (gateway_pb2.Room.STARTED, "night_clan")
        *_, last = [room async for room in watching]
        assert last == started


async def test_whoever_is_sent_out_of_a_room_may_not_come_back_and_an_empty_room_ends(served: Stand, ann: Client) -> None:
    async with Client(str(served.http.base_url)) as bob:
        player = await bob.sign_in("Bob")
        room = await ann.game(night_clan_pb2).create_room()
        await bob.rooms.join(room.code)
        watching = ann.rooms.watch(room.code)
        await anext(watching)
        await ann.rooms.kick(room.code, player.id)
        assert len((await anext(watching)).members) == 1
        with pytest.raises(ProblemError, match="KICKED"):
            await bob.rooms.join(room.code)
        await ann.rooms.leave(room.code)
        assert [room async for room in watching] == []
        with pytest.raises(ProblemError, match="ROOM_NOT_FOUND"):
            _ = [room async for room in ann.rooms.watch(room.code)]


async def test_two_tickets_become_one_match_and_tell_of_it(served: Stand, ann: Client) -> None:
    served.service.verbs["CreateMatch"] = _made
    async with Client(str(served.http.base_url)) as bob:
        await bob.sign_in("Bob")
        wish: dict[str, Any] = {"seats": (2, 2), "settings": table_pb2.Settings(rated=True), "bots_after_seconds": -1}
        ticket = await ann.game(night_clan_pb2).create_ticket(**wish)
        assert (await ann.game(night_clan_pb2).create_ticket(**wish)).id == ticket.id
        watching = ann.tickets.watch(ticket.id)
        assert "Looking for 1 other" in (await anext(watching)).explanation.summary
        matched = await bob.tickets.matched((await bob.game(night_clan_pb2).create_ticket(**wish)).id)
        assert matched.status == gateway_pb2.Ticket.MATCHED
        *_, last = [ticket async for ticket in watching]
        assert (last.status, last.match_id) == (gateway_pb2.Ticket.MATCHED, matched.match_id)
        with pytest.raises(ProblemError, match="TICKET_MATCHED"):
            await ann.tickets.cancel(ticket.id)


async def test_a_ticket_is_waited_for_looked_at_and_cancelled(served: Stand, ann: Client) -> None:
    async with ann.live() as live:
        told = live.tickets()
        ticket = await ann.game(night_clan_pb2).create_ticket(bots_after_seconds=-1)
        assert (await ann.tickets.get(ticket.id, wait=0.2)).status == gateway_pb2.Ticket.WAITING
        assert (await ann.tickets.cancel(ticket.id)).status == gateway_pb2.Ticket.CANCELLED
        while (await anext(told)).status != gateway_pb2.Ticket.CANCELLED:
            pass
        assert (await ann.tickets.matched(ticket.id)).status == gateway_pb2.Ticket.CANCELLED


async def test_profiles_the_leaderboard_and_a_games_schemas_are_read(served: Stand, ann: Client) -> None:
    assert (await ann.profile(ann.player.id)).name == "Ann"
    assert [entry async for entry in ann.game(night_clan_pb2).leaderboard()] == []
    described = await ann.describe("night_clan")
    assert (described.seats.max, len(described.schemas.move.fields) > 0) == (4, True)
    with pytest.raises(ProblemError, match="GAME_NOT_FOUND"):
        await ann.describe("chess")
    await ann.forget_me()
    assert ann.session is None


async def test_429_is_waited_for_as_long_as_it_says_and_no_longer_than_bearable(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with stand(keys, redis_url, on_socket=True, limit_making="60:1") as it, Client(str(it.http.base_url)) as client:
        await client.sign_in("Ann")
        game = client.game(night_clan_pb2)
        began = asyncio.get_running_loop().time()
        await game.create_room()
        await game.create_room()
        assert asyncio.get_running_loop().time() - began > 0.9
    async with stand(keys, redis_url, on_socket=True, limit_making="1:1") as it, Client(str(it.http.base_url)) as client:
        await client.sign_in("Bob")
        game = client.game(night_clan_pb2)
        await game.create_room()
        impatient = Client(str(it.http.base_url), session=client.session, attempts=1)
        with pytest.raises(ProblemError) as problem:
            await impatient.game(night_clan_pb2).create_room()
        assert problem.value.status == 429
        assert problem.value.retry_after is not None
        assert 50 < problem.value.retry_after <= 60
        await impatient.close()


async def test_the_clock_of_this_machine_may_be_wrong(served: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def note(request: httpx.Request) -> None:
        asked.append(request.url.path)

    async with httpx.AsyncClient(event_hooks={"request": [note]}) as http, Client(str(served.http.base_url), http=http) as client:
        real = time.time
        monkeypatch.setattr("gloaming.client.connection.time.time", lambda: real() + 3600)
        await client.sign_in("Ann")
        await client.me()
        await client.me()
    assert asked == ["/v1/players", "/v1/players/me", "/v1/players/me"]
