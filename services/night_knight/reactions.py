"""How Night Knight's reactions are ordered: by react.lua, in the terms of the kit (NK-10 to NK-13, NK-19)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gloaming.night_knight.v1 import night_knight_pb2 as pb
from services.kit.game import OpenRound
from services.kit.storage import Script
from services.night_knight import rules
from services.night_knight.rules import Move, Phase, React, State


class Reactions:
    """Satisfies `services.kit.game.Reactions`."""

    script = Script(Path(__file__).parent / "lua" / "react.lua")

    def is_reaction(self, move: Move) -> bool:
        """Whether it is one: all but a peek."""
        return isinstance(move, React)

    def open(self, state: State) -> OpenRound | None:
        """The round in its action phase, with all its pillows (NK-17) and everybody who is still in (NK-05)."""
        if state.phase is not Phase.ACTION:
            return None
        return OpenRound(state.round, rules.PILLOWS[len(state.piles)], len(state.piles) - len(state.out))

    def known(self, state: State) -> int:
        """How many of the round's reactions the state holds, late ones included (NK-13)."""
        return len(rules.reactions(state))

    def number(self, state: State) -> int:
        """The round."""
        return state.round

    def request(self, seat: int, move: Move) -> tuple[int, bytes]:
        """The action, and the event without verdict, rank and evidence."""
        assert isinstance(move, React)
        reaction = pb.Reaction(seat=seat, action=move.action.name, target=move.target)
        return int(move.action), pb.Event(reacted=reaction).SerializeToString(deterministic=True)

    def received(self, move: Move, ms: int) -> Move:
        """The move with its time since the reveal, for its evidence."""
        return replace(move, received_ms=ms) if isinstance(move, React) else move
