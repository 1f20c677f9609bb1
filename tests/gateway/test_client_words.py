"""The client's words and boards, for everything that the protocol can say."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from rich.console import Console

from gateway.registry import GAMES, Game
from gloaming.client import words
from gloaming.client.terminal.boards import board
from gloaming.client.terminal.paint import named
from gloaming.table.v1 import table_pb2

NAMES = ("Ann", "Bob", "Cat", "Dan", "Eli", "Fay")
# Of the known values one that says something, and one that is newer than the client.
VALUES = (1, 99)


def fill(message: Any, value: int, depth: int = 6) -> Any:
    """Sets every field, of a oneof the last one."""
    for field in message.DESCRIPTOR.fields:
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            if depth:
                target = getattr(message, field.name)
                fill(target.add() if field.is_repeated else target, value, depth - 1)
                if not field.is_repeated:
                    target.SetInParent()
            continue
        sample: Any = {
            FieldDescriptor.TYPE_BOOL: True,
            FieldDescriptor.TYPE_STRING: "x",
            FieldDescriptor.TYPE_BYTES: b"x",
            FieldDescriptor.TYPE_ENUM: value,
        }.get(field.type, 1)
        if field.is_repeated:
            getattr(message, field.name).append(sample)
        else:
            setattr(message, field.name, sample)
    return message


def kinds(game: Game, name: str, value: int) -> Iterator[tuple[str, Any]]:
    """Every kind of event or move, once with every field set and once with none."""
    kind = game.messages[name]
    for field in kind.DESCRIPTOR.oneofs_by_name["kind"].fields:
        for full in (True, False):
            made: Any = kind()
            part = getattr(made, field.name)
            part.SetInParent()
            if full:
                fill(part, value)
            yield field.name, made


@pytest.mark.scenario(27)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_every_event_and_every_move_is_told_in_words_also_one_with_values_that_are_newer(game: Game, value: int) -> None:
    for name, tell in (("Event", words.event), ("Move", words.move)):
        for kind, made in kinds(game, name, value):
            said = tell(game.id, made, NAMES)
            assert said, kind
            assert "_" not in said, said
            assert (name == "Event") == said.endswith((".", "!")), said
            assert named(said, NAMES).plain == said
        assert tell(game.id, game.messages[name](), NAMES) == ""


@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_a_game_without_words_of_its_own_is_told_in_those_of_its_messages(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(words._GAMES, game.id)
    for name, tell in (("Event", words.event), ("Move", words.move)):
        for _, made in kinds(game, name, 99):
            assert tell(game.id, made, NAMES)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_every_view_is_drawn(game: Game, value: int) -> None:
    empty: Any = game.messages["Match"]()
    for match in (fill(game.messages["Match"](), value), empty):
        match.game = game.id
        if game.id == "clans_and_glory":  # the one whose fields are always whole
            for field in match.view.fields:
                for _ in range(5):
                    field.slots.add()
        console = Console(file=io.StringIO(), width=120)
        console.print(board(match, NAMES))


def test_seats_of_one_name_are_told_apart_and_painted() -> None:
    seats = [table_pb2.Seat(name=name) for name in ("Bot", "Ann", "Bot")]
    assert words.seat_names(seats) == ["Bot 1", "Ann", "Bot 2"]
    painted = named("Bot 1 and Ann and Bot 2, not Anna", ["Bot 1", "Ann", "Bot 2"])
    assert [painted.plain[span.start : span.end] for span in sorted(painted.spans)] == ["Bot 1", "Ann", "Bot 2"]


def test_the_end_is_told_with_its_winners() -> None:
    outcome = table_pb2.Outcome(ending=table_pb2.Outcome.COMPLETED, ranks=[1, 1, 3], winners=[0, 1])
    assert words.finished(outcome, NAMES) == "The match is over. Ann and Bob share the first place."
    outcome = table_pb2.Outcome(ending=table_pb2.Outcome.ABANDONED, ranks=[2, 2])
    assert words.finished(outcome, NAMES).endswith("Nobody wins.")
