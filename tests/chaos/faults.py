"""What goes wrong, by name: each does its harm, heals it, and returns when everything serves again."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from services.kit.game import Game
from tests.chaos.stack import LEASE_SECONDS, Stack, metrics
from tests.harness import EVERY_GAME
from tests.topologies import Server, until

# What a replica that was added must have of its game's calls at least, of what would be its even share.
LEAST_SHARE = 0.5
# Gateways look for replicas at least every two seconds.
FOUND_SECONDS = 2.5

GATEWAY = "gateway"


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Args:
        name: what it is called.
        do: does it and heals it; what it returns is told beside the times.
        is_told: whether live sockets that it ends are told so before (SIGTERM).
        loses: whether what was acknowledged may be lost by it.
    """

    name: str
    do: Callable[[Stack], Awaitable[str | None]]
    is_told: bool = False
    loses: bool = False


def kill(kind: str, number: int = 1) -> Fault:
    """SIGKILL of one process."""

    async def do(stack: Stack) -> None:
        name = f"{kind}-{number}"
        await asyncio.to_thread(stack.local.kill, name)
        await stack.bring_back(name)

    return Fault(f"SIGKILL {kind}", do)


def term(kind: str, number: int = 1) -> Fault:
    """SIGTERM of one process."""

    async def do(stack: Stack) -> str:
        name = f"{kind}-{number}"
        return f"{await _replace(stack, name):.1f} s to drain"

    return Fault(f"SIGTERM {kind}", do, is_told=True)


def pause(kind: str, seconds: float, number: int = 1) -> Fault:
    """SIGSTOP of one process, and SIGCONT when its leases have passed."""

    async def do(stack: Stack) -> None:
        name = f"{kind}-{number}"
        child = stack.children[name]
        child.signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        child.signal(signal.SIGCONT)
        await stack.serves(name)

    return Fault(f"SIGSTOP {kind}, {seconds:g} s", do)


def all_of(kind: str, seconds: float) -> Fault:
    """SIGKILL of every process of a kind at once, which stay away for a while."""

    async def do(stack: Stack) -> None:
        names = stack.names(kind)
        for name in names:
            stack.children[name].signal(signal.SIGKILL)
        for name in names:
            await asyncio.to_thread(stack.children[name].wait)
        await asyncio.sleep(seconds)
        await asyncio.gather(*(stack.bring_back(name) for name in names))

    return Fault(f"SIGKILL all of {kind}, away {seconds:g} s", do)


def rolling() -> Fault:
    """Every replica and gateway is replaced, one after the other."""

    async def do(stack: Stack) -> str:
        names = stack.names()
        for name in names:
            await _replace(stack, name)
        return f"{len(names)} processes"

    return Fault("rolling replacement", do, is_told=True)


def added(game: Game) -> Fault:
    """A game is left with one replica; then another comes, and gets its share of the calls."""

    async def do(stack: Stack) -> str:
        names = stack.names(game.id)
        await asyncio.to_thread(stack.local.kill, names[-1])
        await asyncio.sleep(LEASE_SECONDS)
        await stack.bring_back(names[-1])
        await asyncio.sleep(FOUND_SECONDS)
        pages = [f"http://{address}/metrics" for address in stack.local.metrics[game.id]]
        before = await asyncio.gather(*(asyncio.to_thread(_calls, page) for page in pages))
        await asyncio.sleep(FOUND_SECONDS)
        after = await asyncio.gather(*(asyncio.to_thread(_calls, page) for page in pages))
        calls = dict(zip(names, (b - a for a, b in zip(before, after, strict=True)), strict=True))
        share = calls[names[-1]] / max(1, sum(calls.values()))
        if share < LEAST_SHARE / len(names):
            raise AssertionError(f"a replica that was added got {share:.0%} of the calls of {len(names)}: {calls}")
        return f"{share:.0%} of {sum(calls.values()):.0f} calls"

    return Fault(f"a replica of {game.id} is added", do)


def _calls(page: str) -> float:
    return sum(value for name, value in metrics(page).items() if name.startswith("gloaming_rpcs_total") and "Health" not in name)


