"""What the pages print works as printed: README.md and those that it leads to."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from deploy.local import ROOT, Local
from gateway.settings import table

# What is meant to be typed in or run; other languages are shown: diagrams, queries, and, without one, outputs and settings.
RUNNABLE = ("sh", "bash", "python", "js", "ts", "json", "yaml")
_FOLDERS = ("deploy", "gateway", "proto", "services", "tests")
_BLOCK = re.compile(r"(?:^<!-- ([^>]*) -->\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARKS = re.compile(r"a test \w+ .{10,}|run by (?P<by>tests/[\w/]+\.py).*|not run: .{10,}")


@dataclass(frozen=True)
class Block:
    """A block of code in a page.

    Args:
        mark: what the comment above it says.
    """

    page: str
    mark: str
    language: str
    text: str


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed; with it the blocks in JavaScript are run")


def _pages() -> list[Path]:
    """Every page of ours; what others wrote (node_modules) or was made elsewhere (.cache) is none."""
    found = [*ROOT.glob("*.md"), *(page for folder in _FOLDERS for page in (ROOT / folder).rglob("*.md"))]
    return sorted(page for page in found if "node_modules" not in page.parts)


def _blocks() -> list[Block]:
    return [
        Block(str(page.relative_to(ROOT)), mark, language, text)
        for page in _pages()
        for mark, language, text in _BLOCK.findall(page.read_text())
        if language in RUNNABLE
    ]


BLOCKS = _blocks()
# Those that a test here runs or compares.
TESTED: list[Block] = []


def _block(page: str, language: str, holds: str) -> str:
    (block,) = [each for each in BLOCKS if (each.page, each.language) == (page, language) and holds in each.text]
    TESTED.append(block)
    return block.text


CURL = _block("README.md", "sh", "record.json; do")
PYTHON = _block("gateway/README.md", "python", "night_clan_pb2")
LIVE = _block("gateway/README.md", "python", "client.live()")
JAVASCRIPT = _block("gateway/README.md", "js", "WebSocket")
REFUSED = _block("gateway/README.md", "json", "violations")
RESUMED = _block("gateway/README.md", "sh", "Last-Event-ID")
PEOPLE = _block("gateway/README.md", "sh", "/tickets")
FRAMES_UP = _block("gateway/README.md", "json", '"watch"')
FRAMES_DOWN = _block("gateway/README.md", "json", '"messages"')
VERIFY = _block("services/FAIRNESS.md", "sh", "-m services.night_clan verify")
VERIFY_ELSEWHERE = _block("services/FAIRNESS.md", "sh", "node ")
TOKENS = _block("proto/INTEGRATING.md", "sh", "gateway token")
GRPC = _block("proto/INTEGRATING.md", "python", "WatchMatch")
REASON = _block("proto/INTEGRATING.md", "python", "ErrorInfo")
PACKAGE = _block("proto/README.md", "python", "gloaming.client")
LOOK = _block("deploy/README.md", "sh", "readyz")
OPERATE = _block("deploy/README.md", "sh", "find night_clan --status finished")


def _here(script: str, everything: Local) -> str:
    """A block for what is up here, instead of what `make run` starts."""
    here = {
        "127.0.0.1:8080": everything.url.removeprefix("http://"),
        "redis://127.0.0.1:20008/0": everything.redis_url,
        **{f"127.0.0.1:{20000 + number}": addresses[0] for number, addresses in enumerate(everything.services.values())},
        ".gloaming/8080": str(everything.data),
        ".venv/bin/python": sys.executable,
    }
    for printed, real in here.items():
        script = script.replace(printed, real)
    return script


def _run(script: str, everything: Local, directory: Path) -> str:
    """What a block prints."""
    argv = ["bash", "-euo", "pipefail", "-c", _here(script, everything)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=directory, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _run_python(block: str, everything: Local, directory: Path) -> str:
    (directory / "play.py").write_text(_here(block, everything))
    return _run(".venv/bin/python play.py", everything, directory)


@pytest.fixture(scope="module")
def record(everything: Local, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the block that plays a match printed, and the record it left."""
    directory = tmp_path_factory.mktemp("readme")
    return _run(CURL, everything, directory), directory / "record.json"


