"""`make play GAME=night_clan`: plays in the terminal, with the server that answers, or with one of its own where none does."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from deploy.local import ROOT, Local, LocalError
from gloaming.client.terminal import player

_LOCAL = ("127.0.0.1", "localhost", "::1")


def _answers(url: str) -> bool:
    """Whether a server is there."""
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def main() -> int:
    """Plays, and returns the exit status."""
    asked = player.arguments().parse_args()
    # Somebody else's server that does not answer is not stood in for.
    if urllib.parse.urlsplit(asked.url).hostname not in _LOCAL or _answers(asked.url):
        return player.main(asked)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # What is started behind a shell's `&` begins with SIGINT ignored; at a terminal it has to end this all the same.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"No server answers at {asked.url}, so one is started for as long as you play.")
    try:
        with tempfile.TemporaryDirectory(prefix="gloaming-play-") as data, Local(Path(data), env={"REDIS_URL": ""}) as local:
            asked.url = local.url
            return player.main(asked)
    except LocalError as fault:
        print(fault, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
