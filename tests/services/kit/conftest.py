"""What the tests of the kit share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis import Redis as SyncRedis
from redis.asyncio import Redis

from deploy.redis_server import RedisServer
from services.kit.game import Game
from services.kit.storage import Storage
from tests.harness import EVERY_GAME, Keys


@pytest.fixture(scope="session")
def game() -> Game:
    """Some game: what the kit does with it is the same for each."""
    return EVERY_GAME[0]


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """A signing key of this run."""
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
async def storage(redis_url: str, redis: Redis) -> AsyncIterator[Storage]:
    """An empty storage."""
    storage = Storage(redis_url)
    yield storage
    await storage.close()


@pytest.fixture
def private(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of one's own, to be killed and restarted; it keeps what it holds."""
    with RedisServer(tmp_path / "redis", durable=True) as server:
        with SyncRedis.from_url(server.url) as client:
            # By `everysec` a disk that is busy keeps what was acknowledged out of the file for up to two seconds.
            client.config_set("appendfsync", "always")
        yield server
