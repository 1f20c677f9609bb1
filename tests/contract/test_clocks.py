"""Clocks that run out and bots that move, for every game (ALL-02), with replicas and storage failing meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import secrets
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from deploy.redis_server import RedisServer
from gloaming.table.v1 import table_pb2
from services.kit.game import Game
from services.kit.sessions import Entry
from services.kit.verify import check
from tests import simulator
from tests.harness import (
    IN_REAL_TIME,
    IN_TURNS,
    TRIES,
    Keys,
    Player,
    Refused,
    Table,
    all_events,
    attempt,
    calm,
    eventually,
    lasting,
    mover,
    new_match_id,
    table,
)
from tests.process import process

# In turns each seat has a clock; in real time windows are everybody's.
in_turns = pytest.mark.parametrize("game", IN_TURNS, ids=lambda game: game.id)
in_real_time = pytest.mark.parametrize("game", IN_REAL_TIME, ids=lambda game: game.id)

BOT, CLOCK, PLAYER = table_pb2.Played.BOT, table_pb2.Played.CLOCK, table_pb2.Played.PLAYER


async def follow(player: Player, match_id: str) -> AsyncIterator[Any]:
    """Every event of a match from its first on, resumed wherever the stream breaks off; a gap would be a snapshot, which is a mistake."""
    cursor = (await until_served(lambda: player.events(match_id, size=1))).events[0].cursor
    while True:
        try:
            async for message in player.watch(match_id, cursor):
                assert message.WhichOneof("kind") == "event"
                cursor = message.event.cursor
                yield message.event
            return
        except Refused as refused:
            if refused.code != grpc.StatusCode.UNAVAILABLE:
                raise


async def until_served(ask: Any) -> Any:
    """What a call gives, asked again while the service is unavailable, as any client does."""
    while True:
        try:
            return await ask()
        except Refused as refused:
            if refused.code != grpc.StatusCode.UNAVAILABLE:
                raise


async def finished(player: Player, match_id: str) -> list[Any]:
    """Waits until a match has ended, and returns all of its events but the first."""
    return [event async for event in follow(player, match_id)]


def bots(game: Game) -> list[str]:
    return ["bot"] * game.info.min_seats


def crowd(game: Game) -> list[str]:
    """As many bots as the game takes: in real time their matches are the shortest."""
    return ["bot"] * game.info.max_seats


def ms(timestamp: Any) -> int:
    return int(timestamp.ToMilliseconds())


async def true_record(player: Player, match_id: str) -> Any:
    """The record of a finished match, which must follow from its seed and hold each move, and each window's end, once."""
    game, match, record = player.game, await player.get(match_id), await player.record(match_id)
    assert list(check(game, record))
    events = await all_events(player, match_id)
    assert sorted({event.version for event in events}) == list(range(1, match.version + 1))
    # In real time reactions make no version, and to close a round is no move.
    assert game.real_time or len(record.moves) == match.version - 1
    turns = list(simulator.replayed(game, record))
    late = record.moves[len(turns) - 1 :]
    told = [event for event in events if event.event.WhichOneof("kind") not in ("seat_changed", "match_finished")]
    assert len(told) == sum(len(turn.events) for turn in turns) + len(late), "what happened was told once"
    return record


def ends(match: Any) -> Any:
    """When the clock that runs first ends: a seat's, or in real time the window's."""
    return match.view.phase_end_time if match.view.DESCRIPTOR.fields_by_name.get("phase_end_time") else match.deadline


def overdue(game: Game, match: Any) -> int:
    """How many clocks end when that one does: all that began with it."""
    return 1 if game.real_time else len(match.to_move)


# ALL-02.


