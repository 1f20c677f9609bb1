"""The rules of Night Knight: pure functions over frozen values. Rule numbers are those of RULES.md beside this file.

A round is a row of windows of time. `window` says how long the present one lasts, `on_timeout` what happens when it ends; whoever calls
them owns the clock. Reactions are judged in the order in which they are applied; whoever applies them owns that order (NK-19).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cache
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")

# ---------------------------------------------------------------- vocabulary


class Kind(IntEnum):
    """The characters (NK-01); the numbers are the proto's."""

    SLEEPING_DRAGON = 1
    KING_OF_SILENCE = 2
    ATTACKING_KNIGHT = 3
    DEFENDING_KNIGHT = 4


class Action(IntEnum):
    """What a reaction does; the numbers are the proto's."""

    THROW = 1
    SHIELD = 2
    SLEEP = 3
    TOUCH = 4
    PASS = 5


class Verdict(IntEnum):
    """What became of a reaction; the numbers are the proto's."""

    GRANTED = 1  # NK-10
    TOO_LATE = 2  # NK-12, NK-13
    TOUCHED = 3  # NK-11
    PASSED = 4  # NK-13


class Ordering(IntEnum):
    """How pillows are ordered (NK-19); the numbers are the proto's."""

    ARRIVAL = 1
    COMPENSATED = 2


class Phase(IntEnum):
    """The phases of a round; the numbers are the proto's."""

    COUNTDOWN = 1
    ACTION = 2
    RESOLUTION = 3
    FINISHED = 4


# NK-01: the deck. Its shuffle always starts from this order.
DECK = (
    *[Kind.SLEEPING_DRAGON] * 7,
    *[Kind.KING_OF_SILENCE] * 7,
    *[Kind.ATTACKING_KNIGHT] * 21,
    *[Kind.DEFENDING_KNIGHT] * 21,
)
SQUIRE_DECK = tuple(kind for kind in DECK if kind is not Kind.KING_OF_SILENCE)

PILLOWS = {3: 1, 4: 2, 5: 2, 6: 2}  # NK-02, by number of seats
PILE_SIZE = {3: 12, 4: 12, 5: 8, 6: 8}  # NK-03, by number of seats
ROUNDS = 300  # NK-20


class Options(NamedTuple):
    """The game's own options. Times are in ms."""

    squire: bool = False  # NK-01
    action_ms: int = 4000  # NK-13
    own_card_delay_ms: int = 150  # NK-04
    countdown_ms: int = 2000  # the countdown, and before it the look at the result
    ordering: Ordering = Ordering.ARRIVAL  # NK-19
    max_compensation_ms: int = 150  # NK-19

    @property
    def cap_ms(self) -> int | None:
        """What is given back of a round trip at most; None where order is by arrival (NK-19)."""
        return self.max_compensation_ms if self.ordering is Ordering.COMPENSATED else None


class Chance(Protocol):
    """The match's chance (ALL-03). Every label is a stream of its own."""

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        """Returns the items in an order drawn from the stream of that label."""


# Moves


@dataclass(frozen=True, slots=True)
class React:
    """Reacts to a reveal, once a round (NK-10); a throw, and nothing else, has a target (NK-14).

    Times are the server's word, not the player's, and make no other move of this one: `received_ms` is the time since the reveal,
    `round_trip_ms` what the player's line was measured at, `compensation_ms` what is given back of it (NK-19).
    """

    round: int
    action: Action
    target: int | None = None
    received_ms: int = field(default=0, compare=False)
    round_trip_ms: int = field(default=0, compare=False)
    compensation_ms: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Peek:
    """Looks at one's own card during the countdown (NK-05)."""

    round: int


Move = React | Peek


# What is seen


class Card(NamedTuple):
    """A card revealed; `kind` is None where the viewer may not know it yet (NK-04)."""

    seat: int
    kind: Kind | None


class Evidence(NamedTuple):
    """Why a reaction was decided as it was (NK-19). Times are in ms."""

    received_ms: int  # since the reveal
    round_trip_ms: int
    compensation_ms: int
    cap_ms: int
    rule: str  # NK-10, NK-11, NK-12 or NK-13


