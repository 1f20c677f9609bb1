"""Who is there, for every game: seats say whether their players watch, on whichever replica and over whatever transport."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from gloaming.table.v1 import table_pb2
from services.kit.game import Game
from services.kit.verify import check
from tests.harness import EVERY_GAME, IN_REAL_TIME, IN_TURNS, Keys, Player, Table, all_events, calm, eventually, mover, play_out, table
from tests.process import process

in_turns = pytest.mark.parametrize("game", IN_TURNS, ids=lambda game: game.id)
in_real_time = pytest.mark.parametrize("game", IN_REAL_TIME, ids=lambda game: game.id)
# In a match of two, resigning ends it.
larger = pytest.mark.parametrize("game", [game for game in EVERY_GAME if game.info.max_seats > 2], ids=lambda game: game.id)

QUICK: dict[str, Any] = {"presence_lease_ms": 600, "presence_grace_ms": 100}


@pytest.fixture
async def there(game: Game, keys: Keys, redis_url: str, redis: Redis) -> AsyncIterator[Table]:
    """Two replicas of the game's service, quick to notice who is gone."""
    async with table(game, keys, redis_url, replicas=2, **QUICK) as running:
        yield running


class Watching:
    """Somebody who watches a match."""

    def __init__(self, messages: Any) -> None:
        self.messages = messages

    async def presence(self) -> tuple[int, bool]:
        """The next seat whose player is told to have come or gone."""
        async with asyncio.timeout(10):
            async for message in self.messages:
                if message.WhichOneof("kind") == "event" and message.event.event.WhichOneof("kind") == "seat_changed":
                    seat = message.event.event.seat_changed.seat
                    return seat.seat, seat.connected
        raise AssertionError("the match is over")


@asynccontextmanager
async def watching(player: Player, match_id: str, after: str = "") -> AsyncIterator[Watching]:
    """Watches a match, from its snapshot on."""
    async with aclosing(player.watch(match_id, after)) as messages:
        await anext(messages)
        yield Watching(messages)


def connected(match: Any) -> list[int]:
    return [seat.seat for seat in match.seats if seat.connected]


async def until_connected(player: Player, match_id: str, seats: Sequence[int]) -> Any:
    """The match, once these seats are connected and no other."""

    async def ask() -> Any:
        match = await player.get(match_id)
        return match if connected(match) == list(seats) else None

    return await eventually(ask)


async def told_of(player: Player, match_id: str) -> list[Any]:
    """The events that tell of seats."""
    return [event for event in await all_events(player, match_id) if event.event.WhichOneof("kind") == "seat_changed"]


async def comings_and_goings(player: Player, match_id: str) -> list[tuple[int, bool]]:
    seats = [event.event.seat_changed.seat for event in await told_of(player, match_id)]
    return [(seat.seat, seat.connected) for seat in seats]


async def until_told(player: Player, match_id: str, told: Sequence[tuple[int, bool]]) -> None:
    """Waits until as many comings and goings are told as these, and makes sure that they are these."""
    await eventually(partial(_as_many, player, match_id, len(told)))
    assert await comings_and_goings(player, match_id) == list(told)


async def _as_many(player: Player, match_id: str, count: int) -> bool:
    return len(await comings_and_goings(player, match_id)) >= count


async def test_a_seat_is_connected_while_its_player_watches_which_everybody_is_told_without_another_version(there: Table) -> None:
    match_id = await there.create(options=calm(there.game))
    ann, eve = there.player("ann", replica=0), there.player("eve", replica=1)
    assert connected(await eve.get(match_id)) == []
    async with watching(eve, match_id) as hers:
        async with watching(ann, match_id):
            assert await hers.presence() == (0, True)
            match = await eve.get(match_id)
            assert (connected(match), match.version) == ([0], 1)
        assert await hers.presence() == (0, False)
    match = await eve.get(match_id)
    assert (connected(match), match.version) == ([], 1)
    assert match.cursor == (await all_events(eve, match_id))[-1].cursor
    # Everybody is told the same.
    assert [event.event for event in await told_of(ann, match_id)] == [event.event for event in await told_of(eve, match_id)]


async def test_a_move_that_expects_the_version_is_played_though_somebody_came_meanwhile(there: Table) -> None:
    match_id, players = await there.create(options=calm(there.game)), there.everyone()
    player, moves = await mover(match_id, *players)
    version = (await player.get(match_id)).version
    async with watching(players[-1], match_id):
        await until_connected(player, match_id, [len(players) - 1])
        assert await player.submit(match_id, moves[0], expected_version=version)


