"""What every call shares: tokens, retries, errors."""

from __future__ import annotations

import asyncio
import email.utils
import math
import random
import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import httpx_sse
from google.protobuf import json_format
from google.protobuf.message import Message

from gloaming.client import wire
from gloaming.gateway.v1 import gateway_pb2

REQUEST_SECONDS = 10.0
# Longer than this nobody is kept waiting for a server that says when to come back.
MOST_SECONDS = 120.0

# Too much was asked; it is not there right now, as the server or whatever is before it says.
_BUSY = (429, 502, 503, 504)
_RENEW_SECONDS = 30.0
_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
# The server sends a comment every 15 seconds.
_SILENCE_SECONDS = 45.0
# A stream that lasted so long was worth opening, though nothing happened.
_LASTED_SECONDS = 5.0

M = TypeVar("M", bound=Message)


class ProblemError(Exception):
    """The server refuses (RFC 9457).

    Args:
        reason: why, in one stable word: `LOCATION_FULL`.
        status: the HTTP status.
        detail: why, for people.
        violations: the fields that were wrong.
        retry_after: after how many seconds to try again, where the server says so.
    """

    def __init__(
        self, reason: str, status: int, detail: str, violations: Sequence[gateway_pb2.Violation] = (), retry_after: float | None = None
    ) -> None:
        super().__init__(f"{status} {reason}: {detail}")
        self.reason = reason
        self.status = status
        self.detail = detail
        self.violations = tuple(violations)
        self.retry_after = retry_after

    @classmethod
    def of(cls, status: int, body: str, phrase: str = "", retry_after: float | None = None) -> ProblemError:
        """Reads the body of a response."""
        try:
            problem = json_format.Parse(body, gateway_pb2.Problem(), ignore_unknown_fields=True)
        except json_format.ParseError:  # from something in between that is not ours
            problem = gateway_pb2.Problem()
        return cls(problem.reason or "UNKNOWN", status, problem.detail or phrase, problem.violations, retry_after)


class UnreachableError(httpx.TransportError):
    """The server could not be reached, for all the attempts."""


class AnswerError(Exception):
    """What came is no answer of this API: something else answers at that address, or what lies between has spoiled it."""


