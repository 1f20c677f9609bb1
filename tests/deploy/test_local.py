from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from redis import Redis

from deploy.local import RESTARTS_A_MINUTE, Local, LocalError
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


def running(data: Path, game: str) -> list[int]:
    """The processes of a game's service (Linux)."""
    found = []
    for pid in members(data):
        with suppress(OSError):
            if f"services.{game}\0".encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
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
        for address in re.findall(r"http://\S+/metrics", said):
            assert status(address) == 200
        (key,) = re.findall(r"key +(\S+)", said)
        assert Path(key).is_file()
        process.send_signal(how)
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 0
        assert out == f"Stopped; matches are kept in {tmp_path}.\n"
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
        (victim,) = running(tmp_path, game)
        os.kill(victim, signal.SIGKILL)
        _, error = process.communicate(timeout=20)
    assert process.returncode == 1
    assert error.startswith(f"{game} was ended by SIGKILL")
    assert error.endswith("\nEverything was stopped.\n")
    assert members(tmp_path) == []


@linux
def test_a_replica_that_dies_is_started_again_unless_it_keeps_dying(tmp_path: Path) -> None:
    game = next(iter(GAMES))
    with launched(tmp_path, free_port(), "--replicas", "2") as process:
        printed_until(process, "Ctrl-C")
        assert process.stderr is not None
        for n in range(RESTARTS_A_MINUTE + 1):
            while len(replicas := running(tmp_path, game)) < 2:
                time.sleep(0.02)
            os.kill(replicas[n % 2], signal.SIGKILL)
            said = process.stderr.readline()
            assert re.match(rf"{game}-[12] was ended by SIGKILL", said)
            assert ("is started again" in said) == (n < RESTARTS_A_MINUTE)
        assert process.wait(20) == 1
        assert process.stderr.read().endswith("\nEverything was stopped.\n")
    assert members(tmp_path) == []


@pytest.mark.parametrize("url", ["redis://me:secret@127.0.0.1:{port}/0", "127.0.0.1:{port}", "redis://me:secret@127.0.0.1:x/0"])
def test_a_redis_that_does_not_answer_is_one_sentence_at_once(tmp_path: Path, url: str) -> None:
    began = time.monotonic()
    with pytest.raises(LocalError, match=r"REDIS_URL .*\.$") as raised:
        Local(tmp_path, env={"REDIS_URL": url.format(port=free_port())}).start()
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert time.monotonic() - began < 5


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
