from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis

from deploy.local import Local, LocalError
from deploy.processes import free_port
from gateway.registry import GAMES


@contextmanager
def launched(data: Path, port: int, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "deploy.local", "--port", str(port), "--data", str(data), *arguments]
    env = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def printed_until(process: subprocess.Popen[str], last: str) -> str:
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(last):
            return "".join(lines)
    assert process.stderr is not None
    pytest.fail("".join(lines) + process.stderr.read())


def members(data: Path) -> list[int]:
    """The processes that are known by the data directory in their arguments, environment or, as Redis is, working directory (Linux)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                known = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes() + bytes((entry / "cwd").readlink())
                if str(data).encode() in known:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def status(url: str) -> int:
    with urllib.request.urlopen(url, timeout=5) as response:
        return int(response.status)


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@linux
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_everything_is_and_leaves_nothing_behind(tmp_path: Path, how: signal.Signals) -> None:
    port = free_port()
    with launched(tmp_path, port) as process:
        said = printed_until(process, "Ctrl-C")
        assert f"http://127.0.0.1:{port}" in said
        assert all(game in said for game in GAMES)
        assert status(f"http://127.0.0.1:{port}/readyz") == 200
        # The launcher, Redis, the gateway and a service a game.
        assert len(members(tmp_path)) == 3 + len(GAMES)
        process.send_signal(how)
        assert process.wait(20) == 0
    assert members(tmp_path) == []


@linux
def test_nothing_outlives_a_launcher_that_is_killed(tmp_path: Path) -> None:
    with launched(tmp_path, free_port()) as process:
        printed_until(process, "Ctrl-C")
        process.kill()
    deadline = time.monotonic() + 10
    while members(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert members(tmp_path) == []


def test_a_taken_port_is_one_sentence_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with launched(tmp_path / "data", port) as process:
            out, error = process.communicate(timeout=20)
    assert process.returncode == 1
    assert out == ""
    assert error.startswith(f"Port {port} is taken")
    assert error.count("\n") == 1
    assert not (tmp_path / "data").exists()


@linux
def test_when_a_process_dies_it_says_which_and_stops_the_rest(tmp_path: Path) -> None:
    with launched(tmp_path, free_port()) as process:
        printed_until(process, "Ctrl-C")
        game = next(iter(GAMES))
        victim = next(pid for pid in members(tmp_path) if f"services.{game}\0".encode() in Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(victim, signal.SIGKILL)
        _, error = process.communicate(timeout=20)
    assert process.returncode == 1
    assert error.startswith(f"{game} was ended by SIGKILL")
    assert members(tmp_path) == []


def test_two_copies_do_not_share_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    with Local(tmp_path), pytest.raises(LocalError, match="Another copy runs"):
        Local(tmp_path).start()


def test_data_and_keys_stay_for_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    with Local(tmp_path) as local, Redis.from_url(local.redis_url) as client:
        client.set("kept", "1")
        keys = json.loads((tmp_path / "keys" / "jwks.json").read_text())
    with Local(tmp_path) as local, Redis.from_url(local.redis_url) as client:
        assert client.get("kept") == b"1"
        assert json.loads((tmp_path / "keys" / "jwks.json").read_text()) == keys


def test_replicas_of_a_game_have_names_and_can_be_killed_and_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    game = next(iter(GAMES))
    with Local(tmp_path, replicas=2) as local:
        assert len(local.services[game]) == 2
        local.kill(f"{game}-1")
        assert local.fallen() is local.children[f"{game}-1"]
        assert local.children[f"{game}-2"].running
        local.restart(f"{game}-1")
        assert local.fallen() is None
        local.kill("redis")
        local.restart("redis")
        assert local.fallen() is None


def test_a_given_redis_is_used_and_left_alone(tmp_path: Path, redis_url: str) -> None:
    with Local(tmp_path, env={"REDIS_URL": redis_url}) as local:
        assert local.redis_url == redis_url
        assert "redis" not in local.children
    with Redis.from_url(redis_url) as client:
        assert client.ping()
