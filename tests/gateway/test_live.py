"""The live socket, over real sockets, with a scripted RelayService behind it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import os
import random
import re
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from redis.asyncio import Redis
from structlog.testing import capture_logs
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.typing import Subprotocol

from gateway import frames, protocol, transcoding
from gateway.live import Limits
from gloaming.live.v1 import live_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.relay.v1 import relay_pb2
from services.kit.cursor import START
from services.kit.identity import revocation_key
from services.kit.line import Line
from tests.gateway.stand import MATCH_ID, Link, Stand, World, cursor, framed, happened, live_stand
from tests.harness import Keys, eventually
from tests.live import BOTH, JSON, PROTO, Socket, live

KEEP = night_clan_pb2.Move(keep=night_clan_pb2.Keep())
REAL_TIME_ID = "night_knight-abcdefghij"
UPGRADE = (
    b"GET /v1/live HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %b\r\n"
)
KEY = base64.b64encode(b"sixteen bytes ok")


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def served(keys: Keys, redis_url: str, redis: Redis, world: World) -> AsyncIterator[Stand]:
    async with live_stand(keys, redis_url, world) as it:
        yield it


@asynccontextmanager
async def sitting(keys: Keys, redis_url: str, world: World, **limits: Any) -> AsyncIterator[tuple[Stand, str]]:
    """A gateway with limits of its own, and Ann's token."""
    async with live_stand(keys, redis_url, world, limits=Limits(**limits)) as it:
        yield it, keys.token("ann")


def closings(code: int) -> float:
    return REGISTRY.get_sample_value("gloaming_sockets_closed_total", {"code": str(code)}) or 0


