"""Matches that nobody plays any more, for every game: given up by the platform, so that none stays for ever."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import Any

import pytest
from redis.asyncio import Redis

from gloaming.table.v1 import table_pb2
from services.kit.game import Game
from services.kit.verify import check
from tests.contract.test_results import counting
from tests.harness import EVERY_GAME, Keys, Player, Table, all_events, attempt, calm, eventually, mover, table

# In a match of two, resigning ends it.
larger = pytest.mark.parametrize("game", [game for game in EVERY_GAME if game.info.max_seats > 2], ids=lambda game: game.id)

ABANDONED = table_pb2.Outcome.ABANDONED
# Bots think for so long that none of them moves meanwhile.
SOON: dict[str, Any] = {"abandon_seconds": 1, "bot_delay_ms": 60_000, "presence_lease_ms": 300, "presence_grace_ms": 0}


async def finished(player: Player, match_id: str) -> Any:
    """The match, if it has ended."""
    match = await player.get(match_id)
    return match if match.status == table_pb2.FINISHED else None


def ms(timestamp: Any) -> int:
    return int(timestamp.ToMilliseconds())


async def a_game(there: Table, *seats: str, **settings: Any) -> str:
    """A match in which nothing happens by itself for some seconds."""
    return await there.create(*seats, options=calm(there.game), **settings)


async def test_a_match_in_which_no_player_does_anything_is_given_up_and_nobody_wins_it(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    async with table(game, keys, redis_url, replicas=2, **SOON) as there, counting(there) as counter:
        eve, match_id = there.player("eve"), await a_game(there, rated=True)
        version = (await eve.get(match_id)).version
        match = await eventually(partial(finished, eve, match_id))
        assert (match.outcome.ending, list(match.outcome.winners)) == (ABANDONED, [])
        assert list(match.outcome.ranks) == [2] * len(match.seats)
        assert not match.to_move
        assert match.version == version + 1
        first, *_, last = await all_events(eve, match_id)
        assert last.event.match_finished.outcome == match.outcome
        # Less the moment between looking at the clock and committing.
        assert ms(last.time) - ms(first.time) > 900
        record = await eve.record(match_id)
        assert record.outcome == match.outcome
        assert list(check(game, record))
        assert not await counter.results(), "it counts for no rating"


async def test_a_match_is_not_given_up_while_somebody_plays_or_watches_it(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url, replicas=2, **SOON) as there:
        eve, ann = there.player("eve"), there.player("ann")
        watched, played, left, clocked = [await a_game(there, move_seconds=seconds) for seconds in (0, 0, 0, 60)]
        async with aclosing(ann.watch(watched)) as watching:
            await anext(watching)
            acted = 0
            while await finished(eve, left) is None:
                if acted < 3:
                    player, moves = await mover(played, *there.everyone())
                    await attempt(player, played, moves[-1])
                    acted += 1
                await asyncio.sleep(0.25)
            assert (await eve.get(left)).outcome.ending == ABANDONED
            assert await finished(eve, watched) is None
            for match_id in (played, clocked):
                match = await eve.get(match_id)
                assert match.status == table_pb2.PLAYING or match.outcome.ending != ABANDONED
        match = await eventually(partial(finished, eve, watched))
        # In real time it may have run out by itself meanwhile.
        assert match.outcome.ending == ABANDONED or game.real_time


async def test_a_match_of_bots_is_never_given_up_nor_any_match_where_the_operator_says_so(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    bots = ["bot"] * game.info.min_seats
    async with table(game, keys, redis_url, **SOON) as there:
        eve = there.player("eve")
        of_bots, of_both = await a_game(there, *bots), await a_game(there)
        await eventually(partial(finished, eve, of_both))
        assert (await eve.get(of_both)).outcome.ending == ABANDONED
        assert await finished(eve, of_bots) is None
    await redis.flushdb()
    async with table(game, keys, redis_url, **{**SOON, "abandon_seconds": 0}) as never:
        match_id = await a_game(never)
        due = await redis.keys(f"{game.id}:{{deadlines/*}}:due")
        assert bool(due) == bool(game.real_time)
        assert (await never.player("eve").get(match_id)).status == table_pb2.PLAYING


@larger
@pytest.mark.rule("ALL-01")
async def test_all_01_who_resigned_before_is_behind_the_others_in_a_match_that_is_given_up(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    async with table(game, keys, redis_url, **SOON) as there:
        eve, match_id = there.player("eve"), await a_game(there, "ann", "bob", "cat")
        await there.player("bob").resign(match_id)
        match = await eventually(partial(finished, eve, match_id))
        assert (match.outcome.ending, list(match.outcome.ranks), list(match.outcome.winners)) == (ABANDONED, [2, 4, 2], [])
        assert list(check(game, await eve.record(match_id)))
