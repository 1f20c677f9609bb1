"""Night Knight, to the kit."""

from __future__ import annotations

from gloaming.night_knight.v1 import night_knight_pb2
from services.kit.game import Game, RealTime
from services.night_knight import bot, codec, rules
from services.night_knight.reactions import Reactions

REAL_TIME = RealTime(window=rules.window, on_timeout=rules.on_timeout, think_ms=bot.think_ms, reactions=Reactions())
GAME = Game(proto=night_knight_pb2, rules=rules, codec=codec, bot=bot, schema=1, real_time=REAL_TIME)
