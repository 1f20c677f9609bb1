"""A peer, another game server, on the work of our pillow: its server and a client that plays all seats, each a Node process of its own.

Both are copied to .cache and run there, so that what npm installs never lies among the sources.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.processes import LOCALHOST, Child, free_port, tail
from tests import node
from tests.bench.peers.contest import Result

SEATS = 4
# So many rounds are played before the counted ones, as a share of these: Node compiles what runs often.
WARM_UP = 0.2
STARTUP_SECONDS = 20.0
MEASURE_SECONDS = 90.0

_SOURCES = Path(__file__).parent
_CACHE = node.CACHE / "peers"
# What the libraries check in development only is no part of the work.
_PRODUCTION = {"NODE_ENV": "production"}


class PeerError(RuntimeError):
    """A peer failed; the message says how."""


@dataclass(frozen=True)
class Peer:
    """A peer.

    Args:
        name: its folder.
        server: the server's file in it.
        client: the client's.
        rounds: by number of rooms, how many rounds each room plays in one measurement: some seconds on two cores.
    """

    name: str
    server: str
    client: str
    rounds: Mapping[int, int]

    def measure(self, rooms: int, rounds: int | None = None) -> Result:
        """So many rooms play so many rounds each, by default as many as its table says.

        Raises:
            NodeError: Node is missing or too old, or npm cannot install.
            PeerError: something fails or takes too long.
        """
        if rounds is None:
            rounds = self.rounds[rooms]
        directory = _installed(self.name)
        with tempfile.TemporaryDirectory() as logs, self._serving(directory, Path(logs) / "server.log") as (port, server):
            log = Path(logs) / "client.log"
            numbers = [port, rooms, max(1, round(rounds * WARM_UP)), rounds, server.pid]
            client = Child(self.name, [node.node(), self.client, *map(str, numbers)], log, env={**os.environ, **_PRODUCTION}, cwd=directory)
            client.start()
            try:
                if not client.wait(MEASURE_SECONDS):
                    raise PeerError(f"{self.name}: {rooms} rooms took more than {MEASURE_SECONDS:.0f} s:\n{tail(log)}\n{tail(server.log)}")
            finally:
                client.kill()
            return self._result(rooms, rounds, tail(log), client.exit_status)

    @contextmanager
    def _serving(self, directory: Path, log: Path) -> Iterator[tuple[int, Child]]:
        port = free_port()
        server = Child(self.name, [node.node(), self.server, str(port)], log, env={**os.environ, **_PRODUCTION}, cwd=directory)
        server.start()
        try:
            deadline = time.monotonic() + STARTUP_SECONDS
            while not _answers(port):
                if not server.running or time.monotonic() > deadline:
                    raise PeerError(f"{self.name}: the server {server.exit_status} and does not answer:\n{tail(log)}")
                time.sleep(0.05)
            yield port, server
        finally:
            # Nothing is kept that an orderly end would save.
            server.kill()

    def _result(self, rooms: int, rounds: int, said: str, status: str) -> Result:
        try:
            measured = json.loads(said.splitlines()[-1])
            grabs, ms, p50, p99 = (measured[name] for name in ("grabs", "ms", "p50Ms", "p99Ms"))
            server, client = (None if measured[name] is None else measured[name] / ms for name in ("serverCpuMs", "clientCpuMs"))
        except (IndexError, KeyError, TypeError, ValueError):
            raise PeerError(f"{self.name}: the client {status} and reported nothing:\n{said}") from None
        if grabs != rooms * SEATS * rounds:
            raise PeerError(f"{self.name}: {grabs} grabs were ordered and not {rooms * SEATS * rounds}")
        return Result(self.name, rooms, 1000 * grabs / ms, p50, p99, server, client)


def _installed(name: str) -> Path:
    """The peer's copy, with what it depends on."""
    directory = node.installed(_SOURCES / name / "package.json", _CACHE / name)
    for source, target in (
        (_SOURCES / "report.mjs", _CACHE),
        *((file, directory) for file in (_SOURCES / name).iterdir() if file.is_file()),
    ):
        shutil.copy(source, target)
    return directory


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((LOCALHOST, port), timeout=1):
            return True
    except OSError:
        return False
