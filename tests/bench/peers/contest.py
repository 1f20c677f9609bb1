"""Measures contestants in turn, A B C A B C, so that the machine's moods reach all alike, and sets one's results against the others'."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """One measurement. The CPU of server and load generator, in cores, where it was measured: what is near 1 held the other up."""

    name: str
    rooms: int
    reactions_per_second: float
    p50_ms: float
    p99_ms: float
    server_cores: float | None = None
    client_cores: float | None = None


@dataclass(frozen=True)
class Contestant:
    """Who is measured: at which numbers of rooms, and how."""

    name: str
    rooms: Sequence[int]
    measure: Callable[[int], Result]


_COMPARED = {"reactions_per_second": 0, "p50_ms": 3, "p99_ms": 3}
_CORES = ("server_cores", "client_cores")


def contest(contestants: Sequence[Contestant], rooms: Sequence[int], turns: int, ours: str) -> dict[str, Any]:
    """All values, their medians and, when `ours` takes part, its ratios to each other one, by number of rooms."""
    return {f"rooms_{number}": _at(number, [c for c in contestants if number in c.rooms], turns, ours) for number in rooms}


def _at(rooms: int, contestants: Sequence[Contestant], turns: int, ours: str) -> dict[str, Any]:
    results: dict[str, list[Result]] = {contestant.name: [] for contestant in contestants}
    for turn in range(1, turns + 1):
        for contestant in contestants:
            result = contestant.measure(rooms)
            results[contestant.name].append(result)
            print(f"turn {turn} of {turns}, {_line(result)}", file=sys.stderr, flush=True)
    report: dict[str, Any] = {name: _summary(measured) for name, measured in results.items()}
    if own := results.pop(ours, None):
        report["ratios"] = {f"{ours}_to_{name}": _ratios(own, theirs) for name, theirs in results.items()}
    return report


def _line(result: Result) -> str:
    cores = [f"{name.removesuffix('_cores')} {value:.2f}" for name in _CORES if (value := getattr(result, name)) is not None]
    return (
        f"{result.name} with {result.rooms} {'room' if result.rooms == 1 else 'rooms'}: {result.reactions_per_second:,.0f} a second, "
        f"p50 {result.p50_ms:.2f} ms, p99 {result.p99_ms:.2f} ms" + (f"; cores: {', '.join(cores)}" if cores else "")
    )


def _summary(results: Sequence[Result]) -> dict[str, Any]:
    summary = {}
    for name, digits in {**_COMPARED, **dict.fromkeys(_CORES, 2)}.items():
        if None not in (values := [getattr(result, name) for result in results]):
            median = statistics.median(values)
            summary[name] = {"median": round(median, digits or None), "values": [round(value, digits or None) for value in values]}
    return summary


def _ratios(own: Sequence[Result], theirs: Sequence[Result]) -> dict[str, Any]:
    """Medians of the ratios within each turn: what slowed a whole turn cancels out."""
    ratios = {}
    for name in _COMPARED:
        pairs = [getattr(mine, name) / getattr(other, name) for mine, other in zip(own, theirs, strict=True)]
        ratios[name] = {"median": round(statistics.median(pairs), 3), "values": [round(pair, 3) for pair in pairs]}
    return ratios
