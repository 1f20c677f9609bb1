"""Bells: how a process hears of what was stored, whichever process stored it.

One connection for all, or in a Redis Cluster one a master, and one subscription a channel. A bell may be lost, so it is never the truth:
whoever cannot be sure to have heard everything is told to read what is stored.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import structlog
from redis.exceptions import MovedError, RedisError

from services.kit.errors import Unavailable
from services.kit.storage import CALL_SECONDS, Storage
from services.kit.topology import Address

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
    """Every channel that somebody in this process listens to. `run` alone makes connections, and makes them anew when they are lost.

    Attributes:
        draining: whether this process is about to stop.
    """

    def __init__(self, storage: Storage) -> None:
        self.draining = False
        self._storage = storage
        self._ears: dict[str, dict[Ear, asyncio.Event]] = {}
        # Channels whose subscription was confirmed on the connection there is.
        self._confirmed: set[str] = set()
        self._homes: dict[str, _Line] = {}
        self._lines: dict[Address | None, _Line] = {}
        self._tasks: asyncio.TaskGroup | None = None
        storage.on_move(self._move)

    @asynccontextmanager
    async def listen(self, channel: str, ear: Ear) -> AsyncIterator[None]:
        """Listens to a channel. From the first `doubt` on, no bell is missed without another.

        Raises:
            Unavailable: no connection to Redis can be had now.
        """
        subscribed = asyncio.Event()
        ears = self._ears.setdefault(channel, {})
        ears[ear] = subscribed
        try:
            try:
                async with asyncio.timeout(CALL_SECONDS):
                    if channel in self._confirmed:
                        ear.doubt()
                    else:
                        if channel not in self._homes:
                            self._settle(channel, await self._storage.home(channel))
                        await self._homes[channel].send("ssubscribe", channel)
                        await subscribed.wait()
            except (RedisError, OSError) as fault:  # TimeoutError among them
                raise Unavailable("STORAGE_UNAVAILABLE", "the storage does not answer; try again") from fault
            yield
        finally:
            del ears[ear]
            if not ears and self._ears.get(channel) is ears:
                del self._ears[channel]
                self._confirmed.discard(channel)
                if (line := self._homes.pop(channel, None)) is not None:
                    line.channels.discard(channel)
                    await asyncio.shield(line.send("sunsubscribe", channel))

    def drain(self) -> None:
        """Has every ear look up, to find that this process is about to stop."""
        self.draining = True
        for ears in self._ears.values():
            for ear in ears:
                ear.doubt()

    async def run(self) -> None:
        """Hears bells until cancelled. Whenever a connection was lost, everybody who listened there is told to doubt."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for line in self._lines.values():
                line.task = tasks.create_task(line.run())
            await asyncio.Event().wait()

    def _settle(self, channel: str, home: Address | None) -> None:
        """Has a channel heard at its home from now on."""
        line = self._lines.get(home)
        if line is None:
            line = self._lines[home] = _Line(self, home)
            if self._tasks is not None:
                # It is nobody's request, though one was the first to need it.
                line.task = self._tasks.create_task(line.run(), context=contextvars.Context())
        self._homes[channel] = line
        line.channels.add(channel)
        line.wanted.set()

    def _move(self) -> None:
        """Has every channel heard where it is now, and ends what is left without any."""
        for channel, line in list(self._homes.items()):
            home = self._storage.known_home(channel)
            if home is not None and home != line.home:
                line.channels.discard(channel)
                self._confirmed.discard(channel)
                self._settle(channel, home)
                if self._tasks is not None:
                    self._tasks.create_task(line.send("sunsubscribe", channel))
                    self._tasks.create_task(self._homes[channel].send("ssubscribe", channel))
        homes = {self._storage.known_home(channel) for channel in self._homes}
        for home, line in list(self._lines.items()):
            if home not in homes and line.lost:
                del self._lines[home]
                if line.task is not None:
                    line.task.cancel()

    async def look_again(self) -> None:
        """Finds out where channels are now."""
        try:
            await self._storage.look_again()
        except (RedisError, OSError) as fault:
            log.warning("bells_lost", error=str(fault))

    def moved(self, told: MovedError) -> None:
        """Takes down that a channel is elsewhere."""
        self._storage.note(told)
        self._move()

    def pubsub(self, home: Address | None) -> Any:
        """A connection for a line."""
        return self._storage.pubsub(home)

    def silenced(self, channel: str) -> None:
        """Subscribes again to a channel that the server let go of, wherever it is now."""
        if self._tasks is not None:
            self._tasks.create_task(self._subscribe_again(channel))

    async def _subscribe_again(self, channel: str) -> None:
        await self.look_again()
        if (line := self._homes.get(channel)) is not None and channel not in self._confirmed:
            await line.send("ssubscribe", channel)

    def hear(self, line: _Line, message: dict[str, Any]) -> None:
        """Hears what came on a line."""
        if message["type"] == "pong":
            return
        channel = message["channel"].decode()
        if channel not in line.channels:
            return  # It has moved since, or nobody listens any more.
        ears = self._ears.get(channel, {})
        match message["type"]:
            case "smessage":
                for ear in ears:
                    ear.hear(message["data"])
            case "sunsubscribe":
                self._confirmed.discard(channel)
                if line.home is not None:
                    self.silenced(channel)
            case "ssubscribe" if ears and channel not in self._confirmed:
                # For the first time, or again after a lost connection.
                self._confirmed.add(channel)
                for ear, subscribed in ears.items():
                    subscribed.set()
                    ear.doubt()

    def doubt(self, line: _Line) -> None:
        """Forgets what was confirmed on a line that was lost."""
        self._confirmed -= line.channels


