"""Everything by TLS: gateways and services show each other certificates, and Redis too; players from outside come by gRPC."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from deploy.local import Local
from gateway.registry import GAMES
from gloaming.client import BOT, ME, Client
from gloaming.night_clan.v1 import night_clan_pb2
from tests import unlimited
from tests.tls import Authority, TlsRedis, tls_redis


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Everybody's authority."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory, ca: Authority) -> Iterator[TlsRedis]:
    """A Redis that speaks TLS alone."""
    with tls_redis(tmp_path_factory.mktemp("redis"), ca) as redis:
        yield redis


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory, ca: Authority, secure: TlsRedis) -> Iterator[Local]:
    """Two replicas of each game's service and a gateway, all with mutual TLS."""
    own = ca.issue("own")
    env = {
        "REDIS_URL": secure.url,
        "GLOAMING_TLS_CERT_FILE": str(own.certificate),
        "GLOAMING_TLS_KEY_FILE": str(own.key),
        "GLOAMING_TLS_CA_FILE": str(ca.file),
        "GLOAMING_BOT_DELAY_MS": "0",
        **unlimited.ENVIRONMENT,
    }
    with Local(tmp_path_factory.mktemp("secured"), replicas=2, env=env) as local:
        yield local


@pytest.mark.slow
async def test_matches_are_played_by_tls_from_end_to_end(everything: Local) -> None:
    async with httpx.AsyncClient(base_url=everything.url) as http:
        assert (await http.get("/readyz")).json()["services"] == dict.fromkeys(GAMES, "SERVING")
    async with Client(everything.url) as client, asyncio.timeout(60):
        await client.sign_in("Ann")
        table = client.game(night_clan_pb2)
        match = await table.create_match([ME, BOT])
        async for _ in table.watch(match.id):
            if moves := (await table.moves(match.id)).moves:
                await table.play(match.id, moves[0])
        assert (await table.record(match.id)).outcome.ranks
    # Nobody else gets to a service, whatever token they have.
    async with grpc.aio.insecure_channel(everything.services["night_clan"][0]) as channel:
        call: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
        with pytest.raises(grpc.aio.AioRpcError) as fault:
            await call(b"", timeout=5)
        assert fault.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.slow
async def test_a_live_socket_goes_by_the_relay_over_tls(everything: Local) -> None:
    async with httpx.AsyncClient(base_url=everything.url) as http:
        token = (await http.post("/v1/players", json={"name": "Ann"})).json()["accessToken"]
        made = await http.post(
            "/v1/matches",
            json={"game": "night_clan", "seats": [{"player": "me"}, {"bot": "STANDARD"}]},
            headers={"Authorization": f"Bearer {token}"},
        )
    match_id = made.json()["id"]
    url = f"{everything.url.replace('http', 'ws', 1)}/v1/live"
    async with connect(
        url, additional_headers={"Authorization": f"Bearer {token}"}, subprotocols=[Subprotocol("gloaming.v1.json")]
    ) as socket:
        await socket.send(json.dumps({"requestId": "1", "watch": {"matchId": match_id}}))
        async with asyncio.timeout(10):
            while not any("snapshot" in message for message in json.loads(await socket.recv())["messages"]):
                pass


def test_no_log_holds_a_secret_or_a_traceback(everything: Local) -> None:
    for child in everything.children.values():
        text = child.log.read_text()
        assert "PRIVATE KEY" not in text
        assert "Traceback" not in text
