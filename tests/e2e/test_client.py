"""The Python client, against everything as it is run, while that is killed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from deploy.local import Local
from gloaming.client import BOT, ME, Client
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.night_knight.v1 import night_knight_pb2
from gloaming.table.v1 import table_pb2
from tests import unlimited


@pytest.mark.scenario(22)
async def test_watchers_and_players_outlast_a_gateway_that_is_killed_over_rest_and_over_the_socket(tmp_path: Path) -> None:
    env = {"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0", **unlimited.ENVIRONMENT}
    with Local(tmp_path, env=env) as local:
        async with Client(local.url, attempts=12) as ann:
            await ann.sign_in("Ann")
            async with ann.live() as live:
                game = ann.game(night_clan_pb2)
                made = await game.create_match()

                async def over_rest() -> list[str]:
                    return [news.event.cursor async for news in game.watch(made.id)]

                async def over_socket() -> list[str]:
                    watching = live.game(night_clan_pb2).watch(made.id, made.cursor)
                    return [news.event.cursor async for news in watching]

                watchers = [asyncio.create_task(over_rest()), asyncio.create_task(over_socket())]
                played = 0
                while (await game.match(made.id)).status != table_pb2.FINISHED:
                    if moves := (await game.moves(made.id)).moves:
                        await live.game(night_clan_pb2).play(made.id, moves[0])
                        played += 1
                        if played in (4, 9):
                            local.kill("gateway")
                            local.restart("gateway")
                rest, socket = await asyncio.gather(*watchers)
                whole = [event.cursor async for event in game.events(made.id)]
                assert rest == whole
                assert socket == whole[whole.index(made.cursor) + 1 :]
                record = await game.record(made.id)
                mine = [move for move in record.moves if move.played.seat == made.viewer_seat]
                assert len(mine) == played
                assert live.connections == 3


async def test_night_knight_is_played_over_the_socket_and_every_reaction_has_one_verdict(everything: Local) -> None:
    async with Client(everything.url) as ann:
        await ann.sign_in("Ann")
        options = night_knight_pb2.Options(countdown_ms=0, own_card_delay_ms=0, ordering=night_knight_pb2.Options.COMPENSATED)
        made = await ann.game(night_knight_pb2).create_match([ME, BOT, BOT], options=options)
        async with ann.live() as live:
            game = live.game(night_knight_pb2)
            reacted = rounds = 0
            async for news in game.watch(made.id):
                event = news.event.event
                view = news.snapshot.view
                match event.WhichOneof("kind"):
                    case "own_card_shown":
                        rounds = event.own_card_shown.round
                    case "reacted":
                        reacted += event.reacted.seat == made.viewer_seat
                        continue
                    case _ if view.phase == night_knight_pb2.View.ACTION:
                        rounds = view.round
                    case _:
                        continue
                if rounds > 5:
                    break
                move = night_knight_pb2.Move(react=night_knight_pb2.React(round=rounds, action=night_knight_pb2.React.TOUCH))
                assert (await game.play(made.id, move)).match_id == made.id
            assert reacted == 5
        await ann.game(night_knight_pb2).resign(made.id)
