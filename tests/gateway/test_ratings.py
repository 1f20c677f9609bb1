"""Ratings: what a match changes, that it does so once, and who sees it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import grpc
import jwt
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from redis.asyncio import Redis

from gateway.answers import Answers
from gateway.players import Players
from gateway.ratings import BOT, NEWCOMER, Ratings, Skill, rate
from gateway.registry import GAMES
from gateway.results import Pace, Results
from gateway.tokens import HostToken, Signer
from gateway.upstream import Services
from gloaming.relay.v1 import relay_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import Error, Unavailable
from services.kit.identity import Identity
from services.kit.storage import Argument, Script, Storage
from tests.gateway.stand import Context, Stand, refuse, stand, targets
from tests.harness import Keys

GAME = "night_clan"
ANN, BOB, CAT, DAN = ("p" + letter * 16 for letter in "abcd")
COMPLETED, ABANDONED = table_pb2.Outcome.COMPLETED, table_pb2.Outcome.ABANDONED
_SERVICE = "gloaming.relay.v1.ResultService"

_numbers = itertools.count()


def result(
    players: Sequence[str], ranks: Sequence[int], match_id: str = "", ending: table_pb2.Outcome.Ending = COMPLETED
) -> relay_pb2.Result:
    """How a match ended; a player without an id is a bot."""
    made = relay_pb2.Result(match_id=match_id or f"{GAME}-{next(_numbers):020d}", outcome=table_pb2.Outcome(ending=ending, ranks=ranks))
    for number, player in enumerate(players):
        made.seats.add(seat=number, player=player, bot=table_pb2.Bot.KIND_UNSPECIFIED if player else table_pb2.Bot.STANDARD)
    made.finish_time.GetCurrentTime()
    return made


class Outbox:
    """A ResultService as every game's would be, that hands out Night Clan's results until they are acknowledged.

    Attributes:
        waiting: the results, by match.
        shared: whether a result is handed to everybody who asks, as if every lease were over at once.
        refuses: how many acknowledgements are refused yet, after which that call goes through.
        authorizations: with what it was asked.
        listed: how many lists it has answered.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, relay_pb2.Result] = {}
        self.shared = False
        self.refuses = 0
        self.authorizations: set[str] = set()
        self.listed = 0
        self.port = 0
        self._held: set[str] = set()
        self._changed = asyncio.Event()
        self._server: grpc.aio.Server | None = None

    def put(self, *results: relay_pb2.Result) -> None:
        """Has results handed out."""
        self.waiting.update({each.match_id: each for each in results})

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until a call has made something true."""
        async with asyncio.timeout(20):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def counted(self) -> None:
        """Waits until all is acknowledged."""
        await self.until(lambda: not self.waiting)

    async def _list(self, request: relay_pb2.ListResultsRequest, context: Context) -> relay_pb2.ListResultsResponse:
        self.authorizations.add(str(dict(context.invocation_metadata() or ()).get("authorization", "")))
        free = [match_id for match_id in self.waiting if self.shared or match_id not in self._held][: request.page_size]
        self._held.update(free)
        self.listed += 1
        self._changed.set()
        return relay_pb2.ListResultsResponse(results=[self.waiting[match_id] for match_id in free])

    async def _acknowledge(self, request: relay_pb2.AcknowledgeResultsRequest, context: Context) -> relay_pb2.AcknowledgeResultsResponse:
        if self.refuses:
            self.refuses -= 1
            self._held.clear()
            self._changed.set()
            await refuse(context, Unavailable("DRAINING", "this replica is about to stop"))
        for match_id in request.match_ids:
            self.waiting.pop(match_id, None)
        self._changed.set()
        return relay_pb2.AcknowledgeResultsResponse()

    async def start(self) -> None:
        """Starts, on the same port again after `stop`."""
        make: Any = grpc.unary_unary_rpc_method_handler
        verbs = {
            "ListResults": make(self._list, relay_pb2.ListResultsRequest.FromString, relay_pb2.ListResultsResponse.SerializeToString),
            "AcknowledgeResults": make(
                self._acknowledge,
                relay_pb2.AcknowledgeResultsRequest.FromString,
                relay_pb2.AcknowledgeResultsResponse.SerializeToString,
            ),
        }
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, verbs),))
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def stop(self) -> None:
        """Stops at once."""
        if self._server is not None:
            await self._server.stop(0)
            self._server = None

    @property
    def address(self) -> str:
        """Where it is."""
        return f"127.0.0.1:{self.port}"


@pytest.fixture
async def outbox() -> AsyncIterator[Outbox]:
    """Night Clan's results."""
    it = Outbox()
    await it.start()
    yield it
    await it.stop()


