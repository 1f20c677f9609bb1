"""Before a rollout, stored matches are replayed by the code to come: what it would make of them otherwise is named, and where."""

from __future__ import annotations

import argparse
import asyncio
import copy
import dataclasses
import json
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf import json_format
from redis.asyncio import Redis

from gloaming.table.v1 import table_pb2
from services.kit import shadow
from services.kit.game import Game, Value
from services.night_clan import rules
from services.night_clan.game import GAME as NIGHT_CLAN
from tests import simulator
from tests.fixtures.schemas import snapshots
from tests.harness import Player, Table, attempt, calm, mover, paced, play_out, quick


class Said:
    """What the command returned and printed."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        # The service beside it logs to the same place here.
        self.named = [line for line in out.splitlines() if line.startswith(("DIFFERS ", "CANNOT BE LOADED "))]
        self.summary = next((line for line in out.splitlines() if "come out the same" in line), "")
        self.err = err


@pytest.fixture
def replay(game: Game, redis_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The command, with this code or other."""
    monkeypatch.setenv("REDIS_URL", redis_url)

    async def run(*arguments: str, by: Game = game) -> Said:
        parser = argparse.ArgumentParser()
        shadow.arguments(parser)
        asked = parser.parse_args(["--rate", "100000", *arguments])
        capsys.readouterr()
        status = await asyncio.to_thread(shadow.main, by, asked)
        return Said(status, *capsys.readouterr())

    return run


PEOPLE = ("ann", "bob", "cat", "dan", "eli", "fay")


@pytest.fixture
async def played(there: Table) -> list[str]:
    """One that was played to its end in all seats, a bot's among them; one resigned from in the fewest; and one that is under way."""
    game = there.game
    seats = [*PEOPLE[: game.info.max_seats - 1], "bot"]
    completed = await there.create(*seats, order="DRAWN")
    await play_out(completed, *[there.player(name) for name in seats[:-1]])
    players = there.everyone()
    resigned = await there.create()
    player, moves = await mover(resigned, *players)
    await attempt(player, resigned, moves[0])
    await players[0].resign(resigned)
    if len(players) > 2:
        await play_out(resigned, *players[1:])
    return [completed, resigned, await _under_way(there)]


async def rush(match_id: str, *players: Player) -> None:
    """Plays a match to its end, everybody who may move at the same time."""
    rng = random.Random(match_id)

    async def hurry(player: Player) -> None:
        if moves := await player.moves(match_id):
            await attempt(player, match_id, rng.choice(moves))

    while (await players[0].get(match_id)).status == table_pb2.PLAYING:
        if players[0].game.real_time:
            await asyncio.gather(*map(hurry, players))
        else:
            await hurry((await mover(match_id, *players))[0])


async def _under_way(there: Table) -> str:
    """A match in which some moves have been made and no clock runs."""
    players = there.everyone()
    match_id = await there.create(options=paced(there.game, simulator.option_sets(there.game)[0], calm(there.game)))
    for _ in range(3):
        player, moves = await mover(match_id, *players)
        await attempt(player, match_id, moves[-1])
    return match_id


def with_rules(game: Game, **other: Any) -> Game:
    """The game with some of its rules changed."""
    return dataclasses.replace(game, rules=SimpleNamespace(**{**vars(game.rules), **other}))


async def test_stored_matches_come_out_the_same_by_the_code_that_made_them(played: list[str], replay: Any) -> None:
    said = await replay()
    assert (said.status, said.named) == (0, []), said.named
    assert f"{len(played) - 1} finished and 0 live matches come out the same; 0 differ, 0 cannot be loaded; 1 were not" in said.summary
    said = await replay("--live")
    assert (said.status, said.named) == (0, []), said.named
    assert f"{len(played) - 1} finished and 1 live matches come out the same" in said.summary
    assert "1 finished and 0 live" in (await replay("--most", "1")).summary


async def test_matches_with_every_option_come_out_the_same_in_real_time_with_reactions_that_race(there: Table, replay: Any) -> None:
    game = there.game
    for options in simulator.option_sets(game):
        seats = PEOPLE[: game.info.max_seats]
        match_id = await there.create(*seats, order="DRAWN", options=paced(game, options, quick(game)))
        await rush(match_id, *[there.player(name) for name in seats])
    said = await replay()
    assert (said.status, said.named) == (0, []), said.named
    assert f"{len(simulator.option_sets(game))} finished" in said.summary


async def test_it_only_reads(played: list[str], replay: Any, redis: Redis, there: Table) -> None:
    keys = sorted([key async for key in redis.scan_iter(f"{there.game.id}:{{{there.game.id}-*")])
    before = [await redis.dump(key) for key in keys]
    expiries = [await redis.pexpiretime(key) for key in keys]
    await replay("--live")
    assert [await redis.dump(key) for key in keys] == before
    assert [await redis.pexpiretime(key) for key in keys] == expiries


async def test_an_event_that_a_seat_sees_otherwise_is_named_with_its_place(game: Game, played: list[str], replay: Any) -> None:
    def redact(event: Value, viewer: int | None) -> Value:
        # To the first seat: whatever anybody knows.
        return event if viewer == 0 else game.rules.redact(event, viewer)

    told_less = any(redact(event, 0) != game.rules.redact(event, 0) for event in _events(game))
    said = await replay(by=with_rules(game, redact=redact))
    assert bool(said.named) == told_less == bool(said.status)
    assert all(re.fullmatch(r"DIFFERS \S+ version \d+, event \d+: [\w.\[\]]+, as seat 0 sees it", line) for line in said.named), said.named
    shown = await replay("--show", by=with_rules(game, redact=redact))
    assert sorted(line.partition(" sees it: ")[0] + " sees it" for line in shown.named) == sorted(said.named), (
        "values are shown to those who ask alone"
    )