def flush_scripts() -> Fault:
    """SCRIPT FLUSH on every node."""

    async def do(stack: Stack) -> None:
        for server in stack.redis:
            if not stack.cluster or server.is_master:
                await asyncio.to_thread(server.do, "SCRIPT", "FLUSH")
        await stack.all_serve()

    return Fault("SCRIPT FLUSH", do)


def restart_redis(number: signal.Signals, seconds: float = 0.0, *, loses: bool = False) -> Fault:
    """The only Redis ends, and starts again from its append-only file."""

    async def do(stack: Stack) -> str:
        (server,) = stack.redis
        server.child.signal(number)
        await asyncio.to_thread(server.child.wait)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(server.start)
        await stack.all_serve()
        return f"{await asyncio.to_thread(server.do, 'DBSIZE')} keys"

    return Fault(f"{number.name} redis, away {seconds:g} s", do, loses=loses)


def pause_redis(seconds: float, *, loses: bool = False) -> Fault:
    """SIGSTOP of the only Redis, or of one master."""

    async def do(stack: Stack) -> None:
        child = _master(stack).child
        child.signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        child.signal(signal.SIGCONT)
        await stack.all_serve()

    return Fault(f"SIGSTOP redis, {seconds:g} s", do, loses=loses)


def planned_failover() -> Fault:
    """A replica takes its master's place in step (CLUSTER FAILOVER), which loses nothing."""

    async def do(stack: Stack) -> None:
        assert stack.cluster
        await asyncio.to_thread(stack.cluster.fail_over, "any")
        await asyncio.to_thread(stack.cluster.whole)
        await stack.all_serve()

    return Fault("CLUSTER FAILOVER", do)


def lost_master() -> Fault:
    """SIGKILL of a master: its replica takes over with what it has."""

    async def do(stack: Stack) -> None:
        assert stack.cluster
        # Another than the one that a planned failover has just made master.
        taken = stack.cluster.owner("any")
        master = next(server for server in stack.redis if server.is_master and server is not taken)
        replica = await asyncio.to_thread(stack.cluster.replica, master)
        await asyncio.to_thread(master.kill)
        await asyncio.to_thread(until, lambda: replica.is_master)
        await asyncio.to_thread(master.start)
        await asyncio.to_thread(stack.cluster.whole)
        await stack.all_serve()

    return Fault("SIGKILL master", do, loses=True)


def every(stack: Stack) -> Iterator[Fault]:
    """All of them, once for each kind of process."""
    kinds = [game.id for game in EVERY_GAME] + [GATEWAY]
    yield added(EVERY_GAME[0])
    for kind in kinds:
        yield kill(kind)
        yield term(kind, 2)
        yield pause(kind, 3 * LEASE_SECONDS)
    yield flush_scripts()
    yield all_of(EVERY_GAME[0].id, 4)
    yield all_of(GATEWAY, 1)
    yield rolling()
    yield from of_redis(stack)


def of_redis(stack: Stack) -> Iterator[Fault]:
    """Those of the storage."""
    if stack.cluster:
        yield planned_failover()
        yield pause_redis(0.5, loses=True)
        yield lost_master()
    else:
        loses = stack.mode == "everysec"
        yield restart_redis(signal.SIGTERM)
        yield pause_redis(3)
        yield restart_redis(signal.SIGKILL, loses=loses)
        yield restart_redis(signal.SIGKILL, 4, loses=loses)


def short() -> Iterator[Fault]:
    """One of each kind, in as little time as possible; a replica is killed before it is added."""
    first, *others = EVERY_GAME
    yield added(first)
    yield term(others[0].id)
    yield pause(others[-1].id, 1.5 * LEASE_SECONDS)
    yield kill(GATEWAY)
    yield term(GATEWAY, 2)
    yield pause(GATEWAY, 1.5)
    yield flush_scripts()
    yield restart_redis(signal.SIGKILL)


def _master(stack: Stack) -> Server:
    return next(server for server in stack.redis if not stack.cluster or server.is_master)


async def _replace(stack: Stack, name: str) -> float:
    """Stops a process as an operator would, starts it again, and returns how long it took to end, seconds."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    stack.children[name].signal(signal.SIGTERM)
    ended = await asyncio.to_thread(stack.children[name].wait, 20)
    assert ended, f"{name} does not end"
    seconds = loop.time() - began
    await stack.bring_back(name)
    return seconds
