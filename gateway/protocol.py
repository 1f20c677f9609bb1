"""HTTP/1.1 as the gateway reads it: uvicorn's h11 protocol, and a bound on how long a client takes to say what it wants.

Not httptools: of a head or trailers that never end it keeps all (nothing bounds them), it takes trailers for headers, and of a request that
offers another protocol (`Upgrade: h2c`) it takes the body for the next request.

A proper WebSocket handshake (RFC 6455, 4.2.1) at the one path that has sockets goes on as a `WebSocket`, uvicorn's protocol on the sans-I/O
part of the library websockets; any other request that offers a protocol is served as it is.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from collections.abc import Callable
from typing import Any

import h11
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from gateway import problems

# A head has at most so many bytes; so has a chunk's own, and the trailers.
HEAD_BYTES = 65_536
# So long may a head take, and the rest of a body that was answered already.
HEAD_SECONDS = 20.0
SOCKET_PATH = "/v1/live"
# A client's message has at most so many bytes.
MESSAGE_BYTES = 65_536
# A message comes in so many fragments at most.
FRAGMENTS = 256
# So long may the other side take to close, or what is sent first to go out; then the connection is cut.
CLOSE_SECONDS = 2.0
# A handshake's head is read again by the library, which takes less than we do.
_HANDSHAKE_HEADERS, _HANDSHAKE_LINE = 120, 8_000
_LINK = "gloaming.link"

# Both libraries would log heads and paths, where tokens could be.
_silent = logging.getLogger(f"{__name__}.silent")
_silent.setLevel(logging.CRITICAL + 1)
_silent.propagate = False


class Protocol(H11Protocol):
    """One connection."""

    _overdue: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for the first request, no longer than for any later one."""
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits for nothing any more."""
        self._unset_keepalive_if_required()
        self._wait_no_longer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads on, and waits for the rest of what was begun."""
        super().data_received(data)
        if not self._owes():
            self._wait_no_longer()
        elif self._overdue is None and not self.transport.is_closing():
            self._overdue = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no HTTP; in the middle of an answer there is no way to say so."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = problems.problem(400, "BAD_REQUEST", "the request is no HTTP/1.1, or its head is too large")
            headers = [*answer.raw_headers, (b"connection", b"close")]
            begin = h11.Response(status_code=400, reason=b"Bad Request", headers=headers)
            events: list[h11.Event] = [begin, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()]
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()

    def _should_upgrade(self) -> bool:
        """Whether a request is a handshake that we take."""
        given: dict[bytes, list[bytes]] = {}
        for name, value in self.headers:
            given.setdefault(name, []).append(value)
        words = {word.strip().lower() for value in given.get(b"connection", ()) for word in value.split(b",")}
        return (
            (self.scope["method"], self.scope["http_version"], self.scope["path"]) == ("GET", "1.1", SOCKET_PATH)
            and b"upgrade" in words
            and [value.lower() for value in given.get(b"upgrade", ())] == [b"websocket"]
            and given.get(b"sec-websocket-version") == [b"13"]
            and _is_key(given.get(b"sec-websocket-key", []))
            and given.keys().isdisjoint((b"content-length", b"transfer-encoding"))
            and len(self.headers) <= _HANDSHAKE_HEADERS
            and all(len(name) + len(value) <= _HANDSHAKE_LINE for name, value in self.headers)
            and len(self.scope["raw_path"]) + len(self.scope["query_string"]) <= _HANDSHAKE_LINE
        )

    def _owes(self) -> bool:
        """Whether the client has begun a head, or goes on with a body that was answered already."""
        if self.transport.get_protocol() is not self:
            return False  # it has become a socket
        if self.conn.their_state is h11.IDLE:
            return bool(self.conn.trailing_data[0])
        return self.conn.their_state is h11.SEND_BODY and self.cycle is not None and bool(self.cycle.response_complete)

    def _give_up(self) -> None:
        self._overdue = None
        if self._owes():
            self.transport.close()

    def _wait_no_longer(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None


def _is_key(values: list[bytes]) -> bool:
    try:
        return len(values) == 1 and len(base64.b64decode(values[0], validate=True)) == 16
    except binascii.Error:
        return False


class WebSocket(WebSocketsSansIOProtocol):
    """One connection that has become a socket.

    The handshake is ASGI's. Whoever accepts it takes over with `attach` before (`link_of`): from then on messages come and go without a
    task, a queue or an await.

    Attributes:
        heard: when anything was received last, by the monotonic clock.
        closed_with: the close code with which it ended or is about to, whoever closed; 1006 for a connection that was lost.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = _silent
        self.conn.logger = _silent
        self.conn.debug = False
        self.heard = time.monotonic()
        self.closed_with = 1006
        self._received: Callable[[bytes, bool], None] | None = None
        self._over: Callable[[], None] | None = None
        self._stopping: Callable[[], None] | None = None

    def attach(self, *, received: Callable[[bytes, bool], None], over: Callable[[], None], stopping: Callable[[], None]) -> None:
        """Takes over.

        Args:
            received: takes a message, and whether it is text (which is UTF-8 then).
            over: called once, as soon as nothing can be sent any more.
            stopping: called when the server is about to stop.
        """
        self._received, self._over, self._stopping = received, over, stopping

    def write(self, data: bytes, *, text: bool) -> int:
        """Sends a message, and returns how many bytes that took; what the other side does not take waits (`waiting`)."""
        # The other side's close may have been read already, and its turn not come yet.
        if self.close_sent or self.conn.state is not State.OPEN:
            return 0
        if text:
            self.conn.send_text(data)
        else:
            self.conn.send_binary(data)
        output = b"".join(self.conn.data_to_send())
        self.transport.write(output)
        return len(output)

    def waiting(self) -> int:
        """How many bytes the other side has not taken yet."""
        return self.transport.get_write_buffer_size()

    def end(self, code: int, reason: str) -> None:
        """Closes, behind what was sent; a connection that does not take it is cut soon."""
        if self.close_sent or self.conn.state is not State.OPEN:
            return
        self.conn.send_close(code, reason)
        self._closing(code)

    def handle_connect(self, event: Any) -> None:
        """Begins the handshake."""
        super().handle_connect(event)
        if not self.handshake_complete:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[_LINK] = self

    def data_received(self, data: bytes) -> None:
        """Reads on."""
        self.heard = time.monotonic()
        if self.conn.parser_exc is not None:
            return  # the rest of what was wrong
        super().data_received(data)
        if not self.handshake_initiated:
            self.transport.close()

    def handle_cont(self, event: Any) -> None:
        """Takes a fragment; so many of them make no message that anybody sends."""
        if len(self.frames) >= FRAGMENTS:
            self.end(1009, "too many fragments")
            return
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Hands over a message."""
        if self._received is None:
            super().send_receive_event_to_app()
            return
        data = self.frames[0] if len(self.frames) == 1 else b"".join(self.frames)
        self.frames = []
        if self.close_sent or self.transport.is_closing():
            return
        text = self.curr_msg_data_type == "text"
        if text:
            try:
                data.decode()
            except UnicodeDecodeError:
                self.end(1007, "text is UTF-8")
                return
        self._received(data, text)

    def handle_ping(self) -> None:
        """Answers a ping of the protocol's own, unless the other side does not read the answers."""
        output = b"".join(self.conn.data_to_send())
        if self.waiting() <= MESSAGE_BYTES:
            self.transport.write(output)

    def handle_close(self, event: Any) -> None:
        """The other side closes, or takes our close."""
        if not self.close_sent and not self.transport.is_closing():
            assert self.conn.close_rcvd is not None
            self._closing(self.conn.close_rcvd.code)
        self.transport.close()

    def handle_parser_exception(self) -> None:
        """The other side does not keep to the protocol, or sends more than we take; the library has found the code."""
        if not self.close_sent:
            self._closing(self.conn.close_sent.code if self.conn.close_sent is not None else 1002)

    def _closing(self, code: int) -> None:
        """Writes a close, and waits for the other side: it may still be sending, and would lose the close with a connection cut at once."""
        self.closed_with = code
        self.close_sent = True
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_timer = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)
        self._ended()

    def shutdown(self) -> None:
        """The server stops."""
        if self._stopping is not None:
            self._stopping()
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more comes or goes."""
        super().connection_lost(exc)
        self._ended()

    def _ended(self) -> None:
        over, self._over = self._over, None
        if over is not None:
            over()


def link_of(scope: Scope) -> WebSocket | None:
    """Returns the connection of a scope of type `websocket`."""
    link: WebSocket | None = scope["extensions"].get(_LINK)
    return link
