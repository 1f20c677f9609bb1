"""What a viewer receives does not depend on what it may not know: not its bytes, not its length, not what is refused or how.

Two matches that differ only in what a viewer may not know (`hidden.py` of the game makes the second of the first) are told to that viewer
in the same bytes: by the rules, and by the service over its sockets, whatever the viewer asks and whatever others do. Times and the random
marks in cursors differ by nature, so both are pinned; nothing is masked in what is compared. How long an answer takes is not looked at.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import random
import sys
import urllib.request
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from redis.asyncio import Redis

from deploy.local import ROOT
from deploy.processes import LOCALHOST, Child, free_port
from gloaming.table.v1 import table_pb2
from services.kit import messages as kit_messages
from services.kit import sessions as kit_sessions
from services.kit.chance import Chance
from services.kit.game import Game, Value
from services.kit.presence import Presence
from services.kit.sessions import Listed, Meta, Round, Seat, Sessions
from services.kit.sessions import Table as Seats
from services.kit.storage import Script, Storage
from tests import simulator
from tests.harness import IN_REAL_TIME, Keys, Table, calm, eventually, new_match_id, paced, play_out, quick, table
from tests.simulator import hidden, seed, seen, tables, view_bytes, viewers
from tests.wire import Answer, Wire, take

T = TypeVar("T")

POSITIONS = 100  # judged by the rules alone
PAIRS = 10  # of matches that differ, told over sockets; each to every viewer
HISTORY = 100  # events, the latest of a match, that are told again
PLAYED = 3  # whole matches searched for their seeds

pytestmark = pytest.mark.scenario(7)


# ------------------------------------------------------------------ by the rules


def test_views_moves_and_refusals_do_not_depend_on_what_a_viewer_may_not_know(game: Game) -> None:
    for options, seats, state, rng in positions(game):
        told_the_same(game, options, seats, state, rng)


def told_the_same(game: Game, options: Value, seats: int, state: Value, rng: random.Random) -> None:
    pool = simulator.pool(game, options, seats, matches=1)
    neighbours = simulator.Neighbours(game, pool)
    for viewer in viewers(seats):
        other = hidden(game).vary(state, viewer, rng)
        assert view_bytes(game, other, viewer) == view_bytes(game, state, viewer)
        assert game.rules.to_move(other) == game.rules.to_move(state)
        assert game.rules.outcome(other) == game.rules.outcome(state)
        assert simulator.window(game, other) == simulator.window(game, state)
        ended = game.rules.end_early(state), game.rules.end_early(other)
        assert view_bytes(game, ended[0], viewer) == view_bytes(game, ended[1], viewer)
        if viewer is None:
            continue
        assert list(game.rules.legal(other, viewer)) == list(game.rules.legal(state, viewer))
        # Each once, however many seats may make it.
        moves = list({simulator.move_bytes(game, move): move for seat in range(seats) for move in game.rules.legal(state, seat)}.values())
        # Little is told to a seat that is not to move, but that its turn has not come.
        starts = some(moves, 40 if viewer in game.rules.to_move(state) else 2, rng)
        near = [move for start in starts for move in neighbours.of(start)]
        for move in moves + near + some(pool, 100, rng):
            one, two = (game.rules.apply(secret, viewer, move, Chance(seed("apply"))) for secret in (state, other))
            assert simulator.is_refusal(one) == simulator.is_refusal(two)
            if simulator.is_refusal(one) and simulator.is_refusal(two):
                assert (one.reason, one.detail) == (two.reason, two.detail)


def test_what_is_seen_of_a_move_does_not_depend_on_what_a_viewer_may_not_know(game: Game) -> None:
    twins = 0
    for _, seats, state, rng in positions(game):
        for mover, viewer in itertools.product(game.rules.to_move(state), viewers(seats)):
            for move in some(game.rules.legal(state, mover), 5, rng):
                if viewer != mover and (twin := a_twin(game, state, mover, move, viewer, rng)):
                    other, other_move = twin
                    step = game.rules.apply(state, mover, move, Chance(seed("one")))
                    other_step = game.rules.apply(other, mover, other_move, Chance(seed("two")))
                    assert seen(game, other_step.events, viewer) == seen(game, step.events, viewer)
                    assert view_bytes(game, other_step.state, viewer) == view_bytes(game, step.state, viewer)
                    twins += 1
    assert twins > POSITIONS


@pytest.mark.parametrize("game", IN_REAL_TIME, ids=lambda game: game.id)
def test_what_is_seen_of_the_end_of_a_window_does_not_depend_on_what_a_viewer_may_not_know(game: Game) -> None:
    """Whoever sees the same before and after was told the same in between."""
    twins = 0
    for _, seats, state, rng in positions(game):
        if simulator.window(game, state) is None:
            continue
        step = simulator.window_ends(game, state, Chance(seed("one")))
        for viewer in viewers(seats):
            for _ in range(10):
                other = hidden(game).vary(state, viewer, rng)
                other_step = simulator.window_ends(game, other, Chance(seed("two")))
                if other != state and view_bytes(game, other_step.state, viewer) == view_bytes(game, step.state, viewer):
                    assert seen(game, other_step.events, viewer) == seen(game, step.events, viewer)
                    twins += 1
    assert twins > POSITIONS


def test_what_varies_does_vary(game: Game) -> None:
    """Else the tests above would prove nothing."""
    rng = random.Random(3)
    for options, seats in tables(game):
        deal = next(simulator.random_match(game, options, seats, 0)).state
        differing = dict.fromkeys(viewers(seats), 0)
        secrets = 0
        for turn in itertools.islice(simulator.random_match(game, options, seats, 0), 40):
            for viewer in differing:
                differing[viewer] += hidden(game).vary(turn.state, viewer, rng) != turn.state
                secrets += view_bytes(game, turn.state, viewer) != view_bytes(game, turn.state, None)
        if secrets:
            assert differing[None], "some seat sees what spectators do not, and vary leaves it as it is"
        if any(view_bytes(game, deal, viewer) != view_bytes(game, deal, None) for viewer in differing):
            assert all(differing.values()), f"vary leaves all as it is: {differing}"


def some(items: Iterable[T], most: int, rng: random.Random) -> list[T]:
    """At most so many of the items."""
    items = list(items)
    return rng.sample(items, min(most, len(items)))


def positions(game: Game) -> Iterator[tuple[Value, int, Value, random.Random]]:
    """Matches that are under way, the same ones in every run: options, seats, state, and dice to go on with."""
    for number in range(POSITIONS):
        rng = random.Random(f"position/{number}")
        options, seats = rng.choice(tables(game))
        turns = list(simulator.random_match(game, options, seats, f"position/{number}"))
        yield options, seats, rng.choice(turns[:-1]).state, rng


def a_twin(game: Game, state: Value, mover: int, move: Value, viewer: int | None, rng: random.Random) -> tuple[Value, Value] | None:
    """Another state that the viewer cannot tell from the first, and a move there that looks to it like the one here, if there is one."""
    look = hidden(game).look
    if look(state, mover, move) is None:
        return None
    other = hidden(game).vary(state, viewer, rng)
    alike = [candidate for candidate in game.rules.legal(other, mover) if look(other, mover, candidate) == look(state, mover, move)]
    return (other, rng.choice(alike)) if alike else None


# ------------------------------------------------------------------ by the service


@dataclass(frozen=True)
class Plan:
    """What happens in both matches: what the viewer tries, and what others do in each."""

    game: Game
    match_id: str
    options: Value
    seats: int
    events: list[Value]
    viewer: int | None
    illegal: list[Value]
    own: Value | None
    mover: int | None


@pytest.fixture
def pinned(game: Game, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """Pins marks and times; called, it begins anew.

    Of marks there are then two: of what is written first, and of what comes later, in real time by as many calls as it takes. Times
    are told in steps of twenty seconds from the first one told. When it is told who watches is left to chance, so that it is not.
    A reaction's time since the reveal, which storage alone takes, is always 0.
    """
    marks = itertools.count()
    first: list[int] = []

    def restart() -> None:
        nonlocal marks
        marks = itertools.count(1)
        first.clear()

    def timestamp(ms: int) -> Timestamp:
        first[:] = first or [ms]
        return Timestamp(seconds=1_000_000 + round((ms - first[0]) / 20_000))

    monkeypatch.setattr(kit_sessions, "secrets", SimpleNamespace(token_bytes=lambda size: min(next(marks), 2).to_bytes(size, "big")))
    monkeypatch.setattr(kit_messages, "_timestamp", timestamp)
    monkeypatch.setattr(Presence, "look", lambda *_: None)
    if game.real_time:
        reactions = game.real_time.reactions
        script, taken = tmp_path / "react.lua", "local received = math.max(0, now - began)"
        assert taken in reactions.script.source
        script.write_text(reactions.script.source.replace(taken, "local received = 0"))
        monkeypatch.setattr(type(reactions), "script", Script(script))
    return restart


@pytest.fixture
async def elsewhere(game: Game, keys: Keys, redis_url: str, redis: Redis) -> AsyncIterator[Table]:
    """Another replica of the game's service."""
    async with table(game, keys, redis_url) as running:
        yield running