@contextlib.asynccontextmanager
async def counting(keys: Keys, redis_url: str, outbox: Outbox, **pace: float) -> AsyncIterator[Storage]:
    """A gateway's counting, and its storage. The other games' services are not there."""
    storage = Storage(redis_url)
    signer = Signer(keys.pem)
    players = Players(
        storage, Identity.from_file(keys.jwks, storage), signer, Answers(storage), access_seconds=900, refresh_seconds=90 * 86_400
    )
    services = Services(targets("127.0.0.1:1", {GAME: outbox.address}), 5)
    chosen: Any = {"idle": 0.02, "longest": 0.1, **pace}
    try:
        async with services, Results(services, HostToken(signer), players, Ratings(storage), Pace(**chosen)):
            yield storage
    finally:
        await storage.close()


@pytest.fixture
async def storage(redis_url: str, redis: Redis) -> AsyncIterator[Storage]:
    """The storage."""
    it = Storage(redis_url)
    yield it
    await it.close()


async def signed_in(redis: Redis, *players: str) -> None:
    """Players with a profile."""
    for player in players:
        await redis.hset(f"gateway:{{{player}}}:player", mapping={"name": player[1].upper(), "created": 1, "generation": 0})


async def skills(redis: Redis, game: str = GAME) -> dict[str, Skill]:
    """Everybody's skill, as stored."""
    stored: dict[Any, Any] = await redis.hgetall(f"gateway:{{ratings/{game}}}:players")
    return {player.decode(): Skill.read(skill) for player, skill in stored.items()}


# What a match changes.


def test_a_newcomer_begins_at_1500_give_or_take_500_and_at_the_bottom() -> None:
    assert (NEWCOMER.rating, NEWCOMER.deviation, NEWCOMER.score, NEWCOMER.matches) == (1500, 500, 0, 0)


def test_the_winner_goes_up_and_the_loser_down_and_both_are_known_better() -> None:
    winner, loser = rate([NEWCOMER, NEWCOMER], [1, 2])
    assert winner.rating > 1500 > loser.rating
    assert winner.deviation < 500 > loser.deviation
    assert winner.matches == loser.matches == 1


def test_a_draw_brings_two_players_nearer_to_each_other() -> None:
    strong, weak = rate([Skill(30.0), Skill(20.0)], [1, 1])
    assert 20 < weak.mu < strong.mu < 30
    assert rate([NEWCOMER, NEWCOMER], [1, 1])[0].mu == pytest.approx(25)


def test_beating_the_stronger_is_worth_more_than_beating_the_weaker() -> None:
    gains = [rate([NEWCOMER, Skill(mu, 5.0)], [1, 2])[0].mu for mu in (15.0, 25.0, 35.0)]
    assert gains == sorted(gains)
    assert len(set(gains)) == 3


@given(st.lists(st.integers(1, 6), min_size=2, max_size=6))
def test_among_equals_the_better_rank_gets_the_higher_rating_and_equal_ranks_get_equal_ones(order: list[int]) -> None:
    ranks = [1 + sum(other < each for other in order) for each in order]
    rated = rate([NEWCOMER] * len(ranks), ranks)
    for (rank, skill), (other, theirs) in itertools.combinations(zip(ranks, rated, strict=True), 2):
        if rank == other:
            assert skill.mu == pytest.approx(theirs.mu)
        else:
            assert (skill.mu > theirs.mu) == (rank < other)


@given(st.floats(-1e3, 1e3), st.floats(1e-4, 10), st.integers(0, 10**6))
def test_a_skill_is_stored_exactly(mu: float, sigma: float, matches: int) -> None:
    skill = Skill(mu, sigma, matches)
    assert Skill.read(skill.write().encode()) == skill


