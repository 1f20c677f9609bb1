"""The live socket as it is deployed: players at two gateways, two replicas of each game's service, one Redis."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf import json_format
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Subprotocol

from deploy.local import Local
from gateway.tokens import Signer
from gloaming.live.v1 import live_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.night_knight.v1 import night_knight_pb2 as pb
from gloaming.table.v1 import table_pb2
from services.kit import verify
from services.kit.cursor import START
from services.kit.game import Game
from services.night_clan.game import GAME as NIGHT_CLAN
from services.night_knight.game import GAME as NIGHT_KNIGHT
from services.night_knight.rules import Kind, right_action
from tests.harness import NAMES, Player, Refused, all_events, new_match_id
from tests.live import BOTH, JSON, PROTO, Closed, Socket, live
from tests.soak.reactions import Found, held

# Nothing takes so long, not even for a socket whose replica and gateway were killed.
SECONDS = 30.0
# Within so many seconds of each other all grab.
APART_SECONDS = 0.005
# Why a reaction that was sent in time may be refused: others have closed its round.
OVERTAKEN = {"ROUND_OVER", "MATCH_FINISHED", "RACED"}


class Hall:
    """Where matches are made, and whoever comes to them."""

    def __init__(self, local: Local) -> None:
        self.local = local
        self.live_urls = [f"{url.replace('http', 'ws', 1)}/v1/live" for url in local.urls]
        self._signer = Signer(local.signing_key)
        self._players: list[Player] = []

    def token(self, name: str, scope: str = "play") -> str:
        """An access token."""
        return self._signer.access(name, name.title(), 1, scope)[0]

    def player(self, game: Game, name: str, scope: str = "play") -> Player:
        """Somebody who calls a game's replicas in turn over gRPC."""
        self._players.append(Player(game, self.local.services[game.id], self.token(name, scope), name))
        return self._players[-1]

    async def create(self, game: Game, names: Sequence[str], options: Any = None) -> str:
        """Makes a match of these players, in this order, in which no clock runs but a game's own."""
        request = game.message("CreateMatchRequest")(
            match_id=new_match_id(game),
            options=options,
            settings=table_pb2.Settings(move_seconds=0, start_seconds=0),
            seats=[table_pb2.SeatRequest(player=name) for name in names],
            order="AS_LISTED",
        )
        return str((await self.player(game, "host", "host").call("CreateMatch", request)).id)

    def sitting(self, game: Game, match_id: str, name: str, gateway: int, **more: Any) -> Sitting:
        """Somebody at a socket."""
        return Sitting(self, game, match_id, name, gateway, **more)

    async def told(self, game: Game, match_id: str) -> list[Any]:
        """All that has happened, as a spectator is told it."""
        return await all_events(self.player(game, "eve"), match_id)

    async def close(self) -> None:
        """Closes the connections."""
        for player in self._players:
            await player.close()


@asynccontextmanager
async def hall_of(local: Local) -> AsyncIterator[Hall]:
    hall = Hall(local)
    try:
        yield hall
    finally:
        await hall.close()


@pytest.fixture
async def hall(everything: Local) -> AsyncIterator[Hall]:
    async with hall_of(everything) as there:
        yield there


