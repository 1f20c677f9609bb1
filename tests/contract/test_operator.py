"""What the operator's command asks of every game's service."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from gateway.upstream import Services
from gloaming.operator.v1 import operator_pb2
from gloaming.relay.v1 import relay_pb2
from gloaming.table.v1 import table_pb2
from services.kit import verify
from services.kit.chance import commitment
from services.kit.game import Game
from tests.gateway.stand import targets
from tests.harness import Keys, Player, Refused, Table, a_choice, all_events, attempt, calm, eventually, mover, play_out, table
from tests.process import process

_SERVICE = operator_pb2.DESCRIPTOR.services_by_name["OperatorService"]


class Operator:
    """Somebody with an operator's token, or another, at one replica."""

    def __init__(self, address: str, token: str) -> None:
        self.channel = grpc.aio.insecure_channel(address)
        self._metadata = (("authorization", f"Bearer {token}"),)

    async def call(self, verb: str, **fields: Any) -> Any:
        method = _SERVICE.methods_by_name[verb]
        request, answer = (getattr(operator_pb2, each.name) for each in (method.input_type, method.output_type))
        call: Any = self.channel.unary_unary(
            f"/{_SERVICE.full_name}/{verb}", request_serializer=request.SerializeToString, response_deserializer=answer.FromString
        )
        try:
            return await call(request(**fields), metadata=self._metadata, timeout=10)
        except grpc.aio.AioRpcError as fault:
            raise Refused(fault) from fault

    async def find(self, **fields: Any) -> dict[str, Any]:
        listing: Any = self.channel.unary_stream(
            f"/{_SERVICE.full_name}/ListMatches",
            request_serializer=operator_pb2.ListMatchesRequest.SerializeToString,
            response_deserializer=operator_pb2.ListMatchesResponse.FromString,
        )(operator_pb2.ListMatchesRequest(**fields), metadata=self._metadata, timeout=10)
        try:
            return {match.match_id: match async for page in listing for match in page.matches}
        except grpc.aio.AioRpcError as fault:
            raise Refused(fault) from fault


@asynccontextmanager
async def operator(there: Table, scope: str = "operator", replica: int = 0) -> AsyncIterator[Operator]:
    it = Operator(there.addresses[replica], there.keys.token("operator:olga", scope=scope))
    try:
        yield it
    finally:
        await it.channel.close()


@pytest.mark.parametrize("scope", ["play", "host", "relay", "play host"])
async def test_nobody_but_an_operator_is_told_anything(there: Table, scope: str) -> None:
    match_id = await there.create()
    async with operator(there, scope) as nobody:
        calls: dict[str, dict[str, Any]] = {
            "InspectMatch": {"match_id": match_id},
            "EndMatch": {"match_id": match_id, "reason": "x"},
            "Drain": {},
        }
        for verb, fields in calls.items():
            with pytest.raises(Refused) as refused:
                await nobody.call(verb, **fields)
            assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")
        with pytest.raises(Refused) as refused:
            await nobody.find()
        assert refused.value.reason == "SCOPE_MISSING"
    assert (await there.player(there.names[0]).get(match_id)).status == table_pb2.PLAYING


async def test_matches_are_found_by_what_is_known_of_them(there: Table) -> None:
    matches = [await there.create() for _ in range(3)]
    others = await there.create(*("bot" for _ in there.names))
    over = await there.create()
    async with operator(there) as olga:
        await olga.call("EndMatch", match_id=over, reason="a test")
        assert (await olga.find()).keys() == {*matches, others, over}
        assert (await olga.find(prefix=matches[0][:-2])).keys() == {matches[0]}
        assert (await olga.find(player=there.names[0])).keys() == {*matches, over}
        assert (await olga.find(name="BOT")).keys() >= {others}
        assert (await olga.find(name=there.names[1].upper())).keys() == {*matches, over}
        assert over not in await olga.find(status="PLAYING")
        (ended,) = [each for each in (await olga.find(status="FINISHED")).values() if each.match_id == over]
        assert ended.outcome.ending == table_pb2.Outcome.ABANDONED
        assert not await olga.find(player="nobody")
        assert [seat.player for seat in (await olga.find())[matches[0]].seats] == list(there.names)


