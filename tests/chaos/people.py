"""People who play match after match through the gateways, repeat whatever gets no answer, and keep the ledger."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import random
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from google.protobuf.json_format import MessageToDict, ParseDict
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage

from gloaming.client import Client, ProblemError
from gloaming.gateway.v1 import gateway_pb2
from gloaming.live.v1 import live_pb2
from gloaming.night_knight.v1 import night_knight_pb2
from gloaming.table.v1 import table_pb2
from services.kit.cursor import START
from services.kit.game import Game
from tests.chaos.ledger import GAME_OF, Ledger, MatchLedger, Seen
from tests.harness import EVERY_GAME
from tests.live import JSON, PROTO, Closed, Socket, live

# How long somebody waits for an answer before asking elsewhere: longer than a gateway waits for a game's service.
PATIENCE_SECONDS = 7.0
_ENDLESS = 1_000
_HOUR_SECONDS = 3_600.0
# A game's options, where its own would make matches long.
_OPTIONS: dict[str, Any] = {"night_knight": night_knight_pb2.Options(countdown_ms=200, own_card_delay_ms=100, action_ms=2_000)}
# A player who dozes leaves one turn in so many to the clock.
_DOZES = 3
_CLOCK_SECONDS, _SHORT_CLOCK_SECONDS = 30, 2
# How long nothing need be told to one who waits for the others.
_LOOK_SECONDS = 10.0
# Within so long after its end a watcher sees it.
_END_SECONDS = 60.0

# What a broken way to the server looks like.
BROKEN = (httpx.TransportError, Closed, ConnectionClosed, InvalidHandshake, InvalidMessage, OSError, TimeoutError)


class Turns(httpx.AsyncBaseTransport):
    """Brings every request to the next gateway, as a balancer that knows nothing would. It hides no failure, and counts them."""

    def __init__(self, urls: Sequence[str], ledger: Ledger) -> None:
        self._urls = itertools.cycle([httpx.URL(url) for url in urls])
        for _ in range(random.randrange(len(urls))):
            next(self._urls)
        self._inner = httpx.AsyncHTTPTransport(verify=False, limits=httpx.Limits(max_keepalive_connections=20, keepalive_expiry=30))
        self._ledger = ledger
        self.failed = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        to, stream = next(self._urls), request.headers.get("Accept") == "text/event-stream"
        request.url = request.url.copy_with(scheme=to.scheme, host=to.host, port=to.port)
        if not stream:
            request.extensions["timeout"] = httpx.Timeout(PATIENCE_SECONDS).as_dict()
        try:
            response = await self._inner.handle_async_request(request)
        except httpx.TransportError as fault:
            self._fail(type(fault).__name__, stream)
            raise
        if response.status_code >= 500:
            self._fail(str(response.status_code), stream)
        self._ledger.resumed += stream and "Last-Event-ID" in request.headers and response.status_code == 200
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _fail(self, how: str, stream: bool) -> None:
        self.failed += not stream
        self._ledger.failures[how] += 1
        if how.isdecimal() and how != "503":
            self._ledger.found(None, f"a request was answered {how}")


class Person:
    """Somebody who is signed in.

    Attributes:
        socket: whether they watch and move over the live socket, in which subprotocol; else over REST and server-sent events.
    """

    def __init__(self, urls: Sequence[str], ledger: Ledger, name: str, number: int) -> None:
        self.name, self.ledger, self.urls = name, ledger, urls
        self.socket = (None, PROTO, None, JSON)[number % 4]
        self.first = number // 2 % len(urls)
        self._turns = Turns(urls, ledger)
        self._http = httpx.AsyncClient(transport=self._turns, timeout=PATIENCE_SECONDS)
        self.client = Client("http://gateways", attempts=_ENDLESS, http=self._http)

    @property
    def id(self) -> str:
        return self.client.player.id

    @property
    def token(self) -> str:
        assert self.client.session
        return self.client.session.access_token

    async def ask(self, asked: Awaitable[Any]) -> Any:
        """What a request of the client is answered, however often it sends it; how long that took is kept."""
        began, failed = time.monotonic(), self._turns.failed
        try:
            return await asked
        finally:
            self.ledger.answer(began, self._turns.failed - failed)

    async def post(self, path: str, answer: Any, body: Any = None) -> Any:
        return await self.ask(self.client.send("POST", path, answer, body=body or {}))

    async def close(self) -> None:
        await self._http.aclose()


class Seat:
    """A player at one match, who watches it by server-sent events and plays over REST."""

    def __init__(self, person: Person, match: MatchLedger) -> None:
        self.person, self.match = person, match
        self.seen = Seen(match, person.id)
        self.table: Any = person.client.game(module_of(match.game))
        self._move = match.game.message("Move")

    async def watch(self) -> None:
        """Watches to the end, wherever that takes it."""
        async for news in self.table.watch(self.match.id):
            if news.HasField("event"):
                await self.seen.event(news.event)
            else:
                await self.seen.snapshot(news.snapshot)

    async def a_move(self, rng: random.Random) -> Any:
        """Any of the legal moves now, or None when there is none. Of many, only one is read: the machine is for the servers."""
        response = await self.person.ask(self.person.client.exchange("GET", f"/v1/matches/{self.match.id}/moves"))
        moves = [move for move in response.json()["moves"] if not _spoils(move)]
        return ParseDict(rng.choice(moves), self._move()) if moves else None

    async def play(self, move: Any) -> None:
        """Plays a move, sent again under the same request id until there is an answer; in its time it may be too late."""
        try:
            version = await self._send(move, secrets.token_urlsafe(12))
        except ProblemError as problem:
            if problem.status not in (409, 422) or problem.reason == "REQUEST_ID_REUSED":
                raise
            self.match.ledger.refused[problem.reason] += 1
        else:
            self.match.acknowledge(self.person.id, version, move)

    async def resign(self) -> None:
        """Resigns, unless it is over."""
        try:
            answer = await self.person.ask(self.table.resign(self.match.id))
        except ProblemError as problem:
            if problem.reason != "MATCH_FINISHED":
                raise
        else:
            self.match.acknowledge(self.person.id, answer.version, None)

    async def whole(self) -> list[Any]:
        """Every event as it is told afterwards."""
        return [event async for event in self.table.events(self.match.id, page_size=500)]

    async def _send(self, move: Any, key: str) -> int:
        return int((await self.person.ask(self.table.play(self.match.id, move, key=key))).version)


class SocketSeat(Seat):
    """A player who watches and plays over a live socket, on another one when that is gone."""

    def __init__(self, person: Person, match: MatchLedger) -> None:
        super().__init__(person, match)
        self._urls = [f"{url.replace('http', 'ws', 1)}/v1/live" for url in person.urls]
        self._gateway = person.first
        self._socket: Socket | None = None
        self._connected = asyncio.Condition()
        self._event, self._match = match.game.message("MatchEvent"), match.game.message("Match")
        self._of_game = match.game.message("Event")

    async def watch(self) -> None:
        pause = 0.05
        while not self.seen.over:
            open_ = draining = False
            try:
                async with asyncio.timeout(PATIENCE_SECONDS) as patience, self._open() as socket:
                    patience.reschedule(None)
                    open_ = True
                    answer = await socket.watch(self.match.id, self.seen.cursors[-1] if self.seen.cursors else START)
                    if answer.HasField("problem"):
                        if answer.problem.status != 503:
                            raise ProblemError(answer.problem.reason, answer.problem.status, answer.problem.detail)
                        raise Closed(1013, answer.problem.reason)
                    await self._set(socket)
                    pause = 0.05
                    while not self.seen.over:
                        message = await socket.take(_is_told, _HOUR_SECONDS)
                        draining = draining or message.HasField("draining")
                        await self._take(message)
            except BROKEN as end:
                await self._set(None)
                code = _code(end)
                if open_:
                    self.match.ledger.closed[f"{code}, as told" if draining else code] += 1
                else:
                    self.match.ledger.failures[f"{code} of a socket"] += 1
                self._gateway = (self._gateway + 1) % len(self._urls)
                await asyncio.sleep(random.uniform(0.5, 1) * pause)
                pause = min(pause * 2, 2)
        await self._set(None)

    async def _send(self, move: Any, key: str) -> int:
        began, failed = time.monotonic(), 0
        try:
            while True:
                async with self._connected:
                    await self._connected.wait_for(lambda: self._socket is not None or self.seen.over)
                    socket = self._socket
                if socket is None:  # the match is over, so the socket is closed; what became of the move is still to be told
                    return await super()._send(move, key)
                try:
                    answer = await socket.move(self.match.id, move, key)
                except BROKEN as fault:
                    failed += 1
                    if isinstance(fault, TimeoutError):
                        await socket.connection.close()
                    await asyncio.sleep(0.05)
                    continue
                if answer.HasField("result"):
                    return int(answer.result.version)
                problem = answer.problem
                if problem.status not in (429, 503):
                    raise ProblemError(problem.reason, problem.status, problem.detail)
                failed += 1
                self.match.ledger.failures[f"{problem.status} on the socket"] += 1
                await asyncio.sleep(min(problem.retry_after or 0.1, 1) * random.uniform(0.5, 1))
        finally:
            self.match.ledger.answer(began, failed)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Socket]:
        async with AsyncExitStack() as stack:
            opening = live(self._urls[self._gateway], self.person.token, self.person.socket or PROTO)
            try:
                socket = await stack.enter_async_context(opening)
            except AttributeError as fault:  # what uvloop says of a connection that has ended by the time that it is asked about it
                raise ConnectionResetError(str(fault)) from fault
            yield socket

    async def _take(self, message: live_pb2.ServerMessage) -> None:
        if message.HasField("snapshot"):
            await self.seen.snapshot(self._match.FromString(message.snapshot.match))
        elif message.HasField("event"):
            told = message.event
            event = self._of_game.FromString(told.event)
            await self.seen.event(
                self._event(match_id=told.match_id, cursor=told.cursor, version=told.version, time=told.time, event=event)
            )
        elif message.HasField("problem"):
            raise Closed(1013, message.problem.reason)  # and the close follows

    async def _set(self, socket: Socket | None) -> None:
        async with self._connected:
            self._socket = socket
            self._connected.notify_all()


def _code(end: Exception) -> str:
    """How a socket ended: the code with which it was closed, whether that was read or met in writing; or what else went wrong."""
    if isinstance(end, Closed):
        return str(end.code)
    if isinstance(end, ConnectionClosed) and end.rcvd is not None:
        return str(end.rcvd.code)
    return type(end).__name__


def _is_told(message: live_pb2.ServerMessage) -> bool:
    kind = message.WhichOneof("kind")
    return kind in ("snapshot", "event", "draining") or (kind == "problem" and not message.problem.request_id)


@dataclass
class Pace:
    """How fast all play.

    Attributes:
        seconds: what a player thinks on average before a move.
        last: whether no new match begins, and those that are on are to end soon.
    """

    seconds: float
    last: bool = False

    def think(self, rng: random.Random) -> float:
        return 0.0 if self.last else rng.uniform(0.5, 1.5) * self.seconds


class Place:
    """A table at which one match follows the other.

    Args:
        urls: the gateways.
        ledger: what is kept of the matches.
        pace: how fast they go.
        number: the place's number: it says which game, how many people, and how they play.
    """

    def __init__(self, urls: Sequence[str], ledger: Ledger, pace: Pace, number: int) -> None:
        self._ledger, self._pace, self._rng = ledger, pace, random.Random(number)
        self.game: Game = EVERY_GAME[number % len(EVERY_GAME)]
        variant = number // len(EVERY_GAME)
        self._people = [Person(urls, ledger, f"P{number}-{n}", variant + n) for n in range(1 + variant % 2)]
        self._dozes = variant % 4 == 2
        self._options = self.game.message("Options")()
        self._options.MergeFrom(_OPTIONS.get(self.game.id, self._options))
        if self.game.real_time and variant % 4 > 1:
            self._options.MergeFrom(type(self._options)(ordering="COMPENSATED"))

    async def run(self) -> None:
        """Plays match after match until it is called to an end."""
        try:
            for person in self._people:
                await person.ask(person.client.sign_in(person.name))
            while not self._pace.last:
                await self._match()
        finally:
            for person in self._people:
                await person.close()

    async def _match(self) -> None:
        settings = table_pb2.Settings(move_seconds=_SHORT_CLOCK_SECONDS if self._dozes else _CLOCK_SECONDS, start_seconds=5)
        match: MatchLedger | None = None
        try:
            match_id = await (self._alone(settings) if len(self._people) == 1 else self._in_a_room(settings))
            match = self._ledger.match(GAME_OF[self.game.id], match_id)
            await self._play(match)
        except ProblemError as problem:
            if self._ledger.lossy and problem.status in (404, 409):
                self._ledger.lost_matches += 1
            else:
                self._ledger.found(match, f"a request that was in order was refused: {problem}")
                await asyncio.sleep(1)
        except Exception as fault:  # whatever it is, it is a break
            self._ledger.found(match, f"{type(fault).__name__}: {fault}")
            await asyncio.sleep(1)
        finally:
            if match:
                match.over = True
                self._ledger.live.pop(match.id, None)

    async def _alone(self, settings: table_pb2.Settings) -> str:
        person = self._people[0]
        seats = [table_pb2.SeatRequest(player="me")] + [table_pb2.SeatRequest(bot="STANDARD")] * (self.game.info.min_seats - 1)
        table: Any = person.client.game(module_of(self.game))
        return str((await person.ask(table.create_match(seats, options=self._options, settings=settings))).id)

    async def _in_a_room(self, settings: table_pb2.Settings) -> str:
        host, *others = self._people
        seats = max(self.game.info.min_seats, len(self._people))
        asked = {"game": self.game.id, "options": MessageToDict(self._options), "settings": MessageToDict(settings), "seats": seats}
        room = await host.post("/v1/rooms", gateway_pb2.Room, asked)
        path = f"/v1/rooms/{room.code}"
        for other in others:
            await other.post(f"{path}:join", gateway_pb2.Room)
            await other.post(f"{path}:ready", gateway_pb2.Room)
        for _ in range(seats - len(self._people)):
            await host.post(f"{path}:addBot", gateway_pb2.Room)
        room = await host.post(f"{path}:start", gateway_pb2.Room)
        while not room.match_id:
            await asyncio.sleep(0.2)
            room = await host.ask(host.client.send("GET", path, gateway_pb2.Room))
        return str(room.match_id)

    async def _play(self, match: MatchLedger) -> None:
        seats = [(SocketSeat if person.socket else Seat)(person, match) for person in self._people]
        watching = [asyncio.create_task(seat.watch()) for seat in seats]
        playing = [asyncio.create_task(self._drive(seat)) for seat in seats]
        try:
            await _all(*watching, *playing, until=lambda: all(task.done() for task in playing))
            try:
                async with asyncio.timeout(_END_SECONDS):
                    await asyncio.gather(*watching)
            except TimeoutError:
                self._ledger.found(match, f"a watcher never saw the end: {[seat.seen.cursors[-1:] for seat in seats]}")
            record = await seats[0].person.ask(seats[0].table.record(match.id))
            self._ledger.hold(match, record, [(seat.seen, await seat.whole()) for seat in seats])
        finally:
            for task in (*watching, *playing):
                task.cancel()
            await asyncio.gather(*watching, *playing, return_exceptions=True)

    async def _drive(self, seat: Seat) -> None:
        while not seat.seen.over:
            if self._pace.last:
                await seat.resign()
                await seat.seen.beyond(1_000_000, _END_SECONDS)
                return
            known = len(seat.seen.cursors)
            move = await seat.a_move(self._rng)
            if move is None:
                await seat.seen.beyond(known, _LOOK_SECONDS)
                await asyncio.sleep(self._pace.think(self._rng) / 8)
            elif self._dozes and self._rng.randrange(_DOZES) == 0:
                await seat.seen.beyond(known, 1.5 * _SHORT_CLOCK_SECONDS)
            else:
                await seat.play(move)
                await asyncio.sleep(self._pace.think(self._rng) / (4 if self.game.real_time else 1))


def _spoils(move: Mapping[str, Any]) -> bool:
    """Whether a move makes the rest of a round dull: a look at one's own card in Night Knight."""
    return "peek" in move


def module_of(game: Game) -> Any:
    """A game's generated module."""
    return importlib.import_module(f"gloaming.{game.id}.v1.{game.id}_pb2")


async def _all(*tasks: asyncio.Task[Any], until: Callable[[], bool]) -> None:
    """Waits until something is so, or a task fails, which raises."""
    pending = set(tasks)
    while pending and not until():
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
