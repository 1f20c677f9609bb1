"""The operator's command, with real services, a real gateway and a real Redis."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from gateway import admin
from services.kit.identity import revocation_key
from tests.gateway.stand import Stand, stand, targets
from tests.harness import EVERY_GAME, Keys, Refused, Table, eventually, table

GAME = EVERY_GAME[0]


class Desk:
    """Where an operator sits: the environment of a gateway.

    Attributes:
        logs: what was logged while the last command ran.
    """

    def __init__(self, there: Table, capsys: pytest.CaptureFixture[str]) -> None:
        self.there = there
        self.logs: Sequence[MutableMapping[str, Any]] = []
        self._capsys = capsys

    async def run(self, *arguments: str, status: int = 0) -> str:
        """Runs the command; returns what it says."""
        # What the services log goes there, lest it go to standard output.
        with capture_logs() as self.logs:
            self._capsys.readouterr()
            assert await asyncio.to_thread(admin.main, list(arguments)) == status
        said = self._capsys.readouterr()
        return said.err if status else said.out

    async def json(self, *arguments: str) -> Any:
        """Runs the command; returns what it says as JSON."""
        return json.loads(await self.run(*arguments, "--json"))


@pytest.fixture
async def desk(
    keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> AsyncIterator[Desk]:
    async with table(GAME, keys, redis_url) as there:
        services = targets("127.0.0.1:1", {GAME.id: there.addresses[0]})
        monkeypatch.setenv("GLOAMING_SERVICES", ",".join(f"{game}={target}" for game, target in services.items()))
        monkeypatch.setenv("GLOAMING_SIGNING_KEY_FILE", str(keys.pem))
        monkeypatch.setenv("REDIS_URL", redis_url)
        yield Desk(there, capsys)


@asynccontextmanager
async def gateway_of(desk: Desk, keys: Keys, redis_url: str, **more: Any) -> AsyncIterator[Stand]:
    async with stand(keys, redis_url, services={GAME.id: desk.there.addresses[0]}, **more) as gateway:
        yield gateway


async def test_a_players_matches_are_found_inspected_and_ended(desk: Desk, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with gateway_of(desk, keys, redis_url) as gateway:
        session = await gateway.sign_in("Ann")
        player = session["player"]["id"]
        asked = {"game": GAME.id, "seats": [{"player": "me"}, {"bot": "STANDARD"}]}
        match_id, damaged = [(await gateway.http.post("/v1/matches", json=asked)).json()["id"] for _ in range(2)]
        other = await desk.there.create()
        await redis.hset(f"{GAME.id}:{{{damaged}}}:match", "state", b"\xc1")
        assert f"{damaged}  UNREADABLE" in await desk.run("find", "--player", player)
        for arguments in (["--player", player], ["--name", "ann", GAME.id, "--status", "playing", "--limit", "5"], [match_id]):
            found = await desk.json("find", *arguments)
            assert match_id in [match["matchId"] for match in found["matches"]], arguments
        assert other not in str(await desk.json("find", "--player", player))
        assert "No match" in await desk.run("find", f"{GAME.id}-zzzzzzzz")

        told = await desk.json("inspect", match_id)
        assert "secrets" not in told
        assert told["summary"]["seats"][0]["name"] in ("Ann", "Bot")
        assert told["match"]["commitment"]
        assert "with --reason" in await desk.run("inspect", match_id, "--reveal-secrets", status=1)
        secrets = (await desk.json("inspect", match_id, "--reveal-secrets", "--reason", "a dispute", "--by", "olga"))["secrets"]
        (logged,) = [each for each in desk.logs if each["event"] == "secrets_revealed"]
        assert (logged["operator"], logged["reason"]) == ("operator:olga", "a dispute")
        assert len(secrets["seed"]) == 64
        assert secrets["state"]
        assert "As spectators see it:" in await desk.run("inspect", match_id)

        assert "has ended: ABANDONED" in await desk.run("end", match_id, "--reason", "a dispute")
        assert "had ended already: ABANDONED" in await desk.run("end", match_id, "--reason", "a dispute")
        assert (await gateway.http.get(f"/v1/matches/{match_id}")).json()["outcome"]["ending"] == "ABANDONED"
        assert match_id in str(await desk.json("find", "--player", player, "--status", "finished"))


async def test_matches_are_found_though_other_games_are_away_and_those_are_named(
    desk: Desk, keys: Keys, redis_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    match_id = await desk.there.create()
    away = await desk.run("find", "--limit", "5", status=1)
    assert [line.split()[2] for line in away.splitlines()] == sorted(game.id for game in EVERY_GAME if game.id != GAME.id)
    capsys.readouterr()
    assert await asyncio.to_thread(admin.main, ["find", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert match_id in [match["matchId"] for match in told["matches"]]
    assert len(told["away"]) == len(EVERY_GAME) - 1


async def test_a_damaged_match_is_named_and_hides_no_other(desk: Desk, keys: Keys, redis_url: str, redis: Redis) -> None:
    good, bad = await desk.there.create(), await desk.there.create()
    await redis.hset(f"{GAME.id}:{{{bad}}}:match", "state", b"\xc1")
    said = await desk.run("find", GAME.id)
    assert f"{bad}  UNREADABLE" in said
    assert good in said
    assert "MATCH_UNREADABLE" in await desk.run("inspect", bad, status=1)


async def test_a_revoked_player_is_out_everywhere_and_stays_out(desk: Desk, keys: Keys, redis_url: str, redis: Redis) -> None:
    async with gateway_of(desk, keys, redis_url) as gateway:
        session = await gateway.sign_in("Ann")
        player = session["player"]["id"]
        match_id = await desk.there.create(player, "bob")
        at_service = desk.there.player(player, token=session["accessToken"])
        await at_service.get(match_id)
        assert "good any more" in await desk.run("revoke", player)
        assert (await gateway.http.get("/v1/players/me")).json()["reason"] == "TOKEN_REVOKED"
        assert (await gateway.http.post("/v1/players:refresh", json={"refreshToken": session["refreshToken"]})).status_code == 401
        with pytest.raises(Refused) as refused:
            await at_service.get(match_id)
        assert refused.value.reason == "TOKEN_REVOKED"
        assert await redis.ttl(revocation_key(player)) > 365 * 86_400


async def test_a_revocation_outlives_every_token_that_the_command_prints(desk: Desk, redis: Redis) -> None:
    long = (await desk.run("token", "--subject", "ann", "--scope", "play", "--seconds", "31536000")).strip()
    match_id = await desk.there.create("ann", "bob")
    ann = desk.there.player("ann", token=long)
    await ann.get(match_id)
    assert "choose another" in await desk.run("revoke", "ann")
    with pytest.raises(Refused):
        await ann.get(match_id)
    assert await redis.ttl(revocation_key("ann")) > 31_536_000
    # And a shorter one afterwards does not shorten it.
    await desk.run("revoke", "ann", "--days", "1")
    assert await redis.ttl(revocation_key("ann")) > 31_536_000
    with pytest.raises(SystemExit, match="at most 900 s"):
        admin.main(["token", "--subject", "paaaaaaaaaaaaaaaa", "--seconds", "901"])


async def test_a_gateway_that_is_told_to_drain_loses_no_answer_and_stops(desk: Desk, keys: Keys, redis_url: str) -> None:
    async with gateway_of(desk, keys, redis_url, on_socket=True) as staying:
        async with gateway_of(desk, keys, redis_url, on_socket=True) as going:
            urls = [str(each.http.base_url).rstrip("/") for each in (going, staying)]
            session = await going.sign_in("Ann")
            headers = {"Authorization": f"Bearer {session['accessToken']}"}
            answers: list[int] = []
            stop = asyncio.Event()

            async def ask() -> None:
                # A load balancer: to whoever is ready.
                async with httpx.AsyncClient(headers=headers) as client:
                    while not stop.is_set():
                        ready = (await client.get(f"{urls[0]}/readyz")).status_code == 200 if len(urls) == 2 else False
                        if not ready and len(urls) == 2:
                            urls.pop(0)
                        answers.append((await client.get(f"{urls[0]}/v1/players/me")).status_code)

            asking = [asyncio.create_task(ask()) for _ in range(4)]
            await eventually(lambda: len(answers) > 20)
            address = urls[0]
            assert "stops in 1 s" in await desk.run("drain", address, "--after", "1")
            assert (await going.http.get("/readyz")).json()["draining"]
            assert (await going.http.get("/v1/players/me")).headers["connection"] == "close"
            assert going.server is not None
            await eventually(lambda: going.server and going.server.should_exit)
            before = len(answers)
            await eventually(lambda: len(answers) > before + 20)
            stop.set()
            await asyncio.gather(*asking)
            assert set(answers) == {200}
        assert (await staying.http.get("/readyz")).status_code == 200


@pytest.mark.parametrize("scope", ["play", "host", "relay"])
async def test_nobody_but_an_operator_drains_a_gateway(gateway: Stand, keys: Keys, scope: str) -> None:
    token = keys.token("somebody", scope=scope)
    refused = await gateway.http.post("/drainz", headers={"Authorization": f"Bearer {token}"})
    assert (refused.status_code, refused.json()["reason"]) == (403, "SCOPE_MISSING")
    assert (await gateway.http.post("/drainz")).status_code == 401
    olga = {"Authorization": f"Bearer {keys.token('olga', scope='operator')}"}
    for after in ("-1", "301", "x", ""):
        assert (await gateway.http.post("/drainz", params={"after": after}, headers=olga)).status_code == 400
    assert not (await gateway.http.get("/readyz")).json()["draining"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["inspect", f"{GAME.id}-nowhere00"], "MATCH_NOT_FOUND"),
        (["inspect", "night_knight-nowhere00"], "does not answer"),
        (["end", f"{GAME.id}-nowhere00", "--reason", "x"], "MATCH_NOT_FOUND"),
        (["end", f"{GAME.id}-nowhere00", "--reason", " "], "reason"),
        (["revoke", "gateway"], "is the gateway itself"),
        (["revoke", "ann", "--redis-url", "redis://127.0.0.1:1/0"], "Redis does not answer"),
        (["drain", "127.0.0.1:1"], "does not answer"),
        (["drain", "http://127.0.0.1:1"], "No gateway answers"),
        (["restore", "/nowhere"], "cannot be read"),
        (["backup", "/nowhere/backup"], "cannot be written"),
        (["find", "--key", "/nowhere"], "cannot be read"),
        (["drain", "http://[::::]:1"], "No gateway answers"),
        (["find", "--key", "pyproject.toml"], "does not hold an Ed25519 private key"),
    ],
)
async def test_what_cannot_be_done_is_said_in_a_sentence(desk: Desk, arguments: list[str], says: str) -> None:
    said = await desk.run(*arguments, status=1)
    assert says in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["find", "nope"],
        ["inspect", "nope-abcdefgh"],
        ["end", f"{GAME.id}-abcdefgh"],
        ["revoke", "a b"],
        ["revoke", "ann", "--days", "0"],
        ["drain", "somewhere"],
        ["drain", "127.0.0.1:1", "--after", "-1"],
        ["find", "--by", "a\nb"],
        ["find", "--name", "\udcff"],
        ["end", f"{GAME.id}-abcdefgh", "--reason", "\udcff"],
        ["drain", "http://127.0.0.1:99999"],
        ["token", "--subject", "a\nb"],
        ["token", "--name", "\x1b[31mAnn"],
    ],
)
def test_a_wrong_argument_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        admin.main(arguments)
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_it_runs_as_a_process_and_says_what_is_missing() -> None:
    for arguments in (["--help"], ["find"]):
        command = [sys.executable, "-m", "gateway.admin", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={})
        assert done.returncode == (0 if arguments == ["--help"] else 1)
        assert "Traceback" not in done.stderr
    assert done.stderr.strip() == "Name the private key: with --key, or with GLOAMING_SIGNING_KEY_FILE."
