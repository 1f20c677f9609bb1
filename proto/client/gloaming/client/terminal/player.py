"""One plays in a terminal: a board drawn in text, events in words, legal moves by number; Night Knight by single keys, in real time.

python -m gloaming.client night_clan --url http://127.0.0.1:8080
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import getpass
import sys
import time
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

from google.protobuf.message import Message
from rich.columns import Columns
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from gloaming.client import BOT, ME, AnswerError, Client, ProblemError, UnreachableError, words
from gloaming.client.terminal.boards import board
from gloaming.client.terminal.paint import named
from gloaming.client.terminal.screen import END, Screen
from gloaming.client.wire import game_module
from gloaming.gateway.v1 import gateway_pb2
from gloaming.night_knight.v1 import night_knight_pb2

URL = "http://127.0.0.1:8080"
REAL_TIME = "night_knight"
# Moves that are few are shown one below the other.
_FEW = 6
_REACTIONS = {
    "s": night_knight_pb2.React.SHIELD,
    "d": night_knight_pb2.React.SLEEP,
    "t": night_knight_pb2.React.TOUCH,
    " ": night_knight_pb2.React.PASS,
}


class Leave(Exception):
    """The player has had enough."""


def arguments() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m gloaming.client", description="Plays a match in this terminal.")
    parser.add_argument("game", help="its id, as in night_clan")
    parser.add_argument("--url", default=URL, help=f"the gateway's address; {URL} when not given")
    parser.add_argument("--name", default=getpass.getuser()[:40], help="what others see")
    parser.add_argument("--seats", type=int, default=0, help="how many play; the fewest that the game takes when not given")
    people = parser.add_mutually_exclusive_group()
    people.add_argument("--match", action="store_true", help="play with whoever wishes for the same, not with bots alone")
    people.add_argument("--room", action="store_true", help="open a room for people that you tell its code")
    people.add_argument("--join", metavar="CODE", default="", help="come to somebody's room")
    return parser


def main(asked: argparse.Namespace) -> int:
    """Plays, and returns the exit status."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("This plays by keys, so it needs a terminal.", file=sys.stderr)
        return 2
    try:
        game_module(asked.game)
    except LookupError:
        print(f"There is no game of the id {asked.game!r}.", file=sys.stderr)
        return 2
    try:
        asyncio.run(_play(asked))
    except (KeyboardInterrupt, Leave):
        print("Good night.")
    except UnreachableError:
        print(f"The server at {asked.url} does not answer; make run starts one.", file=sys.stderr)
        return 1
    except AnswerError:
        print(f"What answers at {asked.url} is no server of this kind, or none that this can read.", file=sys.stderr)
        return 1
    except ProblemError as problem:
        print(problem.detail, file=sys.stderr)
        return 1
    return 0


async def _play(asked: argparse.Namespace) -> None:
    async with Client(asked.url) as client:
        with Screen(Console(highlight=False)) as screen:
            await client.sign_in(asked.name)
            described = await client.describe(asked.game)
            screen.say(Rule(Text(described.title, "bold"), align="left"))
            table: Any = client.game(game_module(asked.game))
            match_id = await _begin(asked, described, client, table, screen)
            while True:
                await (Grabbing if asked.game == REAL_TIME else Turns)(client, table, screen, match_id).play()
                screen.status("The same again: y. Anything else leaves.")
                if await screen.key() not in ("y", "Y"):
                    raise Leave
                match_id = (await table.rematch(match_id)).id


async def _begin(asked: argparse.Namespace, described: gateway_pb2.Game, client: Client, table: Any, screen: Screen) -> str:
    """Comes to a match as it was asked for, and returns its id."""
    if asked.join:
        await client.rooms.join(asked.join)
        await client.rooms.ready(asked.join)
        return await _in_room(client, asked.join, screen)
    if asked.room:
        room = await table.create_room(seats=asked.seats or None)
        screen.say(Text.assemble("Tell your friends the code: ", (room.code, "bold")))
        return await _in_room(client, room.code, screen)
    if asked.match:
        ticket = await table.create_ticket(seats=(asked.seats, asked.seats) if asked.seats else None)
        async for each in client.tickets.watch(ticket.id):
            ticket = each
            screen.status(ticket.explanation.summary)
        if ticket.status != gateway_pb2.Ticket.MATCHED:
            screen.say(f"There is no match: {ticket.failure.detail or gateway_pb2.Ticket.Status.Name(ticket.status).lower()}.")
            raise Leave
        return str(ticket.match_id)
    return str((await table.create_match([ME] + [BOT] * ((asked.seats or described.seats.min) - 1))).id)


