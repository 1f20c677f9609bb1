"""The rules of Night Clan: pure functions over frozen values. Rule numbers are those of RULES.md beside this file."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cache
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")

# ---------------------------------------------------------------- vocabulary


class Kind(IntEnum):
    """The kinds of card (NC-01); the numbers are the proto's."""

    TROLL = 1
    MISTLETOE = 2
    RICHES = 3
    DAUGHTER = 4
    NIGHT_WATCH = 5


class Location(IntEnum):
    """The Locations in the order of NC-02; the numbers are the proto's."""

    LAMP_SHOP = 1
    CHURCH = 2
    LIBRARY = 3
    OLD_CASTLE = 4
    TOWER = 5
    PALACE = 6
    BAR = 7
    BLACK_FOREST = 8


class Variant(IntEnum):
    """Which cards are played face down (NC-09); the numbers are the proto's."""

    NIGHT = 1
    DAY = 2


class Phase(IntEnum):
    """The phases of a match; the numbers are the proto's."""

    SETUP = 1
    PLAY = 2
    FINISHED = 3


class Effect(IntEnum):
    """What the Trolls and Mistletoe of a Location did (NC-14 to NC-16); the numbers are the proto's."""

    NO_TROLL = 1
    SPOILED = 2
    NEGATED = 3


# NC-01: everybody's deck. A shuffle always starts from this order.
DECK = (Kind.TROLL, Kind.MISTLETOE, *[Kind.RICHES] * 2, *[Kind.DAUGHTER] * 7, *[Kind.NIGHT_WATCH] * 2)

# NC-02
CAPACITY = {
    Location.LAMP_SHOP: 5,
    Location.CHURCH: 6,
    Location.LIBRARY: 7,
    Location.OLD_CASTLE: 8,
    Location.TOWER: 6,
    Location.PALACE: 7,
    Location.BAR: 5,
    Location.BLACK_FOREST: 8,
}
# NC-02: the Locations in play by number of seats.
LOCATIONS = {2: tuple(Location)[:4], 3: tuple(Location)[:6], 4: tuple(Location)}

# NC-12: by ascending capacity, equal ones in the order of NC-02.
SCORING_ORDER = {seats: tuple(sorted(locations, key=CAPACITY.__getitem__)) for seats, locations in LOCATIONS.items()}

HAND_SIZE = 3  # NC-03
PLAYS_A_TURN = 2  # NC-06

FACE_DOWN_AT_NIGHT = frozenset({Kind.TROLL, Kind.MISTLETOE, Kind.RICHES})  # NC-09

POINTS = {Kind.TROLL: -2, Kind.MISTLETOE: 1, Kind.RICHES: 2, Kind.DAUGHTER: 1, Kind.NIGHT_WATCH: -1}  # NC-17


@dataclass(frozen=True, slots=True)
class Options:
    """The game's own options."""

    variant: Variant = Variant.NIGHT


class Chance(Protocol):
    """The match's chance (ALL-03). Every label is a stream of its own."""

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        """Returns the items in an order drawn from the stream of that label."""


# Moves


@dataclass(frozen=True, slots=True)
class Keep:
    """Keeps the hand dealt (NC-04)."""


@dataclass(frozen=True, slots=True)
class Mulligan:
    """Shows a hand with two Night Watch, returns it and draws anew (NC-04)."""


@dataclass(frozen=True, slots=True)
class Relocate:
    """The card that a Night Watch moves, and where it goes: a pull or a push, which follows from where the card lies (NC-10)."""

    card_id: str
    to: Location


@dataclass(frozen=True, slots=True)
class Play:
    """Plays a card from hand onto a Location (NC-06); a Night Watch may move one card (NC-10)."""

    card: Kind
    location: Location
    relocate: Relocate | None = None


Move = Keep | Mulligan | Play


# What is seen


@dataclass(frozen=True, slots=True)
class CardView:
    """A card as it lies for everybody; `kind` is None, for its owner too, while it lies face down (NC-11)."""

    card_id: str
    owner: int
    face_up: bool
    kind: Kind | None


@dataclass(frozen=True, slots=True)
class LocationView:
    """A Location and the cards on it, in the order in which they came."""

    location: Location
    capacity: int
    cards: tuple[CardView, ...]


@dataclass(frozen=True, slots=True)
class HandKept:
    """A seat kept its hand (NC-04)."""

    seat: int


