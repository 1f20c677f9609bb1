"""The live socket, `WS /v1/live`: every match of a player over one connection.

A frame that comes in is read and put into the next write of a relay (`gateway.relay`), and one that a relay brings is put into the next
write of its sockets, each within one turn of the loop: no task and no queue on the way. Whoever does not read is cut off; nobody waits for
a socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any

import structlog
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket as Handshake
from starlette.websockets import WebSocketDisconnect

from gateway import frames, metrics, problems
from gateway.frames import JSON, PROTO, Asked, Frame, Wrong
from gateway.limits import Throttle
from gateway.news import Kind, News
from gateway.protocol import SOCKET_PATH, WebSocket, link_of
from gateway.registry import Game
from gateway.relay import Attachment, Relay
from gloaming.gateway.v1 import gateway_pb2
from gloaming.live.v1 import live_pb2
from services.kit.errors import Error, Forbidden, Throttled, Unauthenticated, Unavailable, Unreadable
from services.kit.identity import Caller, Identity
from services.kit.line import Line

PATH = SOCKET_PATH
AUTH, UNREADABLE, RESTARTING, LATER, GONE = 1008, 1003, 1012, 1013, 1001
# Every close code that is counted under its own name.
CODES = frozenset({1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1011, 1012, 1013})

_BEARER = "bearer."
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")
_STOPPING = Unavailable("DRAINING", "this gateway is about to stop; connect again")
_DRAINING = frames.pack(live_pb2.Draining())

# So many rooms and tickets a socket knows of; a player has at most one ticket a game.
_MOST_KNOWN = 32

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a socket may take, and how long.

    Args:
        waiting_bytes: how much may wait for a client that does not read.
        send_seconds: how long what was sent may wait for it.
        silent_seconds: after how long without a byte a connection is taken for dead.
        recheck_seconds: how often revocations are looked at.
        first_pings: when the first pings are sent, in seconds from the start.
        ping_seconds: how often they are sent then.
        look_seconds: how often a socket looks at what it knows of its player's rooms and tickets.
        tick_seconds: how often all of this is looked at.
        watches: how many matches are watched at once.
        requests: how many requests are without an answer at once.
        request_bytes: how many bytes they have together.
    """

    waiting_bytes: int = 262_144
    send_seconds: float = 10.0
    silent_seconds: float = 25.0
    recheck_seconds: float = 10.0
    first_pings: Sequence[float] = (0.0, 0.2, 0.5)
    ping_seconds: float = 5.0
    look_seconds: float = 10.0
    tick_seconds: float = 1.0
    watches: int = 64
    requests: int = 256
    request_bytes: int = 262_144


@dataclass(frozen=True, slots=True)
class Told:
    """What sockets tell of by themselves, of one kind.

    Args:
        read: returns a thing of a player's by its id, None where there is none.
        live: returns the ids of those of a player's that may change yet.
    """

    read: Callable[[str, str], Awaitable[Any]]
    live: Callable[[str], Awaitable[Sequence[str]]]


