"""The limits that everybody has who sets none, and how much a game's service takes at once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from deploy.local import Local
from gateway.registry import GAMES

_SECONDS = 8.0
# And so many moves at least, however busy the machine is.
_MOVES = 50


async def _play(local: Local, name: str, met: Counter[int]) -> int:
    """Plays one match after another against bots as fast as it gets answers, and returns how many moves it made."""
    moved = 0

    async with httpx.AsyncClient(base_url=local.url, timeout=15) as http:

        async def ask(method: str, path: str, body: Any = None) -> Any:
            answer = await http.request(method, path, json=body)
            met[answer.status_code] += 1
            return answer.json()

        session = await ask("POST", "/v1/players", {"name": name})
        http.headers["Authorization"] = f"Bearer {session['accessToken']}"
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until or moved < _MOVES:
            made = await ask("POST", "/v1/matches", {"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}]})
            while (now := await ask("GET", f"/v1/matches/{made['id']}"))["status"] != "FINISHED":
                moves = (await ask("GET", f"/v1/matches/{made['id']}/moves"))["moves"]
                if moves:
                    await ask("POST", f"/v1/matches/{now['id']}/moves", {"move": moves[0]})
                    moved += 1
    return moved


async def test_the_defaults_let_fast_bots_at_one_address_play_undisturbed(tmp_path: Path) -> None:
    with Local(tmp_path, env={"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0"}) as local:
        met: Counter[int] = Counter()
        moved = await asyncio.gather(*(_play(local, name, met) for name in ("Ann", "Bob")))
        assert met[200] > sum(moved) >= 2 * _MOVES
        assert 429 not in met, met


@pytest.mark.parametrize("game", GAMES)
async def test_a_message_too_large_is_refused_by_a_games_service_before_it_is_read(everything: Local, game: str) -> None:
    method = GAMES[game].methods["SubmitMove"]
    async with grpc.aio.insecure_channel(everything.services[game][0]) as channel:
        call: Any = channel.unary_unary(method.path)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(bytes(2 * 1024 * 1024 + 1), timeout=10)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