class Connection:
    """A player's connection to a gateway: tokens, retries, errors.

    Args:
        base_url: where the gateway is.
        session: tokens from an earlier time, as `session` had them.
        attempts: how often a request is sent at most, when the way to the server is broken or it says that it is busy (429, 503). Pauses
            between them double, from a tenth of a second; so eight are some ten seconds.
        http: a transport of one's own; closed by its owner.

    Attributes:
        session: who is signed in, and their tokens, renewed by themselves. Save it to go on as the same player at another time.
    """

    def __init__(
        self, base_url: str, *, session: gateway_pb2.Session | None = None, attempts: int = 8, http: httpx.AsyncClient | None = None
    ) -> None:
        self.session = session
        self.base_url = base_url.rstrip("/")
        self.attempts = attempts
        self._own = http is None
        # As many connections as are needed: each stream takes one.
        self._http = http or httpx.AsyncClient(timeout=httpx.Timeout(REQUEST_SECONDS), limits=httpx.Limits(max_connections=None))
        self._renewing = asyncio.Lock()
        # When the token of this session runs out, by a clock that nobody sets: this machine's own may be wrong.
        self._expires: tuple[gateway_pb2.Session, float] | None = None

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
        seconds: float = REQUEST_SECONDS,
    ) -> M:
        """Sends a request and returns its answer.

        Args:
            seconds: how long its answer may take.

        Raises:
            ProblemError: the server refuses.
            UnreachableError: the server cannot be reached, for all the attempts.
            AnswerError: it answers what cannot be read.
        """
        response = await self.exchange(method, path, body=body, query=query, headers=headers, authorized=authorized, seconds=seconds)
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
        seconds: float = REQUEST_SECONDS,
    ) -> httpx.Response:
        """Sends a request and returns the response, whose status is below 400; else as `send`."""
        sent = dict(headers or {})
        if method == "POST":
            sent.setdefault("Idempotency-Key", secrets.token_urlsafe(24))
        params = {name: value for name, value in (query or {}).items() if value}
        timeout = httpx.Timeout(REQUEST_SECONDS, read=seconds)
        renewed = False
        attempt = 0
        while True:
            attempt += 1
            token = await self.token() if authorized else ""
            if authorized:
                sent["Authorization"] = f"Bearer {token}"
            try:
                response = await self._http.request(method, self.base_url + path, json=body, params=params, headers=sent, timeout=timeout)
            except httpx.TransportError as fault:
                if attempt >= self.attempts:
                    raise _unreachable(fault) from fault
                await pause(attempt)
                continue
            if response.status_code < 400:
                return response
            if response.status_code == 401 and authorized and not renewed:
                renewed = True
                attempt -= 1
                await self.renew(token)
                continue
            await self._wait_or_raise(response, attempt)

    async def pages(self, path: str, answer: type[M], *, authorized: bool = True) -> AsyncGenerator[M, None]:
        """Yields every page of a list; raises as `send`."""
        token = ""
        while True:
            page: Any = await self.send("GET", path, answer, query={"pageToken": token}, authorized=authorized)
            yield page
            if page.next_page_token == token != "":
                raise AnswerError(f"{path} leads from a page to the same page")
            token = page.next_page_token
            if not token:
                return

    async def events(self, path: str, after: str = "") -> AsyncGenerator[httpx_sse.ServerSentEvent, None]:
        """Yields server-sent events from a cursor on, across broken connections, until the server says that it is over.

        Raises:
            ProblemError: the server refuses.
            UnreachableError: the server cannot be reached, for all the attempts.
        """
        failures = 0
        renewed = ""
        while True:
            token = await self.token()
            headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
            if after:
                headers["Last-Event-ID"] = after
            opened = math.inf
            try:
                timeout = httpx.Timeout(REQUEST_SECONDS, read=_SILENCE_SECONDS)
                async with self._http.stream("GET", self.base_url + path, headers=headers, timeout=timeout) as response:
                    if response.status_code == 204:
                        return
                    if response.status_code >= 400:
                        await response.aread()
                        if response.status_code == 401 and renewed != token:
                            renewed = await self.renew(token)
                            continue
                        failures += 1
                        await self._wait_or_raise(response, failures)
                        continue
                    opened, renewed = time.monotonic(), ""
                    async for event in httpx_sse.EventSource(response).aiter_sse():
                        failures = 0
                        if event.data:
                            after = event.id or after
                            yield event
            except httpx.TransportError as fault:
                if failures + 1 >= self.attempts and time.monotonic() - opened <= _LASTED_SECONDS:
                    raise _unreachable(fault) from fault
            failures = 1 if time.monotonic() - opened > _LASTED_SECONDS else failures + 1
            await pause(failures)

    async def token(self) -> str:
        """Returns an access token that is good for a while.

        Raises:
            RuntimeError: nobody is signed in.
            ProblemError, UnreachableError: another is needed, and there is none to be had.
        """
        session = self.signed_in()
        if self.token_seconds() < _RENEW_SECONDS and session.refresh_token:
            return await self.renew(session.access_token)
        return session.access_token

    def token_seconds(self) -> float:
        """For how many seconds the access token is good yet; for tokens from an earlier time that is as good as this machine's clock."""
        session = self.signed_in()
        if self._expires is not None and self._expires[0] is session:
            return self._expires[1] - time.monotonic()
        return session.expire_time.seconds - time.time()

    async def renew(self, token: str) -> str:
        """Returns another access token than this one; several who ask at once get the same."""
        async with self._renewing:
            session = self.signed_in()
            if session.access_token == token:
                if not session.refresh_token:
                    raise ProblemError("TOKEN_INVALID", 401, "the access token is not good any more, and there is no refresh token")
                session = await self.enter("/v1/players:refresh", {"refreshToken": session.refresh_token})
            return session.access_token

    async def enter(self, path: str, body: Mapping[str, Any]) -> gateway_pb2.Session:
        """Sends what a session is the answer to, and is that session's player from then on."""
        response = await self.exchange("POST", path, body=body, authorized=False)
        session = read(response.text, gateway_pb2.Session)
        # By the server's own clock on both sides.
        now = _date(response) or time.time()
        self.session = session
        self._expires = session, time.monotonic() + session.expire_time.seconds - now
        return session

    def signed_in(self) -> gateway_pb2.Session:
        """Returns the session.

        Raises:
            RuntimeError: nobody is signed in.
        """
        if self.session is None:
            raise RuntimeError("nobody is signed in")
        return self.session

    async def _wait_or_raise(self, response: httpx.Response, attempt: int) -> None:
        """Waits, if the server is only busy and there may be another attempt."""
        problem = ProblemError.of(
            response.status_code, response.text, response.reason_phrase, seconds_of(response.headers.get("Retry-After"))
        )
        await wait_or_raise(problem, attempt, self.attempts)


def read(text: str, kind: type[M]) -> M:
    """Reads a message; what is newer than the generated code is skipped.

    Raises:
        AnswerError: it is no such message.
    """
    try:
        return wire.parse(text, kind)
    except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError) as fault:  # JSON of any other shape
        raise AnswerError(f"this is no {kind.DESCRIPTOR.name}: {text[:100]!r}") from fault


def write(message: Message) -> Any:
    """Returns a message as JSON has it."""
    return json_format.MessageToDict(message)


def seconds_of(retry_after: str | None) -> float | None:
    """Reads a Retry-After in seconds."""
    return float(retry_after) if retry_after and retry_after.isdecimal() else None


async def wait_or_raise(problem: ProblemError, attempt: int, attempts: int) -> None:
    """Waits as long as a busy server asks for; raises any other problem, and this one if it would take too long."""
    if problem.status not in _BUSY or attempt >= attempts or (problem.retry_after or 0) > MOST_SECONDS:
        raise problem
    await pause(attempt, problem.retry_after)


async def pause(attempt: int, asked: float | None = None) -> None:
    """Waits longer each time, not all clients alike, and at least as long as is asked for."""
    longer = min(random.uniform(0.5, 1.0) * _PAUSE_SECONDS * 2 ** (attempt - 1), _LONGEST_PAUSE_SECONDS)
    await asyncio.sleep(max(longer, (asked or 0.0) * random.uniform(1.0, 1.1)))


def _date(response: httpx.Response) -> float | None:
    """When a response was made, by its server's clock, in seconds; None where it does not say."""
    told = email.utils.parsedate_tz(response.headers.get("Date", ""))
    try:
        return email.utils.mktime_tz(told) if told else None
    except (ValueError, OverflowError):  # of no calendar
        return None


def _unreachable(fault: httpx.TransportError) -> UnreachableError:
    said = str(fault) or type(fault).__name__
    try:
        return UnreachableError(said, request=fault.request)
    except RuntimeError:  # it had none
        return UnreachableError(said)
