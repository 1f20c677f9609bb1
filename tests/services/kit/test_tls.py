"""TLS of a service: mutual with gateways, one-sided for players from outside, none for probes."""

from __future__ import annotations

import asyncio
import importlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from redis.asyncio import Redis
from structlog.testing import capture_logs

from deploy.processes import free_port
from services.kit import tls
from services.kit.game import Game
from services.kit.server import Replica
from tests.harness import EVERY_GAME, Keys, Refused
from tests.tls import LOCAL, Authority, Pair, mutual, replica

GAME: Game = next(game for game in EVERY_GAME if game.id == "night_clan")


@pytest.fixture
def ca(tmp_path: Path) -> Authority:
    """The operator's authority."""
    return Authority(tmp_path)


def client(ca: Authority, pair: Pair | None = None) -> grpc.ChannelCredentials:
    """A client's credentials."""
    if pair is None:
        return grpc.ssl_channel_credentials(ca.file.read_bytes())
    return grpc.ssl_channel_credentials(ca.file.read_bytes(), pair.key.read_bytes(), pair.certificate.read_bytes())


@asynccontextmanager
async def channel(port: int | None, credentials: grpc.ChannelCredentials | None, **options: Any) -> AsyncIterator[grpc.aio.Channel]:
    """A channel whose connections are its own."""
    given = [("grpc.use_local_subchannel_pool", 1), *((f"grpc.{name}", value) for name, value in options.items())]
    address = f"127.0.0.1:{port}"
    made = grpc.aio.secure_channel(address, credentials, given) if credentials else grpc.aio.insecure_channel(address, given)
    async with made:
        yield made


async def code(call: Any) -> grpc.StatusCode:
    """How a call ends."""
    try:
        await call
    except grpc.aio.AioRpcError as fault:
        return fault.code()
    return grpc.StatusCode.OK


async def check(port: int | None, credentials: grpc.ChannelCredentials | None, **options: Any) -> grpc.StatusCode:
    """How a health check ends, on a new connection."""
    async with channel(port, credentials, **options) as to:
        stub: Any = health_pb2_grpc.HealthStub(to)
        return await code(stub.Check(health_pb2.HealthCheckRequest(), timeout=5))


