from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from deploy.redis_server import RedisServer
from services.kit.errors import Unavailable
from services.kit.storage import CALL_SECONDS, Script, Storage
from tests.harness import eventually


@pytest.fixture
def add(tmp_path: Path) -> Script:
    path = tmp_path / "add.lua"
    path.write_text("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    return Script(path)


@pytest.fixture
async def mine(private: RedisServer) -> AsyncIterator[Storage]:
    """A storage that may be broken."""
    storage = Storage(private.url)
    yield storage
    await storage.close()


@pytest.mark.scenario(21)
async def test_a_script_that_the_server_forgot_is_sent_again(storage: Storage, redis: Redis, add: Script) -> None:
    for n in range(1, 4):
        assert await storage.run(add, ["n"], [1]) == n
        await redis.script_flush()
    answers = await asyncio.gather(*(storage.run(add, ["n"], [1]) for _ in range(50)))
    assert sorted(answers) == list(range(4, 54))


async def unavailable(storage: Storage, script: Script) -> float:
    """Runs the script, which fails, and returns how long that took."""
    started = time.monotonic()
    with pytest.raises(Unavailable) as fault:
        await storage.run(script, ["n"], [1])
    assert fault.value.reason == "STORAGE_UNAVAILABLE"
    return time.monotonic() - started


@pytest.mark.scenario(21)
async def test_a_redis_that_is_down_is_an_unavailable_storage_until_it_is_back(mine: Storage, private: RedisServer, add: Script) -> None:
    assert await mine.run(add, ["n"], [1]) == 1
    assert await mine.alive("night_clan")
    private.kill()
    assert await unavailable(mine, add) < CALL_SECONDS + 0.5
    assert not await mine.alive("night_clan")
    private.start()
    assert await mine.run(add, ["n"], [1]) == 2
    assert await mine.alive("night_clan")


async def test_a_redis_that_hangs_is_an_unavailable_storage_after_a_bound(
    mine: Storage, private: RedisServer, add: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.kit.storage.CALL_SECONDS", 0.4)
    assert await mine.run(add, ["n"], [1]) == 1
    pid = private.child.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        # On the connection that there is, and where one must be made.
        assert max(await asyncio.gather(*(unavailable(mine, add) for _ in range(5)))) < 1.5
    finally:
        os.kill(pid, signal.SIGCONT)
    # Those calls may have been made all the same; no answer of theirs is taken for another's.
    assert await mine.redis.echo("mine") == b"mine"
    assert await mine.run(add, ["m"], [1]) == 1


async def test_a_full_memory_is_an_unavailable_storage(mine: Storage, add: Script) -> None:
    await mine.run(add, ["n"], [1])
    await mine.redis.config_set("maxmemory", 1)
    await unavailable(mine, add)
    with pytest.raises(Unavailable):
        await mine.call(mine.redis.set("a", "b"))
    await mine.redis.config_set("maxmemory", 0)
    assert await mine.run(add, ["n"], [1]) == 2


async def test_a_redis_that_became_a_replica_is_an_unavailable_storage(mine: Storage, add: Script) -> None:
    await mine.run(add, ["n"], [1])
    await mine.redis.replicaof("127.0.0.1", "1")
    await unavailable(mine, add)
    with pytest.raises(Unavailable):
        await mine.call(mine.redis.set("a", "b"))
    await mine.redis.replicaof("NO", "ONE")
    assert await mine.run(add, ["n"], [1]) == 2


async def test_a_redis_without_the_replicas_it_must_have_is_an_unavailable_storage(mine: Storage, add: Script) -> None:
    await mine.redis.config_set("min-replicas-to-write", 1)
    await unavailable(mine, add)


async def test_a_redis_that_runs_some_endless_script_is_an_unavailable_storage(mine: Storage, private: RedisServer, add: Script) -> None:
    await mine.redis.config_set("busy-reply-threshold", 10)
    async with Redis.from_url(private.url) as other:
        endless: Any = asyncio.ensure_future(other.eval("while true do end", 0))
        await eventually(lambda: _busy(mine))
        await unavailable(mine, add)
        await mine.redis.script_kill()
        with pytest.raises(Exception, match="killed"):
            await endless
    assert await mine.run(add, ["n"], [1]) == 1


async def _busy(storage: Storage) -> bool:
    return not await storage.alive("night_clan")


async def test_a_mistake_of_ours_is_not_taken_for_an_outage(storage: Storage, redis: Redis, add: Script) -> None:
    await redis.lpush("list", "a")
    with pytest.raises(Exception, match="WRONGTYPE"):
        await storage.run(add, ["list"], [1])


async def test_more_calls_than_connections_wait_for_each_other(storage: Storage, add: Script) -> None:
    answers = await asyncio.gather(*(storage.run(add, ["n"], [1]) for _ in range(1500)))
    assert sorted(answers) == list(range(1, 1501))


async def test_a_call_that_is_cancelled_leaves_its_answer_to_nobody(storage: Storage, add: Script) -> None:
    for n in range(60):
        calls = [asyncio.create_task(storage.run(add, [f"n{n}/{m}"], [m])) for m in range(1, 9)]
        for _ in range(n % 6):
            await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert done[1::2] == [2, 4, 6, 8]
        assert all(answer == m or isinstance(answer, asyncio.CancelledError) for m, answer in zip((1, 3, 5, 7), done[::2], strict=True))


async def test_a_redis_that_lets_nobody_in_is_an_unavailable_storage(add: Script) -> None:
    # Redis in its protected mode greets whoever comes from another machine like this.
    async def deny(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(4096):
            writer.write(b"-DENIED Redis is running in protected mode\r\n")
        writer.close()

    server = await asyncio.start_server(deny, "127.0.0.1", 0)
    storage = Storage(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        await unavailable(storage, add)
        with pytest.raises(Unavailable):
            await storage.call(storage.redis.get("n"))
        assert not await storage.alive("night_clan")
    finally:
        await storage.close()
        server.close()
