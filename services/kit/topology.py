"""Which Redis has a key, where there are several: the masters of a Redis Cluster, or the one that Sentinels call master now.

Whoever finds that a server is not what it was (a lost connection, READONLY, MOVED, CLUSTERDOWN) has `Masters` look again.
"""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

import redis.asyncio
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import AskError, ConnectionError, RedisError

Address: TypeAlias = tuple[str, int]
# How connections are made, as redis-py names it, but for host and port.
Options: TypeAlias = dict[str, Any]

# Whoever is asked who is master has so long to answer; then another is.
_ANSWER_SECONDS = 1.0
_AGAIN_SECONDS = 0.5
_SENTINEL_PORT, _REDIS_PORT = 26379, 6379


class Masters(ABC):
    """The masters, and which slots' keys each has, as last seen.

    Attributes:
        options: how connections to them are made.
        addresses: the masters.
        listeners: called when the masters, or their slots, are others than before.
    """

    def __init__(self, seeds: Iterable[Address], options: Options) -> None:
        self.options = options
        self.addresses: set[Address] = set()
        self.listeners: list[Callable[[], None]] = []
        self._seeds = list(seeds)
        self._owners: list[Address | None] = []
        self._looking: asyncio.Task[None] | None = None

    def known(self, key: str | bytes | None) -> Address | None:
        """Which master has a key, or any for None; None where that is not known."""
        if not self._owners:
            return None
        if key is None:
            return random.choice(list(self.addresses))
        return self._owners[key_slot(key.encode() if isinstance(key, str) else key)]

    async def of(self, key: str | bytes | None) -> Address:
        """As `known`, but looks first where that is not known.

        Raises:
            ConnectionError: nobody says so.
            OSError: the same.
        """
        if (address := self.known(key)) is None:
            await self.look()
            if (address := self.known(key)) is None:
                raise ConnectionError("no server has the key's slot")
        return address

    async def look(self) -> None:
        """Finds out who has which slots now; all who ask at once share the answer.

        Raises:
            ConnectionError: nobody says so.
            OSError: the same.
        """
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
            self._looking.add_done_callback(self._looked)
        await asyncio.shield(self._looking)

    def note(self, moved: AskError) -> None:
        """Takes down who has a slot now, as the server said that had it before."""
        address = self.address(moved)
        if self._owners and self._owners[moved.slot_id] != address:
            self._owners[moved.slot_id] = address
            self._tell()

    @staticmethod
    def address(told: AskError) -> Address:
        """Where a server says that a key is."""
        return told.host, int(told.port)

    async def close(self) -> None:
        """Looks no more."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    @abstractmethod
    async def _find(self) -> list[Address | None]:
        """The master of each slot."""

    async def _look(self) -> None:
        owners = await self._find()
        if owners != self._owners:
            self._owners = owners
            self._tell()

    def _looked(self, looking: asyncio.Task[None]) -> None:
        self._looking = None
        if not looking.cancelled():
            looking.exception()  # Whoever asked hears of it, unless they have given up.

    def _tell(self) -> None:
        self.addresses = {address for address in self._owners if address is not None}
        for listener in self.listeners:
            listener()


class Cluster(Masters):
    """The masters of a Redis Cluster."""

    async def _find(self) -> list[Address | None]:
        asked = [*random.sample(sorted(self.addresses), len(self.addresses)), *self._seeds]
        for host, port in dict.fromkeys(asked):
            try:
                ranges = await _answer((host, port), self.options, "CLUSTER", "SLOTS")
            except (RedisError, OSError):
                continue
            owners: list[Address | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
            for first, last, master, *_ in ranges:
                # It does not know its own name unless it is told one.
                address = ((master[0] or b"").decode() or host, master[1])
                owners[first : last + 1] = [address] * (last + 1 - first)
            if any(owners):
                return owners
        raise ConnectionError("no server of the cluster says which has what")


class Sentinels(Masters):
    """The master of a service, as its Sentinels have it.

    Args:
        sentinel_options: how connections to Sentinels are made.
    """

    def __init__(self, seeds: Iterable[Address], options: Options, service: str, sentinel_options: Options) -> None:
        super().__init__(seeds, options)
        self._service = service
        self._sentinel_options = sentinel_options
        self._watching: list[asyncio.Task[None]] = []

    async def close(self) -> None:
        """Looks no more."""
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        await super().close()

    async def _find(self) -> list[Address | None]:
        if not self._watching:
            self._watching = [asyncio.create_task(self._watch(sentinel)) for sentinel in self._seeds]
        for sentinel in self._seeds:
            try:
                answer = await _answer(sentinel, self._sentinel_options, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service)
            except (RedisError, OSError):
                continue
            if answer:
                # The one that answered is asked first the next time.
                self._seeds.remove(sentinel)
                self._seeds.insert(0, sentinel)
                return [(answer[0].decode(), int(answer[1]))] * REDIS_CLUSTER_HASH_SLOTS
        raise ConnectionError("no Sentinel says who is master")

    async def _watch(self, sentinel: Address) -> None:
        """Looks as soon as a Sentinel says that there is another master: the old one may take itself for it for seconds."""
        while True:
            try:
                pool = redis.asyncio.ConnectionPool(host=sentinel[0], port=sentinel[1], socket_timeout=None, **self._sentinel_options)
                async with redis.asyncio.Redis.from_pool(pool) as client, client.pubsub() as pubsub:
                    await pubsub.subscribe("+promoted-slave", "+switch-master")
                    async for _ in pubsub.listen():
                        await self.look()
            except (RedisError, OSError):
                pass
            await asyncio.sleep(_AGAIN_SECONDS)


async def _answer(address: Address, options: Options, *command: str) -> Any:
    """What a server answers, asked on a connection of its own.

    Raises:
        RedisError: it does not, or refuses.
        OSError: the same.
    """
    kind = options.get("connection_class", redis.asyncio.Connection)
    more = {name: value for name, value in options.items() if name != "connection_class"}
    connection = kind(host=address[0], port=address[1], socket_timeout=None, retry=Retry(NoBackoff(), 0), **more)
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            await connection.connect()
            await connection.send_command(*command)
            return await connection.read_response(disable_decoding=True)
    finally:
        await connection.disconnect(nowait=True)


def masters_of(url: str) -> Masters | None:
    """The masters that a URL names, see `storage.Storage`; None where it names one server.

    Raises:
        ValueError: it names nothing.
    """
    scheme, _, rest = url.partition("://")
    tls, _, kind = scheme.partition("+")
    if not kind:
        return None
    parts = urlsplit(f"//{rest}")
    user, _, hosts = parts.netloc.rpartition("@")
    if kind not in ("sentinel", "cluster") or tls not in ("redis", "rediss") or not hosts:
        raise ValueError("redis+sentinel://HOST:PORT/SERVICE or redis+cluster://HOST:PORT")
    seeds = [_address(each, _SENTINEL_PORT if kind == "sentinel" else _REDIS_PORT) for each in hosts.split(",")]
    service, _, db = parts.path.strip("/").partition("/")
    if kind == "cluster":
        db, service = service, ""
        if db not in ("", "0"):
            raise ValueError("a Redis Cluster has no database but 0")
    # A number alone is the database, and the service has been forgotten.
    elif not service or (service.isdecimal() and not db) or (db and not db.isdecimal()):
        raise ValueError("redis+sentinel://HOST:PORT/SERVICE/DATABASE")
    sign_in = f"{user}@" if user else ""
    # As redis-py reads the rest.
    options = _options(parse_url(f"{tls}://{sign_in}host/{db or 0}?{parts.query}"))
    sentinel = {name: options.pop(f"sentinel_{name}") for name in ("username", "password") if f"sentinel_{name}" in options}
    if kind == "cluster":
        return Cluster(seeds, options)
    tls_options = {name: value for name, value in options.items() if name == "connection_class" or name.startswith("ssl_")}
    return Sentinels(seeds, options, unquote(service), {**tls_options, **sentinel})


def _options(parsed: Mapping[str, Any]) -> Options:
    return {name: value for name, value in parsed.items() if name not in ("host", "port", "path")}


def _address(host: str, port: int) -> Address:
    parts = urlsplit(f"//{host}")
    if not parts.hostname:
        raise ValueError("every server needs a host")
    return parts.hostname, parts.port or port
