"""The STANDARD bot of Night Knight: it does what its card asks for about as fast as people do, and errs now and then.

It knows its seat's own view alone. While its own card is hidden it weighs what that card may be: any of those that it does not see.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar

from services.night_knight.rules import DECK, Action, Kind, Move, Phase, React, View, right_action

T = TypeVar("T")

# How often it does something wrong, of all reactions.
MISTAKES = 0.08

# How long after the reveal it reacts, in ms: a normal share and an exponential one, which makes the tail (an ex-Gaussian, as people's
# times are), so 450 on average; and what nobody is faster than.
USUAL_MS, SPREAD_MS, TAIL_MS = 330.0, 50.0, 120.0
FASTEST_MS = 180


class Dice(Protocol):
    """What the bot needs of `random.Random`."""

    def random(self) -> float:
        """Return a number from 0 up to 1, each as likely."""

    def choice(self, items: Sequence[T], /) -> T:
        """Return one of the items, each as likely."""

    def gauss(self, mu: float, sigma: float, /) -> float:
        """Return a normally distributed number."""

    def expovariate(self, lambd: float, /) -> float:
        """Return an exponentially distributed number of mean 1 / lambd."""


def think_ms(view: View, seat: int, rng: Dice) -> int | None:
    """How long after the reveal the seat reacts, in ms; None when it has nothing to do: it never peeks, nor comes late on purpose."""
    if view.phase is not Phase.ACTION or seat in view.out or any(reaction.seat == seat for reaction in view.reactions):
        return None
    return max(FASTEST_MS, round(rng.gauss(USUAL_MS, SPREAD_MS) + rng.expovariate(1 / TAIL_MS)))


def choose(view: View, seat: int, moves: Sequence[Move], rng: Dice) -> Move:
    """Choose one of the seat's legal moves, of which there is at least one.

    It is meant to be asked where `think_ms` gives a time. Elsewhere it does the least that there is to choose.
    """
    reactions = [move for move in moves if isinstance(move, React)]
    if view.phase is not Phase.ACTION or not reactions:
        return moves[-1]  # the pass, where there is one
    wanted = _wanted(view, seat)
    right = [reaction for reaction in reactions if _is_right(reaction, wanted, view)]
    if rng.random() < MISTAKES:
        wrong = [reaction for reaction in reactions if reaction not in right]
        action = rng.choice(list(dict.fromkeys(reaction.action for reaction in wrong)))
        return rng.choice([reaction for reaction in wrong if reaction.action is action])
    return rng.choice(right)


def _wanted(view: View, seat: int) -> Action:
    """What the seat has to do, as far as it can see."""
    seen = [card.kind for card in view.cards if card.kind]
    own = next((card.kind for card in view.cards if card.seat == seat), None)
    if own:
        return right_action(own, seen)[0] or Action.PASS
    chances: Counter[Action] = Counter()
    for kind, number in (Counter(DECK) - Counter(seen)).items():
        chances[right_action(kind, [kind, *seen])[0] or Action.PASS] += number
    return max(chances, key=chances.__getitem__)


def _is_right(reaction: React, wanted: Action, view: View) -> bool:
    """Whether a reaction is what is wanted, a throw being at a defending knight (NK-07)."""
    at_whom = {card.seat for card in view.cards if card.kind is Kind.DEFENDING_KNIGHT}
    return reaction.action is wanted and (wanted is not Action.THROW or reaction.target in at_whom)
