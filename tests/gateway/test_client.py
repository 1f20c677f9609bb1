"""The Python client, against a real server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from google.protobuf import timestamp_pb2
from redis.asyncio import Redis

from gateway.registry import GAMES
from gloaming.client import BOT, ME, AnswerError, Client, CursorGoneError, ProblemError
from gloaming.gateway.v1 import gateway_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import Refused, Unauthenticated, Unavailable
from tests.gateway.stand import MATCH_ID, NIGHT_CLAN, Context, Stand, cursor, event, match, refuse, stand
from tests.harness import EVERY_GAME, Keys, table

MOVE = night_clan_pb2.Move(keep=night_clan_pb2.Keep())
SESSION = gateway_pb2.Session(access_token="a", expire_time=timestamp_pb2.Timestamp(seconds=2**32))


@pytest.fixture
async def client(served: Stand) -> AsyncIterator[Client]:
    async with Client(str(served.http.base_url)) as it:
        await it.sign_in("Ann")
        yield it


async def test_a_whole_match_is_played_and_watched(keys: Keys, redis_url: str, redis: Redis) -> None:
    (game,) = [each for each in EVERY_GAME if each.id == NIGHT_CLAN.id]
    async with (
        table(game, keys, redis_url) as there,
        stand(keys, redis_url, on_socket=True, services={"night_clan": there.addresses[0]}) as gateway,
        Client(str(gateway.http.base_url)) as ann,
    ):
        player = await ann.sign_in("Ann")
        assert await ann.me() == player
        assert (await ann.rename("Bea")).name == "Bea"
        assert [each.id for each in await ann.games()] == list(GAMES)
        game_table = ann.game(night_clan_pb2)
        made = await game_table.create_match(
            [ME, BOT],
            options=night_clan_pb2.Options(variant="DAY"),
            settings=table_pb2.Settings(move_seconds=0),
            order=table_pb2.Seating.AS_LISTED,
        )
        assert (made.viewer_seat, made.seats[0].name, made.options.variant) == (0, "Bea", night_clan_pb2.Options.DAY)
        seen = []
        async for news in game_table.watch(made.id):
            seen.append(news.event.cursor)
            legal = await game_table.moves(made.id)
            if legal.moves:
                await game_table.play(made.id, legal.moves[0])
        over = await game_table.match(made.id)
        assert over.status == table_pb2.FINISHED
        assert [each.cursor async for each in game_table.events(made.id)] == seen
        assert [each.cursor async for each in game_table.events(made.id, seen[5], page_size=3)] == seen[6:]
        assert [news async for news in game_table.watch(made.id, seen[-1])] == []
        assert len((await game_table.record(made.id)).moves) == over.version - 1
        assert [each.id async for each in ann.my_matches()] == [made.id]
        with pytest.raises(ProblemError, match="MATCH_FINISHED"):
            await game_table.resign(made.id)
        await ann.sign_out()
        assert ann.session is None


async def test_a_refusal_has_its_reason_and_violations(served: Stand, client: Client) -> None:
    async def refused(request: Any, context: Context) -> Any:
        await refuse(context, Refused("LOCATION_FULL", "the Church is full"))

    served.service.verbs["SubmitMove"] = refused
    with pytest.raises(ProblemError) as problem:
        await client.game(night_clan_pb2).play(MATCH_ID, MOVE, expected_version=7)
    assert (problem.value.reason, problem.value.status, problem.value.detail) == ("LOCATION_FULL", 422, "the Church is full")
    assert served.service.calls("SubmitMove")[0].expected_version == 7
    with pytest.raises(ProblemError) as problem:
        await client.rename("")
    assert [violation.field for violation in problem.value.violations] == ["name"]


@pytest.mark.scenario(3)
async def test_a_move_whose_answer_is_lost_is_sent_again_under_the_same_key(served: Stand) -> None:
    class Lossy(httpx.AsyncHTTPTransport):
        lost = 0

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            response = await super().handle_async_request(request)
            if request.url.path.endswith("/moves") and self.lost < 2:
                self.lost += 1
                await response.aread()
                raise httpx.ReadError("lost", request=request)
            return response

    async def submit(request: Any, context: Context) -> Any:
        return night_clan_pb2.SubmitMoveResponse(version=8)

    served.service.verbs["SubmitMove"] = submit
    async with httpx.AsyncClient(transport=Lossy()) as http, Client(str(served.http.base_url), http=http) as client:
        await client.sign_in("Ann")
        assert (await client.game(night_clan_pb2).play(MATCH_ID, MOVE)).version == 8
        assert (await client.game(night_clan_pb2).play(MATCH_ID, MOVE)).version == 8
    first, *retries, other = [asked.request_id for asked in served.service.calls("SubmitMove")]
    assert retries == [first, first]
    assert other != first


async def test_a_server_that_is_busy_is_asked_again_and_not_for_ever(served: Stand, client: Client) -> None:
    turns = iter(range(100))

    async def busy(request: Any, context: Context) -> Any:
        if next(turns) < 4:
            await refuse(context, Unavailable("STORAGE_UNAVAILABLE", "try again"))
        return match()

    served.service.verbs["GetMatch"] = busy
    began = time.monotonic()
    assert (await client.game(night_clan_pb2).match(MATCH_ID)).id == MATCH_ID
    assert time.monotonic() - began >= 1  # Retry-After
    await served.service.stop()
    async with Client(str(served.http.base_url), session=client.session, attempts=2) as impatient:
        with pytest.raises(ProblemError) as problem:
            await impatient.game(night_clan_pb2).match(MATCH_ID)
    assert problem.value.status == 503


async def test_tokens_are_renewed_before_they_run_out_and_once_for_all_who_ask(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with stand(keys, redis_url, on_socket=True, access_token_seconds=5) as served, Client(str(served.http.base_url)) as client:
        await client.sign_in("Ann")
        assert client.session is not None
        first = client.session.refresh_token
        # Five seconds are less than the margin in which a token is renewed: each round of requests renews once.
        await asyncio.gather(*(client.me() for _ in range(5)))
        assert client.session.refresh_token != first


async def test_a_token_that_is_refused_is_renewed_once(served: Stand, client: Client) -> None:
    assert client.session is not None
    good = client.session.access_token
    client.session.access_token = "worn.out.token"
    assert (await client.me()).name == "Ann"
    assert client.session.access_token not in (good, "worn.out.token")

    async def refused(request: Any, context: Context) -> Any:
        await refuse(context, Unauthenticated("TOKEN_INVALID", "no"))

    served.service.verbs["GetMatch"] = refused
    with pytest.raises(ProblemError, match="TOKEN_INVALID"):
        await client.game(night_clan_pb2).match(MATCH_ID)


async def test_a_client_who_signed_out_elsewhere_is_told(served: Stand, client: Client) -> None:
    async with Client(str(served.http.base_url), session=gateway_pb2.Session.FromString(client.session.SerializeToString())) as elsewhere:  # type: ignore[union-attr]
        await elsewhere.sign_out()
    with pytest.raises(ProblemError, match="REFRESH_TOKEN_INVALID"):
        await client.me()


async def test_an_unchanged_match_travels_once(served: Stand, client: Client) -> None:
    served.service.matches[MATCH_ID] = match()
    statuses: list[int] = []

    async def note(response: httpx.Response) -> None:
        statuses.append(response.status_code)

    async with (
        httpx.AsyncClient(event_hooks={"response": [note]}) as http,
        Client(str(served.http.base_url), session=client.session, http=http) as other,
    ):
        game_table = other.game(night_clan_pb2)
        first = await game_table.match(MATCH_ID)
        assert await game_table.match(MATCH_ID) == first
        served.service.matches[MATCH_ID].version += 1
        assert (await game_table.match(MATCH_ID)).version == first.version + 1
    assert statuses == [200, 304, 200]


@pytest.mark.scenario(27)
async def test_what_a_newer_server_says_is_skipped(served: Stand, client: Client) -> None:
    body = (
        b'{"id":"x","game":"night_clan","status":"ADJOURNED","version":3,"weather":{"rain":1},'
        b'"view":{"phase":"DUSK","hand":["DRAGON","TROLL"],"locations":[{"location":"MOON","capacity":9}]}}'
    )

    def newer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=body)

    async with httpx.AsyncClient(transport=httpx.MockTransport(newer)) as http:
        got = await Client("http://x", session=client.session, http=http).game(night_clan_pb2).match(MATCH_ID)
    assert (got.version, list(got.view.hand), got.view.locations[0].capacity) == (3, [night_clan_pb2.Card.TROLL], 9)


async def test_a_watch_goes_on_across_broken_connections(served: Stand, client: Client) -> None:
    served.service.matches[MATCH_ID] = match()
    turns = iter(range(1, 10))

    async def watch(request: Any, context: Context) -> AsyncIterator[Any]:
        turn = next(turns)
        yield event(turn)
        if turn == 3:
            served.service.matches[MATCH_ID].status = table_pb2.FINISHED
            return
        # The gateway ends its stream for any other end than a drain; the client comes back to it.
        await refuse(context, Unauthenticated("TOKEN_EXPIRED", "run out"))

    served.service.verbs["WatchMatch"] = watch
    seen = []
    async for news in client.game(night_clan_pb2).watch(MATCH_ID):
        seen.append(news.event.cursor)
        if len(seen) == 3:
            break
    assert seen == [cursor(1), cursor(2), cursor(3)]
    assert [asked.after_cursor for asked in served.service.calls("WatchMatch")][1:3] == [cursor(1), cursor(2)]


async def test_a_token_without_a_refresh_token_is_used_as_long_as_it_is_good(served: Stand, keys: Keys) -> None:
    session = gateway_pb2.Session(access_token=keys.token("ann"))
    async with Client(str(served.http.base_url), session=session) as ann:
        assert (await ann.game(night_clan_pb2).create_match()).viewer_seat == 0
        session.access_token = "worn.out.token"
        with pytest.raises(ProblemError, match="there is no refresh token"):
            await ann.game(night_clan_pb2).create_match()


async def test_a_lost_history_is_told_and_not_skipped(served: Stand, client: Client) -> None:
    async def lost(request: Any, context: Context) -> Any:
        return night_clan_pb2.ListEventsResponse(snapshot=match(), next_cursor=cursor(7))

    served.service.verbs["ListEvents"] = lost
    with pytest.raises(CursorGoneError) as gone:
        _ = [each async for each in client.game(night_clan_pb2).events(MATCH_ID, cursor(3))]
    assert gone.value.snapshot.cursor == cursor(7)


async def test_nobody_is_signed_in_at_first(served: Stand) -> None:
    async with Client(str(served.http.base_url)) as client:
        with pytest.raises(RuntimeError, match="nobody is signed in"):
            await client.me()
        assert [each.id for each in await client.games()] == list(GAMES)


@asynccontextmanager
async def answering(body: str, status: str = "200 OK", **headers: str) -> AsyncIterator[tuple[str, list[str]]]:
    """Something at an address that gives everybody the same answer, and what it was asked for."""
    asked: list[str] = []
    writers: list[asyncio.StreamWriter] = []
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body.encode())}", *(f"{name}: {value}" for name, value in headers.items())]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                asked.append(head.decode())
                writer.write(("\r\n".join(lines) + "\r\n\r\n" + body).encode())

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
        for writer in writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


@pytest.mark.parametrize(
    "body", ["", "<html>", "[]", "7", '"x"', '{"player": 7}', '{"accessToken": [1]}', '{"expireTime": "x"}', "[" * 3000]
)
async def test_what_is_no_answer_of_this_api_is_said_to_be_none(body: str) -> None:
    async with answering(body) as (url, _), Client(url) as client:
        with pytest.raises(AnswerError, match="no Session"):
            await client.sign_in("Ann")
        assert client.session is None


@pytest.mark.parametrize(
    "body", ["[]", "7", '{"game": "night_clan", "version": []}', '{"game": "night_clan", "moves": [{"keep": []}], "view": 1}']
)
async def test_a_match_that_cannot_be_read_is_said_to_be_none(body: str) -> None:
    async with answering(body) as (url, _), Client(url, session=SESSION) as client:
        with pytest.raises(AnswerError, match="no Match"):
            await client.game(night_clan_pb2).match(MATCH_ID)


async def test_a_list_that_leads_to_the_same_page_again_ends() -> None:
    async with answering('{"nextPageToken": "x"}') as (url, asked), Client(url, session=SESSION) as client:
        with pytest.raises(AnswerError, match="the same page"):
            assert [match async for match in client.my_matches()] == []
    assert len(asked) == 2


@pytest.mark.parametrize("date", ["now", "Sun, 99 Xxx 999999 99:99:99 GMT", "Fri, 31 Dec 999999999999 00:00:00 GMT"])
async def test_a_date_of_no_calendar_is_not_believed(date: str) -> None:
    async with answering(f'{{"accessToken": "a", "expireTime": "{_iso(900)}"}}', Date=date) as (url, _), Client(url) as client:
        await client.sign_in("Ann")
        assert 800 < client.token_seconds() < 1000


async def test_a_token_is_shown_to_nobody_but_the_server_that_was_named() -> None:
    async with answering("") as (elsewhere, shown):
        async with answering("", "302 Found", Location=f"{elsewhere}/v1/live") as (url, asked), Client(url, session=SESSION) as client:
            with pytest.raises(AnswerError):
                await client.me()
            with pytest.raises(ProblemError) as refused:
                async with client.live():
                    pass
        assert refused.value.status == 302
        assert ["Bearer a" in each for each in asked] == [True, True]
        assert shown == []


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(time.time() + seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
