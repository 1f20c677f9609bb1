"""Import-linter names what rules must not import; here is all that they may."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PURE = sorted(path for name in ("rules.py", "bot.py") for path in ROOT.glob(f"services/*/{name}"))
# Of the standard library, what brings a clock, chance or the world outside.
IMPURE = {"asyncio", "datetime", "os", "random", "secrets", "socket", "subprocess", "threading", "time", "uuid"}


def imported(path: Path) -> Iterator[str]:
    package = ".".join(path.parent.relative_to(ROOT).parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield f"{package}.{node.module or ''}" if node.level == 1 else f"{'.' * node.level}{node.module or ''}"


def test_there_are_rules_to_check() -> None:
    assert PURE


@pytest.mark.parametrize("path", PURE, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_rules_and_bots_import_the_standard_library_and_their_own_folder_alone(path: Path) -> None:
    own = f"services.{path.parent.name}."
    allowed = set(sys.stdlib_module_names) - IMPURE
    assert [name for name in imported(path) if not name.startswith(own) and name.split(".")[0] not in allowed] == []
