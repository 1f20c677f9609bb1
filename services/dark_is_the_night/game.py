"""Dark Is the Night, to the kit."""

from __future__ import annotations

from gloaming.dark_is_the_night.v1 import dark_is_the_night_pb2
from services.dark_is_the_night import bot, codec, rules
from services.kit.game import Game

GAME = Game(proto=dark_is_the_night_pb2, rules=rules, codec=codec, bot=bot, schema=1)
