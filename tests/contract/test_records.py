"""Every finished match can be checked afterwards (ALL-03): by this project's own command, and by a program that shares nothing with it."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format

from gloaming.table.v1 import table_pb2
from services.kit import chance, verify
from services.kit.chance import Chance, commitment
from services.kit.game import Game, seating
from tests import simulator
from tests.harness import IN_TURNS, TRIES, Table, attempt, new_match_id, paced, play_out, quick
from tests.simulator import seed

HERE = Path(__file__).parent
VECTORS = HERE / "chance_vectors.json"
PEOPLE = ("ann", "bob", "cat", "dan", "eli", "fay")

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed; with it an independent program checks records")


def by_node(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["node", HERE / "verify_record.mjs", *arguments], capture_output=True, text=True, timeout=30, encoding="utf-8", check=False
    )


def check_by_node(game: Game, record: Any, path: Path) -> str:
    path.write_text(json_format.MessageToJson(record), encoding="utf-8")
    done = by_node(path)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def played(there: Table, seats: list[str], order: str, options: Any, resigns: bool = False, move_seconds: int = 0) -> Any:
    """Plays a match over sockets at random, and returns its record; whether the commitment stood from the start is checked on the way."""
    game, match_id = there.game, new_match_id(there.game)
    rng = random.Random(f"{seats}{order}{options}{resigns}")
    request = game.message("CreateMatchRequest")(
        match_id=match_id,
        options=paced(game, options, quick(game)),
        settings=table_pb2.Settings(move_seconds=move_seconds, start_seconds=0),
        seats=[table_pb2.SeatRequest(bot="STANDARD") if name == "bot" else table_pb2.SeatRequest(player=name) for name in seats],
        order=order,
    )
    created = await there.player("host", scope="host").call("CreateMatch", request)
    players = [there.player(name) for name in seats if name != "bot"]
    if move_seconds:
        # The first player never moves: its clock does, and then the bot that keeps its seat.
        await play_out(match_id, players[1], *players[2:], pick=rng.choice)
    elif resigns:
        for player in players[1:]:
            for move in (await player.moves(match_id))[:1]:
                await attempt(player, match_id, move)
        await players[0].resign(match_id)
        await play_out(match_id, *players[1:], pick=rng.choice)
    else:
        await play_out(match_id, *players, pick=rng.choice)
    record = await players[0].record(match_id)
    assert hashlib.sha256(bytes.fromhex(record.seed)).hexdigest() == created.commitment == record.commitment
    assert (await players[0].get(match_id)).commitment == created.commitment
    return record


def seatings(game: Game) -> list[tuple[list[str], str, bool]]:
    """Every number of seats in both orders, of players and with a bot, with and without somebody who resigns."""
    found = []
    for seats in simulator.seat_counts(game):
        for order in ("DRAWN", "AS_LISTED"):
            found.append((list(PEOPLE[:seats]), order, False))
            found.append((["ann", "bot", *PEOPLE[1 : seats - 1]], order, False))
            found.append((list(PEOPLE[:seats]), order, True))
    return found


@pytest.mark.rule("ALL-03")
async def test_all_03_the_records_of_all_kinds_of_matches_are_true(there: Table, tmp_path: Path) -> None:
    options = itertools.cycle(simulator.option_sets(there.game))
    by_whom = set()
    playing = [played(there, seats, order, next(options), resigns) for seats, order, resigns in seatings(there.game)]
    for record in await asyncio.gather(*playing):
        assert list(verify.check(there.game, record))
        # As a file it says the same.
        (tmp_path / "record.json").write_text(json_format.MessageToJson(record))
        assert verify.main(there.game, tmp_path / "record.json") == 0
        if shutil.which("node"):
            assert "ok    seating" in check_by_node(there.game, record, tmp_path / "record.json")
        by_whom |= {(recorded.WhichOneof("done"), recorded.played.by) for recorded in record.moves}
    by_clock = {("window_ended", table_pb2.Played.CLOCK)} if there.game.real_time else set()
    by_player = {("move", table_pb2.Played.PLAYER), ("resignation", table_pb2.Played.PLAYER)}
    assert by_whom == {*by_player, ("move", table_pb2.Played.BOT), *by_clock}


# In real time no clock makes a move.
@pytest.mark.parametrize("game", IN_TURNS, ids=lambda game: game.id)
@pytest.mark.rule("ALL-02")
@pytest.mark.rule("ALL-03")
async def test_all_02_moves_made_by_clocks_and_by_the_bot_that_keeps_the_seat_are_recorded_as_such(there: Table, tmp_path: Path) -> None:
    seats = list(PEOPLE[: there.game.info.min_seats])
    for _ in range(TRIES):
        record = await played(there, seats, "AS_LISTED", simulator.option_sets(there.game)[0], move_seconds=1)
        assert list(verify.check(there.game, record))
        of_idle = [recorded.played.by for recorded in record.moves if recorded.played.seat == 0]
        clocks = [by for by in of_idle if by == table_pb2.Played.CLOCK]
        assert of_idle == [*clocks, *[table_pb2.Played.BOT] * (len(of_idle) - len(clocks))]
        assert len(clocks) == min(3, len(of_idle))
        assert {recorded.played.by for recorded in record.moves if recorded.played.seat != 0} == {table_pb2.Played.PLAYER}
        assert record.seats[0].stand_in == (len(clocks) == 3)
        if len(of_idle) > 3:
            break
    else:
        pytest.fail("every match was over too early")
    if shutil.which("node"):
        check_by_node(there.game, record, tmp_path / "record.json")


@pytest.mark.rule("ALL-03")
async def test_all_03_a_record_in_which_anything_was_changed_is_not_true(there: Table) -> None:
    true = await played(there, list(PEOPLE[: there.game.info.min_seats]), "DRAWN", simulator.option_sets(there.game)[0])
    assert list(verify.check(there.game, true))
    count = len(true.listed)
    # Where the rules leave nothing to chance, a seed shows in the seats alone (ALL-04): one that seats them otherwise.
    drawn = seating(true.order, count, Chance(bytes.fromhex(true.seed)))
    forged = next(other for n in itertools.count() if seating(true.order, count, Chance(other := seed("forged", n))) != drawn)

    def another_seed(record: Any) -> None:
        record.seed = forged.hex()

    def another_seed_and_its_commitment(record: Any) -> None:
        record.seed, record.commitment = forged.hex(), commitment(forged)

    def no_seed(record: Any) -> None:
        record.seed = "none"

    def short_seed(record: Any) -> None:
        record.seed = record.seed[:-2]

    def seats_changed(record: Any) -> None:
        first, second = record.seats[0].player, record.seats[1].player
        record.seats[0].player, record.seats[1].player = second, first

    def somebody_more(record: Any) -> None:
        record.listed.add(player="mallory")

    def nobody(record: Any) -> None:
        del record.listed[:]

    def too_many(record: Any) -> None:
        del record.listed[:], record.seats[:]
        record.order = table_pb2.Seating.AS_LISTED
        for n in range(there.game.info.max_seats + 1):
            record.listed.add(player=f"p{n}")
            record.seats.add(seat=n, player=f"p{n}")

    def too_few(record: Any) -> None:
        del record.listed[1:], record.seats[1:]
        record.order = table_pb2.Seating.AS_LISTED
        record.seats[0].player = record.listed[0].player

    def last_move_gone(record: Any) -> None:
        del record.moves[-1]

    def first_move_gone(record: Any) -> None:
        # In real time the first window's end: without some reaction, or a peek, a match may well come to the same end.
        del record.moves[next((n for n, recorded in enumerate(record.moves) if recorded.WhichOneof("done") == "window_ended"), 0)]

    def move_of_nobody(record: Any) -> None:
        record.moves[0].played.seat = 99

    def one_move_more(record: Any) -> None:
        record.moves.append(record.moves[-1])

    def empty_move(record: Any) -> None:
        record.moves[0].move.Clear()

    def nothing_done(record: Any) -> None:
        record.moves[0].ClearField("done")

    def another_winner(record: Any) -> None:
        record.outcome.ranks[0] += 1

    def another_ending(record: Any) -> None:
        record.outcome.ending = table_pb2.Outcome.RESIGNED

    def more_points(record: Any) -> None:
        record.scores.append(1)

    def options_nobody_knows(record: Any) -> None:
        for field in record.options.DESCRIPTOR.fields:
            if field.enum_type:
                setattr(record.options, field.name, 99)
                return
        record.seed = ""  # a game without such options: forged all the same

    forgeries: list[Callable[[Any], None]] = [
        another_seed,
        another_seed_and_its_commitment,
        no_seed,
        short_seed,
        seats_changed,
        somebody_more,
        nobody,
        too_many,
        too_few,
        last_move_gone,
        first_move_gone,
        move_of_nobody,
        one_move_more,
        empty_move,
        nothing_done,
        another_winner,
        another_ending,
        more_points,
        options_nobody_knows,
    ]
    for forge in forgeries:
        record = there.game.message("Record")()
        record.CopyFrom(true)
        forge(record)
        with pytest.raises(verify.Mismatch):
            list(verify.check(there.game, record))


@needs_node
@pytest.mark.rule("ALL-03")
async def test_all_03_the_independent_program_sees_a_forged_record(there: Table, tmp_path: Path) -> None:
    true = await played(there, list(PEOPLE[: there.game.info.min_seats]), "AS_LISTED", simulator.option_sets(there.game)[0])
    check_by_node(there.game, true, tmp_path / "record.json")
    true.seed = seed("forged").hex()
    (tmp_path / "record.json").write_text(json_format.MessageToJson(true))
    assert by_node(tmp_path / "record.json").returncode != 0


# ------------------------------------------------------------------ vectors


@needs_node
@pytest.mark.rule("ALL-03")
def test_all_03_the_independent_program_draws_what_the_vectors_say() -> None:
    done = by_node("--vectors", VECTORS)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == sum(map(len, json.loads(VECTORS.read_text()).values()))


@pytest.mark.rule("ALL-03")
def test_all_03_streams_are_as_the_vectors_say() -> None:
    for vector in json.loads(VECTORS.read_text())["streams"]:
        words = Chance(bytes.fromhex(vector["seed"]))._words(vector["label"])
        assert "".join(f"{next(words):08x}" for _ in range(len(vector["bytes"]) // 8)) == vector["bytes"]


@pytest.mark.rule("ALL-03")
def test_all_03_words_that_would_favour_small_numbers_are_skipped_as_the_vectors_say() -> None:
    for vector in json.loads(VECTORS.read_text())["below"]:
        assert chance._below(vector["n"], iter(vector["words"])) == vector["gives"]


@pytest.mark.rule("ALL-03")
def test_all_03_shuffles_are_as_the_vectors_say() -> None:
    for vector in json.loads(VECTORS.read_text())["shuffles"]:
        shuffled = Chance(bytes.fromhex(vector["seed"])).shuffle(vector["label"], vector["items"])
        assert list(shuffled) == vector["gives"]


@pytest.mark.rule("ALL-03")
def test_all_03_every_order_is_as_likely() -> None:
    counts: dict[tuple[str, ...], int] = {}
    for number in range(6000):
        order = Chance(seed("likely", number)).shuffle("seating", ("a", "b", "c"))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    # 1000 each; the standard deviation is 29.
    assert all(870 < count < 1130 for count in counts.values()), counts


async def test_the_seed_is_drawn_anew_for_every_match(there: Table) -> None:
    ids = await asyncio.gather(*(there.create() for _ in range(20)))
    assert len({(await there.player("eve").get(match_id)).commitment for match_id in ids}) == 20
