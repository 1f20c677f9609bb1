"""Backup and restore: all that is stored, as it was, into an empty Redis of any kind."""

from __future__ import annotations

import asyncio
import gzip
import os
import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from deploy.redis_server import RedisServer
from gateway import backup
from gateway.backup import BackupError, back_up, restore
from gloaming.table.v1 import table_pb2
from services.kit import verify
from services.kit.game import Game
from services.kit.storage import Storage
from tests.gateway.stand import stand
from tests.harness import EVERY_GAME, Keys, Table, all_events, attempt, eventually, mover, play_out, table
from tests.topologies import Cluster

DEBIAN = Path("/usr/bin/redis-server")


@asynccontextmanager
async def storage_of(url: str) -> AsyncIterator[Storage]:
    storage = Storage(url)
    try:
        yield storage
    finally:
        await storage.close()


def names(directory: Path) -> list[str]:
    """What is in a directory."""
    return [each.name for each in directory.iterdir()]


async def saved(url: str, path: Path) -> backup.Counts:
    async with storage_of(url) as storage:
        return await back_up(storage, path)


async def put_back(url: str, path: Path, **more: Any) -> backup.Counts:
    async with storage_of(url) as storage:
        return await restore(storage, path, **more)


async def half_a_match(there: Table) -> str:
    """A match of which some was played."""
    match_id = await there.create()
    for n in range(4):
        player, moves = await mover(match_id, *there.everyone())
        await attempt(player, match_id, moves[0], request_id=f"request {n}")
    return match_id


async def seen_by(there: Table, match_id: str) -> list[Any]:
    """What everybody may know of a match, but for what the time of day makes of it."""
    seen = []
    for player in [*there.everyone(), there.player("stranger")]:
        match = await player.get(match_id)
        match.ClearField("server_time")
        seen += [match, await all_events(player, match_id)]
    return seen


@pytest.mark.parametrize("game", EVERY_GAME, ids=lambda game: game.id)
async def test_half_a_match_goes_on_where_it_was_and_its_record_is_whole(
    keys: Keys, redis_url: str, redis: Redis, game: Game, tmp_path: Path
) -> None:
    async with table(game, keys, redis_url) as there:
        match_id = await half_a_match(there)
        finished = await there.create()
        await play_out(finished, *there.everyone())
        before, record = await seen_by(there, finished), await there.player(there.names[0]).record(finished)
        before_half = await seen_by(there, match_id) if not game.real_time else []
    counts = await saved(redis_url, tmp_path / "backup")
    assert counts.matches == 2
    await redis.flushdb()
    restored = await put_back(redis_url, tmp_path / "backup")
    assert (restored.matches, restored.expired) == (2, 0)

    async with table(game, keys, redis_url) as there:
        assert await seen_by(there, finished) == before
        assert await there.player(there.names[0]).record(finished) == record
        if not game.real_time:
            assert await seen_by(there, match_id) == before_half
        await play_out(match_id, *there.everyone())
        assert list(verify.check(game, await there.player(there.names[0]).record(match_id)))


async def test_clocks_are_not_charged_for_the_time_since_the_backup(keys: Keys, redis_url: str, redis: Redis, tmp_path: Path) -> None:
    game = EVERY_GAME[0]
    pace = {"outage_ms": 300, "sweep_ms": 20}
    async with table(game, keys, redis_url, **pace) as there:
        match_id = await there.create(move_seconds=2)
        left = _left(await there.player(there.names[0]).get(match_id))
    await saved(redis_url, tmp_path / "backup")
    await redis.flushdb()
    await asyncio.sleep(2.5)  # longer than the clock
    await put_back(redis_url, tmp_path / "backup")
    async with table(game, keys, redis_url, **pace) as there:
        match = await there.player(there.names[0]).get(match_id)
        assert match.version == 1
        # And the clock, which nobody but the restored deadlines knows of, runs out.
        assert left - 1 < _left(match) <= left + 3
        await eventually(lambda: _moved_on(there, match_id))


def _left(match: Any) -> float:
    return float((match.deadline.ToMilliseconds() - match.server_time.ToMilliseconds()) / 1000)


async def _moved_on(there: Table, match_id: str) -> bool:
    return bool((await there.player(there.names[0]).get(match_id)).version > 1)


