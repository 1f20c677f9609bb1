"""Keys and tokens, and the command line that makes them."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from gateway.__main__ import main
from gateway.app import create_app
from gateway.settings import GatewaySettings
from gateway.tokens import HostToken, Signer, public_jwk, write_keys
from services.kit.identity import Identity
from services.kit.settings import Common, ServiceSettings
from services.kit.storage import Storage
from tests.gateway.stand import targets
from tests.harness import Keys


def test_keys_are_made_once_and_the_private_one_is_its_owners_alone(tmp_path: Path) -> None:
    write_keys(tmp_path / "keys")
    pem, jwks = tmp_path / "keys/signing-key.pem", tmp_path / "keys/jwks.json"
    assert stat.S_IMODE(pem.stat().st_mode) == 0o600
    assert json.loads(jwks.read_text()) == {"keys": [Signer(pem).public]}
    before = pem.read_bytes()
    with pytest.raises(FileExistsError):
        write_keys(tmp_path / "keys")
    jwks.unlink()
    write_keys(tmp_path / "keys")
    assert pem.read_bytes() == before
    assert json.loads(jwks.read_text()) == {"keys": [Signer(pem).public]}


def test_a_keys_id_is_its_thumbprint() -> None:
    # RFC 8037, appendix A.2 and A.3.
    from base64 import urlsafe_b64decode

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = Ed25519PublicKey.from_public_bytes(urlsafe_b64decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo="))
    assert public_jwk(key)["kid"] == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


async def test_services_take_what_the_command_prints(keys: Keys, redis_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["token", "--key", str(keys.pem), "--subject", "ops", "--scope", "host play", "--seconds", "60"])
    storage = Storage(redis_url)
    caller = await Identity.from_file(keys.jwks, storage).caller(f"Bearer {capsys.readouterr().out.strip()}")
    await storage.close()
    assert (caller.player, caller.scopes) == ("ops", frozenset({"host", "play"}))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, r"cannot be read: No such file or directory\.$"),
        (b"no key", r"does not hold an Ed25519 private key \(PEM, without a password\)\.$"),
        (b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n", r"does not hold an Ed25519 private key"),
    ],
)
def test_a_key_that_is_none_is_one_sentence(tmp_path: Path, content: bytes | None, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "key.pem"
    if content is not None:
        key.write_bytes(content)
    with pytest.raises(SystemExit, match=says):
        main(["token", "--key", str(key)])
    monkeypatch.setenv("GLOAMING_SIGNING_KEY_FILE", str(key))
    with pytest.raises(SystemExit, match=says):
        main(["token"])


def test_a_key_under_a_password_and_a_missing_one_are_told(keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = serialization.load_pem_private_key(keys.pem.read_bytes(), password=None)
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    )
    (tmp_path / "key.pem").write_bytes(locked)
    with pytest.raises(SystemExit, match="without a password"):
        main(["token", "--key", str(tmp_path / "key.pem")])
    monkeypatch.delenv("GLOAMING_SIGNING_KEY_FILE", raising=False)
    with pytest.raises(SystemExit, match="--key, or with GLOAMING_SIGNING_KEY_FILE"):
        main(["token"])


def test_a_token_needs_nothing_but_the_key(keys: Keys, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GLOAMING_SIGNING_KEY_FILE", str(keys.pem))
    main(["token"])
    claims = jwt.decode(capsys.readouterr().out.strip(), options={"verify_signature": False})
    assert (claims["sub"], claims["scope"], claims["exp"] - claims["iat"]) == ("ops", "host", 3600)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--seconds", "0"],
        ["--seconds", "31536001"],
        ["--seconds", "-1"],
        ["--seconds", "1e3"],
        ["--scope", "admin"],
        ["--scope", "relay"],
        ["--scope", "host relay"],
        ["--scope", ""],
    ],
)
def test_a_token_of_no_known_scope_or_length_is_not_made(keys: Keys, wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["token", "--key", str(keys.pem), *wrong])
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(rf"argument {wrong[0]}: must be (1 to 31536000|play or host, or both)\n$", said.err)


def test_every_setting_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    main(["settings"])
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in capsys.readouterr().out.splitlines()[2:]]
    assert all(len(row) == 4 and all(row) for row in rows)
    named = {(row[0].strip("`"), row[1]) for row in rows}
    assert {("REDIS_URL", "all"), ("GLOAMING_LISTEN", "gateway"), ("GLOAMING_LISTEN", "services")} <= named
    shared = set(Common.model_fields)
    assert len(rows) == len(named) == len(GatewaySettings.model_fields) + len(ServiceSettings.model_fields) - len(shared)


def test_the_command_makes_keys_once(tmp_path: Path) -> None:
    main(["keys", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"jwks\.json is there already"):
        main(["keys", str(tmp_path)])


def test_a_token_has_an_id_of_its_own(keys: Keys) -> None:
    signer = Signer(keys.pem)
    one, two = (signer.access("p", "Ann", 0)[0] for _ in range(2))
    assert one != two


def test_the_gateways_own_token_is_renewed_before_it_runs_out(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    host = HostToken(Signer(keys.pem))
    first = host.authorization
    assert host.authorization == first
    expires = jwt.decode(first.removeprefix("Bearer "), options={"verify_signature": False})["exp"]
    monkeypatch.setattr("gateway.tokens.time.time", lambda: expires - 50.0)
    assert host.authorization != first


def test_a_key_of_another_kind_or_another_set_is_told_at_once(keys: Keys, tmp_path: Path) -> None:
    pem = tmp_path / "rsa.pem"
    rsa = generate_private_key(65537, 2048)
    pem.write_bytes(rsa.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    with pytest.raises(ValueError, match="Ed25519"):
        Signer(pem)
    write_keys(tmp_path)
    mixed = {"jwks_file": keys.jwks, "signing_key_file": tmp_path / "signing-key.pem", "services": targets("a:1")}
    with pytest.raises(ValueError, match="does not hold the public key"):
        create_app(GatewaySettings.model_validate(mixed))
