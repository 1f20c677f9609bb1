"""Clans and Glory, to the kit."""

from __future__ import annotations

from gloaming.clans_and_glory.v1 import clans_and_glory_pb2
from services.clans_and_glory import bot, codec, rules
from services.kit.game import Game

GAME = Game(proto=clans_and_glory_pb2, rules=rules, codec=codec, bot=bot, schema=1)
