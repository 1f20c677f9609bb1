"""What the kit knows of a game: four modules and a number.

To the kit, options, states, moves, events and views are opaque values of the game. Modules satisfy these protocols as they are; mypy
checks it where a game fills its `Game`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard, runtime_checkable

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message

from gloaming.table.v1 import table_pb2
from services.kit.chance import Chance
from services.kit.storage import Script

Value: TypeAlias = Any


class Step(Protocol):
    """What applying a move gives: the next state and what happened."""

    @property
    def state(self) -> Value:
        """The next state."""

    @property
    def events(self) -> tuple[Value, ...]:
        """What happened, in order."""


@runtime_checkable
class Refusal(Protocol):
    """Why a move is against the rules now. A value, not an exception: it changes nothing."""

    @property
    def reason(self) -> str:
        """A stable UPPER_SNAKE word."""

    @property
    def detail(self) -> str:
        """A sentence for people, built from nothing that the seat may not know."""


def is_refusal(result: Step | Refusal) -> TypeGuard[Refusal]:
    """Whether a move was refused: what isinstance says, which is slow with protocols."""
    return hasattr(result, "reason")


class Rules(Protocol):
    """A game's rules: pure functions over frozen values, chance passed in. A viewer is a seat's number, or None for a spectator."""

    State: type[Value]

    def setup(self, options: Value, seats: int, chance: Any, /) -> Step:
        """Deals a match."""

    def to_move(self, state: Value, /) -> tuple[int, ...]:
        """The seats that may move now, ascending."""

    def legal(self, state: Value, seat: int, /) -> Sequence[Value]:
        """Every legal move of a seat now, in an order that says nothing."""

    def apply(self, state: Value, seat: int, move: Value, chance: Any, /) -> Any:
        """Plays a move: a `Step`, or a `Refusal` that changes nothing."""

    def end_early(self, state: Value, /) -> Value:
        """The state after the platform ended the match (ALL-01): nobody is to move."""

    def view(self, state: Value, viewer: int | None, /) -> Value:
        """What a viewer may know now."""

    def redact(self, event: Value, viewer: int | None, /) -> Value:
        """An event as a viewer may know it. Every viewer gets one: its content may be hidden, its existence not."""

    def outcome(self, state: Value, /) -> tuple[int, ...] | None:
        """Ranks by seat, 1 the best, equal ranks sharing a place; None before the end."""


class Codec(Protocol):
    """Between a game's values and its protobuf messages. From-functions raise `errors.Unreadable`."""

    def options_from_proto(self, message: Any, /) -> Value:
        """Options, defaults filled in."""

    def options_to_proto(self, options: Value, /) -> Message:
        """Options."""

    def move_from_proto(self, message: Any, /) -> Value:
        """A move."""

    def move_to_proto(self, move: Value, /) -> Message:
        """A move."""

    def view_to_proto(self, view: Value, /) -> Message:
        """A view."""

    def event_to_proto(self, event: Value, /) -> Message:
        """An event."""


class Bot(Protocol):
    """A game's standard bot."""

    def choose(self, view: Value, seat: int, moves: Sequence[Value], rng: random.Random, /) -> Value:
        """Picks one of the moves from what the seat may know alone."""


class Window(Protocol):
    """A window of time in a match."""

    @property
    def number(self) -> int:
        """Its number in the match: another window has another one."""

    @property
    def ms(self) -> int:
        """How long it lasts, in ms from its beginning."""


class OpenRound(NamedTuple):
    """A round that reactions race for.

    Args:
        number: its number.
        pillows: the pillows in the middle.
        waiting: how many seats may react.
        cap_ms: what is given back of a player's round trip at most; None where order is by arrival.
        until_ms: how long after its opening a reaction, its round trip given back, is in time.
    """

    number: int
    pillows: int
    waiting: int
    cap_ms: int | None
    until_ms: int