class _Line:
    """A connection to one Redis, and the channels that are there.

    Attributes:
        home: where it is, among several.
        channels: what is to be heard on it.
        wanted: set when there is something to be heard.
        lost: whether there is no connection.
        task: what runs it.
    """

    def __init__(self, bells: Bells, home: Address | None) -> None:
        self.home = home
        self.channels: set[str] = set()
        self.wanted = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._bells = bells
        self._lock = asyncio.Lock()
        self._pubsub: Any = None

    @property
    def lost(self) -> bool:
        return self._pubsub is None

    async def run(self) -> None:
        """Hears bells until cancelled."""
        while True:
            await self.wanted.wait()
            pinged = False
            try:
                while await self._connected():
                    try:
                        message = await self._pubsub.get_message(timeout=_POLL_SECONDS)
                    except MovedError as told:
                        self._bells.moved(told)
                        continue
                    if message is not None:
                        pinged = False
                        self._bells.hear(self, message)
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
            if self.channels:
                if self.home is not None:
                    await self._bells.look_again()
                await asyncio.sleep(_AGAIN_SECONDS)

    async def send(self, command: str, channel: str) -> None:
        """Subscribes or unsubscribes, where there is a connection; else `run` subscribes to whatever is listened to when it has one."""
        async with self._lock:
            if self._pubsub is None or (command == "sunsubscribe") is (channel in self.channels):
                return
            for _ in range(2):
                try:
                    async with asyncio.timeout(CALL_SECONDS):
                        await getattr(self._pubsub, command)(channel)
                    return
                except (RedisError, OSError, RuntimeError) as fault:
                    # redis-py has connected anew meanwhile, or `run` will; RuntimeError is uvloop's word for a connection that is closed.
                    self._bells.doubt(self)
                    log.warning("bells_lost", error=str(fault))

    async def _connected(self) -> bool:
        """Whether there is a connection to hear from; makes it as soon as somebody listens."""
        if self._pubsub is None:
            async with self._lock:
                if not self.channels:
                    self.wanted.clear()
                    return False
                self._pubsub = self._bells.pubsub(self.home)
                async with asyncio.timeout(CALL_SECONDS):
                    for channel in list(self.channels):
                        await self._pubsub.ssubscribe(channel)
        return True

    async def _disconnect(self) -> None:
        async with self._lock:
            self._bells.doubt(self)
            if self._pubsub is not None:
                await self._pubsub.aclose()
                self._pubsub = None