class Reaction(NamedTuple):
    """A reaction as it was decided. Ranks count a round's reactions from 1."""

    seat: int
    action: Action
    target: int | None
    verdict: Verdict
    rank: int
    evidence: Evidence


class Result(NamedTuple):
    """How a seat did in a round, and the rule that says so; `card` is None for a seat that was out (NK-05)."""

    seat: int
    card: Kind | None
    right: bool
    rule: str


class Round(NamedTuple):
    """A round that is resolved: cards of those who were in, reactions in order, results by seat."""

    round: int
    cards: tuple[Card, ...]
    reactions: tuple[Reaction, ...]
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """A round began with its countdown; how many cards each seat has."""

    round: int
    pile_sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Peeked:
    """A seat looked at its card and is out for the round (NK-05)."""

    seat: int


@dataclass(frozen=True, slots=True)
class CardsRevealed:
    """Those still in revealed their cards (NK-04)."""

    round: int
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class OwnCardShown:
    """Everybody sees every card revealed (NK-04)."""

    round: int
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class Reacted:
    """A seat reacted."""

    reaction: Reaction


@dataclass(frozen=True, slots=True)
class RoundResolved:
    """The round is over; how each seat did, by seat (NK-15)."""

    round: int
    results: tuple[Result, ...]


Event = RoundStarted | Peeked | CardsRevealed | OwnCardShown | Reacted | RoundResolved


@dataclass(frozen=True, slots=True)
class View:
    """What one viewer may know now. Cards and reactions are this round's, also once it is resolved; then `last_round` is this one too."""

    round: int
    phase: Phase
    pillows_left: int
    cards: tuple[Card, ...]
    reactions: tuple[Reaction, ...]
    pile_sizes: tuple[int, ...]
    out: tuple[int, ...]
    last_round: Round | None


class Reason(StrEnum):
    """Why a move is refused."""

    MATCH_FINISHED = "MATCH_FINISHED"
    ROUND_OVER = "ROUND_OVER"  # NK-13
    NOT_IN_COUNTDOWN = "NOT_IN_COUNTDOWN"  # NK-05
    NOT_IN_ACTION = "NOT_IN_ACTION"  # NK-04
    NO_SUCH_TARGET = "NO_SUCH_TARGET"  # NK-14
    ALREADY_OUT = "ALREADY_OUT"  # NK-05
    ALREADY_REACTED = "ALREADY_REACTED"  # NK-10


# --------------------------------------------------------------------- state


class State(NamedTuple):
    """A match. In ACTION the card that a seat has revealed is still the first of its pile."""

    options: Options
    phase: Phase
    round: int  # from 1
    piles: tuple[tuple[Kind, ...], ...]  # by seat, the next card to reveal first
    out: tuple[int, ...]  # the seats that peeked this round, ascending (NK-05)
    own_shown: bool  # in ACTION: its second part has begun (NK-04)
    reactions: tuple[Reaction, ...]  # this round's in order, until it is resolved
    last_round: Round | None  # the last one resolved; late reactions join it (NK-13)