async def test_no_match_is_torn_however_it_is_played_meanwhile(keys: Keys, redis_url: str, redis: Redis, tmp_path: Path) -> None:
    with RedisServer(tmp_path / "other") as other:
        async with AsyncExitStack() as stack:
            tables = [await stack.enter_async_context(table(game, keys, redis_url)) for game in EVERY_GAME]

            async def play(there: Table) -> None:
                while True:
                    await play_out(await there.create(), *there.everyone())

            playing = [asyncio.create_task(play(there)) for there in tables for _ in range(2)]
            await eventually(lambda: _matches(redis, 12), 30)
            for n in range(5):
                await saved(redis_url, tmp_path / str(n))
            for task in playing:
                task.cancel()
            await asyncio.gather(*playing, return_exceptions=True)
        client: Any
        for n in range(5):
            counts = await put_back(other.url, tmp_path / str(n), replace=True)
            assert counts.matches >= 12
            async with Redis.from_url(other.url) as client:
                for key in [key async for key in client.scan_iter("*:match")]:
                    version, last = await client.hmget(key, "version", "last")
                    (newest,) = await client.xrevrange(key.replace(b":match", b":events"), count=1)
                    place, round_ = newest[0].decode(), await client.hget(key.replace(b":match", b":round"), "count")
                    # In real time reactions come behind the commit.
                    assert place.partition("-")[0] == version.decode()
                    assert place == f"{version.decode()}-{last.decode()}" or round_ is not None


async def _matches(redis: Redis, least: int) -> bool:
    return len([key async for key in redis.scan_iter("*:match")]) >= least


async def rated_match(gateway: Any) -> tuple[str, dict[str, Any]]:
    """A rated match of two guests that one of them has resigned."""
    ann, bob = [await gateway.sign_in(name) for name in ("Ann", "Bob")]
    gateway.be(ann)
    room = (await gateway.http.post("/v1/rooms", json={"game": "night_clan", "seats": 2, "settings": {"rated": True}})).json()["code"]
    for who, verb in ((bob, "join"), (bob, "ready"), (ann, "start")):
        gateway.be(who)
        started = await gateway.http.post(f"/v1/rooms/{room}:{verb}")
        assert started.status_code == 200, started.text
    match_id = started.json()["matchId"]
    gateway.be(bob)
    assert (await gateway.http.post(f"/v1/matches/{match_id}:resign")).status_code == 200
    return match_id, ann


# A gateway that is closed may hold a result that it did not come to acknowledge.
RETRIED_SOON = {"result_lease_ms": 500}


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_rated_match_counts_once_whether_it_was_counted_before_the_backup_or_not(
    keys: Keys, redis_url: str, redis: Redis, tmp_path: Path, when: str
) -> None:
    game = EVERY_GAME[0]
    async with table(game, keys, redis_url, **RETRIED_SOON) as there:
        services = {"night_clan": there.addresses[0]}
        async with stand(keys, redis_url, services=services) as gateway:
            _, ann = await rated_match(gateway)
            player = ann["player"]["id"]

            async def counted() -> Any:
                return (await gateway.http.get(f"/v1/players/{player}")).json().get("ratings")

            if when == "before":
                ratings = await eventually(counted)
            else:
                # Nobody counts from here on.
                assert not await counted()
    await saved(redis_url, tmp_path / "backup")
    await redis.flushdb()
    await put_back(redis_url, tmp_path / "backup")
    async with (
        table(game, keys, redis_url, **RETRIED_SOON) as there,
        stand(keys, redis_url, services={"night_clan": there.addresses[0]}) as gateway,
    ):
        # Every match is handed out again, and acknowledged when it has been looked at.
        await eventually(lambda: redis.zcard("night_clan:{results}:acknowledged"), 15)
        (rating,) = (await gateway.http.get(f"/v1/players/{player}")).json()["ratings"]
        assert rating["matches"] == 1
        if when == "before":
            assert [rating] == ratings


async def test_a_match_counted_while_the_backup_is_made_counts_once(keys: Keys, redis_url: str, redis: Redis, tmp_path: Path) -> None:
    game = EVERY_GAME[0]
    async with (
        table(game, keys, redis_url, **RETRIED_SOON) as there,
        stand(keys, redis_url, services={"night_clan": there.addresses[0]}) as gateway,
    ):
        storage = await _pausing(redis_url)
        try:
            saving = asyncio.create_task(back_up(storage, tmp_path / "backup"))
            await storage.rated.wait()  # ratings have been taken, nothing else
            _, ann = await rated_match(gateway)

            async def counted() -> Any:
                return (await gateway.http.get(f"/v1/players/{ann['player']['id']}")).json().get("ratings")

            ratings = await eventually(counted)
            storage.go_on.set()
            await saving
        finally:
            await storage.close()
    await redis.flushdb()
    await put_back(redis_url, tmp_path / "backup")
    async with (
        table(game, keys, redis_url, **RETRIED_SOON) as there,
        stand(keys, redis_url, services={"night_clan": there.addresses[0]}) as gateway,
    ):

        async def again() -> Any:
            return (await gateway.http.get(f"/v1/players/{ann['player']['id']}")).json().get("ratings")

        assert await eventually(again, 15) == ratings


