from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from services.kit import sessions
from services.kit.chance import Chance
from services.kit.deadlines import Act, Deadlines, Moment
from services.kit.errors import NotFound, Unavailable
from services.kit.game import Game
from services.kit.sessions import Entry, Meta, Seat, Session, Sessions, Table
from services.kit.storage import Storage
from tests.harness import eventually


@dataclass
class Pace:
    """Settings in which nothing happens by itself within a test."""

    deadline_shards: int = 1
    outage_ms: int = 60_000
    sweep_ms: int = 30_000
    lease_ms: int = 30_000


DUE, CLOCK = "game:{deadlines/0}:due", "game:{deadlines/0}:clock"


@asynccontextmanager
async def sweeping(storage: Storage, act: Act, **pace: int) -> AsyncIterator[Deadlines]:
    """A replica that sweeps."""
    deadlines = Deadlines("game", storage, Pace(**pace))
    stopping = asyncio.Event()
    sweep = asyncio.create_task(deadlines.sweep(act, stopping))
    try:
        yield deadlines
    finally:
        stopping.set()
        async with asyncio.timeout(10):
            await sweep


@asynccontextmanager
async def replicas(redis_url: str, count: int) -> AsyncIterator[list[Storage]]:
    """The storages of so many replicas."""
    storages = [Storage(redis_url) for _ in range(count)]
    try:
        yield storages
    finally:
        for storage in storages:
            await storage.close()


class Woken:
    """An act that notes what it was called for, and answers as it is told to."""

    def __init__(self, answer: Callable[[str, Moment], Awaitable[int | None]] | None = None) -> None:
        self.calls: asyncio.Queue[tuple[str, Moment]] = asyncio.Queue()
        self.answer = answer

    async def __call__(self, match_id: str, moment: Moment) -> int | None:
        self.calls.put_nowait((match_id, moment))
        return await self.answer(match_id, moment) if self.answer else None

    async def next(self, seconds: float = 5.0) -> tuple[str, Moment]:
        async with asyncio.timeout(seconds):
            return await self.calls.get()


async def score(redis: Redis, match_id: str) -> float | None:
    found: float | None = await redis.zscore(DUE, match_id)
    return found


async def now(redis: Redis) -> float:
    seconds, micros = await redis.time()
    return float(seconds * 1000 + micros / 1000)


async def test_a_wake_up_is_never_scheduled_later_than_one_already_there(storage: Storage, redis: Redis) -> None:
    deadlines = Deadlines("game", storage, Pace())
    first = await deadlines.schedule("a", 50_000)
    at = await score(redis, "a")
    assert at is not None
    assert first.now + 50_000 - 1 <= at <= first.now + 50_000
    await deadlines.schedule("a", 60_000)
    assert await score(redis, "a") == at
    sooner = await deadlines.schedule("a", 1_000)
    at = await score(redis, "a")
    assert at is not None
    assert at <= sooner.now + 1_000
    for _ in range(20):
        await deadlines.schedule("a", 60_000)
    later = await score(redis, "a")
    assert later is not None
    assert at - 1 < later <= at


@pytest.mark.parametrize("delay", [0, 30, 120])
async def test_what_a_replica_scheduled_itself_it_acts_on_at_its_time(storage: Storage, redis: Redis, delay: int) -> None:
    woken = Woken()
    async with sweeping(storage, woken) as deadlines:
        scheduled = await deadlines.schedule("a", delay)
        match_id, moment = await woken.next()
        assert match_id == "a"
        assert delay <= moment.now - scheduled.now < delay + 2000


async def test_what_another_replica_scheduled_a_replica_acts_on_within_a_sweep(storage: Storage) -> None:
    woken = Woken()
    async with sweeping(storage, woken, sweep_ms=50):
        elsewhere = await Deadlines("game", storage, Pace()).schedule("a", 0)
        _, moment = await woken.next()
        assert moment.now - elsewhere.now < 2000


async def test_a_replica_that_starts_acts_on_what_is_overdue(storage: Storage) -> None:
    await Deadlines("game", storage, Pace()).schedule("a", 0)
    woken = Woken()
    async with sweeping(storage, woken):
        assert (await woken.next())[0] == "a"


async def test_a_timer_of_a_week_is_no_timer_of_the_process(storage: Storage) -> None:
    # A move an hour of a match with a clock of a week must not leave a timer in memory for a week.
    deadlines = Deadlines("game", storage, Pace())
    loop: Any = asyncio.get_running_loop()
    for _ in range(50):
        await deadlines.schedule("a", 604_800_000)
    assert not [timer for timer in loop._scheduled if timer.when() > loop.time() + 3600]