@dataclass(frozen=True, slots=True)
class Step:
    """What a move or the end of a window gives: the next state, and what happened, in order."""

    state: State
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A move that the rules forbid now, and why. Nothing has changed."""

    reason: Reason
    detail: str


ALREADY_REACTED = Refusal(Reason.ALREADY_REACTED, "One reacts once a round (NK-10).")


# --------------------------------------------------------------------- setup


def setup(options: Options, seats: int, chance: Chance) -> Step:
    """Deals a match for 3 to 6 seats from the stream `deck` (NK-01 to NK-03) and starts its first round."""
    dealt = chance.shuffle("deck", SQUIRE_DECK if options.squire else DECK)
    size = PILE_SIZE[seats]
    piles = tuple(dealt[seat * size : (seat + 1) * size] for seat in range(seats))
    return _start_round(State(options, Phase.COUNTDOWN, 0, piles, (), False, (), None))


# ------------------------------------------------------------------- to move


def to_move(state: State) -> tuple[int, ...]:
    """The seats that may move now, ascending: to peek, to react, or, once the round is resolved, to be recorded as too late (NK-13)."""
    if state.phase is Phase.FINISHED:
        return ()
    done = {reaction.seat for reaction in reactions(state)}
    return tuple([seat for seat in range(len(state.piles)) if seat not in done and seat not in state.out])


# --------------------------------------------------------------------- legal


def legal(state: State, seat: int) -> Sequence[Move]:
    """Every legal move of a seat, in a fixed order; empty when it is not to move."""
    if seat not in to_move(state):
        return ()
    if state.phase is Phase.COUNTDOWN:
        return (Peek(state.round),)
    throws, others = _reacts(state.round)
    return throws[:seat] + throws[seat + 1 : len(state.piles)] + others  # NK-14


@cache  # bounded: 300 rounds
def _reacts(round_: int) -> tuple[tuple[React, ...], tuple[React, ...]]:
    """Every reaction to a round: throws by target, and those without one. They are few: legal hands out the same ones again and again."""
    throws = tuple(React(round_, Action.THROW, target) for target in range(max(PILLOWS)))
    return throws, tuple(React(round_, action) for action in Action if action is not Action.THROW)


# --------------------------------------------------------------------- apply


def apply(state: State, seat: int, move: Move, chance: Chance) -> Step | Refusal:
    """Makes a seat's move, or says why the rules forbid it. A reaction that closes the round resolves it too (NK-13). Draws nothing.

    Reactions are decided in the order in which they are applied. Where lines are compensated, whoever applies them sees to NK-19's order.
    """
    if refused := refusal(state, seat, move):
        return refused
    return _peek(state, seat) if isinstance(move, Peek) else _react(state, seat, move)


def refusal(state: State, seat: int, move: Move) -> Refusal | None:
    """Why the rules forbid a seat's move now; None if they allow it."""
    if state.phase is Phase.FINISHED:
        return Refusal(Reason.MATCH_FINISHED, "The match is over.")
    if move.round != state.round:
        return Refusal(Reason.ROUND_OVER, f"This is round {state.round}, not {move.round} (NK-13).")
    if isinstance(move, Peek):
        if state.phase is not Phase.COUNTDOWN:
            return Refusal(Reason.NOT_IN_COUNTDOWN, "One peeks before the reveal (NK-05).")
    elif state.phase is Phase.COUNTDOWN:
        return Refusal(Reason.NOT_IN_ACTION, "Nothing is revealed yet (NK-04).")
    elif not _is_targeted_well(move, seat, len(state.piles)):
        return Refusal(Reason.NO_SUCH_TARGET, "A throw, and nothing else, is at another seat of the match (NK-14).")
    if seat in state.out:
        return Refusal(Reason.ALREADY_OUT, "This seat peeked and is out for the round (NK-05).")
    if isinstance(move, React) and any(reaction.seat == seat for reaction in reactions(state)):
        return ALREADY_REACTED
    return None


def _is_targeted_well(move: React, seat: int, seats: int) -> bool:
    if move.action is not Action.THROW or move.target is None:
        return move.action is not Action.THROW and move.target is None
    return 0 <= move.target < seats and move.target != seat


def _peek(state: State, seat: int) -> Step:
    return Step(state._replace(out=tuple(sorted((*state.out, seat)))), (Peeked(seat),))


def _react(state: State, seat: int, move: React) -> Step:
    before, left = reactions(state), _pillows_left(state)
    verdict, rule = _verdict(state, left, move)
    evidence = Evidence(move.received_ms, move.round_trip_ms, move.compensation_ms, state.options.cap_ms or 0, rule)
    reaction = Reaction(seat, move.action, move.target, verdict, len(before) + 1, evidence)
    after, reacted = (*before, reaction), Reacted(reaction)
    if resolved := _resolved(state):  # NK-13
        return Step(state._replace(last_round=resolved._replace(reactions=after)), (reacted,))
    state = state._replace(reactions=after)
    left -= verdict is Verdict.GRANTED
    if left and len(after) + len(state.out) < len(state.piles):
        return Step(state, (reacted,))
    step = _resolve(state)  # NK-13
    return Step(step.state, (reacted, *step.events))


