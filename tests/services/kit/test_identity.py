from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from redis.asyncio import Redis

from deploy.redis_server import RedisServer
from services.kit import identity as identities
from services.kit.errors import Forbidden, Unauthenticated, Unavailable
from services.kit.identity import Identity
from services.kit.storage import Storage
from tests.harness import Keys


@pytest.fixture
def identity(keys: Keys, storage: Storage) -> Identity:
    return Identity.from_file(keys.jwks, storage)


class Forge:
    """Signs whatever it is asked to, by the key of the gateway unless told otherwise."""

    def __init__(self, keys: Keys) -> None:
        key = serialization.load_pem_private_key(keys.pem.read_bytes(), None)
        assert isinstance(key, Ed25519PrivateKey)
        self.key = key
        (self.jwk,) = json.loads(keys.jwks.read_text())["keys"]

    def __call__(self, *, without: str = "", key: Any = None, algorithm: str = "EdDSA", headers: Any = None, **claims: Any) -> str:
        good = {"iss": "gloaming", "aud": "gloaming", "sub": "ann", "name": "Ann", "scope": "play host", "gen": 3, "exp": time.time() + 900}
        payload = {name: value for name, value in (good | claims).items() if name != without}
        return raw(payload, {"kid": self.jwk["kid"], **(headers or {})}, key or self.key, algorithm)


def raw(payload: Any, headers: dict[str, Any], key: Any, algorithm: str) -> str:
    """A token whose claims the library for once does not check."""
    signer = jwt.PyJWS()
    return signer.encode(json.dumps(payload).encode(), key, algorithm, headers=headers)


@pytest.fixture
def forge(keys: Keys) -> Forge:
    return Forge(keys)


async def reason(identity: Identity, authorization: str | None) -> str:
    with pytest.raises(Unauthenticated) as refused:
        await identity.caller(authorization)
    # Nothing of the token comes back.
    token = (authorization or "").partition(" ")[2]
    assert len(token) < 4 or token not in str(refused.value)
    return refused.value.reason


async def test_a_good_token_says_who_calls(identity: Identity, forge: Forge) -> None:
    for authorization in (f"Bearer {forge()}", f"bearer {forge()}", f"BEARER  {forge()} "):
        caller = await identity.caller(authorization)
        assert (caller.player, caller.name, caller.scopes, caller.generation) == ("ann", "Ann", frozenset({"play", "host"}), 3)
    caller.require("play")
    with pytest.raises(Forbidden) as refused:
        caller.require("admin")
    assert refused.value.reason == "SCOPE_MISSING"


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer ", "Bearer   ", "Basic YW5uOmFubg==", "Token abc"])
async def test_without_a_bearer_token_it_is_missing(identity: Identity, authorization: str | None) -> None:
    assert await reason(identity, authorization) == "TOKEN_MISSING"


BAD: dict[str, Callable[[Forge], str]] = {
    "no token at all": lambda forge: "garbage",
    "two parts": lambda forge: ".".join(forge().split(".")[:2]),
    "empty parts": lambda forge: "..",
    "not ASCII": lambda forge: "é.è.ê",
    "an unpaired surrogate": lambda forge: "\ud800.a.b",
    "no signature": lambda forge: ".".join(forge().split(".")[:2]) + ".",
    "a changed signature": lambda forge: forge()[:-8] + "AAAAAAAA",
    "changed claims": lambda forge: _swapped(forge(sub="ann"), forge(sub="bob")),
    "more behind it": lambda forge: forge() + ".more",
    "another key": lambda forge: forge(key=Ed25519PrivateKey.generate()),
    "a key of another kind": lambda forge: forge(key=generate_private_key(65537, 2048), algorithm="RS256"),
    "no signature, by its own word": lambda forge: jwt.encode({"sub": "ann"}, "", "none", headers={"kid": forge.jwk["kid"]}),
    "the public key as a secret": lambda forge: _hmac(forge, base64.urlsafe_b64decode(forge.jwk["x"] + "=")),
    "the public key's text as a secret": lambda forge: _hmac(forge, forge.jwk["x"].encode()),
    "the public key's PEM as a secret": lambda forge: _hmac(
        forge,
        forge.key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
    ),
    "no key id": lambda forge: raw({}, {}, forge.key, "EdDSA"),
    "another key id": lambda forge: forge(headers={"kid": "other"}),
    "a key id that is no text": lambda forge: _header(forge, kid=["a"]),
    "a key id that is a mapping": lambda forge: _header(forge, kid={"a": 1}),
    "a key in its own header": lambda forge: forge(key=Ed25519PrivateKey.generate(), headers={"jwk": forge.jwk}),
    "a critical header": lambda forge: forge(headers={"crit": ["exp"]}),
    "another issuer": lambda forge: forge(iss="other"),
    "no issuer": lambda forge: forge(without="iss"),
    "another audience": lambda forge: forge(aud="other"),
    "no audience": lambda forge: forge(without="aud"),
    "no subject": lambda forge: forge(without="sub"),
    "a subject that is no text": lambda forge: forge(sub=7),
    "no generation": lambda forge: forge(without="gen"),
    "a generation that is no number": lambda forge: forge(gen="x"),
    "a generation that is nothing": lambda forge: forge(gen=None),
    "no scope": lambda forge: forge(without="scope"),
    "no expiry": lambda forge: forge(without="exp"),
    "an expiry that is no number": lambda forge: forge(exp="soon"),
    "an expiry that is nothing": lambda forge: forge(exp=None),
    "an expiry that never comes": lambda forge: forge(exp=float("inf")),
    "an expiry that is not a number": lambda forge: forge(exp=float("nan")),
    "claims that are a list": lambda forge: raw(["ann"], {"kid": forge.jwk["kid"]}, forge.key, "EdDSA"),
    "claims that are no JSON": lambda forge: jwt.PyJWS().encode(b"\xff", forge.key, "EdDSA", headers={"kid": forge.jwk["kid"]}),
    "not yet": lambda forge: forge(nbf=time.time() + 600),
}