class _Pausing(Storage):
    """A storage that waits before it looks for keys."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.rated, self.go_on = asyncio.Event(), asyncio.Event()

    async def scan(self, pattern: str, count: int = 256) -> Any:
        self.rated.set()
        await self.go_on.wait()
        async for keys in super().scan(pattern, count):
            yield keys


async def _pausing(url: str) -> _Pausing:
    return _Pausing(url)


async def test_players_come_back_with_all_they_had(keys: Keys, redis_url: str, redis: Redis, tmp_path: Path) -> None:
    async with stand(keys, redis_url) as gateway:
        ann = await gateway.sign_in("Ann")
        match = {"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}]}
        await gateway.http.post("/v1/matches", json=match, headers={"Idempotency-Key": "k" * 32})
        room = (await gateway.http.post("/v1/rooms", json={"game": "night_clan"})).json()
        gone = await gateway.sign_in("Gone")
        await gateway.http.post("/v1/players/me:signOut")
        ticket = {"game": "night_clan", "seats": {"min": 2, "max": 2}, "options": {}}
        gateway.be(ann)
        assert (await gateway.http.post("/v1/tickets", json=ticket)).status_code == 201
        matches = (await gateway.http.get("/v1/players/me/matches")).json()
        ttl = await redis.pexpiretime(f"gateway:{{{ann['player']['id']}}}:player")
        await saved(redis_url, tmp_path / "backup")
        await redis.flushdb()
        await put_back(redis_url, tmp_path / "backup")
        assert await redis.pexpiretime(f"gateway:{{{ann['player']['id']}}}:player") == ttl
        assert (await gateway.http.get("/v1/players/me")).json() == ann["player"]
        assert (await gateway.http.get("/v1/players/me/matches")).json() == matches
        assert (await gateway.http.get(f"/v1/rooms/{room['code']}")).json() == room
        assert (await gateway.http.post("/v1/players:refresh", json={"refreshToken": ann["refreshToken"]})).status_code == 200
        gateway.be(gone)
        assert (await gateway.http.get("/v1/players/me")).json()["reason"] == "TOKEN_REVOKED"
        # Who waited asks again.
        gateway.be(ann)
        assert (await gateway.http.post("/v1/tickets", json=ticket)).status_code == 201


async def test_what_has_expired_is_not_put_back(redis_url: str, redis: Redis, tmp_path: Path) -> None:
    await redis.set("gateway:revoked:soon", "1", px=1_500)
    await redis.set("gateway:revoked:late", "1", px=60_000)
    await redis.set("night_clan:{deadlines/0}:clock", "1")
    await redis.set("other:key", "1")
    await saved(redis_url, tmp_path / "backup")
    await redis.flushdb()
    await asyncio.sleep(1.5)
    counts = await put_back(redis_url, tmp_path / "backup")
    assert (sum(counts.keys.values()), counts.expired) == (2, 1)
    assert set(await redis.keys("*")) == {b"gateway:revoked:late", b"night_clan:{deadlines/0}:clock"}


async def test_a_redis_that_is_not_empty_is_left_alone_unless_told_otherwise(redis_url: str, redis: Redis, tmp_path: Path) -> None:
    await redis.set("gateway:revoked:a", "1")
    await saved(redis_url, tmp_path / "backup")
    await redis.set("gateway:revoked:a", "2")
    await redis.set("gateway:revoked:b", "2")
    await redis.set("other:key", "2")
    with pytest.raises(BackupError, match="not empty: 2 keys"):
        await put_back(redis_url, tmp_path / "backup")
    assert await redis.mget("gateway:revoked:a", "gateway:revoked:b") == [b"2", b"2"]
    await put_back(redis_url, tmp_path / "backup", replace=True)
    assert await redis.mget("gateway:revoked:a", "gateway:revoked:b", "other:key") == [b"1", None, b"2"]


async def test_services_that_run_already_are_not_in_the_way(keys: Keys, redis_url: str, redis: Redis, tmp_path: Path) -> None:
    game = EVERY_GAME[0]
    async with table(game, keys, redis_url, sweep_ms=20) as there:
        match_id = await half_a_match(there)
        await saved(redis_url, tmp_path / "backup")
        await redis.flushdb()
        await eventually(lambda: redis.exists("night_clan:{deadlines/0}:clock"))
        await put_back(redis_url, tmp_path / "backup")
        await play_out(match_id, *there.everyone())


async def test_a_file_that_is_not_whole_restores_nothing(redis_url: str, redis: Redis, tmp_path: Path) -> None:
    for n in range(20):
        await redis.set(f"gateway:revoked:p{n}", os.urandom(40))
    await saved(redis_url, tmp_path / "backup")
    await redis.flushdb()
    whole = (tmp_path / "backup").read_bytes()
    plain = gzip.decompress(whole)
    spoiled = [whole[:cut] for cut in range(0, len(whole), 37)]
    spoiled += [bytes(byte ^ 0x10 if n == at else byte for n, byte in enumerate(whole)) for at in range(10, len(whole), 41)]
    spoiled += [gzip.compress(plain[:cut]) for cut in range(0, len(plain), 53)]
    spoiled += [gzip.compress(bytes(byte ^ 1 if n == at else byte for n, byte in enumerate(plain))) for at in range(0, len(plain), 29)]
    spoiled += [gzip.compress(plain + b"x"), b"", b"no backup", gzip.compress(b"\xff\xff\xff\xff"), whole + b"x"]
    for n, content in enumerate(spoiled):
        path = tmp_path / f"spoiled-{n}"
        path.write_bytes(content)
        with pytest.raises(BackupError):
            await put_back(redis_url, path)
        assert not await redis.keys("*"), n
    with pytest.raises(BackupError, match="cannot be read: No such file"):
        await put_back(redis_url, tmp_path / "nowhere")
    await put_back(redis_url, tmp_path / "backup")
    assert len(await redis.keys("*")) == 20


async def test_a_backup_of_a_newer_release_is_not_guessed_at(
    redis_url: str, redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(backup, "VERSION", 2)
        await saved(redis_url, tmp_path / "backup")
    with pytest.raises(BackupError, match="newer release"):
        await put_back(redis_url, tmp_path / "backup")


async def test_the_file_is_its_owners_alone_and_takes_no_other_files_place(redis_url: str, redis: Redis, tmp_path: Path) -> None:
    path = tmp_path / "backup"
    await saved(redis_url, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    was = path.read_bytes()
    with pytest.raises(BackupError, match="is there already"):
        await saved(redis_url, path)
    assert path.read_bytes() == was
    with pytest.raises(BackupError, match="cannot be written"):
        await saved(redis_url, tmp_path / "nowhere" / "backup")
    assert names(tmp_path) == ["backup"]


async def test_a_backup_that_is_cut_short_leaves_no_file(redis_url: str, redis: Redis, tmp_path: Path) -> None:
    storage = await _pausing(redis_url)
    saving = asyncio.create_task(back_up(storage, tmp_path / "backup"))
    await storage.rated.wait()
    assert [name.startswith(".backup.") for name in names(tmp_path)] == [True]
    saving.cancel()
    with suppress(asyncio.CancelledError):
        await saving
    await storage.close()
    assert not names(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not DEBIAN.exists(), reason="needs a second version of Redis")
async def test_a_newer_redis_reads_what_an_older_one_wrote_and_an_older_one_says_that_it_cannot(
    keys: Keys, redis_url: str, redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as other:
        other.setenv("REDIS_SERVER_BIN", str(DEBIAN))
        older = RedisServer(tmp_path / "older")
        older.start()
    try:
        if await _version(older.url) >= await _version(redis_url):
            pytest.skip("this Redis is not newer")
        game = EVERY_GAME[0]
        async with table(game, keys, older.url) as there:
            match_id = await half_a_match(there)
        await saved(older.url, tmp_path / "old")
        await put_back(redis_url, tmp_path / "old")
        async with table(game, keys, redis_url) as there:
            await play_out(match_id, *there.everyone())
        await saved(redis_url, tmp_path / "new")
        client: Any
        async with Redis.from_url(older.url) as client:
            await client.flushdb()
            with pytest.raises(BackupError, match="older than the one that the backup is of"):
                await put_back(older.url, tmp_path / "new")
            assert not await client.keys("*")
    finally:
        older.stop()


async def _version(url: str) -> tuple[int, ...]:
    client: Any
    async with Redis.from_url(url) as client:
        return tuple(map(int, (await client.info("server"))["redis_version"].split(".")))


@pytest.mark.slow
async def test_a_cluster_is_restored_into_one_server_and_back(keys: Keys, redis_url: str, redis: Redis, tmp_path: Path) -> None:
    game = EVERY_GAME[0]
    cluster = Cluster(tmp_path / "cluster")
    await asyncio.to_thread(cluster.start)
    try:
        async with table(game, keys, cluster.url) as there:
            matches = [await half_a_match(there) for _ in range(6)]
        counts = await saved(cluster.url, tmp_path / "of-cluster")
        assert counts.matches == 6
        await put_back(redis_url, tmp_path / "of-cluster")
        async with table(game, keys, redis_url) as there:
            await play_out(matches[0], *there.everyone())
        await saved(redis_url, tmp_path / "of-one")
        with pytest.raises(BackupError, match="not empty"):
            await put_back(cluster.url, tmp_path / "of-one")
        assert (await put_back(cluster.url, tmp_path / "of-one", replace=True)).matches == 6
        async with table(game, keys, cluster.url) as there:
            assert (await there.player(there.names[0]).get(matches[0])).status == table_pb2.FINISHED
            for match_id in matches[1:]:
                await play_out(match_id, *there.everyone())
    finally:
        for server in cluster.servers:
            server.kill()
