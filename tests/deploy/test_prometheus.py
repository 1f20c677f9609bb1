"""`make run MONITORING=1`: a real Prometheus beside the processes, what it scrapes, records and has for the dashboards under load."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import shutil
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.local import Local
from deploy.processes import free_port
from gateway.registry import GAMES
from gloaming.night_knight.v1 import night_knight_pb2
from tests import unlimited
from tests.deploy.test_local import launched, linux, members, printed_until
from tests.deploy.test_monitoring import DASHBOARDS, FOREIGN, RECORDS, names, panels
from tests.live import live

needs_prometheus = pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs the program prometheus")
GAME, KNIGHTS = "night_clan", "night_knight"
# Panels of what goes wrong, and queries in them that have something to show only then; by dashboard, what is asked of which metric.
WRONG = {"gloaming_throttled_total", "gloaming_relay_streams_resumed_total"}


def ask(local: Local, path: str, **query: str) -> Any:
    """What Prometheus' API answers."""
    assert local.prometheus is not None
    with urllib.request.urlopen(f"http://{local.prometheus.address}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=5) as response:
        return json.load(response)["data"]


def has(local: Local, expression: str) -> bool:
    """Whether there is anything to show for it."""
    values = [each["value"][1] for each in ask(local, "query", query=expression)["result"]]
    return any(not math.isnan(float(value)) for value in values)


class Load:
    """People who do everything that dashboards tell of, until they are cancelled."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._http = httpx.AsyncClient(base_url=local.url, timeout=20)

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        async with self._http, asyncio.TaskGroup() as tasks:
            ann, bob = await self._sign_in("Ann"), await self._sign_in("Bob")
            tasks.create_task(self._play(ann))
            tasks.create_task(self._meet(ann, bob))
            tasks.create_task(self._wait(ann))
            tasks.create_task(self._host(bob))
            for _ in range(2):
                tasks.create_task(self._react(ann))

    async def _sign_in(self, name: str) -> str:
        return str((await self._http.post("/v1/players", json={"name": name})).json()["accessToken"])

    async def _ask(self, token: str, method: str, path: str, body: Any = None) -> Any:
        return (await self._http.request(method, path, json=body, headers={"Authorization": f"Bearer {token}"})).json()

    async def _new(self, token: str, game: str) -> str:
        seats = [{"player": "me"}, *({"bot": "STANDARD"} for _ in range(1, GAMES[game].min_seats))]
        options = {"ordering": "COMPENSATED", "countdownMs": 500} if game == KNIGHTS else {}
        return str((await self._ask(token, "POST", "/v1/matches", {"game": game, "seats": seats, "options": options}))["id"])

    async def _play(self, token: str) -> None:
        """Moves, and the same once more, which is refused; its events are streamed."""
        while True:
            match = f"/v1/matches/{await self._new(token, GAME)}"
            stream = asyncio.create_task(self._read(token, f"{match}/events"))
            while (await self._ask(token, "GET", match))["status"] != "FINISHED":
                for move in (await self._ask(token, "GET", f"{match}/moves"))["moves"][:1]:
                    for _ in range(2):
                        await self._ask(token, "POST", f"{match}/moves", {"move": move})
                await asyncio.sleep(0.05)
            await stream

    async def _read(self, token: str, path: str) -> None:
        headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        async with self._http.stream("GET", path, headers=headers, timeout=None) as response:
            async for _ in response.aiter_lines():
                pass

    async def _meet(self, ann: str, bob: str) -> None:
        """Rated matches by tickets, which end at once."""
        wish = {"game": GAME, "seats": {"min": 2, "max": 2}, "settings": {"rated": True}}
        while True:
            ticket = (await self._ask(ann, "POST", "/v1/tickets", wish))["id"]
            await self._ask(bob, "POST", "/v1/tickets", wish)
            if match := (await self._ask(ann, "GET", f"/v1/tickets/{ticket}?wait=10s")).get("matchId"):
                await self._ask(ann, "POST", f"/v1/matches/{match}:resign", {})

    async def _wait(self, token: str) -> None:
        """A ticket that nobody else wishes for."""
        ticket = await self._ask(
            token, "POST", "/v1/tickets", {"game": "clans_and_glory", "seats": {"min": 2, "max": 2}, "botsAfterSeconds": -1}
        )
        while True:
            await self._ask(token, "GET", f"/v1/tickets/{ticket['id']}?wait=5s")

    async def _host(self, token: str) -> None:
        """A room with a bot, that is started."""
        while True:
            room = f"/v1/rooms/{(await self._ask(token, 'POST', '/v1/rooms', {'game': GAME}))['code']}"
            for verb in ("addBot", "ready", "start"):
                await self._ask(token, "POST", f"{room}:{verb}", {})
            await asyncio.sleep(0.5)

    async def _react(self, token: str) -> None:
        """Rounds of Night Knight on a live socket, a socket a match."""
        while True:
            match = await self._new(token, KNIGHTS)
            async with live(self._local.url.replace("http", "ws") + "/v1/live", token) as socket:
                await socket.watch(match)
                for _ in range(2):
                    revealed = await self._revealed(socket)
                    if revealed is None:
                        break
                    react = night_knight_pb2.React(round=revealed, action=night_knight_pb2.React.TOUCH)
                    await socket.move(match, night_knight_pb2.Move(react=react))
                await asyncio.sleep(1)

    async def _revealed(self, socket: Any) -> int | None:
        """The number of the next round, once its cards are revealed; None when the match is over."""
        while True:
            event = night_knight_pb2.Event.FromString((await socket.next("event", seconds=30)).event)
            if event.HasField("cards_revealed"):
                return int(event.cards_revealed.round)
            if event.HasField("match_finished"):
                return None


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    env = {"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "50", **unlimited.ENVIRONMENT}
    with Local(tmp_path_factory.mktemp("watched"), env=env, monitoring=0.5) as local:
        yield local


def queries() -> Iterator[tuple[str, str]]:
    """What dashboards ask of our own metrics, and where, as Grafana asks it."""
    for dashboard in DASHBOARDS:
        for panel in panels(dashboard):
            for target in panel.get("targets", ()):
                if not names(target["expr"]) & FOREIGN:
                    asked = target["expr"].replace("$__rate_interval", "15s").replace("$namespace", "local")
                    yield f"{dashboard.name}, {panel['title']}: {target['expr']}", asked


@needs_prometheus
async def test_everything_is_scraped_and_every_panel_has_something_to_show_under_load(watched: Local) -> None:
    load = asyncio.create_task(Load(watched).run())
    # In turns until each has had something; what a panel shows may pass.
    empty = {where: asked for where, asked in queries() if not names(asked) & WRONG} | {record: record for record in RECORDS}
    try:
        async with asyncio.timeout(60):
            while empty:
                if load.done():
                    load.result()
                shown = [where for where, asked in empty.items() if await asyncio.to_thread(has, watched, asked)]
                for where in shown:
                    del empty[where]
                await asyncio.sleep(0.25)
    except TimeoutError:
        pytest.fail("\n".join(["Nothing to show:", *empty]))
    finally:
        load.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await load

    targets = ask(watched, "targets")["activeTargets"]
    assert {target["health"] for target in targets} == {"up"}, targets
    assert sorted(target["labels"]["job"] for target in targets) == sorted(["gateway", *(game.replace("_", "-") for game in GAMES)])
    for labels in (target["labels"] for target in targets):
        assert (labels["namespace"], labels["app_kubernetes_io_part_of"]) == ("local", "gloaming")
    rules = [rule for group in ask(watched, "rules")["groups"] for rule in group["rules"]]
    assert {(rule["name"], rule["health"]) for rule in rules if rule["health"] != "ok"} == set()
    assert {rule["name"] for rule in rules} >= set(RECORDS)
    assert [rule["name"] for rule in rules if rule.get("state") == "firing"] == []


@linux
@needs_prometheus
def test_it_says_where_prometheus_is_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with launched(tmp_path, free_port(), "--monitoring") as process:
        said = printed_until(process, "Ctrl-C")
        (address,) = re.findall(r"monitor +(http://\S+) \(Prometheus\)", said)
        with urllib.request.urlopen(f"{address}/-/healthy", timeout=5) as response:
            assert response.status == 200
        assert len(members(tmp_path)) == 4 + len(GAMES)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
        assert (process.returncode, out) == (0, f"Stopped; matches are kept in {tmp_path}.\n")
    assert members(tmp_path) == []


def test_without_prometheus_it_says_what_to_install_and_starts_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deploy.local", "--port", str(free_port()), "--data", str(tmp_path / "data"), "--monitoring"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("MONITORING needs Prometheus, which is not installed: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()
