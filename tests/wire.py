"""A caller of a game's service who keeps every byte that comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import Message

from services.kit.game import Game

_TAKE_ANYTHING = 10.0  # seconds


class Answer(NamedTuple):
    """What came back of a call, to the byte."""

    code: str
    detail: str
    metadata: tuple[tuple[str, str | bytes], ...]
    body: bytes

    @property
    def everything(self) -> bytes:
        """All of it, to search in."""
        told = [value.encode() if isinstance(value, str) else value for pair in self.metadata for value in pair]
        return b"\n".join([self.code.encode(), self.detail.encode(), *told, self.body])


class Wire:
    """One connection of its own.

    Attributes:
        taken: everything that came over it.
    """

    def __init__(self, game: Game, address: str, token: str) -> None:
        self.game = game
        self.taken: list[bytes] = []
        self._channel = grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self._metadata = [("authorization", f"Bearer {token}")]

    async def call(self, verb: str, **fields: Any) -> Answer:
        """Calls a verb; a refusal is an answer like any other."""
        request: Message = self.game.message(self.game.service.methods_by_name[verb].input_type.name)(**fields)
        call: Any = self._channel.unary_unary(f"/{self.game.service.full_name}/{verb}", bytes, bytes)(
            request.SerializeToString(), metadata=self._metadata, timeout=_TAKE_ANYTHING, wait_for_ready=True
        )
        try:
            body = await call
        except grpc.aio.AioRpcError:
            body = b""
        metadata = (*_pairs(await call.initial_metadata()), *_pairs(await call.trailing_metadata()))
        answer = Answer((await call.code()).name, await call.details() or "", metadata, body)
        self.taken.append(answer.everything)
        return answer

    def message(self, verb: str, answer: Answer) -> Any:
        """What an answer says; a refusal says nothing."""
        assert answer.code == "OK", answer
        return self.game.message(self.game.service.methods_by_name[verb].output_type.name).FromString(answer.body)

    async def watch(self, match_id: str, after: str = "") -> AsyncGenerator[bytes, None]:
        """Watches a match: each message as its bytes."""
        request = self.game.message("WatchMatchRequest")(match_id=match_id, after_cursor=after)
        call: Any = self._channel.unary_stream(f"/{self.game.service.full_name}/WatchMatch", bytes, bytes)(
            request.SerializeToString(), metadata=self._metadata, wait_for_ready=True
        )
        try:
            async for body in call:
                self.taken.append(body)
                yield body
        finally:
            call.cancel()

    async def close(self) -> None:
        """Closes the connection."""
        await self._channel.close()


async def take(watching: AsyncIterator[bytes], count: int) -> list[bytes]:
    """The next so many messages."""
    async with asyncio.timeout(_TAKE_ANYTHING):
        return [await anext(watching) for _ in range(count)]


def _pairs(metadata: Any) -> Sequence[tuple[str, str | bytes]]:
    return tuple((str(key), value) for key, value in metadata or ())
