"""Idempotency-Key on the gateway's own POSTs: a retry gets the first answer. (Moves and resignations are remembered by their game service.)

A request is claimed by its key before it is carried out. The claim keeps a freshly minted id for what the request creates, and creating is
create-if-absent, so that whoever dies between claiming and answering leaves nothing twice. An answer may hold tokens or a hand of cards: it
is stored encrypted with a key derived from the Idempotency-Key, which only its client knows. A refusal is not stored.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

from gateway.exchange import JSON
from services.kit.errors import Error, Refused
from services.kit.problems import STATUS_BY_CODE
from services.kit.storage import Script, Storage

_LUA = Path(__file__).parent / "lua"
_CLAIM = Script(_LUA / "claim.lua")
_SETTLE = Script(_LUA / "settle.lua")
_RELEASE = Script(_LUA / "release.lua")
_NONCE_BYTES = 12
_ENTITY_HEADERS = frozenset({"content-type", "content-length"})


class _Stored(msgspec.Struct, array_like=True):
    status: int
    headers: dict[str, str]
    body: bytes


class Answers:
    """The answers to requests that came with an Idempotency-Key."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def once(
        self,
        request: Request,
        key: str | None,
        *,
        scope: str,
        asked: Message,
        mint: Callable[[], str],
        seconds: float,
        run: Callable[[str], Awaitable[Response]],
    ) -> Response:
        """Carries a request out, or returns what it was answered before.

        Args:
            key: its Idempotency-Key; without one it is just carried out.
            scope: whose key it is; the same key in another scope, for another method or path is another key.
            asked: what the request asks for, as read.
            mint: makes an id for what the request creates.
            seconds: how long the answer is kept.
            run: carries it out with an id that may have been used before.

        Raises:
            Refused: REQUEST_ID_REUSED; the key came with another body.
        """
        if key is None:
            return await run(mint())
        named = "\n".join((scope, request.method, request.url.path, key)).encode()
        redis_key = f"gateway:answer:{hashlib.sha256(named).hexdigest()}"
        fingerprint = hashlib.sha256(asked.DESCRIPTOR.full_name.encode() + asked.SerializeToString(deterministic=True)).digest()
        first, minted, stored = await self._storage.run(_CLAIM, [redis_key], [fingerprint, mint(), int(seconds * 1000)])
        if first != fingerprint:
            raise Refused("REQUEST_ID_REUSED", "this Idempotency-Key came with another body before")
        seal = _Seal(named)
        if stored is not None:
            return seal.open(stored)
        try:
            response = await run(minted.decode())
        except (Error, grpc.aio.AioRpcError) as refusal:
            code = refusal.code if isinstance(refusal, Error) else refusal.code()
            if STATUS_BY_CODE.get(code, 500) < 500:
                await self._storage.run(_RELEASE, [redis_key], [minted])
            raise
        # Somebody who ran at the same time may have answered first.
        stored = await self._storage.run(_SETTLE, [redis_key], [minted, seal.close(response)])
        return response if stored is None else seal.open(stored)


class _Seal:
    """Encrypts answers for who knows the Idempotency-Key."""

    def __init__(self, named: bytes) -> None:
        self._cipher = AESGCM(HKDF(SHA256(), 32, salt=None, info=b"gloaming gateway answer").derive(named))

    def close(self, response: Response) -> bytes:
        headers = {name: value for name, value in response.headers.items() if name not in _ENTITY_HEADERS}
        plain = msgspec.msgpack.encode(_Stored(response.status_code, headers, bytes(response.body)))
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, None)

    def open(self, sealed: bytes) -> Response:
        plain = self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        stored = msgspec.msgpack.decode(plain, type=_Stored)
        return Response(stored.body, stored.status, stored.headers, JSON)
