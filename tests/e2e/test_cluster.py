"""Everything on a Redis Cluster of three masters, where no script may have keys in two slots."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from redis.asyncio import Redis

from deploy.local import Local
from gateway.registry import GAMES
from gloaming.live.v1 import live_pb2
from services.night_clan.game import GAME as NIGHT_CLAN
from services.night_knight.game import GAME as NIGHT_KNIGHT
from tests import unlimited
from tests.e2e.test_full import faults, newcomer
from tests.e2e.test_live import Hall, Knights, Sitting, hall_of, places, public, racing
from tests.e2e.test_ratings import Person, client, until
from tests.harness import NAMES, Refused
from tests.soak.reactions import Found, held
from tests.topologies import MASTERS, Cluster, running_one


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster."""
    it = Cluster(tmp_path_factory.mktemp("cluster"))
    with running_one(it):
        yield it


@pytest.fixture(scope="module")
def local(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """The whole on it, with two gateways."""
    env = {"REDIS_URL": cluster.url, "GLOAMING_BOT_DELAY_MS": "0", "GLOAMING_TICKET_PATIENCE_SECONDS": "0", **unlimited.ENVIRONMENT}
    with Local(tmp_path_factory.mktemp("on-a-cluster"), gateways=2, env=env) as it:
        yield it


@pytest.mark.parametrize("game", sorted(set(GAMES) - {"night_knight"}))
async def test_people_find_each_other_play_and_are_rated_on_three_masters(local: Local, game: str) -> None:
    async with client(local.urls[0]) as http, client(local.urls[1]) as elsewhere:
        ann, bob = await Person.sign_in(http, "Ann"), await Person.sign_in(elsewhere, "Bob")
        # A room, and whoever joins it by its code at the other gateway.
        unrated = await ann.match_with(bob, game, rated=False)
        await ann.ask("POST", f"/v1/matches/{unrated}:resign", {})
        again = await ann.ask("POST", f"/v1/matches/{unrated}:rematch", {})
        assert again["id"] != unrated
        # Tickets.
        wish = {"game": game, "seats": {"min": 2, "max": 2}, "settings": {"rated": True}}
        tickets = [await person.ask("POST", "/v1/tickets", wish) for person in (ann, bob)]
        (match_id,) = {await _matched(person, ticket["id"]) for person, ticket in zip((ann, bob), tickets, strict=True)}
        rng = random.Random(game)
        while (match := await ann.ask("GET", f"/v1/matches/{match_id}"))["status"] != "FINISHED":
            for person in (ann, bob):
                if moves := (await person.ask("GET", f"/v1/matches/{match_id}/moves"))["moves"]:
                    await person.ask("POST", f"/v1/matches/{match_id}/moves", {"move": rng.choice(moves)})
        assert match["outcome"]
        assert (await bob.ask("GET", f"/v1/matches/{match_id}/record"))["moves"]
        assert match_id in [each["id"] for each in (await bob.ask("GET", "/v1/players/me/matches"))["matches"]]
        # Counted once for both.
        await until(lambda: ann.counted(game))
        assert [await person.counted(game) for person in (ann, bob)] == [1, 1]
        board = await ann.ask("GET", f"/v1/games/{game}/leaderboard")
        assert {ann.player, bob.player} <= {entry["player"] for entry in board["entries"]}
        # Signed out at one gateway, signed out at both; forgotten, and gone.
        await ann.ask("POST", "/v1/players/me:signOut", {})
        with pytest.raises(AssertionError, match="TOKEN_REVOKED"):
            await ann.ask("GET", f"/v1/matches/{match_id}")
        await bob.ask("DELETE", "/v1/players/me")
        assert (await http.get(f"/v1/players/{bob.player}")).status_code == 404


async def _matched(person: Person, ticket_id: str) -> str:
    async with asyncio.timeout(20):
        while (ticket := await person.ask("GET", f"/v1/tickets/{ticket_id}?wait=10s"))["status"] != "MATCHED":
            assert ticket["status"] in ("WAITING", "FORMING"), ticket
    return str(ticket["matchId"])


async def test_six_at_two_gateways_grab_at_once_on_three_masters(local: Local) -> None:
    found = Found()
    async with hall_of(local) as hall:
        match_id = await hall.create(NIGHT_KNIGHT, NAMES, racing())
        knights = Knights("cluster")
        sittings = [hall.sitting(NIGHT_KNIGHT, match_id, name, n % 2) for n, name in enumerate(NAMES)]
        async with asyncio.TaskGroup() as group:
            for sitting in sittings:
                group.create_task(sitting.sit(knights.play))
        whole = await hall.told(NIGHT_KNIGHT, match_id)
        for sitting in sittings:
            assert places(sitting.events) == places(whole)
            assert public(sitting.events) == public(whole)
            assert sitting.lost == []
    held(whole, knights.taken, found)


async def test_what_is_stored_lies_on_all_masters(local: Local, cluster: Cluster) -> None:
    async with client(local.url) as http:
        for n in range(20):
            ann = await Person.sign_in(http, f"Ann {n}")
            await ann.ask("POST", "/v1/matches", {"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}]})
    masters = [server for server in cluster.servers if server.is_master]
    assert len(masters) == MASTERS
    for server in masters:
        async with Redis.from_url(server.url) as redis:
            owners = {key.decode().partition(":")[0] async for key in redis.scan_iter(count=500)}
        assert owners >= {"gateway", "night_clan"}
        assert owners <= {"gateway", *GAMES}


@pytest.mark.slow
@pytest.mark.scenario(21)
async def test_matches_and_their_watchers_outlast_failovers_of_all_masters(local: Local, cluster: Cluster) -> None:
    async with client(local.urls[0]) as http, client(local.urls[1]) as elsewhere, hall_of(local) as hall:
        people = [await newcomer(http, "Ann"), await newcomer(elsewhere, "Bob")]
        over = asyncio.Event()

        async def play() -> None:
            room = await people[0].done("POST", "/v1/rooms", {"game": "night_clan", "seats": 2, "settings": {"moveSeconds": 0}})
            await people[1].done("POST", f"/v1/rooms/{room['code']}:join", {})
            for person in people:
                await person.done("POST", f"/v1/rooms/{room['code']}:ready", {})
            match_id = (await people[0].done("POST", f"/v1/rooms/{room['code']}:start", {}))["matchId"]
            path, moves = f"/v1/matches/{match_id}", 0
            watchers = [hall.sitting(NIGHT_CLAN, match_id, "eve", n, after="") for n in range(2)]
            async with asyncio.TaskGroup() as group:
                for watcher in watchers:
                    group.create_task(watcher.sit())
                while (await people[0].done("GET", path))["status"] != "FINISHED":
                    for person in people:
                        if legal := (await person.done("GET", f"{path}/moves"))["moves"]:
                            await person.done("POST", f"{path}/moves", {"move": legal[0]})
                            moves += 1
            whole = await hall.told(NIGHT_CLAN, match_id)
            for watcher in watchers:
                assert places(watcher.events) == places(whole)[len(whole) - len(watcher.events) :]
                assert watcher.lost == []
            assert len((await people[1].done("GET", f"{path}/record"))["moves"]) == moves

        played = 0

        async def keep_playing() -> None:
            nonlocal played
            while not over.is_set() or played <= 2:
                await play()
                played += 1

        playing = [asyncio.create_task(keep_playing()) for _ in range(2)]
        try:
            for key in await asyncio.to_thread(_a_key_of_each, cluster):
                await asyncio.sleep(0.3)
                await asyncio.to_thread(cluster.fail_over, key)
        finally:
            over.set()
            await asyncio.gather(*playing)
    await asyncio.to_thread(cluster.whole)
    assert faults(local) == []


class Stubborn(Sitting):
    """Somebody at a socket who sends what the storage could not take again, under the same request id."""

    put_off = 0

    async def play(self, move: Any, request_id: str) -> live_pb2.ServerMessage:
        """Plays a move."""
        while True:
            answer = await super().play(move, request_id)
            if answer.problem.reason != "STORAGE_UNAVAILABLE":
                return answer
            Stubborn.put_off += 1


@pytest.mark.slow
@pytest.mark.scenario(4)
@pytest.mark.scenario(21)
async def test_grabs_are_ordered_once_and_no_pillow_is_oversold_while_masters_fail_over(local: Local, cluster: Cluster) -> None:
    found, over = Found(), asyncio.Event()
    async with hall_of(local) as hall:

        async def race(number: int) -> int:
            matches = 0
            while not over.is_set():
                match_id = await _made(hall)
                knights = Knights((number, matches))
                sittings = [Stubborn(hall, NIGHT_KNIGHT, match_id, name, n % 2) for n, name in enumerate(NAMES)]
                async with asyncio.TaskGroup() as group:
                    for sitting in sittings:
                        group.create_task(sitting.sit(knights.play))
                whole = await hall.told(NIGHT_KNIGHT, match_id)
                for sitting in sittings:
                    assert places(sitting.events) == places(whole)
                    assert public(sitting.events) == public(whole)
                held(whole, knights.taken, found)
                matches += 1
            return matches

        racing_on = [asyncio.create_task(race(number)) for number in range(3)]
        try:
            for key in await asyncio.to_thread(_a_key_of_each, cluster):
                await asyncio.sleep(0.5)
                await asyncio.to_thread(cluster.fail_over, key)
        finally:
            over.set()
            matches = sum(await asyncio.gather(*racing_on))
    print(f"\n{matches} matches, {found.rounds} rounds, {found.decided} grabs, {Stubborn.put_off} sent again")
    await asyncio.to_thread(cluster.whole)
    assert faults(local) == []


async def _made(hall: Hall) -> str:
    """A match of six, made as soon as the storage can."""
    while True:
        try:
            return await hall.create(NIGHT_KNIGHT, NAMES, racing())
        except Refused as refused:
            if refused.code != grpc.StatusCode.UNAVAILABLE:
                raise


def _a_key_of_each(cluster: Cluster) -> list[str]:
    """A key of each master."""
    return list({cluster.owner(key): key for key in map(str, range(100))}.values())
