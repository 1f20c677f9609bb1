"""Ratings: how well players play each game, by the rated matches that have been counted, and the leaderboards made of them.

A rating is openskill's Plackett-Luce with its own constants; the API shows its numbers times 60, so that a newcomer has 1500 ± 500. Each
seat is a team of one. A bot is an opponent who never gets better or worse. A player without a profile counts as a newcomer and gets no
rating.

Keys, one slot a game: `gateway:{ratings/<game>}:players` (hash: player, mu, sigma and number of matches), `gateway:{ratings/<game>}:board`
(sorted set: player, score), `gateway:{ratings/<game>}:counted:<match>` (string, for a month: the match has been counted). The first two
hold nobody without a profile for long: who is forgotten is removed at once, whose profile has expired by `gateway.results` in its time.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from openskill.models import PlackettLuce

from gateway.registry import GAMES
from gloaming.gateway.v1 import gateway_pb2
from gloaming.relay.v1 import relay_pb2
from services.kit.storage import Script, Storage

_LUA = Path(__file__).parent / "lua"
_LOAD, _APPLY, _FORGET, _PAGE = (Script(_LUA / f"rating_{verb}.lua") for verb in ("load", "apply", "forget", "page"))

_SCALE = 60
_DEVIATIONS = 3
# A service hands a result out again until it is acknowledged, which takes seconds; whoever was stopped in between may be late by so much.
COUNTED_MS = 30 * 86_400_000
_MODEL = PlackettLuce()


@dataclass(frozen=True, slots=True)
class Skill:
    """What is known of a player's strength in a game, in openskill's own numbers. They are stored as they are, so that nothing drifts.

    Args:
        mu: the estimate.
        sigma: its standard deviation.
        matches: how many matches were counted.
    """

    mu: float = 25.0
    sigma: float = 25.0 / 3
    matches: int = 0

    @classmethod
    def read(cls, stored: bytes) -> Skill:
        """Reads what `write` wrote."""
        mu, sigma, matches = stored.split()
        return cls(float(mu), float(sigma), int(matches))

    def write(self) -> str:
        """Returns it as it is stored; a float's shortest form is read back as the same."""
        return f"{self.mu!r} {self.sigma!r} {self.matches}"

    @property
    def rating(self) -> int:
        """The estimate as others see it."""
        return round(_SCALE * self.mu)

    @property
    def deviation(self) -> int:
        """The standard deviation as others see it."""
        return round(_SCALE * self.sigma)

    @property
    def score(self) -> int:
        """What a player is at least, almost surely; the leaderboard's order."""
        return self.rating - _DEVIATIONS * self.deviation

    def message(self, game: str) -> gateway_pb2.Rating:
        """Returns it as others see it."""
        return gateway_pb2.Rating(game=game, rating=self.rating, deviation=self.deviation, score=self.score, matches=self.matches)


NEWCOMER = Skill()
# Every bot: as good as a newcomer is thought to be, and known to be so (1500 ± 100).
BOT = Skill(25.0, 100 / _SCALE)


def rate(skills: Sequence[Skill], ranks: Sequence[int]) -> list[Skill]:
    """Returns the skills after a match.

    Plackett and Luce know no ties, and openskill's way with them may give a fourth more than three who share the win. So those who share a
    place get the mean of what they would get in every order in which they could have come.

    Args:
        skills: of each seat, before; two at least.
        ranks: of each seat; 1 is best, equal ranks share a place.
    """
    teams = [[_MODEL.rating(mu=skill.mu, sigma=skill.sigma)] for skill in skills]
    tied = [[seat for seat, rank in enumerate(ranks) if rank == each] for each in sorted(set(ranks))]
    rated = []
    for orders in itertools.product(*map(itertools.permutations, tied)):
        order = list(itertools.chain(*orders))
        rated.append(_MODEL.rate(teams, ranks=[float(order.index(seat)) for seat in range(len(teams))]))
    # fsum rounds once: the order of what is added makes no difference.
    return [
        Skill(
            math.fsum(each[seat][0].mu for each in rated) / len(rated),
            math.fsum(each[seat][0].sigma for each in rated) / len(rated),
            skill.matches + 1,
        )
        for seat, skill in enumerate(skills)
    ]


