"""Child processes that never outlive their parent, and free ports for them to listen on."""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

LOCALHOST = "127.0.0.1"

# Below the ports that systems hand to outgoing connections (Linux from 32768, macOS from 49152), so that no connection made between
# choosing a port and listening on it can take it.
_PORTS = range(20000, 32000)

# Linux sends a child a signal when its parent dies. A process asks for it itself (PR_SET_PDEATHSIG = 1, kept across exec), so a tiny one
# does and then becomes the program: `preexec_fn` would run Python between fork and exec, not safe beside threads (gRPC's, in tests).
_LEASH = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(1, int(sys.argv[1]), 0, 0, 0)\n"
    "if os.getppid() == int(sys.argv[2]): os.execvp(sys.argv[3], sys.argv[3:])\n"
)


def is_free(port: int, host: str = LOCALHOST) -> bool:
    """Whether nobody listens on this port.

    Raises:
        OSError: when nobody may: no such address, or a port kept for the system.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


# Ports are handed out by blocks, each held by one process for as long as it lives: its mark is a UDP socket bound to the block's first
# number, which is in the way of no TCP listener and goes with the process, however that ends. So no two processes choose the same port
# in the time between choosing and listening.
_BLOCK = 50


def _own_ports() -> Iterator[int]:
    blocks = [_PORTS[start : start + _BLOCK] for start in range(0, len(_PORTS), _BLOCK)]
    random.shuffle(blocks)
    for block in blocks:
        mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            mark.bind((LOCALHOST, block.start))
        except OSError:
            mark.close()
            continue
        atexit.register(mark.close)
        yield from block


_ports = _own_ports()


def free_port() -> int:
    """A port of this machine that nothing listens on, given to no other caller of this function while this process lives.

    Raises:
        RuntimeError: when all are taken.
    """
    for port in _ports:
        if is_free(port):
            return port
    raise RuntimeError(f"no free port from {_PORTS.start} to {_PORTS.stop}")


def tail(path: Path, lines: int = 20) -> str:
    """The last lines of a log, or nothing when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 64 * 1024))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


class Child:
    """A process in a session of its own, which a terminal's Ctrl-C does not reach, with its output appended to a log.

    On Linux it gets `orphan_signal` when the thread that started it ends, so start it from one that lives as long as it should.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        orphan_signal: signal.Signals = signal.SIGKILL,
    ) -> None:
        self.name = name
        self.log = log
        self._argv = list(argv)
        self._env = None if env is None else dict(env)
        self._cwd = cwd
        self._orphan_signal = orphan_signal
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id, or None before the first start."""
        return self._process.pid if self._process else None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_status(self) -> str:
        """How it ended, for people."""
        code = self._process.poll() if self._process else None
        if code is None:
            return "is running" if self._process else "was not started"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"

    def start(self) -> None:
        """Start it, again with the same arguments and environment if it ran before."""
        if self.running:
            raise RuntimeError(f"{self.name} is running already")
        argv = self._argv
        if sys.platform == "linux":
            argv = [sys.executable, "-ISc", _LEASH, str(int(self._orphan_signal)), str(os.getpid()), *argv]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=self._env, cwd=self._cwd, start_new_session=True
            )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and whatever it started; nothing happens when it has ended."""
        if self._process is not None and self._process.poll() is None:
            # It may end, and a signal handler may find it ended, between the two lines; macOS says "not permitted" of a process just ended.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended; False when it is still running after `timeout` seconds."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self, grace: float = 10.0) -> None:
        """Ask it to end, and kill it when it has not within `grace` seconds."""
        self.signal(signal.SIGTERM)
        if not self.wait(grace):
            self.kill()
