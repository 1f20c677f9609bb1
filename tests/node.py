"""Node.js for what is measured and tested with it. What npm installs goes to .cache, and never lies among the sources."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

CACHE = Path(__file__).parent.parent / ".cache"
_INSTALL_SECONDS = 240


class NodeError(RuntimeError):
    """Node or npm is missing or too old, or what is needed cannot be installed; the message says what to do."""


@cache
def node() -> str:
    """The program: what NODE names, or else the `node` on the PATH.

    Raises:
        NodeError: there is none.
    """
    named = os.environ.get("NODE")
    if found := shutil.which(named or "node"):
        return found
    raise NodeError(f"NODE names {named}, which is not a program that can be run." if named else f"No Node.js found. {_advice()}")


def version() -> str:
    """Its version, as it says it.

    Raises:
        NodeError: there is no Node.
    """
    return subprocess.run([node(), "--version"], check=True, capture_output=True, text=True).stdout.strip()


def installed(package: Path, directory: Path) -> Path:
    """Has what a package.json asks for installed in a directory, unless it is there already, and returns the directory.

    Raises:
        NodeError: Node is missing or older than the package's `engines` say, or npm cannot install.
    """
    wanted = package.read_text()
    asked = json.loads(wanted)["engines"]["node"]
    oldest, here = re.search(r"\d+", asked), version()
    if oldest and int(here.removeprefix("v").split(".")[0]) < int(oldest[0]):
        raise NodeError(f"{package.parent.name} needs Node {asked}, and {node()} is {here}. {_advice(asked)}")
    directory.mkdir(parents=True, exist_ok=True)
    # Written once npm has succeeded, so that a set-up broken off is done again.
    stamp = directory / "node_modules" / ".installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"Installing {package.parent.name} with npm …", file=sys.stderr, flush=True)
        shutil.copy(package, directory)
        _install(directory)
        stamp.write_text(wanted)
    return directory


def _install(directory: Path) -> None:
    # Some peer dependencies contradict each other or name what is not needed here, hence --legacy-peer-deps.
    argv = [_npm(), "install", "--legacy-peer-deps", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
    path = os.pathsep.join((str(Path(node()).parent), os.environ.get("PATH", "")))
    try:
        done = subprocess.run(
            argv,
            cwd=directory,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise NodeError(f"npm install took more than {_INSTALL_SECONDS} s in {directory}.") from None
    if done.returncode:
        raise NodeError(f"npm install failed in {directory}:\n{done.stdout}")


def _npm() -> str:
    # The one beside this node comes with it; another may be too old or too new for it.
    if found := shutil.which("npm", path=str(Path(node()).parent)) or shutil.which("npm"):
        return found
    raise NodeError(f"No npm found beside {node()} or on the PATH. {_advice()}")


def _advice(wanted: str = ">=22") -> str:
    return f"Install Node.js {wanted} with npm, or name one: NODE=/path/to/node"
