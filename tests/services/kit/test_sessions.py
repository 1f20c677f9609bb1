from __future__ import annotations

import asyncio
import dataclasses
import time
from typing import Any

import msgspec
import pytest
from redis.asyncio import Redis

from services.kit import sessions
from services.kit.chance import Chance
from services.kit.cursor import BEGINNING, Cursor
from services.kit.errors import NotFound, Unavailable
from services.kit.game import Game
from services.kit.sessions import (
    Answer,
    Answered,
    Bell,
    Entry,
    Listed,
    Meta,
    Outcome,
    Placed,
    Present,
    Seat,
    Sessions,
    Table,
    answer_for,
    read_bell,
)
from services.kit.storage import Script, Storage
from tests.harness import EVERY_GAME, eventually

ID = f"{EVERY_GAME[0].id}-abcdefgh"


def whole_of(version: int) -> Answered:
    """Everything that a version made."""
    return Answered(version, 0, 999, "")


TABLE = Table((Seat("ann", "Ann", due=5), Seat("", "Bot", bot=1)), credit=7)


@pytest.fixture
def matches(game: Game, storage: Storage) -> Sessions:
    return Sessions(game, storage)


@pytest.fixture
def state(game: Game) -> Any:
    options = game.codec.options_from_proto(game.message("Options")())
    return game.rules.setup(options, game.info.min_seats, Chance(bytes(32))).state


@pytest.fixture
def meta(game: Game) -> Meta:
    return Meta(
        kit_schema=sessions.SCHEMA,
        game_schema=game.schema,
        seed=b"s" * 32,
        order=1,
        options=b"",
        settings=b"",
        listed=(Listed("ann", 0, "Ann"), Listed("", 1, "Bot")),
    )


async def commit(matches: Sessions, state: Any, judged: int, *entries: str, **more: Any) -> tuple[Placed, ...] | None:
    placed = [Entry(entry.encode()) for entry in entries or (f"event {judged + 1}",)]
    bell = await matches.commit(ID, **{"judged": judged, "table": TABLE, "state": state, "entries": placed, "keep_seconds": 60, **more})
    return bell.placed if bell else None


async def dump(redis: Redis) -> dict[Any, Any]:
    return {key: await redis.dump(key) for key in await redis.keys()}


async def test_what_is_committed_is_loaded(matches: Sessions, state: Any, meta: Meta, redis: Redis) -> None:
    placed = await commit(matches, state, 0, "one", "two", meta=meta)
    assert placed is not None
    session = await matches.load(ID)
    assert (session.match_id, session.version, session.meta, session.table, session.state) == (ID, 1, meta, TABLE, state)
    assert session.cursor == placed[-1].cursor
    assert session.answer is None
    seconds, micros = await redis.time()
    assert abs(session.now - (seconds * 1000 + micros / 1000)) < 2000
    outcome = Table(TABLE.seats, 9, Outcome(1, (2, 1)))
    await commit(matches, state, 1, table=outcome)
    session = await matches.load(ID)
    assert (session.version, session.meta, session.table) == (2, meta, outcome)


async def test_a_match_that_is_not_there_is_not_found(matches: Sessions) -> None:
    with pytest.raises(NotFound):
        await matches.load(ID)
    assert await matches.entries(ID, BEGINNING) == []


async def test_of_many_commits_on_one_version_one_is_made(matches: Sessions, state: Any, meta: Meta) -> None:
    await commit(matches, state, 0, meta=meta)
    for version in range(1, 6):
        made = await asyncio.gather(*(commit(matches, state, version, f"{version}/{n}") for n in range(10)))
        (placed,) = [placed for placed in made if placed]
        assert [there.entry.public for there in await matches.made_by(ID, whole_of(version + 1))] == [placed[0].entry.public]
    assert (await matches.load(ID)).version == 6


