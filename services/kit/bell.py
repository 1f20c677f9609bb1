"""Bells: how a process hears of what was stored, whichever process stored it.

One connection for all, one subscription a channel. A bell may be lost, so it is never the truth: whoever cannot be sure to have heard
everything is told to read what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import structlog
from redis.exceptions import RedisError

from services.kit.errors import Unavailable
from services.kit.storage import CALL_SECONDS, Storage

_POLL_SECONDS = 5.0
_AGAIN_SECONDS = 0.2

log = structlog.get_logger(__name__)


class Ear(Protocol):
    """Who listens to a channel. It must not wait: it is called while bells are heard."""

    def hear(self, message: bytes) -> None:
        """Hears what was published."""

    def doubt(self) -> None:
        """Is told that bells may have been lost, or that this process is about to stop: what is stored says what there is."""


class Bells:
    """Every channel that somebody in this process listens to. `run` alone makes the connection, and makes it anew when it is lost.

    Attributes:
        draining: whether this process is about to stop.
    """

    def __init__(self, storage: Storage) -> None:
        self.draining = False
        self._storage = storage
        self._ears: dict[str, dict[Ear, asyncio.Event]] = {}
        # Channels whose subscription was confirmed on the connection there is.
        self._confirmed: set[str] = set()
        self._wanted = asyncio.Event()
        self._lock = asyncio.Lock()
        self._pubsub: Any = None

    @asynccontextmanager
    async def listen(self, channel: str, ear: Ear) -> AsyncIterator[None]:
        """Listens to a channel. From the first `doubt` on, no bell is missed without another.

        Raises:
            Unavailable: no connection to Redis can be had now.
        """
        subscribed = asyncio.Event()
        ears = self._ears.setdefault(channel, {})
        ears[ear] = subscribed
        self._wanted.set()
        try:
            try:
                async with asyncio.timeout(CALL_SECONDS):
                    if channel in self._confirmed:
                        ear.doubt()
                    else:
                        await self._send("ssubscribe", channel)
                        await subscribed.wait()
            except TimeoutError as fault:
                raise Unavailable("STORAGE_UNAVAILABLE", "the storage does not answer; try again") from fault
            yield
        finally:
            del ears[ear]
            if not ears and self._ears.get(channel) is ears:
                del self._ears[channel]
                self._confirmed.discard(channel)
                await asyncio.shield(self._send("sunsubscribe", channel))

    def drain(self) -> None:
        """Has every ear look up, to find that this process is about to stop."""
        self.draining = True
        for ears in self._ears.values():
            for ear in ears:
                ear.doubt()

    async def run(self) -> None:
        """Hears bells until cancelled. Whenever the connection was lost, everybody is told to doubt."""
        while True:
            await self._wanted.wait()
            pinged = False
            try:
                while await self._connected():
                    message = await self._pubsub.get_message(timeout=_POLL_SECONDS)
                    if message is not None:
                        pinged = False
                        self._hear(message)
                    elif pinged:
                        raise ConnectionError("the connection for bells has gone silent")
                    else:
                        # Here, and by nobody else: redis-py's own health check reads the connection from wherever it is sent something.
                        async with asyncio.timeout(CALL_SECONDS):
                            await self._pubsub.ping()
                        pinged = True
            except (RedisError, OSError) as fault:
                log.warning("bells_lost", error=str(fault))
            except Exception:
                # What redis-py raises where its connection breaks between a read and a write, or a bell that nobody can read.
                log.exception("bells_lost")
            finally:
                await self._disconnect()
            if self._ears:
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _connected(self) -> bool:
        """Whether there is a connection to hear from; makes it as soon as somebody listens."""
        if self._pubsub is None:
            async with self._lock:
                if not self._ears:
                    self._wanted.clear()
                    return False
                self._pubsub = self._storage.pubsub()
                async with asyncio.timeout(CALL_SECONDS):
                    for channel in list(self._ears):
                        await self._pubsub.ssubscribe(channel)
        return True

    async def _disconnect(self) -> None:
        async with self._lock:
            self._confirmed.clear()
            if self._pubsub is not None:
                await self._pubsub.aclose()
                self._pubsub = None

    async def _send(self, command: str, channel: str) -> None:
        """Subscribes or unsubscribes, where there is a connection; else `run` subscribes to whatever is listened to when it has one."""
        async with self._lock:
            if self._pubsub is None or (command == "sunsubscribe" and channel in self._ears):
                return
            for _ in range(2):
                try:
                    async with asyncio.timeout(CALL_SECONDS):
                        await getattr(self._pubsub, command)(channel)
                    return
                except (RedisError, OSError, RuntimeError) as fault:
                    # redis-py has connected anew meanwhile, or `run` will; RuntimeError is uvloop's word for a connection that is closed.
                    self._confirmed.clear()
                    log.warning("bells_lost", error=str(fault))

    def _hear(self, message: dict[str, Any]) -> None:
        if message["type"] == "pong":
            return
        channel = message["channel"].decode()
        ears = self._ears.get(channel, {})
        match message["type"]:
            case "smessage":
                for ear in ears:
                    ear.hear(message["data"])
            case "sunsubscribe":
                self._confirmed.discard(channel)
            case "ssubscribe" if ears and channel not in self._confirmed:
                # For the first time, or again after a lost connection.
                self._confirmed.add(channel)
                for ear, subscribed in ears.items():
                    subscribed.set()
                    ear.doubt()
