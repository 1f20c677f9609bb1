"""Live connections: a player's socket behind a gateway, or a stream of `Play`. The same frames on both (gloaming.live.v1).

A `Connection` is one player's: its matches watched, its requests. The relay carries many of them on one stream of a gateway's, `Play` one
on a stream of its own. Nothing here waits for a reader: what is to be sent gathers in an `Outbox`, and goes out in one write a turn.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple

import grpc
import structlog
from google.protobuf.message import DecodeError

from gloaming.live.v1 import live_pb2
from gloaming.relay.v1 import relay_pb2
from services.kit import metrics, requests
from services.kit.cursor import Cursor
from services.kit.errors import Error, Throttled, Unauthenticated, Unavailable, Unreadable
from services.kit.feeds import Telling, ViewerOf
from services.kit.game import Game, Value
from services.kit.identity import Caller, Identity
from services.kit.line import Line, pauses
from services.kit.matches import Matches
from services.kit.problems import live_problem
from services.kit.sessions import Session

# A player who may see what others may not is sent nothing on a look at the token that is older than this.
_TRUSTED_SECONDS = 1.0
# A player whom nothing is sent has its token looked at so often.
_LOOK_SECONDS = 15.0
_WATCHED_AT_MOST = 64
# So much may wait for a gateway, and for a client of `Play`, in bytes. What was missed is read on once less than half of it waits.
_RELAY_BYTES, _PLAY_BYTES = 8 * 1024 * 1024, 256 * 1024
# One message on a stream has at most about so many bytes.
_WRITE_BYTES = 512 * 1024
# A watch that lost the storage is taken up again after about so long.
_AGAIN_SECONDS = 0.5
_POLICY_VIOLATION = 1008

_FANOUT = metrics.PILLOW_SECONDS.labels("fanout")

log = structlog.get_logger(__name__)


class Sent(NamedTuple):
    """What goes out on a connection: a ServerFrame, and what a gateway has to know of it (see relay.proto)."""

    frame: bytes
    match_id: str = ""
    cursor: str = ""
    request_id: str = ""
    close: int = 0
    ended: bool = False


class Outbox:
    """What waits to be written to a stream. Whatever gathers while one write is under way goes along in the next.

    Args:
        most: so many bytes may wait; with more, the reader is cut off.

    Attributes:
        since: since when the first of what was taken last had waited.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: list[Any] = []
        self._bytes = 0
        self.since = self._first = 0.0
        self._news = asyncio.Event()
        self._taken = asyncio.Event()
        self._ended = False
        self._fault: Error | None = None

    def put(self, what: Any, size: int) -> None:
        """Has something written, of about so many bytes."""
        if not self._waiting:
            self._first = time.perf_counter()
        self._waiting.append(what)
        self._bytes += size
        if self._bytes > self._most:
            metrics.SLOW_READERS.inc()
            self.end(Throttled("SLOW_READER", "this reads slower than things happen; go on from the last cursor"))
        self._news.set()

    def end(self, fault: Error | None = None) -> None:
        """Ends the stream, in order where there is no fault, what waits being written first unless the reader is too slow for it."""
        self._ended = True
        self._fault = self._fault or fault
        if isinstance(fault, Throttled):
            self._waiting.clear()
        self._news.set()

    async def take(self) -> list[Any]:
        """Returns all that waits, as soon as something does; nothing once the stream was ended in order, and nothing waits any more.

        Raises:
            Error: the stream was ended by a fault, and nothing waits any more.
        """
        while not self._waiting:
            if self._fault:
                raise self._fault
            if self._ended:
                return []
            self._news.clear()
            await self._news.wait()
        waiting, self._waiting = self._waiting, []
        self._bytes, self.since = 0, self._first
        self._taken.set()
        return waiting

    async def room(self) -> None:
        """Returns when less than half of what may wait does."""
        while self._bytes > self._most // 2 and not self._ended:
            self._taken.clear()
            await self._taken.wait()


