"""What handlers read of a request and write as a response."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TypeVar

from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

from gateway import transcoding
from gateway.problems import Unacceptable
from services.kit.errors import Unauthenticated, Unreadable

M = TypeVar("M", bound=Message)

JSON = "application/json"
# gRPC carries at most 8 KiB of metadata; a token of ours has some 400 bytes.
_AUTHORIZATION = re.compile(r"[\x20-\x7e]{1,4096}")
_IDEMPOTENCY_KEY = re.compile(r"[\x20-\x7e]{1,128}")
_VERSION = re.compile(r'"(\d{1,10})"')
_INT32 = 2**31 - 1
_BODY_SECONDS = 20.0
_NOTHING: frozenset[str] = frozenset()


class Answer(Response):
    """A message as a response."""

    def __init__(self, message: Message, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(transcoding.render(message), status, headers, JSON)


async def body(request: Request) -> bytes:
    """Returns the body.

    Raises:
        Unacceptable: 408 BODY_TOO_SLOW; 413 BODY_TOO_LARGE; 415 UNSUPPORTED_MEDIA_TYPE.
        starlette.requests.ClientDisconnect: the client went away in the middle of it.
    """
    kind, _, parameters = request.headers.get("content-type", JSON).partition(";")
    if kind.strip().lower() != JSON or parameters.strip().lower() not in ("", "charset=utf-8", 'charset="utf-8"'):
        raise Unacceptable(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", f"send {JSON} in UTF-8")
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise Unacceptable(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", "send it as it is, without a Content-Encoding")
    limit: int = request.app.state.settings.body_limit
    announced = request.headers.get("content-length", "0")
    read, size = [], 0
    if not announced.isdecimal() or int(announced[:20]) <= limit:
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > limit:
                        break
                    read.append(chunk)
                else:
                    return b"".join(read)
        except TimeoutError:
            raise Unacceptable(HTTPStatus.REQUEST_TIMEOUT, "BODY_TOO_SLOW", f"a body is sent within {_BODY_SECONDS:.0f} seconds") from None
    raise Unacceptable(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "BODY_TOO_LARGE", f"a body has at most {limit} bytes")


async def parse(request: Request, message_class: type[M], *, omit: frozenset[str] = _NOTHING) -> M:
    """Reads the body as a message; see `transcoding.build` for `omit`.

    Raises:
        Unreadable: the body is none.
        Unacceptable: as `body`.
    """
    return transcoding.parse(await body(request), message_class, omit=omit)


async def no_body(request: Request) -> None:
    """Reads a body that has nothing to say: none at all, or `{}`.

    Raises:
        Unreadable: it says something.
        Unacceptable: as `body`.
    """
    for name in transcoding.read(await body(request) or b"{}"):
        raise Unreadable(name if name.isalnum() else "", "there is no such field")


def bearer(request: Request) -> str:
    """Returns the header Authorization as it is, to be checked by whoever acts on it.

    Raises:
        Unauthenticated: TOKEN_MISSING; TOKEN_INVALID for what gRPC could not even carry.
    """
    authorization = request.headers.get("authorization")
    if authorization is None:
        raise Unauthenticated("TOKEN_MISSING", "send authorization: Bearer <access token>")
    if not _AUTHORIZATION.fullmatch(authorization):
        raise Unauthenticated("TOKEN_INVALID", "the access token is malformed")
    return authorization


def idempotency_key(request: Request, least: int = 1) -> str | None:
    """Returns the header Idempotency-Key.

    Args:
        least: how many characters it has at least.

    Raises:
        Unreadable: it is too short or too long, or has other than printable ASCII characters.
    """
    key = request.headers.get("idempotency-key")
    if key is not None and not (_IDEMPOTENCY_KEY.fullmatch(key) and len(key) >= least):
        raise Unreadable("Idempotency-Key", f"must be {least} to 128 printable ASCII characters")
    return key


def expected_version(request: Request) -> int | None:
    """Returns the version that If-Match asks for, `"7"`; None without one, and for `*`.

    Raises:
        Unreadable: it is anything else.
    """
    condition = request.headers.get("if-match")
    if condition is None or condition.strip() == "*":
        return None
    version = _VERSION.fullmatch(condition.strip())
    if version is None or int(version[1]) > _INT32:
        raise Unreadable("If-Match", 'must be the match\'s version in quotes, as in "7", or *')
    return int(version[1])


def matches_etag(request: Request, etag: str) -> bool:
    """Whether If-None-Match names this tag, by weak comparison (RFC 9110, 8.8.3.2)."""
    condition = request.headers.get("if-none-match", "")
    opaque = etag.removeprefix("W/")
    return any(tag.strip() == "*" or tag.strip().removeprefix("W/") == opaque for tag in condition.split(",") if tag)


def text_query(request: Request, name: str) -> str:
    """Returns a parameter of the query; empty without one.

    Raises:
        Unreadable: it is there twice.
    """
    values = request.query_params.getlist(name)
    if len(values) > 1:
        raise Unreadable(name, "is given twice")
    return values[0] if values else ""


def int_query(request: Request, name: str, default: int) -> int:
    """Returns a parameter of the query that is a number from 0 up.

    Raises:
        Unreadable: it is no such number, or there twice.
    """
    text = text_query(request, name)
    if not text and name not in request.query_params:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= _INT32):
        raise Unreadable(name, f"must be an integer from 0 to {_INT32}")
    return int(text)
