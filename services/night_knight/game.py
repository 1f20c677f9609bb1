"""Night Knight, to the kit."""

from __future__ import annotations

from gloaming.night_knight.v1 import night_knight_pb2
from services.kit.game import Game
from services.night_knight import bot, codec, rules

GAME = Game(proto=night_knight_pb2, rules=rules, codec=codec, bot=bot, schema=1)