async def test_who_shows_no_certificate_of_the_authority_is_not_served(
    keys: Keys, redis_url: str, redis: Redis, ca: Authority, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other")
    gateway = ca.issue("gateway")
    async with replica(GAME, keys, redis_url, **mutual(ca, ca.issue("service"))) as it:
        assert await check(it.port, client(ca, gateway)) is grpc.StatusCode.OK
        for stranger in (None, client(ca), client(ca, other.issue("gateway"))):
            assert await check(it.port, stranger) is grpc.StatusCode.UNAVAILABLE
        # Nor does a gateway talk to whom the authority does not know, or knows by another name.
        assert await check(it.port, client(other, gateway)) is grpc.StatusCode.UNAVAILABLE
        assert await check(it.port, client(ca, gateway), default_authority="night-knight:50051") is grpc.StatusCode.UNAVAILABLE


async def test_renewed_certificates_are_taken_up_and_bad_ones_are_not(
    keys: Keys, redis_url: str, redis: Redis, ca: Authority, tmp_path: Path
) -> None:
    (tmp_path / "next").mkdir()
    following = Authority(tmp_path / "next")
    service = ca.issue("service")
    old, new = client(ca, ca.issue("gateway")), client(following, following.issue("gateway"))
    async with replica(GAME, keys, redis_url, **mutual(ca, service)) as it:
        async with channel(it.port, old) as to:
            stub: Any = health_pb2_grpc.HealthStub(to)
            assert await code(stub.Check(health_pb2.HealthCheckRequest(), timeout=5)) is grpc.StatusCode.OK
            for mine, theirs in zip(service, following.issue("service"), strict=True):
                mine.write_bytes(theirs.read_bytes())
            ca.file.write_bytes(following.file.read_bytes())
            assert await check(it.port, new) is grpc.StatusCode.OK
            assert await check(it.port, old) is grpc.StatusCode.UNAVAILABLE
            # Connections that there are go on.
            assert await code(stub.Check(health_pb2.HealthCheckRequest(), timeout=5)) is grpc.StatusCode.OK
        service.key.write_text("half of a")
        with capture_logs() as logs:
            for _ in range(3):
                assert await check(it.port, new) is grpc.StatusCode.OK
        assert [(line["event"], line["log_level"]) for line in logs] == [("certificate_unfit", "warning")]


async def test_probes_need_no_certificate_and_get_nothing_but_health(keys: Keys, redis_url: str, redis: Redis, ca: Authority) -> None:
    port = free_port()
    async with (
        replica(GAME, keys, redis_url, **mutual(ca, ca.issue("service")), health_listen=f"127.0.0.1:{port}") as it,
        channel(port, None) as to,
    ):
        stub: Any = health_pb2_grpc.HealthStub(to)
        watching = stub.Watch(health_pb2.HealthCheckRequest(service=GAME.service.full_name), timeout=10)
        async for answer in watching:
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                break
        watching.cancel()
        assert await check(it.port, None) is grpc.StatusCode.UNAVAILABLE
        verbs: Any = importlib.import_module("gloaming.night_clan.v1.night_clan_pb2_grpc").NightClanServiceStub(to)
        assert await code(verbs.GetMatch(GAME.message("GetMatchRequest")(), timeout=5)) is grpc.StatusCode.UNIMPLEMENTED
        assert await reflected(to) is None


async def reflected(to: grpc.aio.Channel) -> set[str] | None:
    """The services that reflection tells of; None where there is no reflection."""
    aio: Any = to
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(aio)
    call = stub.ServerReflectionInfo(timeout=5)
    await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    try:
        answer = await call.read()
    except grpc.aio.AioRpcError as fault:
        if fault.code() is not grpc.StatusCode.UNIMPLEMENTED:
            raise
        return None
    finally:
        call.cancel()
    return {each.name for each in answer.list_services_response.service}


# Players from outside.


@pytest.fixture
async def outside(keys: Keys, redis_url: str, redis: Redis, ca: Authority) -> AsyncIterator[Replica]:
    """A replica with mutual TLS inside, and a listener for players from outside."""
    pair = ca.issue("public")
    settings = {"public_listen": "127.0.0.1:0", "public_tls_cert_file": pair.certificate, "public_tls_key_file": pair.key}
    async with replica(GAME, keys, redis_url, **mutual(ca, ca.issue("service")), **settings) as it:
        yield it


async def test_players_from_outside_need_no_certificate_but_their_token(outside: Replica, keys: Keys, ca: Authority) -> None:
    assert await check(outside.public_port, None) is grpc.StatusCode.UNAVAILABLE
    async with channel(outside.public_port, client(ca)) as to:
        verbs: Any = importlib.import_module("gloaming.night_clan.v1.night_clan_pb2_grpc").NightClanServiceStub(to)
        create = GAME.message("CreateMatchRequest")(
            match_id="night_clan-abcdefghij", seats=[{"player": "ann"}, {"player": "bob"}], options=GAME.message("Options")()
        )
        assert await code(verbs.CreateMatch(create, timeout=5)) is grpc.StatusCode.UNAUTHENTICATED
        host = [("authorization", f"Bearer {keys.token('ops', scope='host')}")]
        assert await code(verbs.CreateMatch(create, metadata=host, timeout=5)) is grpc.StatusCode.OK
        ann = [("authorization", f"Bearer {keys.token('ann')}")]
        get = GAME.message("GetMatchRequest")(match_id=create.match_id)
        assert (await verbs.GetMatch(get, metadata=ann, timeout=5)).viewer_seat in (0, 1)
        watching = verbs.WatchMatch(GAME.message("WatchMatchRequest")(match_id=create.match_id), metadata=ann)
        assert (await watching.read()).WhichOneof("kind") == "snapshot"
        watching.cancel()


async def test_what_gateways_and_operators_ask_for_is_not_there_from_outside(outside: Replica, keys: Keys, ca: Authority) -> None:
    inside = client(ca, ca.issue("gateway"))
    async with channel(outside.port, inside) as to:
        known = await reflected(to)
    assert known is not None
    internal = [
        "/gloaming.relay.v1.RelayService/Relay",
        "/gloaming.relay.v1.ResultService/ListResults",
        "/gloaming.relay.v1.ResultService/AcknowledgeResults",
        "/gloaming.operator.v1.OperatorService/InspectMatch",
    ]
    metadata = [("authorization", f"Bearer {keys.token('ops', scope='relay host operator')}")]
    async with channel(outside.public_port, client(ca)) as to:
        for path in internal:
            call: Any = to.unary_unary(path)
            assert await code(call(b"", metadata=metadata, timeout=5)) is grpc.StatusCode.UNIMPLEMENTED, path
        told = await reflected(to)
    assert told is not None
    assert {GAME.service.full_name, "grpc.health.v1.Health"} <= told
    assert not any("relay" in name or "operator" in name for name in told)


async def test_a_player_from_outside_may_call_only_so_often_and_is_told_when_again(
    keys: Keys, redis_url: str, redis: Redis, ca: Authority
) -> None:
    pair = ca.issue("public")
    settings = {"public_listen": "127.0.0.1:0", "public_tls_cert_file": pair.certificate, "public_tls_key_file": pair.key}

    async def ends(to: grpc.aio.Channel, verb: str, token: str) -> tuple[grpc.StatusCode, float]:
        """How a call ends, and after how many seconds it says to try again."""
        unary: Any = to.unary_unary(f"/{GAME.service.full_name}/{verb}")
        try:
            await unary(asked.SerializeToString(), metadata=[("authorization", f"Bearer {token}")], timeout=5)
        except grpc.aio.AioRpcError as fault:
            refused = Refused(fault)
            return refused.code, refused.retry_after
        raise AssertionError("there is no such match")

    asked = GAME.message("GetMatchRequest")(match_id="night_clan-abcdefghij")
    ann, bob, old = keys.token("ann"), keys.token("bob"), keys.token("ann", seconds=-1)
    # Three at once, and after those one a minute.
    async with (
        replica(GAME, keys, redis_url, public_limit_calls="1:3", **settings) as it,
        channel(it.public_port, client(ca)) as outside,
        channel(it.port, None) as inside,
    ):
        assert [(await ends(outside, "GetMatch", old))[0] for _ in range(5)] == [grpc.StatusCode.UNAUTHENTICATED] * 5
        for verb in ("GetMatch", "ListMoves", "GetRecord"):
            assert (await ends(outside, verb, ann))[0] is grpc.StatusCode.NOT_FOUND
        refused, again = await ends(outside, "GetMatch", ann)
        assert (refused, 50 < again <= 60) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)
        assert (await ends(outside, "GetMatch", bob))[0] is grpc.StatusCode.NOT_FOUND
        assert [(await ends(inside, "GetMatch", ann))[0] for _ in range(9)] == [grpc.StatusCode.NOT_FOUND] * 9


