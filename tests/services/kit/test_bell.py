from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from redis.asyncio import Redis

from deploy.redis_server import RedisServer
from services.kit.bell import Bells, Listener
from services.kit.errors import Unavailable
from services.kit.sessions import Bell
from services.kit.storage import Storage
from tests.harness import eventually

CHANNEL = "game:{match}:bell"


def ring(n: int) -> bytes:
    """A bell of version n without any entry."""
    return f"{n - 1}-0 {n} 0 0\n".encode() + b"marked"


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


async def heard(listener: Listener) -> str | None:
    bell = await listener.next(5)
    return bell.follows if bell else None


async def shards(redis: Redis, *channels: str) -> dict[str, int]:
    answer: Any = await redis.pubsub_shardnumsub(*channels)
    return {channel.decode(): count for channel, count in answer}


async def test_a_listener_hears_every_bell_in_order(bells: Bells, redis: Redis) -> None:
    async with bells.listen(CHANNEL) as listener:
        assert await listener.next(5) is None
        for n in range(1, 40):
            await redis.spublish(CHANNEL, ring(n))
        assert [await heard(listener) for _ in range(1, 40)] == [f"{n - 1}-0" for n in range(1, 40)]


async def test_silence_is_ended_by_a_look_at_the_stream(bells: Bells) -> None:
    async with bells.listen(CHANNEL) as listener:
        assert await listener.next(5) is None
        async with asyncio.timeout(2):
            assert await listener.next(0.02) is None


async def test_there_is_one_subscription_a_channel_however_many_listen(bells: Bells, redis: Redis) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(bells.listen(CHANNEL))
        assert await first.next(5) is None
        for _ in range(50):
            await stack.enter_async_context(bells.listen(CHANNEL))
        other = await stack.enter_async_context(bells.listen("game:{other}:bell"))
        assert await other.next(5) is None
        assert await shards(redis, CHANNEL, "game:{other}:bell") == {CHANNEL: 1, "game:{other}:bell": 1}
        assert len([client for client in await redis.client_list() if client["ssub"] != "0"]) == 1
        await redis.spublish(CHANNEL, ring(3))
        # Others who came gave no doubt to those who listened already.
        assert await heard(first) == "2-0"
    await eventually(lambda: _none(redis))


async def _none(redis: Redis) -> bool:
    return await redis.pubsub_shardchannels() == []


async def test_the_last_who_leaves_ends_the_subscription_and_not_the_one_before(bells: Bells, redis: Redis) -> None:
    async with bells.listen(CHANNEL) as staying:
        assert await staying.next(5) is None
        async with bells.listen(CHANNEL):
            pass
        assert await shards(redis, CHANNEL) == {CHANNEL: 1}
        await redis.spublish(CHANNEL, ring(1))
        assert await heard(staying) == "0-0"
    await eventually(lambda: _none(redis))


async def test_nothing_is_left_after_many_came_and_went(bells: Bells, redis: Redis) -> None:
    tasks, connections = len(asyncio.all_tasks()), None
    for n in range(200):
        async with bells.listen(f"game:{{match-{n % 7}}}:bell") as one, bells.listen(f"game:{{match-{n}}}:bell"):
            await redis.spublish(f"game:{{match-{n % 7}}}:bell", ring(1))
            while await heard(one) is None:
                pass
        connections = connections or len(await redis.client_list())
    assert not bells._listeners
    assert not bells._confirmed
    await eventually(lambda: _none(redis))
    assert len(asyncio.all_tasks()) <= tasks + 1
    assert len(await redis.client_list()) == connections


async def test_listeners_who_are_cancelled_at_any_moment_leave_nothing_behind(bells: Bells, redis: Redis) -> None:
    async def listen(n: int) -> None:
        async with bells.listen(f"game:{{match-{n % 3}}}:bell") as listener:
            while True:
                await listener.next(5)

    for turn in range(40):
        listening = [asyncio.create_task(listen(n)) for n in range(10)]
        for _ in range(turn):
            await asyncio.sleep(0)
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
    assert not bells._listeners
    await eventually(lambda: _none(redis))
    async with bells.listen(CHANNEL) as listener:
        assert await listener.next(5) is None
        await redis.spublish(CHANNEL, ring(1))
        assert await heard(listener) == "0-0"


