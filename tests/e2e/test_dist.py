"""What `make dist` builds can be installed by others, and used against a running server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from deploy import dist
from deploy.local import ROOT, Local

UV = str(Path(sys.executable).parent / "uv")
PROTOS = sorted((ROOT / "proto" / "gloaming").rglob("*.proto"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where everything was built."""
    directory = tmp_path_factory.mktemp("dist")
    # Nothing may be downloaded for it.
    env = {**os.environ, "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    argv = [sys.executable, "-m", "deploy.dist", "--no-image", "--directory", str(directory)]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert [Path(line).parent for line in done.stdout.splitlines()] == [directory] * 2
    return directory


def _wheel(built: Path) -> Path:
    (wheel,) = built.glob("gloaming_client-*.whl")
    return wheel


def test_the_wheel_holds_client_messages_stubs_and_protos_and_nothing_of_the_server(built: Path) -> None:
    names = set(zipfile.ZipFile(_wheel(built)).namelist())
    assert {name.partition("/")[0] for name in names} == {"gloaming", f"gloaming_client-{dist.version()}.dist-info"}
    assert {f"gloaming/{file.relative_to(ROOT / 'proto' / 'gloaming')}" for file in PROTOS} <= names
    for tree in ("client", "gen"):
        for file in (ROOT / "proto" / tree / "gloaming").rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert str(file.relative_to(ROOT / "proto" / tree)) in names


def test_what_it_depends_on_is_no_older_than_what_its_modules_were_generated_by() -> None:
    project = tomllib.loads((ROOT / "proto" / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["grpc"]]
    minimum = {name: _numbers(version) for name, _, version in (each.partition(">=") for each in wanted)}
    for file in (ROOT / "proto" / "gen").rglob("*_pb2.py"):
        generated = re.search(r"Protobuf Python Version: ([\d.]+)", file.read_text())
        assert generated is not None
        assert minimum["protobuf"] >= _numbers(generated[1])
    for file in (ROOT / "proto" / "gen").rglob("*_pb2_grpc.py"):
        generated = re.search(r"GRPC_GENERATED_VERSION = '([\d.]+)'", file.read_text())
        assert generated is not None
        assert minimum["grpcio"] >= _numbers(generated[1])


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def test_the_archive_holds_every_proto_and_the_baseline_and_is_the_same_each_time(built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("gloaming-protos-*.tar.gz")
    with tarfile.open(archive) as tar:
        inside = {name.partition("/")[2] for name in tar.getnames()}
        baseline = tar.extractfile(f"gloaming-protos-{dist.version()}/baseline.binpb")
        assert baseline is not None
        assert baseline.read() == (ROOT / "proto" / "baseline.binpb").read_bytes()
    assert inside == {"LICENSE", "buf.yaml", "baseline.binpb", *(str(file.relative_to(ROOT / "proto")) for file in PROTOS)}
    assert dist.protos(tmp_path).read_bytes() == archive.read_bytes()


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment that holds the wheel and what it depends on, as an index gives it."""
    environment = tmp_path_factory.mktemp("installed") / "venv"
    _uv("venv", "--quiet", "--python", sys.executable, str(environment))
    python = str(environment / "bin" / "python")
    if _uv("pip", "install", "--dry-run", "--python", python, "httpx", check=False).returncode:
        pytest.skip("no package index answers")
    _uv("pip", "install", "--quiet", "--python", python, "--constraint", _versions(environment.parent), str(_wheel(built)))
    return python


def _versions(directory: Path) -> str:
    """Versions alone, of the packages that everything here is tested with."""
    locked = re.findall(r"^[a-z0-9-]+==\S+", (ROOT / "requirements-dev.lock").read_text(), re.MULTILINE)
    file = directory / "constraints.txt"
    file.write_text("\n".join(locked))
    return str(file)


def _uv(*argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([UV, *argv], capture_output=True, text=True, timeout=110, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done


def _run(argv: Sequence[str], directory: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(argv, cwd=directory, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_an_empty_environment_with_the_wheel_plays_a_match_against_a_running_server(python: str, everything: Local, tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "proto" / "README.md").read_text(), re.DOTALL)
    (tmp_path / "play.py").write_text(example.replace("http://127.0.0.1:8080", everything.url))
    done = _run([python, "play.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "match_finished" in done.stdout
    for module in ("gateway", "services", "deploy"):
        assert _run([python, "-c", f"import {module}"], tmp_path).returncode == 1


@pytest.mark.slow
def test_extras_bring_the_stubs_and_the_terminal_and_without_them_a_sentence_says_what_to_install(
    python: str, built: Path, tmp_path: Path
) -> None:
    done = _run([python, "-m", "gloaming.client", "night_clan"], tmp_path)
    assert (done.returncode, done.stderr) == (1, "The board is drawn with rich: pip install 'gloaming-client[terminal]'\n")
    _uv("pip", "install", "--quiet", "--python", python, "--constraint", _versions(tmp_path), f"{_wheel(built)}[grpc,terminal]")
    assert _run([python, "-c", "from gloaming.night_clan.v1 import night_clan_pb2_grpc"], tmp_path).returncode == 0
    done = _run([str(Path(python).parent / "gloaming"), "night_clan"], tmp_path)
    assert (done.returncode, done.stderr) == (2, "This plays by keys, so it needs a terminal.\n")
