"""Bells: how a replica hears of commits, wherever they were made.

One connection and one subscription a match a replica, however many watch. A bell carries the new entries; it may be lost, so it is never
the truth: a listener that cannot be sure to have heard everything is told to read the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog
from redis.exceptions import RedisError

from services.kit.errors import Unavailable
from services.kit.sessions import Bell, read_bell
from services.kit.storage import CALL_SECONDS, Storage

_QUEUED = 64
_POLL_SECONDS = 5.0
_AGAIN_SECONDS = 0.2

log = structlog.get_logger(__name__)


class Listener:
    """One watcher's ear for one match."""

    def __init__(self, draining: asyncio.Event) -> None:
        self._rings: asyncio.Queue[Bell | None] = asyncio.Queue(_QUEUED)
        self._draining = draining
        self.subscribed = asyncio.Event()

    async def next(self, timeout: float) -> Bell | None:
        """The next bell; None when the stream must be read instead: after `timeout` seconds of silence, or when bells may have been lost.

        Raises:
            Unavailable: this replica is about to stop (DRAINING).
        """
        bell = None
        if not self._draining.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    bell = await self._rings.get()
        if self._draining.is_set():
            raise Unavailable("DRAINING", "this replica is about to stop; go on elsewhere with the last cursor", retry_after=0)
        return bell

    def ring(self, bell: Bell) -> None:
        """Hands over a bell. A listener too slow for its queue reads the stream instead."""
        try:
            self._rings.put_nowait(bell)
        except asyncio.QueueFull:
            self.doubt()

    def doubt(self) -> None:
        """Says that bells may have been lost."""
        while not self._rings.empty():
            self._rings.get_nowait()
        self._rings.put_nowait(None)


class Bells:
    """Every bell that somebody on this replica listens for. `run` alone makes the connection, and makes it anew when it is lost."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._listeners: dict[str, set[Listener]] = {}
        # Channels whose subscription was confirmed on the connection there is.
        self._confirmed: set[str] = set()
        self._wanted = asyncio.Event()
        self._draining = asyncio.Event()
        self._lock = asyncio.Lock()
        self._pubsub: Any = None

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[Listener]:
        """Listens to a channel. Once `subscribed` is set, no bell is missed without a doubt.

        Raises:
            Unavailable: no connection to Redis can be had now.
        """
        listener = Listener(self._draining)
        listeners = self._listeners.setdefault(channel, set())
        listeners.add(listener)
        self._wanted.set()
        try:
            try:
                async with asyncio.timeout(CALL_SECONDS):
                    if channel in self._confirmed:
                        listener.subscribed.set()
                    else:
                        await self._send("ssubscribe", channel)
                        await listener.subscribed.wait()
            except TimeoutError as fault:
                raise Unavailable("STORAGE_UNAVAILABLE", "the storage does not answer; try again") from fault
            yield listener
        finally:
            listeners.discard(listener)
            if not listeners and self._listeners.get(channel) is listeners:
                del self._listeners[channel]
                self._confirmed.discard(channel)
                await asyncio.shield(self._send("sunsubscribe", channel))

    def drain(self) -> None:
        """Sends every listener away."""
        self._draining.set()
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.doubt()

    async def run(self) -> None:
        """Hears bells until cancelled. Whenever the connection was lost, everybody is told to doubt."""
        while True:
            await self._wanted.wait()
            try:
                while await self._connected():
                    async with asyncio.timeout(_POLL_SECONDS + CALL_SECONDS):
                        message = await self._pubsub.get_message(timeout=_POLL_SECONDS)
                    if message is not None:
                        self._hear(message)
            except (RedisError, OSError) as fault:
                log.warning("bells_lost", error=str(fault))
            except Exception:
                # What redis-py raises where its connection breaks between a read and a write, or a bell that nobody can read.
                log.exception("bells_lost")
            finally:
                await self._disconnect()
            if self._listeners:
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _connected(self) -> bool:
        """Whether there is a connection to hear from; makes it as soon as somebody listens."""
        if self._pubsub is None:
            async with self._lock:
                if not self._listeners:
                    self._wanted.clear()
                    return False
                self._pubsub = self._storage.pubsub()
                async with asyncio.timeout(CALL_SECONDS):
                    for channel in list(self._listeners):
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
            if self._pubsub is None or (command == "sunsubscribe" and channel in self._listeners):
                return
            for _ in range(2):
                try:
                    async with asyncio.timeout(CALL_SECONDS):
                        await getattr(self._pubsub, command)(channel)
                    return
                except (RedisError, OSError) as fault:
                    # redis-py has connected anew meanwhile, or `run` will.
                    self._confirmed.clear()
                    log.warning("bells_lost", error=str(fault))

    def _hear(self, message: dict[str, Any]) -> None:
        channel = message["channel"].decode()
        listeners = self._listeners.get(channel, ())
        match message["type"]:
            case "smessage":
                bell = read_bell(message["data"])
                for listener in listeners:
                    listener.ring(bell)
            case "sunsubscribe":
                self._confirmed.discard(channel)
            case "ssubscribe" if listeners and channel not in self._confirmed:
                # For the first time, or again after a lost connection.
                self._confirmed.add(channel)
                for listener in listeners:
                    listener.subscribed.set()
                    listener.doubt()
