"""The machine that is measured on: what it has, and what its processes cost."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from deploy.redis_server import find_binary

_PACKAGES = ("grpcio", "hiredis", "protobuf", "redis", "uvicorn", "uvloop", "websockets")


def described() -> dict[str, Any]:
    """Its cores, and the versions of what does the work."""
    said = subprocess.run([find_binary(), "--version"], check=True, capture_output=True, text=True).stdout
    version = re.search(r"v=(\S+)", said)
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "redis_server": version[1] if version else said.strip(),
        "packages": {name: importlib.metadata.version(name) for name in _PACKAGES},
    }


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process, all its threads together. Linux tells; elsewhere it is 0."""
    try:
        # The name, in parentheses, may hold spaces; utime and stime are the 12th and 13th fields after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
