"""What every call shares: tokens, retries, errors."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import httpx_sse
from google.protobuf import json_format
from google.protobuf.message import Message

from gloaming.gateway.v1 import gateway_pb2

_RENEW_SECONDS = 30.0
_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
# The server sends a comment every 15 seconds.
_SILENCE_SECONDS = 45.0

M = TypeVar("M", bound=Message)


class ProblemError(Exception):
    """The server refuses (RFC 9457).

    Args:
        reason: why, in one stable word: `LOCATION_FULL`.
        status: the HTTP status.
        detail: why, for people.
        violations: the fields that were wrong.
    """

    def __init__(self, reason: str, status: int, detail: str, violations: Sequence[gateway_pb2.Violation] = ()) -> None:
        super().__init__(f"{status} {reason}: {detail}")
        self.reason = reason
        self.status = status
        self.detail = detail
        self.violations = tuple(violations)

    @classmethod
    def of(cls, response: httpx.Response) -> ProblemError:
        """Reads a response."""
        try:
            problem = json_format.Parse(response.text, gateway_pb2.Problem(), ignore_unknown_fields=True)
        except json_format.ParseError:  # from something in between that is not ours
            problem = gateway_pb2.Problem()
        return cls(problem.reason or "UNKNOWN", response.status_code, problem.detail or response.reason_phrase, problem.violations)


class Connection:
    """A player's connection to a gateway: tokens, retries, errors.

    Args:
        base_url: where the gateway is.
        session: tokens from an earlier time, as `session` had them.
        attempts: how often a request is sent at most, when the way to the server is broken or it says 503.
        http: a transport of one's own; closed by its owner.
    """

    def __init__(
        self, base_url: str, *, session: gateway_pb2.Session | None = None, attempts: int = 6, http: httpx.AsyncClient | None = None
    ) -> None:
        self.session = session
        self._base_url = base_url.rstrip("/")
        self._attempts = attempts
        self._own = http is None
        self._http = http or httpx.AsyncClient(timeout=httpx.Timeout(10.0))
        self._renewing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes every connection."""
        if self._own:
            await self._http.aclose()

    async def send(
        self,
        method: str,
        path: str,
        answer: type[M],
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        authorized: bool = True,
    ) -> M:
        """Sends a request and returns its answer.

        Raises:
            ProblemError: the server refuses.
            httpx.TransportError: the server cannot be reached, for all the attempts.
        """
        response = await self.exchange(method, path, body=body, query=query, headers=headers, authorized=authorized)
        return read(response.text, answer)

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        authorized: bool = True,
    ) -> httpx.Response:
        """Sends a request and returns the response, whose status is below 400; else as `send`."""
        sent = dict(headers or {})
        if method == "POST":
            sent.setdefault("Idempotency-Key", secrets.token_urlsafe(24))
        params = {name: value for name, value in (query or {}).items() if value}
        renewed = False
        attempt = 0
        while True:
            attempt += 1
            token = await self._token() if authorized else ""
            if authorized:
                sent["Authorization"] = f"Bearer {token}"
            try:
                response = await self._http.request(method, self._base_url + path, json=body, params=params, headers=sent)
            except httpx.TransportError:
                if attempt >= self._attempts:
                    raise
                await _pause(attempt)
                continue
            if response.status_code < 400:
                return response
            if response.status_code == 401 and authorized and not renewed:
                renewed = True
                attempt -= 1
                await self._renew(token)
            elif response.status_code in (429, 503) and attempt < self._attempts:
                await _pause(attempt, response.headers.get("Retry-After"))
            else:
                raise ProblemError.of(response)

    async def events(self, path: str, after: str) -> AsyncIterator[httpx_sse.ServerSentEvent]:
        """Yields server-sent events from a cursor on, across broken connections, until the server says that it is over.

        Raises:
            ProblemError: the server refuses.
            httpx.TransportError: the server cannot be reached, for all the attempts.
        """
        failures = 0
        renewed = ""
        while True:
            token = await self._token()
            headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
            if after:
                headers["Last-Event-ID"] = after
            retry_after = None
            try:
                timeout = httpx.Timeout(10.0, read=_SILENCE_SECONDS)
                async with self._http.stream("GET", self._base_url + path, headers=headers, timeout=timeout) as response:
                    if response.status_code == 204:
                        return
                    if response.status_code >= 400:
                        await response.aread()
                        if response.status_code == 401 and renewed != token:
                            renewed = await self._renew(token)
                            continue
                        if response.status_code not in (429, 503) or failures + 1 >= self._attempts:
                            raise ProblemError.of(response)
                        retry_after = response.headers.get("Retry-After")
                    else:
                        async for event in httpx_sse.EventSource(response).aiter_sse():
                            failures = 0
                            if event.data:
                                after = event.id or after
                                yield event
            except httpx.TransportError:
                if failures + 1 >= self._attempts:
                    raise
            failures += 1
            await _pause(failures, retry_after)

    def _signed_in(self) -> gateway_pb2.Session:
        if self.session is None:
            raise RuntimeError("nobody is signed in")
        return self.session

    async def _token(self) -> str:
        """Returns an access token that is good for a while."""
        session = self._signed_in()
        if session.expire_time.seconds - time.time() < _RENEW_SECONDS and session.refresh_token:
            return await self._renew(session.access_token)
        return session.access_token

    async def _renew(self, token: str) -> str:
        """Returns another access token than this one; several who ask at once get the same."""
        async with self._renewing:
            session = self._signed_in()
            if session.access_token == token:
                body = {"refreshToken": session.refresh_token}
                self.session = session = await self.send("POST", "/v1/players:refresh", gateway_pb2.Session, body=body, authorized=False)
            return session.access_token


def read(text: str, kind: type[M]) -> M:
    """Reads a message; what is newer than the generated code is skipped."""
    return json_format.Parse(text, kind(), ignore_unknown_fields=True)


def write(message: Message) -> Any:
    """Returns a message as JSON has it."""
    return json_format.MessageToDict(message)


async def _pause(attempt: int, retry_after: str | None = None) -> None:
    """Waits longer each time, and at least as long as the server asks for, within bounds."""
    pause = random.uniform(0.5, 1.0) * _PAUSE_SECONDS * 2 ** (attempt - 1)
    asked = float(retry_after) if retry_after and retry_after.isdecimal() else 0.0
    await asyncio.sleep(min(max(pause, asked), _LONGEST_PAUSE_SECONDS))