async def test_strangers_may_not_say_too_much_at_once(outside: Replica, ca: Authority) -> None:
    path = f"/{GAME.service.full_name}/GetMatch"
    async with channel(outside.public_port, client(ca)) as to:
        call: Any = to.unary_unary(path)
        assert await code(call(bytes(100 * 1024), timeout=5)) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await code(call(b"", timeout=5)) is grpc.StatusCode.UNAUTHENTICATED
        # A hundred calls at once; the next waits until one of them has ended.
        stub: Any = health_pb2_grpc.HealthStub(to)
        watching = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(100)]
        for each in watching:
            await each.read()
        waiting = asyncio.ensure_future(stub.Check(health_pb2.HealthCheckRequest(), timeout=20))
        done, _ = await asyncio.wait({waiting}, timeout=0.5)
        assert not done
        for each in watching:
            each.cancel()
        await waiting


@pytest.mark.slow
async def test_strangers_who_never_finish_shaking_hands_are_shown_out(outside: Replica) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", outside.public_port, family=socket.AF_INET)
    async with asyncio.timeout(15):
        assert await reader.read() == b""
    writer.close()


def test_a_certificate_of_several_and_keys_of_any_kind_are_read(ca: Authority) -> None:
    pair = ca.issue("leaf", LOCAL)
    chain = pair.certificate.read_bytes() + ca.file.read_bytes()
    assert len(tls.certificates(chain)) == 2
    assert tls.fits(chain, pair.key.read_bytes())
    assert not tls.fits(ca.file.read_bytes(), pair.key.read_bytes())
    for junk in (b"", b"junk", pair.key.read_bytes(), b"-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n"):
        with pytest.raises(ValueError, match="holds no certificate"):
            tls.certificates(junk)
    for junk in (b"", b"junk", pair.certificate.read_bytes()):
        with pytest.raises(ValueError, match="holds no private key"):
            tls.public_half(junk)