@pytest.mark.parametrize("judged", [0, 1, 3, 9])
async def test_a_commit_that_lost_changes_nothing(matches: Sessions, state: Any, meta: Meta, redis: Redis, judged: int) -> None:
    await commit(matches, state, 0, meta=meta)
    await commit(matches, state, 1, answer=Answer("ann:SubmitMove:1", "f"))
    before = await dump(redis)
    assert len(before) == 3
    expiry = await redis.pexpiretime(f"{matches.bell(ID).removesuffix('bell')}match")
    lost = await commit(
        matches, state, judged, "other", meta=meta, table=Table(()), answer=Answer("bob:SubmitMove:1", "f"), keep_seconds=9_999
    )
    assert lost is None
    assert await dump(redis) == before
    assert await redis.pexpiretime(f"{matches.bell(ID).removesuffix('bell')}match") == expiry


async def test_a_commit_that_comes_too_late_changes_nothing(matches: Sessions, state: Any, meta: Meta, redis: Redis) -> None:
    await commit(matches, state, 0, meta=meta)
    before = await dump(redis)
    now = (await matches.load(ID)).now
    with pytest.raises(Unavailable):
        await commit(matches, state, 1, latest=now - 1)
    assert await dump(redis) == before
    assert await commit(matches, state, 1, latest=now + 10_000)


class Twice(Storage):
    """Sends each script twice, as redis-py does where the first answer is lost, and lets something happen between the two."""

    between: Any = None

    async def run(self, script: Script, keys: Any, args: Any) -> Any:
        first = await super().run(script, keys, args)
        if script.verb == "commit" and self.between:
            act, self.between = self.between, None
            await act()
        second = await super().run(script, keys, args)
        assert script.verb != "commit" or second == first
        return second


@pytest.mark.scenario(3)
@pytest.mark.parametrize("others", [0, 1, 2])
async def test_a_commit_sent_twice_is_made_once_also_when_others_followed_meanwhile(
    game: Game, redis_url: str, redis: Redis, state: Any, meta: Meta, matches: Sessions, others: int
) -> None:
    async def follow() -> None:
        for n in range(others):
            assert await commit(matches, state, 2 + n)

    storage = Twice(redis_url)
    twice = Sessions(game, storage)
    assert await commit(twice, state, 0, meta=meta)
    storage.between = follow
    placed = await commit(twice, state, 1, "mine", "also mine", answer=Answer("ann:SubmitMove:1", "f"))
    assert placed is not None
    assert await matches.made_by(ID, whole_of(2)) == list(placed)
    assert (await matches.load(ID)).version == 2 + others
    assert len(await matches.entries(ID, BEGINNING)) == 3 + others
    await storage.close()


async def test_every_key_of_a_match_expires(matches: Sessions, state: Any, meta: Meta, redis: Redis) -> None:
    for judged in range(3):
        await commit(matches, state, judged, meta=meta, keep_seconds=1000 + judged, answer=Answer(f"ann:SubmitMove:{judged}", "f"))
        keys = await redis.keys()
        assert len(keys) == 3
        for key in keys:
            assert 990_000 < await redis.pttl(key) - judged * 1000 <= 1_000_000
    await commit(matches, state, 3, keep_seconds=0.02)
    await asyncio.sleep(0.03)
    assert await redis.keys() == []


async def test_all_keys_of_a_match_are_in_one_slot(matches: Sessions, state: Any, meta: Meta, redis: Redis, game: Game) -> None:
    await commit(matches, state, 0, meta=meta, answer=Answer("ann:SubmitMove:1", "f"))
    keys: list[Any] = [*await redis.keys(), matches.bell(ID).encode()]
    assert all(key.startswith(f"{game.id}:{{{ID}}}:".encode()) for key in keys)