@dataclass(frozen=True, slots=True)
class HandShown:
    """A seat showed a hand with two Night Watch to all and returned it to its deck (NC-04)."""

    seat: int
    cards: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class CardsDrawn:
    """A seat drew `count` cards; which, sorted, only the seat itself may know (NC-03, NC-04, NC-06)."""

    seat: int
    count: int
    cards: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class CardPlayed:
    """A seat played its card (NC-06)."""

    seat: int
    card: CardView
    location: Location


@dataclass(frozen=True, slots=True)
class CardRelocated:
    """A seat's Night Watch moved a card (NC-10)."""

    seat: int
    card_id: str
    origin: Location
    to: Location


@dataclass(frozen=True, slots=True)
class LocationScored:
    """A Location was scored (NC-12): its cards turned up, who takes it (None: a tie, NC-13), and the points made there by seat."""

    location: Location
    cards: tuple[CardView, ...]
    taken_by: int | None
    effect: Effect
    points: tuple[int, ...]


Event = HandKept | HandShown | CardsDrawn | CardPlayed | CardRelocated | LocationScored


@dataclass(frozen=True, slots=True)
class View:
    """What one viewer may know now. Sizes and scores are by seat; scoring and scores are empty before the end (NC-12)."""

    phase: Phase
    locations: tuple[LocationView, ...]
    hand: tuple[Kind, ...]
    hand_sizes: tuple[int, ...]
    deck_sizes: tuple[int, ...]
    plays_left: int
    scoring: tuple[LocationScored, ...]
    scores: tuple[int, ...]


class Reason(StrEnum):
    """Why a move is refused."""

    MATCH_FINISHED = "MATCH_FINISHED"
    NOT_IN_SETUP = "NOT_IN_SETUP"  # NC-04
    NOT_IN_PLAY = "NOT_IN_PLAY"  # NC-04
    NOT_YOUR_TURN = "NOT_YOUR_TURN"  # NC-04, NC-05
    HAND_DOES_NOT_QUALIFY = "HAND_DOES_NOT_QUALIFY"  # NC-04
    CARD_NOT_IN_HAND = "CARD_NOT_IN_HAND"  # NC-06
    NO_SUCH_LOCATION = "NO_SUCH_LOCATION"  # NC-02
    LOCATION_FULL = "LOCATION_FULL"  # NC-08
    NOT_A_NIGHT_WATCH = "NOT_A_NIGHT_WATCH"  # NC-10
    NO_SUCH_CARD = "NO_SUCH_CARD"  # NC-10
    SAME_LOCATION = "SAME_LOCATION"  # NC-10
    OUT_OF_REACH = "OUT_OF_REACH"  # NC-10: neither from nor to the Night Watch's Location
    NOT_YOUR_CARD = "NOT_YOUR_CARD"  # NC-10: a pull of another player's card
    OWN_CARD = "OWN_CARD"  # NC-10: a push of an own card


# --------------------------------------------------------------------- state


class Card(NamedTuple):
    """A card on a Location, as only the rules know it."""

    card_id: str
    owner: int
    kind: Kind


def _card_id(number: int) -> str:
    """The id of the card played as the first, second, … of the match; it says nothing of the kind (NC-11)."""
    return f"c{number}"


class State(NamedTuple):
    """A match. Whatever is by seat has one entry a seat; the board has one entry a Location in play, in the order of NC-02."""

    variant: Variant
    phase: Phase
    kept: tuple[bool, ...]  # by seat: has kept its hand (NC-04)
    mulligans: tuple[int, ...]  # by seat: how many it has taken (NC-04)
    hands: tuple[tuple[Kind, ...], ...]  # by seat, sorted
    decks: tuple[tuple[Kind, ...], ...]  # by seat, the next card to draw first
    board: tuple[tuple[Card, ...], ...]
    turn: int  # the seat to move in PLAY
    plays_left: int  # cards that seat still plays this turn (NC-06); 0 outside PLAY


