"""HTTP/1.1 as the gateway reads it: uvicorn's h11 protocol, and a bound on how long a client takes to say what it wants.

Not httptools: of a head or trailers that never end it keeps all (nothing bounds them), it takes trailers for headers, and of a request that
offers another protocol (`Upgrade: h2c`) it takes the body for the next request.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from gateway import problems

# A head has at most so many bytes; so has a chunk's own, and the trailers.
HEAD_BYTES = 65_536
# So long may a head take, and the rest of a body that was answered already.
HEAD_SECONDS = 20.0


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

    def _owes(self) -> bool:
        """Whether the client has begun a head, or goes on with a body that was answered already."""
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
