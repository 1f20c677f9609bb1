"""Redis by TLS: its certificate and ours, by parameters of REDIS_URL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from services.kit.bell import Bells
from services.kit.errors import Unavailable
from services.kit.storage import Storage
from tests.harness import EVERY_GAME, Keys, eventually, table
from tests.tls import Authority, TlsRedis, tls_redis


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of Redis and its clients."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory, ca: Authority) -> Iterator[TlsRedis]:
    """A Redis that speaks TLS alone."""
    with tls_redis(tmp_path_factory.mktemp("secure"), ca) as server:
        yield server


class Ear:
    """Hears."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()

    def hear(self, message: bytes) -> None:
        self.heard.put_nowait(message)

    def doubt(self) -> None:
        pass


async def test_a_match_is_played_and_watched_by_tls(secure: TlsRedis, keys: Keys) -> None:
    async with table(EVERY_GAME[0], keys, secure.url, replicas=2) as there:
        match_id = await there.create()
        ann = there.player("ann")
        watching = there.player("eve", replica=1).watch(match_id)
        assert (await anext(watching)).WhichOneof("kind") == "snapshot"
        assert (await ann.submit(match_id, (await ann.moves(match_id))[0])).version == 2
        # By the bell, from the other replica.
        async with asyncio.timeout(2):
            assert (await anext(watching)).event.version == 2
        await watching.aclose()


async def test_bells_ring_by_tls_and_again_after_a_lost_connection(secure: TlsRedis) -> None:
    storage, ear = Storage(secure.url), Ear()
    bells = Bells(storage)
    running = asyncio.create_task(bells.run())
    async with bells.listen("{a}:bell", ear):
        await storage.call(storage.redis.spublish("{a}:bell", "one"))
        assert await asyncio.wait_for(ear.heard.get(), 5) == b"one"
        with capture_logs():
            secure.kill()
            secure.start()
            await eventually(lambda: _heard(storage, ear))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await storage.close()


async def _heard(storage: Storage, ear: Ear) -> bool:
    try:
        await storage.call(storage.redis.spublish("{a}:bell", "two"))
    except Unavailable:
        return False
    return not ear.heard.empty()


async def test_a_redis_that_the_authority_does_not_know_is_no_storage_and_the_log_says_why(
    secure: TlsRedis, ca: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path)
    stranger, own = other.issue("client"), ca.issue("client")
    wrong = {
        "CERTIFICATE_VERIFY_FAILED": secure.url_with(ssl_ca_certs=other.file, ssl_certfile=own.certificate, ssl_keyfile=own.key),
        # How it says no to a client depends on when that notices.
        "": secure.url_with(ssl_ca_certs=ca.file, ssl_certfile=stranger.certificate, ssl_keyfile=stranger.key),
    }
    for said, url in wrong.items():
        storage = Storage(url)
        with capture_logs() as logs:
            assert not await storage.alive("night_clan")
            assert not await storage.alive("night_clan")
            with pytest.raises(Unavailable) as fault:
                await storage.get("key")
        await storage.close()
        assert fault.value.reason == "STORAGE_UNAVAILABLE"
        assert [(line["event"], line["log_level"]) for line in logs] == [("storage_lost", "warning")]
        assert said in logs[0]["error"]
