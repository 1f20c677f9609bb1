"""Night Knight through its service: reactions that race each other, ordered by Redis, and windows of time that end by themselves."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import pytest
from redis.asyncio import Redis

from gloaming.night_knight.v1 import night_knight_pb2 as pb
from gloaming.table.v1 import table_pb2
from services.kit import verify
from services.night_knight.game import GAME
from tests.harness import NAMES, Keys, Player, Refused, Table, table

FAST = pb.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=500)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
async def there(keys: Keys, redis_url: str, redis: Redis) -> AsyncIterator[Table]:
    """Two replicas."""
    async with table(GAME, keys, redis_url, replicas=2) as running:
        yield running


async def make(there: Table, *seats: str, options: pb.Options = FAST) -> str:
    return await there.create(*seats, options=options)


async def until(watching: AsyncIterator[Any], kind: str) -> Any:
    """The next event of a kind."""
    async with asyncio.timeout(15):
        async for message in watching:
            if message.WhichOneof("kind") == "event" and message.event.event.WhichOneof("kind") == kind:
                return getattr(message.event.event, kind)
    raise AssertionError(f"the match ended before {kind}")


async def everything(player: Player, match_id: str) -> list[Any]:
    """Every event of a match, until it ends."""
    start = (await player.events(match_id, size=1)).events[0]
    seen = [start]
    async for message in player.watch(match_id, start.cursor):
        assert message.WhichOneof("kind") == "event"
        seen.append(message.event)
    return seen


def reactions(events: list[Any]) -> dict[int, list[Any]]:
    """Reactions by round, in the order in which they were told."""
    rounds: dict[int, list[Any]] = {}
    current = 0
    for each in events:
        kind = each.event.WhichOneof("kind")
        if kind == "round_started":
            current = each.event.round_started.round
        elif kind == "reacted":
            rounds.setdefault(current, []).append(each.event.reacted)
    return rounds


@pytest.mark.scenario(4)
@pytest.mark.rule("NK-10")
@pytest.mark.rule("NK-12")
@pytest.mark.parametrize("seats", [3, 6])
async def test_grabs_of_all_seats_at_once_get_one_verdict_each_and_no_pillow_is_oversold(there: Table, seats: int) -> None:
    rng = random.Random(seats)
    rounds: list[list[pb.Reaction]] = []
    async with asyncio.timeout(90):
        # How long a match is its secret seed decides.
        while len(rounds) <= 10:
            rounds += await _raced(there, NAMES[:seats], rng)
    pillows = 1 if seats == 3 else 2
    for each in rounds:
        assert [reaction.rank for reaction in each] == list(range(1, len(each) + 1))
        assert max(Counter(reaction.seat for reaction in each).values()) == 1
        assert sum(reaction.verdict == pb.Reaction.GRANTED for reaction in each) <= pillows
        assert all(reaction.verdict and reaction.evidence.rule and reaction.evidence.received_ms >= 0 for reaction in each)


async def _raced(there: Table, names: Sequence[str], rng: random.Random) -> list[list[pb.Reaction]]:
    """Has a match played in which everybody reacts within 5 ms, and returns the reactions of each round, as all watchers saw them alike."""
    # A round is over as soon as everybody has reacted; on a busy machine that takes them a while.
    match_id = await make(there, *names, options=pb.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=3000))

    async def play(n: int, name: str) -> None:
        player = there.player(name, replica=n % 2)
        async for message in player.watch(match_id):
            if message.WhichOneof("kind") == "event" and message.event.event.WhichOneof("kind") == "own_card_shown":
                number = message.event.event.own_card_shown.round
                await asyncio.sleep(rng.random() * 0.005)
                move = pb.Move(react=pb.React(round=number, action=rng.choice(["SHIELD", "SLEEP", "TOUCH", "PASS"])))
                # Its round may be over by now.
                with suppress(Refused):
                    await player.submit(match_id, move, request_id=f"{name}/{number}")

    watchers = [asyncio.create_task(everything(there.player(f"eve{n}", replica=n % 2), match_id)) for n in range(4)]
    await asyncio.gather(*(play(n, name) for n, name in enumerate(names)))
    seen = await asyncio.gather(*watchers)
    assert all(each == seen[0] for each in seen)
    return list(reactions(seen[0]).values())


async def test_what_the_script_decided_is_what_the_rules_say(there: Table) -> None:
    match_id = await make(there, *["bot"] * 5, options=pb.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=700))
    eve = there.player("eve")
    async with asyncio.timeout(60):
        told = await everything(eve, match_id)
    record = await eve.record(match_id)
    assert list(verify.check(GAME, record))
    replayed = _replayed(record)
    assert len(told) == len(replayed) + 1  # and matchFinished
    for one, other in zip(told, replayed, strict=False):
        _forget_times(one.event)
        _forget_times(other)
        assert one.event == other


def _replayed(record: Any) -> list[Any]:
    """The public events of a record, by the rules alone."""
    from services.kit.chance import Chance

    chance = Chance(bytes.fromhex(record.seed))
    step = GAME.rules.setup(GAME.codec.options_from_proto(record.options), len(record.seats), chance)
    events = list(step.events)
    for recorded in record.moves:
        if recorded.WhichOneof("done") == "window_ended":
            assert GAME.real_time
            step = GAME.real_time.on_timeout(step.state, chance)
        else:
            step = GAME.rules.apply(step.state, recorded.played.seat, GAME.codec.move_from_proto(recorded.move), chance)
        events += step.events
    return [GAME.codec.event_to_proto(GAME.rules.redact(event, None)) for event in events]


def _forget_times(event: Any) -> None:
    """Times are no part of a replay."""
    if event.WhichOneof("kind") == "reacted":
        event.reacted.evidence.ClearField("received_ms")


@pytest.mark.rule("NK-13")
async def test_a_match_plays_itself_to_its_end_with_nobody_there(there: Table) -> None:
    match_id = await make(there, "ann", "bob", "bot", options=pb.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=500))
    eve = there.player("eve")
    async with asyncio.timeout(90):
        told = await everything(eve, match_id)
    match = await eve.get(match_id)
    assert match.status == table_pb2.FINISHED
    assert told[-1].event.match_finished.outcome == match.outcome
    assert list(verify.check(GAME, await eve.record(match_id)))


@pytest.mark.rule("NK-13")
async def test_a_reaction_to_the_round_just_closed_is_too_late_and_one_to_another_round_is_refused(there: Table) -> None:
    match_id = await make(there, "ann", "bob", "cat", options=pb.Options(countdown_ms=1500, own_card_delay_ms=0, action_ms=500))
    ann, bob = there.player("ann", replica=0), there.player("bob", replica=1)
    watching = there.player("eve").watch(match_id)
    await until(watching, "round_resolved")
    with pytest.raises(Refused) as refused:
        await ann.submit(match_id, pb.Move(react=pb.React(round=2, action="PASS")))
    assert refused.value.reason == "ROUND_OVER"
    late = (await bob.submit(match_id, pb.Move(react=pb.React(round=1, action="SLEEP")))).events
    assert [event.event.reacted.verdict for event in late] == [pb.Reaction.TOO_LATE]
    match = await ann.get(match_id)
    assert match.view.last_round.reactions[0] == late[0].event.reacted
    assert match.view.phase == pb.View.RESOLUTION
    assert match.view.HasField("phase_end_time")


@pytest.mark.rule("NK-10")
async def test_one_reacts_once_a_round_and_a_retry_gets_the_first_answer(there: Table) -> None:
    match_id = await make(there, "ann", "bob", "cat", options=pb.Options(countdown_ms=500, own_card_delay_ms=0, action_ms=30_000))
    ann = there.player("ann")
    watching = there.player("eve").watch(match_id)
    await until(watching, "own_card_shown")
    touch = pb.Move(react=pb.React(round=1, action="TOUCH"))
    answers = await asyncio.gather(*(ann.submit(match_id, touch, request_id="mine") for _ in range(6)))
    assert all(answer == answers[0] for answer in answers)
    assert len(answers[0].events) == 1
    with pytest.raises(Refused) as refused:
        await ann.submit(match_id, pb.Move(react=pb.React(round=1, action="PASS")))
    assert refused.value.reason == "ALREADY_REACTED"
    view = (await there.player("bob").get(match_id)).view
    assert [reaction.seat for reaction in view.reactions] == [0]
    assert view.pillows_left == 1


@pytest.mark.rule("NK-05")
async def test_who_peeks_in_the_countdown_is_out_and_cannot_react(there: Table) -> None:
    match_id = await make(there, "ann", "bob", "cat", options=pb.Options(countdown_ms=1500, own_card_delay_ms=0, action_ms=30_000))
    ann = there.player("ann")
    await ann.submit(match_id, pb.Move(peek=pb.Peek(round=1)))
    watching = there.player("eve").watch(match_id)
    shown = await until(watching, "own_card_shown")
    assert [card.seat for card in shown.cards] == [1, 2]
    with pytest.raises(Refused) as refused:
        await ann.submit(match_id, pb.Move(react=pb.React(round=1, action="PASS")))
    assert refused.value.reason == "ALREADY_OUT"
    for name in ("bob", "cat"):
        await there.player(name).submit(match_id, pb.Move(react=pb.React(round=1, action="PASS")))
    assert (await until(watching, "round_resolved")).round == 1


@pytest.mark.rule("NK-04")
async def test_ones_own_card_comes_after_the_others_and_spectators_see_none_before(there: Table) -> None:
    match_id = await make(there, "ann", "bob", "cat", options=pb.Options(countdown_ms=0, own_card_delay_ms=1000, action_ms=2000))
    watching = [there.player("ann").watch(match_id), there.player("eve").watch(match_id)]
    ann, eve = [await until(each, "cards_revealed") for each in watching]
    assert [card.HasField("card") for card in ann.cards] == [False, True, True]
    assert not any(card.HasField("card") for card in eve.cards)
    view = (await there.player("ann").get(match_id)).view
    assert [card.HasField("card") for card in view.cards] == [False, True, True]
    assert all(card.HasField("card") for card in (await until(watching[1], "own_card_shown")).cards)


async def test_a_round_goes_on_where_another_replica_takes_over(keys: Keys, redis_url: str, redis: Redis) -> None:
    options = pb.Options(countdown_ms=500, own_card_delay_ms=0, action_ms=1500)
    async with table(GAME, keys, redis_url) as first:
        match_id = await make(first, "ann", "bob", "cat", options=options)
        await until(first.player("eve").watch(match_id), "own_card_shown")
        await first.player("ann").submit(match_id, pb.Move(react=pb.React(round=1, action="TOUCH")))
    async with table(GAME, keys, redis_url) as second:
        watching = second.player("eve").watch(match_id)
        resolved = await until(watching, "round_resolved")
        assert resolved.round == 1
        assert resolved.results[0].rule == "NK-11" or not resolved.results[0].right