async def _in_room(client: Client, code: str, screen: Screen) -> str:
    """Waits in a room until its match is there."""
    room = await client.rooms.get(code)

    async def keys() -> None:
        while True:
            key = await screen.key()
            with _told(screen):
                if key in ("q", END):
                    await client.rooms.leave(code)
                    raise Leave
                if room.host == client.player.id and key == "b":
                    await client.rooms.add_bot(code)
                elif room.host == client.player.id and key == "\n":
                    await client.rooms.start(code)

    async def look() -> str:
        nonlocal room
        async for room in client.rooms.watch(code):
            there = ", ".join(member.name + ("" if member.ready else " (not ready)") for member in room.members)
            screen.say(f"In the room: {there}.")
            mine = room.host == client.player.id
            screen.status("b adds a bot, Enter starts, q leaves." if mine else "Waiting for the host to start; q leaves.")
        return room.match_id

    match_id: str = await _first(look(), keys())
    if not match_id:
        screen.say("The room has ended.")
        raise Leave
    return match_id


class Turns:
    """A match of turns."""

    def __init__(self, client: Client, table: Any, screen: Screen, match_id: str) -> None:
        self.client = client
        self.table = table
        self.screen = screen
        self.match_id = match_id
        self.names: list[str] = []
        self.match: Any = None
        self._as_of = 0.0
        self._changed = asyncio.Event()

    async def play(self) -> None:
        """Plays to the end."""
        await self.look()
        await _first(self.watch(), self.keys())
        await self.look()
        self.screen.say(board(self.match, self.names))
        if scores := getattr(self.match.view, "scores", None):
            self.screen.say(named("Points: " + ", ".join(map("{} {}".format, self.names, scores)), self.names))

    async def look(self) -> None:
        """Looks at the match as it is."""
        self.match = await self.table.match(self.match_id)
        self._as_of = time.monotonic()
        self.names = words.seat_names(self.match.seats)

    async def watch(self) -> None:
        """Tells what happens, to the end."""
        async for news in self.table.watch(self.match_id):
            if news.HasField("event"):
                self.tell(news.event.event)
                self._changed.set()

    def tell(self, event: Message) -> None:
        """Tells of an event."""
        if said := words.event(self.match.game, event, self.names):
            self.screen.say(named(said, self.names))

    async def keys(self) -> None:
        """Asks for a move whenever there is one to make."""
        shown: list[Any] = []
        typed = ""
        pressed = asyncio.ensure_future(self.screen.key())
        try:
            while True:
                self._changed.clear()
                await self.look()
                moves = list((await self.table.moves(self.match_id)).moves)
                if moves != shown:
                    shown, typed = moves, ""
                    if moves:
                        self._show(moves)
                while not self._changed.is_set():
                    self.screen.status(self._prompt(moves, typed))
                    waiting = asyncio.ensure_future(self._changed.wait())
                    await asyncio.wait({pressed, waiting}, timeout=1, return_when=asyncio.FIRST_COMPLETED)
                    waiting.cancel()
                    if not pressed.done():
                        continue
                    key, pressed = pressed.result(), asyncio.ensure_future(self.screen.key())
                    typed = await self._typed(key, typed, moves)
        finally:
            pressed.cancel()

    def _show(self, moves: Sequence[Any]) -> None:
        said = [named(f"{n:>3} {words.move(self.match.game, move, self.names)}", self.names) for n, move in enumerate(moves, start=1)]
        self.screen.say(board(self.match, self.names), *(said if len(said) <= _FEW else [Columns(said, padding=(0, 3), column_first=True)]))

    def _prompt(self, moves: Sequence[Any], typed: str) -> str:
        clock = ""
        if self.match.HasField("deadline"):
            left = self.match.deadline.seconds - self.match.server_time.seconds - (time.monotonic() - self._as_of)
            clock = f" ({max(0, round(left))} s)"
        if moves:
            return f"Your move{clock}, 1 to {len(moves)} and Enter; q leaves: {typed}"
        others = ", ".join(self.names[seat] for seat in self.match.to_move)
        return f"{others} to move{clock}; q leaves." if others else ""

    async def _typed(self, key: str, typed: str, moves: Sequence[Any]) -> str:
        """Takes a key, and returns what is typed then."""
        if key in ("q", END):
            raise Leave
        if key in ("\x7f", "\b"):
            return typed[:-1]
        if key.isdecimal() and moves:
            return (typed + key)[:3]
        if key == "\n" and typed:
            if not 1 <= int(typed) <= len(moves):
                self.screen.say(f"There are {len(moves)} moves.")
                return ""
            with _told(self.screen):
                await self.table.play(self.match_id, moves[int(typed) - 1])
            self._changed.set()
            return ""
        return typed


