"""POSTs to addresses that players gave: nowhere but into the open, or where the operator allows.

A name is looked up here, and the connection is made to the address that was found good: what the name says a moment later does not matter.
No redirect is followed, no proxy asked, no cookie kept, and of the answer only the first line is read.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

from services.kit.errors import Unreadable

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS = frozenset({443, 8443})
_MOST_CHARACTERS = 2048
# What would need to be escaped is refused, so that a URL is the same to everybody who reads it.
_CHARACTERS = re.compile(r"[!$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+", re.ASCII)
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d)(?: [^\r\n]*)?\r?\n")
_LINE_BYTES = 4096
_MOST_LINES = 64
# Names are looked up in threads of their own: slow name servers keep waiting whoever has a name to look up, and nothing else.
_LOOKUPS = 16
# What is_global takes for public in some versions of Python (RFC 6890, 2.2.2).
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class Undelivered(Exception):
    """It was not taken; `reason` says why in a word."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Target:
    """A URL, read.

    Args:
        host: the name or address in it.
        path: with the query.
    """

    secure: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """As the header Host has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def target_of(url: str, networks: Sequence[Network]) -> Target:
    """Reads a URL.

    Args:
        networks: where also http and every port are good; whether it leads there is known once it is called.

    Raises:
        Unreadable: it is none that could be called.
    """
    if len(url) > _MOST_CHARACTERS:
        raise Unreadable("url", f"must be at most {_MOST_CHARACTERS} characters")
    try:
        parts = urlsplit(url) if _CHARACTERS.fullmatch(url) else None
        port = parts.port if parts else None
    except ValueError:
        parts = None
    schemes = ("https", "http") if networks else ("https",)
    if parts is None or parts.scheme not in schemes or not parts.hostname or "@" in parts.netloc or "%" in parts.netloc:
        raise Unreadable("url", f"must be a URL that begins with {' or '.join(f'{each}://' for each in schemes)}")
    secure = parts.scheme == "https"
    port = (443 if secure else 80) if port is None else port
    if port not in PORTS and not networks:
        raise Unreadable("url", f"must have the port {' or '.join(map(str, sorted(PORTS)))}")
    try:
        literal = ipaddress.ip_address(parts.hostname)
    except ValueError:
        literal = None
    target = Target(secure, parts.hostname, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    if literal is not None and not is_good(literal, target, networks):
        raise Unreadable("url", "must lead to a public address")
    return target


def is_good(address: Address, target: Target, networks: Sequence[Network]) -> bool:
    """Whether a target may be called at this address."""
    meant = _meant(address)
    if any(meant[-1] in network for network in networks):
        return True
    return target.secure and target.port in PORTS and all(map(_is_public, meant))


def _meant(address: Address) -> tuple[Address, ...]:
    """An address, and the one of IPv4 where it leads to one in the end."""
    if isinstance(address, ipaddress.IPv6Address):
        teredo = address.teredo
        inner = address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if address.ipv4_mapped is not None:
            return (address.ipv4_mapped,)
        if inner is not None:
            return (address, inner)
    return (address,)


def _is_public(address: Address) -> bool:
    special = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback or address.is_link_local
    local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    # Of NAT64 the address within counts, and it is looked at by itself.
    wrapped = isinstance(address, ipaddress.IPv6Address) and address in _NAT64
    return wrapped or (address.is_global and not special and not local and address not in _PROTOCOLS)


class Outward:
    """Makes the calls.

    Args:
        networks: where targets may be though it is not in the open; there http and every port are good too.
        seconds: how long one may take, from the name's look-up to the first line of the answer.
        context: of TLS; None: the authorities that the machine trusts, or those of SSL_CERT_FILE.
    """

    def __init__(self, networks: Sequence[Network] = (), *, seconds: float = 5.0, context: ssl.SSLContext | None = None) -> None:
        self.networks = tuple(networks)
        self._seconds = seconds
        self._context = context
        self._lookups: ThreadPoolExecutor | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Sends a body once, and returns the status of the answer.

        Raises:
            Undelivered: TIMEOUT; UNREACHABLE, also where the name leads nowhere or to no good address; UNREADABLE, where the answer is no
                HTTP.
        """
        try:
            target = target_of(url, self.networks)
        except Unreadable:  # what is good is set otherwise since it was given
            raise Undelivered("UNREACHABLE") from None
        try:
            async with asyncio.timeout(self._seconds):
                return await self._post(target, body, headers)
        except TimeoutError:
            raise Undelivered("TIMEOUT") from None
        # ssl.CertificateError is an OSError; a name may also be one that cannot be encoded.
        except (OSError, UnicodeError):
            raise Undelivered("UNREACHABLE") from None
        except (EOFError, asyncio.LimitOverrunError):
            raise Undelivered("UNREADABLE") from None

    def close(self) -> None:
        """Looks no more names up."""
        if self._lookups is not None:
            self._lookups.shutdown(wait=False, cancel_futures=True)
            self._lookups = None

    async def _post(self, target: Target, body: bytes, headers: Mapping[str, str]) -> int:
        address = await self._address(target)
        secure = self._tls() if target.secure else None
        reader, writer = await asyncio.open_connection(
            address, target.port, ssl=secure, server_hostname=target.host if secure else None, limit=_LINE_BYTES
        )
        try:
            lines = [
                f"POST {target.path} HTTP/1.1",
                f"Host: {target.authority}",
                f"Content-Length: {len(body)}",
                *(f"{name}: {value}" for name, value in headers.items()),
                "Connection: close",
            ]
            writer.write("\r\n".join([*lines, "", ""]).encode("ascii") + body)
            await writer.drain()
            return await _status(reader)
        finally:
            # At once: nothing that the other side does, or leaves undone, is waited for.
            writer.transport.abort()

    async def _address(self, target: Target) -> str:
        """The address to call, as the name says now.

        Raises:
            OSError: there is none, or none that is good.
        """
        if self._lookups is None:
            self._lookups = ThreadPoolExecutor(_LOOKUPS, "names")
        try:
            found = [str(ipaddress.ip_address(target.host))]
        except ValueError:
            found = await asyncio.get_running_loop().run_in_executor(self._lookups, _look_up, target.host, target.port)
        for each in found:
            if is_good(ipaddress.ip_address(each), target, self.networks):
                return each
        raise OSError("the name leads to no good address")

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = ssl.create_default_context()
        return self._context


def _look_up(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # An address with a zone is of this machine's own links.
    return [str(each[4][0]) for each in found if "%" not in str(each[4][0])]


async def _status(reader: asyncio.StreamReader) -> int:
    """The status of an answer, whatever it said of itself in between (1xx)."""
    for _ in range(_MOST_LINES):
        line = await reader.readuntil(b"\n")
        if not line.startswith(b"HTTP/"):
            continue  # a header of an answer of the kind 1xx
        said = _STATUS.fullmatch(line)
        if said is None:
            break
        if not said[1].startswith(b"1"):
            return int(said[1])
    raise Undelivered("UNREADABLE")
