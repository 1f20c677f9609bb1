"""Fills .venv from a lock file: `python3 deploy/setup_venv.py requirements.lock .venv/.run-stamp`, as the Makefile calls it.

Only the standard library, and a syntax that an old Python can read, so that it can say that it is too old. One at a time, so that two
`make run` in a fresh clone do not spoil each other's set-up.
"""

import fcntl
import os
import platform
import subprocess
import sys
from pathlib import Path

VENV = Path(".venv")


def main(lock: Path, stamp: Path) -> int:
    """Make the environment when it is missing, install what the lock file names, and leave a stamp."""
    if sys.version_info < (3, 11):
        print(f"Gloaming needs Python 3.11 or newer, and {sys.executable} is {platform.python_version()}.", file=sys.stderr)
        print("Install one, and name it if it is not found: make PYTHON=/path/to/python3", file=sys.stderr)
        return 1
    Path(".cache").mkdir(exist_ok=True)
    with Path(".cache/venv.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if stamp.exists() and stamp.stat().st_mtime >= lock.stat().st_mtime:
            return 0  # another one did it while we waited
        return fill(lock, stamp)


def fill(lock: Path, stamp: Path) -> int:
    """Make and fill the environment."""
    python = VENV / "bin" / "python"
    if not (VENV / "bin" / "pip").exists():
        try:
            import ensurepip  # noqa: F401  # Debian keeps it in a package of its own
            import venv
        except ImportError:
            print("This Python cannot make virtual environments. On Debian and Ubuntu:", file=sys.stderr)
            print(f"  apt-get install python3-venv    (or python3.{sys.version_info[1]}-venv)", file=sys.stderr)
            return 1
        print(f"Making .venv with Python {platform.python_version()}.", flush=True)
        venv.create(VENV, with_pip=True, clear=True)
    print(f"Installing what {lock} names; the first time takes a minute.", flush=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-qq", "install", "--no-deps"]
    # Everything is named in the lock file with its hash, the build backend of the last step too: nothing else is downloaded.
    for step in (["--require-hashes", "--requirement", str(lock)], ["--no-build-isolation", "--editable", "."]):
        status = subprocess.call([*pip, *step])
        if status:
            return status
    stamp.touch()
    if lock.name == "requirements-dev.lock":
        (stamp.parent / ".run-stamp").touch()  # it holds all of requirements.lock
    return 0


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parent.parent)
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