@asynccontextmanager
async def connected(it: Stand) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection of which only bytes are known."""
    reader, writer = await asyncio.open_connection(it.http.base_url.host, it.http.base_url.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def raw(it: Stand, subprotocol: str, token: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """The same, its handshake over."""
    async with connected(it) as (reader, writer):
        writer.write(UPGRADE % KEY + f"Sec-WebSocket-Protocol: {subprotocol}, bearer.{token}\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        yield reader, writer


# The handshake.


async def test_a_connection_that_was_used_before_may_become_a_socket_and_stays(
    served: Stand, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    async with connected(served) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b'{"alive":true}')
        writer.write(UPGRADE % KEY + f"Sec-WebSocket-Protocol: {JSON}, bearer.{keys.token('ann')}\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        ending = asyncio.create_task(reader.read())
        done, _ = await asyncio.wait({ending}, timeout=0.8)
        assert not done
        ending.cancel()


@pytest.mark.parametrize("subprotocol", BOTH)
@pytest.mark.parametrize("by_header", [False, True])
async def test_a_token_comes_beside_the_subprotocol_or_in_the_header(
    served: Stand, keys: Keys, subprotocol: Subprotocol, by_header: bool
) -> None:
    async with live(served.live_url, keys.token("ann"), subprotocol, by_header=by_header) as ann:
        assert ann.connection.subprotocol == subprotocol
        assert (await ann.watch(MATCH_ID)).result.match_id == MATCH_ID


async def test_the_token_is_never_echoed_and_nothing_is_compressed(served: Stand, keys: Keys) -> None:
    token = keys.token("ann")
    async with connect(served.live_url, subprotocols=[Subprotocol(f"bearer.{token}"), JSON], proxy=None) as connection:
        assert connection.response is not None
        assert token not in str(connection.response.headers)
        assert "permessage-deflate" not in str(connection.response.headers)
        assert connection.response.headers["X-Request-Id"]


@pytest.mark.parametrize("offered", [[], ["gloaming.v2.json"], ["bearer.x"], ["chat", "superchat"]])
async def test_a_client_that_offers_no_subprotocol_of_ours_is_refused_with_a_problem(served: Stand, offered: list[str]) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(served.live_url, subprotocols=[Subprotocol(each) for each in offered] or None, proxy=None)
    response = refused.value.response
    assert (response.status_code, response.headers["Content-Type"]) == (400, "application/problem+json")
    problem = json.loads(response.body or b"")
    assert (problem["reason"], problem["violations"][0]["field"]) == ("INVALID_ARGUMENT", "Sec-WebSocket-Protocol")


@pytest.mark.parametrize("subprotocol", BOTH)
@pytest.mark.parametrize(
    ("offered", "query", "reason"),
    [
        ([], "", "TOKEN_MISSING"),
        ([], "?access_token={good}&token={good}&bearer={good}", "TOKEN_MISSING"),
        (["bearer."], "", "TOKEN_INVALID"),
        (["bearer.nonsense"], "", "TOKEN_INVALID"),
        (["bearer.{good}x"], "", "TOKEN_INVALID"),
        (["bearer.{good}", "bearer.{good}"], "", "TOKEN_INVALID"),
        (["bearer.{old}"], "", "TOKEN_EXPIRED"),
    ],
)
async def test_a_bad_token_is_told_and_the_socket_closed(
    served: Stand, keys: Keys, subprotocol: Subprotocol, offered: list[str], query: str, reason: str
) -> None:
    known = {"good": keys.token("ann"), "old": keys.token("ann", seconds=-5)}
    wanted = [subprotocol, *(Subprotocol(each.format(**known)) for each in offered)]
    before = closings(1008)
    connection = await connect(served.live_url + query.format(**known), subprotocols=wanted, proxy=None)
    ann = Socket(connection)
    problem = await ann.next("problem")
    assert (problem.reason, problem.status, problem.request_id) == (reason, 401, "")
    assert await ann.closed() == (1008, reason)
    await eventually(lambda: closings(1008) == before + 1)


async def test_a_player_who_has_signed_out_is_told(served: Stand, keys: Keys, redis: Redis) -> None:
    await redis.set(revocation_key("ann"), 2)
    async with live(served.live_url, keys.token("ann", generation=1)) as ann:
        assert (await ann.next("problem")).reason == "TOKEN_REVOKED"
        assert (await ann.closed())[0] == 1008


@pytest.mark.parametrize(
    "head",
    [
        b"GET /v1/live HTTP/1.1\r\nHost: x\r\n",
        UPGRADE % b"short",
        UPGRADE % KEY + b"Sec-WebSocket-Key: " + KEY + b"\r\n",
        (UPGRADE % KEY).replace(b": 13", b": 8"),
        (UPGRADE % KEY).replace(b"Connection: Upgrade", b"Connection: close"),
        (UPGRADE % KEY).replace(b"Upgrade: websocket", b"Upgrade: h2c"),
        UPGRADE % KEY + b"Content-Length: 0\r\n",
        UPGRADE % KEY + b"X: " + b"a" * 9000 + b"\r\n",
        UPGRADE % KEY + b"X: a\r\n" * 200,
        (UPGRADE % KEY).replace(b"/v1/live", b"/v1/live?" + b"a" * 9000),
    ],
)
async def test_what_is_no_handshake_is_426(served: Stand, head: bytes) -> None:
    async with connected(served) as (reader, writer):
        writer.write(head + b"\r\n")
        answer = await asyncio.wait_for(reader.readuntil(b"}"), 5)
    assert answer.startswith(b"HTTP/1.1 426 ")
    assert b"upgrade: websocket\r\n" in answer
    assert b"sec-websocket-version: 13\r\n" in answer
    assert b'"reason":"UPGRADE_REQUIRED"' in answer


@pytest.mark.parametrize("path", ["/v1/matches", "/v1/live/x", "/nope"])
async def test_no_other_path_has_sockets(served: Stand, keys: Keys, path: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(served.live_url.replace("/v1/live", path), subprotocols=[JSON], proxy=None)
    assert refused.value.response.status_code in (404, 405)


async def test_a_socket_is_logged_by_its_route_and_never_with_a_token(served: Stand, keys: Keys, caplog: pytest.LogCaptureFixture) -> None:
    token = keys.token("ann")
    with caplog.at_level(logging.DEBUG), capture_logs() as logs:
        async with live(f"{served.live_url}?secret={token}", token) as ann:
            await ann.watch(MATCH_ID)
        await eventually(lambda: [entry for entry in logs if entry["event"] == "socket"])
    told = [entry for entry in logs if entry["event"] == "socket"]
    assert [(entry["route"], entry["status"], entry["code"]) for entry in told] == [("/v1/live", 101, 1000)]
    assert token not in repr(logs)
    server_side = [record for record in caplog.records if not record.name.startswith("websockets.client")]
    assert token not in repr([record.getMessage() for record in server_side])


# Frames.


@pytest.mark.parametrize("subprotocol", BOTH)
async def test_a_match_is_watched_and_played_over_the_socket(served: Stand, keys: Keys, world: World, subprotocol: Subprotocol) -> None:
    async with live(served.live_url, keys.token("ann"), subprotocol) as ann:
        assert (await ann.watch(MATCH_ID)).result == live_pb2.Result(request_id="1", match_id=MATCH_ID)
        snapshot = await ann.next("snapshot")
        assert night_clan_pb2.Match.FromString(snapshot.match).view.hand == [night_clan_pb2.Card.TROLL]
        assert (await ann.move(MATCH_ID, KEEP, expected_version=0)).result.version == 1
        event = await ann.next("event")
        assert (event.match_id, event.cursor, event.version) == (MATCH_ID, cursor(1), 1)
        assert night_clan_pb2.Event.FromString(event.event).hand_kept.seat == 1
        assert night_clan_pb2.Move.FromString(world.played[MATCH_ID][0]) == KEEP
        assert (await ann.unwatch(MATCH_ID)).HasField("result")
        world.play(MATCH_ID)
        assert (await ann.watch(MATCH_ID, cursor(1))).HasField("result")
        assert (await ann.next("event")).cursor == cursor(2)
        with pytest.raises(TimeoutError):
            await ann.next("event", "snapshot", seconds=0.1)


async def test_json_and_protobuf_say_the_same(served: Stand, keys: Keys, world: World) -> None:
    async with live(served.live_url, keys.token("ann"), JSON) as ann, live(served.live_url, keys.token("bob"), PROTO) as bob:
        both = (ann, bob)
        told: dict[Socket, list[Any]] = {each: [] for each in both}
        for each in both:
            told[each].append(await each.watch(MATCH_ID, START))
            told[each].append(await each.watch("nothing"))
            await each.ask("x" * 129, watch=live_pb2.Watch(match_id=MATCH_ID))
            told[each].append(await each.take(lambda message: message.problem.reason == "INVALID_ARGUMENT"))
            told[each].append(await each.authenticate("nonsense"))
        for _ in range(3):
            world.play(MATCH_ID)
        assert (await ann.move(MATCH_ID, KEEP, "m")).result == (await bob.move(MATCH_ID, KEEP, "m")).result
        await eventually(lambda: all(sum(isinstance(m, live_pb2.Event) for m in each.inbox()) == 4 for each in both))
        assert told[ann] == told[bob]
        assert ann.inbox() == bob.inbox()


async def test_in_json_a_games_messages_stand_as_themselves(served: Stand, keys: Keys, world: World) -> None:
    token = Subprotocol(f"bearer.{keys.token('ann')}")
    async with connect(served.live_url, subprotocols=[JSON, token], proxy=None) as connection:

        async def next_with(kind: str) -> Any:
            while True:
                for message in json.loads(await asyncio.wait_for(connection.recv(), 5))["messages"]:
                    if kind in message:
                        return message[kind]

        await connection.send(json.dumps({"requestId": "w", "watch": {"matchId": MATCH_ID}}))
        assert await next_with("result") == {"requestId": "w", "matchId": MATCH_ID, "version": 0}
        assert (await next_with("snapshot"))["match"]["view"]["hand"] == ["TROLL"]
        # The match's id may come after what it is needed for.
        move = {"requestId": "m", "move": {"move": {"play": {"card": "DAUGHTER", "location": "CHURCH"}}, "matchId": MATCH_ID}}
        await connection.send(json.dumps(move))
        assert await next_with("event") == {
            "matchId": MATCH_ID,
            "cursor": cursor(1),
            "version": 1,
            "time": "2027-01-15T08:00:01Z",
            "event": {"handKept": {"seat": 1}},
        }
        assert night_clan_pb2.Move.FromString(world.played[MATCH_ID][0]).play.card == night_clan_pb2.Card.DAUGHTER


@pytest.mark.parametrize(
    ("sent", "request_id", "match_id", "status", "reason", "field"),
    [
        ("", "", "", 400, "INVALID_ARGUMENT", ""),
        ("{", "", "", 400, "INVALID_ARGUMENT", ""),
        ("[]", "", "", 400, "INVALID_ARGUMENT", ""),
        ("[" * 50_000, "", "", 400, "INVALID_ARGUMENT", ""),
        ('{"requestId": "a"}', "a", "", 400, "INVALID_ARGUMENT", ""),
        ('{"requestId": "a", "shout": {}}', "a", "", 400, "INVALID_ARGUMENT", "shout"),
        ('{"requestId": 7, "watch": {"matchId": "M"}}', "", "M", 400, "INVALID_ARGUMENT", "requestId"),
        ('{"watch": {"matchId": "M"}}', "", "", 400, "INVALID_ARGUMENT", "requestId"),
        ('{"requestId": "\\n", "watch": {"matchId": "M"}}', "", "", 400, "INVALID_ARGUMENT", "requestId"),
        ('{"requestId": "a", "watch": {"matchId": "M"}, "unwatch": {}}', "a", "M", 400, "INVALID_ARGUMENT", "unwatch"),
        ('{"requestId": "a", "watch": {"matchId": "no"}}', "a", "", 404, "MATCH_NOT_FOUND", None),
        ('{"requestId": "a", "move": {"matchId": "no", "move": {}}}', "a", "", 404, "MATCH_NOT_FOUND", None),
        ('{"requestId": "a", "move": {"move": {}}}', "a", "", 404, "MATCH_NOT_FOUND", None),
        ('{"requestId": "a", "move": {"matchId": 1, "move": {}}}', "a", "", 400, "INVALID_ARGUMENT", "move.matchId"),
        ('{"requestId": "a", "move": {"matchId": "M", "move": "aGk="}}', "a", "M", 400, "INVALID_ARGUMENT", "move.move"),
        ('{"requestId": "a", "move": {"matchId": "M", "move": {"fly": {}}}}', "a", "M", 400, "INVALID_ARGUMENT", "move.move.fly"),
        (
            '{"requestId": "a", "move": {"matchId": "M", "move": {"play": {"card": "JOKER"}}}}',
            "a",
            "M",
            400,
            "INVALID_ARGUMENT",
            "move.move.play.card",
        ),
        ('{"ping": {"nonce": "' + "n" * 65 + '"}}', "", "", 400, "INVALID_ARGUMENT", "ping.nonce"),
    ],
)
async def test_a_frame_that_cannot_be_read_is_told_and_the_socket_stays(
    served: Stand, keys: Keys, sent: str, request_id: str, match_id: str, status: int, reason: str, field: str | None
) -> None:
    async with live(served.live_url, keys.token("ann"), JSON) as ann:
        await ann.connection.send(sent.replace('"M"', f'"{MATCH_ID}"'))
        problem = await ann.next("problem")
        assert (problem.request_id, problem.match_id) == (request_id, match_id.replace("M", MATCH_ID))
        assert (problem.status, problem.reason) == (status, reason)
        assert [each.field for each in problem.violations] == ([] if field is None else [field])
        assert (await ann.watch(MATCH_ID)).HasField("result")


@pytest.mark.parametrize(
    ("sent", "request_id"),
    [
        (b"", ""),
        (b"\x0a\x02ab", "ab"),
        (b"\x0a\x02ab\x12", "ab"),
        (b"\x0a\x02ab\xff\xff", "ab"),
        (b"\x0a\x02\xff\xff\x12\x00", ""),
        (b"\xff" * 40, ""),
        (live_pb2.ClientFrame(request_id="é", watch=live_pb2.Watch(match_id=MATCH_ID)).SerializeToString(), ""),
        (live_pb2.ClientFrame(request_id="r", watch=live_pb2.Watch(match_id="nope")).SerializeToString(), "r"),
    ],
)
async def test_bytes_that_are_no_frame_are_told_and_the_socket_stays(served: Stand, keys: Keys, sent: bytes, request_id: str) -> None:
    async with live(served.live_url, keys.token("ann"), PROTO) as ann:
        await ann.connection.send(sent)
        problem = await ann.next("problem")
        assert problem.request_id == request_id
        assert problem.status in (400, 404)
        assert (await ann.watch(MATCH_ID)).HasField("result")


@pytest.mark.parametrize("subprotocol", BOTH)
async def test_a_frame_of_the_other_subprotocols_kind_closes_1003(served: Stand, keys: Keys, subprotocol: Subprotocol) -> None:
    async with live(served.live_url, keys.token("ann"), subprotocol) as ann:
        await ann.connection.send("{}" if subprotocol == PROTO else b"{}")
        assert (await ann.closed())[0] == 1003


@pytest.mark.parametrize("fragments", [1, 7])
async def test_a_message_that_is_too_large_closes_1009(served: Stand, keys: Keys, fragments: int) -> None:
    async with live(served.live_url, keys.token("ann"), JSON) as ann:
        filler = '{"requestId": "a", "ping": {}}'
        await ann.connection.send(filler + " " * (65_536 - len(filler)))
        assert (await ann.next("pong")).nonce == ""
        part = " " * (65_537 // fragments + 1)
        with contextlib.suppress(ConnectionClosed):
            await ann.connection.send(part if fragments == 1 else [part] * fragments)
        assert (await ann.closed())[0] == 1009


async def test_a_message_in_too_many_fragments_closes_1009(served: Stand, keys: Keys) -> None:
    async with live(served.live_url, keys.token("ann"), JSON) as ann:
        await ann.connection.send([*[" "] * 200, '{"requestId": "a", "ping": {}}'])
        assert (await ann.next("pong")).nonce == ""
        with contextlib.suppress(ConnectionClosed):
            await ann.connection.send([""] * 1000)
        assert (await ann.closed())[0] == 1009


def test_what_waits_for_a_socket_is_sent_in_messages_that_any_client_takes() -> None:
    small, large = frames.Frame(b"s" * 1000), frames.Frame(b"l" * 100_000)
    assert [len(together) for together in frames.messages([small] * 5)] == [5]
    assert [len(together) for together in frames.messages([large, large, small, large, small])] == [1, 2, 2]
    waiting = [small] * 1000
    split = list(frames.messages(waiting))
    assert [frame for together in split for frame in together] == waiting
    assert max(len(frames.binary(together)) for together in split) <= 131_072


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (Frame(Opcode.TEXT, b"\xff").serialize(mask=True), 1007),
        (Frame(Opcode.TEXT, b"{}").serialize(mask=False), 1002),
        (b"\xff\xff\xff\xff", 1002),
        (Frame(Opcode.CONT, b"{}").serialize(mask=True), 1002),
        (Frame(Opcode.CLOSE, b"\x03").serialize(mask=True), 1002),
    ],
    ids=["text that is no UTF-8", "unmasked", "reserved bits", "a continuation of nothing", "half a code"],
)
async def test_what_is_no_websocket_closes_and_leaves_no_trace(
    served: Stand, keys: Keys, data: bytes, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with raw(served, JSON, keys.token("ann")) as (reader, writer):
        writer.write(data)
        got = b""
        async with asyncio.timeout(5):
            while b"\x88" not in got or code.to_bytes(2, "big") not in got:
                got += await reader.readexactly(1)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_client_that_goes_away_at_once_leaves_no_trace(served: Stand, keys: Keys, caplog: pytest.LogCaptureFixture) -> None:
    token = keys.token("ann")
    with capture_logs() as logs:
        for size in (0, 20, 200, 5000):
            async with connected(served) as (_, writer):
                writer.write((UPGRADE % KEY + f"Sec-WebSocket-Protocol: {JSON}, bearer.{token}\r\n\r\n".encode())[:size])
        # Requests and a close in one packet.
        async with raw(served, JSON, token) as (_, writer):
            watch = json.dumps({"requestId": "a", "watch": {"matchId": MATCH_ID}}).encode()
            packets = [Frame(Opcode.TEXT, b'{"ping": {}}'), Frame(Opcode.TEXT, watch), Frame(Opcode.CLOSE, b"\x03\xe8")]
            writer.write(b"".join(packet.serialize(mask=True) for packet in packets))
        await asyncio.sleep(0.3)
    assert not [entry for entry in logs if entry["log_level"] not in ("info", "debug")]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


# Requests.


@pytest.mark.parametrize("subprotocol", BOTH)
async def test_two_requests_of_one_id_get_one_answer_each(served: Stand, keys: Keys, world: World, subprotocol: Subprotocol) -> None:
    async with live(served.live_url, keys.token("ann"), subprotocol) as ann:
        move = live_pb2.Move(match_id=MATCH_ID, move=KEEP.SerializeToString())
        for _ in range(2):
            await ann.ask("same", move=move)
        first, second = await ann.answer("same"), await ann.answer("same")
        assert first == second
        assert len(world.played[MATCH_ID]) == 1


async def test_an_id_is_scoped_to_its_match(served: Stand, keys: Keys, world: World) -> None:
    other = "night_clan-klmnopqrst"
    held: list[tuple[Link, int, live_pb2.ClientFrame]] = []
    replica = world.replicas[0]

    def hold(link: Link, number: int, frame: live_pb2.ClientFrame) -> bool:
        held.append((link, number, frame))
        return True

    replica.answer = hold
    async with live(served.live_url, keys.token("ann")) as ann:
        for match_id in (MATCH_ID, other):
            await ann.ask("same", watch=live_pb2.Watch(match_id=match_id))
        await eventually(lambda: len(held) == 2)
        # The second is answered; the first is not, and asked again elsewhere.
        replica.result(*held[1])
        assert (await ann.answer("same")).result.match_id == other
        replica.answer = None
        replica.links[0].end()
        assert (await ann.answer("same")).result.match_id == MATCH_ID
        taken = [getattr(frame, str(frame.WhichOneof("kind"))).match_id for _, frame in replica.taken[2:]]
        assert sorted(taken) == sorted([other, MATCH_ID])


async def test_too_many_watches_and_too_many_requests_are_refused(keys: Keys, redis_url: str, redis: Redis, world: World) -> None:
    async with sitting(keys, redis_url, world, watches=3, requests=4) as (it, token), live(it.live_url, token) as ann:
        ids = [f"night_clan-{number:010}" for number in range(4)]
        for match_id in ids[:3]:
            assert (await ann.watch(match_id)).HasField("result")
        refused = (await ann.watch(ids[3])).problem
        assert (refused.reason, refused.status, refused.match_id, refused.retry_after) == ("TOO_MANY_WATCHES", 429, ids[3], 1)
        assert (await ann.watch(ids[0])).HasField("result")  # again
        assert (await ann.unwatch(ids[0])).HasField("result")
        assert (await ann.watch(ids[3])).HasField("result")
        world.replicas[0].silent = True
        for number in range(5):
            await ann.ask(f"r{number}", unwatch=live_pb2.Unwatch(match_id=MATCH_ID))
        refused = (await ann.answer("r4")).problem
        assert (refused.reason, refused.status) == ("TOO_MANY_REQUESTS", 429)


async def test_a_refused_watch_is_no_watch(keys: Keys, redis_url: str, redis: Redis, world: World) -> None:
    async with sitting(keys, redis_url, world, watches=1) as (it, token), live(it.live_url, token) as ann:

        def refuse_it(link: Link, number: int, frame: live_pb2.ClientFrame) -> bool:
            problem = live_pb2.Problem(request_id=frame.request_id, match_id=frame.watch.match_id, reason="NOT_A_PLAYER", status=403)
            packed = framed(live_pb2.ServerMessage(problem=problem))
            link.send(relay_pb2.Down(attachments=[number], frame=packed, request_id=frame.request_id))
            return True

        world.replicas[0].answer = refuse_it
        assert (await ann.watch(MATCH_ID)).problem.reason == "NOT_A_PLAYER"
        world.replicas[0].answer = None
        assert (await ann.watch("night_clan-klmnopqrst")).HasField("result")


async def test_a_match_that_has_ended_is_watched_no_longer(keys: Keys, redis_url: str, redis: Redis, world: World) -> None:
    async with sitting(keys, redis_url, world, watches=1) as (it, token), live(it.live_url, token) as ann:
        await ann.watch(MATCH_ID)
        await ann.next("snapshot")
        (link,) = world.replicas[0].links
        (number,) = link.watching
        last = happened(MATCH_ID, 1, [number])
        last.ended = True
        link.send(last)
        assert (await ann.next("event")).version == 1
        assert (await ann.watch("night_clan-klmnopqrst")).HasField("result")
        link.end()
        await eventually(lambda: world.replicas[0].opened == 2 and world.replicas[0].links)
        await eventually(lambda: [matches for matches in world.replicas[0].links[0].watching.values() if matches])
        assert {match_id for matches in world.replicas[0].links[0].watching.values() for match_id in matches} == {"night_clan-klmnopqrst"}


async def test_a_service_that_closes_a_socket_has_the_last_word(served: Stand, keys: Keys, world: World) -> None:
    async with live(served.live_url, keys.token("ann")) as ann:
        await ann.watch(MATCH_ID)
        (link,) = world.replicas[0].links
        problem = framed(live_pb2.ServerMessage(problem=live_pb2.Problem(reason="TOKEN_REVOKED", status=401)))
        link.send(relay_pb2.Down(attachments=list(link.watching), frame=problem, close=1008))
        assert (await ann.next("problem")).reason == "TOKEN_REVOKED"
        assert (await ann.closed())[0] == 1008


# Tokens.


async def test_a_socket_goes_on_with_a_newer_token(keys: Keys, redis_url: str, redis: Redis, world: World) -> None:
    async with sitting(keys, redis_url, world) as (it, _), live(it.live_url, keys.token("ann", seconds=3)) as ann:
        await ann.watch(MATCH_ID)
        await ann.watch(REAL_TIME_ID)
        newer = keys.token("ann", seconds=60)
        assert (await ann.authenticate(newer)).HasField("result")
        await eventually(lambda: all(list(link.tokens.values()) == [newer] for link in world.replicas[0].links))
        await asyncio.sleep(3.2)
        assert (await ann.watch(MATCH_ID)).HasField("result")


@pytest.mark.parametrize(
    ("token", "status", "reason"),
    [
        ("", 401, "TOKEN_INVALID"),
        ("nonsense", 401, "TOKEN_INVALID"),
        ("é\n", 401, "TOKEN_INVALID"),
        ("x" * 5000, 401, "TOKEN_INVALID"),
        ("{bob}", 403, "ANOTHER_PLAYER"),
        ("{old}", 401, "TOKEN_EXPIRED"),
    ],
)
async def test_a_socket_stays_one_players(served: Stand, keys: Keys, world: World, token: str, status: int, reason: str) -> None:
    token = token.format(bob=keys.token("bob"), old=keys.token("ann", seconds=-5))
    own = keys.token("ann")
    async with live(served.live_url, own) as ann:
        await ann.watch(MATCH_ID)
        problem = (await ann.authenticate(token)).problem
        assert (problem.status, problem.reason) == (status, reason)
        assert (await ann.watch(MATCH_ID)).HasField("result")
        assert set(world.replicas[0].links[0].tokens.values()) == {own}


async def test_a_token_that_runs_out_closes_the_socket(served: Stand, keys: Keys) -> None:
    async with live(served.live_url, keys.token("ann", seconds=2)) as ann:
        problem = await ann.next("problem")
        assert (problem.reason, problem.status) == ("TOKEN_EXPIRED", 401)
        assert (await ann.closed())[0] == 1008


async def test_signing_out_closes_the_players_sockets(keys: Keys, redis_url: str, redis: Redis, world: World) -> None:
    async with (
        sitting(keys, redis_url, world, recheck_seconds=0.1, tick_seconds=0.05) as (it, token),
        live(it.live_url, token) as ann,
        live(it.live_url, keys.token("bob")) as bob,
    ):
        await redis.set(revocation_key("ann"), 2)
        assert (await ann.next("problem")).reason == "TOKEN_REVOKED"
        assert (await ann.closed())[0] == 1008
        assert (await bob.watch(MATCH_ID)).HasField("result")


# The line.


@pytest.mark.parametrize("subprotocol", BOTH)
async def test_a_ping_is_answered_at_once(served: Stand, keys: Keys, subprotocol: Subprotocol) -> None:
    async with live(served.live_url, keys.token("ann"), subprotocol) as ann:
        await ann.send(ping=live_pb2.Ping(nonce="n" * 64))
        assert (await ann.next("pong")).nonce == "n" * 64


async def test_the_server_measures_the_line_soon_and_tells_games_of_real_time(
    keys: Keys, redis_url: str, redis: Redis, world: World
) -> None:
    async with sitting(keys, redis_url, world, first_pings=(0.0, 0.1, 0.2)) as (it, token), live(it.live_url, token) as ann:
        await ann.watch(REAL_TIME_ID)
        await ann.watch(MATCH_ID)
        await eventually(lambda: len(ann.pings) == 3)
        assert len(set(ann.pings)) == 3
        real_time, in_turns = sorted(world.replicas[0].links, key=lambda link: -len(link.round_trips))
        await eventually(lambda: list(real_time.round_trips.values()))
        assert all(0 <= ms < 100 for ms in real_time.round_trips.values())
        assert not in_turns.round_trips


async def test_a_delayed_line_is_measured_as_it_is(keys: Keys, redis_url: str, redis: Redis, world: World) -> None:
    async with (
        sitting(keys, redis_url, world, first_pings=(0.0, 0.1, 0.2), ping_seconds=0.1) as (it, token),
        live(it.live_url, token) as ann,
    ):
        ann.answers_pings = False
        await ann.watch(REAL_TIME_ID)
        for _ in range(3):
            seen = len(ann.pings)
            await eventually(lambda: len(ann.pings) > seen)  # noqa: B023
            await asyncio.sleep(0.12)
            await ann.send(pong=live_pb2.Pong(nonce=ann.pings[seen]))
        link = world.replicas[0].links[0]
        await eventually(lambda: [ms for ms in link.round_trips.values() if ms >= 115])


async def test_forged_pongs_gain_nothing(keys: Keys, redis_url: str, redis: Redis, world: World) -> None:
    async with sitting(keys, redis_url, world, first_pings=(0.0,), ping_seconds=60.0) as (it, token), live(it.live_url, token) as ann:
        ann.answers_pings = False
        await ann.watch(REAL_TIME_ID)
        for nonce in ("", "x", secrets.token_urlsafe(12)):
            await ann.send(pong=live_pb2.Pong(nonce=nonce))
        assert (await ann.watch(REAL_TIME_ID)).HasField("result")
        link = world.replicas[0].links[0]
        assert not link.round_trips
        await eventually(lambda: ann.pings)
        await ann.send(pong=live_pb2.Pong(nonce=ann.pings[0]))
        await eventually(lambda: link.round_trips)
        before = dict(link.round_trips)
        await asyncio.sleep(0.2)
        await ann.send(pong=live_pb2.Pong(nonce=ann.pings[0]))  # the same one again, later
        assert (await ann.watch(REAL_TIME_ID)).HasField("result")
        assert link.round_trips == before


def test_a_spike_does_not_matter_and_a_pong_counts_once() -> None:
    line = Line()
    assert line.milliseconds is None
    for took in (0.02, 0.02, 3.0, 0.02, 0.021, 2.0, 0.02, 0.02, 0.02):
        nonce = line.ask(100.0)
        assert line.answered(nonce, 100.0 + took)
        assert not line.answered(nonce, 900.0)
    assert line.milliseconds == pytest.approx(20)
    for _ in range(100):
        line.ask(0.0)
    assert not line.answered(nonce, 1.0)


# Whoever does not answer, does not read, or has to go.


async def test_a_connection_that_has_gone_silent_is_ended(keys: Keys, redis_url: str, redis: Redis, world: World) -> None:
    async with (
        sitting(keys, redis_url, world, silent_seconds=1.0, tick_seconds=0.1, ping_seconds=0.2) as (it, token),
        live(it.live_url, keys.token("bob")) as bob,
        AsyncExitStack() as stack,
    ):
        reader, writer = await stack.enter_async_context(raw(it, PROTO, token))
        watch = live_pb2.ClientFrame(request_id="a", watch=live_pb2.Watch(match_id=MATCH_ID)).SerializeToString()
        writer.write(Frame(Opcode.BINARY, watch).serialize(mask=True))
        await eventually(lambda: world.replicas[0].links and world.replicas[0].links[0].watching)
        (link,) = world.replicas[0].links
        began = time.monotonic()
        await eventually(lambda: not link.watching, 5)
        assert time.monotonic() - began > 0.5
        got = await asyncio.wait_for(reader.read(), 5)
        assert Frame(Opcode.CLOSE, b"\x03\xe9").serialize(mask=False)[2:4] in got
        # Whoever answers pings is there still.
        assert (await bob.watch(MATCH_ID)).HasField("result")


async def test_a_slow_reader_is_cut_off_and_nobody_else_delayed_and_can_resume(
    keys: Keys, redis_url: str, redis: Redis, world: World
) -> None:
    cut = REGISTRY.get_sample_value("gloaming_slow_readers_cut_total") or 0
    before = closings(1013)
    async with live_stand(keys, redis_url, world, socket_buffer=65_536) as it, AsyncExitStack() as stack:
        token = keys.token("ann")
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(slow, (it.http.base_url.host, it.http.base_url.port))
        await loop.sock_sendall(slow, UPGRADE % KEY + f"Sec-WebSocket-Protocol: {PROTO}, bearer.{token}\r\n\r\n".encode())
        watch = live_pb2.ClientFrame(request_id="a", watch=live_pb2.Watch(match_id=MATCH_ID, after=START)).SerializeToString()
        await asyncio.sleep(0.2)
        await loop.sock_sendall(slow, Frame(Opcode.BINARY, watch).serialize(mask=True))
        bob = await stack.enter_async_context(live(it.live_url, keys.token("bob"), max_size=None))
        await bob.watch(MATCH_ID)
        (link,) = world.replicas[0].links
        await eventually(lambda: sum(bool(matches) for matches in link.watching.values()) == 2)
        longest, version = 0.0, 0
        big = b"\x72" + b"\xff\xff\x03" + b"x" * 65_535  # an unknown field: it is passed through
        while (REGISTRY.get_sample_value("gloaming_slow_readers_cut_total") or 0) == cut:
            version += 1
            assert version < 1000, "it is never cut off"
            down = happened(MATCH_ID, version, list(link.watching))
            down.frame += big
            began = time.monotonic()
            link.send(down)
            assert (await bob.next("event")).version == version
            longest = max(longest, time.monotonic() - began)
        assert longest < 1.0
        assert (await bob.watch(MATCH_ID, START)).HasField("result")
        await eventually(lambda: closings(1013) == before + 1)
        assert len(link.watching) == 1
        slow.close()
        world.played[MATCH_ID] = [b""] * version
        again = await stack.enter_async_context(live(it.live_url, token))
        await again.watch(MATCH_ID, cursor(version - 3))
        assert [(await again.next("event")).version for _ in range(3)] == [version - 2, version - 1, version]


async def test_a_send_that_takes_too_long_is_given_up(keys: Keys, redis_url: str, redis: Redis, world: World) -> None:
    cut = REGISTRY.get_sample_value("gloaming_slow_readers_cut_total") or 0
    limits = Limits(send_seconds=0.3, tick_seconds=0.1)
    async with live_stand(keys, redis_url, world, socket_buffer=64 * 1024 * 1024, limits=limits) as it, AsyncExitStack() as stack:
        _, writer = await stack.enter_async_context(raw(it, PROTO, keys.token("ann")))
        transport: Any = writer.transport
        transport.pause_reading()
        watch = live_pb2.ClientFrame(request_id="a", watch=live_pb2.Watch(match_id=MATCH_ID)).SerializeToString()
        writer.write(Frame(Opcode.BINARY, watch).serialize(mask=True))
        await eventually(lambda: world.replicas[0].links and any(world.replicas[0].links[0].watching.values()))
        (link,) = world.replicas[0].links
        for version in range(1, 200):
            down = happened(MATCH_ID, version, list(link.watching))
            down.frame += b"\x72\xff\xff\x03" + b"x" * 65_535
            link.send(down)
        await eventually(lambda: REGISTRY.get_sample_value("gloaming_slow_readers_cut_total") == cut + 1)
        await eventually(lambda: not link.watching)
        transport.abort()


@pytest.mark.parametrize("subprotocol", BOTH)
async def test_a_gateway_that_is_about_to_stop_says_so(
    keys: Keys, redis_url: str, redis: Redis, world: World, subprotocol: Subprotocol
) -> None:
    async with sitting(keys, redis_url, world) as (it, token), live(it.live_url, token, subprotocol) as ann:
        await ann.watch(MATCH_ID)
        it.app.state.draining.set()
        assert isinstance(await ann.next("draining"), live_pb2.Draining)
        assert (await ann.closed())[0] == 1012
        with pytest.raises(InvalidStatus) as refused:
            await connect(it.live_url, subprotocols=[subprotocol], proxy=None)
        assert (refused.value.response.status_code, refused.value.response.headers["Retry-After"]) == (503, "1")


async def test_stopping_ends_sockets_and_does_not_wait_for_them(keys: Keys, redis_url: str, redis: Redis, world: World) -> None:
    async with AsyncExitStack() as stack:
        async with sitting(keys, redis_url, world) as (it, token):
            ann = await stack.enter_async_context(live(it.live_url, token))
            await ann.watch(MATCH_ID)
            await stack.enter_async_context(raw(it, PROTO, token))
            began = time.monotonic()
        assert time.monotonic() - began < 5
        await ann.next("draining")
        assert (await ann.closed())[0] == 1012


# How it is sent, and measured.


async def test_what_comes_together_goes_together(served: Stand, keys: Keys, world: World) -> None:
    async with live(served.live_url, keys.token("ann")) as ann:
        await ann.watch(MATCH_ID)
        await ann.next("snapshot")
        (link,) = world.replicas[0].links
        link.send(*(happened(MATCH_ID, version, list(link.watching)) for version in range(1, 31)))
        assert [(await ann.next("event")).version for _ in range(30)] == list(range(1, 31))
        assert 30 in ann.frames


async def test_bytes_pass_through_as_they_are(served: Stand, keys: Keys, world: World) -> None:
    token = Subprotocol(f"bearer.{keys.token('ann')}")
    async with connect(served.live_url, subprotocols=[PROTO, token], proxy=None) as connection:
        await connection.send(live_pb2.ClientFrame(request_id="a", watch=live_pb2.Watch(match_id=MATCH_ID)).SerializeToString())
        await eventually(lambda: world.replicas[0].links and any(world.replicas[0].links[0].watching.values()))
        (link,) = world.replicas[0].links
        odd = framed(live_pb2.ServerMessage()) + b"\x72\x03abc"
        link.send(relay_pb2.Down(attachments=list(link.watching), frame=odd))
        async with asyncio.timeout(5):
            while odd not in bytes(await connection.recv(decode=False)):
                pass


async def test_json_is_made_once_for_all_who_get_it(served: Stand, keys: Keys, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    plain = transcoding.plain

    def counted(message: Any) -> Any:
        if isinstance(message, live_pb2.ServerFrame) and message.messages[0].HasField("event"):
            made.append(message)
        return plain(message)

    async with AsyncExitStack() as stack:
        everybody = [await stack.enter_async_context(live(served.live_url, keys.token(f"p{n}"), JSON)) for n in range(5)]
        for each in everybody:
            await each.watch(MATCH_ID)
        monkeypatch.setattr(transcoding, "plain", counted)
        world.play(MATCH_ID)
        for each in everybody:
            await each.next("event")
    assert len(made) == 1


async def test_sockets_and_the_pillow_path_are_measured(served: Stand, keys: Keys) -> None:
    def value(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, labels) or 0

    before = {stage: value("gloaming_pillow_resolution_seconds_count", stage=stage) for stage in ("ingress", "total")}
    closed = closings(1000)
    async with live(served.live_url, keys.token("ann"), JSON) as ann:
        assert value("gloaming_sockets", subprotocol=JSON) == 1
        await ann.move(MATCH_ID, KEEP)  # takes turns
        await ann.watch(REAL_TIME_ID)
        move = live_pb2.Move(match_id=REAL_TIME_ID)
        for _ in range(3):
            await ann.answer(await ann.ask(move=move))
    await eventually(lambda: value("gloaming_sockets", subprotocol=JSON) == 0)
    for stage, count in before.items():
        assert value("gloaming_pillow_resolution_seconds_count", stage=stage) == count + 3
    await eventually(lambda: closings(1000) == closed + 1)
    metrics = (await served.http.get("/metrics")).text
    assert re.search(r'gloaming_sockets_closed_total\{code="1000"\}', metrics)
    assert MATCH_ID not in metrics


# Nonsense.

_ids = st.sampled_from([MATCH_ID, REAL_TIME_ID, "nope", ""])
_json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | _ids,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["requestId", "watch", "unwatch", "move", "authenticate", "ping", "pong", "matchId", "after", "nonce", "keep"])
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
_good = st.builds(
    live_pb2.ClientFrame,
    request_id=st.text(max_size=5),
    move=st.builds(live_pb2.Move, match_id=_ids, move=st.binary(max_size=8), expected_version=st.integers(-(2**31), 2**31 - 1)),
) | st.builds(
    live_pb2.ClientFrame, request_id=st.text(max_size=5), watch=st.builds(live_pb2.Watch, match_id=_ids, after=st.text(max_size=5))
)


@st.composite
def _mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(_good).SerializeToString())
    for _ in range(draw(st.integers(0, 4))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


def test_no_nonsense_does_more_than_be_refused(keys: Keys, redis_url: str, caplog: pytest.LogCaptureFixture) -> None:
    examples = int(os.environ.get("FUZZ_EXAMPLES", "150"))

    async def run() -> None:
        world = World()
        async with live_stand(keys, redis_url, world) as it:
            sockets: dict[Subprotocol, Socket] = {}

            async def send(subprotocol: Subprotocol, data: str | bytes) -> None:
                ann = sockets.get(subprotocol)
                if ann is None or ann.connection.close_code is not None:
                    token = Subprotocol(f"bearer.{keys.token('ann')}")
                    ann = sockets[subprotocol] = Socket(await connect(it.live_url, subprotocols=[subprotocol, token], proxy=None))
                await ann.connection.send(data)
                await ann.send(ping=live_pb2.Ping(nonce="there"))
                assert (await ann.next("pong")).nonce

            loop = asyncio.get_running_loop()

            def fuzz() -> None:
                @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
                @given(st.binary(max_size=60) | _mutated(), st.text(max_size=30) | st.builds(json.dumps, _json_like))
                def check(binary: bytes, text: str) -> None:
                    asyncio.run_coroutine_threadsafe(send(PROTO, binary), loop).result(20)
                    asyncio.run_coroutine_threadsafe(send(JSON, text.encode("utf-8", "replace").decode()), loop).result(20)

                check()

            await asyncio.to_thread(fuzz)
            for each in sockets.values():
                assert each.connection.close_code is None
                await each.close()

    with capture_logs() as logs:
        asyncio.run(run())
    assert not [entry for entry in logs if entry["log_level"] not in ("info", "debug")]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("seed", range(3))
async def test_random_bytes_on_the_line_leave_no_trace(served: Stand, keys: Keys, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(seed)
    with capture_logs() as logs:
        for _ in range(20):
            async with raw(served, JSON, keys.token("ann")) as (_, writer):
                writer.write(chance.randbytes(chance.randrange(1, 400)))
        assert (await served.http.get("/healthz")).status_code == 200
        await asyncio.sleep(0.2)
    # Of the games that are not there the gateway tells by itself, at a moment of its own.
    assert not [entry for entry in logs if entry["log_level"] not in ("info", "debug") and entry["event"] != "results wait"]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
