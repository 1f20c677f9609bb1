"""The Python client's live socket, rooms and tickets, against a real gateway."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from redis.asyncio import Redis

from gateway.live import Limits
from gloaming.client import Client, ProblemError, UnreachableError
from gloaming.gateway.v1 import gateway_pb2
from gloaming.live.v1 import live_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.relay.v1 import relay_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import Refused, Throttled, Unauthenticated
from services.kit.problems import live_problem
from tests.gateway.stand import MATCH_ID, Link, Stand, World, cursor, framed, live_stand
from tests.harness import EVERY_GAME, Keys, eventually, table

KEEP = night_clan_pb2.Move(keep=night_clan_pb2.Keep())


class Way:
    """A way to a gateway that can be cut. It leads to whichever is named when a connection is made.

    Attributes:
        target: the port that it leads to; 0 is nowhere.
        connections: how many were made.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.connections = 0
        self.silent = False
        self._writers: set[asyncio.StreamWriter] = set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carries one connection."""
        self.connections += 1
        self._writers.add(writer)
        try:
            onward = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(onward[1])
        await asyncio.gather(self._pass(reader, onward[1]), self._pass(onward[0], writer))
        self._writers -= {writer, onward[1]}

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                if not self.silent:
                    writer.write(data)
        writer.transport.abort()

    def cut(self) -> None:
        """Cuts every connection."""
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def way_to(it: Stand) -> AsyncIterator[tuple[Way, str]]:
    """A way to a gateway, and its address."""
    way = Way(it.http.base_url.port or 0)
    server = await asyncio.start_server(way.carry, "127.0.0.1", 0)
    try:
        yield way, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        way.cut()
        await asyncio.sleep(0)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def served(keys: Keys, redis_url: str, redis: Redis, world: World) -> AsyncIterator[Stand]:
    async with live_stand(keys, redis_url, world) as it:
        yield it


@pytest.fixture
async def ann(served: Stand) -> AsyncIterator[Client]:
    async with Client(str(served.http.base_url)) as client:
        await client.sign_in("Ann")
        yield client


def seen(news: night_clan_pb2.WatchMatchResponse) -> tuple[str, int]:
    """What of news tells it from others."""
    return ("snapshot", news.snapshot.version) if news.HasField("snapshot") else ("event", news.event.version)


async def test_a_match_is_watched_from_its_snapshot_on_and_played(ann: Client) -> None:
    async with ann.live() as live:
        game = live.game(night_clan_pb2)
        news = game.watch(MATCH_ID)
        assert seen(await anext(news)) == ("snapshot", 0)
        assert (await game.play(MATCH_ID, KEEP)).match_id == MATCH_ID
        first = await anext(news)
        assert (seen(first), first.event.cursor, first.event.event.hand_kept.seat) == (("event", 1), cursor(1), 1)
        assert await live.ping() < 5


async def test_several_matches_are_watched_over_one_socket_each_once(ann: Client, world: World) -> None:
    other = f"{MATCH_ID}x"
    async with ann.live() as live:
        game = live.game(night_clan_pb2)
        here, there = game.watch(MATCH_ID), game.watch(other)
        assert [seen(await anext(each)) for each in (here, there)] == [("snapshot", 0)] * 2
        world.play(other)
        world.play(MATCH_ID)
        assert [(await anext(each)).event.match_id for each in (here, there)] == [MATCH_ID, other]
        with pytest.raises(ValueError, match="watches"):
            await anext(game.watch(other))
        await there.aclose()
        world.play(other)
        # Whoever watches again after a cursor gets what came since, once.
        again = game.watch(other, cursor(1))
        assert seen(await anext(again)) == ("event", 2)


@pytest.mark.scenario(12)
async def test_a_watch_goes_on_without_gap_or_repeat_wherever_the_line_is_cut(served: Stand, ann: Client, world: World) -> None:
    async with way_to(served) as (way, url), Client(url, session=ann.session) as client, client.live() as live:
        news = live.game(night_clan_pb2).watch(MATCH_ID)
        assert seen(await anext(news)) == ("snapshot", 0)
        for version in range(1, 31):
            world.play(MATCH_ID)
            if version % 3 == 0:
                assert seen(await anext(news)) == ("event", version - 2)
                way.cut()
                assert [seen(await anext(news))[1] for _ in range(2)] == [version - 1, version]
        assert way.connections >= 10


@pytest.mark.scenario(3)
async def test_a_move_whose_answer_is_lost_with_the_line_is_sent_again_and_played_once(served: Stand, ann: Client, world: World) -> None:
    (replica,) = world.replicas
    async with way_to(served) as (way, url), Client(url, session=ann.session) as client, client.live() as live:
        game = live.game(night_clan_pb2)
        replica.silent = True
        playing = asyncio.create_task(game.play(MATCH_ID, KEEP))
        await eventually(lambda: world.played.get(MATCH_ID))
        replica.silent = False
        way.cut()
        assert (await playing).version == 1
        assert len(world.played[MATCH_ID]) == 1
        assert live.connections == 2


async def test_a_gateway_that_drains_is_left_for_another_at_once(
    keys: Keys, redis_url: str, redis: Redis, world: World, ann: Client
) -> None:
    other = World(played=world.played)
    async with live_stand(keys, redis_url, other) as second, way_to(second) as (way, url):
        async with live_stand(keys, redis_url, World(played=world.played), drain_seconds=0) as first:
            way.target = first.http.base_url.port or 0
            client = Client(url, session=ann.session)
            live = client.live()
            await live.__aenter__()
            news = live.game(night_clan_pb2).watch(MATCH_ID)
            assert seen(await anext(news)) == ("snapshot", 0)
            way.target = second.http.base_url.port or 0
        other.play(MATCH_ID)
        assert seen(await anext(news)) == ("event", 1)
        assert live.connections == 2
        await live.close()
        await client.close()


async def test_a_line_on_which_nothing_is_heard_is_given_up(
    served: Stand, ann: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gloaming.client.live._SILENCE_SECONDS", 1.0)
    async with way_to(served) as (way, url), Client(url, session=ann.session) as client, client.live() as live:
        news = live.game(night_clan_pb2).watch(MATCH_ID)
        assert seen(await anext(news)) == ("snapshot", 0)
        way.silent = True
        world.play(MATCH_ID)
        await eventually(lambda: way.connections > 1)
        way.silent = False
        way.cut()
        assert seen(await anext(news)) == ("event", 1)


async def test_a_socket_goes_on_with_another_token_before_the_old_one_runs_out(keys: Keys, redis_url: str, redis: Redis) -> None:
    world = World()
    async with live_stand(keys, redis_url, world, access_token_seconds=4) as it, Client(str(it.http.base_url)) as client:
        await client.sign_in("Ann")
        async with client.live() as live:
            news = live.game(night_clan_pb2).watch(MATCH_ID)
            await anext(news)
            (replica,) = world.replicas
            (link,) = replica.links
            tokens = {next(iter(link.tokens.values()))}

            def renewed() -> bool:
                tokens.update(link.tokens.values())
                return len(tokens) >= 3

            await eventually(renewed)
            world.play(MATCH_ID)
            assert seen(await anext(news)) == ("event", 1)
            assert live.connections == 1


async def test_a_token_that_the_socket_does_not_take_is_renewed(served: Stand, ann: Client) -> None:
    assert ann.session is not None
    ann.session.access_token = "worn.out.token"
    async with ann.live() as live:
        assert seen(await anext(live.game(night_clan_pb2).watch(MATCH_ID))) == ("snapshot", 0)


async def test_whoever_signed_out_elsewhere_is_told_where_they_wait(served: Stand, ann: Client, redis: Redis) -> None:
    assert ann.session is not None
    kept = gateway_pb2.Session.FromString(ann.session.SerializeToString())
    async with way_to(served) as (way, url), Client(url, session=kept) as client, client.live() as live:
        news = live.game(night_clan_pb2).watch(MATCH_ID)
        await anext(news)
        await ann.sign_out()
        way.cut()
        with pytest.raises(ProblemError, match="REFRESH_TOKEN_INVALID"):
            await anext(news)
        with pytest.raises(ProblemError, match="REFRESH_TOKEN_INVALID"):
            await live.game(night_clan_pb2).play(MATCH_ID, KEEP)


async def test_a_move_that_finds_its_token_run_out_is_sent_again_with_another(ann: Client, world: World) -> None:
    (replica,) = world.replicas
    tokens: list[str] = []

    def run_out(link: Link, number: int, frame: live_pb2.ClientFrame) -> bool:
        tokens.append(link.tokens[number])
        if len(tokens) > 1:
            return False
        problem = live_problem(Unauthenticated("TOKEN_EXPIRED", "run out"), frame.request_id, MATCH_ID)
        down = relay_pb2.Down(attachments=[number], frame=framed(live_pb2.ServerMessage(problem=problem)), request_id=frame.request_id)
        link.send(down, relay_pb2.Down(attachments=[number], close=1008))
        return True

    replica.answer = run_out
    async with ann.live() as live:
        assert (await live.game(night_clan_pb2).play(MATCH_ID, KEEP)).version == 1
    assert len(set(tokens)) == 2


async def test_a_refusal_on_the_socket_is_the_same_error_as_over_rest(ann: Client, world: World) -> None:
    (replica,) = world.replicas

    def refuse(link: Link, number: int, frame: live_pb2.ClientFrame) -> bool:
        problem = live_problem(Refused("LOCATION_FULL", "the Church is full"), frame.request_id, MATCH_ID)
        _answer(link, number, frame.request_id, live_pb2.ServerMessage(problem=problem))
        return True

    replica.answer = refuse
    async with ann.live() as live:
        game = live.game(night_clan_pb2)
        for asked in (game.play(MATCH_ID, KEEP), anext(game.watch(MATCH_ID))):
            with pytest.raises(ProblemError) as refused:
                await asked
            assert (refused.value.reason, refused.value.status, refused.value.detail) == ("LOCATION_FULL", 422, "the Church is full")


async def test_what_is_refused_as_too_much_is_asked_again_as_late_as_it_says(ann: Client, world: World) -> None:
    (replica,) = world.replicas
    loop = asyncio.get_running_loop()
    refused: list[float] = []

    def busy(link: Link, number: int, frame: live_pb2.ClientFrame) -> bool:
        if refused and loop.time() - refused[-1] >= 1:
            return False
        refused.append(loop.time())
        problem = live_problem(Throttled("TOO_MANY_REACTIONS", "too many", retry_after=1), frame.request_id, MATCH_ID)
        _answer(link, number, frame.request_id, live_pb2.ServerMessage(problem=problem))
        return True

    replica.answer = busy
    async with ann.live() as live:
        game = live.game(night_clan_pb2)
        assert (await game.play(MATCH_ID, KEEP)).version == 1
        assert len(refused) == 1
        refused.clear()
        assert seen(await anext(game.watch(MATCH_ID))) == ("snapshot", 1)
        assert len(refused) == 1


def _answer(link: Link, number: int, request_id: str, message: live_pb2.ServerMessage) -> None:
    link.send(relay_pb2.Down(attachments=[number], frame=framed(message), request_id=request_id))


async def test_sockets_that_are_too_many_are_opened_as_late_as_the_server_says(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with live_stand(keys, redis_url, World(), limit_sockets="60:1") as it, Client(str(it.http.base_url)) as client:
        await client.sign_in("Ann")
        began = asyncio.get_running_loop().time()
        async with client.live(), client.live() as second:
            assert await second.ping() < 5
        assert asyncio.get_running_loop().time() - began > 0.9


async def test_a_client_that_does_not_answer_pings_would_be_cut_off_and_this_one_is_not(keys: Keys, redis_url: str, redis: Redis) -> None:
    limits = Limits(silent_seconds=0.5, tick_seconds=0.1, ping_seconds=0.1)
    async with live_stand(keys, redis_url, World(), limits=limits) as it, Client(str(it.http.base_url)) as client:
        await client.sign_in("Ann")
        async with client.live() as live:
            await asyncio.sleep(1.5)  # nothing else tells that nothing happens
            assert live.connections == 1


async def test_where_nobody_answers_whoever_waits_is_told_after_all_attempts(served: Stand, ann: Client) -> None:
    async with way_to(served) as (way, url), Client(url, session=ann.session, attempts=3) as client, client.live() as live:
        news = live.game(night_clan_pb2).watch(MATCH_ID)
        await anext(news)
        way.target = 1
        way.cut()
        with pytest.raises(UnreachableError):
            await anext(news)
        with pytest.raises(UnreachableError):
            await live.ping()
    async with Client("http://127.0.0.1:1", session=ann.session, attempts=2) as nowhere:
        with pytest.raises(UnreachableError):
            async with nowhere.live():
                pass
        with pytest.raises(UnreachableError):
            await nowhere.me()


async def test_a_watch_ends_with_the_match_also_where_it_began_at_the_very_end(keys: Keys, redis_url: str, redis: Redis) -> None:
    (game,) = [each for each in EVERY_GAME if each.id == "night_clan"]
    async with (
        table(game, keys, redis_url) as there,
        live_stand(keys, redis_url, World(), services={"night_clan": there.addresses[0]}) as it,
        Client(str(it.http.base_url)) as client,
    ):
        await client.sign_in("Ann")
        over_rest = client.game(night_clan_pb2)
        made = await over_rest.create_match()
        async with client.live() as live:
            game_table = live.game(night_clan_pb2)
            kinds, cursors = [], []
            async for news in game_table.watch(made.id):
                kinds.append(news.WhichOneof("kind"))
                cursors.append(news.event.cursor or news.snapshot.cursor)
                if moves := (await over_rest.moves(made.id)).moves:
                    with contextlib.suppress(ProblemError):  # a move of the answer before the last
                        await game_table.play(made.id, moves[0])
            assert kinds == ["snapshot"] + ["event"] * (len(kinds) - 1)
            whole = [event.cursor async for event in over_rest.events(made.id)]
            assert cursors == whole[-len(cursors) :]
            assert [news async for news in game_table.watch(made.id, whole[-1])] == []
            assert [news.snapshot.status async for news in game_table.watch(made.id)] == [table_pb2.FINISHED]
        again = await over_rest.rematch(made.id)
        assert [seat.player for seat in again.seats] == [seat.player for seat in made.seats]
        assert (await over_rest.rematch(made.id)).id == again.id


async def test_a_watch_over_rest_goes_on_with_another_token_when_its_own_has_run_out(keys: Keys, redis_url: str, redis: Redis) -> None:
    (game,) = [each for each in EVERY_GAME if each.id == "night_clan"]
    tokens: list[str] = []

    async def note(request: httpx.Request) -> None:
        if request.url.path.endswith("/events"):
            tokens.append(request.headers["Authorization"])

    async with (
        table(game, keys, redis_url) as there,
        live_stand(keys, redis_url, World(), services={"night_clan": there.addresses[0]}, access_token_seconds=1) as it,
        way_to(it) as (way, url),
        httpx.AsyncClient(event_hooks={"request": [note]}) as http,
        Client(url, http=http) as client,
    ):
        await client.sign_in("Ann")
        over_rest = client.game(night_clan_pb2)
        made = await over_rest.create_match()
        seen: list[str] = []

        async def watch() -> None:
            async with contextlib.aclosing(over_rest.watch(made.id)) as watching:
                async for news in watching:
                    seen.append(news.event.cursor)

        watcher = asyncio.create_task(watch())
        await eventually(lambda: made.cursor in seen and client.token_seconds() < 0)
        way.cut()
        await eventually(lambda: len(tokens) >= 2)
        played = await over_rest.play(made.id, (await over_rest.moves(made.id)).moves[0])
        await eventually(lambda: played.cursor in seen)
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
        assert tokens[0] != tokens[-1]
        assert seen == [event.cursor async for event in over_rest.events(made.id)][: len(seen)]


async def test_a_server_whose_connections_are_never_answered_is_given_up_after_all_attempts(
    ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("live._OPEN_SECONDS", "live._LASTED_SECONDS", "connection.REQUEST_SECONDS", "connection._LASTED_SECONDS"):
        monkeypatch.setattr(f"gloaming.client.{name}", 0.2 if "LASTED" not in name else 0.1)

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65_536):
            pass
        writer.close()

    monkeypatch.setattr("gloaming.client.connection._SILENCE_SECONDS", 0.2)
    async with await asyncio.start_server(swallow, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with Client(url, session=ann.session, attempts=3) as client:
            with pytest.raises(UnreachableError):
                async with client.live():
                    pass
            with pytest.raises(UnreachableError):
                await anext(client.game(night_clan_pb2).watch(MATCH_ID))
