"""Redis, reached through Lua: one script a verb, one place where its faults are handled.

A script lives in a `lua/` folder beside the module that calls it. Its header says what KEYS, ARGV and its answer are. Faults come out as
`errors.Unavailable`; a script that the server forgot (SCRIPT FLUSH, restart, failover) is sent again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

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
# What Redis says first when it cannot serve now, and it may pass: memory or disk is full, master or replicas are lost, it is busy.
_PASSING = {"OOM", "MISCONF", "NOREPLICAS", "MASTERDOWN", "TRYAGAIN", "UNBLOCKED", "BUSY"}


class Script:
    """A Lua script, known to the server by its SHA-1.

    Args:
        path: the file. Its name is the verb.
    """

    def __init__(self, path: Path) -> None:
        self.verb = path.stem
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
            # A quick retry after a lost connection: every script here may run twice and does its work once.
            retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=0.5), retries=2),
            retry_on_error=[ReadOnlyError, BusyLoadingError],
            # `call` sets the bound. With this one redis-py sends through asyncio.wait_for, which in Python 3.11 may swallow a cancellation.
            socket_timeout=None,
            health_check_interval=15,
            max_connections=_CONNECTIONS,
            timeout=CALL_SECONDS,
        )
        self.redis = redis.asyncio.Redis.from_pool(pool)

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Runs a script and returns its answer, bulk strings as bytes.

        Raises:
            Unavailable: Redis does not answer, or cannot write now (STORAGE_UNAVAILABLE).
        """
        with metrics.STORAGE_SECONDS.labels(script.verb).time():
            return await self.call(self._evaluate(script, keys, args))

    async def call(self, command: Awaitable[T]) -> T:
        """Awaits any command, its faults typed as in `run`."""
        try:
            # All tries together, and those of connecting.
            async with asyncio.timeout(CALL_SECONDS):
                return await command
        except (ConnectionError, TimeoutError, ReadOnlyError, BusyLoadingError, ClusterDownError, OSError) as fault:
            raise Unavailable("STORAGE_UNAVAILABLE", "the storage does not answer; try again") from fault
        except ResponseError as fault:
            # redis-py takes the word off where it knows it.
            if (fault.status_code or str(fault).split(" ", 1)[0]) in _PASSING:
                raise Unavailable("STORAGE_UNAVAILABLE", "the storage cannot write now; try again") from fault
            raise

    async def _evaluate(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        # redis-py annotates the arguments as str; it takes bytes and ints as they are.
        words = cast("list[str]", [*keys, *args])
        try:
            return await self.redis.evalsha(script.sha, len(keys), *words)
        except NoScriptError:
            return await self.redis.eval(script.source, len(keys), *words)

    def pubsub(self) -> Any:
        """A connection for bells, its subscriptions its owner's to renew: a lost one raises at once instead of coming back by itself."""
        client = redis.asyncio.Redis.from_url(self._url, retry=Retry(NoBackoff(), 0), socket_timeout=None, health_check_interval=5)
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
        await self.redis.aclose()