class Sitting:
    """Somebody who watches a match to its end at a gateway's socket, and goes on at the other, after the last cursor, when that is gone.

    Attributes:
        snapshot: the match as it was told first, if it was asked for so.
        events: what was told since, in order.
        lost: how each socket ended that was not there to the end.
    """

    def __init__(
        self, hall: Hall, game: Game, match_id: str, name: str, gateway: int, subprotocol: Subprotocol = PROTO, after: str = START
    ) -> None:
        self.game, self.match_id, self.name, self.token = game, match_id, name, hall.token(name)
        self.subprotocol = subprotocol
        self.snapshot: Any = None
        self.events: list[Any] = []
        self.lost: list[str] = []
        self._urls, self._gateway = hall.live_urls, gateway
        self._cursor = after
        self._socket: Socket | None = None
        self._changed = asyncio.Condition()

    @property
    def over(self) -> bool:
        """Whether the end of the match was told."""
        if self.events:
            return bool(self.events[-1].event.HasField("match_finished"))
        return self.snapshot is not None and bool(self.snapshot.status == table_pb2.FINISHED)

    async def sit(self, play: Callable[[Sitting], Awaitable[None]] | None = None) -> None:
        """Stays until the match is over; plays meanwhile."""
        async with asyncio.TaskGroup() as group:
            playing = group.create_task(_run(play(self))) if play else None
            group.create_task(self._watch(playing))

    async def _watch(self, playing: asyncio.Task[None] | None) -> None:
        while not self.over:
            try:
                async with live(self._urls[self._gateway], self.token, self.subprotocol) as socket:
                    answer = await socket.watch(self.match_id, self._cursor)
                    assert answer.HasField("result"), answer
                    await self._set(socket)
                    while not self.over:
                        await self._take(await socket.take(_is_told, SECONDS))
                    if playing:
                        await playing
                    assert not [message for message in socket.inbox() if not isinstance(message, live_pb2.Result)]
            except (Closed, ConnectionClosed, ConnectionError, InvalidHandshake) as end:
                await self._set(None)
                self.lost.append(repr(end))
                self._gateway = (self._gateway + 1) % len(self._urls)

    async def _take(self, message: live_pb2.ServerMessage) -> None:
        if not self._cursor:
            # Asked for without a cursor, it begins with a snapshot, and there is no other.
            self.snapshot = self.game.message("Match").FromString(message.snapshot.match)
            self._cursor = self.snapshot.cursor
            assert self._cursor
            return
        assert message.HasField("event"), f"a gap, or a problem: {message}"
        told = message.event
        assert told.match_id == self.match_id
        event = self.game.message("Event").FromString(told.event)
        self.events.append(
            self.game.message("MatchEvent")(match_id=told.match_id, cursor=told.cursor, version=told.version, time=told.time, event=event)
        )
        self._cursor = told.cursor
        async with self._changed:
            self._changed.notify_all()

    async def _set(self, socket: Socket | None) -> None:
        async with self._changed:
            self._socket = socket
            self._changed.notify_all()

    async def event(self, number: int) -> Any:
        """The event of that number, from 0, as soon as it is told."""
        async with asyncio.timeout(SECONDS), self._changed:
            await self._changed.wait_for(lambda: len(self.events) > number)
        return self.events[number]

    async def reaches(self, number: int) -> bool:
        """Whether the match goes on after the event of that number, as soon as that is told, or the end."""
        async with asyncio.timeout(SECONDS), self._changed:
            await self._changed.wait_for(lambda: len(self.events) > number or self.over)
        return not self.over

    async def play(self, move: Any, request_id: str) -> live_pb2.ServerMessage:
        """Plays a move; on another socket again, under the same request id, if there was no answer before the first was gone."""
        async with asyncio.timeout(SECONDS):
            while True:
                async with self._changed:
                    await self._changed.wait_for(lambda: self._socket is not None)
                    socket = self._socket
                assert socket
                try:
                    return await socket.move(self.match_id, move, request_id)
                except (Closed, ConnectionClosed):
                    async with self._changed:
                        await self._changed.wait_for(lambda gone=socket: self._socket is not gone)  # type: ignore[misc]


async def _run(work: Awaitable[None]) -> None:
    await work


def _is_told(message: live_pb2.ServerMessage) -> bool:
    kind = message.WhichOneof("kind")
    return kind in ("snapshot", "event") or (kind == "problem" and not message.problem.request_id)


def places(events: Sequence[Any]) -> list[tuple[str, int, str]]:
    """What is the same of events for whoever sees them."""
    return [(event.cursor, event.version, str(event.event.WhichOneof("kind"))) for event in events]