async def test_entries_are_read_in_order_from_any_place(matches: Sessions, state: Any, meta: Meta) -> None:
    whole: list[Placed] = []
    for version in range(12):
        placed = await commit(matches, state, version, *(f"{version}/{n}" for n in range(version % 3 + 9)), meta=meta)
        assert placed is not None
        whole += placed
    assert await matches.entries(ID, BEGINNING) == whole
    assert [there.time for there in whole] == sorted(there.time for there in whole)
    for at in (0, 8, 9, 30, len(whole) - 1):
        assert await matches.entries(ID, whole[at].cursor) == whole[at + 1 :]
        assert await matches.entries(ID, whole[at].cursor, 5) == whole[at + 1 : at + 6]
    assert await matches.made_by(ID, whole_of(12)) == [there for there in whole if there.cursor.version == 12]
    assert await matches.made_by(ID, whole_of(99)) == []


async def test_a_place_fits_the_history_that_it_belongs_to_and_no_other(matches: Sessions, state: Any, meta: Meta) -> None:
    placed = await commit(matches, state, 0, "a", "b", meta=meta)
    assert placed is not None
    assert await matches.fits(ID, BEGINNING)
    for there in placed:
        assert await matches.fits(ID, there.cursor)
    version, n, mark = placed[1].cursor
    for other in (Cursor(version, n, b"other!"), Cursor(version, n + 1, mark), Cursor(version + 1, n, mark), Cursor(0, 0, mark)):
        assert not await matches.fits(ID, other)


async def test_a_retry_gets_the_first_answer(matches: Sessions, state: Any, meta: Meta) -> None:
    answer = answer_for("SubmitMove", "ann", "first try", b"body")
    assert answer is not None
    await commit(matches, state, 0, meta=meta)
    assert (await matches.load(ID, answer)).answer is None
    await commit(matches, state, 1, answer=answer)
    await commit(matches, state, 2)
    assert (await matches.load(ID, answer)).answer == (2, 0, 0, answer.fingerprint)
    assert (await matches.load(ID)).answer is None
    assert answer_for("SubmitMove", "ann", "", b"body") is None
    other = [
        answer_for("Resign", "ann", "first try", b"body"),
        answer_for("SubmitMove", "bob", "first try", b"body"),
        answer_for("SubmitMove", "ann", "second try", b"body"),
    ]
    assert [(await matches.load(ID, each)).answer for each in other] == [None] * 3
    again = answer_for("SubmitMove", "ann", "first try", b"another body")
    assert again is not None
    assert again.field == answer.field
    assert again.fingerprint != answer.fingerprint


@pytest.mark.parametrize("newer", ["kit_schema", "game_schema"])
async def test_a_match_that_a_newer_release_keeps_is_left_to_it(matches: Sessions, state: Any, meta: Meta, newer: str) -> None:
    await commit(matches, state, 0, meta=msgspec.structs.replace(meta, **{newer: getattr(meta, newer) + 1}))
    with pytest.raises(Unavailable) as fault:
        await matches.load(ID)
    assert fault.value.reason == "SCHEMA_NEWER"


@pytest.mark.parametrize("field", ["meta", "table", "state"])
async def test_a_match_that_is_damaged_is_said_to_be(matches: Sessions, state: Any, redis: Redis, field: str) -> None:
    await commit(matches, state, 0)
    await redis.hset(matches._key(ID, "match"), field, b"\xc1")
    with pytest.raises(Unavailable) as fault:
        await matches.load(ID)
    assert fault.value.reason == "MATCH_UNREADABLE"


async def test_a_newer_release_reads_what_an_older_one_wrote(
    game: Game, storage: Storage, matches: Sessions, state: Any, meta: Meta
) -> None:
    await commit(matches, state, 0, meta=meta)
    newer = Sessions(dataclasses.replace(game, schema=game.schema + 1), storage)
    assert (await newer.load(ID)).meta.game_schema == game.schema


