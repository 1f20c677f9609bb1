"""The rules of Clans and Glory: pure functions over frozen values. Rule numbers are those of RULES.md beside this file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")

# ---------------------------------------------------------------- vocabulary


class Color(IntEnum):
    """The colours of residents (CG-01); the numbers are the proto's."""

    RED = 1
    ORANGE = 2
    YELLOW = 3
    GREEN = 4
    BLUE = 5
    PURPLE = 6
    GREY = 7


@dataclass(frozen=True, slots=True)
class Resident:
    """A resident card (CG-01)."""

    color: Color
    strength: int

    def __str__(self) -> str:
        return f"{self.color.name} {self.strength}"


# CG-01: all of them, by strength, then colour. A resident's number is its place here: the state, which only the rules see, holds numbers.
RESIDENTS = tuple(Resident(color, strength) for strength in range(3, 9) for color in Color)


@dataclass(frozen=True, slots=True)
class SetUp:
    """What the number of players decides."""

    fields: int  # CG-02
    in_play: int  # CG-03: so many residents, the weakest ones
    removed: int  # CG-03: of those, so many leave unseen
    occupied: tuple[int, ...]  # CG-05: the slots of each field that begin with a resident
    hands: tuple[int, ...]  # CG-03: by seat


SET_UP = {
    2: SetUp(fields=4, in_play=28, removed=3, occupied=(0, 5), hands=(9, 8)),
    3: SetUp(fields=5, in_play=35, removed=4, occupied=(1,), hands=(9, 9, 8)),
    4: SetUp(fields=6, in_play=42, removed=5, occupied=(1,), hands=(8, 8, 8, 7)),
}

SHIELDS = 5  # CG-02: of each player

# CG-04: a space is told by its field and its slot, and numbered field after field.
ROWS, COLUMNS = 2, 3
SLOTS = ROWS * COLUMNS

# What a space holds: a resident's number, or one of these.
FREE = len(RESIDENTS)
FACE_DOWN = FREE + 1  # CG-07


@dataclass(frozen=True, slots=True)
class Options:
    """The game's own options: there are none."""


class Chance(Protocol):
    """The match's chance (ALL-03). Every label is a stream of its own."""

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        """Returns the items in an order drawn from the stream of that label."""


# Moves


@dataclass(frozen=True, slots=True)
class Place:
    """Plays a resident from hand onto a space (CG-06, CG-07), and a shield on its field or none (CG-08)."""

    card: Resident
    field: int
    slot: int
    face_down: bool = False
    shield: bool = False


Move = Place


# What is seen


@dataclass(frozen=True, slots=True)
class SlotView:
    """A space: the resident that lies there face up, or whether a card lies there face down, whose face nobody sees (CG-07)."""

    resident: Resident | None
    face_down: bool


@dataclass(frozen=True, slots=True)
class FieldView:
    """A field: whether it bears the campfire (CG-02), its spaces (CG-04), and whose shields lie there, the first placed first (CG-08)."""

    campfire: bool
    slots: tuple[SlotView, ...]
    shields: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HandDealt:
    """A seat was dealt `count` residents; which, by strength and colour, only the seat itself may know (CG-03)."""

    seat: int
    count: int
    cards: tuple[Resident, ...]


@dataclass(frozen=True, slots=True)
class ResidentPlaced:
    """A seat, or the set-up (None), placed a resident (CG-05 to CG-07). Who played one face down may know it, nobody else: None to them."""

    seat: int | None
    field: int
    slot: int
    resident: Resident | None
    face_down: bool


@dataclass(frozen=True, slots=True)
class ShieldPlaced:
    """A seat put a shield on a field's stack (CG-08)."""

    seat: int
    field: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What a seat's shield took (CG-10)."""

    seat: int
    residents: tuple[Resident, ...]


@dataclass(frozen=True, slots=True)
class FieldScored:
    """A field was scored (CG-10): what each shield took, from the first placed to the last, and the residents that nobody got."""

    field: int
    taken: tuple[Taken, ...]
    left: tuple[Resident, ...]


Event = HandDealt | ResidentPlaced | ShieldPlaced | FieldScored


@dataclass(frozen=True, slots=True)
class View:
    """What one viewer may know now. Sizes, shields and scores are by seat; scoring and scores are empty before the end (CG-10)."""

    fields: tuple[FieldView, ...]
    hand: tuple[Resident, ...]
    hand_sizes: tuple[int, ...]
    shields_left: tuple[int, ...]
    removed_count: int
    scoring: tuple[FieldScored, ...]
    scores: tuple[int, ...]


