"""Live streams of a service: `Play`, one player's, and `Relay`, a gateway's for many sockets."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from redis.asyncio import Redis

from gloaming.live.v1 import live_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.night_knight.v1 import night_knight_pb2 as nk
from gloaming.relay.v1 import relay_pb2
from services.kit.game import Game
from services.kit.identity import revocation_key
from services.kit.live import _TRUSTED_SECONDS
from tests.harness import EVERY_GAME, Keys, Refused, Table, all_events, calm, eventually, table

NIGHT_CLAN, NIGHT_KNIGHT = (next(game for game in EVERY_GAME if game.id == name) for name in ("night_clan", "night_knight"))


class Stream:
    """One end of a stream of bytes over gRPC, closed with its channel."""

    def __init__(self, channel: grpc.aio.Channel, path: str, token: str) -> None:
        call: Any = channel.stream_stream(path)
        self.call = call(metadata=[("authorization", f"Bearer {token}")])

    async def write(self, message: Any) -> None:
        await self.call.write(message.SerializeToString())

    async def read(self, kind: Any) -> Any:
        """The next message.

        Raises:
            Refused: the stream has ended with a status.
        """
        try:
            async with asyncio.timeout(10):
                body = await self.call.read()
        except grpc.aio.AioRpcError as fault:
            raise Refused(fault) from fault
        assert body is not grpc.aio.EOF
        return kind.FromString(body)


@asynccontextmanager
async def stream(address: str, path: str, token: str) -> AsyncIterator[Stream]:
    async with grpc.aio.insecure_channel(address) as channel:
        yield Stream(channel, path, token)


class Playing:
    """A player on a stream of `Play`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._numbers = itertools.count()
        self._waiting: list[nk.PlayMessage] = []

    async def ask(self, **request: Any) -> str:
        """Sends a request, under an id of its own."""
        request_id = request.pop("request_id", f"r{next(self._numbers)}")
        await self._stream.write(nk.PlayRequest(request_id=request_id, **request))
        return str(request_id)

    async def next(self, *kinds: str) -> Any:
        """The next message of any of these kinds; others wait for whoever asks for them, and pings are answered."""
        while True:
            for n, message in enumerate(self._waiting):
                kind = message.WhichOneof("kind")
                if kind in kinds:
                    del self._waiting[n]
                    return getattr(message, kind)
            for message in (await self._stream.read(nk.PlayResponse)).messages:
                if message.HasField("ping"):
                    await self._stream.write(nk.PlayRequest(pong=live_pb2.Pong(nonce=message.ping.nonce)))
                self._waiting.append(message)

    async def half_close(self) -> list[nk.PlayMessage]:
        """Asks nothing more, and returns all that comes until the stream has ended in order."""
        await self._stream.call.done_writing()
        rest = self._waiting
        async with asyncio.timeout(10):
            while (body := await self._stream.call.read()) is not grpc.aio.EOF:
                rest += nk.PlayResponse.FromString(body).messages
        assert await self._stream.call.code() == grpc.StatusCode.OK
        return rest

    async def end(self) -> None:
        """Reads to the end of the stream, and answers no pings any more.

        Raises:
            Refused: the stream has ended with a status.
        """
        while True:
            await self._stream.read(nk.PlayResponse)

    async def until(self, kind: str) -> Any:
        """The next event of a kind, at its place."""
        while True:
            event = await self.next("event")
            if event.event.WhichOneof("kind") == kind:
                return event


@asynccontextmanager
async def playing(there: Table, player: str, replica: int = 0) -> AsyncIterator[Playing]:
    async with stream(there.addresses[replica], "/gloaming.night_knight.v1.NightKnightService/Play", there.keys.token(player)) as open_:
        yield Playing(open_)


