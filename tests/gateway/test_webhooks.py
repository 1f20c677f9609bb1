"""Webhooks: what is told to a player's own URL, how it is signed, when it comes again, and where it never goes."""

from __future__ import annotations

import asyncio
import base64
import hmac
import ipaddress
import json
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY
from redis.asyncio import Redis

from gateway.outward import Outward, Undelivered, is_good, target_of
from gateway.webhooks import Pace, _due_key, signature
from services.kit.errors import Unreadable
from services.kit.limits import Rate
from services.night_clan.game import GAME
from tests.gateway.stand import Stand, stand
from tests.harness import Keys, Player, Table, eventually, table
from tests.tls import Authority

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]
QUICK = Pace(idle=0.02, longest=0.1, lease=5.0, seconds=1.0, again=0.05, again_longest=0.1)
SETTINGS: dict[str, Any] = {"webhooks": True, "webhook_networks": "127.0.0.0/8"}
PATH = "/v1/players/me/webhook"


@dataclass
class Got:
    """A request as a receiver got it."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def notice(self) -> dict[str, Any]:
        """What it says."""
        read: dict[str, Any] = json.loads(self.body)
        return read


@dataclass
class Receiver:
    """Somebody's push server. It answers what it is told to, the last of it for ever.

    Attributes:
        answers: statuses; None: nothing, and it holds the line.
        got: what came.
    """

    answers: list[int | None] = field(default_factory=lambda: [204])
    got: list[Got] = field(default_factory=list)
    port: int = 0
    raw: bytes = b""

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/push?of=ann"

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Takes one request."""
        try:
            line, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest if each)}
            self.got.append(Got(line, headers, await reader.readexactly(int(headers["content-length"]))))
            status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if status is None:
                await reader.read()
            else:
                writer.write(self.raw or f"HTTP/1.1 {status} Said\r\nLocation: {self.url}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # whoever called has gone
        finally:
            writer.close()

    async def notices(self, count: int) -> list[Got]:
        """What came, once so much has."""
        await eventually(lambda: len(self.got) >= count)
        return self.got


@asynccontextmanager
async def receiver(*answers: int | None, secure: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    one = Receiver(list(answers) or [204])
    server = await asyncio.start_server(one.take, "127.0.0.1", 0, ssl=secure)
    one.port = server.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        server.close()
        await server.wait_closed()


class House:
    """Gateways with webhooks, Night Clan's real service, and two players."""

    def __init__(self, gateways: Sequence[Stand], there: Table) -> None:
        self.gateways = gateways
        self.there = there
        self.sessions: dict[str, dict[str, Any]] = {}

    @property
    def gateway(self) -> Stand:
        """The first gateway."""
        return self.gateways[0]

    async def sign_in(self) -> None:
        """Signs Ann and Bob in."""
        self.sessions = {name: await self.gateway.sign_in(name) for name in ("Ann", "Bob")}

    def id(self, name: str) -> str:
        """A player's id."""
        return str(self.sessions[name]["player"]["id"])

    def player(self, name: str) -> Player:
        """Somebody who plays, by gRPC."""
        return self.there.player(self.id(name), token=self.sessions[name]["accessToken"])

    async def ask(self, name: str, method: str, body: Any = None, path: str = PATH) -> Any:
        """Calls the gateway as somebody."""
        self.gateway.be(self.sessions[name])
        return await self.gateway.http.request(method, path, json=body)

    async def register(self, name: str, url: str) -> str:
        """Sets a webhook; returns its secret."""
        answer = await self.ask(name, "PUT", {"url": url})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["secret"])

    async def match(self, **settings: Any) -> str:
        """A match of Ann and Bob, in which both have to keep their hands before Ann plays first."""
        return await self.there.create(self.id("Ann"), self.id("Bob"), **settings)

    async def move(self, name: str, match_id: str) -> int:
        """Has somebody move; returns the version made."""
        player = self.player(name)
        moves = await player.moves(match_id)
        return int((await player.submit(match_id, moves[0])).version)


@asynccontextmanager
async def house(
    keys: Keys, redis_url: str, monkeypatch: pytest.MonkeyPatch, pace: Pace = QUICK, gateways: int = 1, **services: Any
) -> AsyncIterator[House]:
    monkeypatch.setattr("gateway.app.PACE", pace)
    chosen = {"webhooks": True, "sweep_ms": 50, "result_lease_ms": 300, "presence_grace_ms": 0, **services}
    async with table(GAME, keys, redis_url, **chosen) as there, AsyncExitStack() as stack:
        own = {GAME.id: there.addresses[0]}
        stands = [await stack.enter_async_context(stand(keys, redis_url, services=own, **SETTINGS)) for _ in range(gateways)]
        made = House(stands, there)
        await made.sign_in()
        yield made


@pytest.fixture
async def home(keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    """A house."""
    async with house(keys, redis_url, monkeypatch) as it:
        yield it


def verify(secret: str, got: Got) -> None:
    """As a receiver does by the specification, without the gateway's code."""
    signed = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, "sha256").digest()).decode()
    assert got.headers["webhook-signature"].split(" ") == [f"v1,{expected}"]
    assert abs(int(got.headers["webhook-timestamp"]) - time.time()) < 60


