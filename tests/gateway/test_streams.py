"""Events as server-sent events, over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx_sse
import pytest

from gateway import streams
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.table.v1 import table_pb2
from services.kit.cursor import START
from services.kit.errors import Forbidden, Unauthenticated, Unavailable
from tests.gateway.stand import MATCH_ID, Context, Stand, cursor, event, match, refuse

PATH = f"/v1/matches/{MATCH_ID}/events"


@asynccontextmanager
async def watching(
    served: Stand, query: str = "", **headers: str
) -> AsyncIterator[tuple[httpx.Response, AsyncIterator[httpx_sse.ServerSentEvent]]]:
    async with served.http.stream("GET", PATH + query, headers={"Accept": "text/event-stream", **headers}, timeout=10) as response:
        yield response, httpx_sse.EventSource(response).aiter_sse()


async def next_event(events: AsyncIterator[httpx_sse.ServerSentEvent]) -> httpx_sse.ServerSentEvent:
    while True:
        got = await asyncio.wait_for(anext(events), 5)
        if got.data:
            return got


@pytest.fixture(autouse=True)
async def _at_the_table(served: Stand) -> None:
    await served.sign_in()
    served.service.matches[MATCH_ID] = match()


def playing(served: Stand, *messages: Any, then: Any = None) -> None:
    """The service streams these messages, and then waits, or does as told."""

    async def watch(request: Any, context: Context) -> AsyncIterator[Any]:
        for message in messages:
            yield message
        await (then(context) if then is not None else asyncio.Event().wait())

    served.service.verbs["WatchMatch"] = watch


async def test_events_come_with_their_cursors_as_they_happen(served: Stand) -> None:
    playing(served, event(1), event(2), night_clan_pb2.WatchMatchResponse(snapshot=match()))
    async with watching(served) as (response, events):
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-store"
        assert "content-length" not in response.headers
        got = [await next_event(events) for _ in range(3)]
    assert [(each.event, each.id) for each in got] == [("event", cursor(1)), ("event", cursor(2)), ("snapshot", cursor(7))]
    assert got[0].json()["event"] == {"handKept": {"seat": 0}}
    assert got[2].json()["view"]["hand"] == ["TROLL"]
    assert got[0].retry == 1000 or got[0].retry is None


async def test_the_client_is_told_to_come_back_after_a_second(served: Stand) -> None:
    playing(served)
    async with served.http.stream("GET", PATH, headers={"Accept": "text/event-stream"}) as response:
        assert await anext(response.aiter_bytes()) == b"retry: 1000\n\n"


@pytest.mark.parametrize(
    ("query", "headers", "after"),
    [
        ("", {}, START),
        (f"?after={cursor(3)}", {}, cursor(3)),
        (f"?after={cursor(3)}", {"Last-Event-ID": cursor(5)}, cursor(5)),
        ("", {"Last-Event-ID": cursor(5)}, cursor(5)),
        ("", {"Last-Event-ID": ""}, START),
    ],
)
async def test_a_stream_goes_on_after_the_cursor_it_is_given(served: Stand, query: str, headers: dict[str, str], after: str) -> None:
    playing(served, event(6))
    async with watching(served, query, **headers) as (_, events):
        await next_event(events)
    assert [asked.after_cursor for asked in served.service.calls("WatchMatch")] == [after]


@pytest.mark.parametrize(("query", "headers", "field"), [("?after=x", {}, "after"), ("", {"Last-Event-ID": "x"}, "Last-Event-ID")])
async def test_a_cursor_that_is_none_is_400(served: Stand, query: str, headers: dict[str, str], field: str) -> None:
    response = await served.http.get(PATH + query, headers={"Accept": "text/event-stream", **headers})
    assert (response.status_code, response.json()["violations"][0]["field"]) == (400, field)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Unauthenticated("TOKEN_EXPIRED", "the access token has run out"), 401),
        (Forbidden("NOT_A_PLAYER", "no spectators here"), 403),
        (Unavailable("STORAGE_UNAVAILABLE", "try again"), 503),
    ],
)
async def test_a_refusal_before_the_stream_is_a_problem(served: Stand, error: Any, status: int) -> None:
    async def refused(request: Any, context: Context) -> Any:
        await refuse(context, error)

    served.service.verbs["GetMatch"] = refused
    response = await served.http.get(PATH, headers={"Accept": "text/event-stream"})
    assert (response.status_code, response.json()["reason"]) == (status, error.reason)
    assert response.headers["content-type"] == "application/problem+json"


async def test_a_stream_ends_with_its_match_and_coming_back_is_204(served: Stand) -> None:
    async def watch(request: Any, context: Context) -> AsyncIterator[Any]:
        if request.after_cursor != cursor(9):
            yield event(9)

    served.service.verbs["WatchMatch"] = watch
    served.service.matches[MATCH_ID] = match(version=9, status=table_pb2.FINISHED)
    async with watching(served) as (_, events):
        assert [each.id async for each in events if each.data] == [cursor(9)]
    response = await served.http.get(PATH, headers={"Accept": "text/event-stream", "Last-Event-ID": cursor(9)})
    assert (response.status_code, response.content) == (204, b"")


async def test_a_match_that_ends_while_it_is_watched_ends_the_stream(served: Stand) -> None:
    async def over(context: Context) -> None:
        return

    playing(served, event(8), event(9), then=over)
    async with watching(served) as (_, events):
        assert [each.id async for each in events if each.data] == [cursor(8), cursor(9)]


async def test_a_service_that_drains_goes_unnoticed(served: Stand) -> None:
    turns = iter(range(10))

    async def watch(request: Any, context: Context) -> AsyncIterator[Any]:
        turn = next(turns)
        if turn < 3:
            yield event(turn + 1)
            await refuse(context, Unavailable("DRAINING", "this replica is about to stop"))
        yield event(9)

    served.service.verbs["WatchMatch"] = watch
    async with watching(served) as (_, events):
        assert [each.id async for each in events if each.data] == [cursor(1), cursor(2), cursor(3), cursor(9)]
    assert [asked.after_cursor for asked in served.service.calls("WatchMatch")] == [START, cursor(1), cursor(2), cursor(3)]


async def test_a_service_that_is_restarted_goes_unnoticed(served: Stand) -> None:
    playing(served, event(1))
    async with watching(served) as (_, events):
        assert (await next_event(events)).id == cursor(1)
        await served.service.stop()
        await asyncio.sleep(0.3)
        playing(served, event(2))
        await served.service.start()
        assert (await next_event(events)).id == cursor(2)
    assert [asked.after_cursor for asked in served.service.calls("WatchMatch")][-1] == cursor(1)


async def test_a_token_that_ends_under_a_stream_ends_it_and_coming_back_says_why(served: Stand) -> None:
    async def revoked(context: Context) -> None:
        await refuse(context, Unauthenticated("TOKEN_REVOKED", "the player has signed out"))

    playing(served, event(1), then=revoked)
    async with watching(served) as (_, events):
        assert [each.id async for each in events if each.data] == [cursor(1)]


async def test_a_client_that_goes_away_ends_the_call_to_the_service(served: Stand) -> None:
    ended = asyncio.Event()

    async def watch(request: Any, context: Context) -> AsyncIterator[Any]:
        try:
            yield event(1)
            await asyncio.Event().wait()
        finally:
            ended.set()

    served.service.verbs["WatchMatch"] = watch
    async with watching(served) as (_, events):
        await next_event(events)
        assert not ended.is_set()
    await asyncio.wait_for(ended.wait(), 5)


async def test_a_quiet_stream_is_kept_alive(served: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEEP_ALIVE_SECONDS", 0.05)
    playing(served)
    async with served.http.stream("GET", PATH, headers={"Accept": "text/event-stream"}) as response:
        chunks = response.aiter_bytes()
        assert b"".join([await anext(chunks) for _ in range(4)]).startswith(b"retry: 1000\n\n:\n\n:\n\n")


@pytest.mark.scenario(22)
async def test_a_gateway_that_stops_ends_its_streams_cleanly_and_soon(served: Stand) -> None:
    ended = asyncio.Event()

    async def watch(request: Any, context: Context) -> AsyncIterator[Any]:
        try:
            yield event(1)
            await asyncio.Event().wait()
        finally:
            ended.set()

    served.service.verbs["WatchMatch"] = watch
    assert served.server is not None
    async with watching(served) as (_, events):
        await next_event(events)
        served.server.should_exit = True
        # A whole response: an end that was cut off would raise here.
        assert [each async for each in events if each.data] == []
    await asyncio.wait_for(ended.wait(), 5)
