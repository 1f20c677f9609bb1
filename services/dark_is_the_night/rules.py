"""The rules of Dark Is the Night: pure functions over frozen values. Rule numbers are those of RULES.md beside this file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cache
from typing import NamedTuple

# ---------------------------------------------------------------- vocabulary

HUNTRESS, MONSTER = 0, 1  # the seats


class Compass(IntEnum):
    """The directions on the board, and its sides; the numbers are the proto's."""

    NORTH = 1
    EAST = 2
    SOUTH = 3
    WEST = 4


class Ring(IntEnum):
    """The two ways round the ring of dark squares (DN-04); the numbers are the proto's."""

    CLOCKWISE = 1
    COUNTERCLOCKWISE = 2


class Cause(IntEnum):
    """Why the Monster announced its square; the numbers are the proto's."""

    FIRELIGHT = 1  # DN-09
    FEINT = 2  # DN-12


class Phase(IntEnum):
    """What a match waits for."""

    LAIR = 1  # the Monster hides (DN-02)
    CAMP = 2  # the Huntress camps (DN-02)
    HUNT = 3  # the Huntress's turn
    LURED = 4  # the Monster's choice of a way to the ham, within the Huntress's turn (DN-11)
    PROWL = 5  # the Monster's turn
    FINISHED = 6


