"""The users that `deploy/redis/users.acl` makes: each process can do its work, and touch nothing of another's."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, ResponseError

from deploy.processes import LOCALHOST
from deploy.redis_server import RedisServer
from gateway import admin
from gateway.registry import GAMES
from services.kit.errors import Unavailable
from services.kit.game import Game
from services.kit.storage import Storage
from tests.gateway.stand import stand
from tests.harness import EVERY_GAME, Keys, play_out, table

ROOT = Path(__file__).resolve().parents[2]
USERS = ROOT / "deploy" / "redis" / "users.acl"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


class Fenced(RedisServer):
    """A Redis whose users are those of a file, as it stands."""

    def __init__(self, directory: Path, users: Path) -> None:
        super().__init__(directory)
        self._users = users

    def _argv(self) -> list[str]:
        return [*super()._argv(), "--aclfile", str(self._users)]

    def _answers(self) -> bool:
        # It lets nobody in who says nothing.
        with contextlib.suppress(OSError), socket.create_connection((LOCALHOST, self.port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(7) == b"-NOAUTH"
        return False


@pytest.fixture
async def fenced(tmp_path: Path) -> AsyncIterator[RedisServer]:
    """A Redis with those users; each one's password is its name."""
    text = re.sub(r"#([A-Z_]+)_SHA256", lambda user: "#" + hashlib.sha256(user[1].lower().encode()).hexdigest(), USERS.read_text())
    (file := tmp_path / "users.acl").write_text(text)
    with Fenced(tmp_path / "redis", file) as server:
        yield server


def url_of(server: RedisServer, user: str) -> str:
    return f"redis://{user}:{user}@127.0.0.1:{server.port}/0"


@pytest.mark.parametrize("game", EVERY_GAME, ids=lambda game: game.id)
async def test_a_match_is_played_watched_and_recorded_by_the_user_of_its_game(fenced: RedisServer, keys: Keys, game: Game) -> None:
    async with table(game, keys, url_of(fenced, game.id), replicas=2) as there:
        match_id = await there.create()
        watching = asyncio.create_task(_last(there.player(there.names[0], replica=1).watch(match_id)))
        await play_out(match_id, *there.everyone())
        assert (await watching).event.event.HasField("match_finished")
        assert (await there.player(there.names[0]).record(match_id)).seed
    # And replayed, as the process of its game does it before a rollout.
    command = [sys.executable, "-m", f"services.{game.id}", "shadow", "--live"]
    environment = {**os.environ, "REDIS_URL": url_of(fenced, game.id)}
    done = await asyncio.to_thread(
        subprocess.run, command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "1 finished and 0 live matches come out the same; 0 differ" in done.stdout


async def _last(watch: Any) -> Any:
    async for seen in watch:
        last = seen
    return last


async def test_the_gateway_does_its_work_by_its_user(fenced: RedisServer, keys: Keys) -> None:
    async with stand(keys, url_of(fenced, "gateway")) as gateway:
        ann = await gateway.sign_in("Ann")
        gateway.be(ann)
        match = {"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}]}
        made = await gateway.http.post("/v1/matches", json=match, headers={"Idempotency-Key": "k" * 32})
        assert made.status_code == 201
        assert (await gateway.http.get("/v1/players/me/matches")).json()["matches"]
        assert (await gateway.http.post("/v1/players/me:signOut")).status_code == 200
        assert (await gateway.http.get("/v1/players/me")).json()["reason"] == "TOKEN_REVOKED"


@pytest.mark.parametrize("user", ["gateway", *GAMES])
async def test_nobody_touches_what_belongs_to_another(fenced: RedisServer, user: str) -> None:
    client: Any
    async with Redis.from_url(url_of(fenced, user)) as client:
        for other in {"gateway", *GAMES} - {user}:
            for command in (
                ("HGETALL", f"{other}:{{{other}-abcdefgh}}:match"),
                ("XRANGE", f"{other}:{{{other}-abcdefgh}}:events", "-", "+"),
                ("SET", f"{other}:key", "1"),
                ("EVAL", "return redis.call('GET', KEYS[1])", "1", f"{other}:key"),
                ("SPUBLISH", f"{other}:{{{other}-abcdefgh}}:bell", "x"),
            ):
                with pytest.raises(NoPermissionError):
                    await client.execute_command(*command)
            with pytest.raises(ResponseError, match="ACL failure in script"):
                await client.eval(f"return redis.call('GET', '{other}:key')", 0)
            with pytest.raises(NoPermissionError):
                await _listen(client, f"{other}:{{{other}-abcdefgh}}:bell")
        for forbidden in ("FLUSHALL", "KEYS *", "CONFIG GET *", "ACL LIST", "SHUTDOWN"):
            with pytest.raises(NoPermissionError):
                await client.execute_command(*forbidden.split())


async def _listen(client: Any, channel: str) -> None:
    async with client.pubsub() as pubsub:
        await pubsub.ssubscribe(channel)
        await pubsub.get_message(timeout=5)


async def test_a_game_reads_who_has_signed_out_and_changes_nothing_about_it(fenced: RedisServer) -> None:
    async with Redis.from_url(url_of(fenced, "night_clan")) as client:
        assert await client.get("gateway:revoked:p1") is None
        with pytest.raises(NoPermissionError):
            await client.set("gateway:revoked:p1", "0")


async def test_a_backup_takes_the_user_of_the_operator_and_another_is_told_so(
    fenced: RedisServer, keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    matches = {}
    for game in EVERY_GAME:
        async with table(game, keys, url_of(fenced, game.id)) as there:
            matches[game.id] = await there.create()
    async with stand(keys, url_of(fenced, "gateway")) as gateway:
        await gateway.sign_in("Ann")
    file = str(tmp_path / "backup")
    monkeypatch.setenv("REDIS_URL", url_of(fenced, "gateway"))
    assert await asyncio.to_thread(admin.main, ["backup", file]) == 1
    assert "give --redis-url, or REDIS_URL, with the Redis user `operator`" in capsys.readouterr().err
    operator = ["--redis-url", url_of(fenced, "operator")]
    assert await asyncio.to_thread(admin.main, ["backup", file, *operator]) == 0
    assert await asyncio.to_thread(admin.main, ["restore", file, "--replace", *operator]) == 0
    assert "Restored: 4 matches and 1 players" in capsys.readouterr().out
    for game in EVERY_GAME:
        async with table(game, keys, url_of(fenced, game.id)) as there:
            assert (await there.player(there.names[0]).get(matches[game.id])).version == 1
    client: Any
    async with Redis.from_url(url_of(fenced, "operator")) as client:
        for forbidden in ("FLUSHALL", "KEYS *", "CONFIG GET *", "ACL LIST", "SET other:key 1"):
            with pytest.raises(NoPermissionError):
                await client.execute_command(*forbidden.split())


async def test_with_the_user_of_another_nothing_is_ready_and_the_log_says_why(
    fenced: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    for owner, other in (("gateway", "night_clan"), ("night_clan", "gateway")):
        storage = Storage(url_of(fenced, other))
        try:
            assert await storage.alive(other)
            assert not await storage.alive(owner)
            assert "storage_lost" in (said := capsys.readouterr().out)
            assert "No permissions" in said
            with pytest.raises(Unavailable):
                await storage.get(f"{owner}:anything")
        finally:
            await storage.close()


def test_there_is_a_user_for_the_gateway_for_every_game_and_for_operators_and_no_other() -> None:
    assert re.findall(r"^user (\S+)", USERS.read_text(), re.MULTILINE) == ["default", "gateway", *GAMES, "operator"]
