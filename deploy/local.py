"""Everything on one machine: Redis, every game's service and the gateway, started, watched and stopped as one. `make run` calls it.

    python -m deploy.local --port 8080 --data .gloaming/8080

With REDIS_URL set, that Redis is used and left alone. GLOAMING_* variables reach every process, but for addresses and keys, which are
given here. What matters lies in the data directory, so that starting again with the same one goes on where the last run stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import fcntl
import http.client
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO

from deploy import prometheus
from deploy.processes import LOCALHOST, Child, free_port, is_free, tail
from deploy.prometheus import Prometheus, Target
from deploy.redis_server import RedisServer, RedisServerError

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS = 60.0
# Enough for a call to finish; whoever stops a server of their own is waiting for the prompt.
DRAIN_SECONDS = 2.0
# A replica that ends by itself is started again, so often a minute at most.
RESTARTS_A_MINUTE = 5
SCRAPE_SECONDS = 5.0


class LocalError(RuntimeError):
    """It cannot start, or did not; the message is for the person who started it."""


class Local:
    """One running copy of the whole.

    On Linux its processes end with the thread that calls `start`.

    Args:
        data: where matches, keys and logs are kept; one copy at a time.
        port: the gateway's; chosen free when not given.
        host: the address that the gateway listens on.
        replicas: processes of each game.
        gateways: processes of the gateway; all but the first on ports chosen free.
        env: variables for every process, over those of this one.
        monitoring: scrapes and evaluates rules every so many seconds, with a Prometheus beside the rest; None: there is none.
    """

    def __init__(
        self,
        data: Path,
        *,
        port: int | None = None,
        host: str = LOCALHOST,
        replicas: int = 1,
        gateways: int = 1,
        env: Mapping[str, str] | None = None,
        monitoring: float | None = None,
    ) -> None:
        from gateway.registry import GAMES

        self.data = data.resolve()
        self.host = host
        self.port = port or free_port()
        self.ports = [self.port, *(free_port() for _ in range(gateways - 1))]
        self.logs = self.data / "logs"
        self.redis_url = ""
        self.services: dict[str, list[str]] = {game: [f"{LOCALHOST}:{free_port()}" for _ in range(replicas)] for game in GAMES}
        self.metrics: dict[str, list[str]] = {game: [f"{LOCALHOST}:{free_port()}" for _ in range(replicas)] for game in GAMES}
        self.children: dict[str, Child] = {}
        self.prometheus = Prometheus(self.data / "prometheus", monitoring) if monitoring else None
        self._env = {**os.environ, **(env or {})}
        self._env.setdefault("GLOAMING_DRAIN_SECONDS", str(DRAIN_SECONDS))
        self._grace = float(self._env["GLOAMING_DRAIN_SECONDS"]) + 3
        self._redis: RedisServer | None = None
        self._lock: IO[str] | None = None
        self._stopping = threading.Event()

    @property
    def url(self) -> str:
        """The gateway's address for a client on this machine."""
        return self.urls[0]

    @property
    def urls(self) -> list[str]:
        """Every gateway's address."""
        return [f"http://{_in_url(self._own_host)}:{port}" for port in self.ports]

    @property
    def signing_key(self) -> Path:
        """The private key of access tokens."""
        return self.data / "keys" / "signing-key.pem"

    @property
    def _own_host(self) -> str:
        return {"0.0.0.0": LOCALHOST, "::": "::1"}.get(self.host, self.host)

    def start(self) -> None:
        """Start everything, and return when the gateway and all services are ready.

        Raises:
            LocalError: when that cannot be; nothing is left running then.
        """
        self._stopping.clear()
        self._claim()
        try:
            self._start_redis()
            self._start_children(self._make_keys())
            self._start_prometheus()
            self._await_ready()
        except (OSError, RedisServerError) as error:
            self.stop()
            raise LocalError(str(error)) from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the gateway, then the services, then Redis, and wait until all are gone."""
        self._stopping.set()
        gateways = [child for name, child in self.children.items() if name.startswith("gateway")]
        services = [child for name, child in self.children.items() if name != "redis" and child not in gateways]
        for group in (gateways, services):
            for child in group:
                child.signal(signal.SIGTERM)
            deadline = time.monotonic() + self._grace
            for child in group:
                child.stop(max(0.0, deadline - time.monotonic()))
        if self._redis is not None:
            self._redis.stop()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def kill(self, name: str) -> None:
        """End one process at once, as a crash would: `redis`, `gateway` or a game's id; where there are more, `<name>-1`, `<name>-2`."""
        self.children[name].kill()

    def restart(self, name: str) -> None:
        """Start a process again that has ended, with the same addresses and data; it may not be ready yet on return."""
        if name == "redis" and self._redis is not None:
            self._redis.start()
        else:
            self.children[name].start()

    def kill_all(self) -> None:
        """End everything at once."""
        for child in self.children.values():
            child.signal(signal.SIGKILL)

    def fallen(self) -> Child | None:
        """A process that has ended by itself, if any."""
        return next((child for child in self.children.values() if not child.running), None)

    def has_others(self, child: Child) -> bool:
        """Whether other replicas of the same game serve while this one does not."""
        return any(len(addresses) > 1 and child.name.rpartition("-")[0] == game for game, addresses in self.services.items())

    def give_up(self) -> None:
        """Let a `start` that another thread, or the code a signal interrupted, is in fail soon."""
        self._stopping.set()

    def __enter__(self) -> Local:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _claim(self) -> None:
        if self.prometheus and not prometheus.binary():
            raise LocalError(
                "MONITORING needs Prometheus, which is not installed: apt-get install prometheus, or brew install prometheus; "
                "or run without MONITORING."
            )
        # Both before anything is started: the port that people will open, and the data, which two copies would spoil.
        try:
            free = is_free(self.port, self.host)
        except OSError as error:
            raise LocalError(f"Cannot listen on {_in_url(self.host)}:{self.port}: {error.strerror}.") from None
        if not free:
            raise LocalError(f"Port {self.port} is taken: stop what listens there, or choose another (make run PORT={self.port + 100}).")
        self.logs.mkdir(parents=True, exist_ok=True)
        lock = (self.data / "lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise LocalError(f"Another copy runs with the data in {self.data}.") from None
        self._lock = lock

    def _start_redis(self) -> None:
        if url := self._env.get("REDIS_URL"):
            _ping(url)
            self.redis_url = url
            return
        self._redis = RedisServer(self.data / "redis", durable=True)
        self._redis.start()
        self.redis_url = self._redis.url
        self.children["redis"] = self._redis.child

    def _make_keys(self) -> Path:
        keys = self.data / "keys"
        if not all((keys / name).exists() for name in ("signing-key.pem", "jwks.json")):
            from gateway.tokens import write_keys

            keys.mkdir(mode=0o700, exist_ok=True)
            write_keys(keys)
        return keys

    def _start_children(self, keys: Path) -> None:
        common = {"REDIS_URL": self.redis_url, "GLOAMING_JWKS_FILE": str(keys / "jwks.json"), "PYTHONUNBUFFERED": "1"}
        for game, addresses in self.services.items():
            for number, (address, metrics) in enumerate(zip(addresses, self.metrics[game], strict=True), 1):
                name = _numbered(game, number, addresses)
                listen = {"GLOAMING_LISTEN": address, "GLOAMING_METRICS_LISTEN": metrics}
                self._start_child(name, f"services.{game}", common | listen, without=_of_gateways())
        # One address as it is; several as gRPC's target for a fixed list, among which a client takes turns.
        targets = {game: f"{'ipv4:' if len(addresses) > 1 else ''}{','.join(addresses)}" for game, addresses in self.services.items()}
        gateway = {
            "GLOAMING_SERVICES": ",".join(f"{game}={target}" for game, target in targets.items()),
            "GLOAMING_SIGNING_KEY_FILE": str(self.signing_key),
        }
        for number, port in enumerate(self.ports, 1):
            listen = {"GLOAMING_LISTEN": f"{_in_url(self.host)}:{port}"}
            self._start_child(_numbered("gateway", number, self.ports), "gateway", common | gateway | listen)

    def _start_prometheus(self) -> None:
        if self.prometheus is None:
            return
        pages = {"gateway": [url.removeprefix("http://") for url in self.urls], **self.metrics}
        targets = [
            Target(name.replace("_", "-"), _numbered(name, number, addresses), address)
            for name, addresses in pages.items()
            for number, address in enumerate(addresses, 1)
        ]
        child = self.children["prometheus"] = self.prometheus.child(targets, self._fresh_log("prometheus"), self._env)
        child.start()

    def _start_child(self, name: str, module: str, env: Mapping[str, str], without: Collection[str] = ()) -> None:
        given = {variable: value for variable, value in self._env.items() if variable not in without}
        child = Child(name, [sys.executable, "-m", module], self._fresh_log(name), {**given, **env}, ROOT)
        self.children[name] = child
        child.start()

    def _fresh_log(self, name: str) -> Path:
        log = self.logs / f"{name}.log"
        if log.exists():
            log.replace(log.with_suffix(".log.1"))
        return log

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        unready = "nothing answers yet"
        while unready:
            if self._stopping.wait(0.05):
                raise LocalError("Stopped before it was ready.")
            if child := self.fallen():
                raise LocalError(epitaph(child))
            if time.monotonic() > deadline:
                log = tail(self.children[_numbered("gateway", 1, self.ports)].log)
                raise LocalError(f"Not ready within {READY_SECONDS:.0f} s: {unready}. The gateway's log:\n{log}")
            with contextlib.suppress(OSError, http.client.HTTPException):  # one of them is not listening yet
                unready = self._unready()

    def _unready(self) -> str:
        """What is not ready, and why; empty when everything is. A gateway is ready without its games, but nobody starts it for that."""
        for port in self.ports:
            status, answer = self._get(port, "/readyz")
            if status != 200 or not json.loads(answer)["allServing"]:
                return f"/readyz answers {status} {answer}"
        if self.prometheus:
            status, answer = self._get(self.prometheus.port, "/-/ready", LOCALHOST)
            if status != 200:
                return f"Prometheus answers {status} {answer}"
        return ""

    def _get(self, port: int, path: str, host: str = "") -> tuple[int, str]:
        with contextlib.closing(http.client.HTTPConnection(host or self._own_host, port, timeout=5)) as connection:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read(2000).decode(errors="replace")


def _ping(url: str) -> None:
    """Raises `LocalError` unless a Redis answers there. What the URL says is not repeated: it may hold a password."""
    import redis

    from services.kit.storage import Storage

    async def ask() -> None:
        storage = Storage(url)
        try:
            await storage.ping()
        finally:
            await storage.close()

    try:
        if "+" in url.partition("://")[0]:
            asyncio.run(ask())
            return
        with redis.Redis.from_url(url, socket_connect_timeout=3, socket_timeout=3) as client:
            client.ping()
    except ValueError:
        raise LocalError("REDIS_URL is no address of a Redis: redis://HOST:PORT/DATABASE, or as the README says.") from None
    except (redis.RedisError, OSError) as error:
        raise LocalError(f"The Redis that REDIS_URL names does not answer: {str(error).rstrip('.') or 'no answer in time'}.") from None


def _of_gateways() -> set[str]:
    """The variables that are gateways' alone: a service would take them for misspelled."""
    from gateway.settings import GatewaySettings
    from services.kit.settings import PREFIX, ServiceSettings

    return {f"{PREFIX}{name.upper()}" for name in GatewaySettings.model_fields.keys() - ServiceSettings.model_fields.keys()}


def _numbered(name: str, number: int, among: Sequence[object]) -> str:
    return name if len(among) == 1 else f"{name}-{number}"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def epitaph(child: Child) -> str:
    """What to say of a process that has ended by itself: how, and the end of its log."""
    return f"{child.name} {child.exit_status}. The end of {child.log}:\n{tail(child.log)}"


def summary(local: Local, seconds: float) -> str:
    """What is up, and where."""
    lines = [
        f"Gloaming is up after {seconds:.1f} s.",
        f"  open      {local.url}",
        f"  API       {local.url}/docs",
        f"  Redis     {local.redis_url}" if "redis" in local.children else "  Redis     as REDIS_URL says",
        *(f"  service   {game} at {', '.join(addresses)} (gRPC)" for game, addresses in local.services.items()),
        *(f"  metrics   {url}/metrics" for url in local.urls),
        *(f"  metrics   {game} at {', '.join(f'http://{address}/metrics' for address in all_)}" for game, all_ in local.metrics.items()),
        *([f"  monitor   http://{local.prometheus.address} (Prometheus)"] if local.prometheus else []),
        f"  key       {local.signing_key} (for operators' tokens)",
        f"  logs      {local.logs}",
        "Ctrl-C stops it; its matches are kept for the next start.",
    ]
    return "\n".join(lines)


class _Followed:
    """Prints what is appended to the logs, each line after the name of its process."""

    def __init__(self, children: Mapping[str, Child]) -> None:
        self._children = children
        self._read: dict[str, int] = {}

    def print(self) -> None:
        for name, child in list(self._children.items()):
            if not child.log.exists():
                continue
            with child.log.open("rb") as file:
                file.seek(self._read.get(name, 0))
                for line in file:
                    print(f"{name} | {line.decode(errors='replace').rstrip()}", flush=True)
                self._read[name] = file.tell()


def run(local: Local, *, verbose: bool) -> int:
    """Start it, watch it until a signal or a failure, and stop it; gives the exit status."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            local.kill_all()
        stop.set()
        local.give_up()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup means it to go on
            signal.signal(number, on_signal)
    began = time.monotonic()
    try:
        local.start()
    except LocalError as error:
        if stop.is_set():
            return 0
        print(error, file=sys.stderr)
        return 1
    print(summary(local, time.monotonic() - began), flush=True)
    logs = _Followed(local.children)
    restarts: collections.deque[float] = collections.deque(maxlen=RESTARTS_A_MINUTE)
    while not stop.wait(0.2):
        if verbose:
            logs.print()
        if not (child := local.fallen()):
            continue
        now = time.monotonic()
        if local.has_others(child) and (len(restarts) < RESTARTS_A_MINUTE or restarts[0] < now - 60):
            restarts.append(now)
            print(f"{child.name} {child.exit_status}, and is started again. Its log: {child.log}", file=sys.stderr, flush=True)
            local.restart(child.name)
        else:
            print(epitaph(child), file=sys.stderr)
            local.stop()
            print("Everything was stopped.", file=sys.stderr)
            return 1
    local.stop()
    where = local.data if "redis" in local.children else "the Redis of REDIS_URL"
    with contextlib.suppress(OSError):  # the terminal may be gone
        print(f"Stopped; matches are kept in {where}.", flush=True)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m deploy.local", description="Runs Gloaming on this machine.")
    parser.add_argument("--port", type=int, default=8080, help="the gateway's HTTP port (default 8080)")
    parser.add_argument("--host", default=LOCALHOST, help="the address it listens on (default 127.0.0.1; 0.0.0.0 for all)")
    parser.add_argument("--data", type=Path, help="where matches, keys and logs are kept (default .gloaming/<port>)")
    parser.add_argument("--replicas", type=int, default=1, help="processes of each game (default 1)")
    parser.add_argument("--monitoring", action="store_true", help="run a Prometheus beside it, with the rules of deploy/monitoring")
    parser.add_argument("--verbose", action="store_true", help="print the logs as well")
    given = parser.parse_args(arguments)
    if not 0 < given.port < 65536:
        parser.error("--port takes a number from 1 to 65535")
    if given.replicas < 1:
        parser.error("--replicas takes a number from 1")
    data = given.data or Path(".gloaming") / str(given.port)
    monitoring = SCRAPE_SECONDS if given.monitoring else None
    return run(Local(data, port=given.port, host=given.host, replicas=given.replicas, monitoring=monitoring), verbose=given.verbose)


if __name__ == "__main__":
    sys.exit(main())
