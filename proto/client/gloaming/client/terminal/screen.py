"""A terminal: lines that stay, one line below them that changes, and single keys."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType

END = "\x04"
_CLEAR = "\r\x1b[2K"


class Screen:
    """A terminal, from `with` to its end. Keys are told one by one, without Enter.

    Args:
        console: where is written.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._keys: asyncio.Queue[str] = asyncio.Queue()
        self._status = ""
        self._fd = sys.stdin.fileno()
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)
        asyncio.get_running_loop().add_reader(self._fd, self._read)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)
        self.status("")

    def say(self, *what: RenderableType) -> None:
        """Prints lines that stay."""
        self._write(_CLEAR)
        for each in what:
            self.console.print(each)
        self._write(self._status)

    def status(self, said: str) -> None:
        """Changes the last line."""
        said = said[: self.console.width - 1]
        if said != self._status:
            self._status = said
            self._write(_CLEAR + said)

    async def key(self) -> str:
        """Returns the next key; `END` once there are no more."""
        return await self._keys.get()

    def forget_keys(self) -> None:
        """Forgets what was typed before now."""
        while not self._keys.empty():
            self._keys.get_nowait()

    def _read(self) -> None:
        data = os.read(self._fd, 1024)
        if not data:
            asyncio.get_running_loop().remove_reader(self._fd)
        for key in data.decode(errors="ignore") or END:
            self._keys.put_nowait(key)

    def _write(self, text: str) -> None:
        self.console.file.write(text)
        self.console.file.flush()