# DN-01: the board, rows from the north, columns from the west. Lit squares are 1 to 8, dark ones 1 to 12.
_FIRE = (2, 2)
_LIT_AT = dict(enumerate([(1, 1), (1, 2), (1, 3), (2, 3), (3, 3), (3, 2), (3, 1), (2, 1)], start=1))
_DARK_AT = dict(
    enumerate([(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (4, 3), (4, 2), (4, 1), (3, 0), (2, 0), (1, 0)], start=1),
)
_AHEAD = {Compass.NORTH: (-1, 0), Compass.EAST: (0, 1), Compass.SOUTH: (1, 0), Compass.WEST: (0, -1)}

LIT = tuple(_LIT_AT)
DARK = tuple(_DARK_AT)

SIDE = {square: list(Compass)[(square - 1) // 3] for square in DARK}  # DN-01, DN-02

# DN-04: the squares one step away.
LIT_NEIGHBOURS = {square: (square % 8 + 1, (square - 2) % 8 + 1) for square in LIT}
CLOCKWISE = {square: square % 12 + 1 for square in DARK}
COUNTERCLOCKWISE = {square: (square - 2) % 12 + 1 for square in DARK}
AROUND = {Ring.CLOCKWISE: CLOCKWISE, Ring.COUNTERCLOCKWISE: COUNTERCLOCKWISE}


def _beside(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two places touch, not diagonally."""
    return abs(one[0] - other[0]) + abs(one[1] - other[1]) == 1


# DN-05: the lit square in front of each dark one; and DN-06: the dark squares next to each lit one.
FACED = {dark: next(lit for lit in LIT if _beside(_LIT_AT[lit], _DARK_AT[dark])) for dark in DARK}
REACH = {lit: tuple(dark for dark in DARK if FACED[dark] == lit) for lit in LIT}


class Flight(NamedTuple):
    """Where an arrow ends (DN-08)."""

    square: int  # dark
    burning: bool  # whether it crossed the fire


def _flight(lit: int, direction: Compass) -> Flight:
    place, burning = _LIT_AT[lit], False
    dark_at = {place: square for square, place in _DARK_AT.items()}
    while place not in dark_at:
        place = place[0] + _AHEAD[direction][0], place[1] + _AHEAD[direction][1]
        burning = burning or place == _FIRE
    return Flight(dark_at[place], burning)


FLIGHT = {(lit, direction): _flight(lit, direction) for lit in LIT for direction in Compass}  # DN-08


# DN-11: the ways round by which a dark square comes closer to another: none, one, or both.
def _closer(square: int, goal: int) -> tuple[Ring, ...]:
    clockwise = (goal - square) % 12
    if clockwise == 0:
        return ()
    return tuple(Ring) if clockwise == 6 else (Ring.CLOCKWISE,) if clockwise < 6 else (Ring.COUNTERCLOCKWISE,)


CLOSER = {(square, goal): _closer(square, goal) for square in DARK for goal in DARK}

FEINTS = (-2, -1, 0, 1, 2)  # DN-12, clockwise positive

TURN_LIMIT = 200  # DN-15

# Ranks by seat.
HUNTRESS_WINS, MONSTER_WINS, DRAW = (1, 2), (2, 1), (1, 1)


@dataclass(frozen=True, slots=True)
class Options:
    """The game's own options."""

    turns_to_dawn: int = 5  # DN-14: 1 to 50


# Moves


@dataclass(frozen=True, slots=True)
class Lair:
    """The Monster hides on a dark square (DN-02)."""

    square: int


@dataclass(frozen=True, slots=True)
class Camp:
    """The Huntress camps on a lit square (DN-02)."""

    square: int


@dataclass(frozen=True, slots=True)
class Sword:
    """Strikes at a dark square (DN-06)."""

    square: int


@dataclass(frozen=True, slots=True)
class Arrow:
    """Shoots an arrow (DN-08)."""

    direction: Compass


@dataclass(frozen=True, slots=True)
class Bell:
    """Puts the bell on a dark square (DN-10)."""

    square: int


@dataclass(frozen=True, slots=True)
class Ham:
    """Puts the ham on a dark square (DN-11)."""

    square: int


Action = Sword | Arrow | Bell | Ham


@dataclass(frozen=True, slots=True)
class Hunt:
    """The Huntress's turn: she moves to a lit square and may then do one thing (DN-03, DN-07)."""

    to: int
    action: Action | None = None


@dataclass(frozen=True, slots=True)
class Prowl:
    """The Monster's turn: it moves one square and may then attack (DN-03, DN-05)."""

    direction: Ring
    attack: bool = False


@dataclass(frozen=True, slots=True)
class Feint:
    """The Monster's turn, once: it announces its square and moves up to two, clockwise positive (DN-12)."""

    steps: int


@dataclass(frozen=True, slots=True)
class Lured:
    """The Monster's way where both come closer to the ham (DN-11)."""

    direction: Ring


Move = Lair | Camp | Hunt | Prowl | Feint | Lured


# What is seen


@dataclass(frozen=True, slots=True)
class NightFell:
    """The match is set up."""


@dataclass(frozen=True, slots=True)
class MonsterHid:
    """The Monster chose its square, which only the Monster may know (DN-02)."""

    square: int | None


@dataclass(frozen=True, slots=True)
class HuntressCamped:
    """The Huntress chose her square (DN-02)."""

    square: int


@dataclass(frozen=True, slots=True)
class SideAnnounced:
    """The side on which the Monster starts (DN-02)."""

    side: Compass


@dataclass(frozen=True, slots=True)
class HuntressMoved:
    """The Huntress moved (DN-04)."""

    to: int


@dataclass(frozen=True, slots=True)
class MonsterMoved:
    """The Monster moved, or stayed in a feint or on the ham; where it is now only the Monster may know (DN-16)."""

    to: int | None


@dataclass(frozen=True, slots=True)
class MonsterSighted:
    """The Monster announced its square."""

    square: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class BellPlaced:
    """The bell was placed (DN-10)."""

    square: int


@dataclass(frozen=True, slots=True)
class BellRang:
    """The Monster is on the bell's square, and the bell is gone (DN-10)."""

    square: int


@dataclass(frozen=True, slots=True)
class HamPlaced:
    """The ham was placed (DN-11)."""

    square: int


@dataclass(frozen=True, slots=True)
class HamDistance:
    """How far the Monster is from the ham after its step, and the ham is gone (DN-11)."""

    square: int
    distance: int


@dataclass(frozen=True, slots=True)
class ArrowShot:
    """An arrow was shot, and the dark square that it reached (DN-08)."""

    direction: Compass
    square: int
    burning: bool
    hit: bool


@dataclass(frozen=True, slots=True)
class SquareLit:
    """A dark square burns from now on (DN-08)."""

    square: int


@dataclass(frozen=True, slots=True)
class SwordSwung:
    """The Huntress struck at a dark square (DN-06)."""

    square: int
    hit: bool


@dataclass(frozen=True, slots=True)
class MonsterAttacked:
    """The Monster attacked a lit square (DN-05)."""

    square: int
    hit: bool


@dataclass(frozen=True, slots=True)
class FeintPlayed:
    """The Monster played its feint; how far it moved only the Monster may know (DN-12)."""

    steps: int | None


@dataclass(frozen=True, slots=True)
class DawnNear:
    """The Huntress used her last token (DN-14)."""

    turns_left: int


# What is announced beside events: all from which the Monster's square can be worked out.
Fact = SideAnnounced | MonsterSighted | BellPlaced | BellRang | HamPlaced | HamDistance | ArrowShot | SwordSwung | MonsterAttacked

Event = Fact | NightFell | MonsterHid | HuntressCamped | HuntressMoved | MonsterMoved | SquareLit | FeintPlayed | DawnNear


class Tokens(NamedTuple):
    """What the Huntress has left (DN-07)."""

    arrows: int
    bell: bool
    ham: bool


@dataclass(frozen=True, slots=True)
class Announcement:
    """What everybody was told, and in which turn, from 1; 0 in the set-up."""

    turn: int
    fact: Fact


@dataclass(frozen=True, slots=True)
class View:
    """What one viewer may know now; None is what is not there, not yet, or not for the viewer."""

    huntress: int | None
    monster: int | None  # for the Monster alone until the end (DN-16)
    side: Compass | None
    lit_squares: tuple[int, ...]  # dark ones that burn, ascending
    bell: int | None  # where it lies
    ham: int | None  # where it lies while the Monster chooses its way
    tokens: Tokens
    feint_left: bool
    turns_left: int | None  # to dawn, once the last token is used (DN-14)
    turns: int  # taken so far
    announcements: tuple[Announcement, ...]


class Reason(StrEnum):
    """Why a move is refused."""

    MATCH_FINISHED = "MATCH_FINISHED"
    NOT_YOUR_TURN = "NOT_YOUR_TURN"  # DN-02
    WRONG_ROLE = "WRONG_ROLE"  # DN-02: a move of the other seat's
    WRONG_PHASE = "WRONG_PHASE"  # DN-02
    NO_SUCH_SQUARE = "NO_SUCH_SQUARE"  # DN-01; the codec lets none through
    NOT_ADJACENT = "NOT_ADJACENT"  # DN-03, DN-04
    FIRST_TURN = "FIRST_TURN"  # DN-03
    OUT_OF_REACH = "OUT_OF_REACH"  # DN-06; DN-12, where the codec lets none through
    NO_TOKEN_LEFT = "NO_TOKEN_LEFT"  # DN-07, DN-12
    MUST_CHOOSE_WAY = "MUST_CHOOSE_WAY"  # DN-11


# --------------------------------------------------------------------- state


class Noted(NamedTuple):
    """An announcement as the state remembers it."""

    turn: int
    kind: int  # the fact's place in _FACTS
    values: tuple[int | bool, ...]  # its fields


# What can be announced, and what its fields are. States in storage count on the order.
_FACTS: tuple[tuple[Callable[..., Fact], tuple[Callable[[int], object], ...]], ...] = (
    (SideAnnounced, (Compass,)),
    (MonsterSighted, (int, Cause)),
    (BellPlaced, (int,)),
    (BellRang, (int,)),
    (HamPlaced, (int,)),
    (HamDistance, (int, int)),
    (ArrowShot, (Compass, int, bool, bool)),
    (SwordSwung, (int, bool)),
    (MonsterAttacked, (int, bool)),
)
_KINDS = {fact: kind for kind, (fact, _) in enumerate(_FACTS)}


@cache  # bounded: few facts can be
def _fact(kind: int, values: tuple[int | bool, ...]) -> Fact:
    fact, types = _FACTS[kind]
    return fact(*(as_type(value) for as_type, value in zip(types, values, strict=True)))


class State(NamedTuple):
    """A match. A square of 0 is none."""

    turns_to_dawn: int  # the option
    phase: Phase
    huntress: int
    monster: int
    side: Compass | None  # where the Monster started, once announced (DN-02)
    tokens: Tokens
    feint_left: bool
    lit: tuple[int, ...]  # dark squares that burn, ascending
    bell: int  # while it lies there
    ham: int  # while LURED
    turns: int  # taken so far, one that is LURED included
    dawn: int  # after so many turns the match is drawn (DN-14, DN-15)
    told: tuple[Noted, ...]  # everything announced, in order
    ranks: tuple[int, ...]  # by seat, once the match was played to its end


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


def setup(options: Options, seats: int, chance: object) -> Step:
    """Sets the board up for 2 seats: the Huntress's 0, the Monster's 1. Nothing is left to chance."""
    state = State(
        turns_to_dawn=options.turns_to_dawn,
        phase=Phase.LAIR,
        huntress=0,
        monster=0,
        side=None,
        tokens=Tokens(arrows=2, bell=True, ham=True),
        feint_left=True,
        lit=(),
        bell=0,
        ham=0,
        turns=0,
        dawn=TURN_LIMIT,
        told=(),
        ranks=(),
    )
    return Step(state, (NightFell(),))


# ------------------------------------------------------------------- to move


def to_move(state: State) -> tuple[int, ...]:
    """The one seat that may move now, or none after the end."""
    return _MOVERS[state.phase]


_MOVERS = {
    Phase.LAIR: (MONSTER,),
    Phase.CAMP: (HUNTRESS,),
    Phase.HUNT: (HUNTRESS,),
    Phase.LURED: (MONSTER,),
    Phase.PROWL: (MONSTER,),
    Phase.FINISHED: (),
}


# --------------------------------------------------------------------- legal


def legal(state: State, seat: int) -> Sequence[Move]:
    """Every legal move of a seat, in a fixed order; empty when it is not to move."""
    phase = state.phase
    if seat not in _MOVERS[phase]:
        return ()
    if phase is Phase.HUNT:
        if _is_first_turn(state):
            return _FIRST_HUNTS[state.huntress]
        arrows, bell, ham = state.tokens
        return _hunts(state.huntress, arrows > 0, bell, ham)
    if phase is Phase.PROWL:
        if _is_first_turn(state):
            return _FIRST_PROWLS
        return _PROWLS_AND_FEINTS if state.feint_left else _PROWLS
    return _LURES if phase is Phase.LURED else _LAIRS if phase is Phase.LAIR else _CAMPS


def _is_first_turn(state: State) -> bool:
    """Whether the seat to move has taken no turn yet (DN-03)."""
    return state.turns < 2


# Moves are values, and few: legal hands out the same ones again and again.
_LAIRS = tuple(map(Lair, DARK))
_CAMPS = tuple(map(Camp, LIT))
_FIRST_HUNTS = {square: tuple(Hunt(to) for to in LIT_NEIGHBOURS[square]) for square in LIT}
_FIRST_PROWLS = tuple(map(Prowl, Ring))
_PROWLS = (*_FIRST_PROWLS, *(Prowl(direction, attack=True) for direction in Ring))
_PROWLS_AND_FEINTS: tuple[Move, ...] = (*_PROWLS, *map(Feint, FEINTS))
_LURES = tuple(map(Lured, Ring))


@cache  # bounded: 8 squares, and what is left
def _hunts(square: int, arrows: bool, bell: bool, ham: bool) -> tuple[Hunt, ...]:
    """The Huntress's moves from there after her first turn, with those tokens left."""
    hunts: list[Hunt] = []
    for to in LIT_NEIGHBOURS[square]:
        hunts += [Hunt(to), *(Hunt(to, Sword(square)) for square in REACH[to])]
        hunts += [Hunt(to, Arrow(direction)) for direction in Compass if arrows]
        hunts += [Hunt(to, Bell(square)) for square in DARK if bell]
        hunts += [Hunt(to, Ham(square)) for square in DARK if ham]
    return tuple(hunts)


# --------------------------------------------------------------------- apply


def apply(state: State, seat: int, move: Move, chance: object) -> Step | Refusal:
    """Plays a seat's move: the next state and the events, or why the rules forbid it."""
    phase = state.phase
    if seat not in _MOVERS[phase]:
        if phase is Phase.FINISHED:
            return Refusal(Reason.MATCH_FINISHED, "The match is finished.")
        return Refusal(Reason.NOT_YOUR_TURN, "It is not this seat's turn (DN-02).")
    if isinstance(move, Hunt) and phase is Phase.HUNT:
        return _refused_hunt(state, move) or _hunt(state, move)
    if isinstance(move, Prowl) and phase is Phase.PROWL:
        return _refused_prowl(state, move) or _prowl(state, move)
    if isinstance(move, Feint) and phase is Phase.PROWL:
        return _refused_feint(state, move) or _feint(state, move)
    if isinstance(move, Lured) and phase is Phase.LURED:
        return _lured(state, move)
    if isinstance(move, Lair) and phase is Phase.LAIR:
        return _lair(state, move)
    if isinstance(move, Camp) and phase is Phase.CAMP:
        return _camp(state, move)
    return _misplaced(state, seat, move)


def _misplaced(state: State, seat: int, move: Move) -> Refusal:
    """Why the seat to move makes no move of this kind now."""
    if isinstance(move, Camp | Hunt) != (seat == HUNTRESS):
        return Refusal(Reason.WRONG_ROLE, "That is a move of the other player's (DN-02).")
    if state.phase is Phase.LURED:
        return Refusal(Reason.MUST_CHOOSE_WAY, "Both ways to the ham are equal: the Monster chooses one first (DN-11).")
    return Refusal(Reason.WRONG_PHASE, "That is no move for now (DN-02).")


def _no_such_square(square: int) -> Refusal:
    return Refusal(Reason.NO_SUCH_SQUARE, f"There is no square {square} (DN-01).")


# The set-up


def _lair(state: State, move: Lair) -> Step | Refusal:
    if move.square not in DARK:
        return _no_such_square(move.square)
    return Step(state._replace(phase=Phase.CAMP, monster=move.square), (MonsterHid(move.square),))


def _camp(state: State, move: Camp) -> Step | Refusal:
    if move.square not in LIT:
        return _no_such_square(move.square)
    turn = _Turn(*state)
    turn.huntress, turn.side = move.square, SIDE[state.monster]
    turn.events.append(HuntressCamped(move.square))
    turn.announce(SideAnnounced, turn.side)
    return turn.step(Phase.HUNT)


# A turn


@dataclass(slots=True)
class _Turn:
    """A turn as it is played: the state's fields, and what has happened."""

    turns_to_dawn: int
    phase: Phase
    huntress: int
    monster: int
    side: Compass | None
    tokens: Tokens
    feint_left: bool
    lit: tuple[int, ...]
    bell: int
    ham: int
    turns: int
    dawn: int
    told: tuple[Noted, ...]
    ranks: tuple[int, ...]
    events: list[Event] = field(default_factory=list)

    def announce(self, fact: Callable[..., Fact], *values: int | bool) -> None:
        """Adds an event that everybody is told of, made of those values."""
        self.events.append(fact(*values))
        self.told += (Noted(self.turns, _KINDS[fact], values),)

    def used(self, left: Tokens) -> None:
        """A token was used; the last one brings the dawn near (DN-14)."""
        self.tokens = left
        if not any(left):
            self.dawn = min(self.turns + self.turns_to_dawn, TURN_LIMIT)  # DN-15
            self.events.append(DawnNear(self.dawn - self.turns))

    def walk(self, around: dict[int, int], steps: int) -> None:
        """The Monster walks, and each step sets off what lies there (DN-13).

        One MonsterMoved, however many steps there are, as their number is the Monster's secret (DN-16).
        """
        walked = [self.monster]
        for _ in range(steps):
            walked.append(around[walked[-1]])
        self.monster = walked[-1]
        self.events.append(MonsterMoved(self.monster))
        for square in walked[1:]:
            if square in self.lit:
                self.announce(MonsterSighted, square, Cause.FIRELIGHT)  # DN-09
            if square == self.bell:
                self.announce(BellRang, square)  # DN-10
                self.bell = 0

    def step(self, phase: Phase) -> Step:
        """What comes of it, and what the match waits for now."""
        state = State(
            self.turns_to_dawn,
            phase,
            self.huntress,
            self.monster,
            self.side,
            self.tokens,
            self.feint_left,
            self.lit,
            self.bell,
            self.ham,
            self.turns,
            self.dawn,
            self.told,
            self.ranks,
        )
        return Step(state, tuple(self.events))

    def won(self, ranks: tuple[int, ...]) -> Step:
        """The end of the match."""
        self.ranks = ranks
        return self.step(Phase.FINISHED)

    def over(self, following: Phase) -> Step:
        """The end of the turn: the next one, or dawn (DN-14, DN-15)."""
        return self.step(following) if self.turns < self.dawn else self.won(DRAW)


def _refused_hunt(state: State, move: Hunt) -> Refusal | None:
    """Why the Huntress may not make this move, or None."""
    action, tokens = move.action, state.tokens
    if move.to not in LIT_NEIGHBOURS[state.huntress]:
        return Refusal(Reason.NOT_ADJACENT, f"Lit square {move.to} is not next to {state.huntress} (DN-04).")
    if action is None:
        return None
    if _is_first_turn(state):
        return Refusal(Reason.FIRST_TURN, "The first turn is a move and nothing else (DN-03).")
    if isinstance(action, Sword):
        if action.square in REACH[move.to]:
            return None
        return Refusal(Reason.OUT_OF_REACH, f"Dark square {action.square} is not next to lit square {move.to} (DN-06).")
    if isinstance(action, Arrow):
        return None if tokens.arrows else Refusal(Reason.NO_TOKEN_LEFT, "Both arrows are used (DN-07).")
    if action.square not in DARK:
        return _no_such_square(action.square)
    if isinstance(action, Bell):
        return None if tokens.bell else Refusal(Reason.NO_TOKEN_LEFT, "The bell is used (DN-07).")
    return None if tokens.ham else Refusal(Reason.NO_TOKEN_LEFT, "The ham is used (DN-07).")


def _hunt(state: State, move: Hunt) -> Step:
    """Makes a Huntress's turn that is not refused."""
    turn, action = _Turn(*state), move.action
    turn.turns += 1
    turn.huntress = move.to
    turn.events.append(HuntressMoved(move.to))
    if isinstance(action, Sword):
        return _sword(turn, action.square)
    if isinstance(action, Arrow):
        return _arrow(turn, action.direction)
    if isinstance(action, Bell):
        return _bell(turn, action.square)
    if isinstance(action, Ham):
        return _ham(turn, action.square)
    return turn.over(Phase.PROWL)


def _sword(turn: _Turn, square: int) -> Step:
    hit = square == turn.monster
    turn.announce(SwordSwung, square, hit)
    return turn.won(HUNTRESS_WINS) if hit else turn.over(Phase.PROWL)


def _arrow(turn: _Turn, direction: Compass) -> Step:
    square, burning = FLIGHT[turn.huntress, direction]
    hit = not burning and square == turn.monster
    turn.announce(ArrowShot, direction, square, burning, hit)
    if hit:
        return turn.won(HUNTRESS_WINS)
    if burning and square not in turn.lit:  # DN-13: it may be lit already
        turn.lit = tuple(sorted((*turn.lit, square)))  # DN-09: this announces nobody who stands there
        turn.events.append(SquareLit(square))
    turn.used(turn.tokens._replace(arrows=turn.tokens.arrows - 1))
    return turn.over(Phase.PROWL)


def _bell(turn: _Turn, square: int) -> Step:
    turn.announce(BellPlaced, square)
    if square == turn.monster:  # DN-10
        turn.announce(BellRang, square)
    else:
        turn.bell = square
    turn.used(turn.tokens._replace(bell=False))
    return turn.over(Phase.PROWL)


def _ham(turn: _Turn, square: int) -> Step:
    turn.announce(HamPlaced, square)
    turn.used(turn.tokens._replace(ham=False))
    turn.ham = square
    ways = CLOSER[turn.monster, square]
    if len(ways) > 1:  # DN-11: the Monster chooses, and the Huntress's turn goes on until it has
        return turn.step(Phase.LURED)
    return _come_closer(turn, ways)


def _lured(state: State, move: Lured) -> Step:
    return _come_closer(_Turn(*state), (move.direction,))


def _come_closer(turn: _Turn, ways: tuple[Ring, ...]) -> Step:
    """The Monster's step to the ham, or none where it is there already; then the ham is gone (DN-11)."""
    turn.walk(AROUND[ways[0]] if ways else CLOCKWISE, len(ways))
    clockwise = (turn.ham - turn.monster) % 12
    turn.announce(HamDistance, turn.ham, min(clockwise, 12 - clockwise))
    turn.ham = 0
    return turn.over(Phase.PROWL)


def _refused_prowl(state: State, move: Prowl) -> Refusal | None:
    """Why the Monster may not make this move, or None."""
    if move.attack and _is_first_turn(state):
        return Refusal(Reason.FIRST_TURN, "The first turn is a move and nothing else (DN-03).")
    return None


def _prowl(state: State, move: Prowl) -> Step:
    """Makes a Monster's turn that is not refused."""
    turn = _Turn(*state)
    turn.turns += 1
    turn.walk(AROUND[move.direction], 1)
    if move.attack:
        square = FACED[turn.monster]
        hit = square == turn.huntress
        turn.announce(MonsterAttacked, square, hit)  # DN-05: a miss too
        if hit:
            return turn.won(MONSTER_WINS)
    return turn.over(Phase.HUNT)


def _refused_feint(state: State, move: Feint) -> Refusal | None:
    """Why the Monster may not feint, or None."""
    if _is_first_turn(state):
        return Refusal(Reason.FIRST_TURN, "The first turn is a move and nothing else (DN-03).")
    if not state.feint_left:
        return Refusal(Reason.NO_TOKEN_LEFT, "The feint is used (DN-12).")
    if move.steps not in FEINTS:
        return Refusal(Reason.OUT_OF_REACH, "A feint moves at most two squares (DN-12).")
    return None


def _feint(state: State, move: Feint) -> Step:
    """Makes a feint that is not refused."""
    turn = _Turn(*state)
    turn.turns += 1
    turn.feint_left = False
    turn.announce(MonsterSighted, turn.monster, Cause.FEINT)
    turn.events.append(FeintPlayed(move.steps))
    turn.walk(CLOCKWISE if move.steps > 0 else COUNTERCLOCKWISE, abs(move.steps))
    return turn.over(Phase.HUNT)


def end_early(state: State) -> State:
    """The match ends by resignation (ALL-01): nobody is to move, and the Monster stays hidden."""
    return state._replace(phase=Phase.FINISHED)


# --------------------------------------------------------- view and redaction


def view(state: State, viewer: int | None) -> View:
    """What a seat, or a spectator (None), may know now."""
    sees_monster = viewer == MONSTER or outcome(state) is not None  # DN-16
    return View(
        huntress=state.huntress or None,
        monster=(state.monster or None) if sees_monster else None,
        side=state.side,
        lit_squares=state.lit,
        bell=state.bell or None,
        ham=state.ham or None,
        tokens=state.tokens,
        feint_left=state.feint_left,
        turns_left=None if any(state.tokens) else state.dawn - state.turns,
        turns=state.turns,
        announcements=tuple(Announcement(turn, _fact(kind, values)) for turn, kind, values in state.told),
    )


def redact(event: Event, viewer: int | None) -> Event:
    """The event as a seat, or a spectator (None), may know it: where the Monster goes only the Monster is told (DN-16)."""
    if viewer == MONSTER:
        return event
    if isinstance(event, MonsterMoved):
        return MonsterMoved(None)
    if isinstance(event, MonsterHid):
        return MonsterHid(None)
    if isinstance(event, FeintPlayed):
        return FeintPlayed(None)
    return event


# -------------------------------------------------------------------- outcome


def outcome(state: State) -> tuple[int, ...] | None:
    """Ranks by seat, 1 best, equal at dawn; None while playing and for a match that ended early."""
    return state.ranks or None