@pytest.mark.parametrize("game", [NIGHT_CLAN], ids=["night_clan"])
async def test_a_rule_that_counts_otherwise_is_named_with_the_score(
    game: Game, played: list[str], replay: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "POINTS", {**rules.POINTS, rules.Kind.DAUGHTER: 2})
    said = await replay("--show")
    assert said.status == 1
    assert all(re.search(r"version \d+, event \d+: locationScored.points, as spectators see it: stored ", line) for line in said.named)
    assert {line.split()[1] for line in said.named} <= set(played[:-1])


async def test_a_rule_that_ends_matches_otherwise_is_named(game: Game, played: list[str], replay: Any) -> None:
    def outcome(state: Value) -> tuple[int, ...] | None:
        ranks = game.rules.outcome(state)
        return None if ranks is None else tuple(1 if rank > 1 else 2 for rank in ranks)

    said = await replay(by=with_rules(game, outcome=outcome))
    assert said.status == 1
    assert said.named
    assert all(re.fullmatch(r"DIFFERS \S+ version \d+: outcome", line) for line in said.named)


async def test_a_move_that_was_legal_and_is_not_any_more_is_named_with_its_version(game: Game, played: list[str], replay: Any) -> None:
    refusal = SimpleNamespace(reason="NOT_ANY_MORE", detail="it was once")
    tries: dict[Any, int] = {}

    def apply(state: Value, seat: int, move: Value, chance: Any) -> Any:
        tries[id(chance)] = tries.get(id(chance), 0) + 1
        return refusal if tries[id(chance)] > 2 else game.rules.apply(state, seat, move, chance)

    said = await replay(by=with_rules(game, apply=apply))
    assert said.status == 1
    assert said.named
    assert all("is against the rules" in line and " version " in line for line in said.named)
    assert not any("NOT_ANY_MORE" in line for line in said.named)


async def test_code_that_fails_at_a_stored_match_is_named_and_the_others_are_looked_at(
    game: Game, played: list[str], replay: Any, redis: Redis
) -> None:
    def view(state: Value, viewer: int | None) -> Value:
        raise KeyError("a card of the old deck")

    said = await replay("--live", by=with_rules(game, view=view))
    assert said.status == 1
    assert len(said.named) == len(played)
    assert all("the replay fails: KeyError" in line and "old deck" not in line for line in said.named)
    # One that cannot even be loaded, and one of a release to come.
    await redis.hset(f"{game.id}:{{{played[0]}}}:match", "state", b"\xc1")
    await snapshots.as_newer(redis, f"{game.id}:{{{played[-1]}}}:match", "game_schema")
    said = await replay("--live")
    assert (said.status, len(said.named)) == (1, 2)
    assert f"{len(played) - 2} finished and 0 live matches come out the same; 0 differ, 2 cannot be loaded" in said.summary
    assert any(f"CANNOT BE LOADED {played[-1]} as a whole: SCHEMA_NEWER" in line for line in said.named)


async def test_a_live_match_whose_view_would_be_another_is_named(game: Game, played: list[str], replay: Any, redis: Redis) -> None:
    key = f"{game.id}:{{{played[-1]}}}:match"
    earlier = f"{game.id}:{{{played[0]}}}:match"
    # What an old layout read by new code comes to: a state that is not the one of its moves.
    await redis.hset(key, "state", await redis.hget(earlier, "state"))
    said = await replay("--live")
    assert said.status == 1
    assert len(said.named) == 1
    assert played[-1] in said.named[0]


async def test_records_that_were_kept_are_replayed_too(game: Game, there: Table, played: list[str], replay: Any, tmp_path: Path) -> None:
    player = there.player("ann")
    records = [json_format.MessageToDict(await player.record(match_id)) for match_id in played[:-1]]
    for n, record in enumerate(records):
        (tmp_path / f"{n}.json").write_text(json.dumps(record))
    said = await replay(str(tmp_path))
    assert (said.status, said.named) == (0, [])
    assert f"{len(records)} finished" in said.summary
    forged = copy.deepcopy(records[0])
    forged["outcome"]["winners"] = [9]
    (tmp_path / "0.json").write_text(json.dumps(forged))
    (tmp_path / "other.json").write_text(json.dumps({"matchId": "chess-1", "game": "chess"}))
    (tmp_path / "none.json").write_text("[]")
    said = await replay(str(tmp_path))
    assert said.status == 1
    assert f"{len(records) - 1} finished and 0 live matches come out the same; 1 differ, 1 cannot be loaded; 1 were not" in said.summary
    assert (await replay(str(tmp_path / "nowhere.json"))).status == 2


async def test_a_storage_that_does_not_answer_is_said_so(replay: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "unix:///nowhere/redis.sock")
    said = await replay()
    assert said.status == 2
    assert "cannot look" in said.err


async def test_matches_of_every_schema_come_out_the_same(game: Game, replay: Any, redis: Redis) -> None:
    for path in snapshots.paths(game):
        await snapshots.restore(redis, json.loads(path.read_text()))
        said = await replay("--live")
        assert (said.status, said.named) == (0, []), path.name
        assert "1 finished and 1 live" in said.summary


def _events(game: Game) -> list[Value]:
    return [event for turn in simulator.random_match(game, *simulator.tables(game)[0], 1) for event in turn.events]
