"""Guests who have not been seen for long are forgotten, with all they own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import Redis

from gateway.answers import Answers
from gateway.guests import Guests, Pace
from gateway.players import Players, guests_key, guests_keys
from gateway.ratings import Ratings
from gateway.tokens import Signer
from gateway.upstream import Services
from gloaming.relay.v1 import relay_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import Unavailable
from services.kit.identity import Identity
from services.kit.storage import Storage
from tests.gateway.stand import Stand, match, targets
from tests.harness import Keys, eventually

QUICK = Pace(sweep=0.02, lease=0.1, playing=0.2, most=3)
UNSEEN = 1.0


class Sweeper:
    """What a gateway forgets guests with, by itself."""

    def __init__(self, keys: Keys, storage: Storage, services: Services, seconds: float) -> None:
        identity = Identity.from_file(keys.jwks, storage)
        self.players = Players(storage, identity, Signer(keys.pem), Answers(storage), access_seconds=900, refresh_seconds=3600)
        self.forgotten: list[str] = []
        self.players.forgetting = (self._note,)
        self.guests = Guests(storage, services, self.players, seconds=seconds, pace=QUICK)

    async def _note(self, player: str) -> None:
        self.forgotten.append(player)


@asynccontextmanager
async def sweeper(keys: Keys, gateway: Stand, seconds: float = UNSEEN) -> AsyncIterator[Sweeper]:
    storage = Storage(gateway.settings.redis_url)
    async with Services(targets(f"127.0.0.1:{gateway.service.port}"), 2.0) as services:
        yield Sweeper(keys, storage, services, seconds)
    await storage.close()


async def guest(gateway: Stand) -> tuple[str, dict[str, Any]]:
    session = await gateway.sign_in("Ann")
    return session["player"]["id"], session


async def keys_of(redis: Redis, player: str) -> set[str]:
    """The keys that name a player."""
    keys: Any = await redis.keys("*")
    return {key.decode() for key in keys if player.encode() in key}


async def is_indexed(redis: Redis, player: str) -> bool:
    return await redis.zscore(guests_key(player), player) is not None


async def test_an_unseen_guest_is_forgotten_with_all_they_own(gateway: Stand, keys: Keys, redis: Redis) -> None:
    player, session = await guest(gateway)
    await gateway.http.post("/v1/rooms", json={"game": "night_clan"})
    seats = [table_pb2.Seat(seat=0, player=player), table_pb2.Seat(seat=1, bot=table_pb2.Bot.STANDARD)]
    result = relay_pb2.Result(match_id="night_clan-abcdefghij", seats=seats, outcome=table_pb2.Outcome(ranks=[1, 2], winners=[0]))
    storage = Storage(gateway.settings.redis_url)
    await Ratings(storage).count("night_clan", result, [player])
    await storage.close()
    async with sweeper(keys, gateway) as it:
        await asyncio.sleep(UNSEEN)
        assert await it.guests.sweep() == 1
        assert await it.guests.sweep() == 0
        assert it.forgotten == [player]
    assert (await gateway.http.get(f"/v1/players/{player}")).status_code == 404
    assert (await gateway.http.get("/v1/players/me")).json()["reason"] == "TOKEN_REVOKED"
    assert (await gateway.http.post("/v1/players:refresh", json={"refreshToken": session["refreshToken"]})).status_code == 401
    assert await redis.zcard("gateway:{ratings/night_clan}:board") == 0
    # Rooms are what the gateway that is told to forget leaves: here that is a note.
    left = await keys_of(redis, player)
    assert left == {f"gateway:revoked:{player}", f"gateway:{{{player}}}:rooms"}
    assert not await is_indexed(redis, player)


async def test_a_gateway_forgets_guests_by_itself(keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway import app
    from tests.gateway.stand import stand

    monkeypatch.setattr(app, "Guests", lambda *args, **more: Guests(*args, **more, pace=QUICK))
    async with stand(keys, redis_url, guest_days=1 / 86_400, access_token_seconds=1) as gateway:
        player, _ = await guest(gateway)
        room = (await gateway.http.post("/v1/rooms", json={"game": "night_clan"})).json()["code"]
        await eventually(lambda: _gone(redis, player))
        await eventually(lambda: _unindexed(redis, player))
        assert await keys_of(redis, player) == {f"gateway:revoked:{player}"}
        other = await gateway.sign_in("Bob")
        assert (await gateway.http.get(f"/v1/rooms/{room}")).status_code == 404
        assert other["player"]["id"] != player


async def _gone(redis: Redis, player: str) -> bool:
    return not await redis.exists(f"gateway:{{{player}}}:player")


async def _unindexed(redis: Redis, player: str) -> bool:
    return not await is_indexed(redis, player)


async def test_whoever_refreshes_is_seen(gateway: Stand, keys: Keys) -> None:
    player, session = await guest(gateway)
    async with sweeper(keys, gateway) as it:
        await asyncio.sleep(UNSEEN)
        await gateway.http.post("/v1/players:refresh", json={"refreshToken": session["refreshToken"]})
        assert await it.guests.sweep() == 0
    assert (await gateway.http.get(f"/v1/players/{player}")).status_code == 200


async def test_a_guest_who_comes_back_while_a_gateway_is_about_to_forget_them_stays(
    gateway: Stand, keys: Keys, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    player, session = await guest(gateway)
    async with sweeper(keys, gateway) as it:
        await asyncio.sleep(UNSEEN)
        is_playing = it.guests._is_playing

        async def come_back(who: str) -> bool:
            await gateway.http.post("/v1/players:refresh", json={"refreshToken": session["refreshToken"]})
            return await is_playing(who)

        monkeypatch.setattr(it.guests, "_is_playing", come_back)
        assert await it.guests.sweep() == 0
        assert it.forgotten == []
    assert (await gateway.http.get("/v1/players/me")).status_code == 200
    assert await is_indexed(redis, player)


async def test_a_guest_with_a_match_going_is_left_alone_until_it_is_over(gateway: Stand, keys: Keys, redis: Redis) -> None:
    player, _ = await guest(gateway)
    made = (await gateway.http.post("/v1/matches", json={"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}]})).json()
    async with sweeper(keys, gateway) as it:
        await asyncio.sleep(UNSEEN)
        assert await it.guests.sweep() == 0
        gateway.service.matches[made["id"]] = match(made["id"], status=table_pb2.FINISHED)
        await eventually(it.guests.sweep)
        assert it.forgotten == [player]
        assert not await is_indexed(redis, player)


async def test_a_guest_whose_matches_cannot_be_asked_for_is_left_alone(gateway: Stand, keys: Keys) -> None:
    player, _ = await guest(gateway)
    await gateway.http.post("/v1/matches", json={"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}]})
    async with sweeper(keys, gateway) as it:
        await asyncio.sleep(UNSEEN)
        await gateway.service.stop()
        assert await it.guests.sweep() == 0
        await gateway.service.start()
        gateway.service.matches.clear()
        await eventually(it.guests.sweep)
        assert it.forgotten == [player]


async def test_what_was_cut_short_is_gone_on_with_by_another_gateway(gateway: Stand, keys: Keys, redis: Redis) -> None:
    player, _ = await guest(gateway)
    async with sweeper(keys, gateway) as one, sweeper(keys, gateway) as other:
        await asyncio.sleep(UNSEEN)

        async def die(who: str) -> None:
            raise Unavailable("STORAGE_UNAVAILABLE", "as if it were killed here")

        one.players.forgetting = (die,)
        assert await one.guests.sweep() == 0
        assert await _gone(redis, player)
        assert await is_indexed(redis, player)
        await eventually(other.guests.sweep)
        assert other.forgotten == [player]
        assert not await is_indexed(redis, player)


async def test_many_gateways_forget_each_guest_once(gateway: Stand, keys: Keys, redis: Redis) -> None:
    players = {(await guest(gateway))[0] for _ in range(40)}
    async with AsyncExitStack() as stack:
        sweepers = [await stack.enter_async_context(sweeper(keys, gateway)) for _ in range(4)]
        for it in sweepers:
            it.guests._pace = Pace(most=3)  # a lease longer than the test
        await asyncio.sleep(UNSEEN)
        assert sum(await asyncio.gather(*(it.guests.sweep() for it in sweepers))) == len(players)
        assert sorted(player for it in sweepers for player in it.forgotten) == sorted(players)
    assert not [key for key in guests_keys() if await redis.zcard(key)]