class Reason(StrEnum):
    """Why a move is refused."""

    MATCH_FINISHED = "MATCH_FINISHED"
    NOT_YOUR_TURN = "NOT_YOUR_TURN"  # CG-03
    CARD_NOT_IN_HAND = "CARD_NOT_IN_HAND"  # CG-06
    NO_SUCH_SPACE = "NO_SUCH_SPACE"  # CG-04
    SPACE_TAKEN = "SPACE_TAKEN"  # CG-06
    DOES_NOT_FIT = "DOES_NOT_FIT"  # CG-06
    MUST_BE_FACE_DOWN = "MUST_BE_FACE_DOWN"  # CG-07: nothing in hand fits anywhere
    MUST_BE_FACE_UP = "MUST_BE_FACE_UP"  # CG-07: something in hand fits somewhere
    NO_SHIELD_LEFT = "NO_SHIELD_LEFT"  # CG-08


# --------------------------------------------------------------------- state


class FaceDown(NamedTuple):
    """A card that lies face down (CG-07), as only the rules know it."""

    space: int
    resident: int
    seat: int  # who played it


class State(NamedTuple):
    """A match."""

    board: tuple[int, ...]  # by space: FREE, FACE_DOWN or the resident that lies there face up
    face_down: tuple[FaceDown, ...]  # in the order in which they were played
    shields: tuple[tuple[int, ...], ...]  # by field: whose, the first placed first (CG-08)
    hands: tuple[tuple[int, ...], ...]  # by seat, ascending; what is left at the end is discarded, so no view shows it (CG-09)
    removed: tuple[int, ...]  # unseen (CG-03)
    turn: int | None  # the seat to move; None when the match is over


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
    """Deals a match for 2 to 4 seats from the stream `deck` (CG-03, CG-05): a ResidentPlaced a set-up resident, a HandDealt a seat."""
    this = SET_UP[seats]
    deck = iter(chance.shuffle("deck", range(this.in_play)))
    removed = tuple(islice(deck, this.removed))
    board, events = [FREE] * (this.fields * SLOTS), list[Event]()
    for field in range(this.fields):
        for slot in this.occupied:
            card = next(deck)
            board[field * SLOTS + slot] = card
            events.append(ResidentPlaced(None, field, slot, RESIDENTS[card], face_down=False))
    hands = tuple(tuple(sorted(islice(deck, size))) for size in this.hands)
    events += [HandDealt(seat, len(hand), _residents(hand)) for seat, hand in enumerate(hands)]
    state = State(
        board=tuple(board),
        face_down=(),
        shields=((),) * this.fields,
        hands=hands,
        removed=removed,
        turn=0,
    )
    return Step(state, tuple(events))


# ------------------------------------------------------------------- to move


def to_move(state: State) -> tuple[int, ...]:
    """The seat whose turn it is, until the match is over."""
    return () if state.turn is None else (state.turn,)


# --------------------------------------------------------------------- legal


def legal(state: State, seat: int) -> Sequence[Move]:
    """Every legal move of a seat, in a fixed order; empty when it is not to move."""
    if seat != state.turn:
        return ()
    hand, free, moves = state.hands[seat], _free(state.board), list[Move]()
    face_up, face_down = _MOVES_WITH_SHIELD if _shields_left(state, seat) else _MOVES
    for space in free:
        fitting = _fitting(state.board, space)
        for card in hand:
            if fitting >> card & 1:
                moves += face_up[space][card]
    return moves or [move for space in free for card in hand for move in face_down[space][card]]  # CG-07


def _free(board: tuple[int, ...]) -> list[int]:
    return [space for space, held in enumerate(board) if held == FREE]


def _fitting(board: tuple[int, ...], space: int) -> int:
    """Which residents a space takes face up (CG-06): a number whose bit n says whether resident n fits."""
    fitting = 0
    for near in _NEAR[len(board)][space]:
        fitting |= _MATCHES[board[near]]
    return fitting or _ANY


def _anything_fits(state: State, hand: tuple[int, ...]) -> bool:
    """Whether some resident of a hand fits some free space (CG-07)."""
    return any(_fitting(state.board, space) >> card & 1 for space in _free(state.board) for card in hand)


