"""`make demo`: bots play a match of each game in the terminal, and what is said of it afterwards is checked.

Everything runs on this machine, on ports chosen free and with data in a temporary directory, and is gone at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import os
import secrets
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import json_format
from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from deploy.local import ROOT, Local, LocalError
from gateway.registry import GAMES, Game
from gateway.tokens import Signer
from gloaming.client import Client, words
from gloaming.client.terminal.paint import named
from gloaming.client.wire import game_module
from gloaming.table.v1 import table_pb2
from services.kit import verify

BOT_DELAY_MS = 60
NAMES = ("Ada", "Bela", "Cleo", "Dov")
SEATS = 3
# Where windows of time make up a match, they are short.
OPTIONS = {"night_knight": {"countdownMs": 100, "ownCardDelayMs": 100, "actionMs": 2000}}
_ENV = {"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": str(BOT_DELAY_MS), "GLOAMING_LOG_LEVEL": "WARNING"}


async def show(local: Local, console: Console) -> bool:
    """Shows a match of each game; returns whether every record is true."""
    true = True
    async with Client(local.url) as client:
        await client.sign_in("Spectator")
        for game in GAMES.values():
            console.print(Rule(Text(game.title, "bold"), align="left"))
            match = _host(local, game)
            table: Any = client.game(game_module(game.id))
            names = words.seat_names(match.seats)
            async for news in table.watch(match.id):
                if said := words.event(game.id, news.event.event, names):
                    console.print(named(said, names))
            record = await table.record(match.id)
            true &= _verified(local.data / f"{match.id}.json", game, record, console)
    return true


def _host(local: Local, game: Game) -> Any:
    """Makes a match of bots alone, which only a host may."""
    token, _ = Signer(local.signing_key).access("demo", "Demo", 1, scope="host")
    seats = min(max(SEATS, game.min_seats), game.max_seats)
    request: Any = game.messages["CreateMatchRequest"](
        match_id=f"{game.id}-{secrets.token_hex(12)}",
        seats=[table_pb2.SeatRequest(bot=table_pb2.Bot.STANDARD, name=NAMES[seat]) for seat in range(seats)],
        options=json_format.ParseDict(OPTIONS.get(game.id, {}), game.messages["Options"]()),
    )
    method = game.methods["CreateMatch"]
    with grpc.insecure_channel(local.services[game.id][0]) as channel:
        call = channel.unary_unary(method.path, method.request.SerializeToString, method.response.FromString)
        return call(request, metadata=(("authorization", f"Bearer {token}"),), timeout=10)


def _verified(file: Path, game: Game, record: Any, console: Console) -> bool:
    """Prints what the record says and what of it was checked; returns whether it is true."""
    file.write_text(json_format.MessageToJson(record))
    # What `python -m services.<game> verify record.json` does, without a process for each.
    rules = importlib.import_module(f"services.{game.id}.game").GAME
    with contextlib.redirect_stdout(io.StringIO()) as checked, contextlib.redirect_stderr(checked):
        status = verify.main(rules, file)
    names = words.seat_names(record.seats)
    said = [
        named(words.finished(record.outcome, names), names),
        *([named("Points: " + ", ".join(map("{} {}".format, names, record.scores)), names)] if record.scores else []),
        Text(f"{len(record.moves)} moves, seed {record.seed}"),
        Text(checked.getvalue().rstrip(), "green" if status == 0 else "bold red"),
    ]
    console.print(Panel(Text("\n").join(said), title=f"The record of {record.match_id}", title_align="left"))
    return status == 0


def main() -> int:
    """Runs the demo, and returns the exit status."""
    console = Console(highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="gloaming-demo-") as data:
            console.print("Starting Redis, a service for each game and a gateway …")
            with Local(Path(data), env=_ENV) as local:
                true = asyncio.run(show(local, console))
    except LocalError as fault:
        print(fault, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    console.print(
        f"{len(GAMES)} matches in {time.monotonic() - began:.0f} s. Everything is stopped; play yourself: make play GAME=night_clan"
    )
    return 0 if true else 1


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
