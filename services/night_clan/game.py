"""Night Clan, to the kit."""

from __future__ import annotations

from gloaming.night_clan.v1 import night_clan_pb2
from services.kit.game import Game
from services.night_clan import bot, codec, rules

GAME = Game(proto=night_clan_pb2, rules=rules, codec=codec, bot=bot, schema=1)