def public(events: Sequence[Any]) -> list[bytes]:
    """Night Knight's events but for those that hold one's own secret for a while."""
    return [event.SerializeToString(deterministic=True) for event in events if not event.event.HasField("cards_revealed")]


class Knights:
    """Players of Night Knight who all react to each reveal at nearly the same time, mostly well, until the match is over.

    Attributes:
        taken: by round and seat, the reactions that were accepted.
    """

    def __init__(self, seed: object) -> None:
        self.taken: Counter[tuple[int, int]] = Counter()
        self._rng = random.Random(str(seed))

    async def play(self, sitting: Sitting) -> None:
        """Plays for one of them."""
        seat, number = NAMES.index(sitting.name), 0
        while not (event := (await sitting.event(number)).event).HasField("match_finished"):
            number += 1
            if event.HasField("own_card_shown"):
                shown = event.own_card_shown
                await asyncio.sleep(self._rng.random() * APART_SECONDS)
                react = pb.React(round=shown.round, **self._choose(seat, shown.cards))
                answer = await sitting.play(pb.Move(react=react), f"round-{shown.round}")
                if answer.HasField("result"):
                    self.taken[shown.round, seat] += 1
                else:
                    assert answer.problem.reason in OVERTAKEN, answer

    def _choose(self, seat: int, cards: Sequence[Any]) -> dict[str, Any]:
        if self._rng.random() < 0.3:
            return {"action": self._rng.choice(["SHIELD", "SLEEP", "TOUCH", "PASS"])}
        kinds = {card.seat: Kind(card.card) for card in cards}
        wanted, _ = right_action(kinds[seat], kinds.values())
        name = wanted.name if wanted else "PASS"
        knights = [other for other, kind in kinds.items() if kind is Kind.DEFENDING_KNIGHT]
        return {"action": name, "target": self._rng.choice(knights)} if name == "THROW" else {"action": name}


def racing(ordering: str = "ARRIVAL") -> pb.Options:
    """Rounds that follow each other at once."""
    return pb.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=500, ordering=ordering, max_compensation_ms=10)


async def clan(sitting: Sitting, url: str, http: httpx.AsyncClient, rng: random.Random) -> None:
    """Plays Night Clan at random: lists the moves over REST, plays one over the socket."""
    plies = 0
    while not sitting.over:
        known = len(sitting.events)
        listed = await http.get(f"{url}/v1/matches/{sitting.match_id}/moves", headers={"Authorization": f"Bearer {sitting.token}"})
        assert listed.status_code == 200, listed.text
        if moves := listed.json()["moves"]:
            plies += 1
            move = json_format.ParseDict(rng.choice(moves), night_clan_pb2.Move())
            answer = await sitting.play(move, f"ply-{plies}")
            assert answer.HasField("result"), answer
        else:
            await sitting.event(known)


async def test_two_people_at_two_gateways_play_over_their_sockets_to_the_end_and_see_every_event_once_in_one_order(hall: Hall) -> None:
    match_id = await hall.create(NIGHT_CLAN, ["ann", "bob"])
    ann = hall.sitting(NIGHT_CLAN, match_id, "ann", 0, subprotocol=JSON)
    bob = hall.sitting(NIGHT_CLAN, match_id, "bob", 1, subprotocol=PROTO)
    rng = random.Random(1)
    async with httpx.AsyncClient(timeout=SECONDS) as http, asyncio.TaskGroup() as group:
        for sitting, url in zip((ann, bob), hall.local.urls, strict=True):
            group.create_task(sitting.sit(lambda it, url=url: clan(it, url, http, rng)))  # type: ignore[misc]
    whole = await hall.told(NIGHT_CLAN, match_id)
    assert whole[-1].event.HasField("match_finished")
    assert places(ann.events) == places(bob.events) == places(whole)
    assert len({event.cursor for event in whole}) == len(whole)
    assert ann.lost == bob.lost == []
    record = await hall.player(NIGHT_CLAN, "ann").record(match_id)
    assert list(verify.check(NIGHT_CLAN, record))


