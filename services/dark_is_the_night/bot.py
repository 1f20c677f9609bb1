"""The STANDARD bot of Dark Is the Night, for both roles. It plays from its seat's own view alone and remembers nothing.

The Huntress works out from what was announced how likely the Monster is on each dark square, and weighs the chance to kill it now or in her
next turn against that of being killed in between. The Monster, who sees her, goes where it can soon attack her and where she, who works out
as much as this Huntress does, is least likely to strike.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from typing import Protocol, TypeVar

from services.dark_is_the_night.rules import (
    AROUND,
    CLOCKWISE,
    CLOSER,
    COUNTERCLOCKWISE,
    DARK,
    FACED,
    FEINTS,
    FLIGHT,
    HUNTRESS,
    LIT,
    LIT_NEIGHBOURS,
    REACH,
    SIDE,
    Arrow,
    ArrowShot,
    Bell,
    BellPlaced,
    BellRang,
    Cause,
    Compass,
    Fact,
    Feint,
    Ham,
    HamDistance,
    HamPlaced,
    Hunt,
    Lured,
    MonsterAttacked,
    MonsterSighted,
    Move,
    Prowl,
    Sword,
    SwordSwung,
    View,
)

T = TypeVar("T")

# These numbers were found by trial. A kill counts 1.
NEXT_TURN = 0.4  # a kill of the Huntress's that comes a turn later
FEAR = 1.0  # what her death costs her
TOKEN_COST: dict[type, float] = {Arrow: 0.25, Bell: 0.1, Ham: 0.05}  # what using a token costs her,
LAST_TOKEN_COST = 0.35  # and what using the last one costs besides, as it brings the dawn (DN-14)
RESTRAINT = 0.5  # how likely a Monster that can hit does not attack
PATIENCE = 0.9  # an attack of the Monster's that comes a turn later
CAUTION = 0.3  # what the Monster's death costs it
FEINT_COST = 0.05


class Dice(Protocol):
    """What the bot needs of `random.Random`."""

    def choice(self, items: Sequence[T], /) -> T:
        """Return one of the items, each as likely."""


def choose(view: View, seat: int, moves: Sequence[Move], rng: Dice) -> Move:
    """Choose one of the seat's legal moves, of which there is at least one; `rng` decides among equals."""
    if view.huntress is None:  # the set-up (DN-02)
        return rng.choice(moves)
    bot = _Huntress(view, view.huntress) if seat == HUNTRESS else _Monster(view, view.huntress)
    worth = [bot.worth(move) for move in moves]
    best = max(worth)
    return rng.choice([move for move, this in zip(moves, worth, strict=True) if this > best - 1e-9])


# ------------------------------------------------------- what everybody can know

Chances = dict[int, float]  # by dark square: how likely the Monster is there


