"""Every game's playthroughs, replayed: what was true of a move when it was written down is true today."""

from __future__ import annotations

import json

from services.kit.game import Game
from tests import simulator
from tests.playthroughs import playthrough


def test_every_playthrough_replays_to_the_same_events_and_the_same_end(game: Game) -> None:
    path = playthrough.path(game)
    assert path.exists(), f"write a playthrough of {game.info.title}: python -m tests.playthroughs {game.id}, and read what it says"
    meant = f"if that is meant: python -m tests.playthroughs {game.id}, and read the difference"
    for written in json.loads(path.read_text()):
        which = f"{game.id}, {written['seats']} seats, {written['options']}"
        played = playthrough.replay(game, written)
        assert played["deal"] == written["deal"], f"{which}: another deal; {meant}"
        for n, (now, then) in enumerate(zip(played["steps"], written["steps"], strict=False), start=1):
            assert now == then, f"{which}: move {n} leads elsewhere; {meant}"
        assert played == written, f"{which}: another end; {meant}"


def test_the_playthroughs_are_written_as_they_are_read(game: Game) -> None:
    written = playthrough.path(game).read_text()
    assert playthrough.text(json.loads(written)) == written


def test_every_set_of_options_has_a_playthrough_with_every_number_of_seats_to_its_end(game: Game) -> None:
    matches = json.loads(playthrough.path(game).read_text())
    assert len(matches) == len(simulator.tables(game)), f"write them anew: python -m tests.playthroughs {game.id}"
    assert all(match["ranks"] for match in matches)
