"""What README prints works as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local import ROOT, Local
from gateway.settings import table


def _block(language: str, holds: str) -> str:
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (block,) = [block for block in blocks if holds in block]
    return block


def _run(script: str, everything: Local, directory: Path) -> str:
    """What a block prints, run against what is up here instead of what README takes for granted."""
    here = {
        "http://127.0.0.1:8080": everything.url,
        "127.0.0.1:20000": everything.services["night_clan"][0],
        ".gloaming/8080": str(everything.data),
        ".venv/bin/python": sys.executable,
    }
    for printed, real in here.items():
        script = script.replace(printed, real)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=60, cwd=directory)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def record(everything: Local, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the block that plays a match printed, and the record it left."""
    directory = tmp_path_factory.mktemp("readme")
    return _run(_block("sh", "record.json; do"), everything, directory), directory / "record.json"


def test_the_match_in_curl_plays_to_its_end(record: tuple[str, Path]) -> None:
    *moves, end = record[0].splitlines()
    assert len(moves) == 14
    assert all(re.fullmatch(r'\{"move": \{.{8,120}\}\}', move) for move in moves)
    assert re.fullmatch(r"seat [01] scores \[-?\d+, -?\d+\] (won|lost)", end)


def test_the_record_of_that_match_is_verified_as_readme_says(record: tuple[str, Path], everything: Local) -> None:
    printed = _run(_block("sh", "verify"), everything, record[1].parent)
    assert printed.splitlines()[-1].endswith("is true.")


def test_the_match_in_python_plays_to_its_end(everything: Local, tmp_path: Path) -> None:
    (tmp_path / "play.py").write_text(_block("python", "gloaming.client").replace("http://127.0.0.1:8080", everything.url))
    printed = _run(".venv/bin/python play.py", everything, tmp_path)
    assert "match_finished" in printed
    assert "ending: COMPLETED" in printed.split("match_finished")[1]


def test_two_people_find_each_other_by_tickets_and_in_a_room(everything: Local, tmp_path: Path) -> None:
    bobs, anns, joined, ready, filled, started = _run(_block("sh", "/tickets"), everything, tmp_path).splitlines()
    assert bobs.split()[0] in ("WAITING", "FORMING", "MATCHED")
    assert re.fullmatch(r"MATCHED night_clan-[a-z0-9]+", anns)
    assert (joined, ready) == ("['Ann', 'Bob']", "[True, True]")
    assert filled.startswith("['Ann', 'Bob', '")
    assert re.fullmatch(r"STARTED night_knight-[a-z0-9]+", started)


def test_the_match_over_grpc_plays_to_its_end(everything: Local, tmp_path: Path) -> None:
    (tmp_path / "play.py").write_text(_block("python", "grpc"))
    printed = _run(_block("sh", "gateway token") + ".venv/bin/python play.py", everything, tmp_path)
    assert "match_finished" in printed
    assert "ending: COMPLETED" in printed.split("match_finished")[1]


def test_what_uses_the_client_and_the_messages_outside_the_tree_is_typed(tmp_path: Path) -> None:
    (tmp_path / "play.py").write_text(_block("python", "gloaming.client"))
    command = [sys.executable, "-m", "mypy", "--strict", "play.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path)
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout + done.stderr


def test_the_table_of_settings_is_what_the_code_says() -> None:
    printed = re.search(r"<!-- settings: [^>]*-->\n(.*)\n<!-- /settings -->", (ROOT / "README.md").read_text(), re.DOTALL)
    assert printed is not None
    assert printed[1] == table(), "paste what `.venv/bin/python -m gateway settings` prints"
