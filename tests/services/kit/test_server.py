from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from deploy.processes import free_port
from gloaming.table.v1 import table_pb2
from services.kit import metrics
from services.kit.game import Game
from services.kit.settings import ServiceSettings
from services.kit.verify import check
from tests.harness import Keys, Player, Refused, Table, eventually, play_out, table
from tests.process import process


@pytest.fixture
async def there(game: Game, keys: Keys, redis_url: str, redis: Redis) -> AsyncIterator[Table]:
    """One replica, on an empty Redis."""
    async with table(game, keys, redis_url) as running:
        yield running


@pytest.mark.scenario(22)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_process_that_is_told_to_stop_finishes_its_calls_and_tells_its_watchers(
    game: Game, keys: Keys, redis_url: str, redis: Redis, tmp_path: Path, number: signal.Signals
) -> None:
    async with process(game, keys, redis_url, tmp_path, log_level="DEBUG") as running:
        serving = Table(game, keys, [running])  # type: ignore[list-item]
        match_id = await serving.create()
        ann = serving.player("ann")
        watching = [serving.player("eve").watch(match_id) for _ in range(3)]
        for watcher in watching:
            assert (await anext(watcher)).WhichOneof("kind") == "snapshot"
        move = (await ann.moves(match_id))[0]
        # The storage holds back writing, so that a call is in flight when the signal comes.
        await redis.client_pause(5_000, all=False)
        submitting = asyncio.create_task(ann.submit(match_id, move))
        await eventually(lambda: _blocked(redis))
        running.signal(number)
        for watcher in watching:
            with pytest.raises(Refused) as refused:
                await anext(watcher)
            assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        assert not submitting.done()
        await redis.client_unpause()
        assert (await submitting).version == 2
        assert await running.ended() == "ended with status 0"
        await serving.close()
    lines = running.log.read_text().splitlines()
    logged = [json.loads(line) for line in lines]
    said = [line["event"] for line in logged if line["level"] == "info" and line["event"] != "call"]
    assert said[-2:] == ["draining", "stopped"]
    assert not [line for line in logged if line["level"] in ("warning", "error", "critical")]
    stored: Any = await redis.hgetall(f"{game.id}:{{{match_id}}}:match")
    # The seed stands in Meta, 32 bytes behind the mark of a binary of that length.
    (seed,) = re.findall(rb"\xc4\x20(.{32})", stored[b"meta"], re.DOTALL)[:1]
    for secret in (ann.metadata[0][1].removeprefix("Bearer "), seed.hex(), repr(seed)):
        assert secret not in "\n".join(lines)


async def _blocked(redis: Redis) -> bool:
    return int((await redis.info("clients"))["blocked_clients"]) > 0


async def test_calls_are_refused_and_not_hung_while_a_process_is_down(
    game: Game, keys: Keys, redis_url: str, redis: Redis, tmp_path: Path
) -> None:
    async with process(game, keys, redis_url, tmp_path) as running, grpc.aio.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        running.signal(signal.SIGKILL)
        await running.ended()
        method: Any = channel.unary_unary(f"/{game.service.full_name}/GetMatch")
        with pytest.raises(grpc.aio.AioRpcError) as fault:
            await method(b"", timeout=5)
        assert fault.value.code() == grpc.StatusCode.UNAVAILABLE