class Relayed:
    """A gateway's stream, and what came for each of its sockets."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.came: dict[int, list[live_pb2.ServerMessage]] = defaultdict(list)
        self.downs: list[relay_pb2.Down] = []

    async def up(self, attachment: int, **kind: Any) -> None:
        await self.stream.write(relay_pb2.RelayRequest(messages=[relay_pb2.Up(attachment=attachment, **kind)]))

    async def ask(self, attachment: int, request_id: str, **kind: Any) -> None:
        await self.up(attachment, frame=live_pb2.ClientFrame(request_id=request_id, **kind).SerializeToString())

    async def next(self, attachment: int, *kinds: str) -> Any:
        """The next message of these kinds for a socket; others wait for whoever asks for them."""
        while True:
            for n, message in enumerate(self.came[attachment]):
                if message.WhichOneof("kind") in kinds:
                    del self.came[attachment][n]
                    return getattr(message, message.WhichOneof("kind") or "")
            for down in (await self.stream.read(relay_pb2.RelayResponse)).messages:
                self.downs.append(down)
                for each in down.attachments:
                    self.came[each] += live_pb2.ServerFrame.FromString(down.frame).messages


@asynccontextmanager
async def relayed(there: Table, scope: str = "relay", replica: int = 0) -> AsyncIterator[Relayed]:
    token = there.keys.token("gateway", scope=scope)
    async with stream(there.addresses[replica], "/gloaming.relay.v1.RelayService/Relay", token) as open_:
        yield Relayed(open_)


@pytest.fixture(params=[NIGHT_CLAN, NIGHT_KNIGHT], ids=lambda game: game.id)
def game(request: pytest.FixtureRequest) -> Game:
    """A game in turns, and one in real time."""
    chosen: Game = request.param
    return chosen


@pytest.fixture
async def there(game: Game, keys: Keys, redis_url: str, redis: Redis) -> AsyncIterator[Table]:
    async with table(game, keys, redis_url) as running:
        yield running


@pytest.fixture
async def knights(keys: Keys, redis_url: str, redis: Redis) -> AsyncIterator[Table]:
    """Two replicas of Night Knight."""
    async with table(NIGHT_KNIGHT, keys, redis_url, replicas=2) as running:
        yield running


SLOW = nk.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=30_000)


def wire(message: Any) -> list[tuple[int, int, bool]]:
    """The fields of a message as they are on the wire."""
    return [(field.number, field.type == field.TYPE_STRING, field.is_repeated) for field in message.DESCRIPTOR.fields]


def test_the_frames_of_play_are_those_of_the_live_socket() -> None:
    for mine, theirs in (
        (nk.PlayRequest, live_pb2.ClientFrame),
        (nk.PlayMove, live_pb2.Move),
        (nk.PlayResponse, live_pb2.ServerFrame),
        (nk.PlaySnapshot, live_pb2.Snapshot),
        (nk.MatchEvent, live_pb2.Event),
        (night_clan_pb2.MatchEvent, live_pb2.Event),
    ):
        assert wire(mine) == wire(theirs), f"{mine.DESCRIPTOR.full_name} and {theirs.DESCRIPTOR.full_name}"
    gateways = {live_pb2.ServerMessage.DESCRIPTOR.fields_by_name[name].number for name in ("draining", "room", "ticket")}
    assert [field for field in wire(live_pb2.ServerMessage) if field[0] not in gateways] == wire(nk.PlayMessage)


async def test_over_play_a_player_watches_reacts_and_is_told_all_of_it_once(knights: Table) -> None:
    match_id = await knights.create("ann", "bob", "cat", options=SLOW)
    async with playing(knights, "ann") as ann, playing(knights, "bob", replica=1) as bob:
        for player in (ann, bob):
            asked = await player.ask(watch=live_pb2.Watch(match_id=match_id))
            assert (await player.next("result", "problem")).request_id == asked
        # The countdown may be over before they watch, or not.
        snapshot = (await ann.next("snapshot")).match
        assert snapshot.viewer_seat == 0
        await eventually(lambda: _in_action(knights, match_id))
        first = await ann.ask(move=nk.PlayMove(match_id=match_id, move=nk.Move(react=nk.React(round=1, action="TOUCH"))))
        result = await ann.next("result", "problem")
        assert (result.request_id, result.match_id) == (first, match_id)
        assert (await ann.until("reacted")).event.reacted.seat == 0
        again = await ann.ask(move=nk.PlayMove(match_id=match_id, move=nk.Move(react=nk.React(round=1, action="PASS"))))
        problem = await ann.next("result", "problem")
        assert (problem.request_id, problem.status, problem.reason) == (again, 422, "ALREADY_REACTED")
        reacted = await bob.until("reacted")
        assert reacted.event.reacted.verdict == nk.Reaction.TOUCHED
        assert reacted.cursor in [event.cursor for event in await all_events(knights.player("eve"), match_id)]


async def _in_action(there: Table, match_id: str) -> bool:
    return bool((await there.player("eve").get(match_id)).view.phase == nk.View.ACTION)


async def test_a_request_under_the_same_id_is_played_once_on_whatever_transport(knights: Table) -> None:
    match_id = await knights.create("ann", "bob", "cat", options=SLOW)
    await eventually(lambda: _in_action(knights, match_id))
    touch = nk.Move(react=nk.React(round=1, action="TOUCH"))
    async with playing(knights, "ann") as ann:
        await ann.ask(request_id="mine", move=nk.PlayMove(match_id=match_id, move=touch))
        assert (await ann.next("result", "problem")).request_id == "mine"
        answer = await knights.player("ann", replica=1).submit(match_id, touch, request_id="mine")
        assert [event.event.reacted.seat for event in answer.events] == [0]
        await ann.ask(request_id="mine", move=nk.PlayMove(match_id=match_id, move=touch))
        assert (await ann.next("result", "problem")).version == answer.version
    assert len([event for event in await all_events(knights.player("eve"), match_id) if event.event.HasField("reacted")]) == 1


async def test_requests_that_cannot_be_done_are_told_why_and_the_stream_goes_on(knights: Table) -> None:
    match_id = await knights.create("ann", "bob", "cat", options=SLOW, spectators=False)
    touch = nk.Move(react=nk.React(round=1, action="TOUCH"))
    async with playing(knights, "eve") as eve:
        for request, reason in (
            ({"watch": live_pb2.Watch(match_id=match_id)}, "NOT_A_PLAYER"),
            ({"watch": live_pb2.Watch(match_id="night_knight-0000000000")}, "MATCH_NOT_FOUND"),
            ({"watch": live_pb2.Watch(match_id="no such thing")}, "MATCH_NOT_FOUND"),
            ({"watch": live_pb2.Watch(match_id=match_id, after="no cursor")}, "INVALID_ARGUMENT"),
            ({"move": nk.PlayMove(match_id=match_id, move=touch)}, "NOT_YOUR_SEAT"),
            ({"move": nk.PlayMove(match_id=match_id, move=nk.Move())}, "INVALID_ARGUMENT"),
            ({"move": nk.PlayMove(match_id="night_knight-0000000000", move=touch)}, "MATCH_NOT_FOUND"),
            ({"authenticate": live_pb2.Authenticate(access_token="none")}, "TOKEN_INVALID"),
            ({}, "INVALID_ARGUMENT"),
            ({"request_id": "", "watch": live_pb2.Watch(match_id=match_id)}, "INVALID_ARGUMENT"),
            ({"request_id": "x" * 129, "move": nk.PlayMove(match_id=match_id, move=touch)}, "INVALID_ARGUMENT"),
        ):
            asked = await eve.ask(**request)
            problem = await eve.next("problem", "result")
            assert (problem.request_id, problem.reason) == (asked, reason)
            assert problem.status in (400, 401, 403, 404)
        await eve.ask(ping=live_pb2.Ping(nonce="still there?"))
        assert (await eve.next("pong")).nonce == "still there?"


async def test_a_client_that_ends_its_side_is_answered_all_that_it_asked_and_play_ends_in_order(knights: Table) -> None:
    match_id = await knights.create("ann", "bob", "cat", options=SLOW)
    await eventually(lambda: _in_action(knights, match_id))
    async with playing(knights, "ann") as ann:
        asked = [
            await ann.ask(watch=live_pb2.Watch(match_id=match_id)),
            await ann.ask(move=nk.PlayMove(match_id=match_id, move=nk.Move(react=nk.React(round=1, action="TOUCH")))),
            await ann.ask(unwatch=live_pb2.Unwatch(match_id="night_knight-none0000")),
            await ann.ask(move=nk.PlayMove(match_id="night_knight-none0000", move=nk.Move(react=nk.React(round=1, action="PASS")))),
        ]
        came = await ann.half_close()
    results = {message.result.request_id for message in came if message.HasField("result")}
    problems = {message.problem.request_id: message.problem.reason for message in came if message.HasField("problem")}
    assert (results, problems) == (set(asked[:3]), {asked[3]: "MATCH_NOT_FOUND"})
    assert (await knights.player("eve").get(match_id)).view.reactions[0].action == nk.React.TOUCH


async def test_play_needs_a_token_and_ends_with_it(knights: Table, redis: Redis) -> None:
    path = "/gloaming.night_knight.v1.NightKnightService/Play"
    async with stream(knights.addresses[0], path, "none") as open_:
        with pytest.raises(Refused) as refused:
            await open_.read(nk.PlayResponse)
    assert refused.value.code == grpc.StatusCode.UNAUTHENTICATED
    match_id = await knights.create("ann", "bob", "cat", options=SLOW)
    async with playing(knights, "ann") as ann:
        await ann.ask(watch=live_pb2.Watch(match_id=match_id))
        await ann.next("snapshot")
        await redis.set(revocation_key("ann"), 2)
        # By then the last look at the token is too old, and what the watch is told is held back until the next. Nothing is written after
        # it: a write on a stream that is just being ended is to grpc.aio an error of its own, and the status is forgotten.
        await asyncio.sleep(_TRUSTED_SECONDS + 0.1)
        await ann.ask(watch=live_pb2.Watch(match_id=match_id))
        with pytest.raises(Refused) as refused:
            await ann.end()
    assert refused.value.code == grpc.StatusCode.UNAUTHENTICATED


async def test_a_relay_is_for_gateways_alone(there: Table) -> None:
    for scope in ("play", "host"):
        async with relayed(there, scope=scope) as gateway:
            with pytest.raises(Refused) as refused:
                await gateway.stream.read(relay_pb2.RelayResponse)
            assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")


async def test_a_relay_carries_many_sockets_each_of_which_is_told_what_its_player_may_know(there: Table) -> None:
    match_id = await there.create(options=calm(there.game))
    async with relayed(there) as gateway:
        for n, name in enumerate((*there.names, "eve")):
            await gateway.up(n, token=there.keys.token(name))
            await gateway.ask(n, "watching", watch=live_pb2.Watch(match_id=match_id))
        for n, name in enumerate((*there.names, "eve")):
            assert (await gateway.next(n, "result", "problem")).request_id == "watching"
            match = there.game.message("Match").FromString((await gateway.next(n, "snapshot")).match)
            told = await there.player(name).get(match_id)
            told.server_time.CopyFrom(match.server_time)
            # The others come meanwhile, which is told.
            told.cursor = match.cursor
            for seat, then in zip(told.seats, match.seats, strict=True):
                seat.connected = then.connected
            assert match == told
            assert match.HasField("viewer_seat") == (name != "eve")
        # The first who may move does, through the relay.
        seat = match.to_move[0]
        move = (await there.player(there.names[seat]).moves(match_id))[0]
        await gateway.ask(seat, "moving", move=live_pb2.Move(match_id=match_id, move=move.SerializeToString()))
        result = await gateway.next(seat, "result", "problem")
        assert result.request_id == "moving"
        for n in range(len(there.names) + 1):
            while (event := await gateway.next(n, "event")).version < result.version:
                assert there.game.message("Event").FromString(event.event).seat_changed.seat.connected
            assert (event.match_id, event.version) == (match_id, result.version)
        assert {down.cursor for down in gateway.downs if down.cursor} >= {event.cursor}


async def test_what_is_the_same_for_several_sockets_is_sent_to_the_gateway_once(knights: Table) -> None:
    match_id = await knights.create("ann", "bob", "cat", options=SLOW)
    await eventually(lambda: _in_action(knights, match_id))
    async with relayed(knights) as gateway:
        for n, name in enumerate(("ann", "bob", "cat", "eve")):
            await gateway.up(n, token=knights.keys.token(name))
            await gateway.ask(n, "watching", watch=live_pb2.Watch(match_id=match_id))
            await gateway.next(n, "snapshot")
        touch = nk.Move(react=nk.React(round=1, action="TOUCH"))
        await knights.player("bob").submit(match_id, touch)
        for n in range(4):
            while not nk.Event.FromString((event := await gateway.next(n, "event")).event).HasField("reacted"):
                pass
        assert [list(down.attachments) for down in gateway.downs if down.cursor == event.cursor] == [[0, 1, 2, 3]]


async def test_a_socket_resumes_by_its_cursor_on_another_replica_without_a_gap_or_a_repeat(knights: Table) -> None:
    match_id = await knights.create("bot", "bot", "ann", options=nk.Options(countdown_ms=50, own_card_delay_ms=0, action_ms=600))
    whole: list[str] = []
    cursor, replica, over = "", 0, False
    while not over:
        async with relayed(knights, replica=replica) as gateway:
            await gateway.up(7, token=knights.keys.token("ann"))
            await gateway.ask(7, secrets.token_hex(4), watch=live_pb2.Watch(match_id=match_id, after=cursor))
            for _ in range(9):
                message = await gateway.next(7, "event", "snapshot")
                if isinstance(message, live_pb2.Snapshot):
                    assert not whole
                    cursor = nk.Match.FromString(message.match).cursor
                    page = await knights.player("ann").events(match_id, size=500)
                    seen = [event.cursor for event in page.events]
                    whole = seen[: seen.index(cursor) + 1]
                else:
                    cursor = message.cursor
                    whole.append(cursor)
                    over = nk.Event.FromString(message.event).HasField("match_finished")
                    if over:
                        break
        replica = 1 - replica
    assert whole == [event.cursor for event in await all_events(knights.player("ann"), match_id)]


async def test_a_socket_whose_token_is_revoked_is_closed_and_the_others_are_not(there: Table, redis: Redis) -> None:
    match_id = await there.create(options=calm(there.game))
    async with relayed(there) as gateway:
        for n, name in enumerate(there.names):
            await gateway.up(n, token=there.keys.token(name))
            await gateway.ask(n, "watching", watch=live_pb2.Watch(match_id=match_id))
            await gateway.next(n, "snapshot")
        await redis.set(revocation_key(there.names[0]), 2)

        async def ended() -> bool:
            await gateway.ask(0, "again", watch=live_pb2.Watch(match_id=match_id))
            await gateway.ask(1, "again", watch=live_pb2.Watch(match_id=match_id))
            await gateway.next(1, "snapshot")
            return any(down.close == 1008 and list(down.attachments) == [0] for down in gateway.downs)

        await eventually(ended)
        # From then on it is as if nothing came from it.
        gateway.came.clear()
        await gateway.ask(0, "too late", watch=live_pb2.Watch(match_id=match_id))
        await gateway.up(0, frame=live_pb2.ClientFrame(ping=live_pb2.Ping(nonce="?")).SerializeToString())
        await gateway.up(1, frame=live_pb2.ClientFrame(ping=live_pb2.Ping(nonce="!")).SerializeToString())
        assert (await gateway.next(1, "pong")).nonce == "!"
        assert not gateway.came[0]


async def test_a_socket_may_watch_a_bounded_number_of_matches(there: Table) -> None:
    async with relayed(there) as gateway:
        await gateway.up(1, token=there.keys.token("eve"))
        match_ids = [await there.create(options=calm(there.game)) for _ in range(65)]
        for n, match_id in enumerate(match_ids):
            await gateway.ask(1, f"{n}", watch=live_pb2.Watch(match_id=match_id))
            answer = await gateway.next(1, "result", "problem")
            assert answer.request_id == f"{n}"
        assert answer.reason == "TOO_MANY_WATCHES"
        await gateway.ask(1, "unwatch", unwatch=live_pb2.Unwatch(match_id=match_ids[0]))
        await gateway.next(1, "result")
        await gateway.ask(1, "again", watch=live_pb2.Watch(match_id=match_ids[-1]))
        assert isinstance(await gateway.next(1, "result", "problem"), live_pb2.Result)


async def test_a_watch_overtaken_by_another_or_ended_at_once_is_answered_all_the_same(there: Table) -> None:
    match_id = await there.create(options=calm(there.game))
    async with relayed(there) as gateway:
        await gateway.up(1, token=there.keys.token("eve"))
        asked = [f"{n}" for n in range(12)]
        frames = [
            live_pb2.ClientFrame(request_id=request_id, unwatch=live_pb2.Unwatch(match_id=match_id))
            if int(request_id) % 3 == 2
            else live_pb2.ClientFrame(request_id=request_id, watch=live_pb2.Watch(match_id=match_id))
            for request_id in asked
        ]
        ups = [relay_pb2.Up(attachment=1, frame=frame.SerializeToString()) for frame in frames]
        await gateway.stream.write(relay_pb2.RelayRequest(messages=ups))
        answered = [(await gateway.next(1, "result", "problem")).request_id for _ in asked]
        assert sorted(answered, key=int) == asked
        # The last one ended it: nothing more is told.
        seat = (await there.player("eve").get(match_id)).to_move[0]
        player = there.player(there.names[seat])
        gateway.came.clear()
        await player.submit(match_id, (await player.moves(match_id))[0])
        await gateway.ask(1, "again", watch=live_pb2.Watch(match_id=match_id))
        await gateway.next(1, "snapshot")
        assert not [message for message in gateway.came[1] if message.HasField("event")]


@pytest.mark.rule("NK-19")
async def test_what_a_line_is_owed_does_not_depend_on_what_was_asked_just_before(knights: Table) -> None:
    options = nk.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=30_000, ordering="COMPENSATED", max_compensation_ms=100)
    names = ("ann", "bob", "cat")
    match_id = await knights.create(*names, options=options)
    touch = nk.Move(react=nk.React(round=1, action="TOUCH"))
    moving = live_pb2.Move(match_id=match_id, move=touch.SerializeToString())
    before: tuple[dict[str, Any], ...] = (
        {},
        {"watch": live_pb2.Watch(match_id=match_id)},
        {"unwatch": live_pb2.Unwatch(match_id=match_id)},
    )
    async with relayed(knights) as gateway:
        for n, name in enumerate(names):
            ups = [relay_pb2.Up(attachment=n, token=knights.keys.token(name)), relay_pb2.Up(attachment=n, round_trip_ms=60)]
            frames = [live_pb2.ClientFrame(request_id="before", **before[n])] if before[n] else []
            frames.append(live_pb2.ClientFrame(request_id="moving", move=moving))
            ups += [relay_pb2.Up(attachment=n, frame=frame.SerializeToString()) for frame in frames]
            await gateway.stream.write(relay_pb2.RelayRequest(messages=ups))
            while (await gateway.next(n, "result")).request_id != "moving":
                pass
    reacted = [event.event.reacted for event in await all_events(knights.player("eve"), match_id) if event.event.HasField("reacted")]
    assert sorted(each.seat for each in reacted) == [0, 1, 2]
    assert {each.evidence.round_trip_ms for each in reacted} == {60}


async def test_nothing_is_played_on_a_token_that_has_run_out_and_a_silent_stream_ends_with_it(knights: Table) -> None:
    match_id = await knights.create("ann", "bob", "cat", options=SLOW)
    await eventually(lambda: _in_action(knights, match_id))
    path = "/gloaming.night_knight.v1.NightKnightService/Play"
    async with (
        stream(knights.addresses[0], path, knights.keys.token("ann", seconds=2)) as silent,
        stream(knights.addresses[0], path, knights.keys.token("bob", seconds=2)) as late,
    ):
        with pytest.raises(Refused) as refused:
            await _read_on(silent)
        assert refused.value.code == grpc.StatusCode.UNAUTHENTICATED
        with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):  # it has ended, too
            touch = nk.PlayMove(match_id=match_id, move=nk.Move(react=nk.React(round=1, action="TOUCH")))
            await late.write(nk.PlayRequest(request_id="late", move=touch))
        with pytest.raises(Refused):
            await _read_on(late)
    assert not (await knights.player("eve").get(match_id)).view.reactions


async def _read_on(stream: Stream) -> None:
    while True:
        await stream.read(nk.PlayResponse)


async def test_a_replica_that_stops_sends_its_streams_elsewhere(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url) as there:
        match_id = await there.create(options=calm(there.game))
        async with relayed(there) as gateway:
            await gateway.up(1, token=there.keys.token("eve"))
            await gateway.ask(1, "watching", watch=live_pb2.Watch(match_id=match_id))
            await gateway.next(1, "snapshot")
            stopping = asyncio.create_task(there.replicas[0].__aexit__())
            with pytest.raises(Refused) as refused:
                await gateway.next(1, "problem")
            assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
            await stopping


@pytest.mark.scenario(13)
async def test_nothing_is_left_of_streams_that_came_and_went(there: Table, redis: Redis) -> None:
    match_id = await there.create(options=calm(there.game))
    tasks = len(asyncio.all_tasks())
    for _ in range(10):
        async with relayed(there) as gateway:
            for n in range(8):
                await gateway.up(n, token=there.keys.token("eve"))
                await gateway.ask(n, "watching", watch=live_pb2.Watch(match_id=match_id))
            for n in range(8):
                await gateway.next(n, "snapshot")
            for n in range(4):
                await gateway.up(n, detach=True)
    await eventually(lambda: len(asyncio.all_tasks()) <= tasks + 2)
    assert not there.replicas[0]._matches.feeds._feeds
    assert not there.replicas[0]._live._outboxes
    await eventually(lambda: _silent(redis))


async def _silent(redis: Redis) -> bool:
    return await redis.pubsub_shardchannels() == []


# Who is there.


def seat_changed(there: Table, event: Any) -> Any:
    """The seat that an event tells of."""
    return there.game.message("Event").FromString(event.event).seat_changed.seat


async def test_who_watches_over_the_relay_is_connected_until_it_ends_or_detaches(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(NIGHT_CLAN, keys, redis_url, presence_grace_ms=50) as there:
        match_id = await there.create()
        async with relayed(there) as gateway:
            for n, name in enumerate((*there.names, "eve")):
                await gateway.up(n, token=there.keys.token(name))
            await gateway.ask(2, "watching", watch=live_pb2.Watch(match_id=match_id))
            await gateway.next(2, "snapshot")
            for n, leave in ((0, {"detach": True}), (1, {})):
                await gateway.ask(n, "watching", watch=live_pb2.Watch(match_id=match_id))
                seat = seat_changed(there, await gateway.next(2, "event"))
                assert (seat.seat, seat.connected) == (n, True)
                if leave:
                    await gateway.up(n, **leave)
                else:
                    await gateway.ask(n, "no more", unwatch=live_pb2.Unwatch(match_id=match_id))
                seat = seat_changed(there, await gateway.next(2, "event"))
                assert (seat.seat, seat.connected) == (n, False)


async def test_who_watches_over_play_is_connected(keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(NIGHT_KNIGHT, keys, redis_url, replicas=2, presence_grace_ms=50) as there:
        match_id = await there.create(options=calm(there.game))
        async with playing(there, "eve", 1) as eve:
            await eve.ask(watch=live_pb2.Watch(match_id=match_id))
            await eve.next("snapshot")
            async with playing(there, "ann") as ann:
                await ann.ask(watch=live_pb2.Watch(match_id=match_id))
                assert (await eve.until("seat_changed")).event.seat_changed.seat.connected
            assert not (await eve.until("seat_changed")).event.seat_changed.seat.connected
