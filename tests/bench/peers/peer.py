"""A peer, another game server, on the work of our pillow: its server and a client that plays all seats, each a Node process of its own.

Both are copied to .cache and run there, so that what npm installs never lies among the sources.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from deploy.processes import LOCALHOST, Child, free_port, tail
from tests.bench.peers.contest import Result

SEATS = 4
# So many rounds are played before the counted ones, as a share of these: Node compiles what runs often.
WARM_UP = 0.2
STARTUP_SECONDS = 20.0
MEASURE_SECONDS = 90.0

_SOURCES = Path(__file__).parent
_CACHE = Path(__file__).parents[3] / ".cache" / "peers"
# What the libraries check in development only is no part of the work.
_PRODUCTION = {"NODE_ENV": "production"}
_ADVICE = "Install Node.js 22 or newer with npm, or name one: make bench-peers NODE=/path/to/node"


class PeerError(RuntimeError):
    """Something is missing, or a peer failed; the message says what."""


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
            PeerError: when Node is missing or too old, or something fails or takes too long.
        """
        if rounds is None:
            rounds = self.rounds[rooms]
        directory = _installed(self.name)
        with tempfile.TemporaryDirectory() as logs, self._serving(directory, Path(logs) / "server.log") as (port, server):
            log = Path(logs) / "client.log"
            numbers = [port, rooms, max(1, round(rounds * WARM_UP)), rounds, server.pid]
            client = Child(self.name, [_node(), self.client, *map(str, numbers)], log, env={**os.environ, **_PRODUCTION}, cwd=directory)
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
        server = Child(self.name, [_node(), self.server, str(port)], log, env={**os.environ, **_PRODUCTION}, cwd=directory)
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


def node_version() -> str:
    """Node's version, as it says it.

    Raises:
        PeerError: when there is no Node.
    """
    return subprocess.run([_node(), "--version"], check=True, capture_output=True, text=True).stdout.strip()


@cache
def _node() -> str:
    named = os.environ.get("NODE")
    if found := shutil.which(named or "node"):
        return found
    raise PeerError(f"NODE names {named}, which is not a program that can be run." if named else f"No Node.js found. {_ADVICE}")


@cache
def _npm() -> str:
    # The one beside this node comes with it; another may be too old or too new for it.
    if found := shutil.which("npm", path=str(Path(_node()).parent)) or shutil.which("npm"):
        return found
    raise PeerError(f"No npm found beside {_node()} or on the PATH. {_ADVICE}")


@cache
def _installed(name: str) -> Path:
    """The peer's copy, with what it depends on."""
    directory = _CACHE / name
    package = (_SOURCES / name / "package.json").read_text()
    asked = json.loads(package)["engines"]["node"]
    oldest = re.search(r"\d+", asked)
    version = node_version()
    if oldest and int(version.removeprefix("v").split(".")[0]) < int(oldest[0]):
        raise PeerError(f"{name} needs Node {asked}, and {_node()} is {version}. {_ADVICE}")
    # Written once npm has succeeded, so that a set-up broken off is done again.
    stamp = directory / "node_modules" / ".installed"
    current = stamp.exists() and stamp.read_text() == package
    directory.mkdir(parents=True, exist_ok=True)
    for source, target in (
        (_SOURCES / "report.mjs", _CACHE),
        *((file, directory) for file in (_SOURCES / name).iterdir() if file.is_file()),
    ):
        shutil.copy(source, target)
    if not current:
        print(f"Installing {name} with npm …", file=sys.stderr, flush=True)
        _install(directory)
        stamp.write_text(package)
    return directory


def _install(directory: Path) -> None:
    # Their peer dependencies contradict each other or name what is not needed here, hence --legacy-peer-deps.
    argv = [_npm(), "install", "--legacy-peer-deps", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
    path = os.pathsep.join((str(Path(_node()).parent), os.environ.get("PATH", "")))
    done = subprocess.run(
        argv, cwd=directory, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise PeerError(f"npm install failed in {directory}:\n{done.stdout}")


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((LOCALHOST, port), timeout=1):
            return True
    except OSError:
        return False
