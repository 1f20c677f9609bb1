"""Clients in other languages, written against what is published alone, play whole matches: they are the examples for who writes one.

Published are the archive of .proto files that `make dist` builds and the /openapi.json of the running server; tokens come from the sign-in
and from the operator's command, as README says.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from google.protobuf import json_format

from deploy import dist
from deploy.local import ROOT, Local
from gloaming.table.v1 import table_pb2
from services.kit import verify
from tests import node
from tests.harness import EVERY_GAME

HERE = Path(__file__).parent
CACHE = node.CACHE / "clients"
RUN_SECONDS = 150
# A sign-in every three seconds, after two at once, and four moves a second: whoever does not wait when told to gets nowhere.
LIMITS = {"GLOAMING_LIMIT_SIGN_INS": "20:2", "GLOAMING_LIMIT_MOVES": "240:4"}

# One whole for all of them, which mostly waits; installing takes its time where npm has nothing cached.
pytestmark = [pytest.mark.xdist_group("clients"), pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def clients() -> Iterator[Path]:
    """A copy of the clients beside what they need, which is kept for the next time."""
    try:
        installed = node.installed(HERE / "package.json", CACHE)
    except node.NodeError as missing:
        pytest.skip(str(missing))
    with tempfile.TemporaryDirectory(dir=installed) as made:
        for file in (each for pattern in ("*.json", "*.mjs", "*.ts") for each in HERE.glob(pattern)):
            shutil.copy(file, made)
        yield Path(made)


@pytest.fixture(scope="module")
def served(clients: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    env = {"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0", **LIMITS}
    with Local(tmp_path_factory.mktemp("clients"), env=env) as local:
        yield local


@pytest.fixture(scope="module")
def protos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The .proto files, unpacked from the archive in which they are published."""
    directory = tmp_path_factory.mktemp("protos")
    with tarfile.open(dist.protos(directory)) as archive:
        archive.extractall(directory, filter="data")
    (unpacked,) = (each for each in directory.iterdir() if each.is_dir())
    return unpacked


@pytest.fixture(scope="module")
def compiled(clients: Path, served: Local) -> Path:
    """The clients in TypeScript, checked against the types of the server's own document and compiled."""
    tools = clients.parent / "node_modules"
    run(clients, tools / "openapi-typescript" / "bin" / "cli.js", f"{served.url}/openapi.json", "--output", "openapi.ts")
    run(clients, tools / "typescript" / "bin" / "tsc")
    return clients / "out"


def run(directory: Path, program: str | Path, *arguments: str | Path, env: Mapping[str, str] | None = None) -> str:
    """What a program prints."""
    argv = [node.node(), program, *arguments]
    done = subprocess.run(
        argv, cwd=directory, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def token(local: Local, subject: str, scope: str) -> str:
    argv = [sys.executable, "-m", "gateway", "token", "--key", str(local.signing_key), "--subject", subject, "--scope", scope]
    return subprocess.run([*argv, "--seconds", "600"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def check_played(local: Local, printed: str) -> list[str]:
    """Raises unless all matches that a client says it played were played to the end, by it and not for it; returns their games."""
    matches = re.findall(r"^([a-z_]+)(-\w+) COMPLETED", printed, re.MULTILINE)
    anybody = {"Authorization": f"Bearer {token(local, 'eve', 'play')}"}
    for game_id, rest in matches:
        asked = urllib.request.Request(f"{local.url}/v1/matches/{game_id}{rest}/record", headers=anybody)
        with urllib.request.urlopen(asked, timeout=10) as answer:
            told = json.load(answer)
        (game,) = (each for each in EVERY_GAME if each.id == game_id)
        record = json_format.ParseDict(told, game.message("Record")())
        assert list(verify.check(game, record))
        seat = next(each.seat for each in record.seats if each.player)
        moves = [each.played for each in record.moves if each.HasField("move") and each.played.seat == seat]
        assert moves, printed
        if not game.real_time:
            assert {each.by for each in moves} == {table_pb2.Played.PLAYER}
    return [game_id for game_id, _ in matches]


def test_a_client_with_the_proto_files_alone_plays_every_game_over_grpc(clients: Path, served: Local, protos: Path) -> None:
    addresses = [f"{game}={addresses[0]}" for game, addresses in served.services.items()]
    printed = run(clients, "grpc.mjs", protos, served.url, *addresses, env={"HOST_TOKEN": token(served, "ops", "host")})
    assert check_played(served, printed) == list(served.services)


def test_a_client_typed_by_the_document_plays_over_rest(compiled: Path, served: Local) -> None:
    assert check_played(served, run(compiled, "rest.js", served.url)) == ["night_clan"]


def test_a_client_typed_by_the_document_plays_over_the_socket_and_resumes_after_a_cut(compiled: Path, served: Local) -> None:
    printed = run(compiled, "live.js", served.url)
    assert "over a connection that was cut" in printed
    assert check_played(served, printed) == ["clans_and_glory"]


def test_a_client_with_the_proto_files_alone_plays_over_the_binary_socket(clients: Path, served: Local, protos: Path) -> None:
    assert check_played(served, run(clients, "binary.mjs", protos, served.url)) == ["night_knight"]


def test_a_client_that_is_told_to_wait_waits(compiled: Path, served: Local) -> None:
    exhausted = False
    while not exhausted:
        asked = urllib.request.Request(
            f"{served.url}/v1/players", data=b'{"name": "Bob"}', headers={"Content-Type": "application/json"}, method="POST"
        )
        try:
            urllib.request.urlopen(asked, timeout=10).close()
        except urllib.error.HTTPError as refused:
            with refused:
                exhausted = refused.code == 429
    printed = run(compiled, "rest.js", served.url)
    assert "429, and so once more in" in printed
    assert check_played(served, printed) == ["night_clan"]