class ReactionRules(Protocol):
    """How a game's reactions are ordered: by a script, without a commit for each; the rules catch up with what it decided.

    The script takes and returns what Night Knight's react.lua says in its header. It puts what it decided into the event, and into the
    `reaction` of the RecordedMove.
    """

    script: Script
    # What one is told whose reaction is not decided yet and who reacts again.
    already_reacted: Any

    def is_reaction(self, move: Value, /) -> bool:
        """Whether a move is one."""

    def open(self, state: Value, /) -> OpenRound | None:
        """The round that is open for reactions in a state."""

    def known(self, state: Value, /) -> int:
        """How many reactions of the present round a state has taken in already."""

    def number(self, state: Value, /) -> int:
        """The number of the present round."""

    def refusal(self, state: Value, seat: int, move: Value, /) -> Refusal | None:
        """Why the rules forbid a reaction now; None if they allow it, and it is for the script to decide."""

    def request(self, seat: int, move: Value, /) -> tuple[int, bytes]:
        """What the script decides on: the kind of action, and the reaction but for what the script adds to it."""

    def decided(self, move: Value, reaction: Any, /) -> Value:
        """The move as the rules are to decide it, with the times of the reaction that was recorded with it."""

    def reaction(self, event: Value, /) -> Message:
        """The reaction that an event tells of, as it is recorded."""


@dataclass(frozen=True)
class RealTime:
    """What a game adds whose moves race each other in windows of time.

    Args:
        window: the present window of a state; None when the match is finished.
        on_timeout: what the end of the present window gives.
        think_ms: how long the bot takes to react, from what its seat may know; None while it has nothing to do.
        reactions: how reactions are ordered.
    """

    window: Callable[[Value], Window | None]
    on_timeout: Callable[[Value, Any], Step]
    think_ms: Callable[[Value, int, random.Random], int | None]
    reactions: ReactionRules


@dataclass(frozen=True)
class Game:
    """A game, to the kit.

    Args:
        proto: its generated protobuf module.
        rules: its rules.
        codec: between rules and protobuf.
        bot: its standard bot.
        schema: the number of the state's layout in storage. Raise it when the layout changes, and keep reading the old ones.
        real_time: what it adds if its moves race each other.
    """

    proto: ModuleType
    rules: Rules
    codec: Codec
    bot: Bot
    schema: int
    real_time: RealTime | None = None

    @cached_property
    def service(self) -> ServiceDescriptor:
        """The descriptor of the game's gRPC service."""
        (service,) = self.proto.DESCRIPTOR.services_by_name.values()
        assert isinstance(service, ServiceDescriptor)
        return service

    @cached_property
    def info(self) -> table_pb2.GameInfo:
        """What the game says of itself: id, title, seats."""
        option: Any = table_pb2.game
        info: table_pb2.GameInfo = self.service.GetOptions().Extensions[option]
        return info

    @cached_property
    def id(self) -> str:
        """The game's id, `night_clan`."""
        return self.info.id

    def message(self, name: str) -> Any:
        """The game's message class of that name."""
        return getattr(self.proto, name)


def seating(order: int, count: int, chance: Chance) -> tuple[int, ...]:
    """Which listed occupant sits in each seat (ALL-04): drawn from the stream `seating`, or as listed."""
    listed = tuple(range(count))
    return listed if order == table_pb2.Seating.AS_LISTED else chance.shuffle("seating", listed)


# The ranks of a match that the platform gave up, a seat each: above 1, so that nobody wins.
NOBODY_WINS = (2,)


def ranks_with_resigned(ranks: Sequence[int], resigned: Sequence[bool]) -> list[int]:
    """Ranks with every seat that resigned behind all others (ALL-01); order among the rest stays, gaps close up."""
    keys = [(gone, rank if not gone else 0) for rank, gone in zip(ranks, resigned, strict=True)]
    best = min(ranks)  # above 1 where nobody wins
    return [best + sum(other < key for other in keys) for key in keys]


def outcome_message(ending: int, ranks: Sequence[int]) -> table_pb2.Outcome:
    """An outcome, its winners those of rank 1."""
    return table_pb2.Outcome(
        ending=table_pb2.Outcome.Ending.Name(ending), ranks=ranks, winners=[seat for seat, rank in enumerate(ranks) if rank == 1]
    )