class Live:
    """The live connections to this replica."""

    def __init__(self, game: Game, matches: Matches, identity: Identity) -> None:
        self.game = game
        self.matches = matches
        self.identity = identity
        # In real time the same few moves come again and again.
        self.read_move = lru_cache(4096)(self._read_move)
        self._outboxes: set[Outbox] = set()
        self._draining = False

    def move_message(self, body: bytes) -> Any:
        """The game's Move that bytes hold.

        Raises:
            Unreadable: they hold none.
        """
        try:
            return self.game.message("Move").FromString(body)
        except DecodeError as fault:
            raise Unreadable("move.move", "not a move of this game") from fault

    def _read_move(self, body: bytes) -> tuple[Value, bytes]:
        """The move that bytes hold, and how every transport writes it, by which a retry over another is known for one."""
        message = self.move_message(body)
        move = requests.value(self.game.codec.move_from_proto, message, "move.move")
        return move, message.SerializeToString(deterministic=True)

    def drain(self) -> None:
        """Sends everybody elsewhere: this replica is about to stop."""
        self._draining = True
        for outbox in self._outboxes:
            outbox.end(_draining())

    async def relay(self, caller: Caller, received: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Serves a gateway's stream: relay_pb2.RelayRequest after RelayRequest, as bytes; yields RelayResponses.

        Raises:
            Error: as relay.proto says.
        """
        caller.require("relay")
        outbox = Outbox(_RELAY_BYTES)
        connections: dict[int, Connection] = {}

        def connect(attachment: int) -> Connection:
            return Connection(self, lambda sent: outbox.put((attachment, sent), len(sent.frame)), outbox.room)

        def receive(body: bytes) -> None:
            for up in relay_pb2.RelayRequest.FromString(body).messages:
                connection = connections.get(up.attachment)
                kind = up.WhichOneof("kind")
                if kind == "token":
                    if connection is None:
                        connection = connections[up.attachment] = connect(up.attachment)
                    connection.authenticate(up.token)
                elif connection is None:
                    continue  # it was detached
                elif kind == "frame":
                    connection.receive(up.frame)
                elif kind == "round_trip_ms":
                    connection.round_trip_ms = up.round_trip_ms
                elif kind == "detach":
                    connections.pop(up.attachment).close()

        try:
            async with aclosing(self._stream(outbox, received, receive)) as batches:
                async for written in batches:
                    for response in _responses(written):
                        yield response
        finally:
            for connection in connections.values():
                connection.close()

    async def play(self, caller: Caller, received: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Serves a stream of `Play`: ClientFrames come, ServerFrames go, as bytes. A client that ends its side is answered what it asked.

        Raises:
            Error: Unauthenticated when the token runs out; Throttled SLOW_READER; Unavailable DRAINING.
        """
        outbox = Outbox(_PLAY_BYTES)

        def send(sent: Sent) -> None:
            outbox.put(sent.frame, len(sent.frame))
            if sent.close:
                outbox.end(Unauthenticated("TOKEN_EXPIRED", "the access token is not good any more"))

        connection = Connection(self, send, outbox.room, caller)
        line = Line()

        async def ping() -> None:
            for pause in pauses():
                await asyncio.sleep(pause)
                outbox.put(_frame(ping=live_pb2.Ping(nonce=line.ask(time.monotonic()))), 32)

        def receive(body: bytes) -> None:
            frame = connection.receive(body)
            if frame is not None and frame.WhichOneof("kind") == "pong" and line.answered(frame.pong.nonce, time.monotonic()):
                connection.round_trip_ms = round(line.milliseconds or 0)

        async def until_answered() -> AsyncIterator[bytes]:
            async for body in received:
                yield body
            await connection.finish()

        pinging = asyncio.create_task(ping())
        try:
            async with aclosing(self._stream(outbox, until_answered(), receive)) as batches:
                async for written in batches:
                    yield b"".join(written)
        finally:
            pinging.cancel()
            connection.close()

    async def _stream(
        self, outbox: Outbox, received: AsyncIterator[bytes], receive: Callable[[bytes], None]
    ) -> AsyncGenerator[list[Any], None]:
        """Yields what is to be written, while what comes is received."""

        async def read() -> None:
            try:
                async for body in received:
                    receive(body)
                outbox.end()
            except DecodeError:
                outbox.end(Unreadable("", "not a protobuf message of this kind"))
            except grpc.aio.UsageError:
                pass  # the stream has ended
            except Exception as fault:
                log.error("stream_failed", exc_info=fault)
                outbox.end(Unavailable("INTERNAL", "this is our fault; it has been logged"))

        if self._draining:
            raise _draining()
        self._outboxes.add(outbox)
        reading = asyncio.create_task(read())
        try:
            while waiting := await outbox.take():
                yield waiting
                if self.game.real_time:
                    _FANOUT.observe(time.perf_counter() - outbox.since)
        finally:
            self._outboxes.discard(outbox)
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


class Connection:
    """One player's line to this replica.

    Args:
        send: sends something; it must not wait.
        room: waits until more of what was missed may be sent.
        caller: the player, where it is known from the start.

    Attributes:
        round_trip_ms: what a round trip of the player's line takes, as a server measured it (NK-19).
    """

    def __init__(self, live: Live, send: Callable[[Sent], None], room: Callable[[], Any], caller: Caller | None = None) -> None:
        self.round_trip_ms = 0
        self.room = room
        self._live = live
        self._matches = live.matches
        self._real_time = live.game.real_time is not None
        self._send = send
        self._caller = caller
        self._checked = time.monotonic() if caller else 0.0
        self._next_look: asyncio.TimerHandle | None = None
        self._held: list[Sent] = []
        self._checking: asyncio.Task[None] | None = None
        self._inbox: deque[live_pb2.ClientFrame | str] = deque()
        self._working: asyncio.Task[None] | None = None
        self._deciding: set[asyncio.Future[int]] = set()
        self._watching: dict[str, _Following] = {}
        self._closed = False
        if caller:
            self._look_later(caller)

    def authenticate(self, token: str) -> None:
        """Goes by a token from now on."""
        self._put(token)

    def receive(self, body: bytes) -> live_pb2.ClientFrame | None:
        """Takes a ClientFrame, and returns it; what comes of it is sent. None for what is none, or comes after the end."""
        if self._closed:
            return None
        try:
            frame = live_pb2.ClientFrame.FromString(body)
        except DecodeError:
            self.refuse("", "", Unreadable("", "not a gloaming.live.v1.ClientFrame"))
            return None
        kind = frame.WhichOneof("kind")
        if kind == "ping":
            self._send(Sent(_frame(pong=live_pb2.Pong(nonce=frame.ping.nonce[:64]))))
        elif kind == "move" and self._real_time and self._working is None and self._is_trusted() and self._react(frame):
            pass  # on a way without a task of its own
        elif kind != "pong":
            self._put(frame)
        return frame

    def events(self, telling: Telling, viewer: int | None) -> None:
        """Sends events."""
        viewer = telling.seen_as(viewer)
        frame = telling.made.get(viewer)
        if frame is None:
            frame = telling.made[viewer] = _events_frame(telling, viewer)
        self._tell(Sent(frame, telling.match_id, telling.cursor))

    def snapshot(self, session: Session, viewer: int | None) -> None:
        """Sends a match as it is."""
        match = self._matches.shown(session, viewer).SerializeToString()
        frame = _frame(snapshot=live_pb2.Snapshot(match_id=session.match_id, match=match))
        self._tell(Sent(frame, session.match_id, str(session.cursor)))

    async def finish(self) -> None:
        """Waits until all that was asked is answered; then nothing more is watched."""
        while self._working or self._deciding:
            going_on: list[asyncio.Future[Any]] = [*self._deciding, *([self._working] if self._working else [])]
            await asyncio.wait(going_on)
        for match_id in list(self._watching):
            self._unwatch(match_id)

    def close(self) -> None:
        """Ends all that goes on for it."""
        self._closed = True
        self._inbox.clear()
        if self._next_look:
            self._next_look.cancel()
        for task in (self._working, self._checking, *(following.task for following in self._watching.values())):
            if task is not None:
                task.cancel()

    # The token.

    def _tell(self, sent: Sent) -> None:
        """Sends what only this player may see, or holds it back until its token has been looked at."""
        if not self._held and self._is_trusted():
            self._send(sent)
        else:
            self._held.append(sent)
            self._look()

    def _is_trusted(self) -> bool:
        """Whether the token has been looked at of late, and has not run out since."""
        caller = self._caller
        return caller is not None and time.monotonic() - self._checked <= _TRUSTED_SECONDS and time.time() < caller.expires

    def _look_later(self, caller: Caller) -> None:
        """Has the token looked at by itself, and at the latest when it runs out, lest a silent connection outlive it."""
        if self._next_look:
            self._next_look.cancel()
        wait = min(_LOOK_SECONDS, max(0.0, caller.expires - time.time()) + 0.01)
        self._next_look = asyncio.get_running_loop().call_later(wait, self._look_now)

    def _look_now(self) -> None:
        self._look()
        if self._caller:
            self._next_look = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look_now)

    def _look(self) -> None:
        if self._checking is None and not self._closed:
            self._checking = asyncio.create_task(self._check())

    async def _check(self) -> None:
        """Looks whether the token is still good, and sends what was held back."""
        assert self._caller
        try:
            while True:
                try:
                    await self._live.identity.recheck(self._caller)
                    break
                except Unavailable:
                    await asyncio.sleep(_AGAIN_SECONDS)
            self._is_good()
        except Unauthenticated as fault:
            self._end(fault)
        finally:
            self._checking = None

    def _is_good(self) -> None:
        """Notes that the token has just been looked at."""
        self._checked = time.monotonic()
        held, self._held = self._held, []
        for sent in held:
            self._send(sent)

    def _end(self, fault: Unauthenticated) -> None:
        self._held.clear()
        self._send(Sent(problem_frame(fault), close=_POLICY_VIOLATION))
        self.close()

    # Requests.

    def _put(self, asked: live_pb2.ClientFrame | str) -> None:
        self._inbox.append(asked)
        if self._working is None and not self._closed:
            self._working = asyncio.create_task(self._work())

    async def _work(self) -> None:
        """Does what is asked, one after the other."""
        try:
            while self._inbox:
                asked = self._inbox.popleft()
                if isinstance(asked, str):
                    try:
                        await self._go_by(asked)
                    except Unauthenticated as fault:
                        self._end(fault)
                    except Exception as fault:
                        self.refuse("", "", fault)
                elif self._caller:
                    await self._do(asked)
        finally:
            self._working = None

    async def _go_by(self, token: str) -> None:
        """Takes a token, which must be of the same player as the one before."""
        caller = await self._live.identity.caller(f"Bearer {token}")
        if self._caller and caller.player != self._caller.player:
            raise Unauthenticated("TOKEN_INVALID", "the token is of another player")
        self._caller = caller
        self._is_good()
        self._look_later(caller)

    async def _do(self, asked: live_pb2.ClientFrame) -> None:
        kind = asked.WhichOneof("kind")
        match_id = getattr(getattr(asked, kind), "match_id", "") if kind else ""
        caller = self._caller
        assert caller
        try:
            if kind != "authenticate" and not self._is_trusted():
                await self._live.identity.recheck(caller)
                self._is_good()
        except Unauthenticated as fault:
            self.refuse(asked.request_id, match_id, fault)
            self._end(fault)
            return
        except Exception as fault:
            self.refuse(asked.request_id, match_id, fault)
            return
        try:
            request_id = _request_id(asked)
            match kind:
                case "watch":
                    self._watch(asked.watch, request_id, caller)
                    return
                case "unwatch":
                    self._unwatch(match_id)
                    version = 0
                case "move":
                    if self._real_time and self._react(asked):
                        return
                    version = await self._submit(asked.move, request_id, caller)
                case "authenticate":
                    await self._go_by(asked.authenticate.access_token)
                    version = 0
                case _:
                    raise Unreadable("", "one of watch, unwatch, move, authenticate, ping and pong must be set")
            self.answer(request_id, match_id, version)
        except Exception as fault:
            self.refuse(asked.request_id, match_id, fault)

    async def _submit(self, asked: live_pb2.Move, request_id: str, caller: Caller) -> int:
        move = self._live.move_message(asked.move)
        request = self._live.game.message("SubmitMoveRequest")(match_id=asked.match_id, move=move, request_id=request_id)
        if asked.HasField("expected_version"):
            request.expected_version = asked.expected_version
        answer: Any = await self._matches.submit(request, caller)
        return int(answer.version)

    def _react(self, frame: live_pb2.ClientFrame) -> bool:
        """Has a reaction ordered, and answers when it is; False for any other move."""
        asked, caller = frame.move, self._caller
        assert caller
        try:
            move, body = self._live.read_move(asked.move)
            if not self._matches.is_reaction(move):
                return False
            decided = self._matches.react(
                asked.match_id,
                caller,
                move,
                request_id=_request_id(frame),
                body=body,
                expected_version=asked.expected_version if asked.HasField("expected_version") else None,
                round_trip_ms=self.round_trip_ms,
            )
        except Exception as fault:
            self.refuse(frame.request_id, asked.match_id, fault)
            return True
        self._deciding.add(decided)
        decided.add_done_callback(partial(self._decided, frame.request_id, asked.match_id))
        return True

    def _decided(self, request_id: str, match_id: str, decided: asyncio.Future[int]) -> None:
        self._deciding.discard(decided)
        if decided.cancelled() or self._closed:
            return
        fault = decided.exception()
        if fault is None:
            self.answer(request_id, match_id, decided.result())
        else:
            self.refuse(request_id, match_id, fault)

    def answer(self, request_id: str, match_id: str, version: int) -> None:
        """Tells that a request was done."""
        result = live_pb2.Result(request_id=request_id, match_id=match_id, version=version)
        self._send(Sent(_frame(result=result), request_id=request_id))

    def refuse(self, request_id: str, match_id: str, fault: BaseException) -> None:
        """Tells why a request was not done."""
        if not isinstance(fault, Error):
            log.error("call_failed", method="live", match=match_id, exc_info=fault)
        self._send(Sent(problem_frame(fault, request_id, match_id), request_id=request_id))

    # Watching.

    def _watch(self, asked: live_pb2.Watch, request_id: str, caller: Caller) -> None:
        after = Cursor.parse(asked.after, "watch.after") if asked.after else None
        match_id = asked.match_id
        self._unwatch(match_id)
        if len(self._watching) >= _WATCHED_AT_MOST:
            raise Throttled("TOO_MANY_WATCHES", f"a connection watches at most {_WATCHED_AT_MOST} matches")
        following = self._watching[match_id] = _Following(self, match_id, after, request_id)
        following.task = asyncio.create_task(self._follow(following, self._matches.viewer_of(caller)))

    def _unwatch(self, match_id: str) -> None:
        """Tells no more of a match; a request to watch it that has no answer yet gets one, since it was done as far as it could be."""
        if following := self._watching.pop(match_id, None):
            self._held = [sent for sent in self._held if sent.match_id != match_id]
            following.drop()

    async def _follow(self, following: _Following, seen_by: ViewerOf) -> None:
        """Tells of a match until it is over."""
        match_id = following.match_id

        def viewer_of(session: Session) -> int | None:
            viewer = seen_by(session)
            following.answer(session.version)
            return viewer

        try:
            while True:
                try:
                    await self._matches.feeds.watch(match_id, following.after, viewer_of, following)
                    self._tell(Sent(b"", match_id, ended=True))
                    return
                except Unavailable as fault:
                    if fault.reason == "DRAINING":
                        return  # so does the stream
                    if not following.is_answered:
                        following.refuse(fault)
                        return
                    await asyncio.sleep(random.uniform(0.5, 1.0) * _AGAIN_SECONDS)
        except Exception as fault:
            # It may not be watched; or might be, and is gone by now.
            if following.is_answered:
                self._tell(Sent(b"", match_id, ended=True))
            following.refuse(fault)
        finally:
            if self._watching.get(match_id) is following:
                del self._watching[match_id]