def _verdict(state: State, pillows_left: int, move: React) -> tuple[Verdict, str]:
    """What becomes of a reaction, and by which rule."""
    if state.phase is Phase.RESOLUTION or _is_after_its_time(state.options, move):
        return Verdict.TOO_LATE, "NK-13"
    if move.action is Action.PASS:
        return Verdict.PASSED, "NK-13"
    if not pillows_left:
        return Verdict.TOO_LATE, "NK-12"
    if move.action is Action.TOUCH:
        return Verdict.TOUCHED, "NK-11"
    return Verdict.GRANTED, "NK-10"


def _is_after_its_time(options: Options, move: React) -> bool:
    """Whether a reaction was made after the action phase, which is kept open for those who were in time (NK-13, NK-19)."""
    return options.cap_ms is not None and move.received_ms - move.compensation_ms > options.action_ms


def end_early(state: State) -> State:
    """The platform ends the match (ALL-01): nobody is to move and nobody wins by the rules."""
    return state._replace(phase=Phase.FINISHED)


def _resolved(state: State) -> Round | None:
    """The present round, once it is resolved."""
    last = state.last_round
    return last if last is not None and last.round == state.round else None


def reactions(state: State) -> tuple[Reaction, ...]:
    """The present round's reactions, in order."""
    resolved = _resolved(state)
    return state.reactions if resolved is None else resolved.reactions


def _pillows_left(state: State) -> int:
    """Pillows in the middle: one use a pillow a round (NK-10), a touch is none (NK-11), and a new round has them all (NK-17)."""
    used = [reaction for reaction in reactions(state) if reaction.verdict is Verdict.GRANTED]
    return PILLOWS[len(state.piles)] - len(used)


# -------------------------------------------------------------------- windows


class Window(NamedTuple):
    """A window of time: its number in the match, and how long it lasts, in ms from its beginning."""

    number: int
    ms: int


def window(state: State) -> Window | None:
    """The present window: the countdown, the action phase's first and second part, the look at the result; None when finished."""
    options, first = state.options, 4 * state.round
    before = min(options.own_card_delay_ms, _open_ms(options))
    match state.phase:
        case Phase.COUNTDOWN:
            return Window(first, options.countdown_ms)
        case Phase.ACTION if not state.own_shown:
            return Window(first + 1, before)
        case Phase.ACTION:
            return Window(first + 2, _open_ms(options) - before)
        case Phase.RESOLUTION:
            return Window(first + 3, options.countdown_ms)
    return None


def on_timeout(state: State, chance: Chance) -> Step:
    """The present window has ended; an action phase has two, before and after one's own card is shown (NK-04). Draws nothing."""
    if state.phase is Phase.COUNTDOWN:
        return _reveal(state)
    if state.phase is Phase.RESOLUTION:
        return _start_round(state)
    if state.phase is Phase.FINISHED:
        return Step(state, ())
    if state.own_shown or state.options.own_card_delay_ms >= _open_ms(state.options):
        return _resolve(state)  # NK-13
    return Step(state._replace(own_shown=True), (OwnCardShown(state.round, _revealed(state)),))


def _open_ms(options: Options) -> int:
    """How long the action phase takes reactions: as long as one that was made in time can still come (NK-13, NK-19)."""
    return options.action_ms + (options.cap_ms or 0)


def _start_round(state: State) -> Step:
    state = State(state.options, Phase.COUNTDOWN, state.round + 1, state.piles, (), False, (), state.last_round)
    return Step(state, (RoundStarted(state.round, _pile_sizes(state)),))


def _reveal(state: State) -> Step:
    cards = _revealed(state)
    if not cards:
        return _resolve(state)  # NK-05: everybody peeked
    own_shown = state.options.own_card_delay_ms == 0  # without a delay there is no first part
    shown = (OwnCardShown(state.round, cards),) if own_shown else ()
    return Step(state._replace(phase=Phase.ACTION, own_shown=own_shown), (CardsRevealed(state.round, cards), *shown))


def _revealed(state: State) -> tuple[Card, ...]:
    """The first cards of those still in, by seat (NK-05)."""
    return tuple([Card(seat, pile[0]) for seat, pile in enumerate(state.piles) if seat not in state.out])


def _pile_sizes(state: State) -> tuple[int, ...]:
    return tuple(map(len, state.piles))


# ----------------------------------------------------------------- resolution


