"""The pillow path, from a player's socket to everybody's: how many reactions a second, how fast, and what of it the machine itself takes.

The load (`tests.bench.load`) is a process of its own: four players a room, each touching a pillow as soon as it sees a round begin, so that
every round decides four reactions, resolves, commits and reveals again.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import uvloop

from deploy.local import Local
from deploy.processes import tail
from gloaming.live.v1 import live_pb2
from gloaming.night_knight.v1 import night_knight_pb2 as pb
from services.kit.storage import Script, Storage
from tests import unlimited
from tests.bench.echo import PAYLOAD, echo
from tests.bench.load import Host, Player, Room, Server, Untrue, client_frame, messages
from tests.bench.peers.contest import Result
from tests.bench.unmetered import MODULE

NAME = "gloaming"
# By number of rooms, how many rounds each plays: some seconds on two cores. A fifth as many come before and are not counted.
ROUNDS = {1: 1500, 10: 600, 50: 150}
WARM_UP = {1: 250, 10: 120, 50: 30}
# Each player of one room reacts so often in turn, with the floors and a pause after each.
UNHURRIED_ROUNDS = 75
PAUSE_SECONDS = 0.005
# So many pairs, with and without metrics, of so many rounds in ten rooms.
PAIRS, PAIR_ROUNDS = 8, 250

_MEASURE_SECONDS = 120.0
_GAME = "night_knight"
_ONE = Script(Path(__file__).parent / "one.lua")


class PillowError(RuntimeError):
    """The load failed, or saw what must not be; the message says what."""


def measure() -> dict[str, Any]:
    """The path at all numbers of rooms, a grab in no hurry beside what its way costs with nothing on it, and what the metrics cost."""
    with serving() as (local, server):
        path = {f"rooms_{rooms}": _summary(run(server, rooms)) for rooms in ROUNDS}
        grab = uvloop.run(unhurried(local, server))
    return {**path, "unhurried": grab, "metrics": metrics_cost()}


def contestant(rooms: int) -> Result:
    """One measurement, as `tests.bench.peers` compares them: by a server that was just started."""
    with serving() as (_, server):
        measured = run(server, rooms)
    cpu, seconds = measured["cpu_seconds"], measured["seconds"]
    return Result(
        NAME,
        rooms,
        measured["reactions"] / seconds,
        measured["p50_ms"],
        measured["p99_ms"],
        sum(spent for name, spent in cpu.items() if name != "load") / seconds,
        cpu["load"] / seconds,
    )


@contextmanager
def serving(kind: type[Local] = Local) -> Iterator[tuple[Local, Server]]:
    """Everything, on this machine."""
    with tempfile.TemporaryDirectory() as data, kind(Path(data), env={"REDIS_URL": "", **unlimited.ENVIRONMENT}) as local:
        pids = {name: child.pid for name, child in local.children.items() if child.pid and name in ("redis", _GAME, "gateway")}
        try:
            yield local, Server(local.port, local.services[_GAME][0], str(local.signing_key), pids)
        except Exception:
            # They are about to go.
            for name in (_GAME, "gateway"):
                print(f"The end of the log of {name}:\n{tail(local.children[name].log)}", file=sys.stderr)
            raise


def run(server: Server, rooms: int, rounds: int | None = None, warm_up: int | None = None) -> dict[str, Any]:
    """What the load measures and says.

    Raises:
        PillowError: it failed.
    """
    asked = {"server": server._asdict(), "rooms": rooms, "rounds": rounds or ROUNDS[rooms], "warm_up": warm_up or WARM_UP[rooms]}
    argv = [sys.executable, "-m", "tests.bench.load", json.dumps(asked)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_MEASURE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise PillowError(f"{rooms} rooms took more than {_MEASURE_SECONDS:.0f} s") from None
    if done.returncode:
        raise PillowError(f"{rooms} rooms: {done.stderr}")
    measured: dict[str, Any] = json.loads(done.stdout)
    print(f"{rooms} rooms: {measured['reactions'] / measured['seconds']:,.0f} reactions a second", file=sys.stderr, flush=True)
    return measured


def _summary(measured: Mapping[str, Any]) -> dict[str, Any]:
    reactions, seconds = measured["reactions"], measured["seconds"]
    return {
        "reactions": reactions,
        "reactions_per_second": round(reactions / seconds),
        "p50_ms": round(measured["p50_ms"], 3),
        "p99_ms": round(measured["p99_ms"], 3),
        "cpu_us_a_reaction": {name: round(1e6 * spent / reactions, 1) for name, spent in measured["cpu_seconds"].items()},
        "reads_a_reaction": round(measured["reads_a_reaction"], 2),
    }


# ----------------------------------------------------------------- unhurried


async def unhurried(local: Local, server: Server) -> dict[str, Any]:
    """Median times in ms of a grab while nothing else happens and of the floors, taken in turn, and their ratio.

    The floors: a ping that the gateway answers on the same kind of socket, a message that comes back on an open gRPC stream, a script that
    returns 1, called as services call theirs.
    """
    samples: dict[str, list[float]] = {"grab": [], "socket": [], "grpc": [], "script": []}
    host, storage = Host(server), Storage(local.redis_url)
    room = host.room()
    idle = host.player()
    try:
        for player in room.players:
            player.await_first_round()
        async with echo() as echoed:
            for number in range(1, UNHURRIED_ROUNDS + 1):
                for player in room.players:
                    await asyncio.sleep(PAUSE_SECONDS)
                    samples["grab"].append(grab(room, player, number))
                    await asyncio.sleep(PAUSE_SECONDS)
                    samples["socket"].append(_ping(idle))
                    await asyncio.sleep(PAUSE_SECONDS)
                    samples["grpc"].append(await _timed(lambda: echoed.stream(PAYLOAD)))
                    await asyncio.sleep(PAUSE_SECONDS)
                    samples["script"].append(await _timed(lambda: storage.run(_ONE, ["bench"], [])))
    finally:
        room.close()
        idle.socket.close()
        host.close()
        await storage.close()
    medians = {name: statistics.median(times) * 1000 for name, times in samples.items()}
    floors = sum(medians.values()) - medians["grab"]
    return {
        "samples": len(samples["grab"]),
        "p50_ms": {name: round(median, 3) for name, median in medians.items()},
        "p50_ms_by_rank": [
            round(1000 * statistics.median(samples["grab"][rank :: len(room.players)]), 3) for rank in range(len(room.players))
        ],
        "grab_to_floors": round(medians["grab"] / floors, 2),
    }


def grab(room: Room, player: Player, number: int) -> float:
    """How long it takes a player to see its own reaction, in seconds; waits for the round before.

    Raises:
        Untrue: it was refused.
    """
    player.catch_up()
    while player.round < number:
        player.receive()
    start = len(player.came)
    sent = time.perf_counter()
    player.socket.send(room.reactions[number])
    while True:
        player.receive()
        for at, message in messages(player.came[start:]):
            if message.HasField("problem"):
                raise Untrue(f"a reaction was refused: {message.problem}")
            if message.HasField("event"):
                event = pb.Event.FromString(message.event.event)
                if event.HasField("reacted") and event.reacted.seat == player.seat:
                    return at - sent


def _ping(player: Player) -> float:
    """How long it takes a socket to be answered by the gateway."""
    player.catch_up()
    start = len(player.came)
    frame = client_frame(ping=live_pb2.Ping(nonce="bench"))
    sent = time.perf_counter()
    player.socket.send(frame)
    while True:
        player.receive()
        for at, message in messages(player.came[start:]):
            if message.HasField("pong"):
                return at - sent


async def _timed(call: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await call()
    return time.perf_counter() - began


# ------------------------------------------------------------------- metrics


class Unmetered(Local):
    """A copy whose metrics count nothing."""

    def _start_child(self, name: str, module: str, env: Mapping[str, str], without: Collection[str] = ()) -> None:
        super()._start_child(name, "tests.bench.unmetered", {**env, MODULE: module}, without)


def metrics_cost() -> dict[str, Any]:
    """What all metrics cost, in percent: two copies are measured in turn, the one that counts and the one that does not, either first."""
    throughput, cpu = [], []
    with ExitStack() as stack:
        servers = {kind: stack.enter_context(serving(kind))[1] for kind in (Local, Unmetered)}
        for server in servers.values():
            run(server, 10, PAIR_ROUNDS)  # both warm
        for pair in range(PAIRS):
            order = list(servers) if pair % 2 == 0 else list(reversed(servers))
            measured = {kind: run(servers[kind], 10, PAIR_ROUNDS, 20) for kind in order}
            seconds = {kind: each["seconds"] for kind, each in measured.items()}
            spent = {kind: each["cpu_seconds"][_GAME] + each["cpu_seconds"]["gateway"] for kind, each in measured.items()}
            throughput.append(100 * (1 - seconds[Unmetered] / seconds[Local]))
            cpu.append(100 * (1 - spent[Unmetered] / spent[Local]))
    return {
        "pairs": PAIRS,
        "of_time_percent": {"median": round(statistics.median(throughput), 1), "values": [round(each, 1) for each in throughput]},
        "of_service_and_gateway_cpu_percent": {"median": round(statistics.median(cpu), 1), "values": [round(each, 1) for each in cpu]},
    }