@pytest.mark.scenario(4)
@pytest.mark.parametrize("ordering", ["ARRIVAL", "COMPENSATED"])
async def test_six_at_two_gateways_grab_at_once_and_no_pillow_is_oversold_and_all_see_one_order(hall: Hall, ordering: str) -> None:
    found = Found()

    async def race(number: int) -> None:
        match_id = await hall.create(NIGHT_KNIGHT, NAMES, racing(ordering))
        knights = Knights((ordering, number))
        sittings = [hall.sitting(NIGHT_KNIGHT, match_id, name, n % 2, subprotocol=BOTH[n // 2 % 2]) for n, name in enumerate(NAMES)]
        async with asyncio.TaskGroup() as group:
            for sitting in sittings:
                group.create_task(sitting.sit(knights.play))
        whole = await hall.told(NIGHT_KNIGHT, match_id)
        for sitting in sittings:
            assert places(sitting.events) == places(whole)
            assert public(sitting.events) == public(whole)
            assert sitting.lost == []
        held(whole, knights.taken, found)
        record = await hall.player(NIGHT_KNIGHT, "ann").record(match_id)
        assert list(verify.check(NIGHT_KNIGHT, record))

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(race(number))
    assert found.rounds >= 24
    assert set(found.verdicts) == {"GRANTED", "TOO_LATE", "TOUCHED", "PASSED"}


@pytest.mark.scenario(11)
async def test_whoever_joins_while_grabs_go_on_gets_each_event_in_the_snapshot_or_after_it_and_never_in_both(hall: Hall) -> None:
    match_id = await hall.create(NIGHT_KNIGHT, NAMES, racing())
    knights, joined = Knights("joined"), list[Sitting]()
    sittings = [hall.sitting(NIGHT_KNIGHT, match_id, name, n % 2) for n, name in enumerate(NAMES)]

    async def join(group: asyncio.TaskGroup) -> None:
        """One more with every third event, whose watch then races with what comes next."""
        while await sittings[0].reaches(3 * len(joined)):
            n = len(joined)
            joined.append(hall.sitting(NIGHT_KNIGHT, match_id, f"spectator{n}", n % 2, subprotocol=BOTH[n // 2 % 2], after=""))
            group.create_task(joined[-1].sit())

    async with asyncio.TaskGroup() as group:
        for sitting in sittings:
            group.create_task(sitting.sit(knights.play))
        group.create_task(join(group))
    whole = await hall.told(NIGHT_KNIGHT, match_id)
    all_places = places(whole)
    snapshots = set()
    for sitting in joined:
        at = [place[0] for place in all_places].index(sitting.snapshot.cursor) + 1
        assert places(sitting.events) == all_places[at:]
        assert public(sitting.events) == public(whole[at:])
        # What the snapshot shows is what had happened by then.
        begun = max((n for n in range(at) if whole[n].event.HasField("round_started")), default=0)
        reacted = [event.event.reacted for event in whole[begun:at] if event.event.HasField("reacted")]
        shown = list(sitting.snapshot.view.reactions)
        assert shown == reacted[: len(shown)]
        if sitting.snapshot.status == table_pb2.PLAYING:
            assert shown == reacted
        # What came too late for the end of the match changes nothing any more, not even its view.
        assert all(reaction.evidence.rule == "NK-13" for reaction in reacted[len(shown) :])
        snapshots.add(at)
    # Eight rounds of six events at the least.
    assert len(joined) >= 16
    assert len(snapshots) >= 4


@pytest.mark.scenario(6)
async def test_a_reaction_sent_again_after_its_round_is_refused_alike_on_every_transport_and_changes_nothing(hall: Hall) -> None:
    names = NAMES[:3]
    options = pb.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=30_000)
    match_id = await hall.create(NIGHT_KNIGHT, names, options)
    players = [hall.player(NIGHT_KNIGHT, name) for name in names]
    ann, token = players[0], hall.token("ann")
    move = pb.Move(react=pb.React(round=1, action="TOUCH"))
    url = f"{hall.local.urls[1]}/v1/matches/{match_id}/moves"
    body = {"move": json_format.MessageToDict(move)}
    async with live(hall.live_urls[0], token, JSON) as socket, httpx.AsyncClient(timeout=SECONDS) as http:
        first = await socket.move(match_id, move, "first")
        assert first.HasField("result"), first
        for player in players[1:]:
            await player.submit(match_id, move)
        before = await ann.get(match_id)
        assert (before.view.round, before.view.phase) == (2, pb.View.ACTION)

        on_socket = (await socket.move(match_id, move, "second")).problem
        on_rest = await http.post(url, json=body, headers={"Authorization": f"Bearer {token}"})
        with pytest.raises(Refused) as on_grpc:
            await ann.submit(match_id, move)
        assert on_grpc.value.code == grpc.StatusCode.FAILED_PRECONDITION
        assert on_socket.status == on_rest.status_code == 422
        assert on_socket.reason == on_rest.json()["reason"] == on_grpc.value.reason == "ROUND_OVER"
        assert on_socket.detail == on_rest.json()["detail"] == on_grpc.value.detail

        # Under the first one's id it is a retry, which gets the first one's answer wherever it is sent.
        assert (await socket.move(match_id, move, "first")).result.version == first.result.version
        retried = await http.post(url, json=body, headers={"Authorization": f"Bearer {token}", "Idempotency-Key": "first"})
        assert (retried.status_code, retried.json()["version"]) == (200, first.result.version)
        assert (await ann.submit(match_id, move, request_id="first")).version == first.result.version

    after = await ann.get(match_id)
    before.ClearField("server_time"), after.ClearField("server_time")
    assert after == before
    reacted = [event.event.reacted for event in await hall.told(NIGHT_KNIGHT, match_id) if event.event.HasField("reacted")]
    assert sorted(reaction.seat for reaction in reacted) == [0, 1, 2]


@pytest.mark.scenario(12)
@pytest.mark.scenario(22)
async def test_a_replica_and_then_a_gateway_are_killed_and_all_go_on_without_a_gap_or_a_repeat(tmp_path: Path) -> None:
    local = Local(tmp_path, replicas=2, gateways=2, env={"REDIS_URL": ""})
    await asyncio.to_thread(local.start)
    try:
        async with hall_of(local) as hall:
            match_id = await hall.create(NIGHT_KNIGHT, NAMES, racing())
            sittings = [hall.sitting(NIGHT_KNIGHT, match_id, name, n % 2, subprotocol=BOTH[n // 2 % 2]) for n, name in enumerate(NAMES)]
            knights = Knights("killed")

            async def kill() -> None:
                number = 0
                # Whoever has eight cards plays eight rounds at least.
                for round_, name in ((3, "night_knight-2"), (6, "gateway-2")):
                    while (await sittings[0].event(number)).event.own_card_shown.round < round_:
                        number += 1
                    await asyncio.to_thread(local.kill, name)

            async with asyncio.TaskGroup() as group:
                for sitting in sittings:
                    group.create_task(sitting.sit(knights.play))
                group.create_task(kill())
            assert not local.children["night_knight-2"].running
            assert not local.children["gateway-2"].running
            # The loss of a replica is the gateway's business alone.
            assert [len(sitting.lost) for sitting in sittings] == [0, 1] * 3, [sitting.lost for sitting in sittings]
            survivor = Player(NIGHT_KNIGHT, local.services[NIGHT_KNIGHT.id][0], hall.token("eve"), "eve")
            try:
                whole = await all_events(survivor, match_id)
                record = await survivor.record(match_id)
            finally:
                await survivor.close()
            for sitting in sittings:
                assert places(sitting.events) == places(whole)
                assert public(sitting.events) == public(whole)
            held(whole, knights.taken, Found())
            assert list(verify.check(NIGHT_KNIGHT, record))
    finally:
        await asyncio.to_thread(local.stop)