@given(st.lists(st.lists(st.sampled_from([ANN, BOB, CAT, ""]), min_size=2, max_size=4, unique=True), max_size=40))
@settings(max_examples=30, deadline=None)
def test_numbers_stay_finite_and_deviations_positive_whatever_is_played(matches: list[list[str]]) -> None:
    known = dict.fromkeys((ANN, BOB, CAT), NEWCOMER) | {"": BOT}
    for players in matches:
        rated = rate([known[player] for player in players], range(1, len(players) + 1))
        known |= dict(zip(players, rated, strict=True)) | {"": BOT}
    for skill in known.values():
        assert math.isfinite(skill.mu)
        assert 0 < skill.sigma < 10


# What is stored.


async def test_a_player_without_a_rating_is_rated_1500(storage: Storage, redis: Redis) -> None:
    ratings = Ratings(storage)
    assert await ratings.rating(ANN, GAME) == 1500
    assert await ratings.of_player(ANN) == []
    assert not await redis.keys("*")


async def test_a_result_counts_for_its_game_alone(storage: Storage) -> None:
    ratings = Ratings(storage)
    assert await ratings.count(GAME, result([ANN, BOB], [1, 2]), {ANN, BOB})
    assert await ratings.rating(ANN, GAME) > 1500 > await ratings.rating(BOB, GAME)
    for game in GAMES:
        if game != GAME:
            assert await ratings.rating(ANN, game) == 1500
    assert [(each.game, each.matches) for each in await ratings.of_player(ANN)] == [(GAME, 1)]


async def test_a_result_that_comes_again_changes_nothing(storage: Storage, redis: Redis) -> None:
    ratings = Ratings(storage)
    first = result([ANN, BOB], [1, 2])
    assert await ratings.count(GAME, first, {ANN, BOB})
    before = await skills(redis)
    for _ in range(3):
        assert not await ratings.count(GAME, first, {ANN, BOB})
    assert await skills(redis) == before


async def test_a_bot_is_an_opponent_who_stays_as_it_is(storage: Storage, redis: Redis) -> None:
    ratings = Ratings(storage)
    for _ in range(5):
        assert await ratings.count(GAME, result([ANN, "", ""], [1, 2, 2]), {ANN})
    assert list(await skills(redis)) == [ANN]
    assert await ratings.rating(ANN, GAME) > 1500
    assert rate([Skill(), BOT], [1, 2])[0] == rate([Skill(), Skill(BOT.mu, BOT.sigma, 99)], [1, 2])[0]


async def test_a_player_who_resigned_is_ranked_last_and_loses_most(storage: Storage, redis: Redis) -> None:
    await Ratings(storage).count(GAME, result([ANN, BOB, CAT], [1, 3, 2], ending=COMPLETED), {ANN, BOB, CAT})
    after = await skills(redis)
    assert after[ANN].mu > after[CAT].mu > after[BOB].mu


async def test_a_player_without_a_profile_is_an_opponent_and_gets_no_rating(storage: Storage, redis: Redis) -> None:
    await Ratings(storage).count(GAME, result([ANN, "host-made"], [1, 2]), {ANN})
    assert list(await skills(redis)) == [ANN]
    assert (await skills(redis))[ANN] == rate([NEWCOMER, NEWCOMER], [1, 2])[0]


async def test_every_key_is_bounded_by_the_players_or_expires(storage: Storage, redis: Redis) -> None:
    for _ in range(20):
        await Ratings(storage).count(GAME, result([ANN, BOB], [1, 2]), {ANN, BOB})
    lasting = {key for key in await redis.keys("*") if await redis.ttl(key) < 0}
    assert lasting == {f"gateway:{{ratings/{GAME}}}:{name}".encode() for name in ("players", "board")}
    assert await redis.hlen(f"gateway:{{ratings/{GAME}}}:players") == await redis.zcard(f"gateway:{{ratings/{GAME}}}:board") == 2
    markers = await redis.keys("*:counted:*")
    assert len(markers) == 20
    for key in markers:
        assert 29 * 86_400 < await redis.ttl(key) <= 30 * 86_400


# Once, whoever counts.