class Grabbing(Turns):
    """A match in real time: one key is one reaction."""

    round = 0
    pressed = 0.0
    line = 0.0

    async def play(self) -> None:
        """Plays to the end."""
        async with self.client.live() as self.live:
            self.game: Any = self.live.game(night_knight_pb2)
            await super().play()

    async def watch(self) -> None:
        """Tells what happens, to the end."""
        me = self.match.viewer_seat
        throws = ", ".join(f"{seat} at {name}" for seat, name in enumerate(self.names) if seat != me)
        self.screen.say(named(f"Throw with {throws}. s holds a pillow up, d sleeps on one, t touches one, space is hands off.", self.names))
        self.screen.say("p peeks before the reveal. q leaves.")
        async for news in self.game.watch(self.match_id):
            if news.HasField("snapshot"):
                self.round = news.snapshot.view.round
                continue
            event = news.event.event
            kind = event.WhichOneof("kind")
            if kind == "round_started":
                self.round = event.round_started.round
                self.line = await self.live.ping()
            if kind == "cards_revealed":
                self.screen.forget_keys()
            self.tell(event)
            if kind == "reacted" and event.reacted.seat == me and self.pressed:
                self.screen.say(Text(self._measured(event.reacted.evidence), "dim"))
            self.screen.status(self._now(str(kind)))

    def _measured(self, evidence: night_knight_pb2.Evidence) -> str:
        here = (time.monotonic() - self.pressed) * 1000
        self.pressed = 0.0
        return f"    told here {here:.0f} ms after the key; the server takes the line for {evidence.round_trip_ms} ms there and back"

    def _now(self, kind: str) -> str:
        line = f"line {self.line * 1000:.0f} ms"
        return f"NOW! ({line})" if kind in ("cards_revealed", "own_card_shown") else f"Round {self.round}: wait for the reveal … ({line})"

    async def keys(self) -> None:
        """Reacts."""
        acting: set[asyncio.Task[None]] = set()
        while True:
            key = await self.screen.key()
            if key in ("q", END):
                raise Leave
            if (move := self._move(key)) is not None:
                self.pressed = time.monotonic()
                task = asyncio.create_task(self._act(move))
                acting.add(task)
                task.add_done_callback(acting.discard)

    def _move(self, key: str) -> night_knight_pb2.Move | None:
        if key == "p":
            return night_knight_pb2.Move(peek=night_knight_pb2.Peek(round=self.round))
        if key in _REACTIONS:
            return night_knight_pb2.Move(react=night_knight_pb2.React(round=self.round, action=_REACTIONS[key]))
        if key.isdecimal() and int(key) < len(self.names) and int(key) != self.match.viewer_seat:
            return night_knight_pb2.Move(
                react=night_knight_pb2.React(round=self.round, action=night_knight_pb2.React.THROW, target=int(key))
            )
        return None

    async def _act(self, move: night_knight_pb2.Move) -> None:
        with _told(self.screen):
            await self.game.play(self.match_id, move)


@contextlib.contextmanager
def _told(screen: Screen) -> Iterator[None]:
    """A refusal is told, and no more."""
    try:
        yield
    except ProblemError as problem:
        screen.say(Text(f"{problem.detail[:1].upper()}{problem.detail[1:]}.", "red"))


async def _first(until: Awaitable[Any], meanwhile: Awaitable[Any]) -> Any:
    """Does one thing to its end and another meanwhile; either's fault ends both."""
    tasks = [asyncio.ensure_future(until), asyncio.ensure_future(meanwhile)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in reversed(tasks):
            if task.done():
                task.result()
        return await tasks[0]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