def _shields_left(state: State, seat: int) -> int:
    return SHIELDS - sum([stack.count(seat) for stack in state.shields])


def _near(space: int, fields: int) -> Iterator[int]:
    """The spaces left, right and opposite of a space (CG-04)."""
    field, slot = divmod(space, SLOTS)
    row, place = divmod(slot, COLUMNS)
    column = field * COLUMNS + place
    for near_row, near_column in ((row, column - 1), (row, column + 1), (1 - row, column)):
        if 0 <= near_column < fields * COLUMNS:
            near_field, near_place = divmod(near_column, COLUMNS)
            yield near_field * SLOTS + near_row * COLUMNS + near_place


# By the number of spaces on the table: for each space, those near it (CG-04).
_NEAR = {this.fields * SLOTS: tuple(tuple(_near(space, this.fields)) for space in range(this.fields * SLOTS)) for this in SET_UP.values()}

_ANY = (1 << len(RESIDENTS)) - 1
# By what a space holds: the residents that match it in colour or strength (CG-06), as bits; a card face down is matched by none (CG-07).
_MATCHES = [
    *(
        sum(1 << number for number, other in enumerate(RESIDENTS) if other.color is resident.color or other.strength == resident.strength)
        for resident in RESIDENTS
    ),
    0,  # FREE
    0,  # FACE_DOWN
]

# Moves are values, and few: legal hands out the same ones again and again. By face up or down, space and resident: without a shield and, as
# long as there is one, with it.
_MOVES_WITH_SHIELD = tuple(
    [
        [tuple(Place(card, *divmod(space, SLOTS), face_down, shield) for shield in (False, True)) for card in RESIDENTS]
        for space in range(max(_NEAR))
    ]
    for face_down in (False, True)
)
_MOVES = tuple([[moves[:1] for moves in by_card] for by_card in by_space] for by_space in _MOVES_WITH_SHIELD)

_NUMBERS = {resident: number for number, resident in enumerate(RESIDENTS)}


# --------------------------------------------------------------------- apply


def apply(state: State, seat: int, move: Move, chance: Chance) -> Step | Refusal:
    """Makes a seat's move, or says why the rules forbid it. Nothing is left to chance."""
    if state.turn is None:
        return Refusal(Reason.MATCH_FINISHED, "The match is over.")
    if seat != state.turn:
        return Refusal(Reason.NOT_YOUR_TURN, "It is not this seat's turn.")
    return _refused(state, seat, move) or _placed(state, seat, move)


def _refused(state: State, seat: int, place: Place) -> Refusal | None:
    """Why a move of the seat to move is against the rules, or None."""
    hand, card = state.hands[seat], _NUMBERS.get(place.card)
    if card not in hand:
        return Refusal(Reason.CARD_NOT_IN_HAND, f"There is no {place.card} in hand (CG-06).")
    if not (0 <= place.field < len(state.shields) and 0 <= place.slot < SLOTS):
        return Refusal(Reason.NO_SUCH_SPACE, f"There is no slot {place.slot} of field {place.field} in this match (CG-04).")
    space = place.field * SLOTS + place.slot
    if state.board[space] != FREE:
        return Refusal(Reason.SPACE_TAKEN, f"A card lies on slot {place.slot} of field {place.field} already (CG-06).")
    if place.face_down:
        if _anything_fits(state, hand):
            return Refusal(Reason.MUST_BE_FACE_UP, "A resident in hand fits a free space, so none is played face down (CG-07).")
    elif not _fitting(state.board, space) >> card & 1:
        if not _anything_fits(state, hand):
            return Refusal(Reason.MUST_BE_FACE_DOWN, "No resident in hand fits a free space, so one is played face down (CG-07).")
        return Refusal(Reason.DOES_NOT_FIT, f"{place.card} matches no neighbour there, nor the card opposite (CG-06).")
    if place.shield and not _shields_left(state, seat):
        return Refusal(Reason.NO_SHIELD_LEFT, "All shields of this seat are placed (CG-08).")
    return None