class Stepped(Storage):
    """A storage whose calls each wait for their turn; a call may be sent twice, as when an answer is lost."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.arrived = asyncio.Event()
        self.go = asyncio.Event()
        self.twice = False

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        self.arrived.set()
        await self.go.wait()
        self.go.clear()
        if self.twice:
            await super().run(script, keys, args)
        return await super().run(script, keys, args)


_MATCHES = [([ANN, BOB], [1, 2]), ([BOB, CAT, ""], [2, 1, 3]), ([ANN, BOB, CAT, DAN], [1, 1, 3, 4])]
_DELIVERIES = st.lists(st.integers(0, len(_MATCHES) - 1), min_size=2, max_size=5)
_SCHEDULE = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["step", "step", "step", "twice", "crash"])), max_size=40)


class Repeating(Storage):
    """A storage that loses the first answer to each call, and asks again."""

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        await super().run(script, keys, args)
        return await super().run(script, keys, args)


async def test_whose_answer_was_lost_is_told_that_it_did_count(redis_url: str, redis: Redis) -> None:
    storage = Repeating(redis_url)
    late = result([ANN, BOB], [1, 2])
    assert await Ratings(storage).count(GAME, late, {ANN, BOB})
    assert not await Ratings(storage).count(GAME, late, {ANN, BOB})
    await storage.close()
    assert {skill.matches for skill in (await skills(redis)).values()} == {1}


@pytest.mark.scenario(22)
@pytest.mark.scenario(23)
async def test_each_result_counts_once_in_some_order_however_gateways_interleave(redis_url: str, redis: Redis) -> None:
    async def check(deliveries: list[int], schedule: list[tuple[int, str]]) -> None:
        await redis.flushdb()
        results = [result(players, ranks) for players, ranks in _MATCHES]
        counted: list[int] = []
        gateways = [Stepped(redis_url) for _ in deliveries]

        async def deliver(number: int) -> None:
            if await Ratings(gateways[number]).count(GAME, results[deliveries[number]], {ANN, BOB, CAT, DAN}):
                counted.append(deliveries[number])

        async def step(number: int) -> None:
            """Lets a gateway do one call, up to its next one or its end."""
            gateway = gateways[number]
            gateway.arrived.clear()
            gateway.go.set()
            arriving = asyncio.create_task(gateway.arrived.wait())
            await asyncio.wait([arriving, tasks[number]], return_when=asyncio.FIRST_COMPLETED)
            arriving.cancel()

        tasks = [asyncio.create_task(deliver(number)) for number in range(len(deliveries))]
        try:
            for pick, what in schedule:
                number = pick % len(tasks)
                if what == "crash":
                    # It is gone before its next call, and the result comes again, to a gateway that knows nothing of that.
                    tasks[number].cancel()
                    await asyncio.gather(tasks[number], return_exceptions=True)
                    gateways[number].go.clear()
                    tasks[number] = asyncio.create_task(deliver(number))
                elif not tasks[number].done():
                    gateways[number].twice = what == "twice"
                    await step(number)
            for gateway in gateways:
                gateway.twice = False
            while not all(task.done() for task in tasks):
                for number, task in enumerate(tasks):
                    if not task.done():
                        await step(number)
            await asyncio.gather(*tasks)
        finally:
            for gateway in gateways:
                await gateway.close()
        stored = await skills(redis)
        expected = Counter(player for which in set(deliveries) for player in _MATCHES[which][0] if player)
        assert {player: skill.matches for player, skill in stored.items()} == expected
        assert len(counted) == len(set(counted))
        # As if they had been counted one after the other: in one of the orders, exactly.
        assert any(stored == replayed(order) for order in itertools.permutations(set(deliveries)))

    loop = asyncio.get_running_loop()

    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(_DELIVERIES, _SCHEDULE)
    @example([0, 0], [(0, "step"), (1, "step"), (0, "step"), (1, "step")])
    @example([0, 1], [(0, "step"), (1, "step"), (0, "step"), (1, "step")])
    def run(deliveries: list[int], schedule: list[tuple[int, str]]) -> None:
        asyncio.run_coroutine_threadsafe(check(deliveries, schedule), loop).result(60)

    await asyncio.to_thread(run)


def replayed(order: Sequence[int]) -> dict[str, Skill]:
    """What comes of matches counted one after the other."""
    known: dict[str, Skill] = {}
    for which in order:
        players, ranks = _MATCHES[which]
        after = rate([known.get(player, NEWCOMER) if player else BOT for player in players], ranks)
        known |= {player: skill for player, skill in zip(players, after, strict=True) if player}
    return known


@pytest.mark.scenario(18)
async def test_ten_gateways_that_get_the_same_results_at_once_count_each_once(
    keys: Keys, redis_url: str, redis: Redis, outbox: Outbox
) -> None:
    everybody = [ANN, BOB, CAT, DAN]
    await signed_in(redis, *everybody)
    outbox.shared = True
    pairs = list(itertools.permutations(everybody, 2)) * 5
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(10):
            await stack.enter_async_context(counting(keys, redis_url, outbox))
        before = _counted("counted")
        outbox.put(*(result(pair, [1, 2]) for pair in pairs))
        await outbox.counted()
    assert {player: skill.matches for player, skill in (await skills(redis)).items()} == Counter(itertools.chain(*pairs))
    assert _counted("counted") - before == len(pairs)


def _counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("gloaming_results_total", {"game": GAME, "outcome": outcome}) or 0.0


# How results come.


async def test_results_are_asked_for_with_the_gateways_own_token_for_the_relay(
    keys: Keys, redis_url: str, redis: Redis, outbox: Outbox
) -> None:
    async with counting(keys, redis_url, outbox):
        await outbox.until(lambda: outbox.listed > 1)
    (authorization,) = outbox.authorizations
    claims = jwt.decode(authorization.removeprefix("Bearer "), options={"verify_signature": False})
    assert "relay" in claims["scope"].split()
    assert claims["sub"] == "gateway"


async def test_a_result_whose_acknowledgement_is_lost_comes_again_and_counts_once(
    keys: Keys, redis_url: str, redis: Redis, outbox: Outbox
) -> None:
    await signed_in(redis, ANN, BOB)
    outbox.refuses = 3
    repeated = _counted("repeated")
    outbox.put(result([ANN, BOB], [1, 2]), result([BOB, ANN], [1, 2]))
    async with counting(keys, redis_url, outbox):
        await outbox.counted()
    assert {player: skill.matches for player, skill in (await skills(redis)).items()} == {ANN: 2, BOB: 2}
    assert _counted("repeated") - repeated == 6


async def test_a_gateway_that_ends_anywhere_while_it_counts_loses_and_doubles_nothing(
    keys: Keys, redis_url: str, redis: Redis, outbox: Outbox
) -> None:
    await signed_in(redis, ANN, BOB)
    outbox.shared = True
    outbox.put(*(result([ANN, BOB], [1, 2]) for _ in range(60)))
    for milliseconds in range(0, 60, 3):
        with contextlib.suppress(TimeoutError):
            async with counting(keys, redis_url, outbox):
                await asyncio.wait_for(outbox.counted(), milliseconds / 1000)
    async with counting(keys, redis_url, outbox):
        await outbox.counted()
    assert {skill.matches for skill in (await skills(redis)).values()} == {60}


async def test_a_service_that_is_down_is_waited_for(keys: Keys, redis_url: str, redis: Redis, outbox: Outbox) -> None:
    await signed_in(redis, ANN, BOB)
    await outbox.stop()
    async with counting(keys, redis_url, outbox):
        outbox.put(result([ANN, BOB], [1, 2]))
        await asyncio.sleep(0.3)
        await outbox.start()
        await outbox.counted()
        await outbox.stop()
        await outbox.start()
        outbox.put(result([ANN, BOB], [1, 2]))
        await outbox.counted()
    assert {skill.matches for skill in (await skills(redis)).values()} == {2}


async def test_after_a_full_page_the_next_is_asked_for_at_once(keys: Keys, redis_url: str, redis: Redis, outbox: Outbox) -> None:
    await signed_in(redis, ANN, BOB)
    outbox.put(*(result([ANN, BOB], [1, 2]) for _ in range(350)))
    async with counting(keys, redis_url, outbox, idle=60.0):
        await outbox.counted()
    assert outbox.listed >= 4
    assert {skill.matches for skill in (await skills(redis)).values()} == {350}


async def test_an_abandoned_match_counts_for_nobody(keys: Keys, redis_url: str, redis: Redis, outbox: Outbox) -> None:
    await signed_in(redis, ANN, BOB)
    before = _counted("abandoned")
    outbox.put(result([ANN, BOB], [1, 1], ending=ABANDONED))
    async with counting(keys, redis_url, outbox):
        await outbox.counted()
    assert not await redis.keys("gateway:{ratings*")
    assert _counted("abandoned") - before == 1


@pytest.mark.scenario(20)
@pytest.mark.parametrize(
    "unsound",
    [
        result([ANN, BOB], [1]),
        result([ANN], [1]),
        result([], []),
        result([ANN, ANN], [1, 2]),
        result([ANN, BOB], [1, 2], "night_knight-00000000"),
        result([ANN, BOB], [1, 2], "night_clan-{x}"),
        result([ANN, BOB], [1, 2], "x"),
    ],
)
async def test_an_unsound_result_counts_for_nobody_and_stops_no_other(
    keys: Keys, redis_url: str, redis: Redis, outbox: Outbox, unsound: relay_pb2.Result
) -> None:
    await signed_in(redis, ANN, BOB, CAT)
    outbox.put(unsound, result([BOB, CAT], [1, 2]))
    async with counting(keys, redis_url, outbox):
        await outbox.counted()
    assert set(await skills(redis)) == {BOB, CAT}


@pytest.mark.scenario(20)
async def test_a_result_that_cannot_be_counted_waits_and_stops_no_other(keys: Keys, redis_url: str, redis: Redis, outbox: Outbox) -> None:
    await signed_in(redis, ANN, BOB, CAT)
    ratings = f"gateway:{{ratings/{GAME}}}:players"
    await redis.hset(ratings, ANN, "spoiled")
    poisoned = result([ANN, BOB], [1, 2])
    outbox.put(poisoned, result([BOB, CAT], [1, 2]))
    async with counting(keys, redis_url, outbox):
        await outbox.until(lambda: len(outbox.waiting) == 1)
        assert list(outbox.waiting) == [poisoned.match_id]
        await redis.hdel(ratings, ANN)
        outbox.shared = True
        await outbox.counted()
    assert {player: skill.matches for player, skill in (await skills(redis)).items()} == {ANN: 1, BOB: 2, CAT: 1}


# Who sees it.


async def rated(gateway: Stand, *names: str) -> dict[str, dict[str, Any]]:
    """Signs in, and has each beat those named behind; returns the sessions."""
    sessions = {name: await gateway.sign_in(name) for name in names}
    ids = [session["player"]["id"] for session in sessions.values()]
    storage = Storage(gateway.settings.redis_url)
    for winner, loser in itertools.combinations(ids, 2):
        await Ratings(storage).count(GAME, result([winner, loser], [1, 2]), ids)
    await storage.close()
    return sessions


async def board(gateway: Stand, **query: object) -> dict[str, Any]:
    """A page of the leaderboard, as somebody without a token sees it."""
    parameters = {name: str(value) for name, value in query.items()}
    answer = await gateway.http.get(f"/v1/games/{GAME}/leaderboard", params=parameters, headers={"Authorization": ""})
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def test_a_profile_shows_ratings_to_everybody(gateway: Stand) -> None:
    sessions = await rated(gateway, "Ann", "Bob")
    player = sessions["Ann"]["player"]["id"]
    shown = (await gateway.http.get(f"/v1/players/{player}", headers={"Authorization": ""})).json()
    (rating,) = shown["ratings"]
    assert (rating["game"], rating["matches"]) == (GAME, 1)
    assert rating["rating"] > 1500
    assert rating["score"] == rating["rating"] - 3 * rating["deviation"]
    gateway.be(sessions["Ann"])
    assert (await gateway.http.get("/v1/players/me")).json() == shown
    assert (await gateway.http.patch("/v1/players/me", json={})).json() == shown
    refreshed = await gateway.http.post("/v1/players:refresh", json={"refreshToken": sessions["Ann"]["refreshToken"]})
    assert refreshed.json()["player"] == shown


async def test_a_leaderboard_is_empty_at_first(gateway: Stand) -> None:
    assert await board(gateway) == {"game": GAME, "entries": [], "nextPageToken": ""}


async def test_a_leaderboard_is_ordered_by_score(gateway: Stand) -> None:
    await rated(gateway, "Ann", "Bob", "Cat", "Dan")
    page = await board(gateway)
    assert [(entry["rank"], entry["name"]) for entry in page["entries"]] == [(1, "Ann"), (2, "Bob"), (3, "Cat"), (4, "Dan")]
    scores = [entry["rating"]["score"] for entry in page["entries"]]
    assert scores == sorted(scores, reverse=True)
    assert page["nextPageToken"] == ""


async def test_equal_scores_share_a_rank_across_pages(gateway: Stand, redis: Redis) -> None:
    players = [(await gateway.sign_in(name))["player"]["id"] for name in "abcdefg"]
    mus = [30.0, 28.0, 28.0, 28.0, 26.0, 24.0, 24.0]
    await _place(redis, dict(zip(players, mus, strict=True)))
    expected = [1, 2, 2, 2, 5, 6, 6]
    for size in (1, 2, 3, 50):
        ranks, seen, token = [], [], ""
        while True:
            page = await board(gateway, pageSize=size, pageToken=token)
            assert len(page["entries"]) <= size
            ranks += [entry["rank"] for entry in page["entries"]]
            seen += [entry["player"] for entry in page["entries"]]
            if not (token := page["nextPageToken"]):
                break
        assert ranks == expected
        assert sorted(seen) == sorted(players)


async def _place(redis: Redis, mus: dict[str, float]) -> None:
    for player, mu in mus.items():
        skill = Skill(mu, 2.0, 1)
        await redis.hset(f"gateway:{{ratings/{GAME}}}:players", player, skill.write())
        await redis.zadd(f"gateway:{{ratings/{GAME}}}:board", {player: skill.score})


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=25), st.integers(1, 5), st.integers(0, 24))
@settings(max_examples=40, deadline=None, database=None)
@pytest.mark.parametrize("leaves", [False, True])
def test_pages_miss_and_repeat_nobody_also_when_the_last_one_named_leaves(
    redis_url: str, leaves: bool, scores: list[int], size: int, when: int
) -> None:
    async def check() -> None:
        storage = Storage(redis_url)
        redis = storage.redis
        await redis.flushdb()
        players = [f"p{number:016d}" for number in range(len(scores))]
        await _place(redis, {player: float(score) for player, score in zip(players, scores, strict=True)})
        ratings, seen, after = Ratings(storage), list[str](), None
        while places := await ratings.page(GAME, after, size):
            seen += [place.player for place in places]
            for place in places:
                score = scores[players.index(place.player)]
                if not leaves:
                    assert place.rank == 1 + sum(other > score for other in scores)
            after = (places[-1].score, places[-1].player)
            if leaves and len(seen) > when:
                await ratings.forget(places[-1].player)
        await redis.flushdb()
        await storage.close()
        assert len(seen) == len(set(seen))
        assert set(seen) == set(players)

    asyncio.run(check())


@pytest.mark.parametrize(
    "query",
    [
        {"pageToken": "x"},
        {"pageToken": "é"},
        {"pageToken": base64.urlsafe_b64encode(b"1.px").decode()},
        {"pageToken": base64.urlsafe_b64encode(b"nan." + ANN.encode()).decode()},
        {"pageToken": base64.urlsafe_b64encode(b"99999999999." + ANN.encode()).decode()},
        {"pageToken": base64.urlsafe_b64encode(b"1." + ANN.encode() + b"\n").decode()},
        {"pageSize": "-1"},
        {"pageSize": "x"},
    ],
)
async def test_a_page_that_is_none_is_400(gateway: Stand, query: dict[str, str]) -> None:
    answer = await gateway.http.get(f"/v1/games/{GAME}/leaderboard", params=query)
    assert answer.status_code == 400
    assert [violation["field"] for violation in answer.json()["violations"]] == list(query)


@pytest.mark.parametrize("game", ["chess", "night_clan}", "%20", "night_clan:"])
async def test_a_game_that_is_not_there_has_no_leaderboard(gateway: Stand, game: str) -> None:
    assert (await gateway.http.get(f"/v1/games/{game}/leaderboard")).status_code == 404


async def test_a_page_has_50_places_at_most(gateway: Stand, redis: Redis) -> None:
    players = {f"p{number:016d}".replace("0", "a").replace("1", "b").replace("8", "c").replace("9", "d"): 25.0 for number in range(60)}
    await signed_in(redis, *players)
    await _place(redis, players)
    assert len((await board(gateway, pageSize=1000))["entries"]) == min(50, len(players))
    assert len((await board(gateway))["entries"]) == min(20, len(players))


# Who is forgotten.


async def test_forgetting_a_player_removes_ratings_and_places(gateway: Stand, redis: Redis) -> None:
    sessions = await rated(gateway, "Ann", "Bob")
    gateway.be(sessions["Ann"])
    assert (await gateway.http.delete("/v1/players/me")).status_code == 200
    page = await board(gateway)
    assert [(entry["rank"], entry["name"]) for entry in page["entries"]] == [(1, "Bob")]
    player = sessions["Ann"]["player"]["id"].encode()
    for key in await redis.keys("*"):
        assert player not in (await redis.dump(key) or b""), key


async def test_a_player_whose_profile_has_expired_is_left_out_and_removed(gateway: Stand, redis: Redis) -> None:
    sessions = await rated(gateway, "Ann", "Bob", "Cat")
    gone = sessions["Bob"]["player"]["id"]
    await redis.delete(f"gateway:{{{gone}}}:player")
    assert [entry["name"] for entry in (await board(gateway))["entries"]] == ["Ann", "Cat"]
    assert gone not in await skills(redis)
    assert [entry["rank"] for entry in (await board(gateway))["entries"]] == [1, 2]


async def test_a_match_that_ends_after_its_player_was_forgotten_counts_for_the_others_alone(
    keys: Keys, redis_url: str, redis: Redis, outbox: Outbox
) -> None:
    await signed_in(redis, ANN)
    outbox.put(result([ANN, BOB], [2, 1]))
    async with counting(keys, redis_url, outbox):
        await outbox.counted()
    assert list(await skills(redis)) == [ANN]


async def test_a_player_who_is_forgotten_in_the_middle_of_counting_has_no_rating_afterwards(
    keys: Keys, redis_url: str, redis: Redis, outbox: Outbox
) -> None:
    # The count has been stored, and neither has the rest been done nor the result been acknowledged: as after a crash.
    await signed_in(redis, ANN)
    storage = Storage(redis_url)
    late = result([ANN, BOB], [1, 2])
    assert await Ratings(storage).count(GAME, late, {ANN, BOB})
    await storage.close()
    assert set(await skills(redis)) == {ANN, BOB}
    outbox.put(late)
    async with counting(keys, redis_url, outbox):
        await outbox.counted()
    assert {player: skill.matches for player, skill in (await skills(redis)).items()} == {ANN: 1}


async def test_ratings_go_when_their_players_profiles_have_expired(keys: Keys, redis_url: str, redis: Redis, outbox: Outbox) -> None:
    staying, gone = [f"pstay{letter * 12}" for letter in "abc"], [f"pgone{letter * 12}" for letter in "abc"]
    await signed_in(redis, *staying)
    await _place(redis, dict.fromkeys(staying + gone, 25.0))
    async with counting(keys, redis_url, outbox, sweep=0.0):
        async with asyncio.timeout(10):
            while len(await skills(redis)) > 3:
                await outbox.until(lambda seen=outbox.listed: outbox.listed > seen)  # type: ignore[misc]
    assert set(await skills(redis)) == set(staying)
    assert set(await redis.zrange(f"gateway:{{ratings/{GAME}}}:board", 0, -1)) == {player.encode() for player in staying}


# The whole gateway.


async def test_a_running_gateway_counts_results_and_measures_it(keys: Keys, redis_url: str, redis: Redis, outbox: Outbox) -> None:
    async with stand(keys, redis_url, services={GAME: outbox.address}) as gateway:
        ann, bob = [(await gateway.sign_in(name))["player"]["id"] for name in ("Ann", "Bob")]
        outbox.put(result([ann, bob], [1, 2]))
        await outbox.counted()
        assert [entry["player"] for entry in (await board(gateway))["entries"]] == [ann, bob]
        metrics = (await gateway.http.get("/metrics")).text
    assert f'gloaming_results_total{{game="{GAME}",outcome="counted"}}' in metrics
    assert "gloaming_result_seconds_bucket" in metrics


async def test_storage_that_does_not_answer_is_unavailable(redis_url: str) -> None:
    storage = Storage("redis://127.0.0.1:1/0")
    try:
        with pytest.raises(Error, match="STORAGE_UNAVAILABLE"):
            await Ratings(storage).rating(ANN, GAME)
    finally:
        await storage.close()
