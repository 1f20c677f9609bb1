"""Real parts for tests: keys, replicas of a game's service, and players who call them over gRPC."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import itertools
import json
import random
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from gateway.registry import GAMES
from gateway.tokens import Signer, write_keys
from gloaming.table.v1 import table_pb2
from services.kit.errors import Unreadable
from services.kit.game import Game, Value
from services.kit.server import Replica
from services.kit.settings import ServiceSettings

EVERY_GAME: list[Game] = [importlib.import_module(f"services.{game_id}.game").GAME for game_id in GAMES]
IN_TURNS = [game for game in EVERY_GAME if not game.real_time]
IN_REAL_TIME = [game for game in EVERY_GAME if game.real_time]

NAMES = ("ann", "bob", "cat", "dan", "eli", "fay")
# So often a match is begun anew for something that did not come up in it.
TRIES = 50


class Keys:
    """A signing key and its public half, as the gateway has them."""

    def __init__(self, directory: Path) -> None:
        write_keys(directory)
        self.jwks = directory / "jwks.json"
        self.pem = directory / "signing-key.pem"
        self._signer = Signer(self.pem)

    def token(self, player: str, *, scope: str = "play", generation: int = 1, seconds: int = 900) -> str:
        """An access token."""
        return self._signer.access(player, player.title(), generation, scope=scope, seconds=seconds)[0]


class Refused(AssertionError):
    """A call that was refused: its code, reason, detail, the fields that were wrong, and after how many seconds to try again."""

    def __init__(self, fault: grpc.aio.AioRpcError) -> None:
        super().__init__(f"{fault.code()}: {fault.details()}")
        self.code = fault.code()
        self.detail = fault.details()
        self.reason = ""
        self.fields: list[str] = []
        self.retry_after = 0.0
        self.raw = dict(fault.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
        call: Any = fault
        status = rpc_status.from_call(call)
        for detail in status.details if status else ():
            info, request, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
            if detail.Unpack(info):
                self.reason = info.reason
            elif detail.Unpack(request):
                self.fields = [violation.field for violation in request.field_violations]
            elif detail.Unpack(retry):
                self.retry_after = retry.retry_delay.ToTimedelta().total_seconds()


class Player:
    """Somebody with a token, calling a game's service by its descriptor."""

    def __init__(self, game: Game, address: str | Sequence[str], token: str | None, player: str) -> None:
        self.game = game
        self.player = player
        addresses = [address] if isinstance(address, str) else address
        self._channels = [grpc.aio.insecure_channel(each) for each in addresses]
        self._turns = itertools.cycle(self._channels)
        self.metadata = [("authorization", f"Bearer {token}")] if token else []

    async def call(self, verb: str, request: Message | bytes) -> Any:
        """Calls a verb.

        Raises:
            Refused: it was refused.
        """
        method = self.game.service.methods_by_name[verb]
        call: Any = next(self._turns).unary_unary(
            f"/{self.game.service.full_name}/{verb}",
            request_serializer=lambda message: message if isinstance(message, bytes) else message.SerializeToString(),
            response_deserializer=self.game.message(method.output_type.name).FromString,
        )
        try:
            return await call(request, metadata=self.metadata, timeout=10, wait_for_ready=True)
        except grpc.aio.AioRpcError as fault:
            raise Refused(fault) from fault

    async def get(self, match_id: str) -> Any:
        """GetMatch."""
        return await self.call("GetMatch", self.game.message("GetMatchRequest")(match_id=match_id))

    async def moves(self, match_id: str) -> list[Any]:
        """ListMoves."""
        return list((await self.call("ListMoves", self.game.message("ListMovesRequest")(match_id=match_id))).moves)

    async def submit(self, match_id: str, move: Message, *, request_id: str = "", expected_version: int | None = None) -> Any:
        """SubmitMove."""
        request = self.game.message("SubmitMoveRequest")
        return await self.call(
            "SubmitMove", request(match_id=match_id, move=move, request_id=request_id, expected_version=expected_version)
        )

    async def resign(self, match_id: str, *, request_id: str = "") -> Any:
        """Resign."""
        return await self.call("Resign", self.game.message("ResignRequest")(match_id=match_id, request_id=request_id))

    async def events(self, match_id: str, after: str = "", size: int = 0) -> Any:
        """ListEvents."""
        request = self.game.message("ListEventsRequest")
        return await self.call("ListEvents", request(match_id=match_id, after_cursor=after, page_size=size))

    async def record(self, match_id: str) -> Any:
        """GetRecord."""
        return await self.call("GetRecord", self.game.message("GetRecordRequest")(match_id=match_id))

    async def watch(self, match_id: str, after: str = "") -> AsyncGenerator[Any, None]:
        """WatchMatch."""
        call = next(self._turns).unary_stream(
            f"/{self.game.service.full_name}/WatchMatch",
            request_serializer=self.game.message("WatchMatchRequest").SerializeToString,
            response_deserializer=self.game.message("WatchMatchResponse").FromString,
        )(self.game.message("WatchMatchRequest")(match_id=match_id, after_cursor=after), metadata=self.metadata, wait_for_ready=True)
        try:
            async for message in call:
                yield message
        except grpc.aio.AioRpcError as fault:
            raise Refused(fault) from fault
        finally:
            call.cancel()

    async def close(self) -> None:
        """Closes the connections."""
        for channel in self._channels:
            await channel.close()