def test_the_match_in_curl_plays_to_its_end(record: tuple[str, Path]) -> None:
    *moves, end = record[0].splitlines()
    assert len(moves) == 14
    assert all(re.fullmatch(r'\{"move": \{.{8,120}\}\}', move) for move in moves)
    assert re.fullmatch(r"seat [01] scores \[-?\d+, -?\d+\] (won|lost)", end)


def test_the_record_of_that_match_is_verified_as_the_page_says(record: tuple[str, Path], everything: Local) -> None:
    printed = _run(VERIFY, everything, record[1].parent)
    assert printed.splitlines()[-1].endswith("is true.")


@needs_node
def test_the_record_of_that_match_is_verified_by_another_program(record: tuple[str, Path], everything: Local) -> None:
    script = VERIFY_ELSEWHERE.replace("tests/contract", str(ROOT / "tests/contract"))
    assert _run(script, everything, record[1].parent).count("ok") > 2


@pytest.mark.parametrize("block", [PYTHON, PACKAGE], ids=["gateway", "package"])
def test_the_match_in_python_plays_to_its_end(block: str, everything: Local, tmp_path: Path) -> None:
    printed = _run_python(block, everything, tmp_path)
    assert "match_finished" in printed
    if block is PYTHON:
        assert "ending: COMPLETED" in printed.split("match_finished")[1]


def test_three_rounds_on_the_live_socket_in_python(everything: Local, tmp_path: Path) -> None:
    printed = _run_python(LIVE, everything, tmp_path)
    assert printed.count("cards_revealed {") == 3
    assert printed.count("round_resolved {") == 2


@needs_node
def test_the_match_in_javascript_plays_to_its_end(everything: Local, tmp_path: Path) -> None:
    (tmp_path / "play.mjs").write_text(_here(JAVASCRIPT, everything))
    # Before version 22 a WebSocket has to be asked for.
    printed = _run("node --experimental-websocket play.mjs", everything, tmp_path)
    assert json.loads(printed.splitlines()[-1])["matchFinished"]["outcome"]["ending"] == "COMPLETED"


def test_two_people_find_each_other_by_tickets_and_in_a_room(everything: Local, tmp_path: Path) -> None:
    bobs, anns, joined, ready, filled, started = _run(PEOPLE, everything, tmp_path).splitlines()
    assert bobs.split()[0] in ("WAITING", "FORMING", "MATCHED")
    assert re.fullmatch(r"MATCHED night_clan-[a-z0-9]+", anns)
    assert (joined, ready) == ("['Ann', 'Bob']", "[True, True]")
    assert filled.startswith("['Ann', 'Bob', '")
    assert re.fullmatch(r"STARTED night_knight-[a-z0-9]+", started)


def test_a_stream_that_was_cut_off_goes_on_after_its_cursor(everything: Local, tmp_path: Path) -> None:
    cursor, *after = _run(RESUMED, everything, tmp_path).splitlines()
    assert re.fullmatch(r"[\w-]{16}, and after it", cursor)
    events = [json.loads(line) for line in after]
    assert "handKept" in events[0]["event"]
    assert cursor[:16] not in [event["cursor"] for event in events]


def test_the_match_over_grpc_plays_to_its_end_and_a_refusal_says_its_reason(everything: Local, tmp_path: Path) -> None:
    (tmp_path / "play.py").write_text(GRPC)
    (tmp_path / "refused.py").write_text(REASON)
    printed = _run(TOKENS + ".venv/bin/python play.py; .venv/bin/python refused.py", everything, tmp_path)
    match, refused = printed.rstrip().rsplit("\n", 1)
    assert "match_finished" in match
    assert "ending: COMPLETED" in match.split("match_finished")[1]
    assert refused == "NOT_FOUND MATCH_NOT_FOUND"


def test_what_uses_the_client_and_the_messages_outside_the_tree_is_typed(tmp_path: Path) -> None:
    files = {"play.py": PYTHON, "live.py": LIVE, "package.py": PACKAGE}
    for name, block in files.items():
        (tmp_path / name).write_text(block)
    command = [sys.executable, "-m", "mypy", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path, check=False)
    assert done.stdout == "Success: no issues found in 3 source files\n", done.stdout + done.stderr


