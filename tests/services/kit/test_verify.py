from __future__ import annotations

import asyncio
import copy
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from redis.asyncio import Redis

from gloaming.night_knight.v1 import night_knight_pb2
from services.kit import verify
from services.kit.game import Game
from services.night_knight.game import GAME as NIGHT_KNIGHT
from services.night_knight.rules import Action, Kind, right_action
from tests.harness import NAMES, Keys, play_out, table


@pytest.fixture(scope="module")
def records(game: Game, keys: Keys, redis_url: str) -> dict[str, Any]:
    """Records of finished matches, as JSON: one of each end."""

    async def play() -> dict[str, Any]:
        async with Redis.from_url(redis_url) as redis:
            # Before a service is up, which would work through what the test before left, whichever that was.
            await redis.flushdb()
        async with table(game, keys, redis_url) as there:
            # As listed, where drawing would seat them otherwise: else an altered order could not be told.
            names, drawn = NAMES[: game.info.max_seats], None
            players = [there.player(name) for name in names]
            pick = random.Random(1).choice
            while drawn is None:
                match_id = await there.create(*names, order="DRAWN")
                if [seat.player for seat in (await players[0].get(match_id)).seats] != list(names):
                    drawn = match_id
            await play_out(drawn, *players, pick=pick)
            resigned = await there.create("ann", "bob")
            await players[0].resign(resigned)
            found = {"completed": await players[0].record(drawn), "resigned": await players[0].record(resigned)}
            return {name: json_format.MessageToDict(record) for name, record in found.items()}

    return asyncio.run(play())