def right_action(card: Kind, revealed: Collection[Kind | None]) -> tuple[Action | None, str]:
    """What a seat with that card had to do when those were revealed, None being nothing, and the rule that says so."""
    if Kind.KING_OF_SILENCE in revealed:
        return None, "NK-06"
    if card is Kind.ATTACKING_KNIGHT:
        return Action.THROW if Kind.DEFENDING_KNIGHT in revealed else None, "NK-07"
    if card is Kind.DEFENDING_KNIGHT:
        return Action.SHIELD if Kind.ATTACKING_KNIGHT in revealed else None, "NK-08"
    return Action.SLEEP, "NK-09"


def _resolve(state: State) -> Step:
    """Closes the round: right cards leave the game, all others go under their piles (NK-15), and the match may be over (NK-16, NK-20)."""
    cards = _revealed(state)
    kinds = {card.seat: card.kind for card in cards}
    reacted = {reaction.seat: reaction for reaction in state.reactions}
    results = tuple([_result(seat, kinds, reacted.get(seat)) for seat in range(len(state.piles))])
    piles = tuple([pile[1:] if result.right else (*pile[1:], pile[0]) for pile, result in zip(state.piles, results, strict=True)])
    is_over = not all(piles) or state.round == ROUNDS
    phase = Phase.FINISHED if is_over else Phase.RESOLUTION
    resolved = RoundResolved(state.round, results)
    last_round = Round(state.round, cards, state.reactions, results)
    shown = (OwnCardShown(state.round, cards),) if cards and not state.own_shown else ()  # NK-04
    return Step(State(state.options, phase, state.round, piles, state.out, False, (), last_round), (*shown, resolved))


def _result(seat: int, kinds: dict[int, Kind | None], reaction: Reaction | None) -> Result:
    card = kinds.get(seat)
    if card is None:
        return Result(seat, None, False, "NK-05")
    wanted, rule = right_action(card, kinds.values())
    if reaction is None or reaction.verdict in (Verdict.PASSED, Verdict.TOO_LATE):
        return Result(seat, card, wanted is None, rule)  # NK-12: a grab that found no pillow is no action
    if reaction.action is Action.TOUCH:
        return Result(seat, card, False, "NK-11")
    if wanted is Action.THROW and reaction.target is not None and kinds.get(reaction.target) is not Kind.DEFENDING_KNIGHT:
        return Result(seat, card, False, "NK-14")
    return Result(seat, card, reaction.action is wanted, rule)


# --------------------------------------------------------- view and redaction


def view(state: State, viewer: int | None) -> View:
    """What a seat, or a spectator (None), may know now."""
    return View(
        round=state.round,
        phase=state.phase,
        pillows_left=_pillows_left(state),
        cards=_visible(state, viewer),
        reactions=reactions(state),
        pile_sizes=_pile_sizes(state),
        out=state.out,
        last_round=state.last_round,
    )


def _visible(state: State, viewer: int | None) -> tuple[Card, ...]:
    """The cards revealed this round, as the viewer sees them."""
    if resolved := _resolved(state):
        return resolved.cards
    if state.phase is not Phase.ACTION:
        return ()
    cards = _revealed(state)
    return cards if state.own_shown else _before_own(cards, viewer)


def redact(event: Event, viewer: int | None) -> Event:
    """The event as a seat, or a spectator (None), may know it: a reveal hides one's own card, and every card from spectators (NK-04)."""
    if isinstance(event, CardsRevealed):
        return CardsRevealed(event.round, _before_own(event.cards, viewer))
    return event


def _before_own(cards: tuple[Card, ...], viewer: int | None) -> tuple[Card, ...]:
    """Cards as a viewer sees them until everybody sees their own (NK-04)."""
    return tuple([Card(card.seat, None) if viewer is None or card.seat == viewer else card for card in cards])


# -------------------------------------------------------------------- outcome


def outcome(state: State) -> tuple[int, ...] | None:
    """Ranks by seat, 1 for those without cards, the others by cards left (NK-16); 2 for all when nobody wins (NK-20).

    None while playing and for a match that ended early.
    """
    sizes = _pile_sizes(state)
    if 0 in sizes:
        return tuple([1 + sum(other < size for other in sizes) for size in sizes])
    return (2,) * len(sizes) if state.round == ROUNDS and _resolved(state) else None