def test_an_operator_sees_how_it_is(everything: Local, tmp_path: Path) -> None:
    ready, build = _run(LOOK, everything, tmp_path).splitlines()
    assert json.loads(ready)["allServing"]
    assert build.startswith("gloaming_build_info{version=")


def test_an_operator_finds_a_match_and_backs_all_up(record: tuple[str, Path], everything: Local, tmp_path: Path) -> None:
    printed = _run(OPERATE, everything, tmp_path)
    assert json.loads(record[1].read_text())["matchId"] in printed
    assert (tmp_path / "gloaming.backup").stat().st_size > 0


def _post(everything: Local, path: str, body: object, token: str = "") -> dict[str, Any]:
    """What a call answers, be it a refusal."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{everything.url}/v1{path}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            answer: dict[str, Any] = json.load(response)
    except urllib.error.HTTPError as refused:
        answer = json.load(refused)
    return answer


def test_a_refusal_is_as_the_page_shows_it(everything: Local) -> None:
    assert _post(everything, "/players", {"name": ""}) == json.loads(REFUSED)


async def test_the_frames_of_the_live_socket_are_as_the_page_shows_them(everything: Local) -> None:
    token = (await asyncio.to_thread(_post, everything, "/players", {"name": "Ann"}))["accessToken"]
    wish = {"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}], "order": "AS_LISTED"}
    match = await asyncio.to_thread(_post, everything, "/matches", wish, token)
    offered = [Subprotocol("gloaming.v1.json"), Subprotocol(f"bearer.{token}")]
    came: list[dict[str, Any]] = []
    async with asyncio.timeout(20), connect(f"{everything.url.replace('http', 'ws')}/v1/live", subprotocols=offered) as socket:
        # Here bots move at once, so that the version is another one by then.
        for line in FRAMES_UP.replace("night_clan-…", match["id"]).replace(', "expectedVersion": 1', "").splitlines():
            await socket.send(line)
        while not {"result", "snapshot", "event"} <= {kind for message in came for kind in message}:
            came += json.loads(await socket.recv())["messages"]
    shown = [message for line in FRAMES_DOWN.splitlines() for message in json.loads(line)["messages"]]
    for message in shown:
        (kind,) = message
        keys = set(message[kind])
        assert any(keys <= set(each[kind]) for each in came if kind in each), f"{kind} has no {keys}"


@pytest.mark.parametrize("block", BLOCKS, ids=[f"{block.page}-{number}" for number, block in enumerate(BLOCKS)])
def test_every_block_is_run_or_says_why_not(block: Block) -> None:
    mark = _MARKS.fullmatch(block.mark)
    assert mark, f"{block.page}: no comment above this block says who runs it, or why nobody does:\n{block.text}"
    if by := mark["by"]:
        assert (ROOT / by).is_file()
    else:
        assert (block in TESTED) is not block.mark.startswith("not run")
    if block.language == "sh":
        subprocess.run(["bash", "-n", "-c", block.text], check=True, timeout=10)


def test_every_target_of_make_and_every_module_that_a_page_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in _pages():
        code = "\n".join([*re.findall(r"`([^`\n]+)`", page.read_text()), *(each[2] for each in _BLOCK.findall(page.read_text()))])
        assert set(re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)\b", code)) <= targets, page
        for module in re.findall(r"python -m ((?:deploy|gateway|services|tests)[\w.]*)", code):
            path = ROOT / module.rstrip(".").replace(".", "/")
            assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file() or module == "services.", f"{page}: {module}"


def _anchors(text: str) -> Iterator[str]:
    """The names by which Git hosts link to a page's headings."""
    seen: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        yield f"{name}-{seen[name]}" if name in seen else name
        seen[name] = seen.get(name, 0) + 1


@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if not link.startswith(("https://", "http://")):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), f"{link} leads nowhere"
            assert not anchor or anchor in set(_anchors(target.read_text())), f"{link}: there is no such heading"


def test_the_table_of_settings_is_what_the_code_says() -> None:
    printed = re.search(r"<!-- settings: [^>]*-->\n(.*)\n<!-- /settings -->", (ROOT / "README.md").read_text(), re.DOTALL)
    assert printed is not None
    assert printed[1] == table(), "paste what `.venv/bin/python -m gateway settings` prints"
