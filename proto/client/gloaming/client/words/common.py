"""Words that every game needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from gloaming.table.v1 import table_pb2


def label(name: str) -> str:
    """A name of the protocol as people write it: `NIGHT_WATCH` is "Night Watch"."""
    return name.replace("_", " ").title().replace(" Of ", " of ")


def word(enum: Any, value: int) -> str:
    """A value of an enum as people write it; also one that is newer than this client."""
    return label(enum.Name(value)) if value in enum.values() else "something new"


def listed(items: Iterable[str], nothing: str = "nothing") -> str:
    """Things with commas between them, and an "and" before the last."""
    each = list(items)
    if len(each) < 2:
        return each[0] if each else nothing
    return ", ".join(each[:-1]) + " and " + each[-1]


def a(thing: str) -> str:
    """A thing with its article."""
    return f"{'an' if thing[:1].lower() in 'aeiou' else 'a'} {thing}"


def count(number: int, thing: str) -> str:
    """So many things."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def seat_names(seats: Sequence[table_pb2.Seat]) -> list[str]:
    """The names of the seats in turn order; those that several have are numbered: "Bot 1", "Bot 2"."""
    given = Counter(seat.name for seat in seats)
    met: Counter[str] = Counter()
    names = []
    for seat in seats:
        met[seat.name] += 1
        names.append(f"{seat.name} {met[seat.name]}" if given[seat.name] > 1 else seat.name)
    return names


def seat_changed(seat: table_pb2.Seat, names: Sequence[str]) -> str:
    """What is new of a seat."""
    name = names[seat.seat]
    if seat.resigned:
        return f"{name} has resigned."
    if seat.stand_in:
        return f"A bot plays for {name} until they move again."
    return f"{name} is here." if seat.connected else f"{name} is away."


def finished(outcome: table_pb2.Outcome, names: Sequence[str]) -> str:
    """How a match ended."""
    winners = listed(names[seat] for seat in outcome.winners)
    match outcome.ending:
        case table_pb2.Outcome.ABANDONED:
            return "The match was given up, since nobody played any more. Nobody wins."
        case table_pb2.Outcome.RESIGNED:
            return f"The match is over by resignation. {winners} wins."
        case _ if len(outcome.winners) == 1:
            return f"The match is over. {winners} wins."
        case _:
            return f"The match is over. {winners} share the first place."
