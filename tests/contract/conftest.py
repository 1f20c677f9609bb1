"""Every test here runs once for each game in the gateway's registry, or for each whose rule it is: in turns, or in real time."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from services.kit.game import Game
from tests.harness import EVERY_GAME, Keys, Table, table


@pytest.fixture(params=EVERY_GAME, ids=lambda game: game.id)
def game(request: pytest.FixtureRequest) -> Game:
    """Each game in turn."""
    chosen: Game = request.param
    return chosen


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """A signing key of this run."""
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
async def there(game: Game, keys: Keys, redis_url: str, redis: Redis) -> AsyncIterator[Table]:
    """One replica of the game's service, on an empty Redis."""
    async with table(game, keys, redis_url) as running:
        yield running