async def test_who_watches_twice_is_there_until_both_have_ended(there: Table) -> None:
    match_id = await there.create(options=calm(there.game))
    here, elsewhere, eve = there.player("ann", replica=0), there.player("ann", replica=1), there.player("eve")
    async with watching(here, match_id):
        await until_connected(eve, match_id, [0])
        async with watching(elsewhere, match_id), watching(here, match_id):
            pass
        # Another comes and goes: by then it would be noticed if the first were thought to be gone.
        async with watching(there.player(there.names[1], replica=1), match_id):
            await until_connected(eve, match_id, [0, 1])
        await until_connected(eve, match_id, [0])
    await until_connected(eve, match_id, [])
    await until_told(eve, match_id, [(0, True), (1, True), (1, False), (0, False)])


async def test_who_comes_back_soon_was_never_away(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url, replicas=2, presence_grace_ms=1_000) as there:
        match_id, eve = await there.create(options=calm(game)), there.player("eve")
        for replica in (0, 1, 1, 0):
            async with watching(there.player("ann", replica=replica), match_id):
                await until_connected(eve, match_id, [0])
        await until_connected(eve, match_id, [])
        await until_told(eve, match_id, [(0, True), (0, False)])


@pytest.mark.scenario(22)
async def test_who_watched_on_a_replica_that_was_killed_is_gone_when_its_lease_ends(
    game: Game, keys: Keys, redis_url: str, redis: Redis, tmp_path: Path
) -> None:
    async with table(game, keys, redis_url, **QUICK) as there, process(game, keys, redis_url, tmp_path, **QUICK) as dying:
        match_id, eve = await there.create(options=calm(game)), there.player("eve")
        ann = Player(game, f"127.0.0.1:{dying.port}", keys.token("ann"), "ann")
        async with watching(eve, match_id) as hers, aclosing(ann.watch(match_id)) as messages:
            await anext(messages)
            assert await hers.presence() == (0, True)
            dying.signal(signal.SIGKILL)
            # Whoever looks at the match afterwards sees it at once, and has it told.
            await until_connected(eve, match_id, [])
            assert await hers.presence() == (0, False)
            with suppress(AssertionError):
                await anext(messages)
        await ann.close()


async def test_bots_and_spectators_are_never_connected_and_a_match_without_its_players_costs_nothing(there: Table, redis: Redis) -> None:
    match_id = await there.create("ann", *["bot"] * (there.game.info.min_seats - 1), options=calm(there.game))
    eve = there.player("eve")
    async with watching(eve, match_id):
        assert connected(await eve.get(match_id)) == []
        assert not await redis.exists(f"{there.game.id}:{{{match_id}}}:present")
    async with watching(there.player("ann"), match_id):
        await until_connected(eve, match_id, [0])
        assert await redis.pttl(f"{there.game.id}:{{{match_id}}}:present") > 0
    await until_connected(eve, match_id, [])
    assert not await redis.exists(f"{there.game.id}:{{{match_id}}}:present")


@larger
@pytest.mark.rule("ALL-01")
async def test_who_has_resigned_is_not_connected_any_more_though_still_watching(game: Game, there: Table) -> None:
    names = ["ann", "bob", "cat", *["bot"] * (game.info.min_seats - 3)]
    match_id, ann, eve = await there.create(*names, options=calm(game)), there.player("ann", replica=0), there.player("eve")
    async with watching(ann, match_id):
        await until_connected(eve, match_id, [0])
        answer = await ann.resign(match_id)
        (changed,) = [event.event.seat_changed.seat for event in answer.events if event.event.HasField("seat_changed")]
        assert (changed.seat, changed.resigned, changed.connected) == (0, True, False)
        assert connected(await eve.get(match_id)) == []
        async with watching(ann, match_id), watching(there.player("bob", replica=1), match_id):
            await until_connected(eve, match_id, [1])
        await until_connected(eve, match_id, [])
    await until_told(eve, match_id, [(0, True), (0, False), (1, True), (1, False)])


async def test_watchers_miss_nothing_while_players_come_and_go_and_the_record_says_nothing_of_it(there: Table) -> None:
    game, rng = there.game, random.Random(3)
    match_id, players = await there.create(), there.everyone()
    eyes = [there.player("eve", replica=n) for n in range(2)]
    start = (await eyes[0].events(match_id, size=1)).events[0].cursor

    async def follow(eye: Player) -> list[str]:
        return [message.event.cursor async for message in eye.watch(match_id, start)]

    async def come_and_go(name: str) -> None:
        while (await eyes[0].get(match_id)).status == table_pb2.PLAYING:
            async with watching(there.player(name, replica=rng.randrange(2)), match_id):
                await asyncio.sleep(rng.choice([0, 0.01, 0.05]))
            await asyncio.sleep(rng.choice([0, 0.15]))

    following = [asyncio.create_task(follow(eye)) for eye in eyes]
    going = [asyncio.create_task(come_and_go(name)) for name in there.names for _ in range(2)]
    await play_out(match_id, *players)
    for task in going:
        with suppress(StopAsyncIteration):
            await task
    events = await all_events(eyes[0], match_id)
    for told in following:
        assert await told == [event.cursor for event in events][1:]
    assert await comings_and_goings(eyes[0], match_id)
    match, record = await eyes[0].get(match_id), await eyes[0].record(match_id)
    assert connected(match) == connected(record) == []
    assert list(check(game, record))


