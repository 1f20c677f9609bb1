"""The whole of it, as `make run` starts it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deploy.local import Local


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """Redis, two replicas of each game's service and two gateways. Bots move at once."""
    env = {"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0"}
    with Local(tmp_path_factory.mktemp("everything"), replicas=2, gateways=2, env=env) as local:
        yield local
