"""What pages repeat of the code and the protos is what those say."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from gateway import generated, reasons
from gateway.comments import parse
from gateway.registry import GAMES
from services.kit.errors import Error
from tests.gateway.stand import Stand

ROOT = Path(__file__).parent.parent.parent
# What a comment of a proto may say in capitals that is no reason: codes of gRPC, words of health and of HTTP.
_NO_REASONS = {"INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND", "PERMISSION_DENIED", "NOT_SERVING", "UNAVAILABLE"}


def test_every_page_is_as_it_would_be_made_now() -> None:
    made = generated.pages()
    assert [path for path, text in made.items() if (ROOT / path).read_text() != text] == [], "make proto"
    assert {path.relative_to(ROOT) for path in (ROOT / "proto/reference").glob("*.md")} <= set(made)


@pytest.mark.parametrize("game", GAMES)
def test_every_reason_of_a_games_rules_is_in_its_table(game: str) -> None:
    table = next(part for part in reasons.table().split("**") if f"(`{game}`)" in part)
    declared: Any = importlib.import_module(f"services.{game}.rules").Reason
    assert set(re.findall(r"^\| `([A-Z_]+)` \| .", table, re.MULTILINE)) == {reason.value for reason in declared}


def test_every_reason_that_a_proto_names_is_in_the_tables() -> None:
    listed = set(re.findall(r"`([A-Z_]+)` \|", reasons.table()))
    services = (
        location.leading_comments for file in parse().file for location in file.source_code_info.location if location.path[:1] == [6]
    )
    named = {word for comment in services for word in re.findall(r"\b(?!GLOAMING_)[A-Z]+(?:_[A-Z]+)+\b", comment)}
    assert named - listed - _NO_REASONS == set()
    assert len(named & listed) > 30


async def test_every_call_that_the_document_describes_is_in_the_table(gateway: Stand) -> None:
    described = (await gateway.http.get("/openapi.json")).json()["paths"]
    calls = {
        f"{method.upper()} {path}"
        for path, item in described.items()
        for method, operation in item.items()
        if path.startswith("/v1/") and path != "/v1/live" and "operators" not in operation["tags"]
    }
    assert set(re.findall(r"^\| `([^`]+)` \|", generated.calls(), re.MULTILINE)) == calls


def test_every_kind_of_error_is_looked_for() -> None:
    kinds = {kind.__name__ for kind in _leaves(Error)}
    assert kinds == {*reasons.KINDS, "Unreadable"}


def _leaves(kind: type[Error]) -> list[type[Error]]:
    below = kind.__subclasses__()
    return [leaf for each in below for leaf in _leaves(each)] if below else [kind]


@pytest.mark.parametrize(
    "wrong", ['raise Refused(reason, "no")', 'raise Throttled(f"A_{word}", "no")', 'raise Unacceptable(HTTPStatus.CONFLICT, reason, "no")']
)
def test_a_reason_that_cannot_be_read_from_its_source_is_an_error(wrong: str, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(wrong)
    with pytest.raises(reasons.UnknownReasonError, match=r"module\.py:1"):
        list(reasons.of_module(module))


def test_a_reason_says_its_status_its_code_and_its_sentence(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('_SAID = "no room"\nraise Refused("FULL", _SAID)\nraise Raced("VERSION_MISMATCH", f"at {version}, not {other}.")\n')
    first, second = reasons.of_module(module)
    assert (first.reason, first.status, first.says) == ("FULL", 422, "no room")
    assert (second.reason, second.status, second.says) == ("VERSION_MISMATCH", 412, "at …, not ….")


def test_check_says_which_page_differs_and_writing_puts_it_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, text in generated.pages().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    stale, gone = tmp_path / "gateway/ERRORS.md", tmp_path / "proto/reference/gloaming.gone.v1.md"
    whole = stale.read_text()
    stale.write_text(whole.replace("| `RACED` |", "| `ROSED` |"))
    gone.write_text("")
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    assert generated.main(["--check"]) == 1
    assert [line.partition(" ")[0] for line in capsys.readouterr().out.splitlines()] == ["gateway/ERRORS.md", str(gone)]
    assert generated.main([]) == 0
    assert stale.read_text() == whole
    assert not gone.exists()
    assert generated.main(["--check"]) == 0