@in_turns
@pytest.mark.rule("ALL-02")
async def test_all_02_the_bot_makes_the_move_of_a_clock_that_ran_out_and_after_three_keeps_the_seat_until_its_player_acts(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    async with table(game, keys, redis_url, bot_delay_ms=150) as there:
        ann, eve = there.player("ann"), there.player("eve")
        for _ in range(TRIES):
            match_id = await there.create("ann", *bots(game)[1:], move_seconds=1)
            if await _she_comes_back(ann, eve, match_id):
                break
        else:
            pytest.fail("every match was over too early")
        await finished(eve, match_id)
        record = await true_record(eve, match_id)
        mine = [move for move in record.moves if move.played.seat == 0]
        by = [move.played.by for move in mine]
        bot_moves = by.count(BOT)
        if game.info.min_seats == 2:
            assert by == [CLOCK] * 3 + [BOT] * bot_moves + [PLAYER] * 2
        else:
            assert by[: 4 + bot_moves] in ([CLOCK] * 3 + [BOT] * n + [PLAYER] * 2 for n in range(bot_moves + 1))
        # Each clock of one second ran all of it, less the moment between starting it and committing the move before; so a bot.
        times = [ms((await all_events(eve, match_id))[0].time), *(ms(move.played.time) for move in mine)]
        assert all(later - earlier > 900 for earlier, later in itertools.pairwise(times[:4]))
        assert all(later - earlier > 50 for earlier, later in itertools.pairwise(times[3 : 4 + bot_moves]))


async def _she_comes_back(ann: Player, eve: Player, match_id: str) -> bool:
    """Ann idles until the bot keeps her seat, then moves, keeps it herself and resigns; False if the match was over before."""
    seats: list[Any] = []
    async for event in follow(eve, match_id):
        if event.event.WhichOneof("kind") != "seat_changed":
            continue
        seats.append(event.event.seat_changed.seat)
        if len(seats) == 2:
            assert (seats[1].seat, seats[1].stand_in) == (0, False)
            break
        assert (seats[0].seat, seats[0].player, seats[0].stand_in, seats[0].resigned) == (0, "ann", True, False)
        match = await eve.get(match_id)
        assert match.seats[0].stand_in
        # No clock of hers runs, since the bot moves for her.
        assert not match.HasField("deadline")
        while (await eve.get(match_id)).status == table_pb2.PLAYING:
            if moves := await ann.moves(match_id):
                with contextlib.suppress(Refused):  # the bot was quicker
                    await ann.submit(match_id, moves[0])
                    break
    if (match := await eve.get(match_id)).status == table_pb2.FINISHED:
        return False
    assert not match.seats[0].stand_in
    with contextlib.suppress(Refused):  # the bots were quicker
        await ann.resign(match_id)
        return True
    return False


@in_turns
@pytest.mark.rule("ALL-02")
async def test_all_02_only_clocks_in_a_row_count(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url) as there:
        for _ in range(TRIES):
            match_id = await there.create("ann", *bots(game)[1:], move_seconds=1)
            if await _three_clocks_but_not_in_a_row(redis, there, match_id):
                break
        else:
            pytest.fail("every match was over too early")


async def _three_clocks_but_not_in_a_row(redis: Redis, there: Table, match_id: str) -> bool:
    """Ann acts after her first clock and then not again: her third clock gives her seat to nobody. False if the match was over before."""
    ann, clocks, acted = there.player("ann"), 0, False
    async for event in follow(there.player("eve"), match_id):
        assert event.event.WhichOneof("kind") != "seat_changed"
        # Whatever happened last, if it is her turn for the second time since her clock ran out she acts in time.
        if not acted and clocks and (moves := await ann.moves(match_id)):
            await ann.submit(match_id, moves[0])
            acted = True
        clocks = await _clock_moves(redis, there, match_id)
        if clocks == 3:
            break
    assert acted or clocks < 3
    # As soon as it is her turn again, her clock runs again.
    match = await eventually(lambda: _hers_or_nobodys(ann, match_id))
    assert not match.seats[0].stand_in
    assert match.HasField("deadline") == (match.status == table_pb2.PLAYING)
    return clocks == 3 and bool(match.status == table_pb2.PLAYING)


async def _hers_or_nobodys(ann: Player, match_id: str) -> Any:
    """The match when it is the first seat's turn, or over."""
    match = await ann.get(match_id)
    return match if 0 in match.to_move or match.status == table_pb2.FINISHED else None


async def _clock_moves(redis: Redis, there: Table, match_id: str) -> int:
    """How many clocks ran out so far, as the events in storage say."""
    recorded = there.game.message("RecordedMove")
    entries: Any = await redis.xrange(f"{there.game.id}:{{{match_id}}}:events")
    acts = [msgspec.msgpack.decode(fields[b"entry"], type=Entry).act for _, fields in entries]
    return sum(recorded.FromString(act).played.by == CLOCK for act in acts if act)


@in_turns
@pytest.mark.rule("ALL-02")
async def test_all_02_each_seat_has_a_clock_of_its_own(there: Table) -> None:
    players, moves = there.everyone(), 0
    while moves < 12:
        match_id = await there.create(move_seconds=600)
        before = await players[0].get(match_id)
        created = ms((await players[0].events(match_id)).events[0].time)
        # When the clock of each seat began.
        began = dict.fromkeys(before.to_move, created)
        assert abs(ms(before.deadline) - created - 600_000) < 1_000
        while before.to_move and moves < 12:
            seat = before.to_move[0]
            answer = await players[seat].submit(match_id, (await players[seat].moves(match_id))[0])
            moves += 1
            after = await players[0].get(match_id)
            moved = ms(answer.events[0].time)
            earliest = {n for n in began if began[n] == min(began.values())}
            began = {n: began[n] if n in began and n != seat else moved for n in after.to_move}
            if (earliest - {seat}) & set(began):
                # Others were to move already: their clocks run on as they did.
                assert after.deadline == before.deadline
            elif began:
                assert abs(ms(after.deadline) - min(began.values()) - 600_000) < 1_000
                assert ms(after.deadline) >= ms(before.deadline)
            else:
                assert not after.HasField("deadline")
            before = after


@in_turns
@pytest.mark.rule("ALL-02")
async def test_all_02_without_a_clock_nobody_moves_for_a_player(there: Table, redis: Redis) -> None:
    match_id = await there.create(move_seconds=0)
    match = await there.player("ann").get(match_id)
    assert not match.HasField("deadline")
    # It is woken to be given up, and for nothing else.
    (shard,) = await redis.keys(f"{there.game.id}:{{deadlines/*}}:due")
    due: Any = await redis.zscore(shard, match_id)
    assert due > ms(match.server_time) + 6 * 86_400_000


@in_real_time
@pytest.mark.rule("ALL-02")
async def test_all_02_in_real_time_nobody_moves_for_who_does_nothing_and_each_window_lasts_its_time_until_the_match_ends(
    game: Game, there: Table
) -> None:
    match_id, eve = await there.create("ann", *crowd(game)[1:], move_seconds=1), there.player("eve")
    events = await finished(eve, match_id)
    assert "seat_changed" not in {event.event.WhichOneof("kind") for event in events}
    match, record = await eve.get(match_id), await true_record(eve, match_id)
    assert match.outcome.ending == table_pb2.Outcome.COMPLETED
    assert not any(seat.stand_in or seat.resigned for seat in match.seats)
    assert {move.played.by for move in record.moves if move.WhichOneof("done") == "window_ended"} == {CLOCK}
    assert {(move.played.seat > 0, move.played.by) for move in record.moves if move.WhichOneof("done") == "move"} == {(True, BOT)}
    # As in turns, less the moment between starting it and committing what began it.
    (_, *turns), began, lasted = simulator.replayed(game, record), ms(record.create_time), 0
    for turn, recorded in zip(turns, record.moves, strict=False):
        was, now = simulator.window(game, turn.before), simulator.window(game, turn.state)
        if turn.is_window_end:
            assert was
            assert ms(recorded.played.time) - began > was.ms - 100
            lasted += 1
        if was != now:
            began = ms(recorded.played.time)
    assert lasted > 3


@in_real_time
@pytest.mark.rule("ALL-02")
async def test_all_02_in_real_time_no_seat_has_a_clock_of_its_own_and_each_window_is_shown_with_its_end(game: Game, there: Table) -> None:
    match_id, ann = await there.create(move_seconds=1, options=lasting(game, 1_000)), there.player("ann")
    version = 1
    while version <= 3:
        match = await eventually(partial(_version, ann, match_id, version))
        version = match.version + 1
        assert match.to_move
        assert not match.HasField("deadline")
        # Whatever the window's length, it has not been over for longer than a wake-up takes.
        assert 0 < ms(ends(match)) - ms((await all_events(ann, match_id))[-1].time) < 1_100


@in_real_time
@pytest.mark.rule("ALL-01")
async def test_all_01_in_real_time_who_resigns_after_doing_nothing_is_no_stand_in_but_gone(game: Game, there: Table) -> None:
    ann, eve = there.player("ann"), there.player("eve")
    match_id = await there.create("ann", *crowd(game)[1:])
    changes, resigned = [], False
    async for event in follow(eve, match_id):
        if event.event.WhichOneof("kind") == "seat_changed":
            changes.append((event.event.seat_changed.seat.stand_in, event.event.seat_changed.seat.resigned))
        elif event.version > 7 and not resigned:
            await ann.resign(match_id)
            resigned = True
    await true_record(eve, match_id)
    assert changes == [(False, True)]


@pytest.mark.rule("ALL-02")
@pytest.mark.parametrize("replicas", [1, 2])
async def test_all_02_bots_play_to_the_end_with_nobody_asking_and_each_move_once(
    game: Game, keys: Keys, redis_url: str, redis: Redis, replicas: int
) -> None:
    with capture_logs() as logs:
        async with table(game, keys, redis_url, replicas=replicas, lease_ms=1_000, sweep_ms=100) as there:
            sizes = range(game.info.min_seats, game.info.max_seats + 1)
            seats = [["bot"] * size for size in sizes for _ in range(3)]
            match_ids = await asyncio.gather(*(there.create(*each, move_seconds=5) for each in seats))
            eve = there.player("eve")
            await asyncio.gather(*(finished(eve, match_id) for match_id in match_ids))
            for match_id in match_ids:
                record = await true_record(eve, match_id)
                assert {move.played.by for move in record.moves if move.WhichOneof("done") == "move"} == {BOT}
            # What is left of them in the deadlines goes by itself.
            await eventually(lambda: _no_wake_up(redis, game))
    assert not [entry for entry in logs if entry["event"] != "call"]


async def _no_wake_up(redis: Redis, game: Game) -> bool:
    return not await redis.keys(f"{game.id}:{{deadlines/*}}:due")


@in_turns
@pytest.mark.rule("ALL-01")
async def test_all_01_who_resigns_after_three_clocks_is_no_stand_in_but_gone(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    if game.info.max_seats < 3:
        pytest.skip("a game for two")
    async with table(game, keys, redis_url) as there:
        ann, eve = there.player("ann"), there.player("eve")
        for _ in range(TRIES):
            match_id = await there.create("ann", *["bot"] * max(2, game.info.min_seats - 1), move_seconds=1)
            changes, resigned = [], False
            async for event in follow(eve, match_id):
                if event.event.WhichOneof("kind") == "seat_changed":
                    seat = event.event.seat_changed.seat
                    changes.append((seat.stand_in, seat.resigned))
                    if len(changes) == 1:
                        with contextlib.suppress(Refused):  # the match is over
                            await ann.resign(match_id)
                            resigned = True
            await true_record(eve, match_id)
            if resigned:
                break
        else:
            pytest.fail("every match was over too early")
        assert changes == [(True, False), (False, True)]


# What fails meanwhile.


@pytest.mark.scenario(26)
async def test_downtime_is_credited_to_a_running_clock(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    pace: dict[str, Any] = {"outage_ms": 250, "sweep_ms": 50, "bot_delay_ms": 0}
    async with table(game, keys, redis_url, **pace) as there:
        match_id = await there.create(move_seconds=1, options=lasting(game, 1_000))
        before = await there.player("ann").get(match_id)
    # Nobody serves until its clock, had it run on, would be over.
    await eventually(lambda: _past(redis, ms(ends(before)) + 200))
    async with table(game, keys, redis_url, replicas=2, **pace) as there:
        ann = there.player("ann")
        # The clock as shown grows by what was credited, and runs out then and not before.
        shown = await eventually(lambda: _grown(ann, match_id, ends(before)))
        assert 1_000 <= ms(ends(shown)) - ms(ends(before)) <= ms(shown.server_time) - ms(before.server_time) + 50
        assert shown.version == 1
        clocks = overdue(game, before)
        match = await eventually(lambda: _version(ann, match_id, 1 + clocks))
        assert match.version == 1 + clocks == 1 + await _clock_moves(redis, there, match_id)
        assert min(ms(event.time) for event in await all_events(ann, match_id) if event.version > 1) >= ms(ends(shown)) - 60


async def _past(redis: Redis, moment: float) -> bool:
    seconds, micros = await redis.time()
    return bool(seconds * 1000 + micros / 1000 > moment)


async def _grown(player: Player, match_id: str, end: Any) -> Any:
    match = await player.get(match_id)
    return match if ms(ends(match)) > ms(end) else None


@pytest.mark.scenario(26)
async def test_a_restarted_server_plays_an_overdue_clock_exactly_once(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    # A pause too short to be an outage: the clock ran out in it.
    pace: dict[str, Any] = {"outage_ms": 60_000, "sweep_ms": 50}
    async with table(game, keys, redis_url, **pace) as there:
        match_id = await there.create(move_seconds=1, options=lasting(game, 1_000))
        before = await there.player("ann").get(match_id)
    await eventually(lambda: _past(redis, ms(ends(before)) + 100))
    async with table(game, keys, redis_url, replicas=3, **pace) as there:
        ann = there.player("ann")
        clocks = overdue(game, before)
        match = await eventually(lambda: _version(ann, match_id, 1 + clocks))
        # Each overdue clock was played, at once and once, and the next one runs in full.
        assert match.version == 1 + clocks == 1 + await _clock_moves(redis, there, match_id)
        assert ms(ends(match)) - ms(match.server_time) > 500


async def _version(player: Player, match_id: str, version: int) -> Any:
    match = await player.get(match_id)
    return match if match.version >= version else None


async def _version_or_end(player: Player, match_id: str, version: int) -> Any:
    match = await player.get(match_id)
    return match if match.version >= version or match.status == table_pb2.FINISHED else None


async def play_through(match_id: str, *players: Player) -> None:
    """Plays a match to its end, with whatever failing meanwhile."""
    rng = random.Random(1)
    while (await until_served(lambda: players[0].get(match_id))).status != table_pb2.FINISHED:
        for player in players:
            moves = await until_served(lambda player=player: player.moves(match_id))
            if moves:
                move, name = rng.choice(moves), secrets.token_hex(8)
                await until_served(lambda player=player, move=move, name=name: attempt(player, match_id, move, request_id=name))


@pytest.mark.scenario(21)
async def test_a_match_goes_on_and_watchers_miss_nothing_when_redis_forgets_its_scripts_and_restarts(
    game: Game, keys: Keys, tmp_path: Path
) -> None:
    with RedisServer(tmp_path / "redis", durable=True) as server:
        async with Redis.from_url(server.url) as redis:
            # By `everysec` a disk that is busy keeps what was acknowledged out of the file for up to two seconds.
            await redis.config_set("appendfsync", "always")
        async with table(game, keys, server.url, replicas=2, bot_delay_ms=5, sweep_ms=100, lease_ms=1_000) as there:
            names = [*there.names[:-1], "bot"]
            players = [there.player(name) for name in names if name != "bot"]
            eyes = [there.player("eve", replica=n) for n in range(2)]
            for _ in range(TRIES):
                match_id, of_bots = await there.create(*names), await there.create(*crowd(game))
                watching = [asyncio.create_task(finished(eye, each)) for eye in eyes for each in (match_id, of_bots)]
                playing = asyncio.create_task(play_through(match_id, *players))
                async with Redis.from_url(server.url) as redis:
                    for version in (3, 6):
                        await eventually(partial(_version_or_end, eyes[0], match_id, version))
                        await redis.script_flush()
                under_way = (await eventually(partial(_version_or_end, eyes[0], match_id, 9))).status == table_pb2.PLAYING
                if under_way:
                    server.kill()
                    await asyncio.to_thread(server.start)
                await playing
                for (_, each), events in zip(itertools.product(eyes, (match_id, of_bots)), await asyncio.gather(*watching), strict=True):
                    whole = [event.cursor for event in await all_events(eyes[0], each)]
                    assert [event.cursor for event in events] == whole[1:]
                    await true_record(eyes[0], each)
                if under_way:
                    break
            else:
                pytest.fail("every match was over too early")


@pytest.mark.scenario(21)
async def test_after_a_failover_that_lost_events_a_watcher_gets_a_snapshot_and_never_a_false_history(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    async with table(game, keys, redis_url) as there:
        match_id = await there.create(options=calm(game))
        players, eve = there.everyone(), there.player("eve")

        async def move() -> None:
            player, moves = await mover(match_id, *players)
            await player.submit(match_id, moves[-1])

        await move()
        stored: dict[Any, Any] = {key: await redis.dump(key) for key in await redis.keys(f"{game.id}:{{{match_id}}}:*")}
        watching: Any = eve.watch(match_id)
        assert (await anext(watching)).snapshot.version == 2
        await move()
        lost = (await anext(watching)).event
        assert lost.version == 3
        while (await eve.events(match_id, lost.cursor)).events:
            lost = (await anext(watching)).event
        # The replica that takes over never heard of that move; and the connections to its master are gone.
        for key, value in stored.items():
            await redis.restore(key, 60_000, value, replace=True)
        await redis.client_kill_filter(_type="pubsub")
        message = await anext(watching)
        assert message.WhichOneof("kind") == "snapshot"
        assert message.snapshot.version == 2
        await move()
        event = (await anext(watching)).event
        assert event.version == 3
        assert event.cursor != lost.cursor
        await watching.aclose()


@pytest.mark.scenario(23)
async def test_a_process_paused_past_its_lease_does_no_harm_when_it_goes_on(
    game: Game, keys: Keys, redis_url: str, redis: Redis, tmp_path: Path
) -> None:
    pace: dict[str, Any] = {"lease_ms": 400, "sweep_ms": 50, "bot_delay_ms": 15, "deadline_shards": 2}
    async with process(game, keys, redis_url, tmp_path, **pace) as pausing:
        alone = Table(game, keys, [pausing])  # type: ignore[list-item]
        match_ids: list[str] = []
        while True:
            # So many that some go on for a while when it is paused.
            match_ids += [await alone.create(*crowd(game)) for _ in range(12)]
            await eventually(lambda: _claimed(redis, game, 2))
            pausing.signal(signal.SIGSTOP)
            if await _claimed(redis, game, 2):
                break
            pausing.signal(signal.SIGCONT)
        await alone.close()
        async with table(game, keys, redis_url, **pace) as there:
            eve = there.player("eve")
            versions = {match_id: (await eve.get(match_id)).version for match_id in match_ids}
            went_on = 0
            for match_id, version in versions.items():
                match = await eventually(partial(_version_or_end, eve, match_id, version + 2))
                went_on += match.version >= version + 2
            assert went_on
            pausing.signal(signal.SIGCONT)
            await asyncio.gather(*(finished(eve, match_id) for match_id in match_ids))
            for match_id in match_ids:
                await true_record(eve, match_id)
    assert '"error"' not in pausing.log.read_text()


@pytest.mark.scenario(23)
@pytest.mark.parametrize("slower_than", ["its wake-up", "its lease"])
async def test_a_match_whose_making_was_held_up_is_woken_all_the_same(
    game: Game, keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch, slower_than: str
) -> None:
    # A wake-up is scheduled before its commit. Here it comes before it, too, on the other replica, which finds no match.
    async with table(game, keys, redis_url, replicas=2, lease_ms=500, sweep_ms=50, deadline_shards=1) as there:
        sessions, held, go_on = there.replicas[0]._matches._sessions, asyncio.Event(), asyncio.Event()
        commit = sessions.commit

        async def hold(*args: Any, **named: Any) -> Any:
            held.set()
            await go_on.wait()
            return await commit(*args, **named)

        monkeypatch.setattr(sessions, "commit", hold)
        match_id = new_match_id(game)
        creating = asyncio.create_task(until_served(lambda: there.create(*crowd(game), match_id=match_id)))
        await held.wait()
        await eventually(lambda: _claimed(redis, game) if slower_than == "its wake-up" else _no_wake_up(redis, game))
        go_on.set()
        assert await creating == match_id
        await finished(there.player("eve"), match_id)


async def _claimed(redis: Redis, game: Game, shards: int = 1) -> bool:
    """Whether some replica holds a claim: its score is a whole number in the future."""
    seconds, micros = await redis.time()
    for shard in range(shards):
        entries: Any = await redis.zrange(f"{game.id}:{{deadlines/{shard}}}:due", 0, -1, withscores=True)
        if any(score > seconds * 1000 + micros / 1000 and score == int(score) for _, score in entries):
            return True
    return False
