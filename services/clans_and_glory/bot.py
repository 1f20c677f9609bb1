"""The STANDARD bot of Clans and Glory: it plays the move with the best expected lead, from its seat's own view alone.

What a shield takes depends on the shields below it only (CG-10), never on later ones. So each level of a field's stack has a worth of its
own, whoever gets there: what it is expected to take once the field's free spaces are filled at random. A card changes the worth of levels
that are held already; and a shield is placed where its level is worth more than what it would get if it were kept.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Protocol, TypeVar

from services.clans_and_glory.rules import RESIDENTS, SET_UP, FieldView, Move, Resident, View

T = TypeVar("T")

# How likely a card still to come has each strength: all strengths, ascending.
Shares = Sequence[tuple[int, float]]


class Dice(Protocol):
    """What the bot needs of `random.Random`."""

    def choice(self, items: Sequence[T], /) -> T:
        """Return one of the items, each as likely."""


def choose(view: View, seat: int, moves: Sequence[Move], rng: Dice) -> Move:
    """Choose one of the seat's legal moves, of which there is at least one; `rng` decides among equals."""
    table = _Table(view, seat)
    gains = [table.gain(move) for move in moves]
    best = max(gains)
    return rng.choice([move for move, gain in zip(moves, gains, strict=True) if gain > best - 1e-9])


class _Table:
    """The fields as the bot expects them to end."""

    def __init__(self, view: View, seat: int) -> None:
        self.seat = seat
        self.others = len(view.hand_sizes) - 1
        self.shares = _shares(view)
        self.strengths = [[resident.strength for resident in _face_up(field)] for field in view.fields]
        self.free = [sum(not slot.resident and not slot.face_down for slot in field.slots) for field in view.fields]
        self.stacks = [field.shields for field in view.fields]
        self.worths = [_worths(strengths, free, self.shares) for strengths, free in zip(self.strengths, self.free, strict=True)]
        self.kept = self._worth_of_a_shield_kept(view)
        self.memo: dict[tuple[int, int | None], tuple[float, float]] = {}

    def gain(self, move: Move) -> float:
        """How far a move is expected to get the seat ahead, in points."""
        strength = None if move.face_down else move.card.strength
        if (move.field, strength) not in self.memo:
            self.memo[move.field, strength] = self._gains(move.field, strength)
        by_card, by_shield = self.memo[move.field, strength]
        return by_card + by_shield if move.shield else by_card

    def _gains(self, field: int, strength: int | None) -> tuple[float, float]:
        """What a card of that strength (None: face down) on a field gains, and what a shield there with it gains on top."""
        strengths = self.strengths[field] if strength is None else [*self.strengths[field], strength]
        worths = _worths(strengths, self.free[field] - 1, self.shares)
        by_card = self._lead(self.stacks[field], worths) - self._lead(self.stacks[field], self.worths[field])
        level = len(self.stacks[field])
        return by_card, (worths[level] if level < len(worths) else 0.0) - self.kept

    def _lead(self, stack: tuple[int, ...], worths: list[float]) -> float:
        """How far ahead of the others' average the shields of a field get the seat. Shields above the last strength take nothing."""
        return sum(worth if owner == self.seat else -worth / self.others for owner, worth in zip(stack, worths, strict=False))

    def _worth_of_a_shield_kept(self, view: View) -> float:
        """What a shield gets if it is placed later: nothing when its seat has fewer turns than shields. Otherwise the best open levels go
        to the shields that all seats still have, and it gets what the middle one of them gets (which proved best in trials).
        """
        *_, last_seat = range(len(view.hand_sizes))
        never_played = 0 if self.seat == last_seat else 1  # CG-09
        turns_after = view.hand_sizes[self.seat] - 1 - never_played
        if view.shields_left[self.seat] > turns_after:
            return 0.0
        open_levels = sorted(
            (worth for worths, stack in zip(self.worths, self.stacks, strict=True) for worth in worths[len(stack) :]), reverse=True
        )
        middle = sum(view.shields_left) // 2
        return open_levels[middle] if middle < len(open_levels) else 0.0


def _face_up(field: FieldView) -> list[Resident]:
    return [slot.resident for slot in field.slots if slot.resident]


def _shares(view: View) -> Shares:
    """The strengths of all residents in play but those that lie face up (CG-03); the removed ones are among them."""
    unseen = Counter(resident.strength for resident in RESIDENTS[: SET_UP[len(view.hand_sizes)].in_play])
    unseen.subtract(resident.strength for field in view.fields for resident in _face_up(field))
    return [(strength, number / unseen.total()) for strength, number in sorted(unseen.items())]


def _worths(strengths: list[int], free: int, shares: Shares) -> list[float]:
    """What each level of a field's stack is expected to take, given the strengths that lie there and so many free spaces."""
    worths: list[float] = []
    lower = [1.0]  # how likely just 0, 1, … lower strengths will lie there
    for strength, share in shares:
        lying = strengths.count(strength)
        points = strength * (lying + free * share)
        worths = [worth + chance * points for worth, chance in zip_longest(worths, lower, fillvalue=0.0)]
        missing = 0.0 if lying else (1 - share) ** free
        lower = [same * missing + one_less * (1 - missing) for same, one_less in zip([*lower, 0.0], [0.0, *lower], strict=True)]
    return worths