@pytest.mark.parametrize("prefix", ["*", "another-", "night", "night_clan", "x}*{", "-"])
async def test_a_prefix_is_no_pattern(there: Table, prefix: str) -> None:
    async with operator(there) as olga:
        with pytest.raises(Refused) as refused:
            await olga.find(prefix=prefix)
    assert (refused.value.code, refused.value.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["prefix"])


async def test_what_is_hidden_is_told_only_for_a_reason_which_is_logged(there: Table) -> None:
    match_id, _, _ = await a_choice(there)
    async with operator(there) as olga:
        with capture_logs() as logs:
            told = await olga.call("InspectMatch", match_id=match_id)
            assert not told.HasField("secrets")
            for reason in ("", "   ", "x" * 201, "two\nlines"):
                with pytest.raises(Refused) as refused:
                    await olga.call("InspectMatch", match_id=match_id, reveal_secrets=True, reason=reason)
                assert refused.value.fields == ["reason"]
            assert not [each for each in logs if each["event"] == "secrets_revealed"]
            revealed = await olga.call("InspectMatch", match_id=match_id, reveal_secrets=True, reason="a player asks")
            seed = bytes.fromhex(revealed.secrets.seed)
            (logged,) = [each for each in logs if each["event"] == "secrets_revealed"]
    assert {key: logged[key] for key in ("log_level", "match_id", "operator", "reason")} == {
        "log_level": "warning",
        "match_id": match_id,
        "operator": "operator:olga",
        "reason": "a player asks",
    }
    seen = there.game.message("Match").FromString(told.match)
    assert commitment(seed) == seen.commitment
    assert seed.hex() not in str(logged)
    assert seed not in told.SerializeToString()
    assert seed.hex().encode() not in told.SerializeToString()
    assert json.loads(revealed.secrets.state)
    for name, view in zip(there.names, revealed.secrets.views, strict=True):
        own = await there.player(name).get(match_id)
        assert there.game.message("Match").FromString(view.match).view == own.view
    stranger = await there.player("stranger").get(match_id)
    assert seen.view == stranger.view


async def test_an_inspection_counts_what_is_stored(there: Table) -> None:
    match_id, player, moves = await a_choice(there)
    await attempt(player, match_id, moves[0], request_id="one")
    watching = there.player(there.names[0]).watch(match_id)
    await anext(watching)
    async with operator(there) as olga:
        told: Any = await eventually(lambda: _watched(olga, match_id))
        assert [watcher.seat for watcher in told.watchers] == [0]
        assert told.events == len(await all_events(there.player(there.names[0]), match_id))
        assert told.answers >= (0 if there.game.real_time else 1)
        assert told.stored_bytes > 100
        assert told.create_time.ToMilliseconds() <= told.update_time.ToMilliseconds() < told.expire_time.ToMilliseconds()
        with pytest.raises(Refused) as refused:
            await olga.call("InspectMatch", match_id=f"{there.game.id}-nowhere00")
        assert refused.value.reason == "MATCH_NOT_FOUND"
    await watching.aclose()


async def _watched(olga: Operator, match_id: str) -> Any:
    told = await olga.call("InspectMatch", match_id=match_id)
    return told if told.watchers and told.summary.seats[0].connected else None


async def test_a_match_that_is_ended_is_over_for_all_who_watch_and_counts_for_nobody(
    keys: Keys, redis_url: str, redis: Redis, game: Game
) -> None:
    async with table(game, keys, redis_url, replicas=2) as there, operator(there) as olga:
        match_id = await there.create(rated=True, options=calm(game))
        watch = there.player(there.names[0], replica=1).watch(match_id)
        await anext(watch)
        watching = asyncio.create_task(_last(watch))
        await mover(match_id, *there.everyone())
        with capture_logs() as logs:
            told = await olga.call("EndMatch", match_id=match_id, reason="they agreed")
            again = await olga.call("EndMatch", match_id=match_id, reason="they agreed")
        assert (told.ended, again.ended) == (True, False)
        assert told.summary.outcome.ending == again.summary.outcome.ending == table_pb2.Outcome.ABANDONED
        assert not told.summary.outcome.winners
        assert [(each["operator"], each["reason"]) for each in logs if each["event"] == "match_ended"] == [("operator:olga", "they agreed")]
        assert (await watching).event.event.match_finished.outcome == told.summary.outcome
        record = await there.player(there.names[0]).record(match_id)
        assert list(verify.check(game, record))
        # Not even after its last wake-up.
        await eventually(lambda: _settled(redis, game, match_id))
        assert await _results(there) == []