@pytest.fixture
async def storage(redis_url: str) -> AsyncIterator[Storage]:
    storage = Storage(redis_url)
    yield storage
    await storage.close()


async def test_a_viewer_is_told_the_same_bytes_whatever_it_may_not_know(
    there: Table, elsewhere: Table, redis: Redis, storage: Storage, pinned: Callable[[], None]
) -> None:
    game = there.game
    # Each of both on a replica of its own, which may keep what it knows of a match.
    both = {here: People(here) for here in (there, elsewhere)}
    compared = twins = 0
    for number, (its_options, seats) in zip(range(PAIRS), itertools.cycle(tables(game)), strict=False):
        # Nothing happens by itself while it is told.
        options = game.codec.options_from_proto(paced(game, its_options, calm(game)))
        rng = random.Random(f"pairs/{number}")
        turns = list(simulator.random_match(game, options, seats, f"pairs/{number}"))
        at = rng.choice([n for n, turn in enumerate(turns[:-1]) if is_as_committed(game, turn.state)])
        state, events = turns[at].state, [event for turn in turns[: at + 1] for event in turn.events][-HISTORY:]
        pool = simulator.pool(game, options, seats, matches=1)
        for viewer in viewers(seats):
            others = [seat for seat in game.rules.to_move(state) if seat != viewer]
            mover = rng.choice(others) if others else None
            move = rng.choice(list(game.rules.legal(state, mover))) if mover is not None else None
            twin = a_twin(game, state, mover, move, viewer, rng) if mover is not None else None
            if twin is None:
                mover, twin = None, (hidden(game).vary(state, viewer, rng), None)
            other, other_move = twin
            plan = Plan(
                game,
                new_match_id(game),
                options,
                seats,
                events,
                viewer,
                illegal=refused(game, state, viewer, pool, rng) if viewer is not None else pool[:2],
                own=a_quiet_move(game, state, other, viewer) if mover is None else None,
                mover=mover,
            )
            told = []
            for (here, people), secret, its_move in zip(both.items(), (state, other), (move, other_move), strict=True):
                await redis.flushdb()
                pinned()
                await write(here, storage, plan, secret)
                told.append([line async for line in tell(people, plan, its_move)])
            for one, two in zip(*told, strict=True):
                assert one == two, f"viewer {viewer} can tell: {one[0]}"
            compared += len(told[0])
            twins += mover is not None
    for people in both.values():
        await people.close()
    assert compared > 100 * PAIRS
    assert twins, "no move of another seat was compared"


