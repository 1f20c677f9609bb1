"""A crowd that looks for matches, through four processes of the gateway side by side."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from deploy.local import Local
from gateway.ratings import Skill
from gateway.tokens import Signer
from tests import unlimited

GATEWAYS, PLAYERS, PARTIES = 4, 2_000, 50
ARRIVE_SECONDS = 20.0
# Bands and patience are four times as fast as an operator would have them.
HURRY = {
    "GLOAMING_TICKET_BANDS": "0:100,1.25:200,2.5:400,5:any",
    "GLOAMING_TICKET_PATIENCE_SECONDS": "2.5",
    "GLOAMING_TICKET_BOTS_SECONDS": "8",
}
WISHES: list[dict[str, Any]] = [{"min": 2, "max": 2}, {"min": 2, "max": 4}, {"min": 4, "max": 4}, {"min": 3, "max": 4}]
WEIGHTS = [50, 30, 10, 10]


class Crowd:
    """Players at gateways, and what became of them.

    Attributes:
        waited: seconds from the wish to the match, by player.
        matches: the match of each player, as its ticket says.
        put_off: how many calls were answered 503, as on a machine that does much else.
    """

    def __init__(self, gateways: list[httpx.AsyncClient], signer: Signer, chance: random.Random) -> None:
        self.waited: dict[str, float] = {}
        self.matches: dict[str, str] = {}
        self.put_off = 0
        self._gateways = gateways
        self._signer = signer
        self._chance = chance
        self._tokens: dict[str, str] = {}

    async def call(self, player: str, method: str, path: str, body: Any = None) -> Any:
        """Calls any of the gateways, another one each time; whoever is told to come later does. Each call here may be repeated."""
        if player not in self._tokens:
            self._tokens[player], _ = self._signer.access(player, player.title(), 1)
        headers = {"Authorization": f"Bearer {self._tokens[player]}"}
        while True:
            answer = await self._chance.choice(self._gateways).request(method, path, json=body, headers=headers)
            if answer.status_code != 503:
                break
            self.put_off += 1
            await asyncio.sleep(int(answer.headers["retry-after"]))
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    async def play(self, *players: str) -> None:
        """One player, or a party, comes, wishes and waits."""
        await asyncio.sleep(self._chance.uniform(0, ARRIVE_SECONDS))
        asked: dict[str, Any] = {"game": "night_clan", "seats": self._chance.choices(WISHES, WEIGHTS)[0]}
        if len(players) > 1:
            asked["party"] = (await self.call(players[0], "POST", "/v1/rooms", {"game": "night_clan"}))["code"]
            for player in players[1:]:
                await self.call(player, "POST", f"/v1/rooms/{asked['party']}:join")
                await self.call(player, "POST", f"/v1/rooms/{asked['party']}:ready")
        began = time.monotonic()
        ticket = await self.call(players[0], "POST", "/v1/tickets", asked)
        await asyncio.gather(*(self._wait(player, ticket["id"], began) for player in players))

    async def _wait(self, player: str, ticket_id: str, began: float) -> None:
        status = "WAITING"
        while status in ("WAITING", "FORMING"):
            ticket = await self.call(player, "GET", f"/v1/tickets/{ticket_id}?wait=25s")
            status = ticket["status"]
        assert status == "MATCHED", ticket
        self.waited[player] = time.monotonic() - began
        self.matches[player] = ticket["matchId"]


# A minute on two idle cores, and they are seldom idle.
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.scenario(18)
async def test_of_two_thousand_players_on_four_gateways_nobody_plays_twice_or_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(1)
    ratings = {f"player{n}": round(chance.gauss(1500, 250)) for n in range(PLAYERS)}
    names = list(ratings)
    with Local(tmp_path, gateways=GATEWAYS, env={"REDIS_URL": "", **unlimited.ENVIRONMENT, **HURRY}) as local:
        async with AsyncExitStack() as stack:
            redis = await stack.enter_async_context(Redis.from_url(local.redis_url))
            skills: dict[Any, Any] = {player: Skill(mu=rating / 60).write() for player, rating in ratings.items()}
            await redis.hset("gateway:{ratings/night_clan}:players", mapping=skills)
            # None is closed as idle: on a machine that is busy httpx does that to connections that have just been given a request.
            free = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=None)
            clients = [httpx.AsyncClient(base_url=url, timeout=60, limits=free) for url in local.urls]
            crowd = Crowd([await stack.enter_async_context(client) for client in clients], Signer(local.signing_key), chance)
            began = time.monotonic()
            pairs = [names[2 * n : 2 * n + 2] for n in range(PARTIES)]
            await asyncio.gather(*(crowd.play(*pair) for pair in pairs), *(crowd.play(name) for name in names[2 * PARTIES :]))
            took = time.monotonic() - began
            # As the game's service has them; and a match that a ticket does not name would be in its players' lists.
            one_of = {match_id: player for player, match_id in crowd.matches.items()}
            made = {match_id: (await crowd.call(one, "GET", f"/v1/matches/{match_id}"))["seats"] for match_id, one in one_of.items()}
            assert [await redis.zcard(f"gateway:{{{name}}}:matches") for name in names] == [1] * PLAYERS
    seated = {match_id: [seat["player"] for seat in seats if seat["player"]] for match_id, seats in made.items()}
    assert Counter(player for players in seated.values() for player in players) == Counter(names)
    assert all(player in seated[match_id] for player, match_id in crowd.matches.items())
    assert all(2 <= len(seats) <= 4 for seats in made.values())
    assert all(crowd.matches[one] == crowd.matches[other] for one, other in pairs)
    waited = sorted(crowd.waited.values())
    rated = [[ratings[player] for player in players] for players in seated.values() if len(players) > 1]
    gaps = sorted(max(each) - min(each) for each in rated)
    bots = sum(seat["bot"] == "STANDARD" for seats in made.values() for seat in seats)
    with capsys.disabled():
        print(
            f"\n{PLAYERS} players, {len(made)} matches, {bots} bots in {took:.1f} s: waiting p50 {statistics.median(waited):.2f} s, "
            f"p99 {waited[int(len(waited) * 0.99)]:.2f} s; rating gap p50 {statistics.median(gaps):.0f}, "
            f"p99 {gaps[int(len(gaps) * 0.99)]}; {crowd.put_off} calls put off"
        )
