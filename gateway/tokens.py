"""Access tokens: the keys they are signed with, and the signing. `services.kit.identity` says what is in them, and checks them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from services.kit.identity import AUDIENCE, ISSUER

KEY_FILE = "signing-key.pem"
JWKS_FILE = "jwks.json"
SCOPES = ("play", "host")


class Signer:
    """Signs access tokens.

    Args:
        key_file: an Ed25519 private key (PKCS 8, PEM).

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds something else.
    """

    def __init__(self, key_file: Path) -> None:
        pem = key_file.read_bytes()
        try:
            key = serialization.load_pem_private_key(pem, password=None)
        except (TypeError, ValueError, UnsupportedAlgorithm):  # no PEM, one under a password, or of a kind that nobody knows
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError(f"{key_file} does not hold an Ed25519 private key (PEM, without a password)")
        self._key = key
        self.public = public_jwk(key.public_key())
        self.key_id = self.public["kid"]

    def access(
        self, player: str, name: str, generation: int, scope: str = "play", seconds: float = 900, now: float | None = None
    ) -> tuple[str, datetime]:
        """Returns a token and the time at which it runs out.

        Args:
            player: whom it speaks for.
            name: the name that others see.
            generation: the player's sign-in generation.
            scope: what it is good for, words apart by spaces.
            seconds: how long it is good.
            now: when it begins, in seconds since the epoch; the present when not given.
        """
        issued = int(time.time() if now is None else now)
        expires = issued + int(seconds)
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": player,
            "name": name,
            "scope": scope,
            "gen": generation,
            "iat": issued,
            "exp": expires,
            "jti": secrets.token_urlsafe(12),
        }
        token = jwt.encode(claims, self._key, algorithm="EdDSA", headers={"kid": self.key_id})
        return token, datetime.fromtimestamp(expires, UTC)


class HostToken:
    """The gateway's own token, renewed before it runs out.

    Its scopes are `host`, to make matches, and `relay`, to speak for the sockets of many players, which nobody else is given.
    """

    _SECONDS = 900
    _MARGIN = 60

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._authorization = ""
        self._renew_at = 0.0

    @property
    def authorization(self) -> str:
        """The value of `authorization` for calls that the gateway makes for itself."""
        if time.time() >= self._renew_at:
            token, _ = self._signer.access("gateway", "gateway", 0, "host relay", self._SECONDS)
            self._authorization = f"Bearer {token}"
            self._renew_at = time.time() + self._SECONDS - self._MARGIN
        return self._authorization


def public_jwk(key: Ed25519PublicKey) -> dict[str, str]:
    """Returns a public key as a JWK (RFC 8037), its id being its thumbprint (RFC 7638)."""
    x = base64.urlsafe_b64encode(key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)).rstrip(b"=").decode()
    named = {"crv": "Ed25519", "kty": "OKP", "x": x}
    thumbprint = hashlib.sha256(json.dumps(named, sort_keys=True, separators=(",", ":")).encode()).digest()
    return {**named, "alg": "EdDSA", "use": "sig", "kid": base64.urlsafe_b64encode(thumbprint).rstrip(b"=").decode()}


def write_keys(directory: Path) -> None:
    """Makes a new key pair in a directory: the private key for the gateway alone, the public one for everybody.

    A private key that is there already, without its public one, is completed.

    Raises:
        FileExistsError: both are there already; they are left as they are.
    """
    directory.mkdir(parents=True, exist_ok=True)
    key_file, jwks_file = directory / KEY_FILE, directory / JWKS_FILE
    if jwks_file.exists():
        raise FileExistsError(f"{jwks_file} is there already")
    if not key_file.exists():
        pem = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        with os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pem)
    jwks_file.write_text(json.dumps({"keys": [Signer(key_file).public]}, indent=2) + "\n")
