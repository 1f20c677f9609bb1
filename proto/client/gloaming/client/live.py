"""The live socket, `WS /v1/live`: every match of a player over one connection, in real time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, Self

from google.protobuf import struct_pb2
from google.protobuf.message import DecodeError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from gloaming.client import connection as http
from gloaming.client.connection import AnswerError, Connection, ProblemError, UnreachableError
from gloaming.client.table import Module, MoveT, WatchedT
from gloaming.gateway.v1 import gateway_pb2
from gloaming.live.v1 import live_pb2
from gloaming.table.v1 import table_pb2

_SUBPROTOCOL = Subprotocol("gloaming.v1.proto")
_OPEN_SECONDS = 10.0
# The server pings every five seconds.
_SILENCE_SECONDS = 20.0
# So long before the token runs out the socket goes on with another; half its time where it has less.
_RENEW_SECONDS = 30.0
_LASTED_SECONDS = 5.0
# Closed since the token is not good any more; since the game cannot be reached now, or we did not read.
_AUTH, _LATER = 1008, 1013
_UNAUTHORIZED = 401
_LATER_SECONDS = 0.5
# So long a watch waits for what comes next before it looks whether there is anything to come.
_LOOK_SECONDS = 1.0


class Live:
    """A live socket that stays: it connects again by itself, watches go on at their cursors, requests without an answer are sent again.

        async with client.live() as live:
            table = live.game(night_knight_pb2)
            async for news in table.watch(match_id):
                await table.play(match_id, move)

    It answers the server's pings, by which the line is measured, and goes on with another token before the old one runs out. When it cannot
    go on, whatever waits on it raises: `ProblemError` if the server refuses, `UnreachableError` if it cannot be reached for all the
    attempts of its client.

    Attributes:
        connections: how often it has connected so far.
    """

    def __init__(self, connection: Connection) -> None:
        self.connections = 0
        self._connection = connection
        self._socket: ClientConnection | None = None
        self._ids = map((secrets.token_urlsafe(12) + "-{}").format, itertools.count())
        self._asked: dict[str, tuple[live_pb2.ClientFrame, asyncio.Future[live_pb2.Result]]] = {}
        self._watches: dict[str, _Watch] = {}
        self._pings: dict[str, asyncio.Future[float | None]] = {}
        self._listeners: dict[_Queue, str] = {}
        self._keeping: asyncio.Task[None] | None = None
        self._waiting: set[asyncio.Task[None]] = set()
        self._opened = asyncio.Event()
        self._served = False
        self._unauthorized = ProblemError("TOKEN_INVALID", _UNAUTHORIZED, "the server does not take the access token")
        self._failure: Exception | None = None

    async def __aenter__(self) -> Self:
        """Connects.

        Raises:
            ProblemError, UnreachableError: it cannot.
        """
        self._keeping = asyncio.create_task(self._keep())
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes it; whatever waits on it raises `ConnectionError`."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        for task in self._waiting:
            task.cancel()
        self._fail(ConnectionError("the live socket was closed"))

    def game(self, module: Module[Any, MoveT, Any, Any, Any, Any, Any, Any, WatchedT]) -> LiveTable[MoveT, WatchedT]:
        """Returns the matches of a game, by its generated module: `live.game(night_knight_pb2)`."""
        return LiveTable(self, module)

    async def ping(self) -> float:
        """Returns how long it takes to the server and back, in seconds; while there is no connection, once there is."""
        while True:
            await self._open()
            nonce = secrets.token_hex(8)
            answered: asyncio.Future[float | None] = asyncio.get_running_loop().create_future()
            self._pings[nonce] = answered
            try:
                began = time.monotonic()
                await self._send(live_pb2.ClientFrame(ping=live_pb2.Ping(nonce=nonce)))
                if (at := await answered) is not None:
                    return at - began
            finally:
                self._pings.pop(nonce, None)

    def rooms(self) -> AsyncGenerator[gateway_pb2.Room, None]:
        """Yields each room of the player's, as it has become, whenever one changes; begins to listen at once."""
        return self._listen("room")

    def tickets(self) -> AsyncGenerator[gateway_pb2.Ticket, None]:
        """Yields each ticket of the player's, as it has become, whenever one changes; begins to listen at once."""
        return self._listen("ticket")

    # What goes out.

    async def ask(self, kind: live_pb2.Move, key: str | None = None) -> live_pb2.Result:
        """Sends a request until it is answered, and returns its result; waits and sends it again where the server is busy."""
        frame = live_pb2.ClientFrame(request_id=key or next(self._ids), move=kind)
        if frame.request_id in self._asked:
            raise ValueError(f"{frame.request_id!r} waits for its answer already")
        for attempt in itertools.count(1):
            if self._failure is not None:
                raise self._failure
            answer: asyncio.Future[live_pb2.Result] = asyncio.get_running_loop().create_future()
            self._asked[frame.request_id] = frame, answer
            try:
                await self._send(frame)
                return await answer
            except ProblemError as problem:
                await http.wait_or_raise(problem, attempt, self._connection.attempts)
            finally:
                del self._asked[frame.request_id]
        raise AssertionError

    async def watch(self, match_id: str, after: str, read: _Read) -> AsyncGenerator[Any, None]:
        """Yields a match, each message as `read` returns it."""
        if match_id in self._watches:
            raise ValueError(f"this socket watches {match_id} already")
        if self._failure is not None:
            raise self._failure
        watch = self._watches[match_id] = _Watch(match_id, after, read)
        try:
            if self._socket is not None:
                await self._begin(watch)
            # A match may have ended with the very event that the cursor is of; then nothing comes.
            if after and await self._ended_with(watch):
                return
            while True:
                yield await watch.queue.get()
                if watch.over and watch.queue.empty():
                    return
        finally:
            del self._watches[match_id]
            if not watch.over:
                unwatch = live_pb2.Unwatch(match_id=match_id)
                await self._send(live_pb2.ClientFrame(request_id=next(self._ids), unwatch=unwatch))

    async def _ended_with(self, watch: _Watch) -> bool:
        """Whether a match that is watched ended with the event that the watch begins after."""
        after = watch.cursor
        while not await watch.queue.comes(_LOOK_SECONDS):
            if watch.begun:
                # Of any game, whose messages nobody has named here.
                match = (await self._connection.send("GET", f"/v1/matches/{watch.match_id}", struct_pb2.Struct)).fields
                return match["status"].string_value == "FINISHED" and match["cursor"].string_value == after
        return False

    async def _begin(self, watch: _Watch) -> None:
        watch.request_id, watch.begun = next(self._ids), False
        asked = live_pb2.Watch(match_id=watch.match_id, after=watch.cursor)
        await self._send(live_pb2.ClientFrame(request_id=watch.request_id, watch=asked))

    async def _send(self, frame: live_pb2.ClientFrame) -> None:
        """Sends a frame, if there is a connection; whatever must arrive is sent again when there is another."""
        if self._socket is not None:
            with contextlib.suppress(ConnectionClosed):
                await self._socket.send(frame.SerializeToString())

    # What keeps it.

    async def _open(self) -> None:
        if self._keeping is None:
            raise RuntimeError("use it as in: async with client.live() as live")
        await self._opened.wait()
        if self._failure is not None:
            raise self._failure

    async def _keep(self) -> None:
        """Connects again and again."""
        failures, renewed = 0, ""
        try:
            while True:
                token = await self._connection.token()
                code = None
                try:
                    code = await self._serve(token)
                except _HandshakeError as refused:
                    failures += 1
                    await http.wait_or_raise(refused.problem, failures, self._connection.attempts)
                    continue
                except (OSError, WebSocketException) as fault:
                    if not self._served and failures + 1 >= self._connection.attempts:
                        raise UnreachableError(str(fault) or type(fault).__name__) from fault
                if self._served:
                    renewed = ""
                if code == _AUTH:
                    if renewed == token:
                        raise self._unauthorized
                    renewed = await self._connection.renew(token)
                    continue
                failures = 1 if self._served else failures + 1
                await http.pause(failures, _LATER_SECONDS if code == _LATER else None)
        except Exception as fault:  # it is raised where somebody waits
            self._fail(fault)

    async def _serve(self, token: str) -> int | None:
        """Serves one connection to its end, and returns the code with which the server closed it."""
        url = "ws" + self._connection.base_url.removeprefix("http") + "/v1/live"
        headers = {"Authorization": f"Bearer {token}"}
        self._served = False
        try:
            opening = _Connect(
                url,
                subprotocols=[_SUBPROTOCOL],
                additional_headers=headers,
                compression=None,
                max_size=None,
                ping_interval=None,
                open_timeout=_OPEN_SECONDS,
                close_timeout=1,
            )
            async with opening as socket:
                self._socket = socket
                self.connections += 1
                opened = time.monotonic()
                self._opened.set()
                renewing = asyncio.create_task(self._renew())
                try:
                    for watch in list(self._watches.values()):
                        if not watch.over:
                            await self._begin(watch)
                    for frame, _ in list(self._asked.values()):
                        await self._send(frame)
                    await self._read(socket)
                finally:
                    renewing.cancel()
                    self._served |= time.monotonic() - opened > _LASTED_SECONDS
                    self._lose()
                    await asyncio.gather(renewing, return_exceptions=True)
        except InvalidStatus as refused:
            response = refused.response
            body = (response.body or b"").decode(errors="replace")
            after = http.seconds_of(response.headers.get("Retry-After"))
            raise _HandshakeError(ProblemError.of(response.status_code, body, response.reason_phrase, after)) from None
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd is not None else None
        return None

    def _lose(self) -> None:
        self._socket = None
        if self._failure is None:
            self._opened.clear()
        for ping in self._pings.values():
            if not ping.done():
                ping.set_result(None)

    async def _read(self, socket: ClientConnection) -> None:
        while True:
            async with asyncio.timeout(_SILENCE_SECONDS):
                data = await socket.recv(decode=False)
            try:
                frame = live_pb2.ServerFrame.FromString(data)
            except DecodeError:
                raise OSError("the server sent what is no frame") from None
            for message in frame.messages:
                if message.HasField("ping"):
                    # Before anything else: it is the line that is measured, not us.
                    await self._send(live_pb2.ClientFrame(pong=live_pb2.Pong(nonce=message.ping.nonce)))
            for message in frame.messages:
                self._take(message)

    def _take(self, message: live_pb2.ServerMessage) -> None:
        kind = message.WhichOneof("kind")
        self._served |= kind not in ("ping", "problem", "draining")
        match kind:
            case "snapshot" | "event":
                seen: live_pb2.Snapshot | live_pb2.Event = getattr(message, kind)
                if (watch := self._watches.get(seen.match_id)) is not None and watch.begun:
                    watch.put(seen)
            case "result":
                if (watch := self._watches.get(message.result.match_id)) is not None and watch.request_id == message.result.request_id:
                    watch.begun = True
                if (asked := self._asked.get(message.result.request_id)) is not None and not asked[1].done():
                    asked[1].set_result(message.result)
            case "problem":
                self._refused(message.problem)
            case "pong":
                if (ping := self._pings.get(message.pong.nonce)) is not None and not ping.done():
                    ping.set_result(time.monotonic())
            case "room" | "ticket":
                for queue, listens in self._listeners.items():
                    if listens == kind:
                        queue.put(getattr(message, kind))
            case _:
                pass  # `draining`, before the connection is closed; or what is newer than this client

    def _refused(self, problem: live_pb2.Problem) -> None:
        after = float(problem.retry_after) if problem.HasField("retry_after") else None
        fault = ProblemError(problem.reason or "UNKNOWN", problem.status, problem.detail, problem.violations, after)
        if problem.status == _UNAUTHORIZED:
            # The socket is about to be closed for it; with another token everything is asked again.
            self._unauthorized = fault
        elif (asked := self._asked.get(problem.request_id)) is not None:
            if not asked[1].done():
                asked[1].set_exception(fault)
        elif (watch := self._watches.get(problem.match_id)) is not None and problem.request_id in ("", watch.request_id):
            # It cannot be watched; or, without a request, cannot be any more.
            self._start(self._begin_again(watch, fault))

    async def _begin_again(self, watch: _Watch, problem: ProblemError) -> None:
        """Begins a watch that a busy server refused."""
        watch.refusals += 1
        refused = watch.request_id
        try:
            await http.wait_or_raise(problem, watch.refusals, self._connection.attempts)
        except ProblemError as fault:
            watch.queue.fail(fault)
            return
        if self._watches.get(watch.match_id) is watch and watch.request_id == refused:
            await self._begin(watch)

    async def _renew(self) -> None:
        """Goes on with another token each time before the old one runs out."""
        while self._connection.signed_in().refresh_token:
            left = self._connection.token_seconds()
            await asyncio.sleep(max(left - _RENEW_SECONDS, left / 2, 0.2))
            token = await self._connection.token()
            request = live_pb2.ClientFrame(request_id=next(self._ids), authenticate=live_pb2.Authenticate(access_token=token))
            await self._send(request)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    def _fail(self, fault: Exception) -> None:
        if self._failure is None:
            self._failure = fault
        self._opened.set()
        for _, answer in self._asked.values():
            if not answer.done():
                answer.set_exception(self._failure)
        for watch in self._watches.values():
            watch.queue.fail(self._failure)
        for queue in self._listeners:
            queue.fail(self._failure)

    def _listen(self, kind: str) -> AsyncGenerator[Any, None]:
        queue = _Queue()
        if self._failure is not None:
            queue.fail(self._failure)
        self._listeners[queue] = kind

        async def heard() -> AsyncGenerator[Any, None]:
            try:
                while True:
                    yield await queue.get()
            finally:
                del self._listeners[queue]

        return heard()


