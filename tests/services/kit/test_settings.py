from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from services.kit.settings import ServiceSettings, read
from tests.harness import Keys


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, keys: Keys) -> None:
    for name in list(os.environ):
        if name.startswith("GLOAMING_") or name == "REDIS_URL":
            monkeypatch.delenv(name)
    monkeypatch.setenv("GLOAMING_JWKS_FILE", str(keys.jwks))


def test_all_but_the_keys_has_a_default(keys: Keys) -> None:
    settings = read(ServiceSettings)
    assert settings.jwks_file == keys.jwks
    assert settings.redis_url == "redis://127.0.0.1:6379/0"
    assert settings.listen == "0.0.0.0:50051"


def test_the_environment_sets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {
        "REDIS_URL": "rediss://me:secret@redis:6380/1",
        "GLOAMING_LISTEN": "[::]:1",
        "GLOAMING_METRICS_LISTEN": "",
        "GLOAMING_LOG_LEVEL": "DEBUG",
        "GLOAMING_BOT_DELAY_MS": "0",
        "GLOAMING_FINISHED_TTL_DAYS": "0.5",
    }
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    settings = read(ServiceSettings)
    assert settings.redis_url == "rediss://me:secret@redis:6380/1"
    assert (settings.listen, settings.metrics_listen, settings.log_level) == ("[::]:1", "", "DEBUG")
    assert (settings.bot_delay_ms, settings.finished_ttl_days) == (0, 0.5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_URL", "127.0.0.1:6379"),
        ("REDIS_URL", "http://127.0.0.1"),
        ("GLOAMING_JWKS_FILE", "/nowhere/jwks.json"),
        ("GLOAMING_JWKS_FILE", "/"),
        ("GLOAMING_LISTEN", "localhost"),
        ("GLOAMING_LISTEN", ""),
        ("GLOAMING_METRICS_LISTEN", "here"),
        ("GLOAMING_LOG_LEVEL", "debug"),
        ("GLOAMING_DRAIN_SECONDS", "-1"),
        ("GLOAMING_DRAIN_SECONDS", "soon"),
        ("GLOAMING_PUBLIC_LIMIT_CALLS", "60"),
        ("GLOAMING_PUBLIC_LIMIT_CALLS", "0:1"),
        ("GLOAMING_BOT_DELAY_MS", "1.5"),
        ("GLOAMING_DEADLINE_SHARDS", "0"),
        ("GLOAMING_OUTAGE_MS", "1"),
        ("GLOAMING_LEASE_MS", ""),
        ("GLOAMING_LIVE_TTL_DAYS", "0"),
        ("GLOAMING_FINISHED_TTL_DAYS", "0"),
        # As long as an outage, so that each sweep would find one.
        ("GLOAMING_SWEEP_MS", "3000"),
    ],
)
def test_a_bad_one_stops_with_a_sentence_that_names_it(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as stopped:
        read(ServiceSettings)
    heading, *wrong = str(stopped.value).splitlines()
    assert heading == "These environment variables need another value:"
    assert [re.match(r"  ([A-Z_]+): \S", line)[1] for line in wrong] == [name]  # type: ignore[index]


def test_all_bad_ones_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLOAMING_JWKS_FILE")
    monkeypatch.setenv("GLOAMING_LEASE_MS", "x")
    with pytest.raises(SystemExit, match=r"(?s)GLOAMING_JWKS_FILE: .*GLOAMING_LEASE_MS: "):
        read(ServiceSettings)


def test_a_default_too_is_checked_against_what_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOAMING_OUTAGE_MS", "500")
    with pytest.raises(SystemExit, match="GLOAMING_SWEEP_MS"):
        read(ServiceSettings)
    monkeypatch.setenv("GLOAMING_SWEEP_MS", "100")
    assert read(ServiceSettings).outage_ms == 500


def test_no_secret_is_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REDIS_URL", "redos://me:secret@redis")
    with pytest.raises(SystemExit) as stopped:
        read(ServiceSettings)
    assert "secret" not in str(stopped.value)