class People:
    """Two connections for every seat, and two of a spectator."""

    def __init__(self, there: Table) -> None:
        self._there = there
        self._wires: dict[int | None, tuple[Wire, Wire]] = {}

    def of(self, viewer: int | None) -> tuple[Wire, Wire]:
        if viewer not in self._wires:
            token = self._there.keys.token(name(viewer))
            first, second = (Wire(self._there.game, self._there.addresses[0], token) for _ in range(2))
            self._wires[viewer] = first, second
        return self._wires[viewer]

    async def close(self) -> None:
        for pair in self._wires.values():
            for wire in pair:
                await wire.close()


def name(viewer: int | None) -> str:
    return "spectator" if viewer is None else f"player{viewer}"


def is_as_committed(game: Game, state: Value) -> bool:
    """Whether a commit alone leaves a match so: in real time nobody has reacted in the present round, or may do so too late."""
    if not game.real_time:
        return True
    reactions = game.real_time.reactions
    may_react = any(reactions.is_reaction(move) for seat in game.rules.to_move(state) for move in game.rules.legal(state, seat))
    return not reactions.known(state) and (not may_react or bool(reactions.open(state)))


async def write(there: Table, storage: Storage, plan: Plan, state: Value) -> None:
    """Writes a match as it stands, its players at their seats and all that happened in its stream."""
    game = plan.game
    await Sessions(game, storage).commit(
        plan.match_id,
        judged=0,
        meta=Meta(
            kit_schema=kit_sessions.SCHEMA,
            game_schema=game.schema,
            seed=seed("written"),
            order=table_pb2.Seating.AS_LISTED,
            options=game.codec.options_to_proto(plan.options).SerializeToString(),
            settings=table_pb2.Settings(move_seconds=3600, spectators=True).SerializeToString(),
            listed=tuple(Listed(name(seat), 0, name(seat)) for seat in range(plan.seats)),
        ),
        table=Seats(tuple(Seat(name(seat), name(seat)) for seat in range(plan.seats))),
        state=state,
        entries=kit_messages.Messages(game).entries(plan.events, plan.seats),
        keep_seconds=600,
        round_=there.replicas[0]._matches._round(Round(), None, state)[0],
    )


