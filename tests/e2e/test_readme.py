"""What README prints works as printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local import ROOT, Local


def _blocks() -> list[str]:
    return re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def record(everything: Local, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the block that plays a match printed, and the record it left."""
    (block,) = [block for block in _blocks() if "/players" in block]
    directory = tmp_path_factory.mktemp("readme")
    script = "set -euo pipefail\n" + block.replace("http://127.0.0.1:8080", everything.url)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, cwd=directory)
    assert done.returncode == 0, done.stderr
    return done.stdout, directory / "record.json"


def test_the_match_in_curl_plays_to_its_end(record: tuple[str, Path]) -> None:
    printed, _ = record
    assert '"cardPlayed"' in printed
    assert re.search(r"ranks \[[12], [12]\] scores \[-?\d+, -?\d+\]\n$", printed)


def test_the_record_of_that_match_is_verified_as_readme_says(record: tuple[str, Path]) -> None:
    (command,) = [block for block in _blocks() if "verify" in block]
    words = [sys.executable if word == ".venv/bin/python" else word for word in shlex.split(command)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=record[1].parent)
    assert done.stdout.splitlines()[-1].endswith("is true.")