async def test_the_bell_is_rung_in_the_step_of_the_commit_and_carries_it(matches: Sessions, state: Any, meta: Meta, redis_url: str) -> None:
    async with Redis.from_url(redis_url) as client, client.pubsub() as pubsub:
        await pubsub.ssubscribe(matches.bell(ID))
        assert (await pubsub.get_message(timeout=5))["type"] == "ssubscribe"
        follows = BEGINNING
        for version in range(3):
            # Bytes of all kinds, a newline and what looks like a length among them; and none.
            entries = [Entry(bytes(range(256)), {1: b"\n\0\0\0\1"}, act=b"\xff"), Entry(b""), Entry(b"x" * 70_000, final=True)]
            placed = await commit(matches, state, version, meta=meta, entries=entries)
            bell = read_bell((await pubsub.get_message(timeout=5))["data"])
            assert bell.placed == placed
            assert [there.entry for there in bell.placed] == entries
            assert bell.follows == follows.entry
            assert await matches.made_by(ID, whole_of(version + 1)) == list(bell.placed)
            follows = bell.placed[-1].cursor
        await commit(matches, state, 0)
        assert await pubsub.get_message(timeout=0.05) is None


async def test_each_viewer_sees_its_own_bytes_of_an_entry(matches: Sessions, state: Any, meta: Meta) -> None:
    await commit(matches, state, 0, meta=meta, entries=[Entry(b"public", {1: b"for one"})])
    (there,) = await matches.entries(ID, BEGINNING)
    assert [there.entry.seen_by(viewer) for viewer in (None, 0, 1, 2)] == [b"public", b"public", b"for one", b"public"]


async def test_a_commit_is_a_matter_of_milliseconds_however_long_the_match(matches: Sessions, state: Any, meta: Meta) -> None:
    await commit(matches, state, 0, meta=meta)
    for version in range(1, 600):
        await commit(matches, state, version)
    started = time.perf_counter()
    for version in range(600, 620):
        await commit(matches, state, version)
    assert (time.perf_counter() - started) / 20 < 0.05


# Who watches.


async def come(matches: Sessions, match_id: str, *seats: int) -> Present:
    there = await matches.attend(match_id, [(f"{seat} replica", 60_000) for seat in seats])
    assert there
    return there


async def tell(matches: Sessions, *connected: int) -> Bell | None:
    """Has it told that these are connected, as it stands now."""
    there = await come(matches, ID)
    entries = [Entry(f"{seat}".encode()) for seat in sorted(there.connected ^ frozenset(connected))]
    return await matches.tell_presence(await matches.load(ID), there, frozenset(connected), entries)


async def test_who_comes_is_told_at_the_same_version_and_rings(matches: Sessions, storage: Storage, state: Any, meta: Meta) -> None:
    await commit(matches, state, 0, "one", "two", meta=meta)
    assert await come(matches, ID, 1, 0) == Present(frozenset(), frozenset({0, 1}))
    pubsub = storage.pubsub()
    await pubsub.ssubscribe(matches.bell(ID))
    bell = await tell(matches, 0, 1)
    assert bell
    assert bell.follows == "1-1"
    assert [(there.cursor.version, there.cursor.n, there.entry.public) for there in bell.placed] == [(1, 2, b"0"), (1, 3, b"1")]
    while (message := await pubsub.get_message(timeout=5))["type"] != "smessage":
        pass
    assert read_bell(message["data"]) == bell
    await pubsub.aclose()
    session = await matches.load(ID)
    assert (session.version, session.cursor) == (1, bell.placed[-1].cursor)
    assert session.connected == session.present == {0, 1}
    assert (await matches.entries(ID, BEGINNING))[2:] == list(bell.placed)
    assert await matches.last_entry(session) == bell.placed[-1]


