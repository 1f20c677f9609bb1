"""A gRPC server in a process of its own that returns what it is sent: what a call, or a message on an open stream, costs by itself."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import grpc
import uvloop

PAYLOAD = b"x" * 120


class Echo(NamedTuple):
    """Ways to have something returned: by a call of its own, or on a stream that is open."""

    unary: Callable[[bytes], Awaitable[bytes]]
    stream: Callable[[bytes], Awaitable[bytes]]


@asynccontextmanager
async def echo() -> AsyncIterator[Echo]:
    """Starts the server, and opens a stream."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.bench.echo", stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    try:
        port = int(await process.stdout.readline())
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            unary: Any = channel.unary_unary("/bench.Echo/Unary")
            open_stream: Any = channel.stream_stream("/bench.Echo/Stream")
            stream = open_stream()

            async def on_stream(payload: bytes) -> bytes:
                await stream.write(payload)
                answer: bytes = await stream.read()
                return answer

            yield Echo(lambda payload: unary(payload), on_stream)
            stream.cancel()
    finally:
        process.terminate()
        await process.wait()


async def _serve() -> None:
    async def unary(payload: bytes, _: object) -> bytes:
        return payload

    async def stream(payloads: AsyncIterator[bytes], _: object) -> AsyncIterator[bytes]:
        async for payload in payloads:
            yield payload

    server = grpc.aio.server()
    handlers: dict[str, Any] = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Stream": grpc.stream_stream_rpc_method_handler(stream),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Echo", handlers),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(_serve())
