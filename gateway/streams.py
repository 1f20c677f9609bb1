"""Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.metrics import STREAMS

MEDIA_TYPE = "text/event-stream"
KEEP_ALIVE_SECONDS = 15.0
# Whoever reads nothing for so long is not there any more.
SEND_SECONDS = 30.0
RETRY = b"retry: 1000\n\n"

_KEEP_ALIVE = b":\n\n"


def frame(event: str, cursor: str, data: bytes) -> bytes:
    """Returns one event; its data is JSON, which has no line breaks."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (cursor.encode(), event.encode(), data)


class EventStream(Response):
    """Sends frames as they come, and a comment when none came for a while.

    Args:
        frames: the frames; closed when the client goes away.
        draining: set when this process is about to stop: the stream ends, and the client comes back with its cursor, to another.
    """

    def __init__(self, frames: AsyncGenerator[bytes], draining: asyncio.Event) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}, media_type=MEDIA_TYPE)
        del self.headers["content-length"]
        self._frames = frames
        self._draining = draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the stream (ASGI)."""

        async def write(body: bytes, more: bool = True) -> None:
            async with asyncio.timeout(SEND_SECONDS):
                await send({"type": "http.response.body", "body": body, "more_body": more})

        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        gone = asyncio.ensure_future(_gone(receive))
        drained = asyncio.ensure_future(self._draining.wait())
        coming = asyncio.ensure_future(anext(self._frames, None))
        try:
            with STREAMS.track_inprogress(), contextlib.suppress(TimeoutError):
                await write(RETRY)
                while not gone.done() and not drained.done():
                    await asyncio.wait({gone, drained, coming}, timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                    if coming.done():
                        data = coming.result()
                        if data is None:
                            break
                        coming = asyncio.ensure_future(anext(self._frames, None))
                        await write(data)
                    elif not gone.done() and not drained.done():
                        await write(_KEEP_ALIVE)
                if not gone.done():
                    await write(b"", more=False)
        finally:
            for task in (gone, drained, coming):
                task.cancel()
            await asyncio.gather(gone, drained, coming, return_exceptions=True)
            await self._frames.aclose()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
