"""The terminal player, at a terminal, and the demo."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path

import pytest

from deploy.local import ROOT, Local
from deploy.processes import LOCALHOST, free_port

_CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
SECONDS = 60.0


class Terminal:
    """A program at a terminal of 120 columns.

    Attributes:
        screen: all that it has written, without colours.
    """

    def __init__(self, *argv: str, env: dict[str, str] | None = None) -> None:
        self.screen = ""
        self._at = 0
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.set_blocking(self._master, False)
        self.process = subprocess.Popen(
            [sys.executable, *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=ROOT,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", **(env or {})},
        )
        os.close(slave)

    async def sees(self, *patterns: str, seconds: float = SECONDS) -> re.Match[str]:
        """Waits for one of these after what was seen last, and returns it."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(seconds):
            while True:
                found = [match for pattern in patterns if (match := re.compile(pattern).search(self.screen, self._at))]
                if found:
                    first = min(found, key=re.Match.end)
                    self._at = first.end()
                    return first
                readable = asyncio.Event()
                loop.add_reader(self._master, readable.set)
                await readable.wait()
                loop.remove_reader(self._master)
                try:
                    data = os.read(self._master, 65_536)
                except OSError:  # Linux says so of the end
                    data = b""
                assert data, f"it has ended:\n{self.screen}"
                self.screen = _CODES.sub("", self.screen + data.decode(errors="replace"))

    def types(self, keys: str) -> None:
        """Types."""
        os.write(self._master, keys.encode())

    async def ends(self) -> int:
        """Waits for its end, and returns its exit status."""
        with contextlib.suppress(AssertionError):
            await self.sees("this is never written", seconds=SECONDS)
        return await asyncio.to_thread(self.process.wait, SECONDS)

    def close(self) -> None:
        """Ends it, if it has not."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)


@contextlib.contextmanager
def at_terminal(*argv: str, env: dict[str, str] | None = None) -> Iterator[Terminal]:
    terminal = Terminal(*argv, env=env)
    try:
        yield terminal
    except TimeoutError:
        print(terminal.screen)
        raise
    finally:
        terminal.close()


def _files(directory: Path) -> list[Path]:
    return list(directory.iterdir())


@pytest.mark.parametrize("game", ["night_clan", "clans_and_glory", "dark_is_the_night"])
async def test_a_match_of_turns_is_played_by_numbers_to_its_end(everything: Local, game: str) -> None:
    with at_terminal("-m", "gloaming.client", game, "--url", everything.url, "--name", "Ann") as ann:
        while (seen := await ann.sees(r"Your move[^:]*: $", "The same again"))[0] != "The same again":
            ann.types("1\n")
        assert "The match is over" in ann.screen
        ann.types("n")
        assert await ann.ends() == 0
        assert seen


async def test_what_is_typed_wrong_is_told_and_changes_nothing(everything: Local) -> None:
    with at_terminal("-m", "gloaming.client", "clans_and_glory", "--url", everything.url) as ann:
        await ann.sees(r"Your move[^:]*: $")
        ann.types("999\n")
        await ann.sees(r"There are \d+ moves")
        ann.types("x12\x7f\n")
        await ann.sees("plays")
        ann.types("q")
        assert await ann.ends() == 0
        assert "Good night" in ann.screen
        assert "Traceback" not in ann.screen


async def test_night_knight_is_played_by_single_keys_and_tells_how_long_the_line_takes(everything: Local) -> None:
    with at_terminal("-m", "gloaming.client", "night_knight", "--url", everything.url, "--name", "Ann") as ann:
        await ann.sees("Round 1")
        await ann.sees("NOW!")
        ann.types(" ")
        await ann.sees(r"Ann keeps hands off after \d+ ms\.")
        await ann.sees(r"told here \d+ ms after the key; the server takes the line for \d+ ms")
        ann.types("q")
        assert await ann.ends() == 0


async def test_people_meet_in_a_room_by_its_code(everything: Local) -> None:
    with at_terminal("-m", "gloaming.client", "night_clan", "--url", everything.url, "--name", "Ann", "--room") as ann:
        code = (await ann.sees(r"code: ([A-Z]{6})"))[1]
        with at_terminal("-m", "gloaming.client", "night_clan", "--url", everything.url, "--name", "Bob", "--join", code) as bob:
            await ann.sees("In the room: Ann, Bob\\.")
            ann.types("b")
            await bob.sees("In the room: Ann, Bob, ")
            ann.types("\n")
            for each in (ann, bob):
                await each.sees("keep the hand")
                each.types("q")
                assert await each.ends() == 0


async def test_where_nothing_answers_a_sentence_says_so() -> None:
    nowhere = f"http://{LOCALHOST}:{free_port()}"
    with at_terminal("-m", "gloaming.client", "night_clan", "--url", nowhere) as ann:
        assert await ann.ends() == 1
        assert "does not answer" in ann.screen
    with at_terminal("-m", "gloaming.client", "chess", "--url", nowhere) as ann:
        assert await ann.ends() == 2


def test_what_plays_by_keys_needs_a_terminal() -> None:
    done = subprocess.run([sys.executable, "-m", "gloaming.client", "night_clan"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "This plays by keys, so it needs a terminal.\n")


@pytest.mark.slow
async def test_make_play_brings_a_server_of_its_own_where_none_answers_and_takes_it_along(tmp_path: Path) -> None:
    nowhere = f"http://{LOCALHOST}:{free_port()}"
    with at_terminal("-m", "deploy.play", "night_clan", "--url", nowhere, env={"TMPDIR": str(tmp_path)}) as ann:
        await ann.sees("one is started")
        await ann.sees(r"Your move[^:]*: $")
        assert _files(tmp_path)
        ann.process.send_signal(signal.SIGINT)
        assert await ann.ends() == 0
    assert _files(tmp_path) == []


@pytest.mark.slow
def test_the_demo_plays_every_game_verifies_it_and_leaves_nothing_behind(tmp_path: Path) -> None:
    began = time.monotonic()
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    argv = [sys.executable, "-m", "deploy.demo"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, env=env, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("is true.") == 4
    assert done.stdout.count("The match is over.") == 8
    assert _files(tmp_path) == []
    assert time.monotonic() - began < 60
