"""The whole of it, as `make run` starts it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local import Local
from tests import unlimited


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps the tests here in two of the processes that `make test` runs: those that share `everything`, which is started once, and those
    that start a whole of their own, of which there is one at a time, since they measure and wait.
    """
    for item in items:
        if Path(__file__).parent in item.path.parents:
            shared = isinstance(item, pytest.Function) and "everything" in item.fixturenames
            item.add_marker(pytest.mark.xdist_group("everything" if shared else "whole"))


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """Redis, two replicas of each game's service and two gateways. Bots move at once, and nobody asks too much."""
    env = {"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0", **unlimited.ENVIRONMENT}
    with Local(tmp_path_factory.mktemp("everything"), replicas=2, gateways=2, env=env) as local:
        yield local
