"""The short form of `make chaos`: one thing of each kind breaks under load."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from gloaming.table.v1 import table_pb2
from services.night_clan.game import GAME
from tests.chaos import faults
from tests.chaos.ledger import Ledger, Seen
from tests.chaos.run import Chaos
from tests.chaos.stack import ENV, Stack
from tests.harness import EVERY_GAME, Keys, all_events, mover, table

MATCHES = 24


class Played:
    """A match of two people that was played to its end, with what they were acknowledged and saw."""

    def __init__(self, record: Any, events: dict[str, list[Any]], acknowledged: list[tuple[str, int, Any]]) -> None:
        self.record, self.events, self.acknowledged = record, events, acknowledged

    async def held(self, *, lossy: bool = False, seen: list[Any] | None = None, record: Any = None, more: Any = ()) -> Ledger:
        """The ledger of it, with one thing otherwise than it was."""
        ledger = Ledger(lossy=lossy)
        match = ledger.match(GAME, self.record.match_id)
        for player, version, move in [*self.acknowledged, *more]:
            match.acknowledge(player, version, move)
        ann = Seen(match, "ann")
        for event in self.events["ann"] if seen is None else seen:
            await ann.event(event)
        ledger.hold(match, record or self.record, [(ann, self.events["ann"])])
        return ledger


@pytest.fixture
async def played(tmp_path: Path, redis_url: str) -> Played:
    async with table(GAME, Keys(tmp_path), redis_url) as there:
        ann, bob = there.player("ann"), there.player("bob")
        match_id, acknowledged, rng = await there.create("ann", "bob", move_seconds=60), [], random.Random(1)
        while (await ann.get(match_id)).status == table_pb2.PLAYING:
            player, moves = await mover(match_id, ann, bob)
            move = rng.choice(moves)
            acknowledged.append((player.player, (await player.submit(match_id, move)).version, move))
        return Played(await ann.record(match_id), {"ann": await all_events(ann, match_id)}, acknowledged)


async def test_a_match_as_it_was_is_no_break(played: Played) -> None:
    ledger = await played.held()
    assert ledger.breaks == []
    assert ledger.checked == {"night_clan": 1}
    assert (ledger.acknowledged, ledger.events) == (len(played.acknowledged), len(played.events["ann"]))


async def test_an_acknowledged_move_that_is_not_in_the_record_is_a_break_unless_the_storage_may_lose_it(played: Played) -> None:
    player, version, move = played.acknowledged[0]
    one_more = [(player, version + 2 * len(played.acknowledged), move)]
    (found,) = (await played.held(more=one_more)).breaks
    assert "is not in the record" in found
    lossy = await played.held(more=one_more, lossy=True)
    assert (lossy.breaks, lossy.lost) == ([], 1)


async def test_a_move_that_nobody_was_told_of_is_a_break(played: Played) -> None:
    played.acknowledged.pop(3)
    for lossy in (False, True):
        (found,) = (await played.held(lossy=lossy)).breaks
        assert "were told of" in found


async def test_a_gap_a_repeat_or_another_order_of_what_a_watcher_saw_is_a_break(played: Played) -> None:
    events = played.events["ann"]
    for seen in (events[:4] + events[5:], [*events[:5], *events[4:]], [events[1], events[0], *events[2:]], events[:-1], events[1:]):
        for lossy in (False, True):
            (found,) = (await played.held(seen=seen, lossy=lossy)).breaks
            assert "a watcher saw" in found


async def test_a_clock_that_ran_out_before_its_time_is_a_break(played: Played) -> None:
    played.acknowledged.pop(5)
    record = type(played.record).FromString(played.record.SerializeToString())
    record.moves[5].played.by = table_pb2.Played.CLOCK
    (found,) = (await played.held(record=record)).breaks
    assert "the clock of seat" in found


async def test_a_record_that_does_not_follow_from_its_seed_is_a_break(played: Played) -> None:
    record = type(played.record).FromString(played.record.SerializeToString())
    record.scores[0] += 1
    (found,) = (await played.held(record=record)).breaks
    assert "is not true" in found


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.scenario(21)
@pytest.mark.scenario(22)
@pytest.mark.scenario(23)
@pytest.mark.scenario(25)
async def test_whatever_is_killed_stopped_paused_or_flushed_under_load_no_move_is_lost_and_no_match_stands_still(tmp_path: Path) -> None:
    async with Stack(tmp_path, "always", env={**ENV, "GLOAMING_BOT_DELAY_MS": "100"}) as stack:
        chaos = Chaos(stack, MATCHES, pace=0.8, stuck=45, say=print)
        await chaos.run(faults.short())
    found = chaos.summary()
    assert found["told"] == []
    assert found["breaks"] == 0
    # There was a load, and it was hit.
    assert set(found["matches_checked"]) == {game.id for game in EVERY_GAME}
    assert found["moves_acknowledged"] > 10 * MATCHES
    assert found["events_seen"] > found["moves_acknowledged"]
    assert found["clocks_ran_out"] > 0
    assert found["requests_repeated"] > 0
    assert found["sockets_closed"]
    assert len(found["faults"]) == len(list(faults.short()))
