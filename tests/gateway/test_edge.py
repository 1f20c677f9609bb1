"""What holds for every request: bodies, paths, problems, request ids, logs, metrics."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from deploy.processes import free_port
from gateway import exchange, players
from tests.gateway.stand import MATCH_ID, MOVE, Stand, match, stand
from tests.harness import Keys

JSON = {"Content-Type": "application/json"}


async def chunks(count: int, size: int = 1024) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b" " * size


@pytest.mark.parametrize(
    "path",
    [
        "/v1/players",
        "/v1/players:refresh",
        "/v1/players/me:signOut",
        "/v1/matches",
        f"/v1/matches/{MATCH_ID}/moves",
        f"/v1/matches/{MATCH_ID}:resign",
    ],
)
async def test_a_body_that_is_too_large_is_413_however_it_is_sent(gateway: Stand, path: str) -> None:
    await gateway.sign_in()
    for content in (b" " * 65_537, chunks(65)):
        response = await gateway.http.post(path, content=content, headers=JSON)
        assert (response.status_code, response.json()["reason"]) == (413, "BODY_TOO_LARGE")


async def test_a_body_that_only_says_it_is_large_is_not_waited_for(served: Stand) -> None:
    reader, writer = await asyncio.open_connection(served.http.base_url.host, served.http.base_url.port)
    writer.write(b"POST /v1/players HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 999999999\r\n\r\n")
    assert b" 413 " in await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    await writer.wait_closed()


async def test_a_body_of_just_the_limit_is_read(gateway: Stand) -> None:
    body = b'{"name":"Ann"}'
    response = await gateway.http.post("/v1/players", content=body + b" " * (65_536 - len(body)), headers=JSON)
    assert response.status_code == 201


async def test_a_client_that_goes_away_in_the_middle_of_its_body_leaves_no_trace(served: Stand) -> None:
    with capture_logs() as logs:
        _, writer = await asyncio.open_connection(served.http.base_url.host, served.http.base_url.port)
        writer.write(b"POST /v1/players HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.close()
        await writer.wait_closed()
        await asyncio.sleep(0.1)
    assert [entry["log_level"] for entry in logs] == ["info"]
    assert logs[0]["status"] == 499


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"']
)
async def test_json_is_taken_however_it_is_named(gateway: Stand, kind: str) -> None:
    assert (await gateway.http.post("/v1/players", content='{"name":"Ann"}', headers={"Content-Type": kind})).status_code == 201


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "application/protobuf", "", "é"]
)
async def test_other_kinds_of_body_are_415(gateway: Stand, kind: str) -> None:
    response = await gateway.http.post("/v1/players", content='{"name":"Ann"}', headers={b"Content-Type": kind.encode()})
    assert (response.status_code, response.json()["reason"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize(
    "path", ["/nope", "/v1", "/v1/players/", "/v1/matches/x/y", "/v1/players:nope", "/v1/matches/x:nope", "/v1/%2e%2e", "/docs/x"]
)
async def test_a_path_that_is_not_there_is_a_404_problem(gateway: Stand, path: str) -> None:
    response = await gateway.http.get(path)
    assert (response.status_code, response.json()["reason"]) == (404, "PATH_NOT_FOUND")
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v1/players/me", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/v1/players", "POST"),
        ("DELETE", f"/v1/matches/{MATCH_ID}", "GET, HEAD"),
        ("PUT", f"/v1/matches/{MATCH_ID}/moves", "GET, HEAD, POST"),
        ("GET", f"/v1/matches/{MATCH_ID}:resign", "POST"),
        ("TRACE", "/healthz", "GET, HEAD"),
    ],
)
async def test_a_method_that_is_not_there_is_405_and_says_which_are(gateway: Stand, method: str, path: str, allowed: str) -> None:
    response = await gateway.http.request(method, path)
    assert (response.status_code, response.json()["reason"], response.headers["allow"]) == (405, "METHOD_NOT_ALLOWED", allowed)


async def test_a_head_is_a_get_without_its_body(served: Stand) -> None:
    await served.sign_in()
    served.service.matches[MATCH_ID] = match()
    for path in ("/healthz", "/v1/games", f"/v1/matches/{MATCH_ID}"):
        head, get = await served.http.head(path), await served.http.get(path)
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", get.headers["content-length"])
    stream = await served.http.head(f"/v1/matches/{MATCH_ID}/events", headers={"Accept": "text/event-stream"}, timeout=5)
    assert stream.headers["content-type"] != "text/event-stream"
    assert (await served.http.head("/v1/players")).status_code == 405


async def test_a_body_that_trickles_is_408(served: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_BODY_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection(served.http.base_url.host, served.http.base_url.port)
    writer.write(b"POST /v1/players HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    assert b" 408 " in await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(("sent", "kept"), [("abc-1.2_X", True), ("x" * 65, False), ("a b", False), ("a\x0bb", False), ("", False)])
async def test_a_sane_request_id_is_kept(gateway: Stand, sent: str, kept: bool) -> None:
    got = (await gateway.http.get("/healthz", headers={"X-Request-Id": sent})).headers["x-request-id"]
    assert (got == sent) is kept
    assert got


async def test_a_fault_of_ours_is_500_and_logged_once_without_a_word_to_the_client(served: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> str:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(players, "clean_name", broken)
    with capture_logs() as logs:
        response = await served.http.post("/v1/players", json={"name": "Ann"})
    assert (response.status_code, response.json()["reason"]) == (500, "INTERNAL")
    assert "secret" not in response.text
    assert response.headers["x-request-id"]
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["unforeseen"]


async def test_metrics_tell_routes_and_never_ids(gateway: Stand) -> None:
    session = await gateway.sign_in()
    await gateway.http.get(f"/v1/matches/{MATCH_ID}")
    await gateway.http.get("/v1/players/" + session["player"]["id"])
    await gateway.http.get("/nowhere/at/all")
    text = (await gateway.http.get("/metrics")).text
    assert 'gloaming_http_requests_total{method="GET",route="/v1/matches/{match_id}",status="404"}' in text
    assert 'route="none",status="404"' in text
    assert MATCH_ID not in text
    assert session["player"]["id"] not in text
    assert "nowhere" not in text


async def test_methods_that_nobody_knows_make_no_new_series(gateway: Stand) -> None:
    for n in range(3):
        await gateway.http.request(f"X{n}", "/healthz")
    assert "X1" not in (await gateway.http.get("/metrics")).text


async def test_the_public_keys_are_served(gateway: Stand) -> None:
    (key,) = (await gateway.http.get("/.well-known/jwks.json")).json()["keys"]
    assert (key["kty"], key["crv"], key["alg"]) == ("OKP", "Ed25519", "EdDSA")
    assert "d" not in key


async def test_the_documentation_page_brings_all_that_it_needs(gateway: Stand) -> None:
    page = await gateway.http.get("/docs")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe-inline" not in page.headers["content-security-policy"].split("style-src")[0]
    assert "http" not in page.text.replace("http-equiv", "")
    for asset in ("swagger-ui.css", "swagger-ui-bundle.js", "start.js"):
        assert f"/docs/{asset}" in page.text
        assert (await gateway.http.get(f"/docs/{asset}")).status_code == 200


async def test_no_page_of_another_origin_may_call_unless_told(gateway: Stand, keys: Keys, redis_url: str) -> None:
    origin = {"Origin": "https://play.example"}
    assert "access-control-allow-origin" not in (await gateway.http.get("/v1/games", headers=origin)).headers
    async with stand(keys, redis_url, cors_origins="https://play.example,https://other.example") as other:
        ask = {
            **origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,idempotency-key,if-match,content-type",
        }
        preflight = await other.http.options("/v1/matches", headers=ask)
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, "https://play.example")
        for _ in range(3):
            response = await other.http.get("/v1/games", headers=origin)
            assert response.headers["access-control-allow-origin"] == "https://play.example"
            assert "ETag" in response.headers["access-control-expose-headers"]
            assert response.headers["vary"] == "Origin"
        assert "access-control-allow-origin" not in (await other.http.get("/v1/games", headers={"Origin": "https://evil.example"})).headers


@pytest.fixture
def process(keys: Keys, redis_url: str, gateway: Stand, tmp_path: Path) -> Iterator[tuple[str, Path, subprocess.Popen[bytes]]]:
    """`python -m gateway`, as an operator starts it."""
    port, log = free_port(), tmp_path / "log"
    env = os.environ | {
        "REDIS_URL": redis_url,
        "GLOAMING_JWKS_FILE": str(keys.jwks),
        "GLOAMING_SIGNING_KEY_FILE": str(keys.pem),
        "GLOAMING_SERVICES": ",".join(f"{game}={target}" for game, target in gateway.settings.services.items()),
        "GLOAMING_LISTEN": f"127.0.0.1:{port}",
        "GLOAMING_LOG_LEVEL": "DEBUG",
        "GLOAMING_DRAIN_SECONDS": "2",
    }
    with log.open("wb") as output, subprocess.Popen([sys.executable, "-m", "gateway"], stdout=output, stderr=output, env=env) as running:
        yield f"http://127.0.0.1:{port}", log, running
        running.kill()


@pytest.mark.scenario(10)
async def test_no_token_is_in_any_log_line_or_problem(process: tuple[str, Path, subprocess.Popen[bytes]], redis: Redis) -> None:
    url, log, running = process
    secrets: set[str] = set()
    problems = ""
    async with httpx.AsyncClient(base_url=url) as http:
        for _ in range(100):
            try:
                await http.get("/healthz")
                break
            except httpx.TransportError:
                await asyncio.sleep(0.1)
        key = str(uuid.uuid4())
        session = (await http.post("/v1/players", json={"name": "Ann"}, headers={"Idempotency-Key": key})).json()
        access, refresh = session["accessToken"], session["refreshToken"]
        secrets |= {key, access, refresh, access.rpartition(".")[2], refresh.partition(".")[2]}
        tries: list[tuple[str, str, dict[str, Any]]] = [
            ("GET", "/v1/players/me", {}),
            ("GET", f"/v1/players/me?access_token={access}", {}),
            ("GET", f"/v1/players/{refresh}", {}),
            ("GET", f"/v1/matches/{access}", {}),
            ("GET", f"/{access}", {}),
            ("POST", "/v1/players:refresh", {"json": {"refreshToken": refresh + "x"}}),
            ("POST", "/v1/players:refresh", {"json": {"refreshToken": 1, access: refresh}}),
            ("POST", "/v1/players:refresh", {"content": f'{{"refreshToken":"{refresh}'}),
            ("POST", "/v1/players", {"json": {"name": access}}),
            ("POST", "/v1/matches", {"json": {"game": access}}),
            ("POST", f"/v1/matches/{MATCH_ID}/moves", {"json": {"move": MOVE}, "headers": {"If-Match": access}}),
            ("GET", f"/v1/matches/{MATCH_ID}/events?after={access}", {}),
            ("GET", f"/v1/players/me/matches?pageToken={refresh}", {}),
            ("GET", "/v1/players/me", {"headers": {"X-Request-Id": access}}),
        ]
        for authorization in (f"Bearer {access}", f"Bearer {access}x", f"Basic {access}", f"Bearer {refresh}"):
            for method, path, more in tries:
                headers = {"Authorization": authorization, "Content-Type": "application/json", **more.get("headers", {})}
                response = await http.request(method, path, **{**more, "headers": headers})
                assert response.status_code < 500
                if response.status_code >= 400:
                    problems += response.text + str(response.headers)
        assert (await http.post("/v1/players/me:signOut", headers={"Authorization": f"Bearer {access}"})).status_code == 200
    running.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(running.wait, 10) in (0, -signal.SIGTERM)
    written = log.read_text()
    assert all(json.loads(line) for line in written.splitlines())
    assert "Traceback" not in written
    assert len(written.splitlines()) > 50
    for secret in secrets:
        assert secret not in written
        assert secret not in problems
    assert "access_token" not in written
