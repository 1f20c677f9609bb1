"""Whose turn it is, for every game: handed out to whoever tells of it until it is acknowledged, where the operator wants it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import grpc
import pytest
from redis.asyncio import Redis

from gloaming.relay.v1 import relay_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import Unavailable
from services.kit.game import Game
from services.kit.sessions import Session
from tests.harness import IN_REAL_TIME, IN_TURNS, Keys, Refused, Table, eventually, mover, table

in_turns = pytest.mark.parametrize("game", IN_TURNS, ids=lambda game: game.id)
# A turn comes up once more, a lease after it did: none of it while a test looks.
SLOW: dict[str, Any] = {"webhooks": True, "lease_ms": 60_000}


class Teller:
    """Whoever tells of turns, over one replica."""

    def __init__(self, channel: grpc.aio.Channel, token: str) -> None:
        self._channel = channel
        self._metadata = [("authorization", f"Bearer {token}")]
        self.claim = "1"

    async def call(self, verb: str, request: Any) -> Any:
        """Calls a verb of the service.

        Raises:
            Refused: it was refused.
        """
        method = relay_pb2.DESCRIPTOR.services_by_name["TurnService"].methods_by_name[verb]
        kind = getattr(relay_pb2, method.output_type.name)
        path = f"/gloaming.relay.v1.TurnService/{verb}"
        call: Any = self._channel.unary_unary(
            path, request_serializer=type(request).SerializeToString, response_deserializer=kind.FromString
        )
        try:
            return await call(request, metadata=self._metadata, timeout=10)
        except grpc.aio.AioRpcError as fault:
            raise Refused(fault) from fault

    async def turns(self, size: int = 0) -> list[Any]:
        """ListTurns."""
        listed = await self.call("ListTurns", relay_pb2.ListTurnsRequest(page_size=size))
        self.claim = listed.claim
        return list(listed.turns)

    async def acknowledge(self, *match_ids: str) -> None:
        """AcknowledgeTurns, of those listed last."""
        await self.call("AcknowledgeTurns", relay_pb2.AcknowledgeTurnsRequest(match_ids=match_ids, claim=self.claim))

    async def handed_out(self) -> list[Any]:
        """Turns, once there are some."""
        return list(await eventually(self.turns))


@asynccontextmanager
async def telling(there: Table, replica: int = 0, *, scope: str = "relay") -> AsyncIterator[Teller]:
    async with grpc.aio.insecure_channel(there.addresses[replica]) as channel:
        yield Teller(channel, there.keys.token("gateway", scope=scope))


def due(there: Table) -> str:
    return f"{there.game.id}:{{turns}}:due"


@in_turns
async def test_each_turn_that_comes_to_a_player_is_handed_out_until_it_is_acknowledged(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    pace = {**SLOW, "result_lease_ms": 200}
    async with table(game, keys, redis_url, replicas=2, **pace) as there, telling(there) as one, telling(there, 1) as other:
        match_id = await there.create(move_seconds=600)
        (turn,) = await one.handed_out()
        match = await there.player(there.names[0]).get(match_id)
        assert (turn.match_id, turn.version, list(turn.to_move)) == (match_id, match.version, list(match.to_move))
        assert list(turn.seats) == list(match.seats)
        assert turn.seats[turn.to_move[0]].HasField("deadline")
        assert not turn.HasField("outcome")
        (again,) = await other.handed_out()
        assert again == turn
        await other.acknowledge(match_id)
        assert not await redis.exists(due(there))

        player, moves = await mover(match_id, *there.everyone())
        await player.submit(match_id, moves[0])
        (turn,) = await one.handed_out()
        assert turn.version == match.version + 1


@in_turns
async def test_a_turn_that_comes_while_another_of_the_match_is_held_is_not_acknowledged_with_it(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    async with table(game, keys, redis_url, **SLOW) as there, telling(there) as one, telling(there) as other:
        match_id = await there.create()
        (before,) = await one.handed_out()
        player, moves = await mover(match_id, *there.everyone())
        await player.submit(match_id, moves[0])
        (after,) = await other.handed_out()
        await one.acknowledge(match_id)
        assert await redis.zcard(due(there)) == 1
        assert after.version > before.version
        await other.acknowledge(match_id)
        assert not await redis.exists(due(there))


@in_turns
async def test_a_match_that_is_damaged_keeps_no_other_waiting(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url, **SLOW) as there, telling(there) as teller:
        bad, good = await there.create(), await there.create()
        await redis.hset(f"{game.id}:{{{bad}}}:match", "state", b"\xc1")
        assert [turn.match_id for turn in await teller.handed_out()] == [good]


@in_turns
async def test_a_bots_turn_is_not_handed_out(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url, **SLOW) as there, telling(there) as teller:
        await there.create(*["bot"] * game.info.min_seats, move_seconds=60)
        match_id = await there.create("ann", *["bot"] * (game.info.min_seats - 1))
        turns = await teller.handed_out()
        assert {turn.match_id for turn in turns} == {match_id}
        assert {n for turn in turns for n in turn.to_move} == {0}


@pytest.mark.parametrize("game", IN_REAL_TIME, ids=lambda game: game.id)
async def test_in_real_time_only_the_end_is_handed_out(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url, **SLOW) as there, telling(there) as teller:
        match_id = await there.create("ann", *["bot"] * (game.info.min_seats - 1))
        (turn,) = await eventually(teller.turns, 60)
        assert turn.match_id == match_id
        assert turn.HasField("outcome")
        assert not turn.to_move


async def test_the_end_of_a_match_is_handed_out_with_its_outcome(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url, **SLOW) as there, telling(there) as teller:
        match_id = await there.create()
        players = there.everyone()
        for player in players[1:]:
            await player.resign(match_id)
        if len(players) > 2:
            await there.replicas[0]._matches.end(match_id)

        async def ended() -> Any:
            return next((turn for turn in await teller.turns() if turn.HasField("outcome")), None)

        turn = await eventually(ended)
        match = await players[0].get(match_id)
        assert match.status == table_pb2.FINISHED
        assert (turn.match_id, turn.version, turn.outcome, list(turn.to_move)) == (match_id, match.version, match.outcome, [])


@in_turns
async def test_a_turn_says_who_watches(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url, **SLOW) as there, telling(there) as teller:
        match_id = await there.create()
        async with aclosing(there.player(there.names[0]).watch(match_id)) as watched:
            async for told in watched:
                if told.HasField("event") and told.event.event.HasField("seat_changed"):
                    break
            (turn,) = await teller.handed_out()
            assert [seat.connected for seat in turn.seats] == [True, *[False] * (len(there.names) - 1)]


async def test_nothing_is_noted_unless_the_operator_wants_it(there: Table, redis: Redis) -> None:
    async with telling(there) as teller:
        await there.create(move_seconds=60)
        await there.create("ann", *["bot"] * (there.game.info.min_seats - 1))
        await there.create(*["bot"] * there.game.info.min_seats, rated=True)
        # By then the others have been woken too.
        await eventually(lambda: redis.exists(f"{there.game.id}:{{results}}:due"), 60)
        assert not await teller.turns()
        assert not await redis.exists(due(there))


@in_turns
async def test_a_replica_that_dies_before_it_notes_a_turn_loses_nothing(
    game: Game, keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace: dict[str, Any] = {"webhooks": True, "lease_ms": 500, "sweep_ms": 50}
    tried: list[str] = []

    async def put(session: Session) -> None:
        tried.append(session.match_id)
        raise Unavailable("STORAGE_UNAVAILABLE", "not from here")

    async with table(game, keys, redis_url, **pace) as there:
        monkeypatch.setattr(there.replicas[0]._matches.turns, "put", put)
        match_id = await there.create()
        await eventually(lambda: tried)
    async with table(game, keys, redis_url, **pace) as there, telling(there) as teller:
        assert [each.match_id for each in await teller.handed_out()] == [match_id]


@in_turns
async def test_what_nobody_asks_for_is_dropped_and_so_is_what_is_gone(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with table(game, keys, redis_url, **SLOW) as there, telling(there) as teller:
        await redis.zadd(due(there), {f"{game.id}-old00000": 1})
        gone = await there.create()
        await eventually(lambda: redis.zscore(due(there), gone))
        assert await redis.zrange(due(there), 0, -1) == [gone.encode()]
        assert await redis.pttl(due(there)) > 0
        await redis.delete(*await redis.keys(f"{game.id}:{{{gone}}}:*"))
        assert not await teller.turns()
        assert not await redis.exists(due(there))


@pytest.mark.parametrize("scope", ["play", "host"])
async def test_without_the_scope_relay_nobody_gets_turns_or_acknowledges_them(there: Table, scope: str) -> None:
    async with telling(there, scope=scope) as teller:
        for ask in (teller.turns(), teller.acknowledge("x")):
            with pytest.raises(Refused) as refused:
                await ask
            assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")


async def test_bad_requests_for_turns_are_refused_by_their_field(there: Table) -> None:
    async with telling(there) as teller:
        await teller.acknowledge("no match id", "", f"{there.game.id}-unknown00")
        bad = relay_pb2.AcknowledgeTurnsRequest(match_ids=["x"], claim="soon")
        for ask, field in (
            (teller.turns(-1), "pageSize"),
            (teller.acknowledge(*["x"] * 1001), "matchIds"),
            (teller.call("AcknowledgeTurns", bad), "claim"),
        ):
            with pytest.raises(Refused) as refused:
                await ask
            assert (refused.value.code, refused.value.fields) == (grpc.StatusCode.INVALID_ARGUMENT, [field])
