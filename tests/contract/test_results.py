"""Results of rated matches, for every game: handed out to whoever counts them until they are acknowledged."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import grpc
import pytest
from redis.asyncio import Redis

from gloaming.relay.v1 import relay_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import Unavailable
from services.kit.game import Game
from tests.harness import Keys, Refused, Table, all_events, eventually, new_match_id, table

FINISHED = table_pb2.FINISHED


class Counter:
    """Whoever counts results, over one replica."""

    def __init__(self, channel: grpc.aio.Channel, token: str) -> None:
        self._channel = channel
        self._metadata = [("authorization", f"Bearer {token}")]

    async def call(self, verb: str, request: Any) -> Any:
        """Calls a verb of the service.

        Raises:
            Refused: it was refused.
        """
        method = relay_pb2.DESCRIPTOR.services_by_name["ResultService"].methods_by_name[verb]
        kind = getattr(relay_pb2, method.output_type.name)
        path = f"/gloaming.relay.v1.ResultService/{verb}"
        call: Any = self._channel.unary_unary(
            path, request_serializer=type(request).SerializeToString, response_deserializer=kind.FromString
        )
        try:
            return await call(request, metadata=self._metadata, timeout=10)
        except grpc.aio.AioRpcError as fault:
            raise Refused(fault) from fault

    async def results(self, size: int = 0) -> list[Any]:
        """ListResults."""
        return list((await self.call("ListResults", relay_pb2.ListResultsRequest(page_size=size))).results)

    async def acknowledge(self, *match_ids: str) -> None:
        """AcknowledgeResults."""
        await self.call("AcknowledgeResults", relay_pb2.AcknowledgeResultsRequest(match_ids=match_ids))


@asynccontextmanager
async def counting(there: Table, replica: int = 0, *, scope: str = "relay") -> AsyncIterator[Counter]:
    async with grpc.aio.insecure_channel(there.addresses[replica]) as channel:
        yield Counter(channel, there.keys.token("gateway", scope=scope))


async def ended(there: Table, *, rated: bool = True) -> Any:
    """A match that has ended."""
    match_id, eve = await there.create(*["bot"] * there.game.info.max_seats, rated=rated), there.player("eve")
    async for _ in eve.watch(match_id):
        pass
    match = await eve.get(match_id)
    assert match.status == FINISHED
    return match


async def handed_out(counter: Counter) -> list[Any]:
    return list(await eventually(counter.results))


async def test_a_rated_match_that_has_ended_is_handed_out_as_it_is_until_it_is_acknowledged(
    game: Game, keys: Keys, redis_url: str, redis: Redis
) -> None:
    async with table(game, keys, redis_url, replicas=2, result_lease_ms=200) as there, counting(there) as one, counting(there, 1) as other:
        match = await ended(there)
        (result,) = await handed_out(one)
        assert (result.match_id, result.outcome, list(result.seats)) == (match.id, match.outcome, list(match.seats))
        assert result.finish_time == (await all_events(there.player("eve"), match.id))[-1].time
        # Nobody said that it was counted: after its lease it comes again, from whichever replica.
        (again,) = await handed_out(other)
        assert again == result
        await one.acknowledge(match.id)
        # What comes after it is handed out, and it is not.
        later = await ended(there)
        assert [each.match_id for each in await handed_out(other)] == [later.id]
        await other.acknowledge(later.id)
        assert not await redis.keys(f"{game.id}:{{results}}:due")


async def test_what_is_handed_out_is_handed_to_nobody_else_for_the_length_of_its_lease(there: Table) -> None:
    async with counting(there) as one, counting(there) as other:
        await ended(there)
        assert await handed_out(one)
        assert not await other.results()


async def test_results_are_handed_out_the_oldest_first_and_no_more_than_asked_for(there: Table) -> None:
    async with counting(there) as counter:
        matches = []
        for n in range(3):
            matches.append((await ended(there)).id)
            await eventually(partial(_put, there, n + 1))
        assert [each.match_id for each in await counter.results(2)] == matches[:2]
        assert [each.match_id for each in await counter.results()] == matches[2:]


async def _put(there: Table, count: int) -> bool:
    storage = there.replicas[0]._storage
    return bool(await storage.redis.zcard(f"{there.game.id}:{{results}}:due") == count)


async def test_a_match_that_is_not_rated_is_never_handed_out(there: Table) -> None:
    async with counting(there) as counter:
        await ended(there, rated=False)
        rated = await ended(there)
        assert [each.match_id for each in await handed_out(counter)] == [rated.id]


async def test_a_replica_that_dies_before_it_puts_a_result_out_loses_nothing(
    game: Game, keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace: dict[str, Any] = {"lease_ms": 500, "sweep_ms": 50}
    tried: list[str] = []

    async def put(match_id: str) -> None:
        tried.append(match_id)
        raise Unavailable("STORAGE_UNAVAILABLE", "not from here")

    async with table(game, keys, redis_url, **pace) as there:
        monkeypatch.setattr(there.replicas[0]._matches.results, "put", put)
        match = await ended(there)
        await eventually(lambda: tried)
    async with table(game, keys, redis_url, **pace) as there, counting(there) as counter:
        assert [each.match_id for each in await handed_out(counter)] == [match.id]


async def test_a_result_whose_match_is_gone_is_dropped_and_holds_up_no_other(there: Table, redis: Redis) -> None:
    async with counting(there) as counter:
        gone, kept = await ended(there), await ended(there)
        await eventually(lambda: _put(there, 2))
        await redis.delete(*await redis.keys(f"{there.game.id}:{{{gone.id}}}:*"))
        assert [each.match_id for each in await counter.results()] == [kept.id]
        await counter.acknowledge(kept.id)
        assert not await redis.keys(f"{there.game.id}:{{results}}:due")


async def test_results_that_nobody_asks_for_are_dropped_when_their_matches_are(there: Table, redis: Redis) -> None:
    key = f"{there.game.id}:{{results}}:due"
    await redis.zadd(key, {new_match_id(there.game): 1})
    match = await ended(there)
    await eventually(lambda: redis.zscore(key, match.id))
    assert await redis.zcard(key) == 1
    assert await redis.pttl(key) > 0


async def test_acknowledging_what_is_not_known_does_nothing(there: Table, redis: Redis) -> None:
    async with counting(there) as counter:
        await counter.acknowledge(new_match_id(there.game), "no match id", "")
        await counter.acknowledge()
        assert not await redis.keys(f"{there.game.id}:{{results}}:*")


@pytest.mark.parametrize("scope", ["play", "host"])
async def test_without_the_scope_relay_nobody_gets_results_or_acknowledges_them(there: Table, scope: str) -> None:
    async with counting(there, scope=scope) as counter, counting(there) as gateway:
        match = await ended(there)
        for ask in (counter.results(), counter.acknowledge(match.id)):
            with pytest.raises(Refused) as refused:
                await ask
            assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")
        assert await handed_out(gateway)


async def test_bad_requests_for_results_are_refused_by_their_field(there: Table) -> None:
    async with counting(there) as counter:
        for ask, field in ((counter.results(-1), "pageSize"), (counter.acknowledge(*["x"] * 1001), "matchIds")):
            with pytest.raises(Refused) as refused:
                await ask
            assert (refused.value.code, refused.value.fields) == (grpc.StatusCode.INVALID_ARGUMENT, [field])
