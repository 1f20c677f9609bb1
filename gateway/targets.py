"""Where a game's replicas are: the addresses behind a target, as gRPC names targets, and channels to them."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterable, Sequence
from typing import Any

import grpc.aio

from services.kit import tls

_HOST_AND_PORT = re.compile(r"[^/]+:\d+")


async def resolve(target: str) -> set[str] | None:
    """Returns the addresses of a target: a channel to each reaches one replica. None when it cannot be resolved now.

    Args:
        target: `host:port`, `dns:///host:port` or `ipv4:address:port,address:port`; anything else is one address, whatever it is.
    """
    scheme, _, rest = target.partition(":")
    if scheme in ("ipv4", "ipv6"):
        return {f"{scheme}:{address}" for address in rest.split(",")}
    if scheme == "dns" and (rest.startswith("///") or not rest.startswith("/")):
        name = rest.removeprefix("///")
    elif _HOST_AND_PORT.fullmatch(target):
        name = target
    else:
        return {target}
    host, port = name.rpartition(":")[::2] if _HOST_AND_PORT.fullmatch(name) else (name, "443")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    # Where a name has both kinds they are two ways to the same replicas.
    family = socket.AF_INET if any(each[0] is socket.AF_INET for each in found) else socket.AF_INET6
    kind = "ipv4:{}:{}" if family is socket.AF_INET else "ipv6:[{}]:{}"
    return {kind.format(*each[4][:2]) for each in found if each[0] is family}


def name_of(target: str) -> str:
    """Returns the name that replicas have by a target, which their certificates must have too: of a list of addresses the first."""
    scheme, _, rest = target.partition(":")
    if scheme in ("dns", "ipv4", "ipv6"):
        return rest.rpartition("/")[2].partition(",")[0]
    return target if _HOST_AND_PORT.fullmatch(target) else "localhost"


class Dialer:
    """Makes channels to the replicas of a target, by TLS where there is a certificate.

    Args:
        target: where they are.
        certificate: what they are shown, and theirs are checked against.
    """

    def __init__(self, target: str, certificate: tls.Certificate | None) -> None:
        self._name = name_of(target)
        self._certificate = certificate

    @property
    def pems(self) -> tls.Pems | None:
        """What a channel made now would go by."""
        return None if self._certificate is None else self._certificate.renewed()

    def __call__(self, addresses: Iterable[str], options: Sequence[tuple[str, Any]]) -> grpc.aio.Channel:
        """Makes a channel to addresses as `resolve` gives them."""
        kind, *more = sorted(addresses)
        # All of one kind, where there are several.
        target = ",".join([kind, *(each.partition(":")[2] for each in more)])
        named = [*options, ("grpc.default_authority", self._name)]
        pems = self.pems
        return grpc.aio.insecure_channel(target, named) if pems is None else grpc.aio.secure_channel(target, tls.of_client(pems), named)
