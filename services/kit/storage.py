"""Redis, reached through Lua: one script a verb, one place where its faults are handled.

A script lives in a `lua/` folder beside the module that calls it. Its header says what KEYS, ARGV and its answer are. Faults come out as
`errors.Unavailable`; a script that the server forgot (SCRIPT FLUSH, restart, failover) is sent again. Scripts of many callers share round
trips: see `_Lane`. Where there are several servers, `topology.Masters` knows which has a key.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import hiredis
import redis.asyncio
import structlog
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)

from services.kit import metrics, tracing
from services.kit.errors import Unavailable
from services.kit.topology import Address, Masters, Options, masters_of

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
# Where another master may have taken over, one that has not answered for so long is asked no more until it is known who is master now.
_PATIENCE_SECONDS = 1.0
# What Redis says first when it cannot serve now, and it may pass: memory or disk is full, master or replicas are lost, it is busy, or it is
# not set up yet to let anybody in.
_PASSING = {"OOM", "MISCONF", "NOREPLICAS", "MASTERDOWN", "TRYAGAIN", "UNBLOCKED", "BUSY", "DENIED"}

log = structlog.get_logger(__name__)


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
        url: `redis://`, `rediss://` or `unix://` of one server; `redis+sentinel://[user:password@]host:port[,host:port...]/service[/db]`;
            `redis+cluster://[user:password@]host:port[,host:port...]`; with TLS `rediss+sentinel://` and `rediss+cluster://`.
        wait_replicas: so many replicas have what a script wrote before its caller hears of it; else it is Unavailable, though done.
        wait_ms: how long they have for it.

    Attributes:
        redis: the plain commands. With several servers each goes where its first key is, and there are no pipelines.

    Raises:
        ValueError: the URL names no Redis.
    """

    redis: redis.asyncio.Redis
    _lane: _Lane | _Lanes

    def __init__(self, url: str, *, wait_replicas: int = 0, wait_ms: int = 500) -> None:
        self._url = url
        self._answers = True  # or did when last asked
        self._masters = masters_of(url)
        wait = _pack(("WAIT", wait_replicas, wait_ms)) if wait_replicas else b""
        if self._masters is None:
            pool = _pool(url, _TRIES)
            self.redis = redis.asyncio.Redis.from_pool(pool)
            self._lane = _Lane(pool, wait=wait, replicas=wait_replicas)
        else:
            self._lane = _Lanes(self._masters, wait, wait_replicas)
            self.redis = _Plain(self._lane)

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Runs a script and returns its answer, bulk strings as bytes.

        Raises:
            Unavailable: Redis does not answer, or cannot write now (STORAGE_UNAVAILABLE).
        """
        began = time.perf_counter()
        try:
            with tracing.NOTHING if tracing.tracer is None else tracing.stored(script.verb), _typed_faults():
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
        with tracing.NOTHING if tracing.tracer is None else tracing.stored("GET"), _typed_faults():
            value: bytes | None = await self._lane.ask(key, "GET", key)
        return value

    async def fields(self, key: str, *names: str) -> list[bytes | None]:
        """Returns fields of the hash at a key. Raises as `run`."""
        with tracing.NOTHING if tracing.tracer is None else tracing.stored("HMGET"), _typed_faults():
            values: list[bytes | None] = await self._lane.ask(key, "HMGET", key, *names)
        return values

    async def scan(self, pattern: str, count: int = 256) -> AsyncGenerator[list[bytes]]:
        """Yields the keys like a pattern, of each master in turn, a step of about `count` keys looked at at a time: a step may find none,
        and a key come twice. Raises as `run`.
        """
        clients = [self.redis] if isinstance(self._lane, _Lane) else await self.call(self._lane.masters())
        for client in clients:
            cursor = None
            while cursor != 0:
                found: Any = await self.call(client.scan(cursor or 0, match=pattern, count=count))
                cursor, keys = found
                yield keys

    async def _evaluate(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        try:
            return await self._lane.ask(keys[0], "EVALSHA", script.sha, len(keys), *keys, *args)
        except NoScriptError:
            return await self._lane.ask(keys[0], "EVAL", script.source, len(keys), *keys, *args)

    async def home(self, channel: str) -> Address | None:
        """Which server has a sharded channel; None where there is but one.

        Raises:
            ConnectionError: nobody says so.
            OSError: the same.
        """
        return None if self._masters is None else await self._masters.of(channel)

    def on_move(self, moved: Callable[[], None]) -> None:
        """Calls `moved` whenever other servers than before have some of the channels."""
        if self._masters is not None:
            self._masters.listeners.append(moved)

    def known_home(self, channel: str) -> Address | None:
        """As `home`, but as it was last known; None where that is nowhere."""
        return None if self._masters is None else self._masters.known(channel)

    async def look_again(self) -> None:
        """Finds out where channels are now; nothing, with one server.

        Raises:
            ConnectionError: nobody says so.
            OSError: the same.
        """
        if self._masters is not None:
            await self._masters.look()

    def note(self, moved: MovedError) -> None:
        """Takes down where a server says that a channel is now."""
        if self._masters is not None:
            self._masters.note(moved)

    def pubsub(self, home: Address | None = None) -> Any:
        """A connection for bells, its subscriptions its owner's to renew: a lost one raises at once instead of coming back by itself."""
        if self._masters is None or home is None:
            client = redis.asyncio.Redis.from_url(self._url, retry=Retry(NoBackoff(), 0), socket_timeout=None, health_check_interval=0)
        else:
            client = redis.asyncio.Redis.from_pool(_pool_of(self._masters.options, home, health_check_interval=0))
        return client.pubsub()

    async def ping(self) -> None:
        """Has Redis answer: one master, where there are several.

        Raises:
            RedisError: it does not.
            OSError: the same.
        """
        async with asyncio.timeout(CALL_SECONDS):
            await self.redis.ping()

    async def alive(self, owner: str) -> bool:
        """Whether Redis answers now, one master where there are several, and lets us have the keys of their owner, `gateway` or a game."""
        try:
            await self.ping()
            await self._permitted(owner)
        except (RedisError, OSError) as fault:
            if self._answers:
                log.warning("storage_lost", error=str(fault) or type(fault).__name__)
            self._answers = False
            return False
        self._answers = True
        return True

    async def _permitted(self, owner: str) -> None:
        """Raises NoPermissionError where our Redis user may not have the keys of their owner (deploy/redis/users.acl)."""
        try:
            await self.get(f"{owner}:nothing")
        except Unavailable as fault:
            if isinstance(fault.__cause__, NoPermissionError):
                raise fault.__cause__ from None

    async def close(self) -> None:
        """Closes every connection."""
        await self._lane.close()
        await self.redis.aclose()