async def test_two_sweepers_miss_nothing_and_share_the_work(redis_url: str, redis: Redis) -> None:
    calls: Counter[str] = Counter()
    by: Counter[int] = Counter()

    def act(n: int) -> Act:
        async def acted(match_id: str, moment: Moment) -> int | None:
            calls[match_id] += 1
            by[n] += 1
            await asyncio.sleep(0.001)
            return None

        return acted

    async with (
        replicas(redis_url, 2) as storages,
        sweeping(storages[0], act(0), deadline_shards=4, sweep_ms=20, lease_ms=300) as one,
        sweeping(storages[1], act(1), deadline_shards=4, sweep_ms=20, lease_ms=300),
    ):
        await asyncio.gather(*(one.schedule(f"match-{n}", n % 50) for n in range(400)))
        # Each is acted on at its time and, since its commit might have been late, once more when the lease ends.
        await eventually(lambda: len(calls) == 400 and min(calls.values()) >= 2)
        await eventually(lambda: _gone(redis, *(f"game:{{deadlines/{shard}}}:due" for shard in range(4))))
    assert min(by.values()) > 0


async def _gone(redis: Redis, *keys: str) -> bool:
    return not await redis.exists(*keys)


async def test_a_claim_whose_replica_died_comes_again_after_the_lease(redis_url: str, redis: Redis) -> None:
    async def never(match_id: str, moment: Moment) -> int | None:
        await asyncio.Event().wait()
        return None

    async with replicas(redis_url, 2) as (dying, living):
        claimed = Woken(never)
        deadlines = Deadlines("game", dying, Pace(lease_ms=250))
        sweep = asyncio.create_task(deadlines.sweep(claimed, asyncio.Event()))
        await deadlines.schedule("a", 0)
        _, first = await claimed.next()
        sweep.cancel()
        await asyncio.gather(sweep, return_exceptions=True)
        woken = Woken()
        async with sweeping(living, woken, sweep_ms=20, lease_ms=250):
            _, again = await woken.next()
            assert 250 <= again.now - first.now < 2000
            await eventually(lambda: _gone(redis, DUE))
        assert woken.calls.empty()


async def test_settling_sets_the_next_wake_up_or_none(storage: Storage, redis: Redis) -> None:
    # Not just scheduled, so that there is no commit to wait for.
    await redis.zadd(DUE, {"a": 1, "b": 1, "c": 1})
    until = int(await now(redis)) + 5_000

    async def answer(match_id: str, moment: Moment) -> int | None:
        if match_id == "c":
            raise NotFound("MATCH_NOT_FOUND", "it has expired")
        return until if match_id == "b" else None

    async with sweeping(storage, Woken(answer)):
        await eventually(lambda: _is(redis, {b"b": until}))


async def _is(redis: Redis, entries: dict[bytes, float]) -> bool:
    found: Any = await redis.zrange(DUE, 0, -1, withscores=True)
    return dict(found) == entries


@pytest.mark.parametrize("just_scheduled", [False, True])
@pytest.mark.parametrize("delay", [0, 1_000, 29_999, 30_000, 60_000])
async def test_settling_leaves_a_wake_up_that_was_scheduled_meanwhile(
    storage: Storage, redis: Redis, delay: int, just_scheduled: bool
) -> None:
    # The claim's own score, the lease's end, is 30 s away: the new wake-up may be earlier or later than that.
    entered, leave = asyncio.Event(), asyncio.Event()

    async def answer(match_id: str, moment: Moment) -> int | None:
        entered.set()
        await leave.wait()
        return None

    scheduler = Deadlines("game", storage, Pace())
    if just_scheduled:
        await scheduler.schedule("a", 0)
    else:
        await redis.zadd(DUE, {"a": 1})
    async with sweeping(storage, Woken(answer)):
        await entered.wait()
        scheduled = await scheduler.schedule("a", delay)
        before = await score(redis, "a")
        assert before is not None
        leave.set()
    assert await score(redis, "a") == before
    assert before <= scheduled.now + delay


