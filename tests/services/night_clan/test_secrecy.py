"""Whole matches of Night Clan over sockets: no message to anybody says what lies face down before it is scored (NC-11)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.message import Message
from redis.asyncio import Redis

from gloaming.night_clan.v1 import night_clan_pb2 as pb
from gloaming.table.v1 import table_pb2
from services.night_clan.game import GAME
from tests.harness import Keys, new_match_id, table
from tests.wire import Wire

HIDDEN = {pb.Card.TROLL, pb.Card.MISTLETOE, pb.Card.RICHES}
VERBS: dict[str, Any] = {
    "GetMatch": pb.Match,
    "ListMoves": pb.ListMovesResponse,
    "SubmitMove": pb.SubmitMoveResponse,
    "ListEvents": pb.ListEventsResponse,
}


@pytest.fixture
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.mark.rule("NC-11")
@pytest.mark.scenario(7)
@pytest.mark.parametrize("seated", [["ann", "bob"], ["ann", "bot", "bob"], ["ann", "bob", "bot", "cat"]], ids=len)
async def test_nobody_is_told_what_lies_face_down_before_scoring(seated: list[str], keys: Keys, redis_url: str, redis: Redis) -> None:
    rng = random.Random(len(seated))
    match_id = new_match_id(GAME)
    told: dict[str, list[Message]] = {name: [] for name in (*seated, "eve") if name != "bot"}
    async with table(GAME, keys, redis_url) as there:
        wires = {
            name: (Wire(GAME, there.addresses[0], keys.token(name)), Wire(GAME, there.addresses[0], keys.token(name))) for name in told
        }

        async def ask(name: str, connection: int, verb: str, **fields: Any) -> Any:
            answer = await wires[name][connection].call(verb, match_id=match_id, **fields)
            message = VERBS[verb].FromString(answer.body)
            told[name].append(message)
            return message

        async def watch(name: str) -> None:
            async for body in wires[name][1].watch(match_id):
                told[name].append(pb.WatchMatchResponse.FromString(body))

        host = Wire(GAME, there.addresses[0], keys.token("host", scope="host"))
        await host.call(
            "CreateMatch",
            match_id=match_id,
            settings=table_pb2.Settings(move_seconds=600),
            seats=[table_pb2.SeatRequest(bot="STANDARD") if name == "bot" else table_pb2.SeatRequest(player=name) for name in seated],
            order="AS_LISTED",
        )
        watching = [asyncio.create_task(watch(name)) for name in told]
        while (await ask("eve", 0, "GetMatch")).status == table_pb2.PLAYING:
            for name in told.keys() - {"eve"}:
                if moves := (await ask(name, 0, "ListMoves")).moves:
                    await ask(name, 0, "SubmitMove", move=rng.choice(moves))
                    # The very player who played it, on the other device.
                    await ask(name, 1, "GetMatch")
                    await ask(name, 1, "ListEvents", page_size=500)
        await ask("eve", 0, "ListEvents", page_size=500)
        await asyncio.gather(*watching)
        record = pb.Record.FromString((await wires["eve"][0].call("GetRecord", match_id=match_id)).body)
        for wire in (host, *(wire for pair in wires.values() for wire in pair)):
            await wire.close()

    plays = [recorded.move.play.card for recorded in record.moves if recorded.move.HasField("play")]
    lay_face_down = {f"c{number}" for number, kind in enumerate(plays, start=1) if kind in HIDDEN}
    assert len(lay_face_down) == 4 * len(seated)
    looked_at = 0
    for name, messages in told.items():
        own_seat = seated.index(name) if name in seated else None
        for message in messages:
            for holder, kinds, scored in kinds_told(message):
                looked_at += 1
                match holder:
                    case pb.Card():
                        assert holder.face_up or not holder.HasField("kind")
                        assert scored or holder.card_id not in lay_face_down or not kinds
                    case pb.HandShown():
                        assert kinds.count(pb.Card.NIGHT_WATCH) == 2
                    case pb.View() | pb.Play():
                        assert own_seat is not None or not kinds
                    case pb.CardsDrawn():
                        assert holder.seat == own_seat or not kinds
                    case _:
                        raise AssertionError(f"{type(holder).__name__} names kinds of cards")
    assert looked_at > 1000


def kinds_told(message: Message, scored: bool = False) -> Iterator[tuple[Message, list[int], bool]]:
    """Every message that could name kinds of cards, those it names, and whether that is part of scoring."""
    scored = scored or isinstance(message, pb.LocationScored) or (isinstance(message, pb.View) and message.phase == pb.View.FINISHED)
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.enum_type and field.enum_type.full_name == pb.Card.Kind.DESCRIPTOR.full_name:
            yield message, list(value) if field.is_repeated else [value] if value else [], scored
        elif field.message_type and field.message_type.file.package == pb.DESCRIPTOR.package:
            for inner in value if field.is_repeated else [value] if message.HasField(field.name) else []:
                yield from kinds_told(inner, scored)
