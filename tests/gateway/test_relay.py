"""The relay's client: replicas come, go and die under sockets that notice nothing."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import jwt
import pytest
from prometheus_client import REGISTRY
from redis.asyncio import Redis

from gateway import relay
from gateway.relay import Patience
from gateway.targets import resolve
from gloaming.live.v1 import live_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.relay.v1 import relay_pb2
from services.kit.cursor import START
from services.kit.errors import Error, Forbidden, Throttled, Unavailable
from tests.gateway.stand import MATCH_ID, Link, Stand, World, cursor, framed, live_stand
from tests.harness import Keys, eventually
from tests.live import BOTH, Socket, live

KEEP = night_clan_pb2.Move(keep=night_clan_pb2.Keep())
OTHER_ID = "night_clan-klmnopqrst"


@pytest.fixture
async def world() -> World:
    world = World()
    for _ in range(2):
        await world.replica()
    return world


@pytest.fixture
async def served(keys: Keys, redis_url: str, redis: Redis, world: World) -> AsyncIterator[Stand]:
    async with live_stand(keys, redis_url, world) as it:
        yield it


def watchers(world: World) -> int:
    """How many sockets watch something."""
    return sum(bool(matches) for replica in world.replicas for link in replica.links for matches in link.watching.values())


async def versions(ann: Socket, count: int) -> list[int]:
    return [(await ann.next("event", "snapshot")).version for _ in range(count)]


async def test_a_replica_that_is_killed_goes_unnoticed(served: Stand, keys: Keys, world: World) -> None:
    resumed = REGISTRY.get_sample_value("gloaming_relay_streams_resumed_total", {"game": "night_clan"}) or 0
    async with AsyncExitStack() as stack:
        players = [await stack.enter_async_context(live(served.live_url, keys.token(f"p{n}"), BOTH[n % 2])) for n in range(6)]
        for each in players:
            await each.watch(MATCH_ID, START)
        version = 0
        for turn in range(4):
            for _ in range(5):
                version += 1
                world.play(MATCH_ID)
            if turn < 3:
                replica = world.replicas[turn % 2]
                await replica.stop()
                version += 1
                world.play(MATCH_ID)  # while some are adrift
                await eventually(lambda: watchers(world) == 6)
                await replica.start()
                await asyncio.sleep(0.5)
        for each in players:
            assert await versions(each, version) == list(range(1, version + 1))
            assert each.inbox() == []
            assert each.connection.close_code is None
    assert (REGISTRY.get_sample_value("gloaming_relay_streams_resumed_total", {"game": "night_clan"}) or 0) > resumed


@pytest.mark.parametrize(
    "end",
    [
        None,
        Unavailable("DRAINING", "this replica is about to stop"),
        Throttled("SLOW_READER", "the gateway does not read"),
        Forbidden("SCOPE_MISSING", "not for you"),
    ],
    ids=repr,
)
async def test_a_stream_that_ends_however_goes_on_elsewhere(served: Stand, keys: Keys, world: World, end: Error | None) -> None:
    async with live(served.live_url, keys.token("ann")) as ann:
        await ann.watch(MATCH_ID, START)
        world.play(MATCH_ID)
        assert await versions(ann, 1) == [1]
        (first,) = [replica for replica in world.replicas if replica.links]
        first.links[0].end(end)
        await eventually(lambda: watchers(world) == 1 and not first.links)
        world.play(MATCH_ID)
        assert await versions(ann, 1) == [2]
        # Where it has been resumed it went on after the cursor.
        (second,) = [replica for replica in world.replicas if replica is not first]
        assert [frame.watch.after for _, frame in second.taken] == [cursor(1)]
        assert set(second.links[0].tokens.values()) == {keys_of(first)}
        assert ann.inbox() == []


def keys_of(replica: Any) -> str:
    return str(replica.taken[0][0])


async def test_a_request_without_an_answer_is_asked_again_and_no_other(served: Stand, keys: Keys, world: World) -> None:
    async with live(served.live_url, keys.token("ann")) as ann:
        assert (await ann.move(MATCH_ID, KEEP, "answered")).HasField("result")
        (first,) = [replica for replica in world.replicas if replica.links]
        first.silent = True
        move = live_pb2.Move(match_id=MATCH_ID, move=KEEP.SerializeToString())
        for number in range(5):
            await ann.ask(f"open-{number}", move=move)
        await eventually(lambda: len(first.taken) == 6)
        assert len(world.played[MATCH_ID]) == 6
        await first.stop()
        for number in range(5):
            assert (await ann.answer(f"open-{number}")).result.version == 6
        # Each was carried out once, in the order in which it was asked.
        assert len(world.played[MATCH_ID]) == 6
        assert world.asked[(MATCH_ID, "answered")] == 1
        (second,) = [replica for replica in world.replicas if replica is not first]
        assert [frame.request_id for _, frame in second.taken] == [f"open-{number}" for number in range(5)]
        assert ann.inbox() == []


async def test_what_is_asked_while_there_is_no_replica_waits_for_one(served: Stand, keys: Keys, world: World) -> None:
    async with live(served.live_url, keys.token("ann")) as ann:
        await ann.watch(MATCH_ID)
        for replica in world.replicas:
            await replica.stop()
        asked = await ann.ask(move=live_pb2.Move(match_id=MATCH_ID, move=KEEP.SerializeToString()))
        with pytest.raises(TimeoutError):
            await ann.answer(asked, seconds=0.5)
        await world.replicas[0].start()
        assert (await ann.answer(asked)).result.version == 1


async def test_when_no_replica_can_be_had_the_socket_is_closed(keys: Keys, redis_url: str, redis: Redis, world: World) -> None:
    async with (
        live_stand(keys, redis_url, world, patience=Patience(replica=1.0)) as it,
        live(it.live_url, keys.token("ann")) as ann,
        live(it.live_url, keys.token("bob")) as bob,
    ):
        await ann.watch(MATCH_ID)
        for replica in world.replicas:
            await replica.stop()
        problem = await ann.next("problem")
        assert (problem.reason, problem.status, problem.request_id, problem.retry_after) == ("UNAVAILABLE", 503, "", 1)
        assert (await ann.closed())[0] == 1013
        # A socket that has nothing to do with the game stays.
        await bob.send(ping=live_pb2.Ping(nonce="n"))
        assert (await bob.next("pong")).nonce == "n"


async def test_a_replica_that_refuses_every_stream_is_passed_over(served: Stand, keys: Keys, world: World) -> None:
    world.replicas[0].refuses = Unavailable("DRAINING", "this replica is about to stop")
    async with AsyncExitStack() as stack:
        for number in range(5):
            ann = await stack.enter_async_context(live(served.live_url, keys.token(f"p{number}")))
            assert (await ann.watch(MATCH_ID)).HasField("result")
        assert watchers(world) == 5


async def test_sockets_are_spread_and_share_one_stream_a_replica(served: Stand, keys: Keys, world: World) -> None:
    async with AsyncExitStack() as stack:
        for number in range(10):
            ann = await stack.enter_async_context(live(served.live_url, keys.token(f"p{number}")))
            await ann.watch(MATCH_ID)
            await ann.watch(OTHER_ID)
        assert [len(replica.links) for replica in world.replicas] == [1, 1]
        assert [len(replica.links[0].tokens) for replica in world.replicas] == [5, 5]
    await eventually(lambda: [len(replica.links[0].tokens) for replica in world.replicas] == [0, 0])


async def test_a_replica_that_comes_gets_its_share_and_one_that_goes_no_more(
    keys: Keys, redis_url: str, redis: Redis, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {f"ipv4:{world.replicas[0].address}"}

    async def names(target: str) -> set[str] | None:
        return set(known)

    monkeypatch.setattr(relay, "resolve", names)
    async with live_stand(keys, redis_url, world, patience=Patience(resolve=0.1)) as it, AsyncExitStack() as stack:

        async def come(count: int) -> None:
            for _ in range(count):
                ann = await stack.enter_async_context(live(it.live_url, keys.token("ann")))
                await ann.watch(MATCH_ID)

        await come(4)
        known.add(f"ipv4:{world.replicas[1].address}")
        await asyncio.sleep(0.5)
        await come(4)
        assert [len(replica.links[0].tokens) for replica in world.replicas] == [4, 4]
        known.remove(f"ipv4:{world.replicas[0].address}")
        await asyncio.sleep(0.5)
        await come(2)
        assert [len(replica.links[0].tokens) for replica in world.replicas] == [4, 6]
        # Those who are there stay until the stream ends; then it is left for good.
        world.replicas[0].links[0].end()
        await eventually(lambda: [len(replica.links) for replica in world.replicas] == [0, 1])
        await eventually(lambda: len(world.replicas[1].links[0].tokens) == 10)
        known.add(f"ipv4:{world.replicas[0].address}")
        await asyncio.sleep(0.5)
        await come(1)
        assert len(world.replicas[0].links[0].tokens) == 1


async def test_frames_that_wait_go_along_in_one_write(served: Stand, keys: Keys, world: World) -> None:
    async with AsyncExitStack() as stack:
        players = [await stack.enter_async_context(live(served.live_url, keys.token(f"p{n}"))) for n in range(2)]
        for each in players:
            await each.watch(MATCH_ID)
        move = live_pb2.Move(match_id=MATCH_ID, move=KEEP.SerializeToString())
        for number in range(50):
            for player, each in enumerate(players):
                await each.ask(f"{player}-{number}", move=move)
        for number in range(50):
            for player, each in enumerate(players):
                await each.answer(f"{player}-{number}")
        batches = [size for replica in world.replicas for size in replica.links[0].batches]
        assert sum(batches) > len(batches)


async def test_the_gateway_comes_with_a_token_of_its_own(served: Stand, keys: Keys, world: World) -> None:
    async with live(served.live_url, keys.token("ann")) as ann:
        await ann.watch(MATCH_ID)
        (link,) = [link for replica in world.replicas for link in replica.links]
        scheme, _, token = link.authorization.partition(" ")
        assert scheme == "Bearer"
        claims = jwt.decode(token, options={"verify_signature": False})
        assert (claims["sub"], claims["scope"].split()) == ("gateway", ["host", "relay"])


def refusing(reason: str, status: int, times: int) -> Any:
    left = iter(range(times))

    def answer(link: Link, number: int, frame: live_pb2.ClientFrame) -> bool:
        if next(left, None) is None:
            return False
        problem = live_pb2.Problem(request_id=frame.request_id, match_id=frame.watch.match_id, reason=reason, status=status)
        packed = framed(live_pb2.ServerMessage(problem=problem))
        link.send(relay_pb2.Down(attachments=[number], frame=packed, request_id=frame.request_id))
        return True

    return answer


async def test_a_watch_that_cannot_be_taken_up_again_is_told(served: Stand, keys: Keys, world: World) -> None:
    async with live(served.live_url, keys.token("ann")) as ann:
        await ann.watch(MATCH_ID)
        await ann.next("snapshot")
        for replica in world.replicas:
            replica.answer = refusing("MATCH_NOT_FOUND", 404, 1)
        (first,) = [replica for replica in world.replicas if replica.links]
        first.links[0].end()
        problem = await ann.next("problem")
        assert (problem.reason, problem.match_id, problem.request_id) == ("MATCH_NOT_FOUND", MATCH_ID, "")
        assert watchers(world) == 0


async def test_a_watch_that_cannot_be_taken_up_again_now_is_taken_up_later(served: Stand, keys: Keys, world: World) -> None:
    async with live(served.live_url, keys.token("ann")) as ann:
        await ann.watch(MATCH_ID, START)
        for replica in world.replicas:
            replica.answer = refusing("STORAGE_UNAVAILABLE", 503, 2)
        (first,) = [replica for replica in world.replicas if replica.links]
        first.links[0].end()
        await eventually(lambda: not watchers(world))
        world.play(MATCH_ID)
        assert await versions(ann, 1) == [1]
        assert ann.inbox() == []


async def test_a_watch_that_is_refused_does_not_take_a_later_one_of_the_same_match_with_it(served: Stand, keys: Keys, world: World) -> None:
    held: list[live_pb2.ClientFrame] = []
    refuse_one = refusing("STORAGE_UNAVAILABLE", 503, 1)

    def answer(link: Link, number: int, frame: live_pb2.ClientFrame) -> bool:
        held.append(frame)
        if len(held) == 2:
            refuse_one(link, number, held[0])
        return len(held) == 1

    for replica in world.replicas:
        replica.answer = answer
    async with live(served.live_url, keys.token("ann")) as ann:
        refused, taken = [await ann.ask(watch=live_pb2.Watch(match_id=MATCH_ID, after=START)) for _ in range(2)]
        assert (await ann.answer(refused)).problem.reason == "STORAGE_UNAVAILABLE"
        assert (await ann.answer(taken)).HasField("result")
        (first,) = [replica for replica in world.replicas if replica.links]
        await first.stop()
        await eventually(lambda: watchers(world) == 1)
        world.play(MATCH_ID)
        assert await versions(ann, 1) == [1]


async def test_a_service_that_is_behind_refuses_and_nothing_piles_up(
    served: Stand, keys: Keys, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with live(served.live_url, keys.token("ann")) as ann:
        await ann.watch(MATCH_ID)
        with monkeypatch.context() as patch:
            patch.setattr(relay.Stream, "full", True)
            problem = (await ann.move(MATCH_ID, KEEP, "m")).problem
            assert (problem.reason, problem.status, problem.retry_after) == ("OVERLOADED", 503, 1)
        assert (await ann.move(MATCH_ID, KEEP, "m")).result.version == 1


async def test_nothing_is_missed_or_repeated_while_replicas_come_and_go(served: Stand, keys: Keys, world: World) -> None:
    chance = random.Random(4)
    going = True

    async def trouble() -> None:
        while going:
            await asyncio.sleep(chance.uniform(0.05, 0.3))
            replica = chance.choice(world.replicas)
            if replica.links and chance.random() < 0.7:
                chance.choice(replica.links).end(chance.choice([None, Unavailable("DRAINING", "soon")]))
            else:
                await replica.stop()
                await asyncio.sleep(chance.uniform(0, 0.2))
                await replica.start()

    async with AsyncExitStack() as stack:
        players = [await stack.enter_async_context(live(served.live_url, keys.token(f"p{n}"), BOTH[n % 2])) for n in range(4)]
        for each in players:
            await each.watch(MATCH_ID, START)
        troubling = asyncio.create_task(trouble())

        async def play(player: int, each: Socket) -> None:
            for number in range(40):
                assert (await each.move(MATCH_ID, KEEP, f"{player}-{number}")).HasField("result")
                await asyncio.sleep(0.01)

        await asyncio.gather(*(play(number, each) for number, each in enumerate(players)))
        going = False
        await troubling
        assert len(world.played[MATCH_ID]) == 160
        for each in players:
            assert await versions(each, 160) == list(range(1, 161))
            assert each.inbox() == []


@pytest.mark.parametrize(
    ("target", "addresses"),
    [
        ("127.0.0.1:50051", {"ipv4:127.0.0.1:50051"}),
        ("dns:///127.0.0.1:50051", {"ipv4:127.0.0.1:50051"}),
        ("dns:127.0.0.1:50051", {"ipv4:127.0.0.1:50051"}),
        ("dns:///127.0.0.1", {"ipv4:127.0.0.1:443"}),
        ("[::1]:50051", {"ipv6:[::1]:50051"}),
        ("ipv4:10.0.0.1:1,10.0.0.2:2", {"ipv4:10.0.0.1:1", "ipv4:10.0.0.2:2"}),
        ("ipv6:[::1]:1,[::2]:2", {"ipv6:[::1]:1", "ipv6:[::2]:2"}),
        ("unix:/run/x.sock", {"unix:/run/x.sock"}),
        ("dns://8.8.8.8/name:1", {"dns://8.8.8.8/name:1"}),
        ("xds:///night-clan", {"xds:///night-clan"}),
    ],
)
async def test_a_target_is_resolved_into_its_replicas(target: str, addresses: set[str]) -> None:
    assert await resolve(target) == addresses


async def test_a_name_is_every_address_of_it_and_one_that_cannot_be_resolved_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Any = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fd00::1", 50051, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 50051)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.2", 50051)),
    ]

    async def getaddrinfo(host: str, port: int, *, type: int) -> Any:
        assert (host, port) == ("night-clan", 50051)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    assert await resolve("dns:///night-clan:50051") == {"ipv4:10.0.0.1:50051", "ipv4:10.0.0.2:50051"}
    found = socket.gaierror()
    assert await resolve("night-clan:50051") is None
