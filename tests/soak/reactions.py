"""Grabs that race each other over two replicas, and what every round is held to (NK-10 to NK-13, NK-19)."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy.redis_server import RedisServer
from gloaming.night_knight.v1 import night_knight_pb2 as pb
from services.kit import verify
from services.kit.errors import Raced, Refused
from services.kit.identity import Caller
from services.night_knight.game import GAME
from services.night_knight.rules import PILLOWS, Action, React
from tests.harness import NAMES, Keys, Table, all_events, table

# Six seats react within so many seconds of each other.
_APART_SECONDS = 0.005
# So many matches go on at once.
_AT_ONCE = 6
# How often it tells how far it is.
_TELL_SECONDS = 5.0
# The cap and the longest round trip, ms, where lines are compensated: windows are to be short here.
_CAP_MS, _LINE_MS = 10, 40


@dataclass
class Found:
    """What came of it.

    Args:
        reactions: how many were sent.
        decided: how many of them were decided; the others' rounds were over.
        rounds: how many rounds they were in.
        matches: in how many matches.
    """

    reactions: int = 0
    decided: int = 0
    rounds: int = 0
    matches: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)


def soak(reactions: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Races so many on a private Redis, tells how far it is, and returns what came of them."""

    async def run(ordering: str) -> dict[str, Any]:
        began, cpu = time.perf_counter(), time.process_time()
        with tempfile.TemporaryDirectory() as directory, RedisServer(Path(directory) / "redis") as server:
            async with table(GAME, Keys(Path(directory)), server.url, replicas=2) as there:
                found = await race(there, ordering, reactions // 2, tell)
        seconds = {"seconds": round(time.perf_counter() - began, 1), "cpu_seconds": round(time.process_time() - cpu, 1)}
        return {**vars(found), "breaks": 0, **seconds}

    return {ordering: asyncio.run(run(ordering)) for ordering in ("ARRIVAL", "COMPENSATED")}


async def race(there: Table, ordering: str, reactions: int, tell: Callable[[str], None] = lambda _: None) -> Found:
    """Plays matches of six over two replicas until so many reactions were sent, and holds every round to its rules."""
    found, began, told = Found(), time.perf_counter(), 0.0

    async def play_on(rng: random.Random) -> None:
        nonlocal told
        while found.reactions < reactions:
            await _match(there, ordering, reactions, rng, found)
            seconds = time.perf_counter() - began
            if seconds - told > _TELL_SECONDS:
                told = seconds
                tell(f"{ordering}: {found.reactions:,} of {reactions:,} reactions, {found.matches} matches, {seconds:.0f} s")

    await asyncio.gather(*(play_on(random.Random(n)) for n in range(_AT_ONCE)))
    return found


async def _match(there: Table, ordering: str, reactions: int, rng: random.Random, found: Found) -> None:
    options = pb.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=500, ordering=ordering, max_compensation_ms=_CAP_MS)
    match_id = await there.create(*NAMES, options=options)
    found.matches += 1
    sent: dict[int, int] = {}
    taken: Counter[tuple[int, int]] = Counter()
    going: set[asyncio.Task[None]] = set()

    async def react(seat: int, number: int) -> None:
        replica = there.replicas[rng.randrange(2)]
        move = React(number, rng.choice([Action.SHIELD, Action.SLEEP, Action.TOUCH, Action.PASS]))
        round_trip_ms = rng.randrange(_LINE_MS)
        await asyncio.sleep(rng.random() * _APART_SECONDS)
        caller = Caller(NAMES[seat], NAMES[seat], frozenset(["play"]), 1, 4e9)
        try:
            await replica._matches.react(match_id, caller, move, request_id=f"{number}", body=b"", round_trip_ms=round_trip_ms)
            taken[number, seat] += 1
        except Refused as refused:
            if refused.reason not in ("ROUND_OVER", "MATCH_FINISHED"):
                raise
        except Raced:
            pass

    watching = [asyncio.create_task(_everything(there, match_id, replica)) for replica in range(2)]
    async for message in there.player("eve", replica=0).watch(match_id):
        number = message.snapshot.view.round if message.WhichOneof("kind") == "snapshot" else message.event.event.own_card_shown.round
        if number and number not in sent and found.reactions < reactions:
            sent[number] = len(NAMES)
            found.reactions += len(NAMES)
            going |= {asyncio.create_task(react(seat, number)) for seat in range(len(NAMES))}
        elif found.reactions >= reactions:
            break  # the rest of the match is of no interest
    await asyncio.gather(*going)
    if found.reactions >= reactions:
        # Whatever is pending is decided, and what is too late for its round is told of, by the time that the round after it is over.
        await asyncio.sleep(1.5)
        for each in watching:
            each.cancel()
    told = [await each for each in watching]
    whole = await all_events(there.player("eve"), match_id)
    for seen in told:
        assert seen == whole[: len(seen)], "a watcher saw another order"
    held(whole, taken, found)
    if whole[-1].event.HasField("match_finished"):
        record = await there.player("eve").record(match_id)
        assert list(verify.check(GAME, record))
        recorded = [move.reaction for move in record.moves if move.HasField("move")]
        assert recorded == [event.event.reacted for event in whole if event.event.HasField("reacted")], (
            "the record tells of other reactions"
        )


async def _everything(there: Table, match_id: str, replica: int) -> list[Any]:
    """Every event as a watcher of a replica sees it, from the first on."""
    player = there.player(f"eve{replica}", replica=replica)
    seen = [(await player.events(match_id, size=1)).events[0]]
    try:
        async for message in player.watch(match_id, seen[0].cursor):
            assert message.WhichOneof("kind") == "event", "a gap"
            seen.append(message.event)
    except asyncio.CancelledError:
        pass
    return seen


def held(events: Iterable[Any], taken: Counter[tuple[int, int]], found: Found) -> None:
    """Holds the events of a match of six to the rules, and to what the players were answered."""
    rounds: dict[int, list[Any]] = {}
    number = 0
    for each in events:
        kind = each.event.WhichOneof("kind")
        if kind == "round_started":
            number = each.event.round_started.round
        elif kind == "reacted":
            rounds.setdefault(number, []).append(each.event.reacted)
    for each in rounds.values():
        assert [reaction.rank for reaction in each] == list(range(1, len(each) + 1)), "ranks are not dense"
        assert max(Counter(reaction.seat for reaction in each).values()) == 1, "a seat reacted twice"
        assert sum(reaction.verdict == pb.Reaction.GRANTED for reaction in each) <= PILLOWS[len(NAMES)], "a pillow was oversold"
        assert all(reaction.verdict and reaction.evidence.rule for reaction in each), "a verdict is missing"
        found.verdicts.update(pb.Reaction.Verdict.Name(reaction.verdict) for reaction in each)
        for reaction in each:
            evidence = reaction.evidence
            assert evidence.compensation_ms == min(evidence.round_trip_ms, evidence.cap_ms)
        found.decided += len(each)
    found.rounds += len(rounds)
    told = {(number, reaction.seat): 1 for number, each in rounds.items() for reaction in each}
    assert told == dict(taken), "what was answered and what was told differ"