# Clocks of seats.


@in_turns
async def test_each_seat_that_is_to_move_shows_when_its_clock_runs_out(game: Game, there: Table) -> None:
    match_id, players = await there.create(move_seconds=600), there.everyone()
    for _ in range(6):
        match = await players[0].get(match_id)
        if not match.to_move:
            break
        assert [seat.seat for seat in match.seats if seat.HasField("deadline")] == list(match.to_move)
        shown = [seat.deadline.ToMilliseconds() for seat in match.seats if seat.HasField("deadline")]
        assert min(shown) == match.deadline.ToMilliseconds()
        seat = match.to_move[0]
        await players[seat].submit(match_id, (await players[seat].moves(match_id))[0])


@in_turns
async def test_a_seat_that_a_bot_moves_for_shows_no_clock(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url, bot_delay_ms=60_000) as there:
        match_id = await there.create("ann", *["bot"] * (game.info.min_seats - 1), move_seconds=600)
        match = await there.player("ann").get(match_id)
        assert [seat.seat for seat in match.seats if seat.HasField("deadline")] == [seat for seat in match.to_move if seat == 0]


# A match in real time waits for its players.


def ms(timestamp: Any) -> int:
    return int(timestamp.ToMilliseconds())


@in_real_time
async def test_a_match_in_real_time_begins_when_the_last_of_its_players_watches_it(game: Game, there: Table) -> None:
    await_all, eve = there.names, there.player("eve")
    match_id = await there.create(*await_all, "bot", options=calm(game), start_seconds=60)
    before = await eve.get(match_id)
    length = ms(before.view.phase_end_time) - ms((await all_events(eve, match_id))[0].time) - 60_000
    assert 0 < length < 60_000
    async with watching(there.player(await_all[0], replica=0), match_id), watching(there.player(await_all[1], replica=1), match_id):
        waits = await until_connected(eve, match_id, [0, 1])
        assert (waits.version, waits.view.phase_end_time) == (1, before.view.phase_end_time)
        async with watching(there.player(await_all[2], replica=1), match_id):
            begun = await until_connected(eve, match_id, [0, 1, 2])
            began = next(event for event in await all_events(eve, match_id) if event.version == 2)
            assert (begun.version, began.event.seat_changed.seat.connected) == (2, True)
            assert abs(ms(begun.view.phase_end_time) - ms(began.time) - length) < 200
        # It does not wait again for one who leaves.
        after = await until_connected(eve, match_id, [0, 1])
        assert (after.version, after.view.phase_end_time) == (2, begun.view.phase_end_time)


@in_real_time
async def test_a_match_in_real_time_does_not_wait_for_longer_than_was_asked_nor_for_bots(game: Game, there: Table) -> None:
    eve = there.player("eve")
    match_id = await there.create(*there.names, start_seconds=1)
    bots = await there.create(*["bot"] * game.info.min_seats, start_seconds=60)
    assert (await eve.get(match_id)).version == 1

    async def begun(each: str) -> Any:
        return [event for event in await all_events(eve, each) if event.version == 2]

    (event, *_), created = await eventually(partial(begun, match_id)), (await all_events(eve, match_id))[0]
    assert 950 < ms(event.time) - ms(created.time) < 2_000
    await eventually(partial(begun, bots))


@in_real_time
async def test_a_player_who_resigns_is_not_waited_for(game: Game, there: Table) -> None:
    eve, match_id = there.player("eve"), await there.create(*there.names, options=calm(game), start_seconds=60)
    before = await eve.get(match_id)
    async with watching(there.player(there.names[0], replica=0), match_id), watching(there.player(there.names[1], replica=1), match_id):
        await until_connected(eve, match_id, [0, 1])
        await there.player(there.names[2]).resign(match_id)
        after = await eve.get(match_id)
        assert ms(after.view.phase_end_time) < ms(before.view.phase_end_time) - 50_000


@in_real_time
async def test_a_match_that_waited_is_played_out_and_its_record_is_true(game: Game, there: Table) -> None:
    match_id, (first, second, *last) = await there.create(*there.names, start_seconds=60), there.everyone()
    async with watching(first, match_id), watching(second, match_id), AsyncExitStack() as others:
        moves = await first.moves(match_id)
        assert all(not move.HasField("react") for move in moves), "no window runs yet, however short it is"
        for player in last:
            await others.enter_async_context(watching(player, match_id))
        await play_out(match_id, *there.everyone())
    assert list(check(game, await there.player("eve").record(match_id)))