def _pool(url: str, tries: int) -> redis.asyncio.BlockingConnectionPool:
    return redis.asyncio.BlockingConnectionPool.from_url(
        url,
        retry=Retry(ExponentialWithJitterBackoff(base=_PAUSE_SECONDS, cap=_LONGEST_PAUSE_SECONDS), retries=tries - 1),
        retry_on_error=[ReadOnlyError, BusyLoadingError],
        # `call` sets the bound. With this one redis-py sends through asyncio.wait_for, which in Python 3.11 may swallow a cancellation.
        socket_timeout=None,
        health_check_interval=15,
        max_connections=_CONNECTIONS,
        timeout=CALL_SECONDS,
    )


def _pool_of(options: Options, address: Address, health_check_interval: int = 15) -> redis.asyncio.BlockingConnectionPool:
    """Connections to one of several servers, which are never tried again: another may be master by now."""
    return redis.asyncio.BlockingConnectionPool(
        host=address[0],
        port=address[1],
        retry=Retry(NoBackoff(), 0),
        socket_timeout=None,
        health_check_interval=health_check_interval,
        max_connections=_CONNECTIONS,
        timeout=int(CALL_SECONDS),
        **options,
    )


@contextmanager
def _typed_faults() -> Iterator[None]:
    """What redis-py raises comes out as `errors.Unavailable`, where it may pass."""
    try:
        yield
    except (ConnectionError, TimeoutError, ReadOnlyError, BusyLoadingError, ClusterDownError, TryAgainError, AskError, OSError) as fault:
        raise Unavailable("STORAGE_UNAVAILABLE", "the storage does not answer; try again") from fault
    except NoPermissionError as fault:
        raise Unavailable("STORAGE_UNAVAILABLE", "the storage does not let this server do that; its operator has to") from fault
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

    def __init__(
        self,
        pool: redis.asyncio.ConnectionPool,
        *,
        tries: int = _TRIES,
        patience: float | None = None,
        wait: bytes = b"",
        replicas: int = 0,
    ) -> None:
        self._pool = pool
        self._tries = tries
        self._patience = patience
        self._wait = wait
        self._replicas = replicas
        self._connection: Any = None
        self._waiting: list[_Asked] = []
        self._going: asyncio.Task[None] | None = None
        # Kept: to ask for it is a system call in Python 3.11.
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def idle(self) -> bool:
        """Whether nobody waits for an answer."""
        return self._going is None

    async def ask(self, _: str, *command: Argument) -> Any:
        """Sends a command with the next round trip, and returns its answer; gives up after `CALL_SECONDS`, all tries together."""
        return await self.ask_packed(_pack(command), CALL_SECONDS)

    async def ask_packed(self, command: bytes, seconds: float, asking: bool = False) -> Any:
        """As `ask`; `asking` for a key that is about to come here from another server."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if asking:
            self._waiting.append((_ASKING, self._loop.create_future()))
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((command, answer))
        if self._going is None:
            self._going = self._loop.create_task(self._go())
        # Less than what asyncio.timeout costs, several times for each reaction.
        timer = self._loop.call_later(seconds, _settle, answer, TimeoutError("no answer in time"))
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
        for attempt in range(1, self._tries + 1):
            try:
                async with asyncio.timeout(self._patience or CALL_SECONDS):
                    replies = await self._round_trip([command for command, _ in batch])
            except (ConnectionError, TimeoutError, OSError) as fault:
                replies = [fault] * len(batch)
            # What the server could not do now, it may be able to on a new connection: after a failover to another.
            failed = [asked for asked, reply in zip(batch, replies, strict=True) if isinstance(reply, _PASSES_ON_ANOTHER)]
            again = failed if attempt < self._tries else []
            for asked, reply in zip(batch, replies, strict=True):
                if asked not in again:
                    _settle(asked[1], reply)
            if failed:
                await self._disconnect()
            if not again:
                return
            batch = again
            longest = min(_LONGEST_PAUSE_SECONDS, _PAUSE_SECONDS * 2**attempt)
            await asyncio.sleep(random.uniform(0, longest))

    async def _round_trip(self, commands: list[bytes]) -> list[Any]:
        if self._connection is None:
            self._connection = cast(Any, self._pool).make_connection()  # redis-py leaves it untyped
        try:
            await self._connection.send_packed_command([*commands, self._wait] if self._wait else commands)
        except ResponseError as refusal:
            # It connects first, and a server that wants nobody from here says so by refusing what redis-py greets it with.
            raise ConnectionError(str(refusal)) from refusal
        replies = []
        for _ in commands:
            try:
                replies.append(await self._connection.read_response(disable_decoding=True))
            except ResponseError as refusal:
                replies.append(refusal)
        if self._wait:
            reached = await self._connection.read_response(disable_decoding=True)
            if reached < self._replicas:
                few = ResponseError(f"NOREPLICAS {reached} of {self._replicas} replicas have it")
                replies = [reply if isinstance(reply, Exception) else few for reply in replies]
        return replies

    async def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.disconnect(nowait=True)


class _Node:
    """A master among several."""

    def __init__(self, options: Options, address: Address, wait: bytes, replicas: int) -> None:
        pool = _pool_of(options, address)
        self.lane = _Lane(pool, tries=1, patience=_PATIENCE_SECONDS, wait=wait, replicas=replicas)
        self.redis = redis.asyncio.Redis.from_pool(pool)

    async def execute(self, command: Sequence[Any], options: dict[str, Any], asking: bool) -> Any:
        """Does a plain command; see `_Lane.ask_packed`."""
        if not asking:
            return await cast(Any, self.redis).execute_command(*command, **options)
        async with self.redis.pipeline(transaction=False) as pipeline:
            pipeline.execute_command("ASKING")
            pipeline.execute_command(*command, **options)
            return (await pipeline.execute())[-1]

    async def close(self) -> None:
        """Closes every connection."""
        await self.lane.close()
        await self.redis.aclose()


class _Lanes:
    """A lane a master, each command in that of its first key. Here, and nowhere else, another is found when a master is not one any more.

    What was asked first is done first, but for what had to be asked again.
    """

    def __init__(self, masters: Masters, wait: bytes, replicas: int) -> None:
        self._masters = masters
        self._wait = wait
        self._replicas = replicas
        self._nodes: dict[Address, _Node] = {}
        self._closing: set[asyncio.Task[None]] = set()
        masters.listeners.append(self._drop)

    async def ask(self, key: str, *command: Argument) -> Any:
        """Sends a command with its master's next round trip, and returns its answer; gives up after `CALL_SECONDS`, all tries together."""
        packed = _pack(command)
        return await self.routed(key, lambda node, seconds, asking: node.lane.ask_packed(packed, seconds, asking))

    async def routed(self, key: str | bytes | None, send: Callable[[_Node, float, bool], Awaitable[T]]) -> T:
        """Sends something to the master of a key, and again to whoever is that, until it is done or `CALL_SECONDS` are over."""
        deadline, tries = time.monotonic() + CALL_SECONDS, 0
        ask: Address | None = None
        while True:
            try:
                owner = ask or self._masters.known(key) or await self._owner(key, deadline)
                asking, ask = ask is not None, None
                return await send(self._node(owner), max(0.0, deadline - time.monotonic()), asking)
            except _PASSES_ELSEWHERE as fault:
                tries += 1
                pause = random.uniform(0, min(_LONGEST_PAUSE_SECONDS, _PAUSE_SECONDS * 2**tries))
                if time.monotonic() + pause > deadline:
                    raise
                if isinstance(fault, MovedError):
                    self._masters.note(fault)
                    if tries == 1:
                        continue
                elif isinstance(fault, AskError):
                    ask = self._masters.address(fault)
                    if tries % 2:
                        continue
                await asyncio.sleep(pause)
                if not isinstance(fault, (AskError, TryAgainError)):
                    await self._look(deadline)

    async def masters(self) -> list[redis.asyncio.Redis]:
        """The plain commands of every master there is now."""
        await self._masters.of(None)
        return [self._node(address).redis for address in sorted(self._masters.addresses)]

    async def _owner(self, key: str | bytes | None, deadline: float) -> Address:
        async with asyncio.timeout(deadline - time.monotonic()):
            return await self._masters.of(key)

    async def _look(self, deadline: float) -> None:
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                await self._masters.look()
        except (ConnectionError, OSError):
            pass  # Those known before are tried again.

    def _node(self, address: Address) -> _Node:
        node = self._nodes.get(address)
        if node is None:
            node = self._nodes[address] = _Node(self._masters.options, address, self._wait, self._replicas)
        return node

    def _drop(self) -> None:
        """Lets go of those that are masters no more and of whom nobody waits for an answer."""
        for address in self._nodes.keys() - self._masters.addresses:
            if self._nodes[address].lane.idle:
                task = asyncio.create_task(self._nodes.pop(address).close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Closes every connection; whoever waits is cancelled."""
        await self._masters.close()
        await asyncio.gather(*self._closing, *(node.close() for node in self._nodes.values()))


class _Plain(redis.asyncio.Redis):
    """Plain commands, each sent to the master of its first key."""

    def __init__(self, lanes: _Lanes) -> None:
        super().__init__()
        self._lanes = lanes

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Does a command."""
        place = 3 if args[0] in ("EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO") else 1
        key = args[place] if len(args) > place else None
        return await self._lanes.routed(key, lambda node, _, asking: node.execute(args, options, asking))

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Any:
        """Not to be had.

        Raises:
            TypeError: always.
        """
        raise TypeError("commands of one pipeline may belong to several servers: use a script")


# hiredis's stub says that it takes one word.
_pack = cast(Callable[[Sequence[Argument]], bytes], hiredis.pack_command)
# A command as it is sent, and whoever waits for its answer.
_Asked: TypeAlias = tuple[bytes, "asyncio.Future[Any]"]
_PASSES_ON_ANOTHER = (ConnectionError, TimeoutError, ReadOnlyError, OSError)
_PASSES_ELSEWHERE = (*_PASSES_ON_ANOTHER, AskError, TryAgainError, ClusterDownError, BusyLoadingError)
_ASKING = _pack(("ASKING",))


def _settle(answer: asyncio.Future[Any], reply: Any) -> None:
    if answer.done():
        return  # whoever asked has given up
    if isinstance(reply, Exception):
        answer.set_exception(reply)
    else:
        answer.set_result(reply)
