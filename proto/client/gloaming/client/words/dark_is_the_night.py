"""Dark Is the Night in words."""

from __future__ import annotations

from collections.abc import Sequence

from gloaming.client.words.common import count, word
from gloaming.dark_is_the_night.v1 import dark_is_the_night_pb2 as pb

_HUNTRESS, _MONSTER = 0, 1


def event(happened: pb.Event, names: Sequence[str]) -> str:
    """An event in a sentence or two."""
    huntress, monster = names[_HUNTRESS], names[_MONSTER]
    match happened.WhichOneof("kind"):
        case "night_fell":
            return f"Night falls. {huntress} is the Huntress, {monster} the Monster."
        case "monster_hid":
            hid = happened.monster_hid
            return f"The Monster hides{f' on dark {hid.square}' if hid.HasField('square') else ' in the dark'}."
        case "huntress_camped":
            return f"The Huntress camps on lit {happened.huntress_camped.square}."
        case "side_announced":
            return f"The Monster is in the {direction(happened.side_announced.side)}."
        case "huntress_moved":
            return f"The Huntress goes to lit {happened.huntress_moved.to}."
        case "monster_moved":
            moved = happened.monster_moved
            return f"The Monster moves{f' to dark {moved.to}' if moved.HasField('to') else ' in the dark'}."
        case "monster_sighted":
            sighted = happened.monster_sighted
            why = "in the firelight" if sighted.cause == pb.MonsterSighted.FIRELIGHT else "for its feint"
            return f"The Monster shows itself on dark {sighted.square}, {why}."
        case "bell_placed":
            return f"The Huntress hangs the bell on dark {happened.bell_placed.square}."
        case "bell_rang":
            return f"The bell rings on dark {happened.bell_rang.square}!"
        case "ham_placed":
            return f"The Huntress lays the ham on dark {happened.ham_placed.square}."
        case "ham_distance":
            distance = happened.ham_distance
            return f"The Monster is {count(distance.distance, 'square')} from the ham on dark {distance.square}."
        case "arrow_shot":
            shot = happened.arrow_shot
            what = "a burning arrow" if shot.burning else "an arrow"
            end = ". It hits the Monster!" if shot.hit else ", and hits nobody."
            return f"The Huntress shoots {what} {direction(shot.direction)} to dark {shot.square}{end}"
        case "square_lit":
            return f"Dark {happened.square_lit.square} burns."
        case "sword_swung":
            swung = happened.sword_swung
            return f"The Huntress strikes at dark {swung.square}{' and hits the Monster!' if swung.hit else ', in vain.'}"
        case "monster_attacked":
            attacked = happened.monster_attacked
            return f"The Monster attacks lit {attacked.square}{' and gets the Huntress!' if attacked.hit else ', in vain.'}"
        case "feint_played":
            feint = happened.feint_played
            return f"The Monster plays its feint{f', {_steps(feint.steps)}' if feint.HasField('steps') else ''}."
        case "dawn_near":
            return f"The Huntress has used her last token: {count(happened.dawn_near.turns_left, 'turn')} to dawn."
        case _:
            return ""


def move(done: pb.Move, names: Sequence[str]) -> str:
    """A move in a few words."""
    match done.WhichOneof("kind"):
        case "lair":
            return f"hide on dark {done.lair.square}"
        case "camp":
            return f"camp on lit {done.camp.square}"
        case "hunt":
            return f"go to lit {done.hunt.to}{_action(done.hunt)}"
        case "prowl":
            return f"one square {_way(done.prowl.direction)}{', and attack' if done.prowl.attack else ''}"
        case "feint":
            return f"the feint: {_steps(done.feint.steps)}"
        case _:
            return f"to the ham, {_way(done.lured.direction)}"


def direction(way: pb.Compass.Direction) -> str:
    """A direction of the compass."""
    return word(pb.Compass.Direction, way).lower()


def _action(hunt: pb.Hunt) -> str:
    match hunt.WhichOneof("action"):
        case "sword":
            return f", strike at dark {hunt.sword.square}"
        case "arrow":
            return f", shoot {direction(hunt.arrow.direction)}"
        case "bell":
            return f", the bell to dark {hunt.bell.square}"
        case "ham":
            return f", the ham to dark {hunt.ham.square}"
        case _:
            return ""


def _way(way: pb.Ring.Direction) -> str:
    return word(pb.Ring.Direction, way).lower()


def _steps(steps: int) -> str:
    return f"{count(abs(steps), 'square')} {_way(pb.Ring.CLOCKWISE if steps > 0 else pb.Ring.COUNTERCLOCKWISE)}" if steps else "staying"