class Live:
    """The resource `live`. Open it where the event loop runs: `async with live`.

    Args:
        draining: set when this process is about to stop.
        told: what there is news of, by kind.
    """

    def __init__(
        self,
        relay: Relay,
        identity: Identity,
        draining: asyncio.Event,
        limits: Limits,
        news: News,
        told: Mapping[Kind, Told],
        throttle: Throttle,
    ) -> None:
        self.relay = relay
        self.identity = identity
        self.limits = limits
        self.news = news
        self.told = told
        self.throttle = throttle
        self._draining = draining
        self._sockets: set[Socket] = set()
        self._unsent: list[Socket] = []
        self._watching: asyncio.Task[None] | None = None

    async def no_socket(self, request: Request) -> Response:
        """GET without a proper handshake."""
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        detail = "this path has a WebSocket (RFC 6455, version 13)"
        return problems.problem(HTTPStatus.UPGRADE_REQUIRED, "UPGRADE_REQUIRED", detail, headers=headers)

    async def serve(self, handshake: Handshake) -> None:
        """One socket, from its handshake to its end."""
        link = link_of(handshake.scope)
        if link is None:
            raise RuntimeError("live sockets are served by gateway.protocol")
        offered: list[str] = handshake.scope["subprotocols"]
        subprotocol = next((each for each in offered if each in (JSON, PROTO)), None)
        if self._draining.is_set():
            await handshake.send_denial_response(problems.answer_for(_STOPPING))
            return
        if subprotocol is None:
            unread = Unreadable("Sec-WebSocket-Protocol", f"must offer {JSON} or {PROTO}")
            await handshake.send_denial_response(problems.answer_for(unread))
            return
        token, caller, refused = "", None, None
        try:
            token = _token(offered, handshake.headers)
            caller = await self.identity.caller(f"Bearer {token}")
        except Error as fault:
            refused = fault
        try:
            await self.throttle.socket(caller.player if caller is not None else None, handshake.scope)
        except Throttled as fault:
            await handshake.send_denial_response(problems.answer_for(fault))
            return
        except Error as fault:
            refused = refused or fault
        socket = Socket(self, link, subprotocol, token, caller)
        link.attach(received=socket.received, over=socket.over, stopping=socket.drain)
        try:
            await handshake.accept(subprotocol)
        except (OSError, WebSocketDisconnect):
            return  # it has gone away meanwhile
        if link.transport.is_closing():
            return
        self._sockets.add(socket)
        metrics.SOCKETS.labels(subprotocol).inc()
        try:
            socket.begin(refused)
            if self._draining.is_set():  # meanwhile
                socket.drain()
            await socket.ended.wait()
        finally:
            socket.over()
            self._sockets.discard(socket)
            metrics.SOCKETS.labels(subprotocol).dec()
            code = link.closed_with
            metrics.SOCKETS_CLOSED.labels(str(code) if code in CODES else "other").inc()

    def flush_soon(self, socket: Socket) -> None:
        """Has a socket's frames sent at the end of this turn of the loop, with those of all others."""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(socket)

    def _flush(self) -> None:
        sockets, self._unsent = self._unsent, []
        for socket in sockets:
            socket.flush()

    async def __aenter__(self) -> Live:
        self._watching = asyncio.create_task(self._drain())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _drain(self) -> None:
        await self._draining.wait()
        for socket in list(self._sockets):
            socket.drain()


