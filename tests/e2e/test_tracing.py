"""Traces, as a collector gets them from a gateway and services that run as they do for operators."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1 import trace_pb2

from deploy.local import Local
from deploy.processes import free_port
from gateway.registry import GAMES
from gateway.tokens import Signer
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.night_clan.v1.night_clan_pb2_grpc import NightClanServiceStub
from gloaming.night_knight.v1 import night_knight_pb2
from services.kit.tracing import VOUCHER
from tests import unlimited
from tests.harness import Keys
from tests.live import live

SERVICE = "gloaming.night_clan.v1.NightClanService"
KNIGHTS = "gloaming.night_knight.v1.NightKnightService"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@dataclass(frozen=True)
class Seen:
    """A span, and the process that it came from."""

    process: str
    span: trace_pb2.Span

    @property
    def says(self) -> Mapping[str, Any]:
        return {each.key: each.value.string_value or each.value.int_value for each in self.span.attributes}


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """A collector of OTLP over gRPC, which keeps what it gets."""

    def __init__(self) -> None:
        self.spans: list[Seen] = []
        self.received: list[str] = []
        self._more = asyncio.Condition()

    async def Export(self, request: Any, context: object) -> Any:
        """Takes spans."""
        async with self._more:
            self.received.append(json_format.MessageToJson(request))
            for resource in request.resource_spans:
                named = {each.key: each.value.string_value for each in resource.resource.attributes}
                assert named["service.namespace"] == "gloaming"
                self.spans += [Seen(named["service.name"], span) for scope in resource.scope_spans for span in scope.spans]
            self._more.notify_all()
        return trace_service_pb2.ExportTraceServiceResponse()

    def traced(self, trace_id: str) -> list[Seen]:
        """What has come of a trace."""
        return [seen for seen in self.spans if seen.span.trace_id.hex() == trace_id]

    async def trace_of(self, request_id: str, *, processes: int = 2) -> list[Seen]:
        """The trace of a request, once it has come from so many processes, its beginning among them."""
        async with asyncio.timeout(20), self._more:
            while True:
                for seen in self.spans:
                    if seen.says.get("gloaming.request_id") == request_id:
                        trace = self.traced(seen.span.trace_id.hex())
                        if len({each.process for each in trace}) == processes and any(not each.span.parent_span_id for each in trace):
                            return trace
                await self._more.wait()


@asynccontextmanager
async def collecting() -> AsyncIterator[tuple[Collector, Mapping[str, str]]]:
    """A collector, and what a process's environment says of it."""
    collector, server = Collector(), grpc.aio.server()
    add: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
    add(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield collector, {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_BSP_SCHEDULE_DELAY": "100"}
    finally:
        await server.stop(0)


@asynccontextmanager
async def running(data: Path, env: Mapping[str, str]) -> AsyncIterator[Local]:
    """Everything; it is stopped in the end, and has sent what it had to send."""
    local = Local(data, env={"REDIS_URL": "", "GLOAMING_BOT_DELAY_MS": "0", **unlimited.ENVIRONMENT, **env})
    await asyncio.to_thread(local.start)
    try:
        yield local
    finally:
        await asyncio.to_thread(local.stop)


async def match_with_a_move(http: httpx.AsyncClient, game: str = "night_clan") -> tuple[str, Any]:
    """A new match in which the caller has a move, and that move."""
    asked = {"game": game, "seats": [{"player": "me"}, {"bot": "STANDARD"}], "settings": {"moveSeconds": 0}}
    match_id: str = (await http.post("/v1/matches", json=asked)).json()["id"]
    return match_id, await next_move(http, match_id)


async def next_move(http: httpx.AsyncClient, match_id: str) -> Any:
    """A move of the caller's, once there is one; None when the match is over."""
    async with asyncio.timeout(20):
        while True:
            if moves := (await http.get(f"/v1/matches/{match_id}/moves")).json()["moves"]:
                return moves[0]
            if (await http.get(f"/v1/matches/{match_id}")).json()["status"] == "FINISHED":
                return None
            await asyncio.sleep(0.01)


async def test_a_move_is_one_trace_from_the_gateway_through_the_service_to_redis_and_tells_no_secret(tmp_path: Path) -> None:
    async with collecting() as (collector, env):
        async with running(tmp_path, env) as local, httpx.AsyncClient(base_url=local.url, timeout=20) as http:
            session = (await http.post("/v1/players", json={"name": "Hippolyta"})).json()
            http.headers["Authorization"] = f"Bearer {session['accessToken']}"
            match_id, move = await match_with_a_move(http)

            # A client's own trace is none of ours.
            theirs = secrets.token_hex(16)
            response = await http.post(f"/v1/matches/{match_id}/moves", json={"move": move}, headers={"traceparent": traceparent(theirs)})
            assert response.status_code == 200, response.text
            request_id = response.headers["x-request-id"]
            trace = await collector.trace_of(request_id)
            by_id = {seen.span.span_id: seen for seen in trace}
            (root,) = [seen for seen in trace if not seen.span.parent_span_id]
            assert {seen.span.parent_span_id for seen in trace if seen is not root} <= set(by_id)
            assert collector.traced(theirs) == []

            def chain(seen: Seen) -> list[tuple[str, str]]:
                """A span and those around it, the outermost last."""
                above = by_id.get(seen.span.parent_span_id)
                return [(seen.process, seen.span.name), *(chain(above) if above else ())]

            (commit,) = [seen for seen in trace if seen.span.name == "commit"]
            assert chain(commit) == [
                ("night_clan", "commit"),
                ("night_clan", f"{SERVICE}/SubmitMove"),
                ("gateway", f"{SERVICE}/SubmitMove"),
                ("gateway", "POST /v1/matches/{match_id}/moves"),
            ]
            assert root.says == {
                "http.request.method": "POST",
                "http.route": "/v1/matches/{match_id}/moves",
                "http.response.status_code": 200,
                "gloaming.match_id": match_id,
                "gloaming.request_id": request_id,
            }
            for seen in trace:
                assert seen.says["gloaming.request_id"] == request_id
            assert commit.says["gloaming.match_id"] == match_id

            # A refusal is an answer and no fault; its words are not told.
            refused = await http.post(f"/v1/matches/{match_id}/moves", json={"move": move})
            assert refused.status_code in (409, 422)
            for seen in await collector.trace_of(refused.headers["x-request-id"]):
                assert seen.span.status.code == trace_pb2.Status.STATUS_CODE_UNSET
                assert not seen.span.events

            room = (await http.post("/v1/rooms", json={"game": "night_clan"})).json()["code"]
            assert (await http.get(f"/v1/rooms/{room}")).is_success
            hand = (await http.get(f"/v1/matches/{match_id}")).json()["view"]["hand"]
            renewed = (await http.post("/v1/players:refresh", json={"refreshToken": session["refreshToken"]})).json()
            http.headers["Authorization"] = f"Bearer {renewed['accessToken']}"
            while move := await next_move(http, match_id):
                assert (await http.post(f"/v1/matches/{match_id}/moves", json={"move": move})).is_success
            seed = (await http.get(f"/v1/matches/{match_id}/record")).json()["seed"]
            assert len(seed) == 64

            # Of reactions, and of what else goes over a live socket, there is none.
            seats = [{"player": "me"}, *({"bot": "STANDARD"} for _ in range(1, GAMES["night_knight"].min_seats))]
            knights = (await http.post("/v1/matches", json={"game": "night_knight", "seats": seats})).json()["id"]
            socket_url = local.url.replace("http", "ws") + "/v1/live"
            async with live(socket_url, renewed["accessToken"]) as socket:
                await socket.watch(knights)
                begun = False
                while not begun:
                    event = night_knight_pb2.Event.FromString((await socket.next("event")).event)
                    begun = event.HasField("cards_revealed")
                react = night_knight_pb2.React(round=1, action=night_knight_pb2.React.TOUCH)
                answer = await socket.move(knights, night_knight_pb2.Move(react=react))
                assert answer.WhichOneof("kind") in ("result", "problem")
        told = "\n".join(collector.received)
        assert {span.process for span in collector.spans} >= {"gateway", "night_clan"}
        secret = [
            *(session[each] for each in ("accessToken", "refreshToken")),
            *(renewed[each] for each in ("accessToken", "refreshToken")),
        ]
        for word in (*secret, seed, room, "Hippolyta", session["player"]["id"], *hand):
            assert word not in told
        assert {seen.span.name for seen in collector.spans if seen.process == "night_knight"} <= {
            f"{KNIGHTS}/CreateMatch",
            f"{KNIGHTS}/GetMatch",
            *("GET", "commit", "load", "schedule"),
        }


async def test_nobody_but_a_gateway_has_its_calls_recorded_by_asking(tmp_path: Path) -> None:
    async with collecting() as (collector, env):
        # Nothing is sampled but what somebody trusted has begun to sample.
        async with running(tmp_path, {**env, "OTEL_TRACES_SAMPLER": "parentbased_always_off"}) as local:
            signer = Signer(local.signing_key)

            def token(scope: str, seconds: int = 60) -> str:
                return f"Bearer {signer.access('ann', 'Ann', 0, scope, seconds)[0]}"

            gateway = token("host relay")
            vouchers = ["", "Bearer nonsense", token("play"), token("host"), "Bearer " + gateway[-80:], gateway]
            async with httpx.AsyncClient(base_url=local.url, headers={"traceparent": traceparent()}) as http:
                assert (await http.post("/v1/players", json={"name": "Ann"})).status_code == 201
            async with grpc.aio.insecure_channel(local.services["night_clan"][0]) as channel:
                stub: Any = NightClanServiceStub(channel)
                asked = [traceparent() for _ in vouchers]
                for parent, voucher in zip(asked, vouchers, strict=True):
                    metadata = [("authorization", token("play")), ("traceparent", parent), (VOUCHER, voucher)]
                    with pytest.raises(grpc.aio.AioRpcError) as fault:
                        await stub.GetMatch(night_clan_pb2.GetMatchRequest(match_id="night_clan-00000000"), metadata=metadata)
                    assert fault.value.code() is grpc.StatusCode.NOT_FOUND
        # The last one alone was a gateway's.
        assert {seen.span.trace_id.hex() for seen in collector.spans} == {asked[-1].split("-")[1]}
        assert {seen.process for seen in collector.spans} == {"night_clan"}


def traceparent(trace_id: str = "") -> str:
    """What somebody sends who wants to be recorded."""
    return f"00-{trace_id or secrets.token_hex(16)}-{secrets.token_hex(8)}-01"


@pytest.mark.parametrize("module", ["gateway", "services.night_clan"])
@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"}, "OTEL_EXPORTER_OTLP_ENDPOINT: give the address of a collector"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
            "OTEL_EXPORTER_OTLP_PROTOCOL: traces are sent over grpc alone",
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "WITHOUT": "opentelemetry.sdk.trace"},
            "install the extra, gloaming[tracing]",
        ),
    ],
)
def test_tracing_that_cannot_be_is_one_sentence_at_the_start(module: str, env: Mapping[str, str], said: str, keys: Keys) -> None:
    targets = ",".join(f"{game}=127.0.0.1:1" for game in GAMES)
    settings = {"GLOAMING_JWKS_FILE": str(keys.jwks), "GLOAMING_SIGNING_KEY_FILE": str(keys.pem), "GLOAMING_SERVICES": targets}
    start = (
        "import os, runpy, sys; sys.modules[os.environ.get('WITHOUT', '')] = None; runpy.run_module(sys.argv.pop(), run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", start, module],
        env={**os.environ, **settings, **env},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.endswith(".\n")
    assert done.stderr.count("\n") == 1


async def test_a_collector_that_is_away_holds_up_neither_requests_nor_the_end(tmp_path: Path) -> None:
    nowhere = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}", "OTEL_BSP_SCHEDULE_DELAY": "50"}
    async with running(tmp_path, nowhere) as local, httpx.AsyncClient(base_url=local.url, timeout=20) as http:
        for _ in range(20):
            assert (await http.post("/v1/players", json={"name": "Ann"})).status_code == 201
    # Told to end, a process is killed that has not ended after 5 s.
    assert {name: child.exit_status for name, child in local.children.items() if "SIGKILL" in child.exit_status} == {}
