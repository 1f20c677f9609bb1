"""Colours: each seat has its own, in names and on boards."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.text import Text

SEATS = ("cyan", "magenta", "yellow", "green", "bright_blue", "bright_red")


def seat_style(seat: int) -> str:
    """The style of a seat."""
    return SEATS[seat % len(SEATS)]


def named(said: str, names: Sequence[str]) -> Text:
    """A sentence, the names in it in their seats' colours."""
    text = Text(said)
    for seat in sorted(range(len(names)), key=lambda seat: len(names[seat])):
        text.highlight_regex(rf"(?<!\w){re.escape(names[seat])}(?!\w)", f"bold {seat_style(seat)}")
    return text


def name(seat: int, names: Sequence[str]) -> Text:
    """A seat's name in its colour."""
    return Text(names[seat], f"bold {seat_style(seat)}")