async def test_who_came_or_went_meanwhile_is_judged_again_and_then_nothing_is_told(
    matches: Sessions, state: Any, meta: Meta, redis: Redis
) -> None:
    await commit(matches, state, 0, meta=meta)
    session, there = await matches.load(ID), await come(matches, ID, 0)
    told = [Entry(b"0")]
    await come(matches, ID, 1)
    assert await matches.tell_presence(session, there, frozenset({0}), told) is None
    there = await come(matches, ID)
    await commit(matches, state, 1)
    assert await matches.tell_presence(session, there, frozenset({0}), told) is None
    assert len(await matches.entries(ID, BEGINNING)) == 2
    session = await matches.load(ID)
    assert await matches.tell_presence(session, there, frozenset({0, 1}), told)
    # As if its answer had been lost.
    assert await matches.tell_presence(session, there, frozenset({0, 1}), told) is None
    assert len(await matches.entries(ID, BEGINNING)) == 3


async def test_a_seat_whose_lease_is_over_is_present_no_more_and_the_leases_end_by_themselves(
    matches: Sessions, state: Any, meta: Meta, redis: Redis
) -> None:
    await commit(matches, state, 0, meta=meta)
    await matches.attend(ID, [("0 here", 60), ("0 there", 30), ("1 here", 30)])
    await tell(matches, 0, 1)
    await eventually(lambda: _present(matches, {0}))
    await eventually(lambda: _present(matches, set()))
    session = await matches.load(ID)
    assert session.connected == {0, 1}
    assert not session.present
    assert not await redis.exists(matches.bell(ID).replace(":bell", ":present"))
    assert await matches.attend(ID, []) == Present(frozenset({0, 1}), frozenset())


async def _present(matches: Sessions, seats: set[int]) -> bool:
    return (await matches.load(ID)).present == seats


async def test_nobody_comes_and_goes_for_ever(matches: Sessions, state: Any, meta: Meta) -> None:
    await commit(matches, state, 0, meta=meta)
    await come(matches, ID, 0)
    for n in range(1_005):
        assert await tell(matches, *([0] if n % 2 == 0 else []))
    session = await matches.load(ID)
    assert session.cursor.n == 1_000 == len(await matches.entries(ID, BEGINNING)) - 1
    # What is shown stays true; and the next version tells it again.
    assert session.connected == {0}
    await commit(matches, state, 1)
    assert await tell(matches)
    assert (await matches.load(ID)).cursor[:2] == (2, 1)


async def test_a_commit_tells_what_it_follows_though_somebody_came_after_it_was_judged(
    matches: Sessions, storage: Storage, state: Any, meta: Meta
) -> None:
    await commit(matches, state, 0, meta=meta)
    session = await matches.load(ID)
    await come(matches, ID, 0)
    came = await tell(matches, 0)
    assert came
    bell = await matches.commit(ID, judged=session.version, table=TABLE, state=state, entries=[Entry(b"a")], keep_seconds=60)
    assert bell
    assert bell.follows == came.placed[-1].cursor.entry == "1-1"
    assert (await matches.load(ID)).connected == {0}


async def test_a_commit_that_tells_of_a_seat_is_judged_again_where_others_are_connected(matches: Sessions, state: Any, meta: Meta) -> None:
    await commit(matches, state, 0, meta=meta)
    await come(matches, ID, 0, 1)
    await tell(matches, 0, 1)
    assert await commit(matches, state, 1, connected=(frozenset(), frozenset({1}))) is None
    assert await commit(matches, state, 1, connected=(frozenset({0, 1}), frozenset({1})))
    assert (await matches.load(ID)).connected == {1}
    end = Table(TABLE.seats, 9, Outcome(3, (2, 2)))
    assert await commit(matches, state, 2, table=end, connected=(frozenset(), frozenset())) is None
    assert await commit(matches, state, 2, table=end)
    assert (await matches.load(ID)).connected == set()


async def test_of_a_match_that_is_not_there_nobody_is_present(matches: Sessions, redis: Redis) -> None:
    assert await matches.attend(ID, [("0 here", 1_000)]) is None
    assert not await redis.keys()