class Socket:
    """One client's socket.

    Attributes:
        token: the access token that it goes by.
        round_trip_ms: how long its line takes, as it was last told to the games.
        ended: set when nothing can be sent any more.
    """

    def __init__(self, live: Live, link: WebSocket, subprotocol: str, token: str, caller: Caller | None) -> None:
        self.token = token
        self.round_trip_ms: int | None = None
        self.ended = asyncio.Event()
        self._live = live
        self._limits = live.limits
        self._link = link
        self._json = subprotocol == JSON
        self._caller = caller
        self._loop = asyncio.get_running_loop()
        self._line = Line()
        self._attachments: dict[str, tuple[Game, Attachment]] = {}
        self._out: list[Frame] = []
        self._unanswered = self._unanswered_bytes = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._ticked_at = self._checked_at = time.monotonic()
        self._pings = 0
        self._silence = 0.0
        # All bytes written; how many had been when what waits now did not yet go out, and for how long it has not.
        self._written = self._stuck_before = 0
        self._stuck = 0.0

    # What happens by itself.

    def begin(self, refused: Error | None) -> None:
        """Begins, or says why not."""
        if refused is not None:
            code = AUTH if isinstance(refused, Unauthenticated) else LATER
            self.end(code, refused.reason, frames.refusal(refused))
            return
        self._expires()
        self._tick()
        self._ping()
        assert self._caller is not None
        self._start(self._follow(self._caller.player))

    def _tick(self) -> None:
        """Looks whether it goes on."""
        now, limits = time.monotonic(), self._limits
        assert self._caller is not None
        # Time in which this process itself stood still is not the client's.
        passed = min(now - self._ticked_at, 2 * limits.tick_seconds)
        self._silence = 0.0 if self._link.heard >= self._ticked_at else self._silence + passed
        self._ticked_at = now
        if self._silence > limits.silent_seconds:
            self.end(GONE, "nothing was heard")
            return
        if self._is_stuck(passed):
            self._cut()
            return
        if now - self._checked_at >= limits.recheck_seconds:
            self._checked_at = now
            self._start(self._recheck(self._caller))
        self._at("tick", limits.tick_seconds, self._tick)

    def _is_stuck(self, passed: float) -> bool:
        """Whether what was sent a while ago still waits."""
        waiting = self._link.waiting()
        if not waiting or self._written - waiting >= self._stuck_before:
            # Nothing waits, or all that did when this was looked at last has gone out.
            self._stuck_before, self._stuck = self._written, 0.0
        else:
            self._stuck += passed
        return self._stuck > self._limits.send_seconds

    async def _recheck(self, caller: Caller) -> None:
        try:
            await self._live.identity.recheck(caller)
        except Unauthenticated as fault:
            if caller is self._caller:
                self.end(AUTH, fault.reason, frames.refusal(fault))
        except Error:
            pass  # revocations cannot be read now: the next time will do

    def _expires(self) -> None:
        """Waits for the token to run out, from now on this one."""
        assert self._caller is not None
        if (timer := self._timers.get("expire")) is not None:
            timer.cancel()
        self._at("expire", max(0.0, self._caller.expires - time.time()), self._expire)

    def _expire(self) -> None:
        assert self._caller is not None
        self._start(self._recheck(self._caller))
        self._at("expire", 1.0, self._expire)

    def _ping(self) -> None:
        # Straight to the line, so that it is the line that is measured.
        nonce = self._line.ask(time.monotonic())
        self.tell(frames.pack(live_pb2.Ping(nonce=nonce)))
        self.flush()
        self._pings += 1
        first = self._limits.first_pings
        due = first[self._pings] - first[self._pings - 1] if self._pings < len(first) else self._limits.ping_seconds
        self._at("ping", due, self._ping)

    async def _follow(self, player: str) -> None:
        """Tells of the player's rooms and tickets whatever is new; without news it only listens, and looks at what waits."""
        following = Following(self._live.told, player, self._tell_of)
        while True:
            try:
                async with self._live.news.listen(player, following.hear):
                    await following.run(self._limits.look_seconds)
            except Error as fault:
                _log.warning("news cannot be heard", reason=fault.reason)  # as while Redis is away
            await asyncio.sleep(self._limits.tick_seconds)

    def _tell_of(self, message: Any) -> None:
        self.tell(frames.pack(message))

    def _at(self, name: str, seconds: float, what: Callable[[], None]) -> None:
        if not self.ended.is_set():
            self._timers[name] = self._loop.call_later(seconds, what)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    def drain(self) -> None:
        """The server is about to stop."""
        self.end(RESTARTING, "restarting", _DRAINING)

    # What the client sends.

    def received(self, data: bytes, text: bool) -> None:
        """Takes a message."""
        if self.ended.is_set():
            return
        now = time.monotonic()
        if text is not self._json:
            self.end(UNREADABLE, f"{JSON} has text frames, {PROTO} binary ones")
            return
        asked = None
        try:
            asked = frames.read(data, json=text)
            self._take(asked, now)
        except Wrong as wrong:
            self.tell(frames.refusal(wrong.error, wrong.request_id, wrong.match_id))
        except Error as fault:
            assert asked is not None
            self.tell(frames.refusal(fault, asked.request_id, asked.match_id))
        except Exception as fault:  # the last resort, as REST has one
            _log.error("unforeseen", exc_info=fault)
            self.end(1011, "something went wrong here")

    def _take(self, asked: Asked, now: float) -> None:
        if asked.game is not None:
            self._admit(len(asked.wire))
            if asked.kind == "move":
                assert self._caller is not None
                self._live.throttle.move(self._caller.player)
            held = self._attachments.get(asked.game.id)
            if asked.kind == "watch" and (held is None or asked.match_id not in held[1].watches):
                self._admit_watch()
            if held is None:
                held = self._attachments[asked.game.id] = (asked.game, self._live.relay.attach(asked.game, self))
            held[1].ask(asked, now)
            self._unanswered += 1
            self._unanswered_bytes += len(asked.wire)
        elif asked.kind == "pong":
            if self._line.answered(asked.body.nonce, now):
                self._measured()
        elif asked.kind == "ping":
            self.tell(frames.pack(live_pb2.Pong(nonce=asked.body.nonce)))
        else:
            self._admit(len(asked.wire))
            self._unanswered += 1
            self._unanswered_bytes += len(asked.wire)
            self._start(self._authenticate(asked))

    def _admit(self, size: int) -> None:
        if self._unanswered >= self._limits.requests or self._unanswered_bytes + size > self._limits.request_bytes:
            raise Throttled("TOO_MANY_REQUESTS", f"at most {self._limits.requests} requests wait for their answers")

    def _admit_watch(self) -> None:
        if sum(len(attachment.watches) for _, attachment in self._attachments.values()) >= self._limits.watches:
            raise Throttled("TOO_MANY_WATCHES", f"a socket watches at most {self._limits.watches} matches")

    def _measured(self) -> None:
        took = self._line.milliseconds
        if took is not None and (self.round_trip_ms is None or abs(took - self.round_trip_ms) >= 1):
            self.round_trip_ms = round(took)
            for game, attachment in self._attachments.values():
                if game.real_time:
                    attachment.measured()

    async def _authenticate(self, asked: Asked) -> None:
        token = asked.body.access_token
        try:
            if not _TOKEN.fullmatch(token):
                raise Unauthenticated("TOKEN_INVALID", "the access token is malformed")
            caller = await self._live.identity.caller(f"Bearer {token}")
            assert self._caller is not None
            if caller.player != self._caller.player:
                raise Forbidden("ANOTHER_PLAYER", "the token is another player's; a socket is one player's")
            self.token, self._caller = token, caller
            self._expires()
            for _, attachment in self._attachments.values():
                attachment.renew()
            self.tell(frames.pack(live_pb2.Result(request_id=asked.request_id)))
        except Error as fault:
            self.tell(frames.refusal(fault, asked.request_id))
        finally:
            self.answered(len(asked.wire))

    # What the relay and the socket itself send.

    def tell(self, frame: Frame) -> None:
        """Takes a frame to be sent; never waits."""
        if self.ended.is_set():
            return
        if not self._out:
            self._live.flush_soon(self)
        self._out.append(frame)

    def answered(self, size: int) -> None:
        """A request of this size has its answer."""
        self._unanswered -= 1
        self._unanswered_bytes -= size

    def flush(self) -> None:
        """Sends what there is, as one message unless that would be a large one."""
        if not self._out or self.ended.is_set():
            return
        out, self._out = self._out, []
        for together in frames.messages(out):
            try:
                data = frames.text(together) if self._json else frames.binary(together)
            except Exception as fault:  # what a service sent is no ServerFrame
                _log.error("frame cannot be written", exc_info=fault)
                self.end(1011, "something went wrong here")
                return
            waiting = self._link.waiting()
            if waiting and waiting + len(data) > self._limits.waiting_bytes:
                self._cut()
                return
            self._written += self._link.write(data, text=self._json)

    def _cut(self) -> None:
        metrics.SLOW_READERS.inc()
        self._out.clear()
        self.end(LATER, "too slow a reader")

    def end(self, code: int, reason: str, frame: Frame | None = None) -> None:
        """Closes, after a last frame."""
        if self.ended.is_set():
            return
        if frame is not None:
            self.tell(frame)
        self.flush()
        self._link.end(code, reason)
        self.over()

    def over(self) -> None:
        """Nothing can be sent any more."""
        if self.ended.is_set():
            return
        self.ended.set()
        for timer in self._timers.values():
            timer.cancel()
        for task in self._work:
            task.cancel()
        for game, attachment in self._attachments.values():
            self._live.relay.detach(game.id, attachment)
        self._attachments.clear()
        self._out.clear()


