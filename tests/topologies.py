"""Several Redis servers that are one: a cluster of three masters with a replica each, and a master and a replica watched by a Sentinel."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from redis import Redis
from redis.crc import key_slot
from redis.exceptions import RedisError

from deploy.processes import LOCALHOST, free_port
from deploy.redis_server import RedisServer

Flags: TypeAlias = Mapping[str, str]
NONE: Flags = {}

NODES, MASTERS = 6, 3
# After so many seconds a node that does not answer is taken for lost.
NODE_TIMEOUT_SECONDS = 1.0
# What of a server's log tells of failovers.
_TELLING = re.compile(r"[Ff]ailover|FAIL|master|MASTER|[Ee]poch|replica", re.ASCII)


class Server(RedisServer):
    """A redis-server with flags of its own."""

    def __init__(self, directory: Path, flags: Flags) -> None:
        super().__init__(directory)
        self._flags = flags

    def _argv(self) -> list[str]:
        return [*super()._argv(), *(word for flag, value in self._flags.items() for word in (f"--{flag}", value))]

    def do(self, *command: object) -> Any:
        """Does a command."""
        with Redis.from_url(self.url, socket_timeout=5) as client:
            return client.execute_command(*command)

    def raw(self, *command: object) -> Any:
        """What it answers to a command, as it stands."""
        with Redis.from_url(self.url, socket_timeout=5) as client:
            connection = client.connection_pool.get_connection()
            connection.send_command(*command)
            return connection.read_response()

    @property
    def is_master(self) -> bool:
        """Whether it answers, and is master."""
        try:
            return bool(self.do("INFO", "replication")["role"] == "master")
        except (RedisError, OSError):
            return False

    @property
    def is_in_step(self) -> bool:
        """Whether it is a replica that has all its master has."""
        told = self.do("INFO", "replication")
        return bool(told["role"] == "slave" and told["master_link_status"] == "up" and not told["master_sync_in_progress"])


class Cluster:
    """Three masters and a replica of each."""

    def __init__(self, directory: Path, flags: Flags = NONE) -> None:
        self.bus = [str(free_port()) for _ in range(NODES)]
        self.servers = [
            Server(
                directory / str(n),
                {
                    "cluster-enabled": "yes",
                    "cluster-port": bus,
                    "cluster-node-timeout": str(int(NODE_TIMEOUT_SECONDS * 1000)),
                    "cluster-replica-validity-factor": "0",
                    "repl-diskless-sync-delay": "0",
                    **flags,
                },
            )
            for n, bus in enumerate(self.bus)
        ]
        self.url = self.url_of()
        self._failed_over: dict[int, float] = {}

    def url_of(self, sign_in: str = "") -> str:
        """Its REDIS_URL, for somebody who signs in as `user:password`."""
        hosts = ",".join(f"{LOCALHOST}:{server.port}" for server in self.servers[:2])
        return f"redis+cluster://{sign_in}{'@' if sign_in else ''}{hosts}"

    def start(self) -> None:
        """Starts it, and waits until it serves."""
        for server in self.servers:
            server.start()
        bounds = [16384 * n // MASTERS for n in range(MASTERS + 1)]
        for n, server in enumerate(self.servers):
            server.do("CLUSTER", "SET-CONFIG-EPOCH", n + 1)
            if n < MASTERS:
                server.do("CLUSTER", "ADDSLOTSRANGE", bounds[n], bounds[n + 1] - 1)
        for server in self.servers:
            for other, bus in zip(self.servers, self.bus, strict=True):
                if other is not server:
                    server.do("CLUSTER", "MEET", LOCALHOST, other.port, bus)
        names = [self.name(server) for server in self.servers]
        until(lambda: all(_have_met(server) for server in self.servers))
        for n in range(MASTERS, NODES):
            self.servers[n].do("CLUSTER", "REPLICATE", names[n - MASTERS])
        self.whole()

    def stop(self) -> None:
        """Stops it."""
        for server in self.servers:
            server.stop()

    def name(self, server: Server) -> str:
        """What the cluster calls a server."""
        answer = server.do("CLUSTER", "MYID")
        return answer.decode() if isinstance(answer, bytes) else str(answer)

    def whole(self) -> None:
        """Waits until every slot is served, all servers agree by whom, and every replica is in step."""
        until(lambda: all(b"cluster_state:ok" in server.raw("CLUSTER", "INFO") for server in self.servers), 20)
        until(lambda: len({self._slots(server) for server in self.servers}) == 1, 20)
        masters = {port for _, _, port in self._slots(self.servers[0])}
        until(lambda: all(server.is_in_step or server.port in masters for server in self.servers), 20)

    def owner(self, key: str) -> Server:
        """The master of a key."""
        slot = key_slot(key.encode())
        port = next(port for first, last, port in self._slots(self.servers[0]) if first <= slot <= last)
        return next(server for server in self.servers if server.port == port)

    def replica(self, master: Server) -> Server:
        """A master's replica."""
        return next(s for s in self.servers if not s.is_master and s.do("INFO", "replication")["master_port"] == master.port)

    def fail_over(self, key: str) -> None:
        """Has a replica take its master's place, losing nothing, and waits until all know."""
        master = self.owner(key)
        replica = self.replica(master)
        # A server that has won an election a moment ago takes those votes for those of the next (Redis 8.2; Valkey's pull request 1711
        # mends it): it claims the slots though nobody gave them to it, and the true master waits for it for five seconds.
        assert time.monotonic() - self._failed_over.get(replica.port, -60.0) > 4 * NODE_TIMEOUT_SECONDS, "too soon after its last one"
        until(lambda: replica.is_in_step)
        replica.do("CLUSTER", "FAILOVER")
        self._failed_over[replica.port] = time.monotonic()
        until(lambda: all(self._owner_of(server, key) == replica.port for server in self.servers))

    def log(self, since: float = 0.0) -> str:
        """What the servers' logs tell of failovers, line by line in order of time; `since` as time.time has it."""
        return _told(self.servers, since)

    def _owner_of(self, server: Server, key: str) -> int | None:
        slot = key_slot(key.encode())
        return next((port for first, last, port in self._slots(server) if first <= slot <= last), None)

    def _slots(self, server: Server) -> tuple[tuple[int, int, int], ...]:
        """First and last slot and the master's port, as a server has them."""
        return tuple(sorted((first, last, master[1]) for first, last, master, *_ in server.raw("CLUSTER", "SLOTS")))