class _Connect(connect):
    """Follows no redirect: the token is for the server that was named."""

    def process_redirect(self, exc: Exception) -> Exception:
        """The redirect is a refusal like any other."""
        return exc


class _HandshakeError(Exception):
    """The server refuses a connection."""

    def __init__(self, problem: ProblemError) -> None:
        super().__init__(str(problem))
        self.problem = problem


class _Queue:
    """What came and was not taken yet, for one who takes it. It has no bound: were it to hold the socket up, one slow reader would be in
    every other's way, and a match is no more than some thousand events.
    """

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._came = asyncio.Event()
        self._failure: Exception | None = None

    def empty(self) -> bool:
        """Whether everything has been taken."""
        return not self._items

    def put(self, item: Any) -> None:
        """Adds something."""
        self._items.append(item)
        self._came.set()

    def fail(self, fault: Exception) -> None:
        """Says that nothing more comes, and why; told after all that came before."""
        self._failure = self._failure or fault
        self._came.set()

    async def get(self) -> Any:
        """Takes the next, or raises the failure."""
        while not self._items:
            if self._failure is not None:
                raise self._failure
            self._came.clear()
            await self._came.wait()
        return self._items.popleft()

    async def comes(self, seconds: float) -> bool:
        """Whether there is something to take, or a failure, within so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._came.wait()
        return self._came.is_set()


_Read = Callable[[live_pb2.Snapshot | live_pb2.Event], tuple[Any, str, bool]]


class _Watch:
    """A match that is watched.

    Args:
        cursor: where it is; empty before the first snapshot.
        read: returns a message as its watcher gets it, the cursor after it, and whether it is the last.

    Attributes:
        request_id: of the newest request for it.
        begun: whether that has its result. What comes before belongs to an earlier one.
        refusals: how often the server was too busy for it.
        over: whether the last message has come.
    """

    def __init__(self, match_id: str, cursor: str, read: _Read) -> None:
        self.match_id = match_id
        self.cursor = cursor
        self.request_id = ""
        self.begun = False
        self.refusals = 0
        self.over = False
        self.queue = _Queue()
        self._read = read

    def put(self, seen: live_pb2.Snapshot | live_pb2.Event) -> None:
        """Takes what came."""
        try:
            made, self.cursor, self.over = self._read(seen)
        except DecodeError:
            self.queue.fail(AnswerError(f"what came of {self.match_id} is no message of its game"))
            return
        self.refusals = 0
        self.queue.put(made)


class LiveTable(Generic[MoveT, WatchedT]):
    """The matches of one game over a live socket. Get one from `Live.game`."""

    def __init__(self, live: Live, module: Module[Any, MoveT, Any, Any, Any, Any, Any, Any, WatchedT]) -> None:
        self._live = live
        self._module = module

    async def watch(self, match_id: str, after: str = "") -> AsyncGenerator[WatchedT, None]:
        """Yields a match until it ends: every event after a cursor, or, without one that fits its history, a `snapshot` first.

        Across broken connections there is no gap and no repeat. Stop by leaving the loop; whoever wants to watch again at once, closes the
        iterator first (`contextlib.aclosing`).

        Raises:
            ProblemError, UnreachableError: as `Live` says.
            AnswerError: what came is no message of this game.
            ValueError: this socket watches the match already.
        """
        async with contextlib.aclosing(self._live.watch(match_id, after, self._read)) as watching:
            async for seen in watching:
                yield seen

    async def play(self, match_id: str, move: MoveT, *, expected_version: int | None = None, key: str | None = None) -> live_pb2.Result:
        """Plays a move. What comes of it is told to those who watch.

        Args:
            expected_version: refuse it unless the match is at this version.
            key: a name for the request; a fresh one when not given. The same move under the same key is played once.

        Raises:
            ProblemError: as `Table.play`.
            UnreachableError: as `Live` says.
        """
        asked = live_pb2.Move(match_id=match_id, move=move.SerializeToString(), expected_version=expected_version)
        return await self._live.ask(asked, key)

    def _read(self, seen: live_pb2.Snapshot | live_pb2.Event) -> tuple[WatchedT, str, bool]:
        made: Any = self._module.WatchMatchResponse()
        if isinstance(seen, live_pb2.Snapshot):
            made.snapshot.ParseFromString(seen.match)
            return made, made.snapshot.cursor, made.snapshot.status == table_pb2.FINISHED
        event = made.event
        event.match_id, event.cursor, event.version = seen.match_id, seen.cursor, seen.version
        event.time.CopyFrom(seen.time)
        event.event.ParseFromString(seen.event)
        return made, seen.cursor, event.event.HasField("match_finished")
