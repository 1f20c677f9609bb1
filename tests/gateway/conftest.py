"""A gateway for each test, on an empty Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from tests.gateway.stand import Stand, stand
from tests.harness import Keys


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """A signing key of this run."""
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
async def gateway(keys: Keys, redis_url: str, redis: Redis) -> AsyncIterator[Stand]:
    """A gateway called in process."""
    async with stand(keys, redis_url) as it:
        yield it


@pytest.fixture
async def served(keys: Keys, redis_url: str, redis: Redis) -> AsyncIterator[Stand]:
    """A gateway behind a real server, on a real socket."""
    async with stand(keys, redis_url, on_socket=True) as it:
        yield it