class _Following:
    """A match that a connection watches: what a feed tells of it (`feeds.Watcher`), and up to where.

    Attributes:
        task: what follows the match.
        is_answered: whether the request that began it has its answer.
    """

    def __init__(self, connection: Connection, match_id: str, after: Cursor | None, request_id: str) -> None:
        self.match_id = match_id
        self.after = after
        self.room = connection.room
        self.task: asyncio.Task[None] | None = None
        self.is_answered = False
        self._connection = connection
        self._request_id = request_id
        self._dropped = False

    def events(self, telling: Telling, viewer: int | None) -> None:
        if not self._dropped:
            self._connection.events(telling, viewer)
            self.after = telling.placed[-1].cursor

    def snapshot(self, session: Session, viewer: int | None) -> None:
        if not self._dropped:
            self._connection.snapshot(session, viewer)
            self.after = session.cursor

    def answer(self, version: int) -> None:
        """Answers the request, unless it has been."""
        if not self.is_answered:
            self.is_answered = True
            self._connection.answer(self._request_id, self.match_id, version)

    def refuse(self, fault: BaseException) -> None:
        """Answers the request by a fault; or tells of the fault alone, if it has its answer."""
        request_id, self.is_answered = "" if self.is_answered else self._request_id, True
        self._connection.refuse(request_id, self.match_id, fault)

    def drop(self) -> None:
        """Nothing more is to be told."""
        self._dropped = True
        self.answer(0)
        if self.task:
            self.task.cancel()


