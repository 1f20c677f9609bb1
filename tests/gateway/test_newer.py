"""A gateway before services of a release to come, and our own client behind it: what they do not know is no fault (scenario 27)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx_sse
import pytest
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from gloaming.client import Client
from gloaming.live.v1 import live_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from services.kit.errors import Refused
from tests import protos
from tests.gateway.stand import MATCH_ID, Context, Stand, World, cursor, framed, happened, live_stand, refuse
from tests.harness import Keys
from tests.live import JSON

pytestmark = pytest.mark.scenario(27)


def to_come(kind: Any, choice: int = 0, **known: Any) -> Any:
    """A message as a service to come writes it: but for what is given, all that it holds may be unknown here."""
    made = protos.filled(protos.to_come().game("night_clan", kind.DESCRIPTOR.name), choice)
    for name, value in known.items():
        setattr(made, name, value)
    return kind.FromString(made.SerializeToString())


def match() -> Any:
    return to_come(night_clan_pb2.Match, id=MATCH_ID, game="night_clan", version=7, cursor=cursor(7), status=protos.VALUE)


def event(version: int, choice: int) -> Any:
    there = to_come(night_clan_pb2.MatchEvent, choice, match_id=MATCH_ID, cursor=cursor(version), version=version)
    return night_clan_pb2.WatchMatchResponse(event=there)


CHOICES = range(20)


def serve(served: Stand) -> None:
    """The service says of everything what is unknown here; then the match is over."""
    events = [event(n + 1, n) for n in CHOICES]

    async def watch(request: Any, context: Context) -> AsyncIterator[Any]:
        yield to_come(night_clan_pb2.WatchMatchResponse, len(night_clan_pb2.WatchMatchResponse.DESCRIPTOR.oneofs[0].fields))
        for each in events:
            if not request.after_cursor or each.event.version > 0:
                yield each

    async def listed(request: Any, context: Context) -> Any:
        return night_clan_pb2.ListEventsResponse(events=[each.event for each in events], next_cursor=cursor(len(events)))

    async def moves(request: Any, context: Context) -> Any:
        return night_clan_pb2.ListMovesResponse(moves=[to_come(night_clan_pb2.Move, n) for n in range(4)], match_id=MATCH_ID, version=7)

    async def submit(request: Any, context: Context) -> Any:
        await refuse(context, Refused("RULE_TO_COME", "not by a rule that is yet to come"))

    served.service.matches[MATCH_ID] = match()
    served.service.verbs.update(WatchMatch=watch, ListEvents=listed, ListMoves=moves, SubmitMove=submit)


async def test_a_gateway_hands_on_what_it_does_not_know_and_fails_at_none_of_it(served: Stand) -> None:
    await served.sign_in()
    serve(served)
    path = f"/v1/matches/{MATCH_ID}"
    got = await served.http.get(path)
    assert got.status_code == 200
    assert (got.json()["status"], got.json()["view"]["phase"]) == (protos.VALUE, protos.VALUE)
    assert "toCome" not in got.text
    assert (await served.http.get(path, headers={"If-None-Match": got.headers["etag"]})).status_code == 304
    moves = await served.http.get(f"{path}/moves")
    assert moves.status_code == 200
    assert {} in moves.json()["moves"], "a kind of move that is not known here"
    events = await served.http.get(f"{path}/events")
    assert events.status_code == 200
    assert any(each["event"] == {} for each in events.json()["events"]), "a kind of event that is not known here"
    assert [each["version"] for each in events.json()["events"]] == [n + 1 for n in CHOICES]
    refused = await served.http.post(f"{path}/moves", json={"move": {"keep": {}}})
    assert (refused.status_code, refused.json()["reason"]) == (422, "RULE_TO_COME")
    unknown = await served.http.post(f"{path}/moves", json={"move": {"fly": {}}})
    assert (unknown.status_code, unknown.json()["violations"][0]["field"]) == (400, "move.fly"), "what it cannot hand on it says so"


async def test_a_stream_hands_on_events_that_the_gateway_does_not_know(served: Stand) -> None:
    await served.sign_in()
    serve(served)
    async with served.http.stream("GET", f"/v1/matches/{MATCH_ID}/events", headers={"Accept": "text/event-stream"}, timeout=10) as stream:
        got = [each async for each in httpx_sse.EventSource(stream).aiter_sse() if each.data]
    assert [each.id for each in got] == [cursor(n + 1) for n in CHOICES]
    assert any(json.loads(each.data)["event"] == {} for each in got)


async def test_our_client_reads_values_and_kinds_that_it_does_not_know(served: Stand) -> None:
    serve(served)
    async with Client(str(served.http.base_url)) as ann:
        await ann.sign_in("Ann")
        game = ann.game(night_clan_pb2)
        assert (await game.match(MATCH_ID)).status == protos.VALUE
        assert (await game.match(MATCH_ID)).view.phase == protos.VALUE
        assert len((await game.moves(MATCH_ID)).moves) == 4
        assert [each.cursor async for each in game.events(MATCH_ID)] == [cursor(n + 1) for n in CHOICES]
        async with asyncio.timeout(10):
            seen = []
            async for news in game.watch(MATCH_ID):
                seen.append(news.event.cursor)
                if len(seen) == len(CHOICES):
                    break
        assert seen == [cursor(n + 1) for n in CHOICES]


async def test_a_live_socket_hands_on_events_that_the_gateway_does_not_know(keys: Keys, redis_url: str, redis: Any) -> None:
    world, token = World(), keys.token("p")
    async with (
        live_stand(keys, redis_url, world) as served,
        connect(served.live_url, subprotocols=[JSON, Subprotocol(f"bearer.{token}")], proxy=None) as socket,
        asyncio.timeout(10),
    ):
        await socket.send(json.dumps({"requestId": "1", "watch": {"matchId": MATCH_ID}}))
        told: list[Any] = []

        async def hear(kind: str) -> Any:
            while True:
                while told:
                    if kind in (message := told.pop(0)):
                        return message[kind]
                told.extend(json.loads(await socket.recv())["messages"])

        await hear("result")
        (link,) = [link for replica in world.replicas for link in replica.links]
        (number,) = link.watching
        for version, choice in enumerate(CHOICES, start=1):
            down = happened(MATCH_ID, version, [number])
            message = live_pb2.ServerFrame.FromString(down.frame).messages[0]
            message.event.event = to_come(night_clan_pb2.Event, choice).SerializeToString()
            # And before it a message of a kind that is not known here.
            down.frame = framed(live_pb2.ServerMessage.FromString(b"\xc2\x3e\x02hi"), message)
            link.send(down)
        events = [await hear("event") for _ in CHOICES]
        assert [event["version"] for event in events] == [n + 1 for n in CHOICES]
        assert any(event["event"] == {} for event in events)