class Table:
    """Replicas of one game's service in this process, and whoever comes to them."""

    def __init__(self, game: Game, keys: Keys, replicas: Sequence[Replica]) -> None:
        self.game = game
        self.keys = keys
        self.replicas = replicas
        self.names = NAMES[: game.info.min_seats]
        self.addresses = [f"127.0.0.1:{replica.port}" for replica in replicas]
        self._players: list[Player] = []

    def player(self, player: str, *, scope: str = "play", token: str | None = "", replica: int | None = None) -> Player:
        """Somebody who calls the replicas in turn, or always the same one."""
        token = self.keys.token(player, scope=scope) if token == "" else token
        addresses = self.addresses if replica is None else [self.addresses[replica]]
        self._players.append(Player(self.game, addresses, token, player))
        return self._players[-1]

    def everyone(self) -> list[Player]:
        """The players of a match made without saying of whom."""
        return [self.player(name) for name in self.names]

    async def create(
        self, *seats: str, match_id: str | None = None, order: str = "AS_LISTED", options: Message | None = None, **settings: Any
    ) -> str:
        """Makes a match and returns its id.

        Its seats are the fewest players that the game takes unless they are named (`bot` is a bot), in that order, no clock runs and it
        waits for nobody, unless told otherwise. In real time its windows are as short as they may be.
        """
        settings = {"move_seconds": 0, "start_seconds": 0, **settings}
        request = self.game.message("CreateMatchRequest")(
            match_id=match_id or new_match_id(self.game),
            options=options or quick(self.game),
            settings=table_pb2.Settings(**settings),
            seats=[
                table_pb2.SeatRequest(bot="STANDARD") if seat == "bot" else table_pb2.SeatRequest(player=seat)
                for seat in seats or self.names
            ],
            order=order,
        )
        return str((await self.player("host", scope="host").call("CreateMatch", request)).id)

    async def close(self) -> None:
        """Closes every player's connections."""
        for player in self._players:
            await player.close()


def new_match_id(game: Game) -> str:
    """A match id that nobody has used."""
    return f"{game.id}-{secrets.token_hex(8)}"


@asynccontextmanager
async def table(game: Game, keys: Keys, redis_url: str, *, replicas: int = 1, **settings: Any) -> AsyncIterator[Table]:
    """Starts replicas of a game's service in this process, on real sockets. Bots move at once unless told otherwise."""
    chosen = ServiceSettings.model_validate(
        {
            "REDIS_URL": redis_url,
            "jwks_file": keys.jwks,
            "listen": "127.0.0.1:0",
            "metrics_listen": "",
            "bot_delay_ms": 0,
            "drain_seconds": 2,
            **settings,
        }
    )
    started = [Replica(game, chosen) for _ in range(replicas)]
    for replica in started:
        await replica.__aenter__()
    there = Table(game, keys, started)
    try:
        yield there
    finally:
        await there.close()
        for replica in started:
            await replica.__aexit__()