def refused(game: Game, state: Value, seat: int, pool: list[Value], rng: random.Random) -> list[Value]:
    """Moves that the seat may not make now, some for every reason."""
    by_reason: dict[str, list[Value]] = defaultdict(list)
    neighbours = simulator.Neighbours(game, pool)
    legal = [move for mover in game.rules.to_move(state) for move in game.rules.legal(state, mover)]
    near = [move for start in some(legal, 10, rng) for move in neighbours.of(start)]
    for move in [*some(pool, 100, rng), *some(near, 500, rng), *legal]:
        result = game.rules.apply(state, seat, move, Chance(seed("refused")))
        if simulator.is_refusal(result) and len(by_reason[str(result.reason)]) < 3:
            by_reason[str(result.reason)].append(move)
    return [move for moves in by_reason.values() for move in moves]


def a_quiet_move(game: Game, state: Value, other: Value, viewer: int | None) -> Value | None:
    """A move of the viewer's own that tells it nothing new, such as one that draws no card."""
    if viewer is None:
        return None
    for move in game.rules.legal(state, viewer):
        steps = [game.rules.apply(secret, viewer, move, Chance(seed("quiet"))) for secret in (state, other)]
        quiet = seen(game, steps[0].events, viewer) == seen(game, steps[1].events, viewer)
        if quiet and not simulator.is_over(game, steps[0].state):
            return move
    return None


