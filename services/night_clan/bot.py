"""The STANDARD bot of Night Clan: it plays the move with the best expected lead, from its seat's own view alone.

Of a card that it cannot see it assumes only what its owner's deck leaves possible (NC-01); as the board ends full (NC-02), every free
space counts as a card still to come. It remembers nothing, so it does not know its own face-down cards either (NC-11).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from services.night_clan.rules import DECK, FACE_DOWN_AT_NIGHT, POINTS, CardView, Keep, Kind, Location, Move, Mulligan, Play, View

T = TypeVar("T")

# What keeping a card for a later turn is worth, in points: a play has to make more of it than that. The numbers were found by trial.
WAITING = {Kind.TROLL: 0.5, Kind.MISTLETOE: 0.0, Kind.RICHES: 1.0, Kind.DAUGHTER: 0.5, Kind.NIGHT_WATCH: -0.5}


class Dice(Protocol):
    """What the bot needs of `random.Random`."""

    def choice(self, items: Sequence[T], /) -> T:
        """Return one of the items, each as likely."""


def choose(view: View, seat: int, moves: Sequence[Move], rng: Dice) -> Move:
    """Choose one of the seat's legal moves, of which there is at least one; `rng` decides among equals."""
    if Mulligan() in moves:  # a Night Watch serves better late, when there are cards to move
        return Mulligan()
    plays = [move for move in moves if isinstance(move, Play)]
    if not plays:
        return Keep()
    table = _Table(view, seat)
    gains = [table.lead_after(play) - WAITING[play.card] for play in plays]
    best = max(gains)
    return rng.choice([play for play, gain in zip(plays, gains, strict=True) if gain > best - 1e-9])


class _Guess(NamedTuple):
    """A card on a Location, or one still to come, as the bot guesses it."""

    owner: int
    troll: float  # how likely it is a Troll
    mistletoe: float  # how likely it is Mistletoe
    points: float  # expected points of its being neither


def _known(owner: int, kind: Kind) -> _Guess:
    if kind is Kind.TROLL:
        return _Guess(owner, 1.0, 0.0, 0.0)
    if kind is Kind.MISTLETOE:
        return _Guess(owner, 0.0, 1.0, 0.0)
    return _Guess(owner, 0.0, 0.0, POINTS[kind])


