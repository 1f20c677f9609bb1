"""What those who watch on a replica are told, of what this replica stored and of what others did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import Redis

from services.kit.game import Game
from services.kit.sessions import Bell, Session
from tests.harness import Keys, Table, all_events, calm, eventually, mover, table


@pytest.fixture
async def there(game: Game, keys: Keys, redis_url: str, redis: Redis) -> AsyncIterator[Table]:
    """Two replicas."""
    async with table(game, keys, redis_url, replicas=2) as running:
        yield running


@asynccontextmanager
async def watched(there: Table, match_id: str, replica: int = 0) -> AsyncIterator[tuple[Any, Callable[[], list[str]]]]:
    """The feed of a match on a replica, once it can be told by bells; and the cursors of what a spectator was told."""
    matches, told = there.replicas[replica]._matches, list[str]()
    ready = asyncio.Event()

    async def watch() -> None:
        async for each in matches.feeds.read(match_id, None, lambda _: None):
            if each and isinstance(each[0], Session):
                ready.set()
            elif each:
                told.append(str(each[0].cursor))

    watching = asyncio.create_task(watch())
    await ready.wait()
    feed = matches.feeds._feeds[match_id]
    await eventually(lambda: feed._trusted)
    yield feed, lambda: told
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_what_a_replica_stored_itself_is_told_at_once_and_not_again_when_the_bell_comes(
    there: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    match_id = await there.create(options=calm(there.game))
    player, moves = await mover(match_id, *(there.player(name, replica=0) for name in there.names))
    async with watched(there, match_id) as (feed, told), watched(there, match_id, 1) as (_, told_elsewhere):
        heard, held = asyncio.Event(), list[bytes]()
        hear = feed.hear

        def hold(message: bytes) -> None:
            held.append(message)
            heard.set()

        # Only what is told without the bell is told for now.
        monkeypatch.setattr(feed, "hear", hold)
        answer = await player.submit(match_id, moves[0])
        cursors = [event.cursor for event in answer.events]
        await heard.wait()
        assert told() == cursors
        assert feed._trusted
        for message in held:
            hear(message)
        assert feed._trusted, "it need not look at the stream for it"
        assert told() == cursors
        await eventually(lambda: told_elsewhere() == cursors)


async def test_what_was_stored_after_something_that_was_not_told_is_told_with_it(there: Table) -> None:
    match_id = await there.create(options=calm(there.game))
    player, moves = await mover(match_id, *(there.player(name, replica=1) for name in there.names))
    async with watched(there, match_id) as (feed, told):
        hear, feed.hear = feed.hear, lambda _: None
        await player.submit(match_id, moves[0])
        # The bell of that is late; what the replica stores itself follows on it.
        events = await there.replicas[0]._matches._sessions.entries(match_id, feed._cursor)
        there.replicas[0]._matches.feeds.told(match_id, Bell(f"{events[-1].cursor.version}-{events[-1].cursor.n}", (events[-1],)))
        whole = [event.cursor for event in await all_events(player, match_id)]
        await eventually(lambda: len(told()) >= len(events))
        assert told() == whole[-len(events) :]
        feed.hear = hear
