"""What the viewers of Dark Is the Night may not know (DN-16): the Monster's square, save as announced. The Monster may know everything.

Worked out on its own, without the rules' steps: of all that the Monster could do in a turn, what fits what was said.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

from services.dark_is_the_night import rules
from services.dark_is_the_night.rules import (
    DARK,
    FACED,
    FLIGHT,
    MONSTER,
    SIDE,
    Action,
    Arrow,
    ArrowShot,
    Bell,
    BellPlaced,
    BellRang,
    Camp,
    Cause,
    Fact,
    Feint,
    Ham,
    HamDistance,
    HamPlaced,
    Hunt,
    Lair,
    Lured,
    MonsterAttacked,
    MonsterSighted,
    Move,
    Prowl,
    Ring,
    State,
    Step,
    Sword,
    SwordSwung,
)

Facts = tuple[Fact, ...]

# What the Monster may have done in a turn: where it ends, and what is said.
Doings = Iterator[tuple[int, Facts]]


def vary(state: State, viewer: int | None, rng: random.Random) -> State:
    """The match with the Monster on any square where it may be as well, for all that was announced since the match began."""
    if viewer == MONSTER or state.ranks or not state.monster:
        return state
    return state._replace(monster=rng.choice(sorted(possible(state))))


def look(state: State, seat: int, move: Move) -> Any:
    """What everybody else sees of a move; the last of a match shows the Monster."""
    step = rules.apply(state, seat, move, None)
    if isinstance(step, Step) and step.state.ranks:
        return None
    board = Board(state.lit, state.bell)
    match move:
        case Lair():
            return "hides"
        case Camp():
            return move, SIDE[state.monster]
        case Hunt(to, action):
            _, said = next(board.hunted(state.monster, _shown(to, action)))
            return to, action, said
        case Lured(way):
            return board.noise([_step(state.monster, way)])
        case Prowl(way, attack):
            square = _step(state.monster, way)
            return board.noise([square]), FACED[square] if attack else None
        case Feint(steps):
            return state.monster, board.noise(_path(state.monster, steps))


def possible(state: State) -> set[int]:
    """The squares on which the Monster may be, to those who do not see it."""
    if state.side is None:
        return set(DARK)
    told: dict[int, Facts] = {}
    for announcement in rules.view(state, None).announcements:
        told[announcement.turn] = (*told.get(announcement.turn, ()), announcement.fact)
    squares, board = {square for square in DARK if SIDE[square] is state.side}, Board()
    for turn in range(1, state.turns + 1):
        facts = told.get(turn, ())
        if turn % 2:
            shown = facts[0] if facts else None
            squares = {end for start in squares for end, said in board.hunted(start, shown) if said == facts}
        else:
            squares = {end for start in squares for end, said in board.prowled(start, facts) if said == facts}
        board = board.after(facts)
    return squares


class Board:
    """What lies in the dark."""

    def __init__(self, lit: Iterable[int] = (), bell: int = 0) -> None:
        self.lit = frozenset(lit)
        self.bell = bell

    def after(self, facts: Facts) -> Board:
        """The same after all this was said."""
        lit, bell = self.lit, self.bell
        for fact in facts:
            match fact:
                case ArrowShot(_, square, True):
                    lit |= {square}
                case BellPlaced(square):
                    bell = square
                case BellRang():
                    bell = 0
        return Board(lit, bell)

    def noise(self, path: Iterable[int]) -> Facts:
        """What the Monster's steps set off."""
        said: list[Fact] = []
        for square in path:
            said += [MonsterSighted(square, Cause.FIRELIGHT)] if square in self.lit else []
            said += [BellRang(square)] if square == self.bell else []
        return tuple(said)

    def prowled(self, start: int, facts: Facts) -> Doings:
        """Turns of the Monster's; whether an attack hit is taken from the facts."""
        for way in Ring:
            square = _step(start, way)
            yield square, self.noise([square])
            for hit in {fact.hit for fact in facts if isinstance(fact, MonsterAttacked)}:
                yield square, (*self.noise([square]), MonsterAttacked(FACED[square], hit))
        for steps in (-2, -1, 0, 1, 2):
            path = _path(start, steps)
            yield [start, *path][-1], (MonsterSighted(start, Cause.FEINT), *self.noise(path))

    def hunted(self, monster: int, shown: Fact | None) -> Doings:
        """What comes of what the Huntress shows; where the Monster may choose its way to a ham, first how it is before that."""
        match shown:
            case None:
                yield monster, ()
            case SwordSwung(square):
                yield monster, (SwordSwung(square, square == monster),)
            case ArrowShot(direction, square, burning):
                yield monster, (ArrowShot(direction, square, burning, square == monster and not burning),)
            case BellPlaced(square):
                yield monster, (shown, BellRang(square)) if square == monster else (shown,)
            case HamPlaced(square):
                distance = _distance(monster, square)
                if distance == 6:
                    yield monster, (shown,)
                paths = [[_step(monster, way)] for way in Ring] if distance else [[]]
                for path in paths:
                    end = [monster, *path][-1]
                    if (left := _distance(end, square)) <= distance:
                        yield end, (shown, *self.noise(path), HamDistance(square, left))


def _shown(to: int, action: Action | None) -> Fact | None:
    """What the Huntress shows of an action, before anything comes of it."""
    match action:
        case None:
            return None
        case Sword(square):
            return SwordSwung(square, False)
        case Arrow(direction):
            return ArrowShot(direction, *FLIGHT[to, direction], False)
        case Bell(square):
            return BellPlaced(square)
        case Ham(square):
            return HamPlaced(square)


def _step(square: int, way: Ring) -> int:
    return (square if way is Ring.CLOCKWISE else square - 2) % 12 + 1


def _path(square: int, steps: int) -> list[int]:
    way = Ring.CLOCKWISE if steps > 0 else Ring.COUNTERCLOCKWISE
    path = [square]
    for _ in range(abs(steps)):
        path.append(_step(path[-1], way))
    return path[1:]


def _distance(square: int, other: int) -> int:
    return min((square - other) % 12, (other - square) % 12)