async def settled(redis: Redis) -> None:
    """Waits until nothing is to be told any more."""

    async def nothing_due() -> bool:
        return not await redis.keys("gateway:{webhooks/*") and not await redis.keys("night_clan:{turns}:due")

    await eventually(nothing_due)


def counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("gloaming_webhooks_total", {"outcome": outcome}) or 0.0


# What is told.


async def test_each_turn_and_the_end_are_told_to_whom_they_concern_signed_and_once(home: House, redis: Redis) -> None:
    async with receiver() as ann:
        secret = await home.register("Ann", ann.url)
        match_id = await home.match(move_seconds=600)
        (first,) = await ann.notices(1)
        verify(secret, first)
        match = await home.player("Ann").get(match_id)
        assert first.line == "POST /push?of=ann HTTP/1.1"
        assert first.headers["host"] == f"127.0.0.1:{ann.port}"
        assert first.headers["content-type"] == "application/json"
        assert "cookie" not in first.headers
        assert "authorization" not in first.headers
        notice = first.notice
        assert notice["type"] == "turn"
        assert datetime.fromisoformat(notice["timestamp"]).timestamp() == pytest.approx(time.time(), abs=60)
        assert notice["data"] == {
            "matchId": match_id,
            "game": "night_clan",
            "seat": 0,
            "version": 1,
            "deadline": match.seats[0].deadline.ToJsonString(),
        }

        # Bob keeps first: it is Ann's turn still, and that she knows. Then she keeps, and it is hers to play.
        await home.move("Bob", match_id)
        version = await home.move("Ann", match_id)
        _, second = await ann.notices(2)
        assert (second.notice["type"], second.notice["data"]["version"]) == ("turn", version)
        await home.player("Bob").resign(match_id)
        *_, last = await ann.notices(3)
        assert last.notice["type"] == "ended"
        assert last.notice["data"]["outcome"]["winners"] == [0]
        assert "deadline" not in last.notice["data"]
        await settled(redis)
        assert len(ann.got) == 3
        assert len({each.headers["webhook-id"] for each in ann.got}) == 3


