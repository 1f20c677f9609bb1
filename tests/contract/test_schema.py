"""Matches that any release stored are shown, played on and recorded by today's code."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import types
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, get_type_hints

import msgspec
import pytest
from google.protobuf import json_format
from redis.asyncio import Redis

from gloaming.table.v1 import table_pb2
from services.kit import sessions, verify
from services.kit.game import Game, is_refusal
from tests.fixtures.schemas import snapshots
from tests.gateway.stand import stand
from tests.harness import IN_TURNS, Keys, Player, Refused, all_events, attempt, eventually, mover, play_out, table


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
    move = json_format.ParseDict(fixture["underWay"]["requests"][0]["move"], game.message("Move")())
    for newer in ("game_schema", "kit_schema"):
        await snapshots.restore(redis, fixture)
        key = f"{game.id}:{{{under_way}}}:match"
        await snapshots.as_newer(redis, key, newer)
        # Nothing that this release could read, but for the numbers.
        await redis.hset(key, mapping={"state": b"\xc1", "table": b"\xc1"})
        stored = await redis.dump(key)
        async with table(game, keys, redis_url, sweep_ms=10, lease_ms=100) as there:
            player = there.player(fixture["players"][0])
            asks = (
                player.get(under_way),
                player.moves(under_way),
                player.submit(under_way, move),
                player.resign(under_way),
                player.events(under_way),
                player.record(under_way),
                anext(player.watch(under_way)),
            )
            for ask in asks:
                with pytest.raises(Refused) as refused:
                    await ask
                assert (refused.value.code.name, refused.value.reason) == ("UNAVAILABLE", "SCHEMA_NEWER")
        assert await redis.dump(key) == stored


def next_release(game: Game) -> Game:
    """The game with states of another layout: a field more, a count of what this code did, which the release before cannot read."""
    old: Any = game.rules.State
    fields = {**old._field_defaults, "more": 0, "__annotations__": {**get_type_hints(old), "more": int}, "__module__": old.__module__}
    state: Any = types.new_class(old.__name__, (NamedTuple,), exec_body=lambda body: body.update(fields))

    def counted(rule: Callable[..., Any]) -> Callable[..., Any]:
        def run(before: Any, *arguments: Any) -> Any:
            step = rule(old(*before[: len(old._fields)]) if isinstance(before, state) else before, *arguments)
            if is_refusal(step):
                return step
            after = state(*step.state[: len(old._fields)], more=getattr(before, "more", 0) + 1)
            return dataclasses.replace(step, state=after)

        return run

    changed = {"State": state, "setup": counted(game.rules.setup), "apply": counted(game.rules.apply)}
    rules: Any = SimpleNamespace(**{**vars(game.rules), **changed})
    real_time = game.real_time and dataclasses.replace(game.real_time, on_timeout=counted(game.real_time.on_timeout))
    return dataclasses.replace(game, rules=rules, schema=game.schema + 1, real_time=real_time)


async def test_replicas_of_two_releases_serve_side_by_side_and_neither_spoils_what_the_other_stored(
    game: Game, keys: Keys, redis_url: str, redis: Any
) -> None:
    to_come, pace = next_release(game), {"sweep_ms": 10, "lease_ms": 100}
    async with table(game, keys, redis_url, **pace) as before, table(to_come, keys, redis_url, **pace) as after:
        old, new = before.everyone(), after.everyone()
        match_id = await before.create()
        key = f"{game.id}:{{{match_id}}}:match"
        watching = asyncio.create_task(_watched(match_id, before.player("eve"), after.player("eve")))

        if not game.real_time:  # There a window may end at once, by either.
            # Until a replica of the new release has stored it, both serve it.
            player, moves = await mover(match_id, *old)
            await attempt(player, match_id, moves[0])
            for one, other in zip(old, new, strict=True):
                assert (await one.get(match_id)).view == (await other.get(match_id)).view
            assert snapshots.numbers(await redis.hget(key, "meta")) == (sessions.SCHEMA, game.schema)

        async def goes_on() -> bool:
            player, moves = await mover(match_id, *new)
            await attempt(player, match_id, moves[0])
            return snapshots.numbers(await redis.hget(key, "meta")) == (sessions.SCHEMA, to_come.schema)

        await eventually(goes_on)
        for player in old:
            move = (await mover(match_id, *new))[1][0]
            for ask in (player.get(match_id), player.submit(match_id, move), player.resign(match_id)):
                with pytest.raises(Refused) as refused:
                    await ask
                assert (refused.value.code.name, refused.value.reason) == ("UNAVAILABLE", "SCHEMA_NEWER")

        await play_out(match_id, *new)
        record = await new[0].record(match_id)
        assert list(verify.check(to_come, record))
        assert await watching == [event.cursor for event in await all_events(new[0], match_id)], "who watched saw everything, once"
        kept = msgspec.msgpack.decode(await redis.hget(key, "state"), type=to_come.rules.State)
        assert kept.more > 0
        if not game.real_time:
            assert kept.more == len(record.moves) - 1, "every move but the first was made by the new release, and none was undone"


@pytest.mark.parametrize("game", IN_TURNS, ids=lambda game: game.id)
async def test_a_player_behind_a_gateway_notices_nothing_of_two_releases_side_by_side(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    to_come, pace = next_release(game), {"sweep_ms": 10, "lease_ms": 100}
    async with table(game, keys, redis_url, **pace) as before, table(to_come, keys, redis_url, **pace) as after:
        both = f"ipv4:{before.addresses[0]},{after.addresses[0]}"
        async with stand(keys, redis_url, services={game.id: both}) as gateway, asyncio.timeout(60):
            gateway.be(await gateway.sign_in("Ann"))
            seats = [{"player": "me"}, *[{"bot": "STANDARD"}] * (game.info.min_seats - 1)]
            made = await gateway.http.post("/v1/matches", json={"game": game.id, "seats": seats})
            assert made.status_code == 201
            path = f"/v1/matches/{made.json()['id']}"
            while True:
                match, legal = await gateway.http.get(path), await gateway.http.get(f"{path}/moves")
                assert (match.status_code, legal.status_code) == (200, 200)
                if match.json()["status"] == "FINISHED":
                    break
                for move in legal.json()["moves"][:1]:
                    assert (await gateway.http.post(f"{path}/moves", json={"move": move})).status_code == 200
            assert (await gateway.http.get(f"{path}/record")).status_code == 200
            # Nor do they however long it takes, though every other try is refused.
            for _ in range(150):
                assert (await gateway.http.get(path)).status_code == 200


async def _watched(match_id: str, *players: Player) -> list[str]:
    """The cursors of all events as somebody saw them who went on at another replica whenever one did not serve the match."""
    seen = [event.cursor for event in await all_events(players[0], match_id)]
    for n in itertools.count():
        try:
            async for news in players[n % len(players)].watch(match_id, seen[-1]):
                assert news.WhichOneof("kind") == "event"
                seen.append(news.event.cursor)
            return seen
        except Refused as refused:
            if refused.code.name != "UNAVAILABLE":
                raise
    raise AssertionError
