from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from deploy.redis_server import RedisServer
from services.kit.bell import Bells
from services.kit.errors import Unavailable
from services.kit.sessions import Bell, Entry, read_bell
from services.kit.storage import Storage
from tests.harness import eventually

CHANNEL = "game:{match}:bell"


def ring(n: int) -> bytes:
    """A bell of version n with one entry."""
    entry = msgspec.msgpack.encode(Entry(b"event"))
    return f"{n - 1}-0 {n} 0 0\n".encode() + n.to_bytes(6, "big") + len(entry).to_bytes(4, "big") + entry


class Ear:
    """Keeps what it hears: bells, and None for each doubt."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[Bell | None] = asyncio.Queue()

    def hear(self, message: bytes) -> None:
        self.heard.put_nowait(read_bell(message))

    def doubt(self) -> None:
        self.heard.put_nowait(None)

    async def next(self) -> str | None:
        """What comes next: of a bell, the place that it follows."""
        async with asyncio.timeout(5):
            bell = await self.heard.get()
        return bell.follows if bell else None


@asynccontextmanager
async def listening(bells: Bells, channel: str = CHANNEL) -> AsyncIterator[Ear]:
    """An ear that may be sure to miss nothing from now on."""
    ear = Ear()
    async with bells.listen(channel, ear):
        assert await ear.next() is None
        yield ear


@pytest.fixture
async def bells(storage: Storage) -> AsyncIterator[Bells]:
    async for running in _running(storage):
        yield running


@pytest.fixture
async def breakable(private: RedisServer) -> AsyncIterator[Bells]:
    """Bells of a Redis that may be killed."""
    storage = Storage(private.url)
    async for running in _running(storage):
        yield running
    await storage.close()


async def _running(storage: Storage) -> AsyncIterator[Bells]:
    bells = Bells(storage)
    task = asyncio.create_task(bells.run())
    yield bells
    assert not task.done(), task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def shards(redis: Redis, *channels: str) -> dict[str, int]:
    answer: Any = await redis.pubsub_shardnumsub(*channels)
    return {channel.decode(): count for channel, count in answer}


async def test_a_listener_hears_every_bell_in_order(bells: Bells, redis: Redis) -> None:
    async with listening(bells) as listener:
        for n in range(1, 40):
            await redis.spublish(CHANNEL, ring(n))
        assert [await listener.next() for _ in range(1, 40)] == [f"{n - 1}-0" for n in range(1, 40)]


async def test_there_is_one_subscription_a_channel_however_many_listen(bells: Bells, redis: Redis) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(listening(bells))
        for _ in range(50):
            await stack.enter_async_context(listening(bells))
        await stack.enter_async_context(listening(bells, "game:{other}:bell"))
        assert await shards(redis, CHANNEL, "game:{other}:bell") == {CHANNEL: 1, "game:{other}:bell": 1}
        assert len([client for client in await redis.client_list() if client["ssub"] != "0"]) == 1
        await redis.spublish(CHANNEL, ring(3))
        # Others who came gave no doubt to those who listened already.
        assert await first.next() == "2-0"
    await eventually(lambda: _none(redis))


async def _none(redis: Redis) -> bool:
    return await redis.pubsub_shardchannels() == []


async def test_the_last_who_leaves_ends_the_subscription_and_not_the_one_before(bells: Bells, redis: Redis) -> None:
    async with listening(bells) as staying:
        async with listening(bells):
            pass
        assert await shards(redis, CHANNEL) == {CHANNEL: 1}
        await redis.spublish(CHANNEL, ring(1))
        assert await staying.next() == "0-0"
    await eventually(lambda: _none(redis))


async def test_nothing_is_left_after_many_came_and_went(bells: Bells, redis: Redis) -> None:
    tasks, connections = len(asyncio.all_tasks()), None
    for n in range(200):
        async with listening(bells, f"game:{{match-{n % 7}}}:bell") as one, listening(bells, f"game:{{match-{n}}}:bell"):
            await redis.spublish(f"game:{{match-{n % 7}}}:bell", ring(1))
            while await one.next() is None:
                pass
        connections = connections or len(await redis.client_list())
    assert not bells._ears
    assert not bells._confirmed
    await eventually(lambda: _none(redis))
    assert len(asyncio.all_tasks()) <= tasks + 1
    assert len(await redis.client_list()) == connections


async def test_listeners_who_are_cancelled_at_any_moment_leave_nothing_behind(bells: Bells, redis: Redis) -> None:
    async def listen(n: int) -> None:
        async with listening(bells, f"game:{{match-{n % 3}}}:bell") as listener:
            while True:
                await listener.next()

    for turn in range(40):
        tasks = [asyncio.create_task(listen(n)) for n in range(10)]
        for _ in range(turn):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert not bells._ears
    await eventually(lambda: _none(redis))
    async with listening(bells) as listener:
        await redis.spublish(CHANNEL, ring(1))
        assert await listener.next() == "0-0"


@pytest.mark.parametrize("cycles", [1, 5])
async def test_a_lost_connection_gives_doubt_and_not_a_silent_gap(bells: Bells, redis: Redis, cycles: int) -> None:
    async with listening(bells) as listener, listening(bells, "game:{other}:bell") as other:
        for n in range(cycles):
            await redis.client_kill_filter(_type="pubsub")
            lost = await redis.spublish(CHANNEL, ring(1))
            assert lost == 0
            async with asyncio.timeout(3):
                assert await listener.next() is None
                assert await other.next() is None
            await redis.spublish(CHANNEL, ring(n))
            while (bell := await listener.next()) is None:
                pass
            assert bell == f"{n - 1}-0"
        assert await shards(redis, CHANNEL) == {CHANNEL: 1}


async def test_whoever_comes_after_a_connection_was_lost_unnoticed_is_heard(bells: Bells, redis: Redis) -> None:
    for _ in range(3):
        async with listening(bells):
            pass
        # Nobody listens, so that nobody notices.
        await redis.client_kill_filter(_type="pubsub")
        await asyncio.sleep(0)
        async with asyncio.timeout(2), listening(bells) as listener:
            await redis.spublish(CHANNEL, ring(1))
            while await listener.next() is None:
                pass


@pytest.mark.scenario(21)
async def test_a_restart_of_redis_gives_doubt_and_all_goes_on(breakable: Bells, private: RedisServer) -> None:
    async with listening(breakable) as listener:
        private.kill()
        private.start()
        assert await listener.next() is None
        async with Redis.from_url(private.url) as redis:
            assert await redis.spublish(CHANNEL, ring(1)) == 1
            while (bell := await listener.next()) is None:
                pass
            assert bell == "0-0"


async def test_while_redis_is_down_a_listener_is_refused_and_once_it_is_back_no_more(
    breakable: Bells, private: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.kit.bell.CALL_SECONDS", 0.3)
    private.kill()
    with pytest.raises(Unavailable) as fault:
        async with listening(breakable):
            pass
    assert fault.value.reason == "STORAGE_UNAVAILABLE"
    assert not breakable._ears
    private.start()
    async with listening(breakable):
        pass


async def test_whoever_comes_after_a_silence_is_heard_like_anybody(bells: Bells, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.kit.bell._POLL_SECONDS", 0.05)
    with capture_logs() as logs:
        async with listening(bells) as first:
            before = await _pings(redis)
            await eventually(lambda: _pinged(redis, before + 3))
            for n in range(1, 20):
                async with listening(bells, f"game:{{match-{n}}}:bell") as late:
                    await redis.spublish(f"game:{{match-{n}}}:bell", ring(n))
                    assert await late.next() == f"{n - 1}-0"
            await redis.spublish(CHANNEL, ring(1))
            assert await first.next() == "0-0"
    assert not logs


async def _pings(redis: Redis) -> int:
    stats: Any = await redis.info("commandstats")
    return int(stats.get("cmdstat_ping", {}).get("calls", 0))


async def _pinged(redis: Redis, count: int) -> bool:
    return await _pings(redis) >= count


@pytest.mark.scenario(13)
async def test_a_connection_gone_silent_gives_doubt(breakable: Bells, private: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.kit.bell._POLL_SECONDS", 0.1)
    async with listening(breakable) as ear:
        assert private.child.pid
        os.kill(private.child.pid, signal.SIGSTOP)
        with capture_logs() as logs:
            await eventually(lambda: any(line["event"] == "bells_lost" for line in logs))
        os.kill(private.child.pid, signal.SIGCONT)
        assert await ear.next() is None
        async with Redis.from_url(private.url) as redis:
            await redis.spublish(CHANNEL, ring(1))
        while (heard := await ear.next()) is None:
            pass
        assert heard == "0-0"


async def test_a_bell_that_nobody_can_read_gives_doubt_and_the_rest_is_heard(bells: Bells, redis: Redis) -> None:
    async with listening(bells) as listener:
        await redis.spublish(CHANNEL, b"what a later release may send")
        assert await listener.next() is None
        await redis.spublish(CHANNEL, ring(1))
        assert await listener.next() == "0-0"


async def test_draining_has_every_ear_look_up(bells: Bells) -> None:
    async with AsyncExitStack() as stack:
        ears = [await stack.enter_async_context(listening(bells, f"game:{{match-{n % 3}}}:bell")) for n in range(30)]
        assert not bells.draining
        bells.drain()
        assert bells.draining
        assert [await ear.next() for ear in ears] == [None] * 30
