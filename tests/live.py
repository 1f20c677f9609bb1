"""A client of the live socket, in both subprotocols: it sends and gets the protobuf messages, whatever goes over the line."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from google.protobuf.message import Message
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from gateway import transcoding
from gloaming.live.v1 import live_pb2

JSON, PROTO = Subprotocol("gloaming.v1.json"), Subprotocol("gloaming.v1.proto")
BOTH = (JSON, PROTO)
SECONDS = 10.0


class Closed(AssertionError):
    """The socket was closed while something was waited for."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"closed: {code} {reason}")
        self.code = code
        self.reason = reason


class Socket:
    """A socket.

    Attributes:
        answers_pings: whether it answers the server's pings, as clients must.
        pings: the nonces of the server's pings so far.
        frames: how many messages came with each frame.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.answers_pings = True
        self.pings: list[str] = []
        self.frames: list[int] = []
        self._json = connection.subprotocol == JSON
        self._ids = map(str, itertools.count(1))
        self._inbox: list[live_pb2.ServerMessage] = []
        self._came = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for data in self.connection:
                assert isinstance(data, str) is self._json
                frame = read(data)
                self.frames.append(len(frame.messages))
                for message in frame.messages:
                    if message.HasField("ping"):
                        self.pings.append(message.ping.nonce)
                        if self.answers_pings:
                            await self.send(pong=live_pb2.Pong(nonce=message.ping.nonce))
                    else:
                        async with self._came:
                            self._inbox.append(message)
                            self._came.notify_all()
        except ConnectionClosed:
            pass
        finally:
            async with self._came:
                self._came.notify_all()

    async def send(self, **fields: Any) -> None:
        """Sends a frame."""
        frame = live_pb2.ClientFrame(**fields)
        await self.connection.send(transcoding.render(frame).decode() if self._json else frame.SerializeToString())

    async def ask(self, request_id: str | None = None, **fields: Any) -> str:
        """Sends a request, and returns its id."""
        request_id = next(self._ids) if request_id is None else request_id
        await self.send(request_id=request_id, **fields)
        return request_id

    async def watch(self, match_id: str, after: str = "", **more: Any) -> live_pb2.ServerMessage:
        """Watches a match, and returns what that was answered."""
        return await self.answer(await self.ask(watch=live_pb2.Watch(match_id=match_id, after=after), **more))

    async def unwatch(self, match_id: str, **more: Any) -> live_pb2.ServerMessage:
        """Watches a match no longer."""
        return await self.answer(await self.ask(unwatch=live_pb2.Unwatch(match_id=match_id), **more))

    async def move(self, match_id: str, move: Message, request_id: str | None = None, **more: Any) -> live_pb2.ServerMessage:
        """Plays a move, and returns what that was answered."""
        packed = live_pb2.Move(match_id=match_id, move=move.SerializeToString(), **more)
        return await self.answer(await self.ask(request_id, move=packed))

    async def authenticate(self, token: str) -> live_pb2.ServerMessage:
        """Goes on with another token."""
        return await self.answer(await self.ask(authenticate=live_pb2.Authenticate(access_token=token)))

    async def answer(self, request_id: str, seconds: float = SECONDS) -> live_pb2.ServerMessage:
        """The result or problem of a request."""
        return await self.take(
            lambda m: _kind(m).request_id == request_id if m.WhichOneof("kind") in ("result", "problem") else False, seconds
        )

    async def next(self, *kinds: str, seconds: float = SECONDS) -> Any:
        """The next message of one of these kinds; earlier ones of others stay."""
        return _kind(await self.take(lambda message: message.WhichOneof("kind") in kinds, seconds))

    async def take(self, fits: Any, seconds: float = SECONDS) -> live_pb2.ServerMessage:
        """Takes the first message that fits.

        Raises:
            Closed: none came before the socket was closed.
        """
        async with asyncio.timeout(seconds), self._came:
            while True:
                for index, message in enumerate(self._inbox):
                    if fits(message):
                        return self._inbox.pop(index)
                if self._reading.done() or self.connection.close_code is not None:
                    raise Closed(self.connection.close_code or 1006, self.connection.close_reason or "")
                await self._came.wait()

    def inbox(self) -> list[Any]:
        """What has come and was not taken yet."""
        return [_kind(message) for message in self._inbox]

    async def closed(self, seconds: float = SECONDS) -> tuple[int, str]:
        """Waits until the server has closed it, and returns code and reason."""
        async with asyncio.timeout(seconds):
            await asyncio.wait({self._reading})
            await self.connection.wait_closed()
        return self.connection.close_code or 1006, self.connection.close_reason or ""

    async def close(self) -> None:
        """Closes it."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self.connection.close()


def _kind(message: live_pb2.ServerMessage) -> Any:
    return getattr(message, str(message.WhichOneof("kind")))


def read(data: str | bytes) -> live_pb2.ServerFrame:
    """Reads a server's frame of either subprotocol."""
    return transcoding.parse(data.encode(), live_pb2.ServerFrame) if isinstance(data, str) else live_pb2.ServerFrame.FromString(data)


@asynccontextmanager
async def live(
    url: str, token: str | None, subprotocol: Subprotocol = PROTO, *, by_header: bool = False, **more: Any
) -> AsyncIterator[Socket]:
    """Opens a socket."""
    offered = [subprotocol]
    headers = {}
    if token is not None and by_header:
        headers["Authorization"] = f"Bearer {token}"
    elif token is not None:
        offered.append(Subprotocol(f"bearer.{token}"))
    connection = await connect(
        url, subprotocols=offered, additional_headers=headers, compression=None, proxy=None, ping_interval=None, close_timeout=1, **more
    )
    socket = Socket(connection)
    try:
        yield socket
    finally:
        await socket.close()