def _start(game: Game, keys: Keys, **settings: object) -> subprocess.CompletedProcess[str]:
    environment = {
        f"GLOAMING_{name.upper()}": str(value) for name, value in {"jwks_file": keys.jwks, "metrics_listen": "", **settings}.items()
    }
    return subprocess.run(
        [sys.executable, "-m", f"services.{game.id}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


async def test_a_port_that_is_taken_is_said_so_in_a_sentence(there: Table, keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text('{"keys": [{"kty": "other"}]}')
    taken = there.addresses[0]
    starts = await asyncio.gather(
        asyncio.to_thread(_start, there.game, keys, listen=taken),
        asyncio.to_thread(_start, there.game, keys, listen=f"127.0.0.1:{free_port()}", metrics_listen=taken),
        asyncio.to_thread(_start, there.game, keys, jwks_file=tmp_path / "none.json"),
    )
    for start, name in zip(starts, ("GLOAMING_LISTEN", "GLOAMING_METRICS_LISTEN", "GLOAMING_JWKS_FILE"), strict=True):
        assert start.returncode == 1
        assert start.stderr.splitlines()[-1].startswith(f"{name}: ")
        assert "Traceback" not in start.stderr
    # Who was there goes on.
    assert await there.create()


async def test_a_metrics_page_shows_what_happened(game: Game, keys: Keys, redis_url: str, redis: Redis) -> None:
    port = free_port()
    async with table(game, keys, redis_url, metrics_listen=f"127.0.0.1:{port}") as there:
        match_id = await there.create()
        await there.player("ann").get(match_id)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        page = (await reader.read()).decode()
        writer.close()
        await writer.wait_closed()
    assert 'gloaming_rpcs_total{code="OK",method="GetMatch"}' in page
    assert match_id not in page


# Deadlines of calls, and calls that are given up.


async def _call(player: Player, verb: str, request: Any, seconds: float) -> None:
    method = player.game.service.methods_by_name[verb]
    await player._channels[0].unary_unary(
        f"/{player.game.service.full_name}/{verb}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=player.game.message(method.output_type.name).FromString,
    )(request, metadata=player.metadata, timeout=seconds)


async def test_a_call_whose_deadline_passes_is_given_up_and_the_service_goes_on(there: Table, redis: Redis) -> None:
    match_id = await there.create()
    ann = there.player("ann")
    await ann.get(match_id)
    move = (await ann.moves(match_id))[0]
    submit = there.game.message("SubmitMoveRequest")(match_id=match_id, move=move, request_id="once")
    await redis.client_pause(5_000, all=False)
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        await _call(ann, "SubmitMove", submit, 0.1)
    assert fault.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    await redis.client_unpause()
    # It may have been made all the same, as any call may that got no answer; asked again it is made once.
    assert (await ann.submit(match_id, move, request_id="once")).version == 2
    assert (await ann.get(match_id)).version == 2


async def test_calls_given_up_at_any_moment_do_no_harm_to_others(there: Table) -> None:
    match_id = await there.create()
    ann, bob = there.player("ann"), there.player("bob")
    request = there.game.message("GetMatchRequest")(match_id=match_id)

    async def give_up(n: int) -> grpc.StatusCode | None:
        try:
            await _call(ann, "GetMatch", request, n / 20_000)
        except grpc.aio.AioRpcError as fault:
            return fault.code()
        return None

    with capture_logs() as logs:
        hasty = asyncio.gather(*(give_up(n % 100) for n in range(300)))
        patient = await asyncio.gather(*(bob.get(match_id) for _ in range(60)))
        codes = set(await hasty)
    assert {match.id for match in patient} == {match_id}
    assert {match.viewer_seat for match in patient} == {1}
    assert codes <= {None, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}
    assert grpc.StatusCode.DEADLINE_EXCEEDED in codes
    assert not [entry for entry in logs if entry["event"] != "call"]


async def test_watchers_who_come_and_go_at_any_moment_leave_nothing_behind(there: Table, redis: Redis) -> None:
    match_id = await there.create()
    eve = there.player("eve")
    bells = there.replicas[0]._matches._bells

    async def watch(n: int) -> None:
        async with asyncio.timeout(n / 2_000):
            async for _ in eve.watch(match_id):
                pass

    before = metrics.WATCHERS._value.get()
    tasks = len(asyncio.all_tasks())
    with capture_logs() as logs:
        for _ in range(4):
            left = await asyncio.gather(*(watch(n) for n in range(50)), return_exceptions=True)
            assert all(isinstance(each, TimeoutError) for each in left)
    await eventually(lambda: metrics.WATCHERS._value.get() == before)
    await eventually(lambda: not bells._ears)
    await eventually(lambda: _silent(redis))
    await eventually(lambda: len(asyncio.all_tasks()) <= tasks + 4)
    assert not logs


async def _silent(redis: Redis) -> bool:
    return await redis.pubsub_shardchannels() == []


# Replicas.


async def test_two_processes_serve_one_match_interchangeably(game: Game, keys: Keys, redis_url: str, redis: Redis, tmp_path: Path) -> None:
    async with process(game, keys, redis_url, tmp_path) as one, process(game, keys, redis_url, tmp_path) as other:
        serving = Table(game, keys, [one, other])  # type: ignore[list-item]
        match_id = await serving.create()
        # Each call of a player goes to the other process than the one before.
        players = serving.everyone()
        watchers = [asyncio.create_task(_cursors(serving.player("eve", replica=n), match_id)) for n in range(2)]
        await play_out(match_id, *players)
        whole = [event.cursor for event in (await players[0].events(match_id, size=500)).events]
        for watcher in watchers:
            snapshot, *cursors = await watcher
            assert cursors == whole[whole.index(snapshot) + 1 :]
        match, record = await players[0].get(match_id), await players[0].record(match_id)
        assert (match.status, match.version) == (table_pb2.FINISHED, 1 + len(record.moves))
        assert list(check(game, record))
        await serving.close()


async def _cursors(player: Player, match_id: str) -> list[str]:
    return [getattr(message, message.WhichOneof("kind")).cursor async for message in player.watch(match_id)]


async def test_a_replica_whose_sweep_fails_does_not_go_on_looking_healthy(there: Table, redis: Redis) -> None:
    replica = there.replicas[0]
    for shard in range(ServiceSettings.model_fields["deadline_shards"].default):
        await redis.set(f"{there.game.id}:{{deadlines/{shard}}}:due", "no sorted set")
    replica._matches._deadlines._sooner[0].set()
    async with asyncio.timeout(5):
        await replica.ended_or(asyncio.Event())
    with pytest.raises(ExceptionGroup):
        await replica.__aexit__()
    replica.__aexit__ = lambda *_: asyncio.sleep(0)  # type: ignore[method-assign]
