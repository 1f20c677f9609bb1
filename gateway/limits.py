"""How much one player, and one address, may ask for.

Each has a bucket of tokens for each kind of call: a call takes one, and they come back one by one. Sign-ins, what makes matches, codes of
rooms and sockets are counted in Redis, by all gateways together: `gateway:limit:{<kind>:<whose>}`, gone when the bucket is full. Moves are
counted in this process, so that a move costs no round trip: a player who moves through several gateways has a bucket at each.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from gateway import exchange, metrics
from gateway.operations import Operation
from gateway.settings import GatewaySettings
from services.kit.errors import NotFound, Throttled, Unauthenticated, Unavailable
from services.kit.identity import Identity
from services.kit.limits import Buckets, Rate, rate
from services.kit.storage import Script, Storage

Kind: TypeAlias = Literal["sign_in", "making", "room", "socket", "move"]
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

# What is counted, by the id of the operation, in this order. Whatever is told the code of a room counts as `room`, a party's ticket too.
LIMITED: Mapping[str, tuple[Kind, ...]] = {
    "createPlayer": ("sign_in",),
    "refreshTokens": ("sign_in",),
    "createMatch": ("making",),
    "rematch": ("making",),
    "createRoom": ("making",),
    "getRoom": ("room",),
    "joinRoom": ("making", "room"),
    "leaveRoom": ("room",),
    "kickMember": ("room",),
    "addBot": ("room",),
    "removeBot": ("room",),
    "sayReady": ("room",),
    "startRoom": ("making", "room"),
    "createTicket": ("making", "room"),
    "submitMove": ("move",),
}

_LUA = Path(__file__).parent / "lua"
_TAKE = Script(_LUA / "take.lua")
_GIVE_BACK = Script(_LUA / "give_back.lua")
_NOUNS: Mapping[Kind, str] = {
    "sign_in": "sign-ins",
    "making": "matches, rooms and tickets asked for",
    "room": "codes tried that no room has",
    "socket": "sockets",
    "move": "moves",
}


class Throttle:
    """Refuses what is too much.

    Every method raises `Throttled` (RATE_LIMITED) then; those that ask Redis raise `Unavailable` where it does not answer.
    """

    def __init__(self, storage: Storage, identity: Identity, settings: GatewaySettings) -> None:
        self._storage = storage
        self._identity = identity
        self._moves = Buckets(rate(settings.limit_moves))
        self._by_player: Mapping[Kind, Rate | None] = {
            "making": rate(settings.limit_making),
            "room": rate(settings.limit_rooms),
            "socket": rate(settings.limit_sockets),
        }
        self._by_address: Mapping[Kind, Rate | None] = {
            "sign_in": rate(settings.limit_sign_ins),
            "making": rate(settings.limit_making_address),
            "room": rate(settings.limit_rooms_address),
            "socket": rate(settings.limit_sockets_address),
        }

    def guarded(self, operation: Operation, handler: Handler) -> Handler:
        """Returns the handler of an operation, with its limits before it."""
        for kind in reversed(LIMITED.get(operation.id, ())):
            handler = self._seeking(handler) if kind == "room" else self._admitting(kind, handler)
        return handler

    def _admitting(self, kind: Kind, handler: Handler) -> Handler:
        async def limited(request: Request) -> Response:
            await self._admit(kind, request)
            return await handler(request)

        return limited

    def _seeking(self, handler: Handler) -> Handler:
        """Counts codes that no room has. They are counted before it is known, since many may be tried at once, and given back after."""

        async def limited(request: Request) -> Response:
            player = self._player(request)
            if player is None:
                return await handler(request)  # it is refused for that
            await self._count("room", player, request.scope)
            missed = False
            try:
                return await handler(request)
            except NotFound as refusal:
                missed = refusal.reason == "ROOM_NOT_FOUND"
                raise
            finally:
                if not missed:
                    await self._give_back("room", player, request.scope)

        return limited

    def move(self, player: str) -> None:
        """Counts a player's move."""
        wait = self._moves.take(player)
        if wait:
            raise _refusal("move", "player", wait)

    async def socket(self, player: str | None, scope: Scope) -> None:
        """Counts a socket that is being opened, by whoever that is."""
        await self._count("socket", player, scope)

    async def _admit(self, kind: Kind, request: Request) -> None:
        player = None
        if kind != "sign_in":
            player = self._player(request)
            if player is None:
                return  # it is refused for that
        if kind == "move":
            assert player is not None
            self.move(player)
        else:
            await self._count(kind, player, request.scope)

    async def _give_back(self, kind: Kind, player: str, scope: Scope) -> None:
        """Gives back what `_count` took."""
        limits = ((player, self._by_player[kind]), (address_of(scope), self._by_address[kind]))
        buckets = [(_key(kind, whose), round(limit.interval * 1_000_000)) for whose, limit in limits if limit is not None]
        # Whoever does not get it back now gets it in time.
        with contextlib.suppress(Unavailable):
            await asyncio.gather(*(self._storage.run(_GIVE_BACK, [key], [interval]) for key, interval in buckets))

    def _player(self, request: Request) -> str | None:
        """Who a request's token is of; None without a good one."""
        try:
            return self._identity.says(exchange.bearer(request)).player
        except Unauthenticated:
            return None

    async def _count(self, kind: Kind, player: str | None, scope: Scope) -> None:
        # The player's first: what is refused there takes nothing from others at the same address.
        if player is not None:
            await self._take(kind, "player", player, self._by_player[kind])
        await self._take(kind, "address", address_of(scope), self._by_address[kind])

    async def _take(self, kind: Kind, of: str, whose: str, rate: Rate | None) -> None:
        if rate is None:
            return
        wait = await self._storage.run(_TAKE, [_key(kind, whose)], [round(rate.interval * 1_000_000), rate.burst])
        if wait:
            raise _refusal(kind, of, wait / 1000)


def _key(kind: Kind, whose: str) -> str:
    return f"gateway:limit:{{{kind}:{whose}}}"


def _refusal(kind: Kind, of: str, wait: float) -> Throttled:
    metrics.THROTTLED.labels(kind, of).inc()
    whose = "by this player" if of == "player" else "from this address"
    return Throttled("RATE_LIMITED", f"too many {_NOUNS[kind]} {whose}; wait for as long as it says, and try again", wait)


def address_of(scope: Scope) -> str:
    """Where a connection comes from, as it is counted: an IPv4 address, or the 64 bits of IPv6 that one household has.

    What stands for an address but is none, as of a UNIX socket or in what a trusted proxy says, counts as one together.
    """
    client = scope.get("client")
    try:
        address = ipaddress.ip_address(client[0] if client else "")
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
