"""A Redis whose memory is full (`noeviction`): what would write is refused and nothing is half done, what reads goes on, and all goes on by
itself as soon as there is room."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from deploy.local import Local
from gloaming.live.v1 import live_pb2
from gloaming.night_knight.v1 import night_knight_pb2 as pb
from services.night_knight.game import GAME as NIGHT_KNIGHT
from tests import unlimited
from tests.e2e.test_live import hall_of
from tests.e2e.test_ratings import client, until
from tests.harness import NAMES, lines
from tests.live import live

ME_AND_BOT = [{"player": "me"}, {"bot": "STANDARD"}]
OUTAGE_SECONDS = 0.5
ENV = {
    "REDIS_URL": "",
    "GLOAMING_BOT_DELAY_MS": "0",
    "GLOAMING_SWEEP_MS": "100",
    "GLOAMING_OUTAGE_MS": str(int(OUTAGE_SECONDS * 1000)),
    "GLOAMING_TICKET_PATIENCE_SECONDS": "0",
    **unlimited.ENVIRONMENT,
}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """The whole, on a Redis of its own."""
    with Local(tmp_path_factory.mktemp("full"), replicas=2, gateways=2, env=ENV) as it:
        yield it


@pytest.fixture
async def redis(local: Local) -> AsyncIterator[Redis]:
    """Its Redis; nothing of a test before is left to do."""
    async with Redis.from_url(local.redis_url) as it:
        await it.config_set("maxmemory", 0)
        yield it
        await it.config_set("maxmemory", 0)


@asynccontextmanager
async def full(redis: Redis) -> AsyncIterator[None]:
    """Has Redis be full meanwhile."""
    await redis.config_set("maxmemory", 1)
    try:
        yield
    finally:
        await redis.config_set("maxmemory", 0)


async def everything_in(redis: Redis) -> dict[bytes, Any]:
    """What every key holds."""
    keys: Any = await redis.keys()
    return {key: await redis.dump(key) for key in sorted(keys)}


class Asking:
    """Somebody who asks over REST, and hears what was answered."""

    def __init__(self, http: httpx.AsyncClient, session: dict[str, Any]) -> None:
        self.player: str = session["player"]["id"]
        self.refresh_token: str = session["refreshToken"]
        self.token: str = session["accessToken"]
        self._http = http

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """One request."""
        sent = {"Authorization": f"Bearer {self.token}", **{name.replace("_", "-"): value for name, value in headers.items()}}
        return await self._http.request(method, path, json=body, headers=sent)

    async def done(self, method: str, path: str, body: Any = None) -> Any:
        """One request, again under the same key while the storage is unavailable."""
        key = secrets.token_hex(18)
        async with asyncio.timeout(30):
            while True:
                answer = await self.ask(method, path, body, **({"Idempotency_Key": key} if method == "POST" else {}))
                if answer.status_code != 503:
                    break
                assert is_full(answer), answer.text
                await asyncio.sleep(0.02)
        assert answer.is_success, (method, path, answer.text)
        return answer.json()


def is_full(answer: httpx.Response) -> bool:
    """Whether it is the problem that says so."""
    return (
        answer.status_code == 503
        and answer.headers["content-type"] == "application/problem+json"
        and answer.json()["reason"] == "STORAGE_UNAVAILABLE"
        and int(answer.headers["retry-after"]) > 0
    )


async def newcomer(http: httpx.AsyncClient, name: str) -> Asking:
    """Somebody signed in."""
    answer = await http.post("/v1/players", json={"name": name})
    assert answer.status_code == 201, answer.text
    return Asking(http, answer.json())


def faults(local: Local) -> list[dict[str, Any]]:
    """What the processes have logged of faults that nobody foresaw."""
    return [line for log in local.logs.glob("*.log") for line in lines(log) if line.get("level") in ("error", "critical")]


async def test_what_would_write_is_refused_and_changes_nothing_and_what_reads_goes_on(local: Local, redis: Redis) -> None:
    async with client(local.urls[0]) as http:
        ann, bob = await newcomer(http, "Ann"), await newcomer(http, "Bob")
        made = {"game": "night_clan", "seats": ME_AND_BOT, "settings": {"moveSeconds": 0}, "order": "AS_LISTED"}
        path = f"/v1/matches/{(await ann.ask('POST', '/v1/matches', made)).json()['id']}"
        over = (await ann.ask("POST", "/v1/matches", made)).json()["id"]
        await ann.ask("POST", f"/v1/matches/{over}:resign", {})
        room, other = [(await ann.ask("POST", "/v1/rooms", {"game": "night_clan", "seats": 2})).json()["code"] for _ in range(2)]
        ticket = {"game": "clans_and_glory", "seats": {"min": 2, "max": 2}}
        (move, *_) = (await ann.ask("GET", f"{path}/moves")).json()["moves"]
        writes: list[tuple[Asking, str, str, Any]] = [
            (ann, "POST", "/v1/players", {"name": "Cat"}),
            (ann, "POST", "/v1/players:refresh", {"refreshToken": ann.refresh_token}),
            (ann, "PATCH", "/v1/players/me", {"name": "Anna"}),
            (ann, "POST", "/v1/matches", made),
            (ann, "POST", f"{path}/moves", {"move": move}),
            (ann, "POST", f"/v1/matches/{over}:rematch", {}),
            (ann, "POST", f"{path}:resign", {}),
            (bob, "POST", "/v1/rooms", {"game": "night_clan", "seats": 2}),
            (bob, "POST", f"/v1/rooms/{room}:join", {}),
            (ann, "POST", f"/v1/rooms/{other}:addBot", {}),
            (ann, "POST", "/v1/tickets", ticket),
            (bob, "POST", "/v1/players/me:signOut", {}),
        ]
        await until(lambda: _counted(redis))
        await until(lambda: _to_move(ann, path))
        match = (await ann.ask("GET", path)).json()
        async with full(redis):
            before = await everything_in(redis)
            for key in ({}, {"Idempotency_Key": "k" * 32}):
                for person, method, where, body in writes:
                    answer = await person.ask(method, where, body, **key)
                    assert is_full(answer), (method, where, answer.status_code, answer.text)
            reads = [path, f"{path}/moves", f"{path}/events", "/v1/players/me", "/v1/players/me/matches", f"/v1/rooms/{room}", "/v1/games"]
            for where in reads:
                assert (await ann.ask("GET", where)).status_code == 200, where
            assert (await ann.ask("GET", path)).json()["version"] == match["version"]
            assert (await http.get("/readyz")).status_code == 200
            after = await everything_in(redis)
            assert {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} == set()
        # The same again, under the same keys, as soon as there is room: each is done, and what is left is to be played.
        for person, method, where, body in writes:
            if not where.endswith((":resign", ":rematch")):
                answer = await person.ask(method, where, body, Idempotency_Key="k" * 32)
                assert answer.is_success, (method, where, answer.text)
        assert (await ann.ask("GET", path)).json()["version"] > match["version"]
        assert (await bob.ask("GET", "/v1/players/me")).json()["reason"] == "TOKEN_REVOKED"
    assert faults(local) == []


async def _to_move(person: Asking, path: str) -> bool:
    """Whether the bot has done what it does by itself, and waits."""
    return bool((await person.ask("GET", path)).json()["toMove"] == [0])


async def _counted(redis: Redis) -> bool:
    """Whether no result waits to be counted, which would go on by itself."""
    return not await redis.zcard("night_clan:{results}:due")


async def test_a_reaction_is_refused_counts_once_when_it_is_sent_again_and_the_round_goes_on(local: Local, redis: Redis) -> None:
    async with hall_of(local) as hall:
        options = pb.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=30_000)
        match_id = await hall.create(NIGHT_KNIGHT, NAMES[:3], options)
        async with live(hall.live_urls[0], hall.token("ann")) as ann, live(hall.live_urls[1], hall.token("bob")) as bob:
            for socket in (ann, bob):
                assert (await socket.watch(match_id)).HasField("result")
            number = NIGHT_KNIGHT.message("Match").FromString((await ann.next("snapshot")).match).view.round
            react = pb.Move(react=pb.React(round=number, action="SLEEP"))
            async with full(redis):
                before = await _decided(redis, match_id)
                for _ in range(2):
                    problem = (await ann.move(match_id, react, "grab")).problem
                    assert (problem.status, problem.reason) == (503, "STORAGE_UNAVAILABLE")
                assert await _decided(redis, match_id) == before
            made = await ann.move(match_id, react, "grab")
            assert made.HasField("result"), made
            assert (await ann.move(match_id, react, "grab")).result.version == made.result.version
            told = await bob.take(_reacted)
            reacted = NIGHT_KNIGHT.message("Event").FromString(told.event.event).reacted
            assert (reacted.seat, reacted.rank) == (0, 1)
        told_all = await hall.told(NIGHT_KNIGHT, match_id)
        assert sum(event.event.HasField("reacted") for event in told_all) == 1
    assert faults(local) == []


async def _decided(redis: Redis, match_id: str) -> Any:
    """What is stored of a match but who is there: to note that somebody has gone makes room, and so is not refused."""
    match, events, present = (f"night_knight:{{{match_id}}}:{name}".encode() for name in ("match", "events", "present"))
    found = await everything_in(redis)
    assert match in found
    rest = {key: value for key, value in found.items() if match_id.encode() in key and key not in (match, events, present)}
    return await redis.hmget(match, ["version", "state"]), rest


def _reacted(message: live_pb2.ServerMessage) -> bool:
    return message.HasField("event") and bool(NIGHT_KNIGHT.message("Event").FromString(message.event.event).HasField("reacted"))


async def test_a_clock_that_ran_out_meanwhile_is_credited_and_played_as_soon_as_there_is_room(local: Local, redis: Redis) -> None:
    async with client(local.urls[0]) as http:
        ann = await newcomer(http, "Ann")
        made = {"game": "clans_and_glory", "seats": ME_AND_BOT, "settings": {"moveSeconds": 2, "startSeconds": 0}, "order": "AS_LISTED"}
        match = (await ann.ask("POST", "/v1/matches", made)).json()
        path = f"/v1/matches/{match['id']}"
        async with full(redis):
            # Until its time is over, and nobody can say so.
            await until(lambda: _is_past(redis, match["deadline"]))
            assert (await ann.ask("GET", path)).json()["version"] == match["version"]

        async def next_version() -> Any:
            found = (await ann.ask("GET", f"{path}/events")).json()["events"]
            return next((event for event in found if event["version"] > match["version"]), None)

        async with asyncio.timeout(10):
            await until(next_version)
        # It had its two seconds, less what it had had before.
        assert _seconds((await next_version())["time"]) > _seconds(match["deadline"]) + 1
    assert faults(local) == []


async def _is_past(redis: Redis, moment: str) -> bool:
    seconds, micros = await redis.time()
    return bool(seconds + micros / 1e6 > _seconds(moment))


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


@pytest.mark.slow
async def test_a_memory_that_is_full_now_and_then_loses_nothing_and_does_nothing_twice(local: Local, redis: Redis) -> None:
    chance = random.Random(1)

    async def flicker() -> None:
        for _ in range(100):
            async with full(redis):
                await asyncio.sleep(chance.uniform(0.005, 0.05))
            await asyncio.sleep(chance.uniform(0.005, 0.05))

    async def play(http: httpx.AsyncClient, game: str, pair: tuple[Asking, Asking]) -> None:
        code = (await pair[0].done("POST", "/v1/rooms", {"game": game, "seats": 2}))["code"]
        await pair[1].done("POST", f"/v1/rooms/{code}:join", {})
        for person in pair:
            await person.done("POST", f"/v1/rooms/{code}:ready", {})
        of_room = (await pair[0].done("POST", f"/v1/rooms/{code}:start", {}))["matchId"]
        await pair[0].done("POST", f"/v1/matches/{of_room}:resign", {})
        wish = {"game": game, "seats": {"min": 2, "max": 2}, "settings": {"rated": True, "moveSeconds": 0}}
        tickets = [await person.done("POST", "/v1/tickets", wish) for person in pair]
        (match_id,) = {await matched(person, ticket["id"]) for person, ticket in zip(pair, tickets, strict=True)}
        path, moves = f"/v1/matches/{match_id}", 0
        while (await pair[0].done("GET", path))["status"] != "FINISHED":
            for person in pair:
                if legal := (await person.done("GET", f"{path}/moves"))["moves"]:
                    await person.done("POST", f"{path}/moves", {"move": legal[0]})
                    moves += 1
        assert len((await pair[0].done("GET", f"{path}/record"))["moves"]) == moves
        for person in pair:
            mine = [each["id"] for each in (await person.done("GET", "/v1/players/me/matches"))["matches"]]
            assert mine == [match_id, of_room]
            await until(lambda person=person: _has_counted(person, game))  # type: ignore[misc]

    async with client(local.urls[0]) as http:
        games = ["night_clan", "clans_and_glory"]
        pairs = [(await newcomer(http, "Ann"), await newcomer(http, "Bob")) for _ in games]
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            tasks.create_task(flicker())
            for game, pair in zip(games, pairs, strict=True):
                tasks.create_task(play(http, game, pair))
    assert faults(local) == []


async def matched(person: Asking, ticket_id: str) -> str:
    """The match of a ticket."""
    async with asyncio.timeout(20):
        while (ticket := await person.done("GET", f"/v1/tickets/{ticket_id}?wait=5s"))["status"] != "MATCHED":
            assert ticket["status"] in ("WAITING", "FORMING"), ticket
    return str(ticket["matchId"])


async def _has_counted(person: Asking, game: str) -> bool:
    ratings = (await person.done("GET", "/v1/players/me"))["ratings"]
    return any(rating["game"] == game and rating["matches"] == 1 for rating in ratings)
