"""A Redis that outlives a machine: a cluster of three masters with a replica each, and a master and a replica watched by a Sentinel."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from redis import Redis as BlockingRedis
from redis.asyncio import Redis
from redis.crc import key_slot
from redis.exceptions import RedisError

from deploy.processes import LOCALHOST, free_port
from deploy.redis_server import RedisServer
from services.kit.bell import Bells
from services.kit.errors import Unavailable
from services.kit.game import Game
from services.kit.storage import Script, Storage
from services.kit.topology import masters_of
from tests.gateway.stand import stand
from tests.harness import EVERY_GAME, Keys, Player, Refused, all_events, eventually, play_out, table

NODES, MASTERS = 6, 3


class Server(RedisServer):
    """A redis-server with flags of its own."""

    def __init__(self, directory: Path, **flags: str) -> None:
        super().__init__(directory)
        self._flags = flags

    def _argv(self) -> list[str]:
        return [*super()._argv(), *(word for flag, value in self._flags.items() for word in (f"--{flag.replace('_', '-')}", value))]

    def do(self, *command: object) -> Any:
        """Does a command."""
        with BlockingRedis.from_url(self.url, socket_timeout=5) as client:
            return client.execute_command(*command)

    @property
    def is_master(self) -> bool:
        """Whether it answers, and is master."""
        try:
            return bool(self.do("INFO", "replication")["role"] == "master")
        except (RedisError, OSError):
            return False


class Cluster:
    """Three masters and a replica of each."""

    def __init__(self, directory: Path) -> None:
        self.bus = [str(free_port()) for _ in range(NODES)]
        self.servers = [
            Server(
                directory / str(n),
                cluster_enabled="yes",
                cluster_port=bus,
                cluster_node_timeout="1000",
                cluster_replica_validity_factor="0",
                repl_diskless_sync_delay="0",
            )
            for n, bus in enumerate(self.bus)
        ]
        self.url = "redis+cluster://" + ",".join(f"{LOCALHOST}:{server.port}" for server in self.servers[:2])

    def start(self) -> None:
        """Starts it, and waits until it serves."""
        for server in self.servers:
            server.start()
        bounds = [16384 * n // MASTERS for n in range(MASTERS + 1)]
        for n, server in enumerate(self.servers):
            server.do("CLUSTER", "SET-CONFIG-EPOCH", n + 1)
            if n < MASTERS:
                server.do("CLUSTER", "ADDSLOTSRANGE", bounds[n], bounds[n + 1] - 1)
        for server in self.servers:
            for other, bus in zip(self.servers, self.bus, strict=True):
                if other is not server:
                    server.do("CLUSTER", "MEET", LOCALHOST, other.port, bus)
        names = [self.name(server) for server in self.servers]
        until(lambda: all(len(nodes(server)) == NODES and all("handshake" not in f for _, f in nodes(server)) for server in self.servers))
        for n in range(MASTERS, NODES):
            self.servers[n].do("CLUSTER", "REPLICATE", names[n - MASTERS])
        self.whole()

    def name(self, server: Server) -> str:
        """What the cluster calls it."""
        return str(text(server.do("CLUSTER", "MYID")))

    def whole(self) -> None:
        """Waits until every slot is served and every replica is in step."""
        until(lambda: all(b"cluster_state:ok" in raw(server, "CLUSTER", "INFO") for server in self.servers), 20)
        until(
            lambda: all(server.is_master or server.do("INFO", "replication")["master_link_status"] == "up" for server in self.servers), 20
        )

    def owner(self, key: str) -> Server:
        """The master of a key."""
        for first, last, master, *_ in raw(self.servers[0], "CLUSTER", "SLOTS"):
            if first <= key_slot(key.encode()) <= last:
                return next(server for server in self.servers if server.port == master[1])
        raise AssertionError("no server has it")

    def replica(self, master: Server) -> Server:
        """A master's replica."""
        return next(s for s in self.servers if not s.is_master and s.do("INFO", "replication")["master_port"] == master.port)


def raw(server: Server, *command: object) -> Any:
    """What a server answers, as it stands."""
    with BlockingRedis.from_url(server.url, socket_timeout=5) as client:
        connection = client.connection_pool.get_connection()
        connection.send_command(*command)
        return connection.read_response()


def text(answer: Any) -> str:
    return answer.decode() if isinstance(answer, bytes) else str(answer)


def nodes(server: Server) -> list[tuple[str, str]]:
    """The nodes that a server knows, and their flags."""
    return [(line.split()[0], line.split()[2]) for line in raw(server, "CLUSTER", "NODES").decode().splitlines()]


def until(condition: Any, seconds: float = 15) -> None:
    """Waits for what nothing announces."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never comes"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster."""
    it = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        it.start()
        yield it
    finally:
        for server in it.servers:
            server.stop()


class Watched:
    """A master and its replica, watched by a Sentinel."""

    def __init__(self, directory: Path) -> None:
        self.master = Server(directory / "master", repl_diskless_sync_delay="0")
        self.replica = Server(directory / "replica", replicaof=f"{LOCALHOST} {self.master.port}", repl_diskless_sync_delay="0")
        self.sentinel = Sentinel(directory / "sentinel", self.master)
        self.url = f"redis+sentinel://{LOCALHOST}:{self.sentinel.port}/main/0"

    def start(self) -> None:
        """Starts it, and waits until the Sentinel knows the replica."""
        for server in (self.master, self.replica, self.sentinel):
            server.start()
        until(lambda: self.replica.do("INFO", "replication")["master_link_status"] == "up")
        until(self._seen, 20)

    def _seen(self) -> bool:
        for replica in raw(self.sentinel, "SENTINEL", "REPLICAS", "main"):
            fields = dict(replica)
            return bool(fields[b"master-link-status"] == b"ok" and fields[b"flags"] == b"slave")
        return False


