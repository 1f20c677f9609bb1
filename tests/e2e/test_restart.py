"""Matches outlast everything that serves them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from redis.asyncio import Redis

from deploy.local import Local
from gloaming.client import Client
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.table.v1 import table_pb2


def stopped(local: Local) -> None:
    """Ctrl-C."""
    local.stop()


def killed(local: Local) -> None:
    """Power cut: every process at once."""
    local.kill_all()
    local.stop()


@pytest.mark.scenario(12)
@pytest.mark.parametrize("ended", [stopped, killed])
async def test_a_match_goes_on_after_a_restart_of_everything(tmp_path: Path, ended: Callable[[Local], None]) -> None:
    local = Local(tmp_path, env={"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0"})
    await asyncio.to_thread(local.start)
    async with Redis.from_url(local.redis_url) as redis:
        # By `everysec` a disk that is busy keeps what was acknowledged out of the file for up to two seconds.
        await redis.config_set("appendfsync", "always")
    async with Client(local.url) as ann:
        await ann.sign_in("Ann")
        game = ann.game(night_clan_pb2)
        match = await game.create_match(seats=[{"player": "me"}, {"bot": "STANDARD"}])
        await game.play(match.id, (await game.moves(match.id)).moves[0])
        before = await game.match(match.id)
        seen = [event.cursor async for event in game.events(match.id)]

        await asyncio.to_thread(ended, local)
        await asyncio.to_thread(local.start)
        try:
            after = await game.match(match.id)
            assert after.version >= before.version
            assert after.commitment == before.commitment
            assert after.view.hand == before.view.hand or after.version > before.version
            while (match := await game.match(match.id)).status != table_pb2.FINISHED:
                if moves := (await game.moves(match.id)).moves:
                    await game.play(match.id, moves[0])
                else:
                    await asyncio.sleep(0.01)
            # Everything from before is there once, in its place, and so is everything after.
            whole = [event.cursor async for event in game.events(match.id)]
            assert whole[: len(seen)] == seen
            assert len(set(whole)) == len(whole)
            assert [event.cursor async for event in game.events(match.id, after=seen[-1])] == whole[len(seen) :]
            assert len((await game.record(match.id)).moves) == match.version - 1
        finally:
            await asyncio.to_thread(local.stop)