def _have_met(server: Server) -> bool:
    flags = [line.split()[2] for line in server.raw("CLUSTER", "NODES").decode().splitlines()]
    return len(flags) == NODES and not any("handshake" in each for each in flags)


class Watched:
    """A master and its replica, watched by a Sentinel.

    Args:
        sentinel: more lines of the Sentinel's configuration.
    """

    def __init__(self, directory: Path, flags: Flags = NONE, sentinel: str = "") -> None:
        for name in ("master", "replica", "sentinel"):
            (directory / name).mkdir()
        self.master = Server(directory / "master", {"repl-diskless-sync-delay": "0", **flags})
        follow = {"replicaof": f"{LOCALHOST} {self.master.port}", "repl-diskless-sync-delay": "0"}
        self.replica = Server(directory / "replica", {**follow, **flags})
        self.sentinel = Sentinel(directory / "sentinel", self.master, sentinel)
        self.url = self.url_of()

    def url_of(self, sign_in: str = "") -> str:
        """Its REDIS_URL, for somebody who signs in as `user:password`."""
        return f"redis+sentinel://{sign_in}{'@' if sign_in else ''}{LOCALHOST}:{self.sentinel.port}/main/0"

    def start(self) -> None:
        """Starts it, and waits until the Sentinel knows the replica."""
        for server in (self.master, self.replica, self.sentinel):
            server.start()
        until(lambda: self.replica.is_in_step)
        until(self._seen, 20)

    def stop(self) -> None:
        """Stops it."""
        for server in (self.sentinel, self.replica, self.master):
            server.stop()

    def fail_over(self) -> None:
        """Has the replica take its master's place, losing nothing."""
        # Writes wait, so that the replica has all; those that wait go to the new master in the end.
        self.master.do("CLIENT", "PAUSE", 20_000, "WRITE")
        self.sentinel.do("SENTINEL", "FAILOVER", "main")
        until(lambda: self.replica.is_master)

    def log(self, since: float = 0.0) -> str:
        """What the servers' logs tell of failovers, line by line in order of time; `since` as time.time has it."""
        return _told((self.master, self.replica, self.sentinel), since)

    def _seen(self) -> bool:
        for replica in self.sentinel.raw("SENTINEL", "REPLICAS", "main"):
            fields = dict(replica)
            return bool(fields[b"master-link-status"] == b"ok" and fields[b"flags"] == b"slave")
        return False


class Sentinel(Server):
    """A Sentinel."""

    def __init__(self, directory: Path, master: Server, more: str) -> None:
        super().__init__(directory, NONE)
        self._master = master
        self._more = more

    def _argv(self) -> list[str]:
        conf = self.directory / "sentinel.conf"
        conf.write_text(
            f"port {self.port}\nbind {LOCALHOST}\ndir {self.directory}\nsentinel monitor main {LOCALHOST} {self._master.port} 1\n"
            "sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 10000\n"
            f"{self._more}"
        )
        return [super()._argv()[0], str(conf), "--sentinel"]


@contextmanager
def running_one(it: Cluster | Watched) -> Iterator[None]:
    """Starts it, and stops it in the end."""
    with ExitStack() as stack:
        stack.callback(it.stop)
        it.start()
        yield


def until(condition: Callable[[], Any], seconds: float = 15) -> None:
    """Waits for what nothing announces."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never comes"
        time.sleep(0.02)


def _told(servers: Any, since: float) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(since))
    lines = []
    for server in servers:
        for line in server.log.read_text(errors="replace").splitlines():
            # "123:M 02 Dec 2026 09:36:05.528 * what"
            parts = line.split(" ", 5)
            if len(parts) == 6 and parts[4] >= clock and _TELLING.search(parts[5]):
                lines.append(f"{parts[4]} {server.port} {parts[0][-1]} {parts[5]}")
    return "\n".join(sorted(lines))