class Trail:
    """Where the Monster may be, for all that was announced; whatever it does unheard, each way is as likely."""

    def __init__(self, view: View) -> None:
        self.lit: frozenset[int] = frozenset()
        self.bell: frozenset[int] = frozenset()  # where it lies: one square or none
        self.chances: Chances = {square: 1 / 3 for square in DARK if SIDE[square] is view.side}  # DN-02
        told: dict[int, list[Fact]] = {}
        for announcement in view.announcements:
            told.setdefault(announcement.turn, []).append(announcement.fact)
        for turn in range(1, view.turns + 1):
            facts = told.get(turn, [])
            if turn % 2:
                self._hunted(facts)
            else:
                self._prowled(facts)
            total = sum(self.chances.values())
            self.chances = {square: chance / total for square, chance in self.chances.items()}

    def _hunted(self, facts: list[Fact]) -> None:
        """The Huntress's turn."""
        for fact in facts:
            match fact:
                case ArrowShot(_, square, True):
                    self.lit |= {square}
                case ArrowShot(_, square) | SwordSwung(square):
                    self.chances.pop(square, None)
                case BellPlaced(square) if BellRang(square) in facts:
                    self.chances = {square: 1.0}
                case BellPlaced(square):
                    self.bell = frozenset({square})
                    self.chances.pop(square, None)
                case HamPlaced(square):
                    self._lured(square, facts)

    def _lured(self, ham: int, facts: list[Fact]) -> None:
        """The Monster's step to the ham, which is still to come where no distance was announced (DN-11)."""
        distance = next((fact.distance for fact in facts if isinstance(fact, HamDistance)), None)
        if distance is None:
            self.chances = {place: chance for place, chance in self.chances.items() if len(CLOSER[place, ham]) > 1}
        elif distance == 0:
            self.chances = {ham: 1.0}
        else:
            after: Chances = {}
            for place, chance in self.chances.items():
                for way in CLOSER[place, ham]:
                    square = AROUND[way][place]
                    if _distance(square, ham) == distance:
                        after[square] = after.get(square, 0.0) + chance / len(CLOSER[place, ham])
            self.chances = self._heard(after, facts)
        self._rung(facts)

    def _prowled(self, facts: list[Fact]) -> None:
        """The Monster's turn."""
        if facts and isinstance(facts[0], MonsterSighted) and facts[0].cause is Cause.FEINT:
            self.chances = self.feinted(facts[0].square, [fact.square for fact in facts[1:] if isinstance(fact, MonsterSighted | BellRang)])
        else:
            self.chances = self._heard(self.spread(), facts)
        for fact in facts:
            if isinstance(fact, MonsterAttacked):
                self.chances = {square: chance for square, chance in self.chances.items() if FACED[square] == fact.square}
        self._rung(facts)

    def _rung(self, facts: list[Fact]) -> None:
        if any(isinstance(fact, BellRang) for fact in facts):
            self.bell = frozenset()

    def _heard(self, chances: Chances, facts: list[Fact]) -> Chances:
        """Those of the chances that fit what was heard of a single step, or that nothing was (DN-09, DN-10)."""
        heard = {fact.square for fact in facts if isinstance(fact, MonsterSighted | BellRang)}
        if heard:
            return dict.fromkeys(heard, 1.0)
        return {square: chance for square, chance in chances.items() if square not in self.lit and square not in self.bell}

    def spread(self) -> Chances:
        """The chances after a step either way."""
        after: Chances = {}
        for square, chance in self.chances.items():
            for step in (CLOCKWISE, COUNTERCLOCKWISE):
                after[step[square]] = after.get(step[square], 0.0) + chance / 2
        return after

    def feinted(self, square: int, heard: list[int]) -> Chances:
        """The chances after a feint from that square, whose steps set off what was heard, in order (DN-12, DN-13)."""
        paths = [_path(square, steps) for steps in FEINTS]
        return {path[-1]: 1 / len(FEINTS) for path in paths if self.noise(path[1:]) == heard}

    def noise(self, path: Iterable[int]) -> list[int]:
        """Where the Monster is heard on its way; twice where it rings the bell on a lit square."""
        return [square for square in path for there in (self.lit, self.bell) if square in there]


def _distance(square: int, other: int) -> int:
    return min((square - other) % 12, (other - square) % 12)


def _path(square: int, steps: int) -> list[int]:
    """The squares of so many steps, clockwise positive, the one where they begin included."""
    around = CLOCKWISE if steps > 0 else COUNTERCLOCKWISE
    return list(accumulate(repeat(around, abs(steps)), lambda place, step: step[place], initial=square))


# -------------------------------------------------------------------- the Huntress

# The dark squares from which the Monster's next turn can hit a lit one.
THREAT = {lit: frozenset(step[dark] for dark in REACH[lit] for step in (CLOCKWISE, COUNTERCLOCKWISE)) for lit in LIT}

# The dark squares at which the Huntress can strike from a lit one, without arrows and with.
STRIKES = {(lit, False): frozenset(REACH[lit]) for lit in LIT} | {
    (lit, True): frozenset((*REACH[lit], *(FLIGHT[lit, way].square for way in Compass if not FLIGHT[lit, way].burning))) for lit in LIT
}
# The same from the squares next to it: those at which she can strike in her next turn.
NEXT_STRIKES = {(lit, arrows): frozenset().union(*(STRIKES[to, arrows] for to in LIT_NEIGHBOURS[lit])) for lit, arrows in STRIKES}