async def test_a_listener_slower_than_its_queue_is_told_to_read_the_stream(bells: Bells, redis: Redis) -> None:
    async with bells.listen(CHANNEL) as slow, bells.listen(CHANNEL) as quick:
        assert await slow.next(5) is None
        for n in range(1, 201):
            await redis.spublish(CHANNEL, ring(n))
            # The quick one has room, having nothing to wait for: only the queue of the slow one fills.
            while await heard(quick) != f"{n - 1}-0":
                pass
        assert slow._rings.qsize() <= 64
        answers = [await heard(slow) for _ in range(slow._rings.qsize())]
        assert None in answers
        # After the doubt all is in order again, up to the newest.
        after = answers[answers.index(None) + 1 :]
        assert after == [f"{n}-0" for n in range(200 - len(after), 200)]


@pytest.mark.parametrize("cycles", [1, 5])
async def test_a_lost_connection_gives_doubt_and_not_a_silent_gap(bells: Bells, redis: Redis, cycles: int) -> None:
    async with bells.listen(CHANNEL) as listener, bells.listen("game:{other}:bell") as other:
        assert await listener.next(5) is None
        assert await other.next(5) is None
        for n in range(cycles):
            await redis.client_kill_filter(_type="pubsub")
            lost = await redis.spublish(CHANNEL, ring(1))
            assert lost == 0
            async with asyncio.timeout(3):
                assert await listener.next(5) is None
                assert await other.next(5) is None
            await redis.spublish(CHANNEL, ring(n))
            while (bell := await heard(listener)) is None:
                pass
            assert bell == f"{n - 1}-0"
        assert await shards(redis, CHANNEL) == {CHANNEL: 1}


async def test_whoever_comes_after_a_connection_was_lost_unnoticed_is_heard(bells: Bells, redis: Redis) -> None:
    for _ in range(3):
        async with bells.listen(CHANNEL) as listener:
            assert await listener.next(5) is None
        # Nobody listens, so that nobody notices.
        await redis.client_kill_filter(_type="pubsub")
        await asyncio.sleep(0)
        async with asyncio.timeout(2), bells.listen(CHANNEL) as listener:
            await redis.spublish(CHANNEL, ring(1))
            while await heard(listener) is None:
                pass


@pytest.mark.scenario(21)
async def test_a_restart_of_redis_gives_doubt_and_all_goes_on(breakable: Bells, private: RedisServer) -> None:
    async with breakable.listen(CHANNEL) as listener:
        assert await listener.next(5) is None
        private.kill()
        private.start()
        async with asyncio.timeout(5):
            assert await listener.next(5) is None
        async with Redis.from_url(private.url) as redis:
            assert await redis.spublish(CHANNEL, ring(1)) == 1
            while (bell := await heard(listener)) is None:
                pass
            assert bell == "0-0"


async def test_while_redis_is_down_a_listener_is_refused_and_once_it_is_back_no_more(
    breakable: Bells, private: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.kit.bell.CALL_SECONDS", 0.3)
    private.kill()
    with pytest.raises(Unavailable) as fault:
        async with breakable.listen(CHANNEL):
            pass
    assert fault.value.reason == "STORAGE_UNAVAILABLE"
    assert not breakable._listeners
    private.start()
    async with breakable.listen(CHANNEL) as listener:
        assert await listener.next(5) is None


async def test_a_bell_that_nobody_can_read_gives_doubt_and_the_rest_is_heard(bells: Bells, redis: Redis) -> None:
    async with bells.listen(CHANNEL) as listener:
        assert await listener.next(5) is None
        await redis.spublish(CHANNEL, b"what a later release may send")
        async with asyncio.timeout(3):
            assert await listener.next(5) is None
        await redis.spublish(CHANNEL, ring(1))
        assert await heard(listener) == "0-0"


async def test_draining_sends_everybody_away_also_who_has_bells_to_hear_or_comes_later(bells: Bells, redis: Redis) -> None:
    async def listen(channel: str) -> Bell | None:
        async with bells.listen(channel) as listener:
            while True:
                await listener.next(60)

    listening = [asyncio.create_task(listen(f"game:{{match-{n % 3}}}:bell")) for n in range(30)]
    await eventually(lambda: all(listener.subscribed.is_set() for there in bells._listeners.values() for listener in there))
    await redis.spublish("game:{match-0}:bell", ring(1))
    bells.drain()
    listening.append(asyncio.create_task(listen("game:{late}:bell")))
    async with asyncio.timeout(3):
        answers = await asyncio.gather(*listening, return_exceptions=True)
    for answer in answers:
        assert isinstance(answer, Unavailable)
        assert answer.reason == "DRAINING"
    await eventually(lambda: _none(redis))
