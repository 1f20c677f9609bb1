"""Every game's service behaves the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from redis.asyncio import Redis

from gloaming.table.v1 import table_pb2
from services.kit import feeds
from services.kit.game import Game
from tests.harness import NAMES, Keys, Refused, Table, a_choice, all_events, calm, mover, new_match_id, play_out, table

VERBS = {"CreateMatch", "GetMatch", "ListMoves", "SubmitMove", "Resign", "ListEvents", "WatchMatch", "GetRecord"}


def test_every_service_has_the_same_verbs(game: Game) -> None:
    extra = {"Play"} if game.info.real_time else set()
    assert {method.name for method in game.service.methods} - extra == VERBS


async def test_health_is_serving_for_the_process_and_for_the_game(there: Table) -> None:
    async with grpc.aio.insecure_channel(there.addresses[0]) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        for name in ("", there.game.service.full_name):
            async for answer in stub.Watch(health_pb2.HealthCheckRequest(service=name)):
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    break


async def test_reflection_describes_the_service(there: Table) -> None:
    name = there.game.service.full_name

    # They come without types.
    messages: Any = reflection_pb2
    stubs: Any = reflection_pb2_grpc

    async def ask() -> list[Any]:
        async with grpc.aio.insecure_channel(there.addresses[0]) as channel:
            stub: Any = stubs.ServerReflectionStub(channel)
            request = messages.ServerReflectionRequest(file_containing_symbol=name)
            return [answer async for answer in stub.ServerReflectionInfo(iter([request]))]

    (answer,) = await ask()
    file = descriptor_pb2.FileDescriptorProto.FromString(answer.file_descriptor_response.file_descriptor_proto[0])
    assert f"{file.package}.{file.service[0].name}" == name


@pytest.mark.scenario(8)
@pytest.mark.parametrize("kind", ["none", "garbage", "expired", "foreign", "revoked"])
async def test_a_seat_with_a_bad_token_gets_zero_bytes_of_the_match(
    there: Table, kind: str, tmp_path_factory: pytest.TempPathFactory, redis: Redis
) -> None:
    match_id = await there.create(options=calm(there.game))
    foreign = Keys(tmp_path_factory.mktemp("foreign"))
    await redis.set("gateway:revoked:bob", 2)
    token, player, reason = {
        "none": (None, "ann", "TOKEN_MISSING"),
        "garbage": ("garbage", "ann", "TOKEN_INVALID"),
        "expired": (there.keys.token("ann", seconds=-1), "ann", "TOKEN_EXPIRED"),
        "foreign": (foreign.token("ann"), "ann", "TOKEN_INVALID"),
        "revoked": (there.keys.token("bob", generation=1), "bob", "TOKEN_REVOKED"),
    }[kind]
    caller = there.player(player, token=token)
    asks: list[Callable[[], Awaitable[Any]]] = [
        lambda: caller.get(match_id),
        lambda: caller.moves(match_id),
        lambda: caller.events(match_id),
        lambda: caller.record(match_id),
        lambda: caller.resign(match_id),
        lambda: anext(caller.watch(match_id)),
        lambda: caller.get(new_match_id(there.game)),
    ]
    answers = set()
    for ask in asks:
        with pytest.raises(Refused) as refused:
            await ask()
        assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.UNAUTHENTICATED, reason)
        answers.add(refused.value.raw)
    # Not even whether the match exists.
    assert len(answers) == 1
    assert (await there.player("cat").get(match_id)).version == 1


async def test_a_new_generation_of_a_players_tokens_works_after_signing_out(there: Table, redis: Redis) -> None:
    match_id = await there.create()
    await redis.set("gateway:revoked:ann", 2)
    assert (await there.player("ann", token=there.keys.token("ann", generation=2)).get(match_id)).viewer_seat == 0


async def test_making_a_match_needs_the_host_scope(there: Table) -> None:
    request = there.game.message("CreateMatchRequest")(match_id=new_match_id(there.game))
    with pytest.raises(Refused) as refused:
        await there.player("ann").call("CreateMatch", request)
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")


async def test_making_a_match_twice_makes_one_and_the_first_seed_stays(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url, replicas=2) as there:
        match_id = new_match_id(game)
        await asyncio.gather(*(there.create(match_id=match_id, options=calm(game)) for _ in range(10)))
        ann = there.player("ann")
        matches = [await ann.get(match_id) for _ in range(4)]
        assert len({match.commitment for match in matches}) == 1
        assert {match.version for match in matches} == {1}


async def test_bots_without_a_name_are_told_apart_by_their_number(there: Table) -> None:
    seats = ["ann", *["bot"] * (there.game.info.max_seats - 1)]
    match = await there.player("ann").get(await there.create(*seats))
    bots = [seat.name for seat in match.seats if seat.bot]
    assert bots == (["Bot"] if len(bots) == 1 else [f"Bot {n}" for n in range(1, len(bots) + 1)])


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("matchId", {"match_id": "chess-abcdefgh"}),
        ("matchId", {"match_id": "{game}-ABCDEFGH"}),
        ("matchId", {"match_id": "{game}-{{}}abcdefgh"}),
        ("seats", {"seats": []}),
        ("seats", {"seats": [table_pb2.SeatRequest(bot="STANDARD")] * 99}),
        ("seats[1].player", {"seats": [table_pb2.SeatRequest(player="ann")] * 2}),
        ("seats[0].player", {"seats": [table_pb2.SeatRequest(player="a b"), table_pb2.SeatRequest(player="bob")]}),
        ("seats[1]", {"seats": [table_pb2.SeatRequest(player="ann"), table_pb2.SeatRequest()]}),
        ("seats[1].bot", {"seats": [table_pb2.SeatRequest(player="ann"), table_pb2.SeatRequest(bot=9)]}),  # type: ignore[arg-type]
        ("seats[0].name", {"seats": [table_pb2.SeatRequest(player="ann", name="x" * 41), table_pb2.SeatRequest(player="bob")]}),
        ("settings.moveSeconds", {"settings": table_pb2.Settings(move_seconds=-1)}),
        ("settings.moveSeconds", {"settings": table_pb2.Settings(move_seconds=604_801)}),
        ("settings.startSeconds", {"settings": table_pb2.Settings(start_seconds=-1)}),
        ("settings.startSeconds", {"settings": table_pb2.Settings(start_seconds=61)}),
        ("order", {"order": 7}),
    ],
)
async def test_a_match_asked_for_wrongly_is_refused_by_the_fields_name(there: Table, field: str, wrong: dict[str, object]) -> None:
    good = {
        "match_id": new_match_id(there.game),
        "seats": [table_pb2.SeatRequest(player=player) for player in there.names],
    }
    asked = {name: value.replace("{game}", there.game.id) if isinstance(value, str) else value for name, value in (good | wrong).items()}
    if isinstance(seats := asked["seats"], list) and seats:
        # As many as the game takes at least: then it is not their number that is wrong.
        asked["seats"] = [*seats, *(table_pb2.SeatRequest(player=f"p{n}") for n in range(len(seats), there.game.info.min_seats))]
    host = there.player("host", scope="host")
    with pytest.raises(Refused) as refused:
        await host.call("CreateMatch", there.game.message("CreateMatchRequest")(**asked))
    assert (refused.value.code, refused.value.fields) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


@pytest.mark.parametrize("verb", sorted(VERBS - {"WatchMatch"}))
async def test_bytes_that_are_no_message_are_an_invalid_argument(there: Table, verb: str) -> None:
    with pytest.raises(Refused) as refused:
        await there.player("ann", scope="host").call(verb, b"\xff\xff\xff")
    assert refused.value.code == grpc.StatusCode.INVALID_ARGUMENT


async def test_random_bytes_never_cause_an_internal_error(there: Table) -> None:
    match_id = await there.create(options=calm(there.game))
    before = await there.player("eve").get(match_id)
    rng = random.Random(1)
    player, _ = await mover(match_id, *there.everyone())
    request = there.game.message("SubmitMoveRequest")(match_id=match_id).SerializeToString()
    for _ in range(300):
        for verb in ("SubmitMove", "ListEvents", "Resign"):
            body = rng.randbytes(rng.randrange(40))
            # With the match's id in front, so that what follows is looked at: a random move, a random request id.
            body = request + bytes([0x12, len(body)]) + body if verb == "SubmitMove" else body
            with pytest.raises(Refused) as refused:
                await player.call(verb, body)
            assert refused.value.code in (
                grpc.StatusCode.INVALID_ARGUMENT,
                grpc.StatusCode.NOT_FOUND,
                grpc.StatusCode.FAILED_PRECONDITION,
            )
            assert refused.value.reason
    assert (await there.player("eve").get(match_id)).version == before.version


async def test_a_match_that_is_not_there_is_not_found(there: Table) -> None:
    for match_id in (new_match_id(there.game), "", "other-abcdefgh", "x" * 3000, "\x00"):
        with pytest.raises(Refused) as refused:
            await there.player("ann").get(match_id)
        assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.NOT_FOUND, "MATCH_NOT_FOUND")


async def test_strangers_watch_but_do_not_play(there: Table) -> None:
    match_id = await there.create()
    eve = there.player("eve")
    match = await eve.get(match_id)
    assert not match.HasField("viewer_seat")
    for ask in (lambda: eve.moves(match_id), lambda: eve.resign(match_id)):
        with pytest.raises(Refused) as refused:
            await ask()
        assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.PERMISSION_DENIED, "NOT_YOUR_SEAT")
    _, moves = await mover(match_id, *there.everyone())
    with pytest.raises(Refused) as refused:
        await eve.submit(match_id, moves[0])
    assert refused.value.reason == "NOT_YOUR_SEAT"


async def test_where_spectators_are_off_only_its_players_see_a_match(there: Table) -> None:
    match_id = await there.create(spectators=False)
    eve = there.player("eve")
    asks: list[Callable[[], Awaitable[Any]]] = [
        lambda: eve.get(match_id),
        lambda: eve.events(match_id),
        lambda: anext(eve.watch(match_id)),
        lambda: eve.record(match_id),
    ]
    for ask in asks:
        with pytest.raises(Refused) as refused:
            await ask()
        assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.PERMISSION_DENIED, "NOT_A_PLAYER")
    assert (await there.player("ann").get(match_id)).viewer_seat == 0


@pytest.mark.scenario(3)
async def test_a_retry_under_its_request_id_gets_the_first_answer_and_is_not_played_twice(there: Table) -> None:
    match_id, player, (first, other, *_) = await a_choice(there)
    answer = await player.submit(match_id, first, request_id="once")
    for following in (await player.moves(match_id))[:1]:
        with suppress(Refused):  # in real time its window may have ended
            await player.submit(match_id, following, request_id="twice")
    version = (await player.get(match_id)).version
    again = await asyncio.gather(*(player.submit(match_id, first, request_id="once", expected_version=1) for _ in range(5)))
    assert all(retry == answer for retry in again)
    with pytest.raises(Refused) as refused:
        await player.submit(match_id, other, request_id="once")
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "REQUEST_ID_REUSED")
    # In real time windows go on ending by themselves.
    assert there.game.real_time or (await player.get(match_id)).version == version


@pytest.mark.scenario(3)
async def test_ten_retries_at_once_play_once(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url, replicas=2) as there:
        match_id = await there.create(options=calm(game))
        player, moves = await mover(match_id, *there.everyone())
        answers = await asyncio.gather(*(player.submit(match_id, moves[0], request_id="once") for _ in range(10)))
        assert all(answer == answers[0] for answer in answers)
        assert (await player.get(match_id)).version == 2


async def test_a_refusal_is_not_stored_so_a_retry_is_judged_afresh(there: Table) -> None:
    match_id = await there.create(options=calm(there.game))
    player, moves = await mover(match_id, *there.everyone())
    with pytest.raises(Refused) as refused:
        await player.submit(match_id, moves[0], request_id="once", expected_version=9)
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.ABORTED, "VERSION_MISMATCH")
    assert (await player.submit(match_id, moves[0], request_id="once", expected_version=1)).version == 2


@pytest.mark.parametrize("request_id", ["x" * 129, "\n", "é"])
async def test_a_request_id_that_is_no_name_is_refused(there: Table, request_id: str) -> None:
    match_id = await there.create()
    player, moves = await mover(match_id, *there.everyone())
    with pytest.raises(Refused) as refused:
        await player.submit(match_id, moves[0], request_id=request_id)
    assert refused.value.fields == ["requestId"]


@pytest.mark.scenario(1)
async def test_seats_that_move_at_the_same_instant_on_two_replicas_each_get_an_answer_and_none_vanishes(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    async with table(game, keys, redis_url, replicas=2) as there:
        match_id = await there.create()
        seats = [there.player(name, replica=n % 2) for n, name in enumerate(there.names)]
        accepted = 0
        while (match := await seats[0].get(match_id)).status != table_pb2.FINISHED:
            moves = [await seat.moves(match_id) for seat in seats]
            tries = [seat.submit(match_id, legal[0]) for seat, legal in zip(seats, moves, strict=True) for _ in range(2) if legal]
            answers = await asyncio.gather(*tries, return_exceptions=True)
            accepted += sum(not isinstance(answer, BaseException) for answer in answers)
            for answer in answers:
                if isinstance(answer, BaseException):
                    assert isinstance(answer, Refused)
                    assert answer.code in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ABORTED)
        done = [recorded.WhichOneof("done") for recorded in (await seats[0].record(match_id)).moves]
        assert done.count("move") == accepted
        # In real time windows end beside, and reactions make no version.
        assert game.real_time or match.version == 1 + accepted


async def test_the_record_comes_after_the_end_and_not_before(there: Table) -> None:
    match_id = await there.create()
    ann, *others = there.everyone()
    with pytest.raises(Refused) as refused:
        await ann.record(match_id)
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "MATCH_NOT_FINISHED")
    await play_out(match_id, ann, *others)
    record = await others[0].record(match_id)
    assert len(record.seed) == 64
    assert record.commitment == (await ann.get(match_id)).commitment


@pytest.mark.rule("ALL-01")
async def test_all_01_in_a_match_of_two_the_other_wins_when_one_resigns(there: Table) -> None:
    if there.game.info.min_seats > 2:
        pytest.skip("a game for more than two")
    match_id = await there.create("ann", "bob")
    ann, bob = there.player("ann"), there.player("bob")
    answer = await ann.resign(match_id, request_id="go")
    assert await ann.resign(match_id, request_id="go") == answer
    match = await bob.get(match_id)
    assert (match.status, match.outcome.ending) == (table_pb2.FINISHED, table_pb2.Outcome.RESIGNED)
    assert list(match.outcome.ranks) == [2, 1]
    assert list(match.outcome.winners) == [1]
    assert not match.to_move
    for late in (ann.resign(match_id), bob.resign(match_id)):
        with pytest.raises(Refused) as refused:
            await late
        assert refused.value.reason == "MATCH_FINISHED"
    assert (await bob.record(match_id)).moves[-1].WhichOneof("done") == "resignation"


@pytest.mark.rule("ALL-01")
async def test_all_01_with_more_players_a_bot_takes_the_seat_and_the_resigner_is_ranked_last(there: Table) -> None:
    if there.game.info.max_seats < 3:
        pytest.skip("a game for two")
    seats = NAMES[: max(3, there.game.info.min_seats)]
    match_id = await there.create(*seats)
    ann, bob, *others = (there.player(name) for name in seats)
    await ann.resign(match_id)
    match = await bob.get(match_id)
    assert match.status == table_pb2.PLAYING
    assert [seat.resigned for seat in match.seats] == [True, *[False] * (len(seats) - 1)]
    with pytest.raises(Refused) as refused:
        await ann.resign(match_id)
    assert refused.value.reason == "ALREADY_RESIGNED"
    # Whoever resigned holds no hand any more, and sees none.
    assert not (await ann.get(match_id)).HasField("viewer_seat")
    assert not await ann.moves(match_id)
    await play_out(match_id, bob, *others)
    match = await bob.get(match_id)
    assert match.outcome.ending == table_pb2.Outcome.COMPLETED
    last, *others_ranks = match.outcome.ranks
    assert last == min(others_ranks) + len(others_ranks), "everybody else is ahead"
    assert 0 not in match.outcome.winners


@pytest.mark.rule("ALL-04")
async def test_all_04_seats_are_drawn_by_the_matchs_own_chance_or_taken_as_listed(there: Table) -> None:
    players = [f"p{n}" for n in range(there.game.info.max_seats)]
    eve = there.player("eve")
    drawn = [[seat.player for seat in (await eve.get(await there.create(*players, order="DRAWN"))).seats] for _ in range(20)]
    assert all(sorted(order) == players for order in drawn)
    assert len({tuple(order) for order in drawn}) > 1
    match = await eve.get(await there.create(*players, order="AS_LISTED"))
    assert [seat.player for seat in match.seats] == players
    assert [seat.seat for seat in match.seats] == list(range(len(players)))


@pytest.mark.scenario(14)
async def test_pages_of_events_join_up_without_a_gap_or_a_repeat(there: Table) -> None:
    match_id = await there.create()
    ann, *others = there.everyone()
    await play_out(match_id, ann, *others)
    whole = await all_events(ann, match_id)
    after, joined = "", []
    while True:
        page = await ann.events(match_id, after, size=3)
        assert len(page.events) <= 3
        joined += page.events
        after = page.next_cursor
        if not page.more:
            break
    assert joined == whole
    assert after == whole[-1].cursor == (await ann.get(match_id)).cursor
    assert not (await ann.events(match_id, after)).events


@pytest.mark.scenario(14)
async def test_a_watcher_far_behind_gets_a_snapshot_instead_of_everything_it_missed(there: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "_REPLAYED_AT_MOST", 2)
    match_id = await there.create()
    players = there.everyone()
    first = (await players[0].events(match_id, size=1)).next_cursor
    await play_out(match_id, *players)
    assert [message.WhichOneof("kind") async for message in players[0].watch(match_id, first)] == ["snapshot"]
    assert len((await players[0].events(match_id, size=100_000)).events) <= 500


@pytest.mark.parametrize("cursor", ["nonsense", "AAAA", "é", "x" * 5000, "AAAAAQABWC6GzYF_extra"])
async def test_a_cursor_that_is_none_of_ours_is_unreadable(there: Table, cursor: str) -> None:
    match_id = await there.create()
    with pytest.raises(Refused) as refused:
        await there.player("ann").events(match_id, cursor)
    assert (refused.value.code, refused.value.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["afterCursor"])


async def test_a_cursor_of_another_history_gets_a_snapshot_never_a_silent_gap(there: Table) -> None:
    match_id, other = await there.create(options=calm(there.game)), await there.create()
    ann = there.player("ann")
    foreign = (await ann.get(other)).cursor
    page = await ann.events(match_id, foreign)
    assert not page.events
    assert page.snapshot.version == 1
    assert page.next_cursor == page.snapshot.cursor
    assert (await anext(ann.watch(match_id, foreign))).WhichOneof("kind") == "snapshot"


@pytest.mark.scenario(11)
async def test_a_watcher_sees_every_event_once_whenever_it_comes(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url, replicas=2) as there:
        match_id = await there.create()
        eve = there.player("eve")

        async def watch(delay: float) -> tuple[str, list[str]]:
            await asyncio.sleep(delay)
            seen = [message async for message in eve.watch(match_id)]
            assert seen[0].WhichOneof("kind") == "snapshot"
            return seen[0].snapshot.cursor, [message.event.cursor for message in seen[1:]]

        watchers = [asyncio.create_task(watch(n / 500)) for n in range(20)]
        await play_out(match_id, *there.everyone())
        whole = [event.cursor for event in await all_events(eve, match_id)]
        for snapshot, cursors in await asyncio.gather(*watchers):
            assert cursors == whole[whole.index(snapshot) + 1 :]


@pytest.mark.scenario(12)
async def test_a_watcher_resumes_on_the_other_replica_without_a_gap_or_a_repeat(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    async with table(game, keys, redis_url, replicas=2) as there:
        match_id = await there.create()
        ann, *others = there.everyone()
        playing = asyncio.create_task(play_out(match_id, ann, *others))
        cursor, replica = (await ann.events(match_id)).events[0].cursor, 0
        seen: list[Any] = []
        while not seen or seen[-1].event.WhichOneof("kind") != "match_finished":
            watching = there.player("eve", replica=replica).watch(match_id, cursor)
            for _ in range(3):
                message = await anext(watching, None)
                if message is None:
                    break
                assert message.WhichOneof("kind") == "event"
                seen.append(message.event)
                cursor = message.event.cursor
            await watching.aclose()
            replica = 1 - replica
        await playing
        assert [event.cursor for event in seen] == [event.cursor for event in await all_events(ann, match_id)][1:]


async def test_watching_a_finished_match_to_its_end_ends(there: Table) -> None:
    match_id = await there.create()
    ann, *others = there.everyone()
    await play_out(match_id, ann, *others)
    last = (await ann.get(match_id)).cursor
    assert [message.WhichOneof("kind") async for message in ann.watch(match_id)] == ["snapshot"]
    assert [message async for message in ann.watch(match_id, last)] == []


@pytest.mark.scenario(22)
async def test_a_replica_that_stops_tells_its_watchers_and_lets_them_go_on_elsewhere(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    async with table(game, keys, redis_url) as staying:
        async with table(game, keys, redis_url) as stopping:
            match_id = await staying.create(options=calm(game))
            watching = stopping.player("eve").watch(match_id)
            snapshot = (await anext(watching)).snapshot
            rest: asyncio.Future[Any] = asyncio.ensure_future(anext(watching))
            async with asyncio.timeout(5):
                await stopping.replicas[0].__aexit__()
            with pytest.raises(Refused) as refused:
                await rest
            assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
            stopping.replicas[0].__aexit__ = lambda *_: asyncio.sleep(0)  # type: ignore[method-assign]
        player, moves = await mover(match_id, *staying.everyone())
        await player.submit(match_id, moves[0])
        assert (await anext(staying.player("eve").watch(match_id, snapshot.cursor))).event.version == 2