class Sentinel(Server):
    """A Sentinel."""

    def __init__(self, directory: Path, master: Server) -> None:
        super().__init__(directory)
        self._master = master

    def _argv(self) -> list[str]:
        conf = self.directory / "sentinel.conf"
        conf.write_text(
            f"port {self.port}\nbind {LOCALHOST}\ndir {self.directory}\nsentinel monitor main {LOCALHOST} {self._master.port} 1\n"
            "sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 10000\n"
        )
        return [super()._argv()[0], str(conf), "--sentinel"]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """A master and its replica, watched by a Sentinel."""
    for name in ("master", "replica", "sentinel"):
        (tmp_path / name).mkdir()
    it = Watched(tmp_path)
    try:
        it.start()
        yield it
    finally:
        for server in (it.sentinel, it.replica, it.master):
            server.stop()


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
        while inside := raw(source, "CLUSTER", "GETKEYSINSLOT", slot, 10):
            raw(source, "MIGRATE", LOCALHOST, target.port, "", 0, 5000, "KEYS", *inside)
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


async def through(there: Any, match_id: str, fault: Any) -> float:
    """Plays and watches a match through a fault; every move that was acknowledged is in the record, and watchers saw each event once.

    Returns the longest time between two acknowledged moves, seconds.
    """
    players, seen = there.everyone(), [[], []]  # type: ignore[var-annotated]
    longest = 0.0
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(45):
        for n in range(2):
            tasks.create_task(follow(there.player(there.names[0], replica=n), match_id, seen[n]))
        acknowledged, faulty, last = 0, None, time.monotonic()
        request = 0
        while True:
            try:
                match = await players[0].get(match_id)
                if match.status == match.DESCRIPTOR.fields_by_name["status"].enum_type.values_by_name["FINISHED"].number:
                    break
                for player in players:
                    if moves := await player.moves(match_id):
                        request += 1
                        while True:
                            try:
                                await player.submit(match_id, moves[0], request_id=f"request-{request}")
                                break
                            except Refused as refused:
                                if refused.code != grpc.StatusCode.UNAVAILABLE:
                                    raise
                                await asyncio.sleep(0.05)
                        acknowledged += 1
                        longest, last = max(longest, time.monotonic() - last), time.monotonic()
                        if acknowledged == 4:
                            faulty = asyncio.create_task(asyncio.to_thread(fault))
                        if faulty and not faulty.done():
                            await asyncio.sleep(0.03)
            except Refused as refused:
                if refused.code != grpc.StatusCode.UNAVAILABLE:
                    raise
                await asyncio.sleep(0.05)
        assert faulty is not None
        await faulty
    every = [event.cursor for event in await all_events(players[0], match_id)]
    for cursors in seen:
        assert cursors == every[len(every) - len(cursors) :]
    assert len((await players[0].record(match_id)).moves) == acknowledged
    return longest


def fail_over(cluster: Cluster, key: str) -> None:
    """Has a replica take its master's place, losing nothing."""
    master = cluster.owner(key)
    replica = cluster.replica(master)
    replica.do("CLUSTER", "FAILOVER")
    until(lambda: replica.is_master)


async def test_a_failover_in_a_cluster_loses_no_acknowledged_move(cluster: Cluster, keys: Keys, game: Game) -> None:
    async with table(game, keys, cluster.url, replicas=2) as there:
        match_id = await there.create()
        seconds = await through(there, match_id, lambda: fail_over(cluster, f"{game.id}:{{{match_id}}}:match"))
    print(f"\nCLUSTER FAILOVER: longest time between two moves {seconds:.2f} s")
    await asyncio.to_thread(cluster.whole)


async def test_a_master_that_is_killed_is_replaced_and_all_goes_on(cluster: Cluster, add: Script) -> None:
    key, channel = "game:{killed}:n", "game:{killed}:bell"
    async with storage_of(cluster.url) as storage, running(storage) as bells:
        ear, master = Ear(), cluster.owner(key)
        async with bells.listen(channel, ear):
            assert await ear.next() is None
            await storage.run(add, [key], [1])
            await asyncio.to_thread(master.kill)
            began = time.monotonic()
            assert await storage.alive()
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


async def test_a_planned_failover_by_sentinel_loses_no_acknowledged_move(watched: Watched, keys: Keys, game: Game) -> None:
    def fail_over() -> None:
        # Writes wait, so that the replica has all; those that wait go to the new master in the end.
        watched.master.do("CLIENT", "PAUSE", 20_000, "WRITE")
        watched.sentinel.do("SENTINEL", "FAILOVER", "main")
        until(lambda: watched.replica.is_master)

    async with table(game, keys, watched.url, replicas=2) as there:
        seconds = await through(there, await there.create(), fail_over)
    print(f"\nSENTINEL FAILOVER after CLIENT PAUSE: longest time between two moves {seconds:.2f} s")


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
    for url in ("redis+sentinel://h:1", "redis+cluster://", "redis+cluster://h:1/1", "redis+other://h:1", "redis+sentinel://h:1/main/x"):
        with pytest.raises(ValueError, match=r"\w"):
            masters_of(url)
    assert masters_of("redis://h:1/0") is None
    assert masters_of("rediss+sentinel://me:secret@[::1]:1,other/main/2") is not None


async def test_nothing_is_left_open(cluster: Cluster, add: Script) -> None:
    async with Redis.from_url(cluster.servers[0].url) as client:
        before = len(await client.client_list())
        async with storage_of(cluster.url) as storage:
            for n in range(30):
                await storage.run(add, [f"open-{n}"], [1])
        await eventually(lambda: _as_few(client, before))


async def _as_few(client: Redis, count: int) -> bool:
    return len(await client.client_list()) <= count
