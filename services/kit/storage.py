"""Redis, reached through Lua: one script a verb, one place where its faults are handled.

A script lives in a `lua/` folder beside the module that calls it. Its header says what KEYS, ARGV and its answer are. Faults come out as
`errors.Unavailable`; a script that the server forgot (SCRIPT FLUSH, restart, failover) is sent again. Scripts of many callers share round
trips: see `_Lane`.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import hiredis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.exceptions import (
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    NoScriptError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError,
)

from services.kit import metrics
from services.kit.errors import Unavailable

Argument: TypeAlias = str | bytes | int
T = TypeVar("T")

# A call gives up after so many seconds; whoever waits for a move gets UNAVAILABLE and asks again under the same request id.
CALL_SECONDS = 3.0
# More calls at once wait for each other: Redis answers one at a time anyway.
_CONNECTIONS = 128
# So many commands at most go along in one round trip.
_AT_ONCE = 256
# A round trip that broke is made anew so often, after a pause that grows up to the longest: every script here may run twice and does its
# work once.
_TRIES, _PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 3, 0.05, 0.5
# What Redis says first when it cannot serve now, and it may pass: memory or disk is full, master or replicas are lost, it is busy, or it is
# not set up yet to let anybody in.
_PASSING = {"OOM", "MISCONF", "NOREPLICAS", "MASTERDOWN", "TRYAGAIN", "UNBLOCKED", "BUSY", "DENIED"}


class Script:
    """A Lua script, known to the server by its SHA-1.

    Args:
        path: the file. Its name is the verb.
    """

    def __init__(self, path: Path) -> None:
        self.verb = path.stem
        self.seconds = metrics.STORAGE_SECONDS.labels(self.verb)
        self.source = path.read_text()
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()


class Storage:
    """A Redis client whose faults are typed.

    Args:
        url: `redis://`, `rediss://` or `unix://`.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        pool = redis.asyncio.BlockingConnectionPool.from_url(
            url,
            retry=Retry(ExponentialWithJitterBackoff(base=_PAUSE_SECONDS, cap=_LONGEST_PAUSE_SECONDS), retries=_TRIES - 1),
            retry_on_error=[ReadOnlyError, BusyLoadingError],
            # `call` sets the bound. With this one redis-py sends through asyncio.wait_for, which in Python 3.11 may swallow a cancellation.
            socket_timeout=None,
            health_check_interval=15,
            max_connections=_CONNECTIONS,
            timeout=CALL_SECONDS,
        )
        self.redis = redis.asyncio.Redis.from_pool(pool)
        self._lane = _Lane(pool)

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Runs a script and returns its answer, bulk strings as bytes.

        Raises:
            Unavailable: Redis does not answer, or cannot write now (STORAGE_UNAVAILABLE).
        """
        began = time.perf_counter()
        try:
            with _typed_faults():
                return await self._evaluate(script, keys, args)
        finally:
            script.seconds.observe(time.perf_counter() - began)

    async def call(self, command: Awaitable[T]) -> T:
        """Awaits any command, its faults typed as in `run`."""
        with _typed_faults():
            # All tries together, and those of connecting.
            async with asyncio.timeout(CALL_SECONDS):
                return await command

    async def get(self, key: str) -> bytes | None:
        """Returns the value at a key. Raises as `run`."""
        with _typed_faults():
            value: bytes | None = await self._lane.ask("GET", key)
        return value

    async def fields(self, key: str, *names: str) -> list[bytes | None]:
        """Returns fields of the hash at a key. Raises as `run`."""
        with _typed_faults():
            values: list[bytes | None] = await self._lane.ask("HMGET", key, *names)
        return values

    async def _evaluate(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        try:
            return await self._lane.ask("EVALSHA", script.sha, len(keys), *keys, *args)
        except NoScriptError:
            return await self._lane.ask("EVAL", script.source, len(keys), *keys, *args)

    def pubsub(self) -> Any:
        """A connection for bells, its subscriptions its owner's to renew: a lost one raises at once instead of coming back by itself."""
        client = redis.asyncio.Redis.from_url(self._url, retry=Retry(NoBackoff(), 0), socket_timeout=None, health_check_interval=0)
        return client.pubsub()

    async def alive(self) -> bool:
        """Whether Redis answers now."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return bool(await self.redis.ping())
        except (RedisError, OSError):
            return False

    async def close(self) -> None:
        """Closes every connection."""
        await self._lane.close()
        await self.redis.aclose()


@contextmanager
def _typed_faults() -> Iterator[None]:
    """What redis-py raises comes out as `errors.Unavailable`, where it may pass."""
    try:
        yield
    except (ConnectionError, TimeoutError, ReadOnlyError, BusyLoadingError, ClusterDownError, OSError) as fault:
        raise Unavailable("STORAGE_UNAVAILABLE", "the storage does not answer; try again") from fault
    except ResponseError as fault:
        # redis-py takes the word off where it knows it.
        if (fault.status_code or str(fault).split(" ", 1)[0]) in _PASSING:
            raise Unavailable("STORAGE_UNAVAILABLE", "the storage cannot write now; try again") from fault
        raise


class _Lane:
    """A connection on which commands of many callers share round trips.

    What is asked in one turn of the event loop goes out in one write; while its answers are awaited, what else is asked gathers for the
    next. So an idle lane waits for nothing, and a busy one does more per round trip the busier it is. What is asked first is done first.
    """

    def __init__(self, pool: redis.asyncio.ConnectionPool) -> None:
        self._pool = pool
        self._connection: Any = None
        self._waiting: list[_Asked] = []
        self._going: asyncio.Task[None] | None = None
        # Kept: to ask for it is a system call in Python 3.11.
        self._loop: asyncio.AbstractEventLoop | None = None

    async def ask(self, *command: Argument) -> Any:
        """Sends a command with the next round trip, and returns its answer; gives up after `CALL_SECONDS`, all tries together."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((_pack(command), answer))
        if self._going is None:
            self._going = self._loop.create_task(self._go())
        # Less than what asyncio.timeout costs, several times for each reaction.
        timer = self._loop.call_later(CALL_SECONDS, _settle, answer, TimeoutError("no answer in time"))
        try:
            return await answer
        finally:
            timer.cancel()

    async def close(self) -> None:
        """Closes the connection; whoever waits is cancelled."""
        if self._going is not None:
            self._going.cancel()
            await asyncio.gather(self._going, return_exceptions=True)
        for _, answer in self._waiting:
            answer.cancel()
        await self._disconnect()

    async def _go(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
                try:
                    await self._exchange(batch)
                finally:
                    for _, answer in batch:
                        answer.cancel()  # nothing, where it is answered
        finally:
            self._going = None

    async def _exchange(self, batch: list[_Asked]) -> None:
        """Answers a batch, with a result or a fault each."""
        for attempt in range(1, _TRIES + 1):
            try:
                async with asyncio.timeout(CALL_SECONDS):
                    replies = await self._round_trip([command for command, _ in batch])
            except (ConnectionError, TimeoutError, OSError) as fault:
                replies = [fault] * len(batch)
            # What the server could not do now, it may be able to on a new connection: after a failover to another.
            again = [
                asked for asked, reply in zip(batch, replies, strict=True) if attempt < _TRIES and isinstance(reply, _PASSES_ON_ANOTHER)
            ]
            for asked, reply in zip(batch, replies, strict=True):
                if asked not in again:
                    _settle(asked[1], reply)
            if not again:
                return
            batch = again
            await self._disconnect()
            longest = min(_LONGEST_PAUSE_SECONDS, _PAUSE_SECONDS * 2**attempt)
            await asyncio.sleep(random.uniform(0, longest))

    async def _round_trip(self, commands: list[bytes]) -> list[Any]:
        if self._connection is None:
            self._connection = cast(Any, self._pool).make_connection()  # redis-py leaves it untyped
        try:
            await self._connection.send_packed_command(commands)
        except ResponseError as refusal:
            # It connects first, and a server that wants nobody from here says so by refusing what redis-py greets it with.
            raise ConnectionError(str(refusal)) from refusal
        replies = []
        for _ in commands:
            try:
                replies.append(await self._connection.read_response(disable_decoding=True))
            except ResponseError as refusal:
                replies.append(refusal)
        return replies

    async def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.disconnect(nowait=True)


# hiredis's stub says that it takes one word.
_pack = cast(Callable[[Sequence[Argument]], bytes], hiredis.pack_command)
# A command as it is sent, and whoever waits for its answer.
_Asked: TypeAlias = tuple[bytes, "asyncio.Future[Any]"]
_PASSES_ON_ANOTHER = (ConnectionError, TimeoutError, ReadOnlyError, OSError)


def _settle(answer: asyncio.Future[Any], reply: Any) -> None:
    if answer.done():
        return  # whoever asked has given up
    if isinstance(reply, Exception):
        answer.set_exception(reply)
    else:
        answer.set_result(reply)
