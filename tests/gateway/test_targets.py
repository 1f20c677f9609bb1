"""Where the gateway finds replicas, and how it gets to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from redis.asyncio import Redis

from gateway import upstream
from gateway.relay import Patience
from gateway.targets import name_of
from gateway.upstream import Services
from services.kit.tls import Certificate
from tests.gateway.stand import MATCH_ID, Context, Service, event, match, stand, targets
from tests.harness import EVERY_GAME, Keys, eventually
from tests.tls import Authority, mutual, replica

PATH = f"/v1/matches/{MATCH_ID}"
GAME = next(game for game in EVERY_GAME if game.id == "night_clan")


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("dns:///night-clan:50051", "night-clan:50051"),
        ("dns:night-clan:50051", "night-clan:50051"),
        ("dns://10.0.0.10/night-clan:50051", "night-clan:50051"),
        ("night-clan:50051", "night-clan:50051"),
        ("ipv4:10.0.0.1:1,10.0.0.2:1", "10.0.0.1:1"),
        ("ipv6:[::1]:1", "[::1]:1"),
        ("unix:/run/night-clan", "localhost"),
    ],
)
def test_certificates_have_the_name_of_the_target(target: str, name: str) -> None:
    assert name_of(target) == name


class Names:
    """A name server, as far as the gateway asks: every name has these addresses."""

    def __init__(self) -> None:
        self.addresses: set[str] = set()
        self.asked = 0

    async def resolve(self, target: str) -> set[str] | None:
        self.asked += 1
        return set(self.addresses) or None


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Names whose addresses change."""
    names = Names()
    monkeypatch.setattr(upstream, "resolve", names.resolve)
    return names


@pytest.fixture
async def two() -> AsyncIterator[list[Service]]:
    """Two replicas that serve."""
    services = [Service(), Service()]
    for service in services:
        await service.start()
        service.matches[MATCH_ID] = match()
    yield services
    for service in services:
        await service.stop()


async def _looked(names: Names) -> None:
    """Waits until the gateway has looked up every name anew."""
    asked = names.asked
    await eventually(lambda: names.asked >= asked + 8)


@pytest.mark.scenario(25)
async def test_a_new_replica_gets_its_share_of_calls_and_streams_go_on_where_they_are(
    keys: Keys, redis_url: str, redis: Redis, names: Names, two: list[Service]
) -> None:
    one, other = two
    more = asyncio.Event()

    async def watch(request: Any, context: Context) -> AsyncIterator[Any]:
        yield event(8)
        await more.wait()
        yield event(9)

    one.verbs["WatchMatch"] = watch
    names.addresses = {f"ipv4:127.0.0.1:{one.port}"}
    target = {"night_clan": "dns:///night-clan:50051"}
    async with stand(keys, redis_url, on_socket=True, services=target, patience=Patience(resolve=0.05)) as gateway:
        await gateway.sign_in()
        await _looked(names)
        async with gateway.http.stream("GET", f"{PATH}/events", headers={"Accept": "text/event-stream"}) as response:
            lines = response.aiter_lines()
            await anext(lines)
            names.addresses = {f"ipv4:127.0.0.1:{each.port}" for each in two}
            await _looked(names)
            for _ in range(20):
                assert (await gateway.http.get(PATH)).status_code == 200
            assert len(other.calls("GetMatch")) >= 5
            assert len(one.calls("GetMatch")) >= 5
            # And one that has left gets no more, though what it streams goes on.
            names.addresses = {f"ipv4:127.0.0.1:{other.port}"}
            await _looked(names)
            before = len(one.calls("GetMatch"))
            for _ in range(10):
                assert (await gateway.http.get(PATH)).status_code == 200
            assert len(one.calls("GetMatch")) == before
            more.set()
            async for line in lines:
                if '"version":9' in line.replace(" ", ""):
                    break
            else:
                pytest.fail("the stream has ended")
        assert len(one.calls("WatchMatch")) == 1


