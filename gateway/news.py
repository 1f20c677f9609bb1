"""News: how the gateways hear that something of a player's has changed, a room or a ticket, whichever gateway changed it.

What is published names the thing and no more; whoever hears it reads what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Literal, TypeAlias

from services.kit.bell import Bells
from services.kit.storage import Storage

Kind: TypeAlias = Literal["room", "ticket"]
# Hears that a player's room or ticket of this id has changed; or, with nothing, that any may have: then all are to be read again.
Hear: TypeAlias = Callable[[tuple[Kind, str] | None], None]


class News:
    """What becomes of players' rooms and tickets. Open it where the event loop runs: `async with news`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._bells = Bells(storage)
        self._hearing: asyncio.Task[None] | None = None

    async def tell(self, players: Iterable[str], kind: Kind, name: str) -> None:
        """Tells whoever listens to one of these players, on every gateway, after the change was stored.

        Raises:
            Unavailable: STORAGE_UNAVAILABLE.
        """
        for player in players:
            await self._storage.call(self._storage.redis.spublish(_channel(player), f"{kind} {name}"))

    @asynccontextmanager
    async def listen(self, player: str, hear: Hear) -> AsyncIterator[None]:
        """Listens to a player's news. `hear` must not wait; it is told None at once: what is read from then on cannot change unheard.

        Raises:
            Unavailable: STORAGE_UNAVAILABLE.
        """
        async with self._bells.listen(_channel(player), _Ear(hear)):
            yield

    async def __aenter__(self) -> News:
        self._hearing = asyncio.create_task(self._bells.run())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._hearing is not None:
            self._hearing.cancel()
            await asyncio.gather(self._hearing, return_exceptions=True)


class _Ear:
    """Satisfies `bell.Ear`."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear

    def hear(self, message: bytes) -> None:
        kind, _, name = message.decode().partition(" ")
        self._hear(("room" if kind == "room" else "ticket", name))

    def doubt(self) -> None:
        self._hear(None)


def _channel(player: str) -> str:
    return f"gateway:{{{player}}}:news"
