"""Private tables. One is opened by `Table.create_room`; whoever has its code may come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from gloaming.client.connection import Connection, ProblemError
from gloaming.client.live import Live
from gloaming.gateway.v1 import gateway_pb2

# News of a room come by the live socket; it is looked at this often besides, for who is not in it hears none.
_LOOK_SECONDS = 5.0


class Rooms:
    """The rooms that there are, by their codes. Get them from `Client.rooms`.

    Every verb answers the room as it is then; its `options` are bytes of the game's own message. Refusals are `ProblemError`s: 404
    (ROOM_NOT_FOUND), 403 (NOT_THE_HOST, NOT_A_MEMBER, KICKED), 422 (ROOM_FULL, ROOM_STARTED, …).
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, code: str) -> gateway_pb2.Room:
        """Returns a room as it is now; to look at one, one need not be in it."""
        return await self._connection.send("GET", f"/v1/rooms/{code}", gateway_pb2.Room)

    async def join(self, code: str) -> gateway_pb2.Room:
        """Joins a room."""
        return await self._do(code, "join")

    async def leave(self, code: str) -> gateway_pb2.Room:
        """Leaves it. The next one who came is host then; the last one's leaving ends it."""
        return await self._do(code, "leave")

    async def ready(self, code: str, ready: bool = True) -> gateway_pb2.Room:
        """Says whether one is ready for the match."""
        return await self._do(code, "ready", {"ready": ready})

    async def kick(self, code: str, player: str) -> gateway_pb2.Room:
        """Sends a player out for good; for the host."""
        return await self._do(code, "kick", {"player": player})

    async def add_bot(self, code: str) -> gateway_pb2.Room:
        """Adds a bot; for the host."""
        return await self._do(code, "addBot")

    async def remove_bot(self, code: str) -> gateway_pb2.Room:
        """Removes the bot that was added last; for the host."""
        return await self._do(code, "removeBot")

    async def start(self, code: str) -> gateway_pb2.Room:
        """Has the match made, once everybody is ready; for the host. The room's `match_id` says which it is."""
        return await self._do(code, "start")

    async def watch(self, code: str) -> AsyncGenerator[gateway_pb2.Room, None]:
        """Yields a room now and whenever it has changed, until its match is there or it has ended."""
        told = -1
        async with Live(self._connection) as live:
            news = live.rooms()
            coming = asyncio.ensure_future(anext(news))
            try:
                while True:
                    try:
                        room = await self.get(code)
                    except ProblemError as problem:
                        if problem.status == 404 and told >= 0:
                            return
                        raise
                    if room.version > told:
                        told = room.version
                        yield room
                    if room.status == gateway_pb2.Room.STARTED:
                        return
                    await asyncio.wait({coming}, timeout=_LOOK_SECONDS)
                    if coming.done():
                        coming.result()
                        coming = asyncio.ensure_future(anext(news))
            finally:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
                await news.aclose()

    async def _do(self, code: str, verb: str, body: Mapping[str, Any] | None = None) -> gateway_pb2.Room:
        return await self._connection.send("POST", f"/v1/rooms/{code}:{verb}", gateway_pb2.Room, body=body or {})
