"""HTTP/1.1 on a real socket, from clients that mean no good."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

import pytest

from gateway import protocol
from tests.gateway.stand import Stand

BODY = b'{"name": "Ann"}'
POST = b"POST /v1/players HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
MIB = 1024 * 1024


@contextlib.asynccontextmanager
async def connected(served: Stand) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(served.http.base_url.host, served.http.base_url.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def answered(served: Stand, request: bytes) -> bytes:
    """All that a connection answers until it ends, or is silent for a while."""
    async with connected(served) as (reader, writer):
        writer.write(request)
        answer = b""
        try:
            async with asyncio.timeout(1):
                while part := await reader.read(65_536):
                    answer += part
        except TimeoutError:
            pass
        return answer


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"a" * 65_536, id="a header"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-Many: of them\r\n" * 4096, id="headers"),
        pytest.param(b"GET /", b"a" * 65_536, id="a path"),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", b"X-Many: of them\r\n" * 4096, id="trailers"),
    ],
)
async def test_a_head_without_an_end_is_refused_not_kept(served: Stand, begin: bytes, more: bytes) -> None:
    sent = 0
    async with connected(served) as (_reader, writer):
        writer.write(begin)
        with contextlib.suppress(ConnectionError):
            while sent < 64 * MIB:
                writer.write(more)
                await writer.drain()
                sent += len(more)
        assert sent < 16 * MIB  # what the sockets hold, no more


async def test_a_head_that_is_too_large_is_a_problem(served: Stand) -> None:
    answer = await answered(served, b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * (protocol.HEAD_BYTES + 1))
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"application/problem+json" in answer
    assert b'"reason":"BAD_REQUEST"' in answer


@pytest.mark.parametrize("begun", [b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET / "])
async def test_a_head_that_trickles_is_not_waited_for(served: Stand, monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    async with connected(served) as (reader, writer):
        writer.write(begun)

        async def trickle() -> None:
            while True:
                await asyncio.sleep(0.1)
                writer.write(b"a")

        trickling = asyncio.create_task(trickle())
        # Where a byte is under way as the server closes, its end of the connection is a reset.
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(5):
                while await reader.read(65_536):
                    pass
        trickling.cancel()


async def test_the_rest_of_a_body_that_was_answered_is_not_waited_for(served: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    async with connected(served) as (reader, writer):
        writer.write(POST + b"Content-Length: 999999\r\n\r\n")
        assert b" 413 " in await asyncio.wait_for(reader.readline(), 5)
        async with asyncio.timeout(5):
            with contextlib.suppress(ConnectionError):
                while True:
                    await asyncio.sleep(0.05)
                    writer.write(b"a")
                    await writer.drain()


async def test_a_slow_but_whole_request_is_answered_and_the_connection_kept(served: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.5)
    async with connected(served) as (reader, writer):
        for _ in range(2):
            for part in (b"GET /healthz HT", b"TP/1.1\r\nHost: ", b"x\r\n\r\n"):
                writer.write(part)
                await asyncio.sleep(0.1)
            assert b" 200 " in await asyncio.wait_for(reader.readuntil(b'{"alive":true}'), 5)
            await asyncio.sleep(0.7)


@pytest.mark.parametrize("other", [b"h2c", b"websocket", b"anything"])
async def test_a_request_that_offers_another_protocol_is_served_as_it_is(served: Stand, other: bytes) -> None:
    head = POST + b"Connection: Upgrade\r\nUpgrade: %b\r\nContent-Length: %d\r\n\r\n" % (other, len(BODY))
    assert (await answered(served, head + BODY)).startswith(b"HTTP/1.1 201 ")


async def test_a_body_is_never_taken_for_a_request(served: Stand) -> None:
    inner = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    async with connected(served) as (reader, writer):
        writer.write(POST + b"Connection: Upgrade\r\nUpgrade: x\r\nContent-Length: %d\r\n\r\n" % len(inner))
        await asyncio.sleep(0.2)
        writer.write(inner)
        answer = await asyncio.wait_for(reader.read(65_536), 5)
        await asyncio.sleep(0.2)
    assert b" 400 " in answer
    assert b"alive" not in answer
    both = await answered(served, POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner)
    assert both.startswith(b"HTTP/1.1 400 ")
    assert b"alive" not in both


async def test_trailers_are_no_headers(served: Stand) -> None:
    await served.sign_in()
    trailer = b"Authorization: " + served.http.headers["Authorization"].encode()
    asked = b"GET /v1/players/me HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + trailer + b"\r\n\r\n"
    assert (await answered(served, asked)).startswith(b"HTTP/1.1 401 ")


async def test_nonsense_in_the_middle_of_an_exchange_leaves_no_trace(served: Stand, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        chunked = b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"
        async with connected(served) as (reader, writer):
            writer.write(chunked)
            await asyncio.wait_for(reader.readuntil(b'{"alive":true}'), 5)
            writer.write(b"no chunk at all\r\n")
            assert await asyncio.wait_for(reader.read(), 5) == b""
    assert not caplog.records


async def test_a_compressed_body_is_415(gateway: Stand) -> None:
    response = await gateway.http.post(
        "/v1/players", content=BODY, headers={"Content-Type": "application/json", "Content-Encoding": "gzip"}
    )
    assert (response.status_code, response.json()["reason"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