class Following:
    """What a socket knows of its player's rooms and tickets.

    Args:
        tell: tells the player of one, as it has become.
    """

    def __init__(self, told: Mapping[Kind, Told], player: str, tell: Callable[[Any], None]) -> None:
        self._told = told
        self._player = player
        self._tell = tell
        self._heard = asyncio.Event()
        # What there is news of, in the order in which it came.
        self._fresh: dict[tuple[Kind, str], None] = {}
        # What is live, each in the state that was told, or that it was in when the socket came.
        self._known: dict[tuple[Kind, str], object] = {}
        self._began = False
        self._doubted = False

    def hear(self, news: tuple[Kind, str] | None) -> None:
        """Satisfies `news.Hear`."""
        if news is None:
            self._doubted = True
        else:
            self._fresh[news] = None
        self._heard.set()

    async def run(self, look_seconds: float) -> None:
        """Reads what there is news of, and looks at what waits, until it is cancelled.

        Raises:
            Error: something cannot be read now. It is not forgotten.
        """
        loop = asyncio.get_running_loop()
        looked = loop.time()
        while True:
            if not (self._fresh or self._doubted):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(looked + look_seconds if self._known else None):
                        await self._heard.wait()
            self._heard.clear()
            if loop.time() >= looked + look_seconds:
                looked = loop.time()
                self._fresh |= dict.fromkeys(self._known)
            if self._doubted:
                await self._doubt()
            for named in list(self._fresh):
                await self._read(named)

    async def _doubt(self) -> None:
        """News may have been lost; or the socket has just come, and learns what there is without telling it."""
        self._doubted = False
        try:
            if self._began:
                self._fresh |= dict.fromkeys(self._known)
            for kind, told in self._told.items():
                for name in await told.live(self._player):
                    if self._began:
                        self._fresh[kind, name] = None
                        continue
                    state = _state(await told.read(self._player, name))
                    if (kind, name) not in self._fresh:  # else it is news by now
                        self._known[kind, name] = state
            self._began = True
        except Error:
            self._doubted = True
            raise

    async def _read(self, named: tuple[Kind, str]) -> None:
        kind, name = named
        del self._fresh[named]  # first: what is heard from here on is newer than what is read
        try:
            message = await self._told[kind].read(self._player, name)
        except Error:
            self._fresh[named] = None
            raise
        state = _state(message)
        if message is not None and self._known.get(named) != state:
            self._tell(message)
        if _is_over(message, self._player):
            self._known.pop(named, None)
        else:
            self._known[named] = state
            while len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]


