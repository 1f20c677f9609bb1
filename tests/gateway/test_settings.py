"""What operators set: whatever is wrong stops the start, in sentences that say what to set and repeat no secret."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.processes import free_port
from gateway.registry import GAMES
from gateway.settings import GatewaySettings
from services.kit.settings import Common, ServiceSettings, read, unknown
from tests.harness import Keys
from tests.tls import Authority

# Of what is text: no numbers, and no files.
_WRONG = {
    "redis_url": "http://127.0.0.1:6379",
    "log_level": "LOUD",
    "listen": "somewhere",
    "metrics_listen": "127.0.0.1:99999",
    "health_listen": "127.0.0.1",
    "public_listen": ":",
    "services": "chess=127.0.0.1:1",
    "ticket_bands": "0:100,5:50",
    "trusted_proxies": "10.0.0.0/8,home",
    "webhook_networks": "10.0.0.0/8,home",
    "cors_origins": "play.example",
    "public_limit_calls": "many",
    **dict.fromkeys((name for name in GatewaySettings.model_fields if name.startswith("limit_")), "many"),
}


def _wrong(kind: type[Common], name: str) -> Iterator[str]:
    """Values that a setting does not take."""
    field = kind.model_fields[name]
    bounds = {key: value for each in field.metadata for key in ("ge", "gt", "le") if (value := getattr(each, key, None)) is not None}
    if field.annotation in (int, float):
        yield from ("many", "", "nan", "inf")
        assert len(bounds) == 2, f"{name} has no bounds"
        yield str(bounds["ge"] - 1 if "ge" in bounds else bounds["gt"])
        yield str(bounds["le"] + 1)
    elif name.endswith("_file"):
        yield "/nowhere/at/all"
    elif field.annotation is bool:
        yield "perhaps"
    else:
        yield _WRONG[name]


EVERY = [(kind, name, value) for kind in (GatewaySettings, ServiceSettings) for name in kind.model_fields for value in _wrong(kind, name)]


@pytest.fixture
def given(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that both kinds of process start in."""
    for name in list(os.environ):
        if name.startswith(("GLOAMING_", "REDIS_URL")):
            monkeypatch.delenv(name)
    for name, value in _environment(keys).items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def _environment(keys: Keys) -> dict[str, str]:
    return {
        "GLOAMING_JWKS_FILE": str(keys.jwks),
        "GLOAMING_SIGNING_KEY_FILE": str(keys.pem),
        "GLOAMING_SERVICES": ",".join(f"{game}=127.0.0.1:1" for game in GAMES),
    }


def _refused(kind: type[Common]) -> str:
    with pytest.raises(SystemExit) as end:
        read(kind)
    assert isinstance(end.value.code, str)
    return end.value.code


@pytest.mark.parametrize(("kind", "name", "value"), EVERY, ids=[f"{kind.__name__}-{name}-{value}" for kind, name, value in EVERY])
def test_a_value_that_is_wrong_is_named_by_its_variable(given: pytest.MonkeyPatch, kind: type[Common], name: str, value: str) -> None:
    assert read(kind)
    variable = str(kind.model_fields[name].validation_alias or f"GLOAMING_{name.upper()}")
    given.setenv(variable, value)
    first, *lines = _refused(kind).splitlines()
    assert first == "These environment variables need another value:"
    assert len(lines) == 1
    assert lines[0].startswith(f"  {variable}: ")


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:hush/hush@redis.example:6379/0",
        "redis://:hush@redis.example:hush/0",
        "redis://:hush@[redis.example/0",
        "redis://:hush@redis.example/0?hush=1",
        "redis://:hush@redis.example/0?socket_timeout=hush",
        "redis+sentinel://:hush@redis.example",
        "redis+cluster://:hush@redis.example/1",
        "redis+cluster://:hush@redis.example?hush=1",
        "rediss://:hush@redis.example/0?ssl_cert_reqs=hush",
        "rediss://:hush@redis.example/0?ssl_ca_certs=/nowhere",
        "rediss+sentinel://:hush@redis.example/main/0?ssl_certfile=/nowhere&ssl_keyfile=/nowhere",
        "http://:hush@redis.example",
    ],
)
@pytest.mark.parametrize("by_file", [False, True])
def test_an_address_of_redis_that_is_wrong_is_not_repeated(given: pytest.MonkeyPatch, tmp_path: Path, url: str, by_file: bool) -> None:
    if by_file:
        (tmp_path / "url").write_text(url)
        given.setenv("REDIS_URL_FILE", str(tmp_path / "url"))
    else:
        given.setenv("REDIS_URL", url)
    said = _refused(ServiceSettings)
    assert "REDIS_URL: " in said
    assert "hush" not in said
    with pytest.raises(ValueError, match=r"redis_url|REDIS_URL") as fault:
        ServiceSettings()  # type: ignore[call-arg]
    assert "hush" not in str(fault.value)