def _request_id(frame: live_pb2.ClientFrame) -> str:
    if not frame.request_id:
        raise Unreadable("requestId", "must be 1 to 128 printable ASCII characters")
    return requests.request_id(frame.request_id)


def problem_frame(fault: BaseException, request_id: str = "", match_id: str = "") -> bytes:
    """The ServerFrame that tells of a fault."""
    return _frame(problem=live_problem(fault if isinstance(fault, Error) else None, request_id, match_id))


def _frame(**message: Any) -> bytes:
    return live_pb2.ServerFrame(messages=[live_pb2.ServerMessage(**message)]).SerializeToString()


def _events_frame(telling: Telling, viewer: int | None) -> bytes:
    frame = live_pb2.ServerFrame()
    for placed in telling.placed:
        event = frame.messages.add().event
        event.match_id = telling.match_id
        event.cursor = str(placed.cursor)
        event.version = placed.cursor.version
        event.time.seconds, event.time.nanos = placed.time // 1000, placed.time % 1000 * 1_000_000
        event.event = placed.entry.seen_by(viewer)
    return frame.SerializeToString()


def _responses(written: list[tuple[int, Sent]]) -> list[bytes]:
    """Relay messages: what is the same for several connections goes once, and what follows for the same ones goes along."""
    downs: list[list[Any]] = []
    for attachment, sent in written:
        if downs and downs[-1][1] is sent.frame and sent.frame:
            downs[-1][0].append(attachment)
        else:
            downs.append([[attachment], sent.frame, sent])
    responses, response, size = [], relay_pb2.RelayResponse(), 0
    for attachments, frame, sent in downs:
        response.messages.append(
            relay_pb2.Down(
                attachments=attachments,
                frame=frame,
                match_id=sent.match_id,
                cursor=sent.cursor,
                request_id=sent.request_id,
                close=sent.close,
                ended=sent.ended,
            )
        )
        size += len(frame)
        if size > _WRITE_BYTES:
            responses.append(response.SerializeToString())
            response, size = relay_pb2.RelayResponse(), 0
    if response.messages:
        responses.append(response.SerializeToString())
    return responses


def _draining() -> Unavailable:
    return Unavailable("DRAINING", "this replica is about to stop; go on elsewhere with the last cursors", retry_after=0)
