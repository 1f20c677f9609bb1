"""Protos change, and clients of the last release go on: what is new reaches them as something that they do not know, and is no fault."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format

from gateway import transcoding
from services.kit.game import Game
from tests import protos

ROOT = Path(__file__).parents[2]
# What services and gateway say to clients.
TOLD = (
    "Match",
    "MatchEvent",
    "Event",
    "View",
    "ListMovesResponse",
    "ListEventsResponse",
    "WatchMatchResponse",
    "SubmitMoveResponse",
    "Record",
)


def told(game: Game, name: str) -> list[Any]:
    """Messages of a release to come, with each choice that they have."""
    return [protos.filled(protos.to_come().game(game.id, name), choice) for choice in range(40)]


def known(message: Any, kind: Any) -> Any:
    """What a release knows of a message."""
    return json_format.ParseDict(json_format.MessageToDict(message, use_integers_for_enums=True), kind(), ignore_unknown_fields=True)


@pytest.mark.scenario(27)
@pytest.mark.parametrize("name", TOLD)
def test_clients_of_the_last_release_read_what_a_release_to_come_writes_in_protobuf(game: Game, name: str) -> None:
    old = protos.baseline().game(game.id, name)
    for message in told(game, name):
        read = old.FromString(message.SerializeToString())
        assert known(read, old) == known(message, old)
        assert type(message).FromString(read.SerializeToString()) == message, "what it does not know it hands on"


@pytest.mark.scenario(27)
@pytest.mark.parametrize("name", TOLD)
def test_clients_of_the_last_release_read_what_a_gateway_to_come_writes_in_json(game: Game, name: str) -> None:
    old = protos.baseline().game(game.id, name)
    texts = [transcoding.render(message).decode() for message in told(game, name)]
    for text in texts:
        json_format.Parse(text, old(), ignore_unknown_fields=True)
    assert any('_TO_COME"' in text for text in texts)


@pytest.mark.scenario(27)
@pytest.mark.parametrize("name", TOLD)
def test_a_gateway_writes_what_a_service_to_come_says_with_numbers_for_values_that_it_does_not_know(game: Game, name: str) -> None:
    mine, old = game.message(name), protos.baseline().game(game.id, name)
    for message in told(game, name):
        here = mine.FromString(message.SerializeToString())
        text = transcoding.render(here)
        assert json.loads(text) == json_format.MessageToDict(here, always_print_fields_with_no_presence=True)
        assert b"_TO_COME" not in text
        assert known(json_format.Parse(text, old(), ignore_unknown_fields=True), old) == known(message, old)


def breaking(directory: Path) -> subprocess.CompletedProcess[str]:
    """What `make check` asks buf."""
    buf = Path(sys.executable).parent / "buf"
    return subprocess.run(
        [buf, "breaking", directory, "--against", protos.BASELINE], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("string card_id = 1;", "string card_id = 9;", "card_id"),
        ("int32 owner = 2;", "string owner = 2;", "owner"),
        ("bool face_up = 3;", "bool is_face_up = 3;", "face_up"),
        ("    MISTLETOE = 2;\n", "    MISTLETOE = 7;\n", 'value "2" on enum "Kind"'),
        ("rpc Resign(ResignRequest)", "rpc GiveUp(ResignRequest)", "Resign"),
    ],
    ids=["a renumbered field", "another type", "another name", "a renumbered value", "a verb gone"],
)
def test_a_change_that_breaks_clients_is_caught_against_the_baseline(tmp_path: Path, before: str, after: str, told: str) -> None:
    shutil.copytree(ROOT / "proto" / "gloaming", tmp_path / "gloaming")
    shutil.copy(ROOT / "proto" / "buf.yaml", tmp_path)
    checked = breaking(tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    path = tmp_path / "gloaming/night_clan/v1/night_clan.proto"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    checked = breaking(tmp_path)
    assert checked.returncode == 100, checked.stderr
    assert told in checked.stdout
    # What is only more is no breach.
    path.write_text(text.replace("    NIGHT_WATCH = 5;\n", "    NIGHT_WATCH = 5;\n    // 3.\n    DRAGON = 6;\n", 1))
    assert breaking(tmp_path).returncode == 0
