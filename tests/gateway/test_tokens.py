"""Keys and tokens, and the command line that makes them."""

from __future__ import annotations

import json
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
