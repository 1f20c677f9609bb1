"""TLS: a certificate, its key and the authorities others are checked against, in files; and what gRPC makes of them.

Files that are renewed, as cert-manager does, are taken up without a restart. Servers look for that at each handshake, clients whenever they
ask for `renewed`. Where renewed files are not good, or not all of them there yet, those from before go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

_DER, _INFO = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pems:
    """What is in the files.

    Args:
        certificate: the certificate, and those that lead up to its authority.
        key: its key.
        authorities: whose certificates others must have; None: they need none.
    """

    certificate: bytes
    key: bytes
    authorities: bytes | None


def certificates(pem: bytes) -> list[x509.Certificate]:
    """Reads certificates, at least one.

    Raises:
        ValueError: there is none, or one that cannot be read.
    """
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise ValueError("holds no certificate (PEM)") from None


def public_half(pem: bytes) -> bytes:
    """Reads a private key, and returns what is public of it.

    Raises:
        ValueError: it cannot be read.
    """
    try:
        return serialization.load_pem_private_key(pem, password=None).public_key().public_bytes(_DER, _INFO)
    except (TypeError, ValueError, UnsupportedAlgorithm):  # no PEM, one under a password, or of a kind that nobody knows
        raise ValueError("holds no private key (PEM, without a password)") from None


def fits(certificate: bytes, key: bytes) -> bool:
    """Whether a key is that of a certificate. Raises as `certificates` and `public_half` do."""
    of: CertificatePublicKeyTypes = certificates(certificate)[0].public_key()
    return of.public_bytes(_DER, _INFO) == public_half(key)


class Certificate:
    """A certificate in files.

    Args:
        certificate: its file.
        key: that of its key.
        authorities: that of whose certificates others must have; None: they need none.

    Attributes:
        pems: what is in them, as last read.

    Raises:
        OSError: one cannot be read.
        ValueError: one is not good.
    """

    def __init__(self, certificate: Path, key: Path, authorities: Path | None = None) -> None:
        self._files = [certificate, key, *([authorities] if authorities else [])]
        self._seen = self._look()
        self.pems = self._read()

    def renewed(self) -> Pems:
        """Returns what is in the files, read again where they changed."""
        try:
            seen, last = self._look(), self._seen
            # First, so that what is not good is said once.
            self._seen = seen
            if seen != last:
                self.pems = self._read()
                log.info("certificate_renewed", file=str(self._files[0]))
        except (OSError, ValueError) as fault:
            log.warning("certificate_unfit", file=str(self._files[0]), error=str(fault))
        return self.pems

    def server(self) -> grpc.ServerCredentials:
        """A server's credentials, always those that are in the files."""
        given = self.pems
        dynamic: Any = grpc.dynamic_ssl_server_credentials  # its stubs do not say that None is "as before"

        # Called at each handshake, by a thread of gRPC's.
        def fetch() -> grpc.ServerCertificateConfiguration | None:
            nonlocal given
            if (pems := self.renewed()) is given:
                return None
            given = pems
            return _of_server(pems)

        made: grpc.ServerCredentials = dynamic(_of_server(given), fetch, require_client_authentication=given.authorities is not None)
        return made

    def _look(self) -> Sequence[tuple[int, int, int]]:
        return [(found.st_mtime_ns, found.st_ino, found.st_size) for found in (file.stat() for file in self._files)]

    def _read(self) -> Pems:
        certificate, key, *authorities = (file.read_bytes() for file in self._files)
        if not fits(certificate, key):
            raise ValueError(f"{self._files[1]} is not the key of {self._files[0]}")
        for each in authorities:
            certificates(each)
        return Pems(certificate, key, authorities[0] if authorities else None)


def _of_server(pems: Pems) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(pems.key, pems.certificate)], root_certificates=pems.authorities)


def of_client(pems: Pems) -> grpc.ChannelCredentials:
    """A client's credentials."""
    return grpc.ssl_channel_credentials(pems.authorities, pems.key, pems.certificate)