class Place(NamedTuple):
    """A place in a leaderboard."""

    rank: int
    player: str
    score: int
    skill: Skill


class Ratings:
    """What is stored of players' ratings."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def rating(self, player: str, game: str) -> int:
        """Returns a player's rating in a game; 1500 without one.

        Raises:
            Unavailable: STORAGE_UNAVAILABLE; as all that follow.
        """
        (stored,) = await self._load(game, [player])
        return (Skill.read(stored) if stored else NEWCOMER).rating

    async def of_player(self, player: str) -> list[gateway_pb2.Rating]:
        """Returns a player's ratings, one for each game in which there is one."""
        stored = await asyncio.gather(*(self._load(game, [player]) for game in GAMES))
        return [Skill.read(skill).message(game) for game, (skill,) in zip(GAMES, stored, strict=True) if skill]

    async def count(self, game: str, result: relay_pb2.Result, rated: Collection[str]) -> bool:
        """Counts the result of a match, once however often it is called; returns whether this call did.

        Args:
            result: has two seats or more, a rank for each, and no player twice.
            rated: those of its players who get a rating.
        """
        attempt = secrets.token_hex(8)
        players = [seat.player for seat in result.seats if seat.player in rated]
        while True:
            stored = dict(zip(players, await self._load(game, players), strict=True))
            skills = {player: Skill.read(skill) if skill else NEWCOMER for player, skill in stored.items()}
            before = [BOT if not seat.player else skills.get(seat.player, NEWCOMER) for seat in result.seats]
            after = rate(before, result.outcome.ranks)
            changes: list[str | bytes | int] = []
            for seat, skill in zip(result.seats, after, strict=True):
                if seat.player in stored:
                    changes += [seat.player, stored[seat.player] or "", skill.write(), skill.score]
            keys = [*_keys(game), f"gateway:{{ratings/{game}}}:counted:{result.match_id}"]
            answer = await self._storage.run(_APPLY, keys, [attempt, COUNTED_MS, *changes])
            if answer >= 0:
                return bool(answer)
            # Another match of these players has been counted since: again, from what is there now.

    async def forget(self, player: str, games: Collection[str] = GAMES.keys()) -> None:
        """Removes a player's ratings and places."""
        await asyncio.gather(*(self._storage.run(_FORGET, _keys(game), [player]) for game in games))

    async def page(self, game: str, after: tuple[int, str] | None, size: int) -> list[Place]:
        """Returns a part of a leaderboard, best first.

        Args:
            after: a score and a player behind whom it begins, whether that place is still taken or not; None for the top.
            size: most places.
        """
        score, player = ("", "") if after is None else (str(after[0]), after[1])
        rows = await self._storage.run(_PAGE, _keys(game), [size, score, player])
        return [Place(int(rank), player.decode(), int(score), Skill.read(skill)) for rank, player, score, skill in rows]

    async def some(self, game: str, cursor: int, count: int) -> tuple[int, list[str]]:
        """Returns some of those who have a rating, and the cursor of the next some; 0 at first, and again when all have been named."""
        scanned: Any = await self._storage.call(self._storage.redis.hscan(_keys(game)[0], cursor, count=count))
        return int(scanned[0]), [player.decode() for player in scanned[1]]

    async def _load(self, game: str, players: Sequence[str]) -> list[bytes | None]:
        loaded: list[bytes | None] = await self._storage.run(_LOAD, _keys(game)[:1], players)
        return loaded


def _keys(game: str) -> list[str]:
    return [f"gateway:{{ratings/{game}}}:players", f"gateway:{{ratings/{game}}}:board"]