class _Table:
    """The Locations as the bot guesses them from a view."""

    def __init__(self, view: View, seat: int) -> None:
        self.seat = seat
        self.seats = range(len(view.hand_sizes))
        self.capacity = {place.location: place.capacity for place in view.locations}
        self.unseen = [_unseen(view, owner, view.hand if owner == seat else ()) for owner in self.seats]
        own_trolls = _own_trolls(view, seat, self.unseen[seat][Kind.TROLL] / max(1, self.unseen[seat].total()))
        self.cards = {place.location: {card.card_id: self._guess(card, own_trolls) for card in place.cards} for place in view.locations}
        self.coming = self._coming()
        self.memo: dict[tuple[Location, tuple[_Guess, ...]], list[float]] = {}
        self.points = {location: self._points(location, cards.values()) for location, cards in self.cards.items()}

    def _guess(self, card: CardView, own_trolls: dict[str, float]) -> _Guess:
        if card.kind is not None:
            return _known(card.owner, card.kind)
        unseen = self.unseen[card.owner]
        troll = own_trolls.get(card.card_id, unseen[Kind.TROLL] / unseen.total())
        others = unseen[Kind.MISTLETOE] + unseen[Kind.RICHES]
        share = (1 - troll) / others if others else 0.0
        return _Guess(card.owner, troll, share * unseen[Kind.MISTLETOE], share * unseen[Kind.RICHES] * POINTS[Kind.RICHES])

    def _coming(self) -> _Guess:
        """Guess a card still to come: each seat has one Troll and one Mistletoe (NC-01), and any free space may get them."""
        lying = [guess for cards in self.cards.values() for guess in cards.values()]
        free = sum(self.capacity.values()) - len(lying)
        trolls = len(self.seats) - sum(guess.troll for guess in lying)
        mistletoe = len(self.seats) - sum(guess.mistletoe for guess in lying)
        return _Guess(self.seat, max(0.0, trolls / free), max(0.0, mistletoe / free), 0.0)

    def lead_after(self, play: Play) -> float:
        """How many points the seat is expected to be ahead of the best other one at the end."""
        changed = {play.location: [*self.cards[play.location].values(), _known(self.seat, play.card)]}
        if play.relocate:
            card_id, to = play.relocate.card_id, play.relocate.to
            origin = next(location for location, cards in self.cards.items() if card_id in cards)
            moved = self.cards[origin][card_id]
            changed.setdefault(origin, list(self.cards[origin].values())).remove(moved)
            changed.setdefault(to, list(self.cards[to].values())).append(moved)
        points = self.points | {location: self._points(location, cards) for location, cards in changed.items()}
        totals: list[float] = [sum(by_location) for by_location in zip(*points.values(), strict=True)]
        return totals.pop(self.seat) - max(totals)

    def _points(self, location: Location, cards: Iterable[_Guess]) -> list[float]:
        """Expected points by seat of those cards there; many plays come to the same cards, so each result is kept."""
        key = location, tuple(sorted(cards))
        if key not in self.memo:
            self.memo[key] = self._expected(*key)
        return self.memo[key]

    def _expected(self, location: Location, cards: tuple[_Guess, ...]) -> list[float]:
        trollless, spoiled = _chances(cards + (self.coming,) * (self.capacity[location] - len(cards)))  # NC-14
        negated = max(0.0, 1 - trollless - spoiled)
        points = [0.0 for _ in self.seats]
        for card in cards:
            if card.troll < 1:
                points[card.owner] += trollless * card.points / (1 - card.troll)  # NC-16
            all_score = card.points + card.mistletoe * POINTS[Kind.MISTLETOE] + card.troll * POINTS[Kind.TROLL]
            points[card.owner] += negated * all_score  # NC-15
        return points


def _chances(cards: tuple[_Guess, ...]) -> tuple[float, float]:
    """How likely there is no Troll among the cards (NC-16), and how likely there are more Trolls than Mistletoe (NC-14)."""
    trollless = 1.0
    surplus = {0: 1.0}  # Trolls less Mistletoe: how likely
    for card in cards:
        if card.troll or card.mistletoe:
            trollless *= 1 - card.troll
            after: dict[int, float] = {}
            for number, chance in surplus.items():
                after[number + 1] = after.get(number + 1, 0.0) + chance * card.troll
                after[number - 1] = after.get(number - 1, 0.0) + chance * card.mistletoe
                after[number] = after.get(number, 0.0) + chance * (1 - card.troll - card.mistletoe)
            surplus = after
    return trollless, sum(chance for number, chance in surplus.items() if number > 0)


def _unseen(view: View, owner: int, hand: tuple[Kind, ...]) -> Counter[Kind]:
    """The Trolls, Mistletoe and Riches of a deck that are neither face up on the board nor in the hand given."""
    seen = [card.kind for place in view.locations for card in place.cards if card.owner == owner and card.kind]
    return Counter(kind for kind in DECK if kind in FACE_DOWN_AT_NIGHT) - Counter(seen) - Counter(hand)


def _own_trolls(view: View, seat: int, average: float) -> dict[str, float]:
    """How likely each of the seat's own face-down cards is its Troll: twice as likely for each point by which others lead there."""
    weights: dict[str, float] = {}
    for place in view.locations:
        face_up = [(card.owner, POINTS[card.kind]) for card in place.cards if card.kind]
        others_lead = sum(-points if owner == seat else points for owner, points in face_up)
        weights |= {card.card_id: 2.0**others_lead for card in place.cards if card.owner == seat and not card.face_up}
    total = sum(weights.values())
    return {card_id: min(1.0, average * len(weights) * weight / total) for card_id, weight in weights.items()}