def _is_over(message: gateway_pb2.Room | gateway_pb2.Ticket | None, player: str) -> bool:
    """Whether there is nothing more for a player to hear of it."""
    if isinstance(message, gateway_pb2.Room):
        return all(member.player != player for member in message.members)
    return message is None or message.status not in (gateway_pb2.Ticket.WAITING, gateway_pb2.Ticket.FORMING)


def _state(message: gateway_pb2.Room | gateway_pb2.Ticket | None) -> object:
    """What tells one state of a room or a ticket from the next."""
    if isinstance(message, gateway_pb2.Room):
        return message.version
    return None if message is None else message.status


def _token(offered: list[str], headers: Headers) -> str:
    """Returns the access token of a handshake.

    Raises:
        Unauthenticated: TOKEN_MISSING, TOKEN_INVALID.
    """
    tokens = [each[len(_BEARER) :] for each in offered if each.startswith(_BEARER)]
    if not tokens and (authorization := headers.get("authorization")) is not None:
        scheme, _, token = authorization.partition(" ")
        tokens = [token.strip()] if scheme.lower() == "bearer" else []
    if not tokens:
        raise Unauthenticated(
            "TOKEN_MISSING", f"offer the subprotocol {_BEARER}<access token>, or send authorization: Bearer <access token>"
        )
    if len(tokens) > 1 or not _TOKEN.fullmatch(tokens[0]):
        raise Unauthenticated("TOKEN_INVALID", "the access token is malformed")
    return tokens[0]
