"""Checks the record of a finished match (ALL-03): its seed against the commitment, all the rest against its seed."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf import json_format

from gloaming.table.v1 import table_pb2
from services.kit.chance import SEED_BYTES, Chance
from services.kit.errors import Unreadable
from services.kit.game import NOBODY_WINS, Game, Value, is_refusal, outcome_message, ranks_with_resigned, seating


class Mismatch(Exception):
    """Something in a record does not follow from its seed and moves."""


class Turn(NamedTuple):
    """What a move of a record led to.

    Args:
        state: the state after it.
        events: what happened; None for a reaction that came too late for the end, which changed nothing.
    """

    state: Value
    events: tuple[Value, ...] | None


def main(game: Game, path: Path) -> int:
    """Prints what was checked of a record, and returns 0 when all of it follows, 1 when something does not, 2 when it is no record."""
    try:
        record = json_format.Parse(path.read_text(), game.message("Record")(), ignore_unknown_fields=True)
    except (OSError, UnicodeDecodeError, json_format.ParseError) as fault:
        print(f"{path} is not a record of {game.info.title}: {fault}", file=sys.stderr)
        return 2
    try:
        for line in check(game, record):
            print(f"ok    {line}")
    except Mismatch as fault:
        print(f"WRONG {fault}")
        return 1
    print(f"The record of {record.match_id} is true.")
    return 0


def check(game: Game, record: Any, played: Callable[[Turn], object] = lambda _: None) -> Iterator[str]:
    """Yields a line for everything that follows.

    Args:
        played: is told what the deal gave, and then each move.

    Raises:
        Mismatch: at the first thing that does not.
    """
    seed = _seed(record.seed)
    _same("commitment", hashlib.sha256(seed).hexdigest(), record.commitment)
    yield f"the seed is the one committed to: {record.commitment}"

    chance = Chance(seed)
    count = len(record.listed)
    if not game.info.min_seats <= count <= game.info.max_seats:
        raise Mismatch(f"listed: {game.info.title} is not for {count}")
    if record.order not in table_pb2.Seating.Order.values():
        raise Mismatch(f"order: there is no order {record.order}")
    seated = [record.listed[i].player for i in seating(record.order, count, chance)]
    _same("seats", seated, [seat.player for seat in record.seats])
    yield f"the seats are numbered {table_pb2.Seating.Order.Name(record.order)}"

    try:
        step = game.rules.setup(game.codec.options_from_proto(record.options), count, chance)
    except Unreadable as fault:
        raise Mismatch(f"options: {fault}") from fault
    played(Turn(step.state, tuple(step.events)))
    state, resigned, ended = step.state, [False] * count, False
    # The state in which the last reaction was made, if it ended the match, and who has reacted since.
    open_, reacted = None, set[int]()
    for n, recorded in enumerate(record.moves, start=1):
        seat = recorded.played.seat
        if not 0 <= seat < count or (ended and (open_ is None or seat in reacted)):
            raise Mismatch(f"move {n}: it comes after the end, or from no seat")
        if ended:
            _too_late(game, open_, reacted, n, recorded, chance)
            reacted.add(seat)
            played(Turn(state, None))
            continue
        if recorded.WhichOneof("done") == "resignation":
            resigned[seat] = True
            ended = count == 2
            played(Turn(state, ()))
            continue
        if recorded.WhichOneof("done") == "window_ended" and game.real_time:
            step = game.real_time.on_timeout(state, chance)
            open_, state = None, step.state
            ended = game.rules.outcome(state) is not None
            played(Turn(state, tuple(step.events)))
            continue
        try:
            move = game.codec.move_from_proto(recorded.move)
        except Unreadable as fault:
            raise Mismatch(f"move {n}: {fault}") from fault
        reactions = game.real_time.reactions if game.real_time and game.real_time.reactions.is_reaction(move) else None
        if reactions:
            move = reactions.decided(move, recorded.reaction)
        step = game.rules.apply(state, seat, move, chance)
        if is_refusal(step):
            raise Mismatch(f"move {n} of seat {seat} is against the rules: {step.reason}, {step.detail}")
        if reactions:
            _same(f"move {n}, reaction", reactions.reaction(step.events[0]), recorded.reaction)
        open_, reacted = (state, {seat}) if reactions else (None, reacted)
        state = step.state
        ended = game.rules.outcome(state) is not None
        played(Turn(state, tuple(step.events)))
    abandoned = not ended and record.outcome.ending == table_pb2.Outcome.ABANDONED
    if not ended and not abandoned:
        raise Mismatch("the moves do not lead to an end")
    yield f"all {len(record.moves)} moves follow the rules on the shuffles of that seed"

    ranks = game.rules.outcome(state)
    if abandoned:
        ending, ranks = table_pb2.Outcome.ABANDONED, NOBODY_WINS * count
    else:
        ending = table_pb2.Outcome.RESIGNED if ranks is None else table_pb2.Outcome.COMPLETED
    _same("outcome", outcome_message(ending, ranks_with_resigned(ranks or [1] * count, resigned)), record.outcome)
    scores = getattr(game.codec.view_to_proto(game.rules.view(state, None)), "scores", ())
    _same("scores", list(scores), list(record.scores))
    yield f"the outcome follows: ranks {list(record.outcome.ranks)}, scores {list(record.scores)}"


def _too_late(game: Game, open_: Any, reacted: Collection[int], n: int, recorded: Any, chance: Chance) -> None:
    """Checks what comes after the end: a reaction to the round that ended the match, on its way when another closed it (NK-13).

    Args:
        open_: the state in which that other was made.
        reacted: the seats that have reacted since, its own among them.
        n: the move's number.
    """
    reactions = game.real_time.reactions if game.real_time else None
    try:
        move = game.codec.move_from_proto(recorded.move)
    except Unreadable as fault:
        raise Mismatch(f"move {n}: {fault}") from fault
    if not reactions or recorded.WhichOneof("done") != "move" or not reactions.is_reaction(move):
        raise Mismatch(f"move {n}: it comes after the end")
    step = game.rules.apply(open_, recorded.played.seat, reactions.decided(move, recorded.reaction), chance)
    if is_refusal(step):
        raise Mismatch(f"move {n} of seat {recorded.played.seat} is against the rules: {step.reason}, {step.detail}")
    # As it would have been before the end, but for what being late for it makes of it.
    found: Any = reactions.reaction(step.events[0])
    found.verdict, found.rank, found.evidence.rule = "TOO_LATE", reactions.known(open_) + len(reacted) + 1, "NK-13"
    _same(f"move {n}, reaction", found, recorded.reaction)


def _seed(text: str) -> bytes:
    try:
        seed = bytes.fromhex(text)
    except ValueError as fault:
        raise Mismatch("the seed is not hexadecimal") from fault
    if len(seed) != SEED_BYTES:
        raise Mismatch(f"the seed is not of {SEED_BYTES} bytes")
    return seed


def _same(what: str, found: Any, told: Any) -> None:
    if found != told:
        raise Mismatch(f"{what}: the record says {told}, the seed and the moves give {found}")