async def test_a_name_that_cannot_be_resolved_for_a_while_changes_nothing(
    keys: Keys, redis_url: str, redis: Redis, names: Names, two: list[Service]
) -> None:
    names.addresses = {f"ipv4:127.0.0.1:{two[0].port}"}
    async with stand(keys, redis_url, services={"night_clan": "dns:///night-clan:50051"}, patience=Patience(resolve=0.05)) as gateway:
        await gateway.sign_in()
        await _looked(names)
        names.addresses = set()
        await _looked(names)
        assert (await gateway.http.get(PATH)).status_code == 200


async def test_channels_that_others_took_the_place_of_are_closed_when_their_calls_have_ended(names: Names, two: list[Service]) -> None:
    one, other = two
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Any, context: Context) -> Any:
        started.set()
        await go_on.wait()
        return match()

    one.verbs["GetMatch"] = slow
    names.addresses = {f"ipv4:127.0.0.1:{one.port}"}
    async with Services(targets("dns:///name:1"), 5, look_seconds=0.02) as services:
        it = services["night_clan"]
        await eventually(lambda: it._line.addresses == names.addresses)
        request = it.request("GetMatch")(match_id=MATCH_ID)
        calling = asyncio.create_task(it.call("GetMatch", "", request))
        await started.wait()
        old = it._line
        for port in (other.port, one.port, other.port):
            names.addresses = {f"ipv4:127.0.0.1:{port}"}
            await eventually(lambda: it._line.addresses == names.addresses)
        assert it._left == {old}
        go_on.set()
        assert (await calling).version == 7
        await eventually(lambda: not it._left)
        assert (await it.call("GetMatch", "", request)).version == 7


# TLS.


async def test_a_gateway_takes_up_renewed_certificates_without_a_restart(keys: Keys, redis_url: str, redis: Redis, tmp_path: Path) -> None:
    for name in ("gateway", "service", "next"):
        (tmp_path / name).mkdir()
    ca, following = Authority(tmp_path / "service"), Authority(tmp_path / "next")
    service, own = ca.issue("service"), ca.issue("gateway")
    trusted = tmp_path / "gateway" / "ca.crt"
    trusted.write_bytes(ca.file.read_bytes())
    async with (
        replica(GAME, keys, redis_url, **mutual(ca, service)) as it,
        Services(targets(f"127.0.0.1:{it.port}"), 5, str, Certificate(*own, trusted), look_seconds=0.02) as services,
    ):
        night_clan = services["night_clan"]
        await eventually(lambda: _serving(services))
        # All of it at once, by another authority: of whatever was before nothing is good.
        old = night_clan._line
        for mine, theirs in zip((*service, *own), (*following.issue("service"), *following.issue("gateway")), strict=True):
            mine.write_bytes(theirs.read_bytes())
        for file in (ca.file, trusted):
            file.write_bytes(following.file.read_bytes())
        await eventually(lambda: night_clan._line is not old)
        await eventually(lambda: _serving(services))


async def _serving(services: Services) -> bool:
    return (await services.health())["night_clan"] == "SERVING"


async def test_a_service_of_another_name_or_authority_is_not_called(keys: Keys, redis_url: str, redis: Redis, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    ca, other = Authority(tmp_path), Authority(tmp_path / "other")
    own = ca.issue("gateway")
    for pair in (ca.issue("service", ["night-knight"]), other.issue("service")):
        settings = mutual(ca, pair)
        async with (
            replica(GAME, keys, redis_url, **settings) as it,
            Services(targets(f"127.0.0.1:{it.port}"), 5, str, Certificate(*own, ca.file)) as services,
        ):
            assert (await services.health())["night_clan"] == "UNREACHABLE"
            with pytest.raises(grpc.aio.AioRpcError) as fault:
                await services["night_clan"].call("GetMatch", "", services["night_clan"].request("GetMatch")())
            assert fault.value.code() is grpc.StatusCode.UNAVAILABLE
