"""The live socket, `WS /v1/live`: every match of a player over one connection.

A frame that comes in is read and put into the next write of a relay (`gateway.relay`), and one that a relay brings is put into the next
write of its sockets, each within one turn of the loop: no task and no queue on the way. Whoever does not read is cut off; nobody waits for
a socket.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Sequence
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
from gateway.protocol import SOCKET_PATH, WebSocket, link_of
from gateway.registry import Game
from gateway.relay import Attachment, Relay
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
    tick_seconds: float = 1.0
    watches: int = 64
    requests: int = 256
    request_bytes: int = 262_144


class Live:
    """The resource `live`. Open it where the event loop runs: `async with live`.

    Args:
        draining: set when this process is about to stop.
    """

    def __init__(self, relay: Relay, identity: Identity, draining: asyncio.Event, limits: Limits) -> None:
        self.relay = relay
        self.identity = identity
        self.limits = limits
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