async def test_a_wake_up_before_its_commit_comes_again(storage: Storage, redis: Redis) -> None:
    # The sweep is quicker than the commit that the wake-up was scheduled for: there is nothing to do yet.
    woken = Woken()
    async with sweeping(storage, woken, lease_ms=200, sweep_ms=50) as deadlines:
        scheduled = await deadlines.schedule("a", 0)
        await woken.next()
        _, again = await woken.next()
        assert again.now >= deadlines.latest(scheduled)
        await eventually(lambda: _gone(redis, DUE))


@pytest.mark.parametrize("fault", [Unavailable("STORAGE_UNAVAILABLE", "gone"), RuntimeError("a bug"), ValueError("unreadable")])
async def test_a_match_that_fails_does_not_stop_the_others_and_comes_again(storage: Storage, redis: Redis, fault: Exception) -> None:
    failed = itertools.count()

    async def answer(match_id: str, moment: Moment) -> int | None:
        if match_id == "poisoned" and next(failed) < 2:
            raise fault
        return None

    await redis.zadd(DUE, {"poisoned": 0, **{f"match-{n}": 1 for n in range(20)}})
    woken = Woken(answer)
    with capture_logs() as logs:
        async with sweeping(storage, woken, lease_ms=300, sweep_ms=30):
            await eventually(lambda: _gone(redis, DUE))
    calls = Counter(match_id for match_id, _ in (woken.calls.get_nowait() for _ in range(woken.calls.qsize())))
    assert len(calls) == 21
    assert calls["poisoned"] == 3
    assert [entry["event"] for entry in logs] == ["deadline_failed"] * 2


async def test_a_slow_match_does_not_hold_up_the_others(storage: Storage, redis: Redis) -> None:
    slow = asyncio.Event()

    async def answer(match_id: str, moment: Moment) -> int | None:
        if match_id == "slow":
            await slow.wait()
        return None

    woken = Woken(answer)
    async with sweeping(storage, woken, sweep_ms=30) as deadlines:
        await deadlines.schedule("slow", 0)
        assert (await woken.next())[0] == "slow"
        for n in range(5):
            await deadlines.schedule(f"match-{n}", 0)
            assert (await woken.next())[0] == f"match-{n}"
        slow.set()


async def test_no_more_are_acted_on_at_once_than_there_is_room_for(storage: Storage, redis: Redis) -> None:
    acting = most = 0

    async def act(match_id: str, moment: Moment) -> int | None:
        nonlocal acting, most
        acting += 1
        most = max(most, acting)
        await asyncio.sleep(0.002)
        acting -= 1
        return None

    await redis.zadd(DUE, {f"match-{n}": n for n in range(1, 501)})
    async with sweeping(storage, act):
        await eventually(lambda: _gone(redis, DUE))
    assert most == 64


async def test_what_was_begun_is_finished_when_the_replica_stops(storage: Storage, redis: Redis) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()
    until = int(await now(redis)) + 5_000

    async def act(match_id: str, moment: Moment) -> int | None:
        entered.set()
        await leave.wait()
        return until

    await redis.zadd(DUE, {"a": 1})
    stopping = asyncio.Event()
    sweep = asyncio.create_task(Deadlines("game", storage, Pace()).sweep(act, stopping))
    await entered.wait()
    stopping.set()
    await redis.zadd(DUE, {"b": 1})
    done, _ = await asyncio.wait({sweep}, timeout=0.05)
    assert not done
    leave.set()
    async with asyncio.timeout(5):
        await sweep
    assert await _is(redis, {b"a": until, b"b": 1})


# Credit.


async def test_a_pause_longer_than_an_outage_is_credited_once_by_whichever_replica(redis_url: str, redis: Redis) -> None:
    seen = int(await now(redis)) - 8_000
    await redis.hset(CLOCK, mapping={"seen": seen, "credit": 1_000})
    woken = Woken()
    await redis.zadd(DUE, {"a": 1})
    async with replicas(redis_url, 4) as storages:
        sweepers = [Deadlines("game", storage, Pace(outage_ms=5_000)) for storage in storages]
        stopping = asyncio.Event()
        with capture_logs() as logs:
            sweeps = [asyncio.create_task(sweeper.sweep(woken, stopping)) for sweeper in sweepers]
            _, moment = await woken.next()
            await eventually(lambda: all(sweeper.credit("a") for sweeper in sweepers))
            stopping.set()
            await asyncio.gather(*sweeps)
    assert moment.credit == 1_000 + moment.now - seen
    assert {sweeper.credit("a") for sweeper in sweepers} == {moment.credit}
    assert int(await redis.hget(CLOCK, "credit") or 0) == moment.credit
    assert [entry["event"] for entry in logs] == ["outage_credited"]


