"""The whole of it, as `make run` starts it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deploy.local import Local
from tests import unlimited


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps the tests of `everything` in one process (`make test` runs several), so that it is started once."""
    for item in items:
        if "everything" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("everything"))


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """Redis, two replicas of each game's service and two gateways. Bots move at once, and nobody asks too much."""
    env = {"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0", **unlimited.ENVIRONMENT}
    with Local(tmp_path_factory.mktemp("everything"), replicas=2, gateways=2, env=env) as local:
        yield local
