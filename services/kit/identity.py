"""Who is calling: access tokens, and the revocations that outrun them.

A token is a JWT (RFC 7519) signed with EdDSA by the gateway or by an operator's command. Services hold public keys alone, so that none of
them can mint one. Claims: `iss` and `aud` "gloaming", `sub` the player's id, `name`, `scope` (words: `play`, `host`, …), `gen` the
player's sign-in generation, `iat`, `exp`. Signing out raises the generation; `gateway:revoked:<player>` holds the lowest one that still
counts, for as long as an older token could live.
"""

from __future__ import annotations

import copy
import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt

from services.kit.errors import Forbidden, Throttled, Unauthenticated
from services.kit.limits import Buckets
from services.kit.storage import Storage

ISSUER = AUDIENCE = "gloaming"
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Caller:
    """The bearer of a good token.

    Args:
        player: the player's id.
        name: the name that others see.
        scopes: what the token is good for.
        generation: the sign-in generation that it belongs to.
        expires: when it runs out, in seconds since the epoch.
    """

    player: str
    name: str
    scopes: frozenset[str]
    generation: int
    expires: float

    def require(self, scope: str) -> None:
        """Raises `Forbidden` (SCOPE_MISSING) unless the token has the scope."""
        if scope not in self.scopes:
            raise Forbidden("SCOPE_MISSING", f"this needs a token with the scope {scope}")


def revocation_key(player: str) -> str:
    """The key that holds the lowest sign-in generation of a player that still counts."""
    return f"gateway:revoked:{player}"


class Identity:
    """Checks tokens against a set of public keys (JWKS, RFC 7517) and the revocations in storage."""

    def __init__(self, jwks: Mapping[str, Any], storage: Storage) -> None:
        self._keys = {key.key_id: key for key in jwt.PyJWKSet.from_dict(dict(jwks)).keys}
        self._storage = storage
        self._known: OrderedDict[str, Caller] = OrderedDict()
        self._calls = Buckets(None)

    @classmethod
    def from_file(cls, path: Path, storage: Storage) -> Identity:
        """Reads a JWKS file."""
        return cls(json.loads(path.read_text()), storage)

    def counting(self, calls: Buckets) -> Identity:
        """The same, for calls of which a player may make only so many."""
        counting = copy.copy(self)
        counting._calls = calls
        return counting

    async def caller(self, authorization: str | None) -> Caller:
        """Returns the bearer of an `Authorization: Bearer` value.

        Raises:
            Unauthenticated: TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED, TOKEN_REVOKED.
            Unavailable: revocations cannot be read.
            Throttled: RATE_LIMITED, where calls are counted.
        """
        caller = self.says(authorization)
        await self.recheck(caller)
        # Only now: whoever has an old token of a player uses up nothing of theirs.
        if wait := self._calls.take(caller.player):
            raise Throttled("RATE_LIMITED", "too many calls by this player; wait for as long as it says, and try again", wait)
        return caller

    def says(self, authorization: str | None) -> Caller:
        """Returns whose token it says it is, by a signature of ours; it may have run out or been revoked.

        Raises:
            Unauthenticated: TOKEN_MISSING, TOKEN_INVALID.
        """
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthenticated("TOKEN_MISSING", "send authorization: Bearer <access token>")
        return self._verify(token.strip())

    async def recheck(self, caller: Caller) -> None:
        """Makes sure that a token is still good, for a call that goes on for long. Raises as `caller` does."""
        if caller.expires <= time.time():
            raise Unauthenticated("TOKEN_EXPIRED", "the access token has run out; refresh it")
        lowest = await self._storage.get(revocation_key(caller.player))
        if lowest is not None and caller.generation < int(lowest):
            raise Unauthenticated("TOKEN_REVOKED", "the player has signed out; sign in again")

    def _verify(self, token: str) -> Caller:
        """Returns what a token says, its signature checked once and remembered."""
        caller = self._known.get(token)
        if caller is None:
            caller = self._decode(token)
            self._known[token] = caller
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return caller

    def _decode(self, token: str) -> Caller:
        try:
            key = self._keys[jwt.get_unverified_header(token)["kid"]]
            claims = jwt.decode(
                token,
                key,
                algorithms=["EdDSA"],
                audience=AUDIENCE,
                issuer=ISSUER,
                # `exp` is checked at each use; `iat` proves nothing, and would fail where this machine's clock is behind the gateway's.
                options={"require": ["exp", "sub", "gen", "scope"], "verify_exp": False, "verify_iat": False},
            )
            return Caller(
                player=str(claims["sub"]),
                name=str(claims.get("name", "")),
                scopes=frozenset(str(claims["scope"]).split()),
                generation=int(claims["gen"]),
                expires=float(int(claims["exp"])),
            )
        except (jwt.PyJWTError, KeyError, TypeError, ValueError, OverflowError) as fault:
            raise Unauthenticated("TOKEN_INVALID", "the access token is malformed, or signed by a key that is not ours") from fault