async def test_a_pause_that_is_no_outage_is_not_credited(storage: Storage, redis: Redis) -> None:
    await redis.hset(CLOCK, mapping={"seen": int(await now(redis)) - 4_000, "credit": 7})
    await redis.zadd(DUE, {"a": 1})
    woken = Woken()
    async with sweeping(storage, woken, outage_ms=5_000):
        _, moment = await woken.next()
    assert moment.credit == 7
    # Nor is time without any match, as long as a replica sweeps.
    async with sweeping(storage, woken, outage_ms=100, sweep_ms=20):
        for _ in range(3):
            await eventually(partial(_changed, redis, await redis.hget(CLOCK, "seen")))
    assert await redis.hget(CLOCK, "credit") == b"7"


async def _changed(redis: Redis, seen: Any) -> bool:
    return bool(await redis.hget(CLOCK, "seen") != seen)


async def test_the_first_sweep_ever_credits_nothing(storage: Storage, redis: Redis) -> None:
    await redis.zadd(DUE, {"a": 1})
    woken = Woken()
    async with sweeping(storage, woken):
        assert (await woken.next())[1].credit == 0


async def test_a_clock_of_the_storage_that_went_back_credits_nothing_and_stays_where_it_was(storage: Storage, redis: Redis) -> None:
    ahead = int(await now(redis)) + 90_000
    await redis.hset(CLOCK, mapping={"seen": ahead, "credit": 0})
    await redis.zadd(DUE, {"a": 1})
    woken = Woken()
    async with sweeping(storage, woken, outage_ms=100, sweep_ms=20):
        assert (await woken.next())[1].credit == 0
    assert int(await redis.hget(CLOCK, "seen") or 0) == ahead


async def test_a_clock_started_after_an_outage_and_before_its_credit_gets_none_of_it(storage: Storage, redis: Redis) -> None:
    # The storage is back, and the first move comes before the first sweep.
    seen = int(await now(redis)) - 8_000
    await redis.hset(CLOCK, mapping={"seen": seen, "credit": 1_000})
    woken = Woken()
    deadlines = Deadlines("game", storage, Pace(outage_ms=5_000))
    scheduled = await deadlines.schedule("a", 0)
    assert scheduled.credit == 1_000 + scheduled.now - seen
    async with sweeping(storage, woken, outage_ms=5_000):
        _, moment = await woken.next()
    assert moment.credit - scheduled.credit == moment.now - scheduled.now


# Left unscheduled.


@pytest.mark.parametrize(
    ("stored", "fresh", "kept"),
    [(1_000, 2_000, True), (1_000, 1_000, True), (1_001, 1_000, False), (900, 5_000, True), (-29_001, 5_000, False)],
)
async def test_a_wake_up_that_is_early_enough_is_kept_unless_it_is_long_past(storage: Storage, stored: int, fresh: int, kept: bool) -> None:
    # A lease is 30 s here. What is due for longer than that woke nobody: it was lost with its storage.
    assert Deadlines("game", storage, Pace()).is_kept(1_000, stored, fresh) == kept


async def test_only_a_replica_that_swept_lately_knows_the_credit_without_asking(storage: Storage, redis: Redis) -> None:
    await redis.hset(CLOCK, mapping={"seen": int(await now(redis)) - 8_000, "credit": 1_000})
    idle = Deadlines("game", storage, Pace(outage_ms=5_000))
    await idle.schedule("a", 60_000)
    assert idle.moment("a", 5) is None
    async with sweeping(storage, Woken(), outage_ms=150, sweep_ms=20) as deadlines:
        moment = await eventually(lambda: deadlines.moment("a", 5))
        assert (moment.now, moment.credit) == (5, int(await redis.hget(CLOCK, "credit") or 0))
        assert moment.credit > 8_000
    await eventually(lambda: deadlines.moment("a", 5) is None)


# Never lost.