def _placed(state: State, seat: int, place: Place) -> Step:
    """Makes a move that is not refused."""
    card, space = _NUMBERS[place.card], place.field * SLOTS + place.slot
    board = _replaced(state.board, space, FACE_DOWN if place.face_down else card)
    face_down = (*state.face_down, FaceDown(space, card, seat)) if place.face_down else state.face_down
    events: list[Event] = [ResidentPlaced(seat, place.field, place.slot, place.card, place.face_down)]

    shields = state.shields
    if place.shield:  # CG-08
        shields = _replaced(shields, place.field, (*shields[place.field], seat))
        events.append(ShieldPlaced(seat, place.field))

    hand = tuple([other for other in state.hands[seat] if other != card])
    hands = _replaced(state.hands, seat, hand)
    turn = (seat + 1) % len(hands) if hands[-1] else None  # CG-09: the last seat is the one that began with the fewest cards (CG-03)
    state = State(board, face_down, shields, hands, state.removed, turn)
    return Step(state, (*events, *scoring(state)))


def end_early(state: State) -> State:
    """The match ends by resignation (ALL-01): nobody is to move and nothing is scored."""
    return state._replace(turn=None)


def _replaced(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])


def _residents(numbers: Sequence[int]) -> tuple[Resident, ...]:
    return tuple([RESIDENTS[number] for number in numbers])


# --------------------------------------------------------- view and redaction


def view(state: State, viewer: int | None) -> View:
    """What a seat, or a spectator (None), may know now."""
    scored = scoring(state)
    hands = ((),) * len(state.hands) if scored else state.hands  # CG-09
    return View(
        fields=tuple(_field_view(state, field) for field in range(len(state.shields))),
        hand=() if viewer is None else _residents(hands[viewer]),
        hand_sizes=tuple(map(len, hands)),
        shields_left=tuple(_shields_left(state, seat) for seat in range(len(hands))),
        removed_count=len(state.removed),
        scoring=scored,
        scores=_total(scored, len(hands)) if scored else (),
    )


def _field_view(state: State, field: int) -> FieldView:
    campfire = field in (0, len(state.shields) - 1)  # CG-02
    return FieldView(campfire, tuple([_SLOT_VIEWS[held] for held in _on(state, field)]), state.shields[field])


# By what a space holds.
_SLOT_VIEWS = [
    *(SlotView(resident, face_down=False) for resident in RESIDENTS),
    SlotView(None, face_down=False),
    SlotView(None, face_down=True),
]


def _on(state: State, field: int) -> tuple[int, ...]:
    """What the spaces of a field hold."""
    return state.board[field * SLOTS : (field + 1) * SLOTS]


def redact(event: Event, viewer: int | None) -> Event:
    """The event as a seat, or a spectator (None), may know it: another's hand is hidden, and what another played face down (CG-07)."""
    if isinstance(event, HandDealt) and event.seat != viewer:
        return HandDealt(event.seat, event.count, ())
    if isinstance(event, ResidentPlaced) and event.face_down and event.seat != viewer:
        return ResidentPlaced(event.seat, event.field, event.slot, None, face_down=True)
    return event


# ------------------------------------------------------- scoring and outcome


def scoring(state: State) -> tuple[FieldScored, ...]:
    """How each field scores, in order (CG-10); empty before the last seat has played its last card, and for a match that ended early."""
    if state.hands[-1]:
        return ()
    return tuple(_score(state, field) for field in range(len(state.shields)))


def _score(state: State, field: int) -> FieldScored:
    left = sorted(held for held in _on(state, field) if held < FREE)  # face up only (CG-07), the weakest first
    taken = []
    for seat in state.shields[field]:
        lowest = [card for card in left if RESIDENTS[card].strength == RESIDENTS[left[0]].strength]
        taken.append(Taken(seat, _residents(lowest)))
        left = left[len(lowest) :]
    return FieldScored(field, tuple(taken), _residents(left))


def _collected(scored: tuple[FieldScored, ...], seat: int) -> list[Resident]:
    """All residents that a seat's shields took."""
    return [resident for field in scored for taken in field.taken if taken.seat == seat for resident in taken.residents]


def _total(scored: tuple[FieldScored, ...], seats: int) -> tuple[int, ...]:
    """Final points by seat (CG-11)."""
    return tuple(sum(resident.strength for resident in _collected(scored, seat)) for seat in range(seats))


def outcome(state: State) -> tuple[int, ...] | None:
    """Ranks by seat once scored, 1 best, equals share (CG-11); None while playing and for a match that ended early."""
    scored = scoring(state)
    if not scored:
        return None
    seats = len(state.hands)
    residents = [len(_collected(scored, seat)) for seat in range(seats)]
    results = list(zip(_total(scored, seats), residents, strict=True))
    return tuple(1 + sum(other > result for other in results) for result in results)