def test_where_redis_is_may_be_in_a_file(given: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("\n  rediss://user:word@redis.example:6380/3\n")
    given.setenv("REDIS_URL_FILE", str(file))
    for kind in (GatewaySettings, ServiceSettings):
        assert read(kind).redis_url == "rediss://user:word@redis.example:6380/3"
    given.setenv("REDIS_URL", "redis://127.0.0.1/0")
    assert "REDIS_URL and REDIS_URL_FILE: set one of them" in _refused(ServiceSettings)
    given.delenv("REDIS_URL")
    for unreadable, why in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file")):
        given.setenv("REDIS_URL_FILE", str(unreadable))
        assert f"REDIS_URL_FILE: cannot be read: {why}" in _refused(ServiceSettings)
    file.write_bytes(b"\xff\xfe\xff")
    given.setenv("REDIS_URL_FILE", str(file))
    assert "REDIS_URL_FILE: holds no text" in _refused(ServiceSettings)
    given.setenv("REDIS_URL_FILE", "")
    assert read(ServiceSettings).redis_url == "redis://127.0.0.1:6379/0"


def test_certificates_come_whole_and_with_their_key_or_not_at_all(given: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ca = Authority(tmp_path)
    one, other = ca.issue("one"), ca.issue("other")
    files = {"GLOAMING_TLS_CERT_FILE": one.certificate, "GLOAMING_TLS_KEY_FILE": one.key, "GLOAMING_TLS_CA_FILE": ca.file}
    public = {"GLOAMING_PUBLIC_LISTEN": "127.0.0.1:1", "GLOAMING_PUBLIC_TLS_CERT_FILE": one.certificate}
    public["GLOAMING_PUBLIC_TLS_KEY_FILE"] = one.key
    for kind, together in ((GatewaySettings, files), (ServiceSettings, files), (ServiceSettings, public)):
        with given.context() as patch:
            for name, value in together.items():
                patch.setenv(name, str(value))
            assert read(kind)
            for missing in together:
                with given.context() as less:
                    less.setenv(missing, "")
                    assert f"  {missing} must be set too: all of {', '.join(together)}, or none" in _refused(kind)
            key, certificate = next(each for each in together if "KEY" in each), next(each for each in together if "CERT" in each)
            patch.setenv(key, str(other.key))
            assert f"  {key}: it is not the key of {certificate}" in _refused(kind)
            patch.setenv(key, str(other.certificate))
            assert f"  {key}: holds no private key (PEM, without a password)" in _refused(kind)
            patch.setenv(key, str(one.key))
            patch.setenv(certificate, str(one.key))
            assert f"  {certificate}: holds no certificate (PEM)" in _refused(kind)


def test_variables_that_nobody_knows_are_told(given: pytest.MonkeyPatch) -> None:
    given.setenv("GLOAMING_BOT_DELAY", "0")
    given.setenv("GLOAMING_REDIS_URL", "redis://127.0.0.1")
    given.setenv("GLOAMING_BOT_DELAY_MS", "0")
    assert unknown(GatewaySettings, ServiceSettings) == ["GLOAMING_BOT_DELAY", "GLOAMING_REDIS_URL"]
    given.delenv("GLOAMING_SIGNING_KEY_FILE")
    given.delenv("GLOAMING_SERVICES")
    assert unknown(ServiceSettings) == ["GLOAMING_BOT_DELAY", "GLOAMING_REDIS_URL"]


# Real processes.


async def _start(module: str, keys: Keys, **variables: object) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GLOAMING_", "REDIS_URL"))}
    own = _environment(keys) if module == "gateway" else {"GLOAMING_JWKS_FILE": str(keys.jwks), "GLOAMING_METRICS_LISTEN": ""}
    given = own | {"REDIS_URL": "redis://127.0.0.1:1/0"} | {name: str(value) for name, value in variables.items()}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", module], env=clean | given, capture_output=True, text=True, timeout=60, check=False)

    return await asyncio.to_thread(run)


async def test_a_process_that_cannot_start_says_what_to_set_and_ends(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Keys(tmp_path / "other")
    (junk := tmp_path / "junk").write_text('{"keys": [{"kty": "other"}]}')
    taken: Any = await asyncio.start_server(lambda *_: None, "127.0.0.1", free_port())
    address = "{}:{}".format(*taken.sockets[0].getsockname())
    wrong: list[tuple[str, str, object]] = [
        ("gateway", "GLOAMING_SIGNING_KEY_FILE", junk),
        ("gateway", "GLOAMING_JWKS_FILE", junk),
        ("gateway", "GLOAMING_JWKS_FILE", other.jwks),
        ("gateway", "GLOAMING_LISTEN", address),
        ("gateway", "GLOAMING_TLS_CERT_FILE", junk),
        ("services.night_clan", "GLOAMING_JWKS_FILE", junk),
        ("services.night_clan", "GLOAMING_LISTEN", address),
        ("services.night_clan", "GLOAMING_HEALTH_LISTEN", address),
        ("services.night_clan", "GLOAMING_METRICS_LISTEN", address),
        ("services.night_clan", "REDIS_URL", "redis://:hush/hush@redis.example"),
    ]
    listen = {"GLOAMING_LISTEN": f"127.0.0.1:{free_port()}"}
    ends = []
    for module, name, value in wrong:
        ends.append(await _start(module, keys, **{**listen, name: value}))
    taken.close()
    for (module, name, _), end in zip(wrong, ends, strict=True):
        assert end.returncode == 1, (module, name)
        assert end.stderr.splitlines()[-1].lstrip().startswith(f"{name}: "), end.stderr
        assert "Traceback" not in end.stderr
        assert "hush" not in end.stderr


async def test_a_misspelled_variable_is_logged_at_the_start(keys: Keys) -> None:
    for module, misspelled in (("gateway", "GLOAMING_CORS_ORIGIN"), ("services.night_clan", "GLOAMING_BOTDELAY_MS")):
        taken: Any = await asyncio.start_server(lambda *_: None, "127.0.0.1", free_port())
        address = "{}:{}".format(*taken.sockets[0].getsockname())
        end = await _start(module, keys, GLOAMING_LISTEN=address, **{misspelled: "1"})
        taken.close()
        logged = [json.loads(line) for line in end.stderr.splitlines() if line.startswith("{")]
        told = [(line["level"], line["variable"]) for line in logged if line["event"] == "unknown_setting"]
        assert told == [("warning", misspelled)]
