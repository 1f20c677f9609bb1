"""Night Knight's values to and from protobuf (`gloaming.night_knight.v1`). Both sides use the same enum names and numbers."""

from collections.abc import Iterable
from enum import IntEnum
from functools import cache
from typing import TypeVar

from gloaming.night_knight.v1 import night_knight_pb2 as pb
from services.kit.errors import Unreadable
from services.night_knight.rules import (
    ROUNDS,
    Action,
    Card,
    CardsRevealed,
    Event,
    Move,
    Options,
    Ordering,
    OwnCardShown,
    Peek,
    Peeked,
    React,
    Reacted,
    Reaction,
    Result,
    Round,
    RoundResolved,
    RoundStarted,
    View,
)

E = TypeVar("E", bound=IntEnum)

# What each time among the options may be, in ms.
_RANGES = {
    "action_ms": (500, 30_000),  # NK-13
    "own_card_delay_ms": (0, 2_000),  # NK-04
    "countdown_ms": (0, 10_000),
    "max_compensation_ms": (0, 300),  # NK-19
}

# ------------------------------------------------------------------- options


def options_to_proto(options: Options) -> pb.Options:
    """The options, defaults filled in."""
    return pb.Options(
        squire=options.squire,
        action_ms=options.action_ms,
        own_card_delay_ms=options.own_card_delay_ms,
        countdown_ms=options.countdown_ms,
        ordering=options.ordering.name,
        max_compensation_ms=options.max_compensation_ms,
    )


def options_from_proto(message: pb.Options) -> Options:
    """The options asked for, those left out at their defaults. Raises Unreadable for an unknown ordering or a time out of its range."""
    times = {name: _time(message, name) for name in _RANGES if message.HasField(name)}
    is_ordered = message.ordering != pb.Options.ORDERING_UNSPECIFIED
    ordering = _member(Ordering, message.ordering, "ordering") if is_ordered else Ordering.ARRIVAL
    return Options(squire=message.squire, ordering=ordering, **times)


def _time(message: pb.Options, name: str) -> int:
    least, most = _RANGES[name]
    time: int = getattr(message, name)
    if not least <= time <= most:
        raise Unreadable(message.DESCRIPTOR.fields_by_name[name].json_name, f"must be from {least} to {most}")
    return time


# --------------------------------------------------------------------- moves


def move_to_proto(move: Move) -> pb.Move:
    """A move as clients send it."""
    if isinstance(move, Peek):
        return pb.Move(peek=pb.Peek(round=move.round))
    return pb.Move(react=pb.React(round=move.round, action=move.action.name, target=move.target))


def move_from_proto(message: pb.Move) -> Move:
    """The move that a client sent. Raises Unreadable, its field relative to the move, for one that cannot be a move in any match."""
    kind = message.WhichOneof("kind")
    if kind == "react":
        return _react(message.react)
    if kind == "peek":
        return Peek(_round(message.peek.round, "peek.round"))
    raise Unreadable("", "one of react and peek must be set")


def _react(message: pb.React) -> React:
    round_ = _round(message.round, "react.round")
    action = _member(Action, message.action, "react.action")
    target = message.target if message.HasField("target") else None
    if action is Action.THROW and target is None:
        raise Unreadable("react.target", "a THROW must have a target")
    if action is not Action.THROW and target is not None:
        raise Unreadable("react.target", f"a {action.name} must have no target")
    return React(round_, action, target)


def _round(number: int, field: str) -> int:
    if not 1 <= number <= ROUNDS:
        raise Unreadable(field, f"must be a round's number, from 1 to {ROUNDS}")
    return number


def _member(enum: type[E], number: int, field: str) -> E:
    """The member of that number; Unreadable for 0, which is what a field left out holds, and for numbers without a name."""
    try:
        return enum(number)
    except ValueError:
        names = ", ".join(member.name for member in enum)
        raise Unreadable(field, f"must be one of {names}") from None


# ----------------------------------------------------------- views and events


def view_to_proto(view: View) -> pb.View:
    """What a viewer may know, as it is sent. When the phase ends is the platform's to add: it knows when the window began."""
    return pb.View(
        round=view.round,
        phase=view.phase.name,
        pillows_left=view.pillows_left,
        cards=_cards(view.cards),
        reactions=map(_reaction, view.reactions),
        pile_sizes=view.pile_sizes,
        out=view.out,
        last_round=_round_to_proto(view.last_round) if view.last_round else None,
    )


def event_to_proto(event: Event) -> pb.Event:
    """An event as it is sent."""
    match event:
        case RoundStarted(round_, pile_sizes):
            return pb.Event(round_started=pb.RoundStarted(round=round_, pile_sizes=pile_sizes))
        case Peeked(seat):
            return pb.Event(peeked=pb.Peeked(seat=seat))
        case CardsRevealed(round_, cards):
            return pb.Event(cards_revealed=pb.CardsRevealed(round=round_, cards=_cards(cards)))
        case OwnCardShown(round_, cards):
            return pb.Event(own_card_shown=pb.OwnCardShown(round=round_, cards=_cards(cards)))
        case Reacted(reaction):
            return pb.Event(reacted=_reaction(reaction))
        case RoundResolved(round_, results):
            return pb.Event(round_resolved=pb.RoundResolved(round=round_, results=map(_result, results)))


def _cards(cards: Iterable[Card]) -> list[pb.Card]:
    return [_card(card) for card in cards]


# Of cards and results there are few, and every round tells of some: each is made once and copied into what is sent.
@cache
def _card(card: Card) -> pb.Card:
    return pb.Card(seat=card.seat, card=card.kind.name if card.kind else None)


def _reaction(reaction: Reaction) -> pb.Reaction:
    evidence = reaction.evidence
    return pb.Reaction(
        seat=reaction.seat,
        action=reaction.action.name,
        target=reaction.target,
        verdict=reaction.verdict.name,
        rank=reaction.rank,
        evidence=pb.Evidence(
            received_ms=evidence.received_ms,
            round_trip_ms=evidence.round_trip_ms,
            compensation_ms=evidence.compensation_ms,
            cap_ms=evidence.cap_ms,
            rule=evidence.rule,
        ),
    )


@cache
def _result(result: Result) -> pb.Result:
    return pb.Result(seat=result.seat, card=result.card.name if result.card else None, right=result.right, rule=result.rule)


def _round_to_proto(last: Round) -> pb.Round:
    return pb.Round(
        round=last.round,
        cards=_cards(last.cards),
        reactions=map(_reaction, last.reactions),
        results=map(_result, last.results),
    )
