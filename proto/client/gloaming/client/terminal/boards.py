"""The boards of all games, as the viewer of a match may see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from google.protobuf import text_format
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gloaming.clans_and_glory.v1 import clans_and_glory_pb2
from gloaming.client.terminal.paint import name, seat_style
from gloaming.client.words import clans_and_glory as clans_words
from gloaming.client.words import dark_is_the_night as dark_words
from gloaming.client.words import night_clan as clan_words
from gloaming.client.words import night_knight as knight_words
from gloaming.client.words.common import word
from gloaming.dark_is_the_night.v1 import dark_is_the_night_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.night_knight.v1 import night_knight_pb2

_COLOURS = {
    clans_and_glory_pb2.Resident.RED: "red",
    clans_and_glory_pb2.Resident.ORANGE: "dark_orange",
    clans_and_glory_pb2.Resident.YELLOW: "yellow",
    clans_and_glory_pb2.Resident.GREEN: "green",
    clans_and_glory_pb2.Resident.BLUE: "bright_blue",
    clans_and_glory_pb2.Resident.PURPLE: "magenta",
    clans_and_glory_pb2.Resident.GREY: "grey62",
}


def board(match: Any, names: Sequence[str]) -> RenderableType:
    """A match as it is."""
    draw: Callable[[Any, Sequence[str]], RenderableType] = _BOARDS.get(match.game, _unknown)
    return draw(match.view, names)


def _night_clan(view: night_clan_pb2.View, names: Sequence[str]) -> RenderableType:
    table = Table("Location", "", "cards", title="Night Clan", title_justify="left")
    for location in view.locations:
        cards = Text("  ").join(
            Text(
                f"{card.card_id} {clan_words.kind(card.kind) if card.HasField('kind') else '▒▒▒'}",
                seat_style(card.owner) if card.face_up else f"{seat_style(card.owner)} dim",
            )
            for card in location.cards
        )
        full = len(location.cards) >= location.capacity
        room = Text(f"{len(location.cards)}/{location.capacity}", "dim" if full else "")
        table.add_row(word(night_clan_pb2.Location.Name, location.location), room, cards)
    sizes = _by_seat(names, (f"{held} in hand, {left} to draw" for held, left in zip(view.hand_sizes, view.deck_sizes, strict=False)))
    hand = [Text("Your hand: " + ", ".join(map(clan_words.kind, view.hand)), "bold")] if view.hand else []
    return Group(table, *sizes, *hand)


def _clans_and_glory(view: clans_and_glory_pb2.View, names: Sequence[str]) -> RenderableType:
    table = Table(title="Clans and Glory", title_justify="left", show_lines=True)
    for number, field in enumerate(view.fields):
        table.add_column(f"field {number}{' 🔥' if field.campfire else ''}", justify="center")
    for row in (range(3), range(3, 6)):
        table.add_row(*(Text(" ").join(_slot(field.slots[n], n) for n in row) for field in view.fields))
    table.add_row(*(Text(" ").join(Text("◆", seat_style(seat)) for seat in field.shields) for field in view.fields))
    left = _by_seat(names, (f"{held} in hand, {'◆' * shields}" for held, shields in zip(view.hand_sizes, view.shields_left, strict=False)))
    hand = Text("Your hand: ", "bold") + Text("  ").join(
        Text(clans_words.resident(card), _COLOURS.get(card.color, "")) for card in view.hand
    )
    return Group(table, *left, *([hand] if view.hand else []))


def _slot(slot: clans_and_glory_pb2.Slot, number: int) -> Text:
    if slot.face_down:
        return Text("▒▒▒", "dim")
    if not slot.HasField("resident"):
        return Text(f" {number} ", "dim")
    colour = word(clans_and_glory_pb2.Resident.Color, slot.resident.color)
    # Green and grey are told apart by their last letters.
    return Text(f"{colour[0]}{colour[-1]}{slot.resident.strength}", f"bold {_COLOURS.get(slot.resident.color, '')}")


# Rows and columns of the squares, each ring clockwise from the north-west (DN-01).
_DARK = ((0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (4, 3), (4, 2), (4, 1), (3, 0), (2, 0), (1, 0))
_LIT = ((1, 1), (1, 2), (1, 3), (2, 3), (3, 3), (3, 2), (3, 1), (2, 1))


def _dark_is_the_night(view: dark_is_the_night_pb2.View, names: Sequence[str]) -> RenderableType:
    cells = [[Text("") for _ in range(5)] for _ in range(5)]
    cells[2][2] = Text("🔥")
    for number, (row, column) in enumerate(_DARK, start=1):
        burns = number in view.lit_squares
        signs = ("B" if view.HasField("bell") and view.bell == number else "") + (
            "H" if view.HasField("ham") and view.ham == number else ""
        )
        if view.HasField("monster") and view.monster == number:
            cells[row][column] = Text(f"M{signs}", f"bold {seat_style(1)}")
        else:
            cells[row][column] = Text(f"{number}{signs}", "bold red" if burns else "dim")
    for number, (row, column) in enumerate(_LIT, start=1):
        here = view.HasField("huntress") and view.huntress == number
        cells[row][column] = Text("♛", f"bold {seat_style(0)}") if here else Text(f"({number})", "yellow")
    grid = Table(title="Dark Is the Night", title_justify="left", show_header=False, show_lines=True)
    for row_of_cells in cells:
        grid.add_row(*row_of_cells)
    left = [f"arrows {view.tokens.arrows}", *(["bell"] if view.tokens.bell else []), *(["ham"] if view.tokens.ham else [])]
    said = Text.assemble(name(0, names), f" the Huntress ♛ has {', '.join(left)}; ", name(1, names), " the Monster M")
    said.append(" has its feint" if view.feint_left else " has played its feint")
    if view.HasField("turns_left"):
        said.append(f"; {view.turns_left} turns to dawn")
    if view.HasField("side"):
        said.append(f"; it began in the {dark_words.direction(view.side)}")
    return Group(grid, said)


def _night_knight(view: night_knight_pb2.View, names: Sequence[str]) -> RenderableType:
    shown = {card.seat: card for card in view.cards}
    reacted = {reaction.seat: reaction for reaction in view.reactions}
    table = Table("", "player", "cards left", "card", "did", title=f"Night Knight, round {view.round}", title_justify="left")
    for seat, size in enumerate(view.pile_sizes):
        card = shown.get(seat)
        face = "out" if seat in view.out else "" if card is None else knight_words.card(card.card) if card.HasField("card") else "?"
        did = knight_words.action(reacted[seat], names) if seat in reacted else ""
        table.add_row(str(seat), name(seat, names), str(size), face, did)
    return Group(table, Text(f"{view.pillows_left} pillows in the middle"))


def _unknown(view: Any, names: Sequence[str]) -> RenderableType:
    return Text(text_format.MessageToString(view))


def _by_seat(names: Sequence[str], said: Iterable[str]) -> list[Text]:
    return [Text.assemble(name(seat, names), f": {each}") for seat, each in enumerate(said)]


_BOARDS: dict[str, Callable[[Any, Sequence[str]], RenderableType]] = {
    "clans_and_glory": _clans_and_glory,
    "dark_is_the_night": _dark_is_the_night,
    "night_clan": _night_clan,
    "night_knight": _night_knight,
}
