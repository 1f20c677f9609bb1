"""Chaos starts a whole of its own each time."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps these tests from running beside those of `tests/e2e` that start a whole of their own as well."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("whole"))
