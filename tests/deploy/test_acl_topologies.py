"""The same users on a Redis Cluster and behind Sentinel, where servers and Sentinels sign in to each other as the README says."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from services.kit.game import Game
from tests.gateway.stand import stand
from tests.harness import EVERY_GAME, Keys, play_out, table
from tests.topologies import Cluster, Watched, running_one

pytestmark = pytest.mark.xdist_group("topologies")

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


def users(*more: str) -> list[str]:
    """The users of the file and, of those that the README adds, `more`; each one's password is its name."""
    own = re.findall(r"^user (?!default).*$", (DEPLOY / "redis" / "users.acl").read_text(), re.MULTILINE)
    readme = (DEPLOY / "README.md").read_text()
    added = [re.findall(rf"^user {name} .*$", readme, re.MULTILINE)[0] for name in more]
    lines = [re.sub(r"#([A-Z_]+)_SHA256", lambda user: "#" + _sha256(user[1].lower()), line) for line in [*own, *added]]
    # Whoever sets this up, and looks.
    return [*lines, "user default on nopass ~* &* +@all"]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def fence(directory: Path, *more: str) -> dict[str, str]:
    """Flags of a server that has these users, and signs in to others as `replica`."""
    file = directory / "users.acl"
    file.write_text("\n".join([*users(*more), ""]))
    return {"aclfile": str(file), "masteruser": "replica", "masterauth": "replica"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with those users."""
    directory = tmp_path_factory.mktemp("cluster")
    it = Cluster(directory, fence(directory, "replica"))
    with running_one(it):
        yield it


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A master and its replica with those users, watched by a Sentinel that signs in as `sentinel`."""
    directory = tmp_path_factory.mktemp("watched")
    own = next(line for line in users("gloaming") if line.startswith("user gloaming "))
    sentinel = ["sentinel auth-user main sentinel", "sentinel auth-pass main sentinel", own, ""]
    it = Watched(directory, fence(directory, "replica", "sentinel"), "\n".join(sentinel))
    with running_one(it):
        yield it


def url_of(servers: Cluster | Watched, user: str) -> str:
    """REDIS_URL for a process."""
    sign_in = f"{user}:{user}"
    if isinstance(servers, Cluster):
        return servers.url_of(sign_in)
    return f"{servers.url_of(sign_in)}?sentinel_username=gloaming&sentinel_password=gloaming"


@pytest.mark.parametrize("game", EVERY_GAME, ids=lambda game: game.id)
@pytest.mark.parametrize("servers", ["cluster", "watched"])
async def test_a_match_is_played_watched_and_on_a_replica_by_the_user_of_its_game(
    request: pytest.FixtureRequest, keys: Keys, game: Game, servers: str
) -> None:
    url = url_of(request.getfixturevalue(servers), game.id)
    async with table(game, keys, url, replicas=2, wait_replicas=1) as there:
        match_id = await there.create()
        watching = asyncio.create_task(_last(there.player(there.names[0], replica=1).watch(match_id)))
        await play_out(match_id, *there.everyone())
        assert (await watching).event.event.HasField("match_finished")


async def _last(watch: Any) -> Any:
    async for seen in watch:
        last = seen
    return last


@pytest.mark.parametrize("servers", ["cluster", "watched"])
async def test_the_gateway_does_its_work_by_its_user(request: pytest.FixtureRequest, keys: Keys, servers: str) -> None:
    url = url_of(request.getfixturevalue(servers), "gateway")
    async with stand(keys, url, wait_replicas=1) as gateway:
        gateway.be(await gateway.sign_in("Ann"))
        assert (await gateway.http.get("/readyz")).status_code == 200
        match = {"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}]}
        made = await gateway.http.post("/v1/matches", json=match, headers={"Idempotency-Key": "k" * 32})
        assert made.status_code == 201, made.text
        assert (await gateway.http.get("/v1/players/me/matches")).json()["matches"]
        assert (await gateway.http.post("/v1/players/me:signOut")).status_code == 200
        assert (await gateway.http.get("/v1/players/me")).json()["reason"] == "TOKEN_REVOKED"


async def test_a_failover_goes_on_among_those_users(cluster: Cluster, watched: Watched) -> None:
    await asyncio.to_thread(cluster.fail_over, "somewhere")
    await asyncio.to_thread(watched.fail_over)


@pytest.mark.parametrize("user", ["gateway", "night_clan"])
async def test_nobody_changes_the_cluster_or_waits_on_anothers_channel(cluster: Cluster, user: str) -> None:
    client: Any
    async with Redis.from_url(cluster.servers[0].url.replace("//", f"//{user}:{user}@")) as client:
        for forbidden in ("CLUSTER FAILOVER", "CLUSTER FORGET x", "CLUSTER RESET", "FAILOVER", "REPLICAOF NO ONE", "CONFIG GET *"):
            with pytest.raises(NoPermissionError):
                await client.execute_command(*forbidden.split())
        async with client.pubsub() as pubsub:
            await pubsub.ssubscribe("night_knight:{night_knight-abcdefgh}:bell")
            with pytest.raises(NoPermissionError):
                await pubsub.get_message(timeout=5)