class _Huntress:
    """How the Huntress weighs her moves."""

    def __init__(self, view: View, square: int) -> None:
        trail = Trail(view)
        self.tokens = view.tokens
        self.loud = trail.lit | trail.bell
        self.safe = view.turns == 0  # the Monster's first turn is no attack (DN-03)
        self.chances = trail.chances
        if view.turns > 2:  # a Monster in front of her would rather have attacked
            self.chances = {dark: chance * (RESTRAINT if FACED[dark] == square else 1) for dark, chance in trail.chances.items()}
            total = sum(self.chances.values())
            self.chances = {dark: chance / total for dark, chance in self.chances.items()}

    def worth(self, move: Move) -> float:
        """What a hunt is worth."""
        assert isinstance(move, Hunt)
        to, action = move.to, move.action
        arrows = self.tokens.arrows - isinstance(action, Arrow) > 0
        match action:
            case None:
                return self._later(to, self.chances, self.loud, arrows)
            case Sword(square):
                return self.chances.get(square, 0.0) + self._later(to, self._without(square), self.loud, arrows)
            case Arrow(direction):
                square, burning = FLIGHT[to, direction]
                if burning:
                    worth = self._later(to, self.chances, self.loud | {square}, arrows)
                else:
                    worth = self.chances.get(square, 0.0) + self._later(to, self._without(square), self.loud, arrows)
            case Bell(square):
                rings = {square: self.chances[square]} if square in self.chances else {}
                worth = self._later(to, rings, self.loud, arrows) + self._later(to, self._without(square), self.loud | {square}, arrows)
            case Ham(square):
                worth = sum(self._later(to, chances, self.loud, arrows) for chances in self._lured(square))
        last = self.tokens.arrows + self.tokens.bell + self.tokens.ham == 1
        return worth - TOKEN_COST[type(action)] - LAST_TOKEN_COST * last

    def _without(self, square: int) -> Chances:
        return {dark: chance for dark, chance in self.chances.items() if dark != square}

    def _lured(self, ham: int) -> Iterable[Chances]:
        """The chances after a ham, by what is announced of it."""
        after: dict[tuple[int, int], Chances] = {}
        for dark, chance in self.chances.items():
            ways = CLOSER[dark, ham]
            for square in [AROUND[way][dark] for way in ways] or [dark]:
                told = after.setdefault((_distance(square, ham), square if square in self.loud else 0), {})
                told[square] = told.get(square, 0.0) + chance / (len(ways) or 1)
        return after.values()

    def _later(self, to: int, chances: Chances, loud: frozenset[int], arrows: bool) -> float:
        """What the Monster's next turn and hers are worth, if the Monster is where these chances say, and she at that lit square."""
        danger = heard = 0.0
        unheard: Chances = {}
        strikes, threat = NEXT_STRIKES[to, arrows], THREAT[to]
        for dark, chance in chances.items():
            if dark in threat and not self.safe:
                danger += chance * (1 - RESTRAINT)
                chance *= RESTRAINT
            for square in (CLOCKWISE[dark], COUNTERCLOCKWISE[dark]):
                if square in loud:
                    heard += chance / 2 * (square in strikes)
                else:
                    unheard[square] = unheard.get(square, 0.0) + chance / 2
        return NEXT_TURN * (heard + max((unheard.get(square, 0.0) for square in strikes), default=0.0)) - FEAR * danger


# --------------------------------------------------------------------- the Monster


def _prospects() -> dict[tuple[int, int], float]:
    """What it is worth to the Monster to move from a dark square with the Huntress on a lit one, who goes either way as likely."""
    prospects = {(dark, lit): float(dark in THREAT[lit]) for dark in DARK for lit in LIT}
    for _ in range(20):
        prospects = {
            (dark, lit): 1.0
            if dark in THREAT[lit]
            else PATIENCE * max(sum(prospects[step[dark], to] for to in LIT_NEIGHBOURS[lit]) / 2 for step in (CLOCKWISE, COUNTERCLOCKWISE))
            for dark, lit in prospects
        }
    return prospects


PROSPECTS = _prospects()


class _Monster:
    """How the Monster weighs its moves."""

    def __init__(self, view: View, huntress: int) -> None:
        assert view.monster is not None
        self.trail = Trail(view)
        self.square, self.huntress = view.monster, huntress
        self.strikes = [STRIKES[to, view.tokens.arrows > 0] for to in LIT_NEIGHBOURS[huntress]]

    def worth(self, move: Move) -> float:
        """What a move is worth."""
        match move:
            case Lured(direction):  # its own turn comes next
                return PROSPECTS[AROUND[direction][self.square], self.huntress]
            case Prowl(direction, attack):
                square = AROUND[direction][self.square]
                if attack:  # it sees whether it hits, and a miss only gives it away
                    return 2.0 if FACED[square] == self.huntress else -2.0
                heard = bool(self.trail.noise([square]))
                quiet = {dark: chance for dark, chance in self.trail.spread().items() if not self.trail.noise([dark])}
                return self._waiting(square, {square: 1.0} if heard else quiet)
            case Feint(steps):
                path = _path(self.square, steps)
                return self._waiting(path[-1], self.trail.feinted(self.square, self.trail.noise(path[1:]))) - FEINT_COST
        raise AssertionError(move)

    def _waiting(self, square: int, chances: Chances) -> float:
        """What it is worth to be on a square in the Huntress's turn, if these are the chances as she knows them."""
        prospect = sum(PROSPECTS[square, to] for to in LIT_NEIGHBOURS[self.huntress]) / 2
        danger = sum(chances[square] / sum(chances.get(dark, 0.0) for dark in strikes) for strikes in self.strikes if square in strikes)
        return PATIENCE * prospect - CAUTION * danger / 2
