from __future__ import annotations

import subprocess
import sys

from deploy.processes import _BLOCK, free_port, is_free


def test_processes_that_live_at_once_are_never_given_the_same_port() -> None:
    # Nobody listens on any of them, so that looking alone would find them free for all.
    several = "from deploy.processes import free_port; print(*(free_port() for _ in range(200)), flush=True); input()"
    others = [
        subprocess.Popen([sys.executable, "-c", several], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        for _ in range(3)
    ]
    try:
        given = [free_port() for _ in range(_BLOCK + 1)]
        for other in others:
            assert other.stdout is not None
            given += map(int, other.stdout.readline().split())
        assert len(given) == len(set(given)) == _BLOCK + 1 + 3 * 200
        assert all(map(is_free, given))
    finally:
        for other in others:
            other.communicate("\n", timeout=10)