@cache
def lasting(game: Game, ms: int) -> Message:
    """A game's options with every time as near to so many ms as its codec takes; the defaults otherwise."""
    options: Message = game.message("Options")()
    for field in options.DESCRIPTOR.fields:
        if field.name.endswith("_ms"):
            nearest = sorted(range(0, 60_000, 50), key=lambda time: abs(time - ms))
            setattr(options, field.name, next(time for time in nearest if _takes(game, field.name, time)))
    return options


def quick(game: Game) -> Message:
    """A game's options with every time as short as its codec takes."""
    return lasting(game, 0)


def calm(game: Game) -> Message:
    """A game's options with every time as long as its codec takes: for some seconds nothing happens by itself."""
    return lasting(game, 60_000)


def paced(game: Game, options: Value, times: Message) -> Message:
    """Options with the times of others."""
    message = game.codec.options_to_proto(options)
    for field, value in times.ListFields():
        setattr(message, field.name, value)
    return message


def _takes(game: Game, field: str, ms: int) -> bool:
    try:
        game.codec.options_from_proto(game.message("Options")(**{field: ms}))
    except Unreadable:
        return False
    return True


async def play_out(match_id: str, *players: Player, pick: Any = None, request_ids: bool = False) -> None:
    """Plays a match to its end: each player whose turn it is plays any legal move, the same in every run, or the one that `pick` picks."""
    pick = pick or random.Random(1).choice
    while (await players[0].get(match_id)).status != table_pb2.FINISHED:
        moved = False
        for player in players:
            if moves := await player.moves(match_id):
                await attempt(player, match_id, pick(moves), request_id=secrets.token_hex(18) if request_ids else "")
                moved = True
        if not moved:
            await asyncio.sleep(0.01)


async def attempt(player: Player, match_id: str, move: Message, *, request_id: str = "") -> Any:
    """Submits a legal move; in real time its window may have ended meanwhile, which is None."""
    try:
        return await player.submit(match_id, move, request_id=request_id)
    except Refused as refused:
        if not player.game.real_time or refused.code not in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ABORTED):
            raise
        return None


async def eventually(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Returns what a condition, plain or awaitable, gives as soon as that is true; for what nothing announces."""
    async with asyncio.timeout(seconds):
        while True:
            result = condition()
            if inspect.isawaitable(result):
                result = await result
            if result:
                return result
            await asyncio.sleep(0.005)


async def mover(match_id: str, *players: Player) -> tuple[Player, list[Any]]:
    """The first of the players who may move now, and the legal moves; waits while only others may.

    Raises:
        AssertionError: the match is over.
    """
    while True:
        for player in players:
            if moves := await player.moves(match_id):
                return player, moves
        assert (await players[0].get(match_id)).status == table_pb2.PLAYING, "the match is over: nobody moves any more"
        await asyncio.sleep(0.002)


async def a_choice(there: Table) -> tuple[str, Player, list[Any]]:
    """A match in which some player has more than one legal move, that player, and the moves; until then first moves were played."""
    for _ in range(TRIES):
        match_id, players = await there.create(), there.everyone()
        while (await players[0].get(match_id)).status == table_pb2.PLAYING:
            player, moves = await mover(match_id, *players)
            if len(moves) > 1:
                return match_id, player, moves
            await attempt(player, match_id, moves[0])
    raise AssertionError(f"in {TRIES} matches nobody ever had a choice")


async def all_events(player: Player, match_id: str) -> list[Any]:
    """Every event of a match so far, page by page."""
    cursor, events = "", []
    while True:
        page = await player.events(match_id, cursor, 500)
        events += page.events
        cursor = page.next_cursor
        if not page.more:
            return events


def lines(log: Path) -> Iterator[dict[str, Any]]:
    """The lines of a structured log."""
    for line in log.read_text().splitlines():
        if line.startswith("{"):
            yield json.loads(line)