async def tell(people: People, plan: Plan, others_move: Value | None) -> AsyncIterator[tuple[str, Answer | bytes]]:
    """Everything that the viewer can get out of a match: reads, refusals, and what it hears of what others do."""
    game, match_id = plan.game, plan.match_id
    first, second = people.of(plan.viewer)

    async def both(what: str, verb: str, **fields: Any) -> tuple[str, Answer | bytes]:
        """Asked twice, by two connections of the same player: they get the same."""
        one = await first.call(verb, match_id=match_id, **fields)
        two = await second.call(verb, match_id=match_id, **fields)
        assert one == two, f"two connections of one player are told differently: {what}"
        return f"{what}: {verb}", one

    async def read(when: str) -> AsyncIterator[tuple[str, Answer | bytes]]:
        yield await both(when, "GetMatch")
        yield await both(when, "ListMoves")
        yield await both(when, "ListEvents")
        yield await both(when, "ListEvents", page_size=3)
        yield await both(when, "ListEvents", after_cursor="AAAAAQAAAAAAAAAB")
        yield await both(when, "ListEvents", after_cursor="AAAAAQAAAAAAAAAA")
        yield await both(when, "GetRecord")

    async for line in read("at first"):
        yield line
    for move in plan.illegal:
        yield await both(f"refused {move}", "SubmitMove", move=game.codec.move_to_proto(move))
    yield await both("unreadable", "SubmitMove", move=game.message("Move")())
    for move in plan.illegal[:1]:
        for fields in ({"expected_version": 9}, {"request_id": "\n"}, {"request_id": "once"}):
            yield await both(f"{fields}", "SubmitMove", move=game.codec.move_to_proto(move), **fields)

    async with aclosing(first.watch(match_id)) as watching, aclosing(second.watch(match_id, "AAAAAQAAAAAAAAAB")) as resuming:
        (snapshot,) = await take(watching, 1)
        yield "snapshot", snapshot
        history = await take(resuming, len(plan.events) - 1)
        for message in history:
            yield "watched from the first event on", message

        if plan.mover is not None:
            mover, again = people.of(plan.mover)
            accepted = await mover.call("SubmitMove", match_id=match_id, move=game.codec.move_to_proto(others_move))
            events = await led_to(mover, match_id, accepted)
            heard = await take(watching, len(events))
            assert await take(resuming, len(events)) == heard
            for message in heard:
                yield "heard of another's move", message
            await same_for_both(mover, again, match_id, events)
        elif plan.own is not None:
            # Two connections cannot both make it; the second hears of it.
            accepted = await first.call("SubmitMove", match_id=match_id, move=game.codec.move_to_proto(plan.own))
            yield "own move", accepted
            events = await led_to(first, match_id, accepted)
            heard = await take(resuming, len(events))
            assert [game.message("WatchMatchResponse")(event=event).SerializeToString() for event in events] == heard
            for message in heard:
                yield "heard of the own move", message
            await same_for_both(first, second, match_id, events)
    async for line in read("afterwards"):
        yield line
    yield "resigned", await first.call("Resign", match_id=match_id, request_id="resign")
    yield "resigned again", await second.call("Resign", match_id=match_id, request_id="resign")
    yield "resigned anew", await second.call("Resign", match_id=match_id)


async def led_to(wire: Wire, match_id: str, accepted: Answer) -> list[Any]:
    """All that a move led to: the events of its answer, and in real time what is decided later, and the end of the round if it was that."""
    answer = wire.message("SubmitMove", accepted)
    events = list(answer.events)

    async def since() -> list[Any]:
        # To ask for the match has a round closed that is to be closed.
        await wire.call("GetMatch", match_id=match_id)
        listed = list(wire.message("ListEvents", await wire.call("ListEvents", match_id=match_id, page_size=500)).events)
        cursors = [event.cursor for event in listed]
        return listed[cursors.index(events[0].cursor) if events else cursors.index(answer.cursor) + 1 :]

    found: list[Any] = await eventually(since)
    assert found[: len(events)] == events
    assert wire.game.real_time or found == events
    return found


async def same_for_both(first: Wire, second: Wire, match_id: str, events: list[Message]) -> None:
    """Whoever moved is told by its second connection what the first was told, and no more."""
    one, two = [await wire.call("GetMatch", match_id=match_id) for wire in (first, second)]
    assert one == two
    listed = second.message("ListEvents", await second.call("ListEvents", match_id=match_id, page_size=500)).events
    assert list(listed[-len(events) :]) == list(events)


