"""Matches that any release stored are shown, played on and recorded by today's code."""

from __future__ import annotations

import json

import msgspec
import pytest
from google.protobuf import json_format
from redis.asyncio import Redis

from gloaming.table.v1 import table_pb2
from services.kit import sessions, verify
from services.kit.game import Game
from tests.fixtures.schemas import snapshots
from tests.harness import Keys, Refused, play_out, table


def test_todays_schema_numbers_have_a_fixture(game: Game) -> None:
    assert snapshots.path(game).exists(), (
        f"{snapshots.path(game).name} is missing, matches as they are stored with the kit's schema {sessions.SCHEMA} and the game's "
        f"{game.schema}: python -m tests.fixtures.schemas {game.id}"
    )


def test_the_layout_has_changed_with_its_number_only(game: Game) -> None:
    fixture = json.loads(snapshots.path(game).read_text())
    raise_it = (
        "is stored otherwise than when its schema number was recorded, and a replica of the release before could not read it: raise SCHEMA "
        "in services/kit/sessions.py or the game's `schema`, keep reading the old layout, and record the new one (if the number was never "
        f"released, remove its fixture and record it again): python -m tests.fixtures.schemas {game.id}"
    )
    seen = 0
    for what, kind, stored in snapshots.values(game, fixture):
        assert msgspec.msgpack.encode(msgspec.msgpack.decode(stored, type=kind)) == stored, f"{what} {raise_it}"
        seen += 1
    assert seen > 20


async def test_matches_of_every_schema_are_shown_played_on_and_recorded(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    for path in snapshots.paths(game):
        fixture = json.loads(path.read_text())
        await snapshots.restore(redis, fixture)
        async with table(game, keys, redis_url) as there:
            players = [there.player(name) for name in fixture["players"]]
            everybody = [*players, there.player("eve")]

            finished, kept = fixture["finished"]["match"], fixture["finished"]["record"]
            for viewer in everybody:
                match = await viewer.get(finished)
                assert match.status == table_pb2.FINISHED, path.name
                assert match.outcome.ranks
                page = await viewer.events(finished, size=500)
                assert page.events[-1].event.HasField("match_finished")
                record = await viewer.record(finished)
                assert snapshots.same_match(record, kept, game.message("Record")), f"{path.name}: the record says something else now"
                assert list(verify.check(game, record))

            under_way = fixture["underWay"]["match"]
            for viewer in everybody:
                match = await viewer.get(under_way)
                assert match.status == table_pb2.PLAYING
                assert match.version >= fixture["underWay"]["requests"][-1]["version"]
                assert (await anext(viewer.watch(under_way))).snapshot.id == under_way
                after = fixture["underWay"]["cursor"]
                assert (await anext(viewer.watch(under_way, after))).WhichOneof("kind") == "event", "cursors given out before still fit"
            by_name = {player.player: player for player in players}
            for request in fixture["underWay"]["requests"]:
                move = json_format.ParseDict(request["move"], game.message("Move")())
                answer = await by_name[request["player"]].submit(under_way, move, request_id=request["requestId"])
                assert answer.version == request["version"], "a retry gets the answer of before"
            await play_out(under_way, *players)
            record = await everybody[-1].record(under_way)
            assert record.outcome.ending == table_pb2.Outcome.COMPLETED
            assert list(verify.check(game, record))


async def test_a_match_that_a_newer_release_stored_is_left_alone(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    fixture = json.loads(snapshots.path(game).read_text())
    under_way = fixture["underWay"]["match"]
    for newer in ("game_schema", "kit_schema"):
        await snapshots.restore(redis, fixture)
        await snapshots.as_newer(redis, f"{game.id}:{{{under_way}}}:match", newer)
        async with table(game, keys, redis_url) as there:
            player = there.player(fixture["players"][0])
            for ask in (player.get(under_way), player.moves(under_way), player.resign(under_way)):
                with pytest.raises(Refused) as refused:
                    await ask
                assert (refused.value.code.name, refused.value.reason) == ("UNAVAILABLE", "SCHEMA_NEWER")
