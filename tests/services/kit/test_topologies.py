"""A Redis that outlives a machine: a cluster of three masters with a replica each, and a master and a replica watched by a Sentinel."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import grpc
import pytest
from redis.asyncio import Redis
from redis.crc import key_slot

from deploy.processes import LOCALHOST
from gloaming.table.v1 import table_pb2
from services.kit.bell import Bells
from services.kit.errors import Unavailable
from services.kit.game import Game
from services.kit.storage import Script, Storage
from services.kit.topology import masters_of
from tests.gateway.stand import stand
from tests.harness import EVERY_GAME, Keys, Player, Refused, Table, all_events, eventually, play_out, table
from tests.topologies import MASTERS, Cluster, Server, Watched, running_one, until

T = TypeVar("T")

# One cluster at a time: several at once on two cores take each other's servers for lost.
pytestmark = pytest.mark.xdist_group("topologies")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster."""
    it = Cluster(tmp_path_factory.mktemp("cluster"))
    with running_one(it):
        yield it


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """A master and its replica, watched by a Sentinel."""
    it = Watched(tmp_path)
    with running_one(it):
        yield it


@pytest.fixture
def add(tmp_path: Path) -> Script:
    path = tmp_path / "add.lua"
    path.write_text("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    return Script(path)


@asynccontextmanager
async def storage_of(url: str, **more: int) -> AsyncIterator[Storage]:
    storage = Storage(url, **more)
    try:
        yield storage
    finally:
        await storage.close()


async def follow(player: Player, match_id: str, seen: list[str]) -> None:
    """Watches a match to its end, going on from the last cursor where a watch broke, and keeps every event's cursor."""
    cursor = ""
    while True:
        try:
            async for news in player.watch(match_id, cursor):
                if news.HasField("event"):
                    cursor = news.event.cursor
                    seen.append(cursor)
            return
        except Refused as refused:
            if refused.code != grpc.StatusCode.UNAVAILABLE:
                raise
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("game", EVERY_GAME, ids=lambda game: game.id)
async def test_a_match_is_played_watched_from_two_replicas_and_recorded_on_a_cluster(cluster: Cluster, keys: Keys, game: Game) -> None:
    async with table(game, keys, cluster.url, replicas=2) as there:
        match_id, players = await there.create(), there.everyone()
        seen: list[list[str]] = [[], []]
        async with asyncio.TaskGroup() as tasks, asyncio.timeout(30):
            for n in range(2):
                tasks.create_task(follow(there.player(there.names[0], replica=n), match_id, seen[n]))
            await play_out(match_id, *players, request_ids=True)
        every = [event.cursor for event in await all_events(players[0], match_id)]
        for cursors in seen:
            assert cursors == every[len(every) - len(cursors) :]
        assert (await players[0].record(match_id)).moves


async def test_matches_spread_over_all_masters(cluster: Cluster, keys: Keys, game: Game) -> None:
    async with table(game, keys, cluster.url) as there:
        for _ in range(40):
            await there.create()
    sizes = [server.do("DBSIZE") for server in cluster.servers if server.is_master]
    print(f"\nkeys on each master: {sizes}")
    assert len(sizes) == MASTERS
    assert all(size > 10 for size in sizes)


async def test_players_sign_in_and_out_on_a_cluster(cluster: Cluster, keys: Keys) -> None:
    async with stand(keys, cluster.url) as there:
        assert (await there.http.get("/readyz")).status_code == 200
        for name in ("Ann", "Bob", "Cat"):
            session = await there.sign_in(name)
            renewed = await there.http.post("/v1/players:refresh", json={"refreshToken": session["refreshToken"]})
            if renewed.status_code == 404:
                continue
            assert renewed.status_code == 200, renewed.text
        assert (await there.http.get("/v1/players/me")).json()["name"] == "Cat"


class Ear:
    """Keeps what it hears, and None for each doubt."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[bytes | None] = asyncio.Queue()

    def hear(self, message: bytes) -> None:
        self.heard.put_nowait(message)

    def doubt(self) -> None:
        self.heard.put_nowait(None)

    async def next(self) -> bytes | None:
        async with asyncio.timeout(10):
            return await self.heard.get()


@asynccontextmanager
async def running(storage: Storage) -> AsyncIterator[Bells]:
    bells = Bells(storage)
    task = asyncio.create_task(bells.run())
    try:
        yield bells
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_bells_come_from_whichever_master_has_the_channel(cluster: Cluster) -> None:
    async with storage_of(cluster.url) as storage, running(storage) as bells, contextlib.AsyncExitStack() as stack:
        ears = {f"game:{{match-{n}}}:bell": Ear() for n in range(30)}
        for channel, ear in ears.items():
            await stack.enter_async_context(bells.listen(channel, ear))
            assert await ear.next() is None
        assert len({cluster.owner(channel).port for channel in ears}) == MASTERS
        for channel, ear in ears.items():
            assert await storage.call(storage.redis.spublish(channel, channel)) == 1
            assert await ear.next() == channel.encode()


async def migrate(source: Server, target: Server, cluster: Cluster, key: str) -> None:
    """Moves a key's slot, and all that is in it, while it is used."""
    slot = key_slot(key.encode())
    names = {server: cluster.name(server) for server in (source, target)}

    def move() -> None:
        target.do("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source])
        source.do("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target])
        while inside := source.raw("CLUSTER", "GETKEYSINSLOT", slot, 10):
            source.raw("MIGRATE", LOCALHOST, target.port, "", 0, 5000, "KEYS", *inside)
        target.do("CLUSTER", "SETSLOT", slot, "NODE", names[target])
        source.do("CLUSTER", "SETSLOT", slot, "NODE", names[target])

    await asyncio.to_thread(move)


async def test_a_slot_that_moves_takes_its_keys_and_listeners_along(cluster: Cluster, add: Script) -> None:
    key, channel = "game:{moving}:n", "game:{moving}:bell"
    async with storage_of(cluster.url) as storage, running(storage) as bells:
        source, ear, made = cluster.owner(key), Ear(), 0
        target = next(server for server in cluster.servers if server.is_master and server is not source)
        async with bells.listen(channel, ear):
            assert await ear.next() is None
            moving = asyncio.create_task(migrate(source, target, cluster, key))
            while not moving.done():
                made += 1
                assert await storage.run(add, [key], [1]) == made
            await moving
            assert await storage.run(add, [key], [1]) == made + 1
            assert await storage.call(storage.redis.get(key)) == str(made + 1).encode()
            assert await ear.next() is None
            assert await storage.call(storage.redis.spublish(channel, "there")) == 1
            while (heard := await ear.next()) is None:
                pass
            assert heard == b"there"
        await migrate(target, source, cluster, key)


class Story:
    """What happened, in order of time, for whoever reads of a failure."""

    def __init__(self) -> None:
        self.began = time.time()
        self.lines: list[str] = []

    def tell(self, what: object) -> None:
        """Adds that."""
        clock = time.time()
        self.lines.append(f"{time.strftime('%H:%M:%S', time.localtime(clock))}.{clock % 1 * 1000:03.0f} {what}")


async def through(there: Table, match_id: str, servers: Cluster | Watched, fault: Callable[[], None]) -> float:
    """Plays and watches a match through a fault; every move that was acknowledged is in the record, and watchers saw each event once.

    Returns the longest time between two acknowledged moves, seconds.
    """
    story = Story()
    try:
        async with asyncio.timeout(45):
            return await _through(there, match_id, fault, story)
    except BaseException as failure:
        log = await asyncio.to_thread(servers.log, story.began)
        failure.add_note("\n".join(["", f"{match_id}:", *story.lines, "", "the servers' logs:", log]))
        raise


async def _through(there: Table, match_id: str, fault: Callable[[], None], story: Story) -> float:
    players, seen, acknowledged = there.everyone(), ([], []), list[str]()  # type: ignore[var-annotated]
    longest, last, faulty = 0.0, time.monotonic(), None
    async with asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(follow(there.player(there.names[0], replica=n), match_id, seen[n])) for n in range(2)]
        while (await until_served(story, lambda: players[0].get(match_id))).status != table_pb2.FINISHED:
            for player in players:
                moves = await until_served(story, lambda player=player: player.moves(match_id))  # type: ignore[misc]
                if not moves:
                    continue
                name = f"request-{len(acknowledged)}"
                story.tell(f"{player.player} sends {name}")
                made = await until_served(
                    story,
                    lambda player=player, move=moves[0], name=name: player.submit(match_id, move, request_id=name),  # type: ignore[misc]
                )
                story.tell(f"{name} made version {made.version}")
                acknowledged.append(name)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
                if len(acknowledged) == 4:
                    story.tell("the fault begins")
                    faulty = tasks.create_task(asyncio.to_thread(fault))
                    faulty.add_done_callback(lambda _: story.tell("the fault is over"))
                if faulty and not faulty.done():
                    await asyncio.sleep(0.03)
        assert faulty is not None
        await faulty
        await asyncio.gather(*watching)
    every = [event.cursor for event in await all_events(players[0], match_id)]
    for cursors in seen:
        assert cursors == every[len(every) - len(cursors) :], "a watcher missed an event, or saw one twice"
    moves = len((await players[0].record(match_id)).moves)
    assert moves == len(acknowledged), f"of {len(acknowledged)} acknowledged moves {moves} are in the record"
    return longest


async def until_served(story: Story, call: Callable[[], Awaitable[T]]) -> T:
    """Calls again while the storage is unavailable, as clients do, and returns the answer."""
    while True:
        try:
            return await call()
        except Refused as refused:
            story.tell(refused)
            if refused.code != grpc.StatusCode.UNAVAILABLE:
                raise
            await asyncio.sleep(0.05)


@pytest.mark.scenario(21)
async def test_a_failover_in_a_cluster_loses_no_acknowledged_move(cluster: Cluster, keys: Keys, game: Game) -> None:
    async with table(game, keys, cluster.url, replicas=2) as there:
        match_id = await there.create()
        seconds = await through(there, match_id, cluster, lambda: cluster.fail_over(f"{game.id}:{{{match_id}}}:match"))
    print(f"\nCLUSTER FAILOVER: longest time between two moves {seconds:.2f} s")
    await asyncio.to_thread(cluster.whole)


@pytest.mark.scenario(21)
async def test_a_master_that_is_killed_is_replaced_and_all_goes_on(cluster: Cluster, add: Script) -> None:
    key, channel = "game:{killed}:n", "game:{killed}:bell"
    async with storage_of(cluster.url) as storage, running(storage) as bells:
        ear, master = Ear(), cluster.owner(key)
        async with bells.listen(channel, ear):
            assert await ear.next() is None
            await storage.run(add, [key], [1])
            await asyncio.to_thread(master.kill)
            began = time.monotonic()
            assert await storage.alive("night_clan")
            while True:
                try:
                    await storage.run(add, [key], [1])
                    break
                except Unavailable:
                    assert time.monotonic() - began < 20
            print(f"\nmaster killed: served again after {time.monotonic() - began:.2f} s (node timeout 1 s)")
            assert await ear.next() is None
            print(f"bells again after {time.monotonic() - began:.2f} s")
            await storage.call(storage.redis.spublish(channel, "there"))
            while (heard := await ear.next()) is None:
                pass
            assert heard == b"there"
    master.start()  # in this thread, with which it ends
    await asyncio.to_thread(cluster.whole)


@pytest.mark.scenario(21)
async def test_a_planned_failover_by_sentinel_loses_no_acknowledged_move(watched: Watched, keys: Keys, game: Game) -> None:
    async with table(game, keys, watched.url, replicas=2) as there:
        seconds = await through(there, await there.create(), watched, watched.fail_over)
    print(f"\nSENTINEL FAILOVER after CLIENT PAUSE: longest time between two moves {seconds:.2f} s")


@pytest.mark.scenario(21)
async def test_a_master_that_is_killed_is_replaced_by_sentinel_and_all_goes_on(watched: Watched, add: Script) -> None:
    async with storage_of(watched.url) as storage, running(storage) as bells:
        ear = Ear()
        async with bells.listen("game:{match}:bell", ear):
            assert await ear.next() is None
            await storage.run(add, ["n"], [1])
            until(lambda: watched.replica.do("GET", "n"))
            await asyncio.to_thread(watched.master.kill)
            began, served = time.monotonic(), 0
            while not served:
                with contextlib.suppress(Unavailable):
                    served = await storage.run(add, ["n"], [1])
                assert time.monotonic() - began < 20
            print(f"\nmaster killed: served again after {time.monotonic() - began:.2f} s (down after 1 s)")
            assert served == 2
            assert await ear.next() is None
            assert await storage.call(storage.redis.spublish("game:{match}:bell", "there")) == 1
            while (heard := await ear.next()) is None:
                pass
            assert heard == b"there"


async def test_what_no_replica_has_is_not_acknowledged_where_one_must(watched: Watched, add: Script) -> None:
    async with storage_of(watched.url, wait_replicas=1, wait_ms=200) as storage:
        answers = await asyncio.gather(*(storage.run(add, ["n"], [1]) for _ in range(20)))
        assert sorted(answers) == list(range(1, 21))
        assert watched.replica.do("GET", "n") == b"20"
        watched.replica.stop()
        await asyncio.to_thread(until, lambda: watched.master.do("INFO", "replication")["connected_slaves"] == 0)
        with pytest.raises(Unavailable):
            await storage.run(add, ["n"], [1])


async def test_an_address_that_names_nothing_is_refused() -> None:
    for url in (
        "redis+sentinel://h:1",
        "redis+cluster://",
        "redis+cluster://h:1/1",
        "redis+other://h:1",
        "redis+sentinel://h:1/main/x",
        "redis+sentinel://h:1/0",
    ):
        with pytest.raises(ValueError, match=r"\w"):
            masters_of(url)
    assert masters_of("redis://h:1/0") is None
    assert masters_of("rediss+sentinel://me:secret@[::1]:1,other/main/2") is not None


async def test_every_key_of_every_master_is_found_in_bounded_steps(cluster: Cluster, watched: Watched) -> None:
    for url in (cluster.url, watched.url):
        async with storage_of(url) as storage:
            made = {f"game:{{sought-{n}}}:match".encode() for n in range(300)}
            for key in made:
                await storage.call(storage.redis.set(key, 1, ex=60))
            found, steps = set(), 0
            async for keys in storage.scan("game:{sought-*}:match", 20):
                found |= set(keys)
                steps += 1
            assert found == made
            assert steps >= len(made) / 20 / 2


async def test_nothing_is_left_open(cluster: Cluster, add: Script) -> None:
    async with Redis.from_url(cluster.servers[0].url) as client:
        before = len(await client.client_list())
        async with storage_of(cluster.url) as storage:
            for n in range(30):
                await storage.run(add, [f"open-{n}"], [1])
        await eventually(lambda: _as_few(client, before))


async def _as_few(client: Redis, count: int) -> bool:
    return len(await client.client_list()) <= count