def check(game: Game, record: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    path = tmp_path / "record.json"
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    status = verify.main(game, path)
    out, err = capsys.readouterr()
    return status, out + err


@pytest.mark.rule("ALL-03")
@pytest.mark.parametrize("kind", ["completed", "resigned"])
def test_all_03_a_true_record_passes(
    game: Game, records: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    status, said = check(game, records[kind], tmp_path, capsys)
    assert status == 0
    assert f"The record of {records[kind]['matchId']} is true." in said
    assert "WRONG" not in said


def test_what_a_later_release_adds_does_not_matter(
    game: Game, records: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(game, {**records["completed"], "weather": {"rain": True}}, tmp_path, capsys)[0] == 0


def _flip(text: str) -> str:
    return ("0" if text[0] != "0" else "1") + text[1:]


def _commit_to_other_seed(record: Any) -> None:
    # Seed and commitment altered together agree; then all else does not follow.
    from services.kit.chance import commitment

    record["seed"] = _flip(record["seed"])
    record["commitment"] = commitment(bytes.fromhex(record["seed"]))


ALTERED: dict[str, Callable[[Any], Any]] = {
    "seed": lambda record: record.update(seed=_flip(record["seed"])),
    "seed and commitment": _commit_to_other_seed,
    "seed too short": lambda record: record.update(seed=record["seed"][2:]),
    "seed no hexadecimal": lambda record: record.update(seed="x" * 64),
    "no seed": lambda record: record.pop("seed"),
    "commitment": lambda record: record.update(commitment=_flip(record["commitment"])),
    "order": lambda record: record.update(order="AS_LISTED"),
    "an order that there is not": lambda record: record.update(order=7),
    "listed, one fewer": lambda record: record["listed"].pop(),
    "listed, nobody": lambda record: record.pop("listed"),
    "listed, too many": lambda record: record["listed"].extend(record["listed"] * 9),
    "listed, swapped": lambda record: record["listed"].reverse(),
    "seats, swapped": lambda record: record["seats"].reverse(),
    "seats, one fewer": lambda record: record["seats"].pop(),
    "seats, another player": lambda record: record["seats"][0].update(player="eve"),
    "last move dropped": lambda record: record["moves"].pop(),
    "first move dropped": lambda record: record["moves"].pop(0),
    "no moves": lambda record: record.pop("moves"),
    "a move twice": lambda record: record["moves"].append(record["moves"][-1]),
    "a move of another seat": lambda record: record["moves"][-1]["played"].update(
        seat=(record["moves"][-1]["played"].get("seat", 0) + 1) % 2
    ),
    "a move of no seat": lambda record: record["moves"][-1]["played"].update(seat=99),
    "a move of a seat below": lambda record: record["moves"][-1]["played"].update(seat=-1),
    "a move of nothing": lambda record: record["moves"][-1].update(move={}),
    "two moves swapped": lambda record: record["moves"].insert(0, record["moves"].pop()),
    "a resignation instead": lambda record: (record["moves"][-1].pop("move"), record["moves"][-1].update(resignation={})),
    "ranks": lambda record: record["outcome"]["ranks"].reverse() or record["outcome"]["ranks"].append(1),
    "winners": lambda record: record["outcome"].update(winners=[9]),
    "ending": lambda record: record["outcome"].update(ending="RESIGNED"),
    "no outcome": lambda record: record.pop("outcome"),
    "scores": lambda record: record.get("scores", [0]).__setitem__(0, record.get("scores", [0])[0] + 1),
}


@pytest.mark.rule("ALL-03")
@pytest.mark.parametrize("what", ALTERED)
def test_all_03_an_altered_record_is_wrong(
    game: Game, records: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    record = copy.deepcopy(records["completed"])
    ALTERED[what](record)
    if record == records["completed"]:
        pytest.skip("this game's records have none")
    status, said = check(game, record, tmp_path, capsys)
    assert status == 1
    assert "WRONG " in said
    assert "is true" not in said


def test_a_resignation_left_out_or_of_the_other_seat_is_wrong(
    game: Game, records: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alters: list[Callable[[Any], Any]] = [lambda moves: moves.pop(), lambda moves: moves[-1]["played"].update(seat=1)]
    for alter in alters:
        record = copy.deepcopy(records["resigned"])
        alter(record["moves"])
        assert check(game, record, tmp_path, capsys)[0] == 1


@pytest.fixture(scope="module")
def outrun(keys: Keys, redis_url: str) -> Any:
    """The record of a match in real time whose last reaction came after the one that ended it."""

    async def play() -> Any:
        async with Redis.from_url(redis_url) as redis:
            await redis.flushdb()
        # Compensated, so that all are pending until the last of them: then one grabs the pillow, and those behind it are too late.
        options = night_knight_pb2.Options(countdown_ms=0, own_card_delay_ms=0, ordering="COMPENSATED", max_compensation_ms=300)
        async with table(NIGHT_KNIGHT, keys, redis_url) as there:
            match_id, players = await there.create(options=options), there.everyone()
            number = 0
            async for message in there.player("eve").watch(match_id):
                if message.HasField("snapshot"):
                    cards = [*message.snapshot.view.cards]
                elif message.event.event.HasField("own_card_shown"):
                    cards = [*message.event.event.own_card_shown.cards]
                else:
                    continue
                number += 1
                kinds = [Kind(card.card) for card in cards]
                wanted, _ = right_action(kinds[0], kinds)
                first: dict[str, Any] = {"action": wanted.name if wanted else "PASS"}
                if wanted is Action.THROW:
                    first["target"] = kinds.index(Kind.DEFENDING_KNIGHT)
                for player, react in zip(players, (first, {"action": "SLEEP"}, {"action": "SLEEP"}), strict=True):
                    await player.submit(match_id, night_knight_pb2.Move(react={"round": number, **react}))
            return await players[0].record(match_id)

    return asyncio.run(play())


LATE: dict[str, Callable[[Any], Any]] = {
    "twice": lambda moves: moves.append(moves[-1]),
    "of the seat that ended it": lambda moves: moves[-1].played.ClearField("seat"),
    "of no seat": lambda moves: setattr(moves[-1].played, "seat", 99),
    "of a seat below": lambda moves: setattr(moves[-1].played, "seat", -1),
    "to another round": lambda moves: setattr(moves[-1].move.react, "round", 1),
    "that is another than was told": lambda moves: setattr(moves[-1].move.react, "action", "TOUCH"),
    "at oneself": lambda moves: moves[-1].move.react.MergeFrom(night_knight_pb2.React(action="THROW", target=2)),
    "that is none": lambda moves: moves[-1].move.Clear(),
    "that is a peek": lambda moves: moves[-1].move.peek.CopyFrom(night_knight_pb2.Peek(round=moves[-1].move.react.round)),
    "that is a resignation": lambda moves: moves[-1].resignation.SetInParent(),
    "that is the end of a window": lambda moves: moves[-1].window_ended.SetInParent(),
    "that was granted": lambda moves: setattr(moves[-1].reaction, "verdict", "GRANTED"),
    "of another rank": lambda moves: setattr(moves[-1].reaction, "rank", 1),
    "by another rule": lambda moves: setattr(moves[-1].reaction.evidence, "rule", "NK-12"),
    "under another cap": lambda moves: setattr(moves[-1].reaction.evidence, "cap_ms", 1),
    "told of another seat": lambda moves: setattr(moves[-1].reaction, "seat", 0),
    "undecided": lambda moves: moves[-1].ClearField("reaction"),
    "before the one before it": lambda moves: moves.insert(len(moves) - 2, moves.pop()),
    "after a window's end": lambda moves: moves.insert(len(moves) - 1, night_knight_pb2.RecordedMove(window_ended={})),
}


@pytest.mark.rule("ALL-03")
@pytest.mark.rule("NK-13")
def test_all_03_a_reaction_that_was_too_late_for_the_end_stands_after_it_in_a_true_record(outrun: Any) -> None:
    assert list(verify.check(NIGHT_KNIGHT, outrun))
    assert outrun.moves[-1].reaction.verdict == night_knight_pb2.Reaction.TOO_LATE
    assert outrun.moves[-1].reaction.evidence.rule == "NK-13"


@pytest.mark.rule("ALL-03")
@pytest.mark.parametrize("how", LATE)
def test_all_03_nothing_else_comes_after_the_end(outrun: Any, how: str) -> None:
    record = copy.deepcopy(outrun)
    LATE[how](record.moves)
    assert record != outrun
    with pytest.raises(verify.Mismatch):
        list(verify.check(NIGHT_KNIGHT, record))


@pytest.mark.parametrize("garbage", ["", "garbage", "7", "null", '{"seed": 7}', '{"moves": {}}', '{"seed": "', "\0"])
def test_a_file_that_is_no_record_says_so(game: Game, tmp_path: Path, capsys: pytest.CaptureFixture[str], garbage: str) -> None:
    status, said = check(game, garbage, tmp_path, capsys)
    assert status == 2
    assert "is not a record" in said


def test_no_file_or_no_text_is_no_record(game: Game, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "nowhere", tmp_path, tmp_path / "binary"):
        assert verify.main(game, path) == 2


def test_the_command_says_the_same(game: Game, records: dict[str, Any], tmp_path: Path) -> None:
    altered = copy.deepcopy(records["completed"])
    altered["moves"].pop()
    for name, record in (("true", records["completed"]), ("wrong", altered), ("none", "garbage")):
        (tmp_path / name).write_text(record if isinstance(record, str) else json.dumps(record))
    # It needs no settings, no network and no Redis.
    running = [
        subprocess.Popen(
            [sys.executable, "-m", f"services.{game.id}", "verify", str(tmp_path / name)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("true", "wrong", "none")
    ]
    said = [process.communicate(timeout=30) for process in running]
    assert [process.returncode for process in running] == [0, 1, 2]
    assert said[0][0].splitlines()[-1] == f"The record of {records['completed']['matchId']} is true."
    assert said[1][0].splitlines()[-1].startswith("WRONG ")
    assert "is not a record" in said[2][1]
