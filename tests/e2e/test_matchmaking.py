"""A crowd that looks for matches, through four gateways side by side."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from gateway.ratings import Skill
from tests.gateway.stand import Stand, stand
from tests.harness import Keys

GATEWAYS, PLAYERS, PARTIES = 4, 2_000, 50
ARRIVE_SECONDS = 20.0
# Bands and patience are four times as fast as an operator would have them.
HURRY: dict[str, Any] = {
    "ticket_bands": "0:100,1.25:200,2.5:400,5:any",
    "ticket_patience_seconds": 2.5,
    "ticket_bots_seconds": 8,
}
WISHES: list[dict[str, Any]] = [{"min": 2, "max": 2}, {"min": 2, "max": 4}, {"min": 4, "max": 4}, {"min": 3, "max": 4}]
WEIGHTS = [50, 30, 10, 10]


async def ask(gateway: Stand, method: str, path: str, token: str, body: Any) -> tuple[int, Any]:
    """Asks a gateway by ASGI itself, which costs less than any client: two thousand clients are not what is tested."""
    path, _, query = path.partition("?")
    asked = [{"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}]
    answered: list[Any] = []

    async def receive() -> Any:
        return asked.pop() if asked else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        answered.append(message)

    headers = [(b"host", b"gateway"), (b"authorization", f"Bearer {token}".encode())]
    scope: dict[str, Any] = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http"}
    scope |= {"path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "", "headers": headers}
    await gateway.app({**scope, "client": ("127.0.0.1", 1), "server": ("gateway", 80)}, receive, send)
    return answered[0]["status"], json.loads(b"".join(message["body"] for message in answered[1:]))


class Crowd:
    """Players at gateways, and what became of them.

    Attributes:
        waited: seconds from the wish to the match, by player.
        matches: the match of each player, as its ticket says.
        put_off: how many calls were answered 503, as on a machine that does much else.
    """

    def __init__(self, gateways: list[Stand], chance: random.Random) -> None:
        self.waited: dict[str, float] = {}
        self.matches: dict[str, str] = {}
        self.put_off = 0
        self._gateways = gateways
        self._chance = chance
        self._tokens: dict[str, str] = {}

    async def _call(self, player: str, method: str, path: str, body: Any = None) -> Any:
        """Calls any of the gateways, another one each time; whoever is told to come later does. Each call here may be repeated."""
        token = self._tokens[player] if player in self._tokens else self._tokens.setdefault(player, self._gateways[0].keys.token(player))
        while True:
            status, answer = await ask(self._chance.choice(self._gateways), method, path, token, body)
            if status != 503:
                break
            self.put_off += 1
            await asyncio.sleep(1)
        assert status in (200, 201), answer
        return answer

    async def play(self, *players: str) -> None:
        """One player, or a party, comes, wishes and waits."""
        await asyncio.sleep(self._chance.uniform(0, ARRIVE_SECONDS))
        asked: dict[str, Any] = {"game": "night_clan", "seats": self._chance.choices(WISHES, WEIGHTS)[0]}
        if len(players) > 1:
            asked["party"] = (await self._call(players[0], "POST", "/v1/rooms", {"game": "night_clan"}))["code"]
            for player in players[1:]:
                await self._call(player, "POST", f"/v1/rooms/{asked['party']}:join")
                await self._call(player, "POST", f"/v1/rooms/{asked['party']}:ready")
        began = time.monotonic()
        ticket = await self._call(players[0], "POST", "/v1/tickets", asked)
        await asyncio.gather(*(self._wait(player, ticket["id"], began) for player in players))

    async def _wait(self, player: str, ticket_id: str, began: float) -> None:
        status = "WAITING"
        while status in ("WAITING", "FORMING"):
            ticket = await self._call(player, "GET", f"/v1/tickets/{ticket_id}?wait=25s")
            status = ticket["status"]
        assert status == "MATCHED", ticket
        self.waited[player] = time.monotonic() - began
        self.matches[player] = ticket["matchId"]


@pytest.mark.slow
@pytest.mark.scenario(18)
async def test_of_two_thousand_players_on_four_gateways_nobody_plays_twice_or_is_left(
    tmp_path: Path, redis_url: str, redis: Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    keys, chance = Keys(tmp_path), random.Random(1)
    ratings = {f"player{n}": round(chance.gauss(1500, 250)) for n in range(PLAYERS)}
    skills: dict[Any, Any] = {player: Skill(mu=rating / 60).write() for player, rating in ratings.items()}
    await redis.hset("gateway:{ratings/night_clan}:players", mapping=skills)
    names = list(ratings)
    async with AsyncExitStack() as stack:
        gateways = [await stack.enter_async_context(stand(keys, redis_url, **HURRY)) for _ in range(GATEWAYS)]
        crowd = Crowd(gateways, chance)
        began = time.monotonic()
        pairs = [names[2 * n : 2 * n + 2] for n in range(PARTIES)]
        await asyncio.gather(*(crowd.play(*pair) for pair in pairs), *(crowd.play(name) for name in names[2 * PARTIES :]))
        took = time.monotonic() - began
        made = {request.match_id: request for gateway in gateways for request in gateway.service.calls("CreateMatch")}
    seated = {match_id: [seat.player for seat in request.seats if seat.player] for match_id, request in made.items()}
    assert Counter(player for players in seated.values() for player in players) == Counter(names)
    assert all(player in seated[match_id] for player, match_id in crowd.matches.items())
    assert all(2 <= len(request.seats) <= 4 for request in made.values())
    assert all(crowd.matches[one] == crowd.matches[other] for one, other in pairs)
    waited = sorted(crowd.waited.values())
    rated = [[ratings[player] for player in players] for players in seated.values() if len(players) > 1]
    gaps = sorted(max(each) - min(each) for each in rated)
    bots = sum(bool(seat.bot) for request in made.values() for seat in request.seats)
    with capsys.disabled():
        print(
            f"\n{PLAYERS} players, {len(made)} matches, {bots} bots in {took:.1f} s: waiting p50 {statistics.median(waited):.2f} s, "
            f"p99 {waited[int(len(waited) * 0.99)]:.2f} s; rating gap p50 {statistics.median(gaps):.0f}, "
            f"p99 {gaps[int(len(gaps) * 0.99)]}; {crowd.put_off} calls put off"
        )