def test_the_signature_is_that_of_standard_webhooks() -> None:
    # The example of the specification's own libraries.
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    said = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert said == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_the_same_turn_is_told_once_however_often_it_comes_up(
    keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(keys, redis_url, monkeypatch, gateways=2, lease_ms=200) as home, receiver() as ann:
        await home.register("Ann", ann.url)
        match_id = await home.match()
        await ann.notices(1)
        woken = 0

        async def noted() -> bool:
            nonlocal woken
            woken += bool(await redis.zadd("night_clan:{turns}:due", {match_id: 1}, nx=True))
            return woken >= 5

        await eventually(noted)
        await settled(redis)
        assert len(ann.got) == 1


async def test_who_has_no_webhook_is_told_nothing_and_nothing_is_kept_of_it(home: House, redis: Redis) -> None:
    async with receiver() as ann:
        await home.register("Ann", ann.url)
        await home.match()
        await ann.notices(1)
        await settled(redis)
        assert await redis.keys("gateway:*notices") == [f"gateway:{{{home.id('Ann')}}}:notices".encode()]
        assert await redis.pttl(f"gateway:{{{home.id('Ann')}}}:notices") > 0


async def test_who_watches_is_told_once_they_have_gone_and_it_is_their_turn_still(home: House, redis: Redis) -> None:
    async with receiver() as ann:
        await home.register("Ann", ann.url)
        match_id = await home.match()
        await ann.notices(1)
        await settled(redis)
        async with aclosing(home.player("Ann").watch(match_id)) as watched:
            async for told in watched:
                if told.HasField("event") and told.event.event.HasField("seat_changed"):
                    break
            await home.move("Bob", match_id)
            version = await home.move("Ann", match_id)
            # Handed out, and neither told nor done with.
            await eventually(lambda: redis.zcard("night_clan:{turns}:due"))
            due = await redis.zscore("night_clan:{turns}:due", match_id)

            async def handed_out_again() -> bool:
                score = await redis.zscore("night_clan:{turns}:due", match_id)
                return bool(score != due)

            await eventually(handed_out_again)
            assert len(ann.got) == 1
        _, later = await ann.notices(2)
        assert later.notice["data"]["version"] == version


# When it is not taken.


@pytest.mark.parametrize("answer", [500, 404, 302, 429, None])
async def test_what_is_not_taken_comes_again_with_the_same_id_until_it_is(home: House, redis: Redis, answer: int | None) -> None:
    async with receiver(answer, answer, 200) as ann:
        secret = await home.register("Ann", ann.url)
        await home.match()
        await ann.notices(3)
        await settled(redis)
        assert len({(each.headers["webhook-id"], each.body) for each in ann.got}) == 1
        for each in ann.got:
            verify(secret, each)
        shown = (await home.ask("Ann", "GET")).json()
        assert "lastSuccessTime" in shown
        assert "lastFailure" not in shown


async def test_what_went_wrong_is_shown_to_the_player_alone_and_without_the_secret(home: House) -> None:
    async with receiver(503) as ann:
        secret = await home.register("Ann", ann.url)
        await home.match()
        await ann.notices(2)
        shown = await home.ask("Ann", "GET")
        assert shown.json()["lastFailure"]["reason"] == "STATUS_503"
        assert (shown.json()["url"], shown.json()["disabled"]) == (ann.url, False)
        assert secret not in shown.text
        public = await home.ask("Bob", "GET", path=f"/v1/players/{home.id('Ann')}")
        assert "push" not in public.text
        assert (await home.ask("Bob", "GET")).json()["reason"] == "WEBHOOK_NOT_FOUND"


async def test_a_turn_that_has_passed_meanwhile_is_told_no_more(home: House, redis: Redis) -> None:
    async with receiver(500, 500, 500, None) as ann:
        await home.register("Ann", ann.url)
        match_id = await home.match()
        await ann.notices(2)
        await home.move("Ann", match_id)
        await home.move("Bob", match_id)
        # It is Ann's again: the newest is told, in place of what was not taken.
        ann.answers = [200]
        await eventually(lambda: ann.got[-1].notice["data"]["version"] == 3)
        await home.move("Ann", match_id)
        await settled(redis)
        assert [each.notice["data"]["version"] for each in ann.got if each.notice["data"]["version"] > 1] in ([3], [3, 4])


async def test_a_turn_is_not_told_when_its_clock_has_run_out(home: House, redis: Redis) -> None:
    dropped = counted("dropped")
    async with receiver(500) as ann:
        await home.register("Ann", ann.url)
        await home.match(move_seconds=1)
        await ann.notices(1)

        async def given_up() -> bool:
            return counted("dropped") > dropped or any(each.notice["data"]["version"] > 1 for each in ann.got)

        await eventually(given_up)


async def test_what_is_not_taken_for_a_day_is_given_up(keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    pace = Pace(idle=0.02, lease=5.0, again=0.05, again_longest=0.1, over=0.3)
    given_up = counted("given_up")
    async with house(keys, redis_url, monkeypatch, pace) as home, receiver(500) as ann:
        await home.register("Ann", ann.url)
        await home.match()
        await eventually(lambda: counted("given_up") > given_up)
        await settled(redis)
        assert (await home.ask("Ann", "GET")).json()["disabled"] is False


async def test_a_webhook_that_takes_nothing_for_days_is_disabled_until_it_is_set_again(
    keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = Pace(idle=0.02, lease=5.0, again=0.05, again_longest=0.05, patience=0.2)
    async with house(keys, redis_url, monkeypatch, pace) as home, receiver(500) as ann:
        await home.register("Ann", ann.url)
        match_id = await home.match()

        async def disabled() -> bool:
            return bool((await home.ask("Ann", "GET")).json()["disabled"])

        await eventually(disabled)
        await settled(redis)
        tried = len(ann.got)
        await home.move("Bob", match_id)
        await home.move("Ann", match_id)
        await eventually(lambda: redis.exists("night_clan:{turns}:due"))
        await settled(redis)
        assert len(ann.got) == tried
        ann.answers = [200]
        await home.register("Ann", ann.url)
        assert not await disabled()
        await home.move("Ann", match_id)
        await home.player("Bob").resign(match_id)
        await eventually(lambda: ann.got[-1].notice["type"] == "ended")


async def test_a_webhook_that_is_gone_is_removed(home: House, redis: Redis) -> None:
    async with receiver(410) as ann:
        await home.register("Ann", ann.url)
        await home.match()
        await ann.notices(1)

        async def removed() -> bool:
            return bool((await home.ask("Ann", "GET")).status_code == 404)

        await eventually(removed)
        await settled(redis)
        assert len(ann.got) == 1
        assert not await redis.keys("gateway:*notices")


async def test_a_gateway_that_dies_while_it_sends_loses_nothing(
    keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = Pace(idle=0.02, lease=0.5, seconds=1.0, again=0.05)
    async with house(keys, redis_url, monkeypatch, pace) as home, receiver() as ann:
        await home.register("Ann", ann.url)
        player, match_id = home.id("Ann"), f"{GAME.id}-claimed000"
        # What a gateway leaves that was killed after it had claimed a notice.
        notices, due = f"gateway:{{{player}}}:notices", _due_key(player)
        await redis.hset(notices, match_id, f"7 turn - 1 0 {int(time.time() * 1000)}\n" + '{"type":"turn"}')
        await redis.zadd(due, {f"{player} {match_id}": int(time.time() * 1000) + 300})
        (got,) = await ann.notices(1)
        assert got.notice == {"type": "turn"}
        await settled(redis)


async def test_two_gateways_tell_each_turn_once(keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    async with house(keys, redis_url, monkeypatch, gateways=2) as home, receiver() as ann, receiver() as bob:
        await home.register("Ann", ann.url)
        await home.register("Bob", bob.url)
        matches = {await home.match() for _ in range(10)}
        await ann.notices(10)
        await bob.notices(10)
        await settled(redis)
        for got in (ann.got, bob.got):
            assert len(got) == 10
            assert {each.notice["data"]["matchId"] for each in got} == matches
        assert {each.notice["data"]["seat"] for each in ann.got} == {0}


async def test_however_much_there_is_to_tell_a_player_it_is_not_sent_faster_than_allowed(
    keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = Pace(idle=0.02, lease=5.0, often=Rate(interval=0.3, burst=2))
    async with house(keys, redis_url, monkeypatch, pace) as home, receiver() as ann, receiver() as bob:
        await home.register("Ann", ann.url)
        await home.register("Bob", bob.url)
        began = time.monotonic()
        matches = {await home.match() for _ in range(5)}
        await ann.notices(5)
        assert time.monotonic() - began > 3 * 0.3 * 0.9
        await bob.notices(5)
        assert {each.notice["data"]["matchId"] for each in ann.got} == matches


async def test_who_never_answers_takes_few_of_the_places_and_the_others_are_told(
    keys: Keys, redis_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = Pace(idle=0.02, lease=60.0, seconds=30.0, most=6, each=2)
    async with house(keys, redis_url, monkeypatch, pace) as home, receiver(None) as ann, receiver() as bob:
        await home.register("Ann", ann.url)
        await home.register("Bob", bob.url)
        matches = {await home.match() for _ in range(10)}
        await bob.notices(10)
        assert {each.notice["data"]["matchId"] for each in bob.got} == matches
        assert len(ann.got) == 2


# Whose it is.


async def test_setting_it_again_gives_another_secret_and_sends_what_waits_to_the_new_url(home: House) -> None:
    async with receiver(500) as old, receiver() as new:
        first = await home.register("Ann", old.url)
        await home.match()
        await old.notices(1)
        second = await home.register("Ann", new.url)
        (got,) = await new.notices(1)
        assert first != second
        assert len(base64.b64decode(second.removeprefix("whsec_"))) == 32
        verify(second, got)


async def test_deleting_it_is_heard_at_once_and_may_be_repeated(home: House, redis: Redis) -> None:
    async with receiver() as ann:
        await home.register("Ann", ann.url)
        for _ in range(2):
            assert (await home.ask("Ann", "DELETE")).json() == {}
        await home.match()
        await eventually(lambda: redis.exists("night_clan:{turns}:due"))
        await settled(redis)
        assert not ann.got


async def test_a_player_who_is_forgotten_leaves_nothing_of_it(home: House, redis: Redis) -> None:
    async with receiver(500) as ann:
        await home.register("Ann", ann.url)
        await home.match()
        await ann.notices(1)
        assert (await home.ask("Ann", "DELETE", path="/v1/players/me")).status_code == 200
        await settled(redis)
        assert not [key for key in await redis.keys("gateway:*") if home.id("Ann").encode() in key and b"notices" in key]
        assert not await redis.exists(f"gateway:{{{home.id('Ann')}}}:player")


async def test_an_operators_token_without_a_profile_has_no_webhook(home: House, keys: Keys) -> None:
    answer = await home.gateway.http.put(
        PATH, json={"url": "https://push.example"}, headers={"Authorization": f"Bearer {keys.token('op')}"}
    )
    assert (answer.status_code, answer.json()["reason"]) == (404, "PLAYER_NOT_FOUND")


async def test_nobody_may_set_one_where_the_operator_does_not_want_it(gateway: Stand) -> None:
    await gateway.sign_in()
    answer = await gateway.http.put(PATH, json={"url": "https://push.example"})
    assert (answer.status_code, answer.json()["reason"]) == (422, "WEBHOOKS_OFF")
    assert (await gateway.http.get(PATH)).json()["reason"] == "WEBHOOK_NOT_FOUND"
    assert (await gateway.http.delete(PATH)).status_code == 200
    assert (await gateway.http.put(PATH, json={"url": "https://push.example"}, headers={"Authorization": ""})).status_code == 401


# Where it never goes.

_BAD = [
    "",
    "push.example",
    "ftp://push.example",
    "http://push.example",
    "https://",
    "https:///push",
    "https://ann@push.example",
    "https://ann:secret@push.example/",
    "https://push.example/#part",
    "https://push.example/a b",
    "https://push.example/\r\nx-more: 1",
    "https://püsh.example/",
    "https://push.example:22/",
    "https://push.example:99999/",
    "https://push.example:no/",
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[fe80::1%25eth0]/",
    "https://169.254.169.254/latest/meta-data",
    "https://[/",
    "https://push.example/" + "x" * 2048,
]


@pytest.mark.parametrize("url", _BAD)
async def test_a_url_that_could_not_be_called_is_refused(keys: Keys, redis_url: str, redis: Redis, url: str) -> None:
    async with stand(keys, redis_url, webhooks=True) as gateway:
        await gateway.sign_in()
        answer = await gateway.http.put(PATH, json={"url": url})
        assert answer.status_code == 400, answer.text
        assert [each["field"] for each in answer.json()["violations"]] == ["url"]
        assert (await gateway.http.get(PATH)).status_code == 404


@pytest.mark.parametrize(
    "url", ["https://push.example", "https://push.example:8443/a?b=c", "https://1.1.1.1/", "https://[2606:4700::1111]/"]
)
def test_a_url_in_the_open_is_good(url: str) -> None:
    assert target_of(url, []).secure


_INWARD = [
    "0.0.0.0",
    "127.0.0.1",
    "127.8.8.8",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "192.0.0.192",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "2002:a00:1::",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
]


@pytest.mark.parametrize("address", _INWARD)
def test_no_address_that_is_not_public_is_called(address: str) -> None:
    target = target_of("https://push.example/", [])
    assert not is_good(ipaddress.ip_address(address), target, [])
    assert not is_good(ipaddress.ip_address(address), target, [ipaddress.ip_network("203.0.113.0/24")])


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_public_addresses_are_called_by_https_alone(address: str) -> None:
    there = ipaddress.ip_address(address)
    assert is_good(there, target_of("https://push.example/", []), [])
    assert not is_good(there, target_of("http://push.example/", LOOPBACK), LOOPBACK)
    assert not is_good(there, target_of("https://push.example:22/", LOOPBACK), LOOPBACK)


@pytest.mark.parametrize("url", ["https://localhost:8443/", "https://0x7f.1:8443/", "https://2130706433:8443/", "https://127.1:8443/"])
async def test_a_name_that_leads_inward_is_not_called(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiver() as inner:
        monkeypatch.setattr("gateway.outward.PORTS", frozenset({inner.port}))
        outward = Outward()
        try:
            with pytest.raises(Undelivered, match="UNREACHABLE"):
                await outward.post(url.replace("8443", str(inner.port)), b"{}", {})
        finally:
            outward.close()
        assert not inner.got


async def test_an_address_is_called_without_a_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("gateway.outward._look_up")
    outward = Outward(LOOPBACK)
    async with receiver() as ann:
        try:
            assert await outward.post(f"http://127.0.0.1:{ann.port}/", b"{}", {}) == 204
        finally:
            outward.close()


async def test_a_name_is_looked_up_once_a_call_and_what_was_found_good_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [["169.254.169.254", "127.0.0.1"], ["10.0.0.1"]]
    monkeypatch.setattr("gateway.outward._look_up", lambda host, port: found.pop(0))
    outward = Outward(LOOPBACK)
    async with receiver() as ann:
        try:
            assert await outward.post(f"http://push.example:{ann.port}/", b"{}", {}) == 204
            assert ann.got[0].headers["host"] == f"push.example:{ann.port}"
            with pytest.raises(Undelivered, match="UNREACHABLE"):
                await outward.post(f"http://push.example:{ann.port}/", b"{}", {})
        finally:
            outward.close()
        assert len(ann.got) == 1


async def test_a_redirect_is_not_followed(home: House) -> None:
    async with receiver(302) as ann:
        await home.register("Ann", ann.url)
        await home.match()
        await ann.notices(1)

        async def shown() -> bool:
            return bool((await home.ask("Ann", "GET")).json().get("lastFailure", {}).get("reason") == "STATUS_302")

        await eventually(shown)
        assert len({each.headers["webhook-id"] for each in ann.got}) == 1


async def test_by_tls_only_a_certificate_of_the_name_is_good(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    trusted = ssl.create_default_context(cafile=str(authority.file))
    for signer, names, good in (
        (authority, ("localhost",), True),
        (authority, ("other.example",), False),
        (stranger, ("localhost",), False),
    ):
        pair = signer.issue("push", names)
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(pair.certificate, pair.key)
        outward = Outward(LOOPBACK, context=trusted)
        async with receiver(secure=own) as ann:
            try:
                if good:
                    assert await outward.post(f"https://localhost:{ann.port}/", b"{}", {"webhook-id": "x"}) == 204
                else:
                    with pytest.raises(Undelivered, match="UNREACHABLE"):
                        await outward.post(f"https://localhost:{ann.port}/", b"{}", {"webhook-id": "x"})
            finally:
                outward.close()
            assert bool(ann.got) == good


@pytest.mark.parametrize(
    ("raw", "outcome"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n", 202),
        (b"HTTP/1.0 200\r\n", 200),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "UNREADABLE"),
        (b"HTTP/1.1 200 " + b"x" * 10_000, "UNREADABLE"),
        (b"HTTP/1.1 999999 Much\r\n\r\n", "UNREADABLE"),
        (b"x: y\r\n" * 1000, "UNREADABLE"),
        (b"HTTP/1.1 2", "UNREADABLE"),
        (b"\x00\xff\n" * 100, "UNREADABLE"),
    ],
)
async def test_of_an_answer_only_the_status_is_read(raw: bytes, outcome: int | str) -> None:
    outward = Outward(LOOPBACK, seconds=2.0)
    async with receiver() as ann:
        ann.raw = raw
        try:
            if isinstance(outcome, int):
                assert await outward.post(ann.url, b"{}", {}) == outcome
            else:
                with pytest.raises(Undelivered, match=outcome):
                    await outward.post(ann.url, b"{}", {})
        finally:
            outward.close()


async def test_who_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    outward = Outward(LOOPBACK, seconds=0.1)
    async with receiver(None) as ann:
        with pytest.raises(Undelivered, match="TIMEOUT"):
            await outward.post(ann.url, b"{}", {})
    outward.close()


def test_a_url_is_refused_by_its_field() -> None:
    with pytest.raises(Unreadable) as refused:
        target_of("http://push.example", [])
    assert refused.value.field == "url"