@dataclass(frozen=True, slots=True)
class Step:
    """A move's result: the next state, and what happened, in order."""

    state: State
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A move that the rules forbid now, and why. Nothing has changed."""

    reason: Reason
    detail: str


# --------------------------------------------------------------------- setup


def setup(options: Options, seats: int, chance: Chance) -> Step:
    """Deals a match for 2 to 4 seats (NC-01 to NC-03), decks from the streams `deck/<seat>`; one CardsDrawn a seat."""
    deals = [_deal(chance, f"deck/{seat}") for seat in range(seats)]
    state = State(
        variant=options.variant,
        phase=Phase.SETUP,
        kept=(False,) * seats,
        mulligans=(0,) * seats,
        hands=tuple(hand for hand, _ in deals),
        decks=tuple(deck for _, deck in deals),
        board=((),) * len(LOCATIONS[seats]),
        turn=0,
        plays_left=0,
    )
    return Step(state, tuple(CardsDrawn(seat, len(hand), hand) for seat, hand in enumerate(state.hands)))


def _deal(chance: Chance, label: str) -> tuple[tuple[Kind, ...], tuple[Kind, ...]]:
    """Shuffles a whole deck and draws from it (NC-03): the hand, and the deck left."""
    deck = chance.shuffle(label, DECK)
    return _sorted(deck[:HAND_SIZE]), deck[HAND_SIZE:]


# ------------------------------------------------------------------- to move


def to_move(state: State) -> tuple[int, ...]:
    """The seats that may move now, ascending: in SETUP every seat that has not kept (NC-04), in PLAY the one whose turn it is."""
    if state.phase is Phase.PLAY:
        return (state.turn,)
    if state.phase is Phase.SETUP:
        return tuple(seat for seat, kept in enumerate(state.kept) if not kept)
    return ()


# --------------------------------------------------------------------- legal


def legal(state: State, seat: int) -> Sequence[Move]:
    """Every legal move of a seat, in a fixed order; empty when it is not to move."""
    if seat not in to_move(state):
        return ()
    hand = state.hands[seat]
    if state.phase is Phase.SETUP:
        return (Keep(), Mulligan()) if _qualifies(hand) else (Keep(),)
    locations = LOCATIONS[len(state.hands)]
    free = [here for here, cards in zip(locations, state.board, strict=True) if len(cards) < CAPACITY[here]]  # NC-08
    moves: list[Move] = [_PLAIN_PLAYS[card, here] for card in dict.fromkeys(hand) for here in free]  # NC-06
    if Kind.NIGHT_WATCH in hand:  # NC-10
        own = [(card, there) for there, cards in zip(locations, state.board, strict=True) for card in cards if card.owner == seat]
        for here in free:
            cards_here, plays = state.board[here - 1], _NIGHT_WATCH_PLAYS[here]
            if len(cards_here) + 2 <= CAPACITY[here]:
                moves += [plays[card.card_id][here] for card, there in own if there is not here]  # pulls
            others = [plays[card.card_id] for card in cards_here if card.owner != seat]
            moves += [pushed[there] for pushed in others for there in free if there is not here]
    return moves


# Moves are values, and few: legal hands out the same ones again and again.
_PLAIN_PLAYS = {(card, location): Play(card, location) for card in Kind for location in Location}
# By the Location of the Night Watch, the card it moves and where to.
_NIGHT_WATCH_PLAYS = {
    here: {
        card_id: {to: Play(Kind.NIGHT_WATCH, here, Relocate(card_id, to)) for to in Location}
        for card_id in map(_card_id, range(1, sum(CAPACITY.values()) + 1))
    }
    for here in Location
}


# --------------------------------------------------------------------- apply


def apply(state: State, seat: int, move: Move, chance: Chance) -> Step | Refusal:
    """Makes a seat's move, or says why the rules forbid it. Redraws come from the streams `deck/<seat>/1`, `deck/<seat>/2`, … (NC-04)."""
    if state.phase is Phase.FINISHED:
        return Refusal(Reason.MATCH_FINISHED, "The match is over.")
    if isinstance(move, Play):
        if state.phase is Phase.SETUP:
            return Refusal(Reason.NOT_IN_PLAY, "Cards are played once every seat has kept its hand (NC-04).")
    elif state.phase is Phase.PLAY:
        return Refusal(Reason.NOT_IN_SETUP, "Every seat has kept its hand already (NC-04).")
    if seat not in to_move(state):
        return Refusal(Reason.NOT_YOUR_TURN, "It is not this seat's turn.")
    if isinstance(move, Play):
        return _refused_play(state, seat, move) or _play(state, seat, move)
    if isinstance(move, Mulligan):
        return _mulligan(state, seat, chance)
    return _keep(state, seat)


def _keep(state: State, seat: int) -> Step:
    kept = _replaced(state.kept, seat, True)
    state = state._replace(kept=kept)
    if all(kept):
        state = state._replace(phase=Phase.PLAY, plays_left=PLAYS_A_TURN)  # NC-05: seat 0 goes first
    return Step(state, (HandKept(seat),))


def _qualifies(hand: tuple[Kind, ...]) -> bool:
    return hand.count(Kind.NIGHT_WATCH) == 2  # NC-04


