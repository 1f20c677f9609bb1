"""Names whatever a game lacks, and what to do about it."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gateway.registry import GAMES
from gloaming.table.v1 import table_pb2
from services.kit import sessions

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ROOT / "proto" / "gen"
RULE = re.compile(r"^\s*(?:#+|[-*])\s*\**([A-Z]{2})-(\d\d)\b", re.MULTILINE)
PLATFORM = ("ALL-01", "ALL-02", "ALL-03", "ALL-04")


def described() -> dict[str, str]:
    """The games that a generated proto module describes by the option `gloaming.table.v1.game`, and its package."""
    found = {}
    for path in sorted(GENERATED.glob("gloaming/*/v*/*_pb2.py")):
        file = importlib.import_module(".".join(path.relative_to(GENERATED).with_suffix("").parts)).DESCRIPTOR
        for service in file.services_by_name.values():
            if service.GetOptions().HasExtension(table_pb2.game):
                found[service.GetOptions().Extensions[table_pb2.game].id] = file.package
    return found


def games() -> list[str]:
    """Whatever is a game by its folder, by the registry, or by a proto; of source and generated."""
    folders = {path.parent.name for path in ROOT.glob("services/*/rules.py")}
    protos = {
        named[1]
        for path in ROOT.glob("proto/gloaming/*/v*/*.proto")
        if (named := re.search(r'option \(gloaming\.table\.v1\.game\) = \{\s*id: "(\w+)"', path.read_text()))
    }
    return sorted(folders | protos | set(GAMES) | set(described()))


def lacking(game: str) -> Iterator[str]:
    """What a game lacks, each with what to do about it."""
    for name, what in {
        "RULES.md": "every rule in your own words, numbered `### XX-01`",
        "rules.py": "the rules as pure functions (the protocol `Rules` in services/kit/game.py)",
        "codec.py": "between rules and protobuf (the protocol `Codec`)",
        "bot.py": "the standard bot (the protocol `Bot`)",
        "game.py": "GAME = Game(...), which fills the kit's record",
        "__main__.py": "main(GAME) of services/kit/server.py",
        "__init__.py": "it may be empty",
    }.items():
        if not (ROOT / "services" / game / name).exists():
            yield f"services/{game}/{name}: {what}"
    proto = f"proto/gloaming/{game}/v1/{game}.proto"
    if not (ROOT / proto).exists():
        yield f"{proto}: one service with the verbs of all games and the option gloaming.table.v1.game"
    elif described().get(game) != f"gloaming.{game}.v1":
        yield f"proto/gen of {proto}, whose option gloaming.table.v1.game says id: {game}: make proto"
    if game not in GAMES:
        yield f"its line in gateway/registry.py: {game}_pb2 among _MODULES"
    if not (ROOT / "tests" / "playthroughs" / f"{game}.json").exists():
        yield f"tests/playthroughs/{game}.json: python -m tests.playthroughs {game}, and read what it wrote"
    hidden = ROOT / "tests" / "services" / game / "hidden.py"
    told = hidden.read_text(encoding="utf-8") if hidden.exists() else ""
    if not all(f"\ndef {name}(" in told for name in ("vary", "look")):
        yield f"tests/services/{game}/hidden.py: what its viewers may not know (the protocol `Hidden` in tests/simulator.py)"
    if not list((ROOT / "tests" / "fixtures" / "schemas").glob(f"{game}-{sessions.SCHEMA}-*.json")):
        yield f"tests/fixtures/schemas/{game}-{sessions.SCHEMA}-….json: python -m tests.fixtures.schemas {game}"
    yield from lacking_rules(game)


def lacking_rules(game: str) -> Iterator[str]:
    """Gaps in a game's numbers, and the numbers without a test."""
    path = ROOT / "services" / game / "RULES.md"
    if not path.exists():
        return
    own = numbers(path.read_text(encoding="utf-8"))
    if not own:
        yield f"numbers in services/{game}/RULES.md: a heading `### XX-01` for every rule"
    for prefix, found in own.items():
        if found != list(range(1, len(found) + 1)):
            yield f"an unbroken row of numbers in services/{game}/RULES.md: they are {prefix}-{found}"
    for number in (*(f"{prefix}-{n:02}" for prefix, found in own.items() for n in found), *PLATFORM):
        if number not in rules_with_tests():
            yield f'a test of {number}: @pytest.mark.rule("{number}") on the test that shows it'


def numbers(text: str) -> dict[str, list[int]]:
    """The rules that a text defines, in its headings and bullets: prefix and numbers. (ALL-01 … have three letters: they are no game's.)"""
    found: dict[str, list[int]] = {}
    for prefix, number in RULE.findall(text):
        found.setdefault(prefix, []).append(int(number))
    return found


@cache
def rules_with_tests() -> frozenset[str]:
    """Every rule that a test is marked with, whether or not it is among those that run now."""
    return frozenset(rule for path in (ROOT / "tests").rglob("test_*.py") for rule in marked(path.read_text(encoding="utf-8")))


def marked(source: str) -> Iterator[str]:
    """The rules in `@pytest.mark.rule(...)` over tests, their classes, and their parameters."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name.lower().startswith("test"):
            for decorator in node.decorator_list:
                for call in ast.walk(decorator):
                    if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.rule":
                        yield from (str(argument.value) for argument in call.args if isinstance(argument, ast.Constant))


def test_there_are_games() -> None:
    assert games()


@pytest.mark.parametrize("game", games())
def test_a_game_is_complete(game: str) -> None:
    missing = list(lacking(game))
    assert not missing, "\n".join([f"{game} lacks", *(f"  - {line}" for line in missing)])


def test_a_game_that_is_nothing_but_a_name_is_told_all_it_needs() -> None:
    told = list(lacking("tiddlywinks"))
    for part in (
        "RULES.md",
        "rules.py",
        "codec.py",
        "bot.py",
        "game.py",
        "__main__.py",
        ".proto",
        "registry",
        "playthroughs",
        "hidden",
        "schemas",
    ):
        assert any(part in line for line in told), part


def test_a_rule_without_a_test_and_a_gap_in_the_numbers_are_seen() -> None:
    text = "### ZZ-01 One\n- ZZ-02 Two, see ZZ-09\n- **ZZ-04** Four\n- ALL-01 The platform's\n"
    assert numbers(text) == {"ZZ": [1, 2, 4]}
    source = (
        '@pytest.mark.rule("ZZ-01")\n@pytest.mark.rule("ZZ-02")\nasync def test_a(): ...\n'
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.rule("ZZ-03"))])\ndef test_b(x): ...\n'
        '@pytest.mark.rule("ZZ-04")\ndef helper(): ...\n# pytest.mark.rule("ZZ-05")\n'
    )
    assert set(marked(source)) == {"ZZ-01", "ZZ-02", "ZZ-03"}


def test_marks_name_rules_that_there_are() -> None:
    known = {*PLATFORM}
    for path in ROOT.glob("services/*/RULES.md"):
        known |= {f"{prefix}-{n:02}" for prefix, found in numbers(path.read_text(encoding="utf-8")).items() for n in found}
    assert sorted(rules_with_tests() - known) == [], "no RULES.md has these"
