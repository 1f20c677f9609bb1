"""How Night Knight's reactions are ordered: by react.lua, in the terms of the kit (NK-10 to NK-13, NK-19)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from gloaming.night_knight.v1 import night_knight_pb2 as pb
from services.kit.game import OpenRound
from services.kit.storage import Script
from services.night_knight import codec, rules
from services.night_knight.rules import Event, Move, Phase, React, Refusal, State


class Reactions:
    """Satisfies `services.kit.game.ReactionRules`."""

    script = Script(Path(__file__).parent / "lua" / "react.lua")
    already_reacted = rules.ALREADY_REACTED

    def is_reaction(self, move: Move) -> bool:
        """Whether it is one: all but a peek."""
        return isinstance(move, React)

    def open(self, state: State) -> OpenRound | None:
        """The round in its action phase, with all its pillows (NK-17) and everybody who is still in (NK-05)."""
        if state.phase is not Phase.ACTION:
            return None
        waiting = len(state.piles) - len(state.out)
        return OpenRound(state.round, rules.PILLOWS[len(state.piles)], waiting, state.options.cap_ms, state.options.action_ms)

    def known(self, state: State) -> int:
        """How many of the round's reactions the state holds, late ones included (NK-13)."""
        return len(rules.reactions(state))

    def number(self, state: State) -> int:
        """The round."""
        return state.round

    def refusal(self, state: State, seat: int, move: Move) -> Refusal | None:
        """Why the rules forbid it now."""
        return rules.refusal(state, seat, move)

    def request(self, seat: int, move: Move) -> tuple[int, bytes]:
        """The action, and the reaction without verdict, rank and evidence."""
        assert isinstance(move, React)
        reaction = pb.Reaction(seat=seat, action=move.action.name, target=move.target)
        return int(move.action), reaction.SerializeToString(deterministic=True)

    def decided(self, move: Move, reaction: Any) -> Move:
        """The move with the times that its evidence tells."""
        evidence = reaction.evidence
        if not isinstance(move, React):
            return move
        return React(move.round, move.action, move.target, evidence.received_ms, evidence.round_trip_ms, evidence.compensation_ms)

    def reaction(self, event: Event) -> Message:
        """The reaction that an event tells of."""
        reaction: Message = codec.event_to_proto(event).reacted
        return reaction