def _mulligan(state: State, seat: int, chance: Chance) -> Step | Refusal:
    shown = state.hands[seat]
    if not _qualifies(shown):
        return Refusal(Reason.HAND_DOES_NOT_QUALIFY, "A mulligan needs two Night Watch in hand (NC-04).")
    taken = state.mulligans[seat] + 1
    hand, deck = _deal(chance, f"deck/{seat}/{taken}")
    state = state._replace(
        mulligans=_replaced(state.mulligans, seat, taken),
        hands=_replaced(state.hands, seat, hand),
        decks=_replaced(state.decks, seat, deck),
    )
    return Step(state, (HandShown(seat, shown), CardsDrawn(seat, len(hand), hand)))


def _refused_play(state: State, seat: int, play: Play) -> Refusal | None:
    """Why a play of the seat to move is against the rules, or None."""
    here = play.location
    if play.card not in state.hands[seat]:
        return Refusal(Reason.CARD_NOT_IN_HAND, f"There is no {play.card.name} in hand (NC-06).")
    if here > len(state.board):
        return Refusal(Reason.NO_SUCH_LOCATION, f"{here.name} is not in this match (NC-02).")
    if _is_full(state, here):
        return Refusal(Reason.LOCATION_FULL, f"{here.name} is full (NC-08).")
    if play.relocate is None:
        return None
    if play.card is not Kind.NIGHT_WATCH:
        return Refusal(Reason.NOT_A_NIGHT_WATCH, "Only a Night Watch moves a card (NC-10).")
    return _refused_relocation(state, seat, here, play.relocate)


def _refused_relocation(state: State, seat: int, here: Location, relocate: Relocate) -> Refusal | None:
    """Why the Night Watch played `here` may not move that card there (NC-10), or None."""
    to = relocate.to
    found = _find(state, relocate.card_id)
    if found is None:
        return Refusal(Reason.NO_SUCH_CARD, f"No card {relocate.card_id!r} lies on a Location.")
    card, origin = found
    if to > len(state.board):
        return Refusal(Reason.NO_SUCH_LOCATION, f"{to.name} is not in this match (NC-02).")
    if origin is to:
        return Refusal(Reason.SAME_LOCATION, f"The card lies on {to.name} already (NC-10).")
    if here is not origin and here is not to:
        return Refusal(Reason.OUT_OF_REACH, f"A Night Watch on {here.name} moves a card from there or to there (NC-10).")
    if here is to and card.owner != seat:
        return Refusal(Reason.NOT_YOUR_CARD, "Only an own card is pulled (NC-10).")
    if here is origin and card.owner == seat:
        return Refusal(Reason.OWN_CARD, "Only another player's card is pushed (NC-10).")
    if _is_full(state, to, and_one_more=here is to):  # the Night Watch has taken its own space by then
        return Refusal(Reason.LOCATION_FULL, f"{to.name} has no space for the card moved (NC-08, NC-10).")
    return None


def _play(state: State, seat: int, play: Play) -> Step:
    """Makes a play that is not refused."""
    hands, decks, board, plays_left = list(state.hands), list(state.decks), list(state.board), state.plays_left - 1

    card = Card(_card_id(sum(map(len, board)) + 1), seat, play.card)
    hands[seat] = _without(hands[seat], play.card)
    board[play.location - 1] += (card,)
    events: list[Event] = [CardPlayed(seat, _as_it_lies(card, state.variant), play.location)]

    if play.relocate and (found := _find(state, play.relocate.card_id)):  # NC-10: the Night Watch has its space by now
        moved, origin = found
        board[origin - 1] = _without(board[origin - 1], moved)
        board[play.relocate.to - 1] += (moved,)
        events.append(CardRelocated(seat, moved.card_id, origin, play.relocate.to))

    phase, turn = Phase.PLAY, seat
    if plays_left == 0:
        drawn, decks[seat] = decks[seat][:PLAYS_A_TURN], decks[seat][PLAYS_A_TURN:]
        if drawn:  # NC-07
            hands[seat] = _sorted(hands[seat] + drawn)  # NC-06
            events.append(CardsDrawn(seat, len(drawn), _sorted(drawn)))
        turn = (seat + 1) % len(hands)  # NC-05
        plays_left = min(PLAYS_A_TURN, len(hands[turn]))  # NC-07: one on the last turn, none when all is played
        if plays_left == 0:
            phase = Phase.FINISHED

    state = State(state.variant, phase, state.kept, state.mulligans, tuple(hands), tuple(decks), tuple(board), turn, plays_left)
    if phase is Phase.FINISHED:
        events += scoring(state)
    return Step(state, tuple(events))


def end_early(state: State) -> State:
    """The match ends by resignation (ALL-01): nobody is to move and nothing is scored."""
    return state._replace(phase=Phase.FINISHED, plays_left=0)