async def _last(watch: AsyncIterator[Any]) -> Any:
    async for seen in watch:
        last = seen
    return last


async def _settled(redis: Redis, game: Game, match_id: str) -> bool:
    scores = [await redis.zscore(f"{game.id}:{{deadlines/{shard}}}:due", match_id) for shard in range(8)]
    return all(score is None for score in scores)


async def _results(there: Table) -> list[Any]:
    async with grpc.aio.insecure_channel(there.addresses[0]) as channel:
        call: Any = channel.unary_unary(
            "/gloaming.relay.v1.ResultService/ListResults",
            request_serializer=relay_pb2.ListResultsRequest.SerializeToString,
            response_deserializer=relay_pb2.ListResultsResponse.FromString,
        )
        token = there.keys.token("gateway", scope="relay")
        return list((await call(relay_pb2.ListResultsRequest(), metadata=(("authorization", f"Bearer {token}"),))).results)


async def test_a_match_is_ended_while_its_players_keep_moving(there: Table) -> None:
    match_id = await there.create()
    playing = asyncio.create_task(play_out(match_id, *there.everyone()))
    async with operator(there) as olga:
        told = await olga.call("EndMatch", match_id=match_id, reason="a test")
    assert told.summary.status == table_pb2.FINISHED
    (stopped,) = await asyncio.gather(playing, return_exceptions=True)
    assert stopped is None or (isinstance(stopped, Refused) and stopped.reason == "MATCH_FINISHED")
    assert (await there.player(there.names[0]).get(match_id)).outcome == told.summary.outcome


async def test_a_replica_that_is_told_to_drain_answers_what_it_was_asked_and_ends(
    keys: Keys, redis_url: str, redis: Redis, game: Game, tmp_path: Path
) -> None:
    async with process(game, keys, redis_url, tmp_path) as going, process(game, keys, redis_url, tmp_path) as staying:
        both = f"ipv4:127.0.0.1:{going.port},127.0.0.1:{staying.port}"
        host = Player(game, f"127.0.0.1:{staying.port}", keys.token("host", scope="host"), "host")
        names = ["ann", "bob", "cat"][: game.info.min_seats]
        seats = [table_pb2.SeatRequest(player=name) for name in names]
        request = game.message("CreateMatchRequest")(
            match_id=f"{game.id}-abcdefgh", seats=seats, options=calm(game), settings=table_pb2.Settings(move_seconds=0)
        )
        await host.call("CreateMatch", request)
        stop, lost = asyncio.Event(), list[Exception]()
        answered = 0

        async def ask(services: Services) -> None:
            nonlocal answered
            upstream = services[game.id]
            while not stop.is_set():
                try:
                    await upstream.call("GetMatch", ann, upstream.request("GetMatch")(match_id=f"{game.id}-abcdefgh"))
                    answered += 1
                except grpc.aio.AioRpcError as fault:
                    lost.append(fault)

        ann = f"Bearer {keys.token('ann')}"
        async with Services(targets(both), 5.0) as services:
            asking = [asyncio.create_task(ask(services)) for _ in range(4)]
            await eventually(lambda: answered > 20)
            olga = Operator(f"127.0.0.1:{going.port}", keys.token("operator:olga", scope="operator"))
            told = await olga.call("Drain")
            assert told.game == game.id
            assert await going.ended() == "ended with status 0"
            before = answered
            await eventually(lambda: answered > before + 20)
            stop.set()
            await asyncio.gather(*asking)
        await olga.channel.close()
        await host.close()
        assert lost == []
        assert '"told_to_drain"' in going.log.read_text()
        staying.signal(signal.SIGTERM)
        assert await staying.ended() == "ended with status 0"