@pytest.mark.rule("ALL-01")
async def test_whoever_resigned_is_told_what_spectators_are_also_on_a_stream_that_was_open_before(
    there: Table, pinned: Callable[[], None]
) -> None:
    if there.game.info.max_seats < 3:
        pytest.skip("in a match of two it ends it")
    players = [name(seat) for seat in range(max(3, there.game.info.min_seats))]
    match_id = await there.create(*players)
    people = People(there)
    (gone, _), (spectator, _) = people.of(0), people.of(None)
    async with aclosing(gone.watch(match_id)) as open_before, aclosing(spectator.watch(match_id)) as watching:
        await take(open_before, 1)
        await take(watching, 1)
        resigned = gone.message("Resign", await gone.call("Resign", match_id=match_id))
        await play_out(match_id, *map(there.player, players[1:]))
        async with asyncio.timeout(10):
            heard = [message async for message in open_before]
            public = [message async for message in watching]
    assert len(public) > len(resigned.events)
    assert heard == public
    for verb in ("GetMatch", "ListEvents", "GetRecord"):
        assert await gone.call(verb, match_id=match_id) == await spectator.call(verb, match_id=match_id)
    await people.close()


# ------------------------------------------------------------------ canaries


@asynccontextmanager
async def process(game: Game, keys: Keys, redis_url: str, log: Path) -> AsyncIterator[tuple[str, str]]:
    """The game's service as a process of its own that logs all it can: where it listens, and where its metrics are."""
    listen, page = f"{LOCALHOST}:{free_port()}", f"{LOCALHOST}:{free_port()}"
    settings = {
        "REDIS_URL": redis_url,
        "GLOAMING_JWKS_FILE": str(keys.jwks),
        "GLOAMING_LISTEN": listen,
        "GLOAMING_METRICS_LISTEN": page,
        "GLOAMING_LOG_LEVEL": "DEBUG",
        "GLOAMING_BOT_DELAY_MS": "0",
        "GLOAMING_DRAIN_SECONDS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    child = Child(game.id, [sys.executable, "-m", f"services.{game.id}"], log, {**os.environ, **settings}, ROOT)
    child.start()
    try:
        yield listen, f"http://{page}/metrics"
    finally:
        child.stop()


async def test_a_seed_appears_in_no_frame_body_error_log_line_or_metric(
    game: Game, keys: Keys, redis_url: str, redis: Redis, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    seeds, taken = list[bytes](), list[bytes]()
    most = max(3, game.info.min_seats)
    async with process(game, keys, redis_url, log) as (listen, page):
        wires = {
            who: Wire(game, listen, keys.token(who, scope="play host"))
            for who in ("host", "spectator", *(name(seat) for seat in range(most)))
        }
        for number, (options, seats) in enumerate(itertools.cycle(reversed(tables(game)))):
            # So many, or more where they are short.
            if number >= PLAYED and sum(len(line) for wire in wires.values() for line in wire.taken) > 100_000:
                break
            match_id = new_match_id(game)
            await play_whole(game, wires, match_id, options, min(seats, most), random.Random(number))
            record = game.message("Record").FromString((await Wire.call(wires["host"], "GetRecord", match_id=match_id)).body)
            seeds.append(bytes.fromhex(record.seed))
            # The record alone may name it.
            assert any(form in wires["host"].taken[-1] for form in forms(bytes.fromhex(record.seed)))
            wires["host"].taken.pop()
            await break_it(redis, game, match_id, wires)
        metrics = await asyncio.to_thread(lambda: urllib.request.urlopen(page).read())
        taken = [line for wire in wires.values() for line in wire.taken]
        for wire in wires.values():
            await wire.close()
    logged = log.read_bytes()
    assert b"gloaming_rpcs_total" in metrics
    for event in (b"call_failed", b"match_unreadable"):
        assert event in logged, "no fault was logged, so what faults log was not looked at"
    assert len(set(seeds)) == len(seeds) >= PLAYED
    haystack = b"\n".join([*taken, metrics, logged])
    assert len(haystack) > 100_000
    for secret in seeds:
        assert [form for form in forms(secret) if form in haystack] == []


async def play_whole(game: Game, wires: dict[str, Wire], match_id: str, options: Value, seats: int, rng: random.Random) -> None:
    """A match played at random while everybody watches, asks for all there is, and tries what is refused."""
    players = [f"player{seat}" for seat in range(seats)]
    await wires["host"].call(
        "CreateMatch",
        match_id=match_id,
        options=paced(game, options, quick(game)),
        settings=table_pb2.Settings(move_seconds=600),
        seats=[table_pb2.SeatRequest(player=player) for player in players],
    )

    async def watch(wire: Wire, after: str) -> int:
        return len([body async for body in wire.watch(match_id, after)])

    watchers = [asyncio.create_task(watch(wires[who], after)) for who in ("spectator", *players) for after in ("", "AAAAAAAAAAAAAAAA")]
    pool = simulator.pool(game, options, seats, matches=1)
    for _ in range(simulator.ENDLESS):
        for player in players:
            wire = wires[player]
            await wire.call("GetMatch", match_id=match_id)
            await wire.call("SubmitMove", match_id=match_id, move=game.codec.move_to_proto(rng.choice(pool)), request_id=f"{rng.random()}")
            if moves := wire.message("ListMoves", await wire.call("ListMoves", match_id=match_id)).moves:
                await wire.call("SubmitMove", match_id=match_id, move=rng.choice(moves))
        spectator = wires["spectator"]
        record = await spectator.call("GetRecord", match_id=match_id)
        if spectator.message("GetMatch", await spectator.call("GetMatch", match_id=match_id)).status == table_pb2.FINISHED:
            if record.code == "OK":
                spectator.taken.remove(record.everything)
            break
        assert record.code == "FAILED_PRECONDITION"
        await spectator.call("ListEvents", match_id=match_id)
    async with asyncio.timeout(10):
        assert all(await asyncio.gather(*watchers))


async def break_it(redis: Redis, game: Game, match_id: str, wires: dict[str, Wire]) -> None:
    """Spoils what is stored of a match, the seed still in it, and asks for it: it says so, or that it is our fault, without saying what."""
    key = f"{game.id}:{{{match_id}}}:match"
    damaged = ("UNAVAILABLE", "what is stored of this match is damaged; its operator has to see to it")
    ours = ("INTERNAL", "this is our fault; it has been logged")
    for field, said in (("meta", damaged), ("state", damaged), ("table", damaged), ("version", ours)):
        whole = await in_redis(redis.hget(key, field))
        for spoilt in (whole[:-3] or b"x", whole + b"x" + whole, b"\xc1" + whole):
            await in_redis(redis.hset(key, field, spoilt))
            answer = await wires["spectator"].call("GetMatch", match_id=match_id)
            assert (answer.code, answer.detail) == said
        await in_redis(redis.hset(key, field, whole))


async def in_redis(command: Any) -> Any:
    """redis-py says of its commands that they may be done already."""
    return await command


def forms(secret: bytes) -> Iterator[bytes]:
    """How a part of a secret could be written: raw, as numbers, in hexadecimal, as Python or JSON would, in base64 wherever it begins."""
    for at in range(0, len(secret), 8):
        part = secret[at : at + 8]
        yield part
        yield part.hex().encode()
        yield part.hex().upper().encode()
        yield ", ".join(map(str, part)).encode()
        for text in (repr(part)[2:-1], part.decode("latin-1"), part.decode("utf-8", "backslashreplace")):
            yield text.encode()
            yield json.dumps(text)[1:-1].encode()
            yield repr(text)[1:-1].encode()
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            for offset in range(3):
                # Without the characters that also hold bits of its neighbours.
                yield encode(bytes(offset) + part)[(offset * 8 + 5) // 6 : (offset + len(part)) * 8 // 6]