class World:
    """One match with one clock in storage, writers who change it and sweepers who act on it, each stepped one storage call at a time.

    A writer schedules, and some time later, or never, commits what it scheduled for. A sweeper claims, some time later looks, and some
    time later ends its claim. Leases are short, so that they end meanwhile.
    """

    LEASE_MS = 40

    def __init__(self, game: Game, storage: Storage, rng: random.Random) -> None:
        self.match_id = f"{game.id}-{rng.getrandbits(64):016x}"
        # A set of deadlines of its own.
        self.owner = f"game-{self.match_id}"
        self.rng = rng
        self.storage = storage
        self.sessions = Sessions(game, storage)
        self.deadlines = Deadlines(self.owner, storage, Pace(lease_ms=self.LEASE_MS))
        options = game.codec.options_from_proto(game.message("Options")())
        self.state = game.rules.setup(options, game.info.min_seats, Chance(bytes(32))).state
        self.meta = Meta(sessions.SCHEMA, game.schema, bytes(32), 1, b"", b"", ())
        self.played: list[tuple[int, int]] = []
        self.late = 0

    async def pause(self) -> None:
        await asyncio.sleep(self.rng.choice([0, 0, 0, 0.001, 0.005, 0.03, 0.06]))

    async def commit(self, judged: int, due: int | None, latest: int | None) -> bool:
        try:
            return bool(
                await self.sessions.commit(
                    self.match_id,
                    judged=judged,
                    table=Table((Seat("ann", "Ann", due=due),)),
                    state=self.state,
                    entries=[Entry(b"")],
                    keep_seconds=60,
                    latest=latest,
                    meta=self.meta,
                )
            )
        except Unavailable:
            self.late += 1
            return False

    async def write(self) -> None:
        """A player's move, which starts a clock; its process may be slow, or die on the way."""
        try:
            judged = (await self.sessions.load(self.match_id)).version
        except NotFound:
            judged = 0
        await self.pause()
        delay = self.rng.choice([0, 0, 5, 20, 60_000])
        moment = await self.deadlines.schedule(self.match_id, delay)
        if self.rng.random() < 0.15:
            return
        await self.pause()
        await self.commit(judged, moment.now + delay, self.deadlines.latest(moment))

    async def act(self, match_id: str, moment: Moment) -> int | None:
        await self.pause()
        session: Session = await self.sessions.load(match_id)
        due = session.table.seats[0].due
        await self.pause()
        if due is not None and due <= moment.now:
            # The clock's own move ends it; sometimes it starts another.
            delay = self.rng.choice([None, 10])
            again = None if delay is None else await self.deadlines.schedule(match_id, delay)
            if again is None or delay is None:
                ended = await self.commit(session.version, None, None)
            else:
                ended = await self.commit(session.version, again.now + delay, self.deadlines.latest(again))
            if ended:
                self.played.append((session.version, due))
            session = await self.sessions.load(match_id)
            due = session.table.seats[0].due
        await self.pause()
        return due

    async def sweep_once(self) -> None:
        async with asyncio.TaskGroup() as waking:
            await self.deadlines._sweep_once(0, self.act, waking)

    async def run(self) -> None:
        async def writer() -> None:
            for _ in range(self.rng.randrange(1, 4)):
                await self.write()
                await self.pause()

        async def sweeper() -> None:
            for _ in range(self.rng.randrange(3, 12)):
                try:
                    async with asyncio.timeout(self.rng.choice([0.01, 1, 1, 1])):
                        await self.sweep_once()
                except TimeoutError:
                    pass  # it died, its claim with it
                await self.pause()

        await asyncio.gather(writer(), writer(), sweeper(), sweeper())
        # Now all is quiet: whatever is due is acted on, and all that is not stands in the deadlines.
        self.rng = random.Random(0)
        give_up = time.monotonic() + 5
        while True:
            await self.sweep_once()
            try:
                due = (await self.sessions.load(self.match_id)).table.seats[0].due
            except NotFound:
                return
            at = await self.storage.redis.zscore(f"{self.owner}:{{deadlines/0}}:due", self.match_id)
            if due is None:
                break
            assert at is not None, "the wake-up is lost"
            if due - await now(self.storage.redis) > 10_000 and at <= due:
                break
            assert time.monotonic() < give_up, f"due {due}, woken {at}"
            await asyncio.sleep(0.002)
        assert len({version for version, _ in self.played}) == len(self.played)


async def test_a_wake_up_is_never_lost_however_writers_and_sweepers_interleave(game: Game, storage: Storage) -> None:
    worlds = [World(game, storage, random.Random(seed)) for seed in range(120)]
    for at in range(0, len(worlds), 20):
        await asyncio.gather(*(world.run() for world in worlds[at : at + 20]))
    # It is not that nothing happened.
    assert sum(len(world.played) for world in worlds) > 30
    assert sum(world.late for world in worlds) > 5