def _is_full(state: State, location: Location, and_one_more: bool = False) -> bool:
    """Whether a Location takes no more cards (NC-08), once one more card has come if so asked."""
    return len(state.board[location - 1]) + and_one_more >= CAPACITY[location]


def _find(state: State, card_id: str) -> tuple[Card, Location] | None:
    """The card of that id, and where it lies."""
    for location, cards in zip(LOCATIONS[len(state.hands)], state.board, strict=True):
        for card in cards:
            if card.card_id == card_id:
                return card, location
    return None


def _sorted(cards: tuple[Kind, ...]) -> tuple[Kind, ...]:
    """Cards in the one order that says nothing of how they came."""
    return tuple(sorted(cards))


def _replaced(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])


def _without(items: tuple[T, ...], item: T) -> tuple[T, ...]:
    index = items.index(item)
    return items[:index] + items[index + 1 :]


# --------------------------------------------------------- view and redaction


def view(state: State, viewer: int | None) -> View:
    """What a seat, or a spectator (None), may know now."""
    seats = len(state.hands)
    scored = scoring(state)
    return View(
        phase=state.phase,
        locations=tuple(
            LocationView(
                location, CAPACITY[location], tuple(_as_it_lies(card, state.variant, bool(scored)) for card in state.board[location - 1])
            )
            for location in SCORING_ORDER[seats]
        ),
        hand=() if viewer is None else state.hands[viewer],
        hand_sizes=tuple(map(len, state.hands)),
        deck_sizes=tuple(map(len, state.decks)),
        plays_left=state.plays_left,
        scoring=scored,
        scores=_total(scored),
    )


def redact(event: Event, viewer: int | None) -> Event:
    """The event as a seat, or a spectator (None), may know it: only which cards another seat drew is hidden."""
    if isinstance(event, CardsDrawn) and event.seat != viewer:
        return CardsDrawn(event.seat, event.count, ())
    return event


@cache  # bounded: 52 ids, 4 owners, 5 kinds, each up or down
def _as_it_lies(card: Card, variant: Variant, turned_up: bool = False) -> CardView:
    """A card as everybody sees it: its kind shows only face up (NC-09, NC-11)."""
    face_up = turned_up or variant is Variant.DAY or card.kind not in FACE_DOWN_AT_NIGHT
    return CardView(card.card_id, card.owner, face_up, card.kind if face_up else None)


# ------------------------------------------------------- scoring and outcome


def scoring(state: State) -> tuple[LocationScored, ...]:
    """How each Location scores, in order (NC-12); empty before the last card is played, and for a match that ended early."""
    if any(state.hands):
        return ()
    seats = len(state.hands)
    return tuple(_score(location, state.board[location - 1], seats, state.variant) for location in SCORING_ORDER[seats])


def _score(location: Location, cards: tuple[Card, ...], seats: int, variant: Variant) -> LocationScored:
    owners = [card.owner for card in cards]
    counts = [owners.count(seat) for seat in range(seats)]
    taken_by = counts.index(max(counts)) if counts.count(max(counts)) == 1 else None  # NC-13

    kinds = [card.kind for card in cards]
    trolls, mistletoe = kinds.count(Kind.TROLL), kinds.count(Kind.MISTLETOE)
    if trolls > mistletoe:
        effect, remaining = Effect.SPOILED, []  # NC-14
    elif trolls:
        effect, remaining = Effect.NEGATED, list(cards)  # NC-15
    else:
        effect, remaining = Effect.NO_TROLL, [card for card in cards if card.kind is not Kind.MISTLETOE]  # NC-16

    points = [0] * seats
    for card in remaining:
        points[card.owner] += POINTS[card.kind]  # NC-17
    return LocationScored(location, tuple(_as_it_lies(card, variant, turned_up=True) for card in cards), taken_by, effect, tuple(points))


def _total(scored: tuple[LocationScored, ...]) -> tuple[int, ...]:
    """Final points by seat (NC-17)."""
    return tuple(map(sum, zip(*(location.points for location in scored), strict=True)))


def outcome(state: State) -> tuple[int, ...] | None:
    """Ranks by seat once scored, 1 best, equals share (NC-18); None while playing and for a match that ended early."""
    scored = scoring(state)
    if not scored:
        return None
    held = [sum(CAPACITY[location.location] for location in scored if location.taken_by == seat) for seat in range(len(state.hands))]
    results = list(zip(_total(scored), held, strict=True))
    return tuple(1 + sum(other > result for other in results) for result in results)