def _swapped(token: str, other: str) -> str:
    header, _, signature = token.split(".")
    return f"{header}.{other.split('.')[1]}.{signature}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _hmac(forge: Forge, secret: bytes) -> str:
    header = _encoded(json.dumps({"alg": "HS256", "typ": "JWT", "kid": forge.jwk["kid"]}).encode())
    signed = f"{header}.{forge().split('.')[1]}"
    return f"{signed}.{_encoded(hmac.digest(secret, signed.encode(), hashlib.sha256))}"


def _header(forge: Forge, **fields: Any) -> str:
    header = _encoded(json.dumps({"alg": "EdDSA", "typ": "JWT", **fields}).encode())
    signed = f"{header}.{forge().split('.')[1]}"
    return f"{signed}.{_encoded(forge.key.sign(signed.encode()))}"


@pytest.mark.scenario(8)
@pytest.mark.parametrize("kind", BAD)
async def test_a_bad_token_is_invalid(identity: Identity, forge: Forge, kind: str) -> None:
    assert await reason(identity, f"Bearer {BAD[kind](forge)}") == "TOKEN_INVALID"
    assert not identity._known


@pytest.mark.scenario(8)
async def test_a_token_that_has_run_out_is_expired(identity: Identity, forge: Forge) -> None:
    assert await reason(identity, f"Bearer {forge(exp=time.time() - 1)}") == "TOKEN_EXPIRED"
    assert await reason(identity, f"Bearer {forge(exp=0)}") == "TOKEN_EXPIRED"


@pytest.mark.scenario(8)
async def test_a_token_of_an_earlier_sign_in_is_revoked(identity: Identity, forge: Forge, redis: Redis) -> None:
    await redis.set(identities.revocation_key("ann"), 3)
    assert (await identity.caller(f"Bearer {forge(gen=3)}")).generation == 3
    await redis.set(identities.revocation_key("ann"), 4)
    assert await reason(identity, f"Bearer {forge(gen=3)}") == "TOKEN_REVOKED"
    assert (await identity.caller(f"Bearer {forge(gen=4)}")).generation == 4
    assert (await identity.caller(f"Bearer {forge(sub='bob', gen=3)}")).player == "bob"


async def test_a_token_seen_before_still_runs_out_and_is_still_revoked(
    identity: Identity, forge: Forge, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    expiring, revoked = forge(), forge(sub="bob")
    callers = [await identity.caller(f"Bearer {token}") for token in (expiring, revoked)]
    await redis.set(identities.revocation_key("bob"), 4)
    assert await reason(identity, f"Bearer {revoked}") == "TOKEN_REVOKED"
    with pytest.raises(Unauthenticated, match="TOKEN_REVOKED"):
        await identity.recheck(callers[1])
    monkeypatch.setattr("services.kit.identity.time.time", lambda: callers[0].expires + 0.001)
    assert await reason(identity, f"Bearer {expiring}") == "TOKEN_EXPIRED"
    with pytest.raises(Unauthenticated, match="TOKEN_EXPIRED"):
        await identity.recheck(callers[0])


async def test_a_fresh_token_is_good_where_the_clock_is_behind_the_gateways(identity: Identity, forge: Forge) -> None:
    assert (await identity.caller(f"Bearer {forge(iat=time.time() + 120)}")).player == "ann"


async def test_so_many_tokens_are_remembered_and_no_more(identity: Identity, forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "_REMEMBERED", 10)
    tokens = [forge(sub=f"p{n}") for n in range(25)]
    for token in tokens:
        await identity.caller(f"Bearer {token}")
    assert list(identity._known) == tokens[-10:]
    # The forgotten are checked anew.
    assert (await identity.caller(f"Bearer {tokens[0]}")).player == "p0"


async def test_each_key_of_the_set_is_known_by_its_id(keys: Keys, forge: Forge, storage: Storage, tmp_path: Path) -> None:
    other = Keys(tmp_path / "other")
    both = {"keys": [forge.jwk, Forge(other).jwk]}
    identity = Identity(both, storage)
    for each in (keys, other):
        assert (await identity.caller(f"Bearer {each.token('ann')}")).player == "ann"
    # One key does not speak under the other's name.
    assert await reason(identity, f"Bearer {forge(key=Forge(other).key)}") == "TOKEN_INVALID"


async def test_where_revocations_cannot_be_read_nobody_is_let_in(keys: Keys, forge: Forge, dead: Storage) -> None:
    with pytest.raises(Unavailable):
        await Identity.from_file(keys.jwks, dead).caller(f"Bearer {forge()}")


@pytest.fixture
async def dead(private: RedisServer) -> AsyncIterator[Storage]:
    storage = Storage(private.url)
    private.kill()
    yield storage
    await storage.close()
