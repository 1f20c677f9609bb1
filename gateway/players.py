"""Players: guest sign-in, tokens, profiles.

Keys, one slot a player: `gateway:{<player>}:player` (hash: name, created, generation, seen), `gateway:{<player>}:refresh` (sorted set:
SHA-256 of a refresh token, expiry in ms), `gateway:{<player>}:matches`, `gateway:{<player>}:live`. All of them expire when nobody has used
them for the life of a refresh token. `gateway.guests` notes who was seen last when, and forgets whoever was not for long.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import secrets
import unicodedata
import zlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

from gateway import exchange
from gateway.answers import Answers
from gateway.exchange import Answer
from gateway.operations import Makes, operation, says
from gateway.ratings import Ratings
from gateway.registry import descriptor_of
from gateway.schemas import Schema, Schemas, name_of
from gateway.tokens import Signer
from gloaming.gateway.v1 import gateway_pb2
from services.kit.errors import NotFound, Unauthenticated, Unreadable
from services.kit.identity import Caller, Identity, revocation_key
from services.kit.storage import Script, Storage

_LUA = Path(__file__).parent / "lua"
_CREATE = Script(_LUA / "create_player.lua")
_REFRESH = Script(_LUA / "refresh.lua")
_SIGN_OUT = Script(_LUA / "sign_out.lua")
_FORGET = Script(_LUA / "forget.lua")
_REVOKE = Script(_LUA / "revoke.lua")
_SEEN = Script(_LUA / "guest_seen.lua")
_RENAME = Script(_LUA / "rename.lua")

_ID = re.compile(r"p[a-z2-7]{16}")
# Letters and marks by their category, and blank all the same: fillers, the empty pattern of Braille, the joiner of graphemes.
_BLANK = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_NAME_LENGTH = 40
_GRACE_MS = 60_000
_MOST_TOKENS = 20
# A token that is signed while its player signs out may begin its life a little later than the revocation.
_REVOCATION_MARGIN_SECONDS = 60
# Answers with tokens are kept for as long as a client may still be trying; the key that unlocks them must not be guessed.
_ANSWER_SECONDS = 600
_LONG_KEY = 16
# How long a token is good that the gateway makes for itself.
_OWN_SECONDS = 60
_SHARDS = 16


def _with_name(message: type[Message], *, required: bool = False) -> Makes:
    """The schema of a message with a name in it, and what is known of names."""

    def make(schemas: Schemas) -> Schema:
        ref = schemas.ref(descriptor_of(message))
        schema = schemas.named[name_of(descriptor_of(message))]
        schema["properties"]["name"] |= {"minLength": 1, "maxLength": _NAME_LENGTH}
        if required:
            schema["required"] = ["name"]
        return ref

    return make


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a player."""

    id: str
    name: str
    created_ms: int
    generation: int

    @classmethod
    def read(cls, player: str, fields: list[bytes]) -> Profile:
        """Reads what a script returns."""
        name, created, generation = fields
        return cls(player, name.decode(), int(created), int(generation))

    def message(self, ratings: Sequence[gateway_pb2.Rating]) -> gateway_pb2.Player:
        """Returns the profile as others see it."""
        player = gateway_pb2.Player(id=self.id, name=self.name, ratings=ratings)
        player.create_time.FromMilliseconds(self.created_ms)
        return player


class Players:
    """Sign-in and profiles.

    Args:
        access_seconds: how long an access token is good.
        refresh_seconds: how long a refresh token is good.

    Attributes:
        forgetting: what else is done before a player is forgotten; each may be repeated.
    """

    def __init__(
        self, storage: Storage, identity: Identity, signer: Signer, answers: Answers, *, access_seconds: int, refresh_seconds: float
    ) -> None:
        self._storage = storage
        self._identity = identity
        self._signer = signer
        self._answers = answers
        self._ratings = Ratings(storage)
        self._access_seconds = access_seconds
        self._revocation_seconds = access_seconds + _REVOCATION_MARGIN_SECONDS
        self._refresh_ms = int(refresh_seconds * 1000)
        self.forgetting: Sequence[Callable[[str], Awaitable[None]]] = ()

    @operation(
        "POST",
        "/v1/players",
        tag="players",
        body=_with_name(gateway_pb2.CreatePlayerRequest, required=True),
        answers={201: says(gateway_pb2.Session, "Location")},
        parameters=("Idempotency-Key-Long",),
        problems=(422,),
        authorized=False,
    )
    async def create_player(self, request: Request) -> Response:
        """Signs in as a guest.

        Makes a player and a first pair of tokens. Whoever loses both tokens loses the player. With an Idempotency-Key a retry within ten
        minutes gets the same player and tokens; the key must not be one that others could guess.
        """
        asked = await exchange.parse(request, gateway_pb2.CreatePlayerRequest)
        asked.name = clean_name(asked.name)
        key = exchange.idempotency_key(request, least=_LONG_KEY)

        async def run(player: str) -> Response:
            secret, digest = _mint_secret()
            # First, since a player of whom this is not known would not be forgotten with all they own.
            await self.see(player)
            fields = await self._storage.run(_CREATE, _keys(player), [asked.name, digest, self._refresh_ms, _MOST_TOKENS])
            return await self._session(Profile.read(player, fields), secret, 201, {"Location": f"/v1/players/{player}"})

        return await self._answers.once(request, key, scope="", asked=asked, mint=_mint_player, seconds=_ANSWER_SECONDS, run=run)

    @operation(
        "POST",
        "/v1/players:refresh",
        tag="players",
        body=gateway_pb2.RefreshRequest,
        answers={200: says(gateway_pb2.Session)},
        parameters=("Idempotency-Key",),
        problems=(401, 422),
        authorized=False,
    )
    async def refresh_tokens(self, request: Request) -> Response:
        """Buys a fresh pair of tokens with a refresh token.

        The refresh token is used up, but stays good for another minute: a client that lost the answer asks again. 401
        (REFRESH_TOKEN_INVALID) for one that is unknown, used up, expired or signed out.
        """
        asked = await exchange.parse(request, gateway_pb2.RefreshRequest)
        key = exchange.idempotency_key(request)
        player, _, old = asked.refresh_token.partition(".")
        if not _ID.fullmatch(player):
            raise _bad_refresh_token()

        async def run(_: str) -> Response:
            secret, digest = _mint_secret()
            fields = await self._storage.run(_REFRESH, _keys(player), [_digest(old), digest, self._refresh_ms, _GRACE_MS, _MOST_TOKENS])
            if fields is None:
                raise _bad_refresh_token()
            await self.see(player)
            return await self._session(Profile.read(player, fields), secret, 200)

        return await self._answers.once(request, key, scope=player, asked=asked, mint=_mint_player, seconds=_ANSWER_SECONDS, run=run)

    @operation(
        "POST",
        "/v1/players/me:signOut",
        tag="players",
        body=gateway_pb2.Empty,
        body_required=False,
        answers={200: says(gateway_pb2.Empty)},
        parameters=("Idempotency-Key",),
        problems=(401,),
    )
    async def sign_out(self, request: Request) -> Response:
        """Signs out everywhere.

        Once this has answered, no token that the player had is good any more, anywhere. Matches and rooms stay as they are, and tickets
        expire since nobody looks at them any more. A retry with the same Idempotency-Key is answered 200 again, though its token is revoked
        by then.
        """
        caller = None
        try:
            caller = await self.caller(request)
        except Unauthenticated as refusal:
            if refusal.reason != "TOKEN_REVOKED" or "idempotency-key" not in request.headers:
                raise
        await exchange.no_body(request)
        exchange.idempotency_key(request)
        if caller is None:
            return Answer(gateway_pb2.Empty())
        # Whoever stops half-way has not answered, and the caller's token is still good to ask again.
        await revoke(self._storage, caller.player, self._revocation_seconds, caller.generation)
        return Answer(gateway_pb2.Empty())

    @operation("GET", "/v1/players/me", tag="players", answers={200: says(gateway_pb2.Player)}, problems=(401, 404))
    async def get_me(self, request: Request) -> Response:
        """Own profile."""
        caller = await self.caller(request)
        return Answer(await self._whole(await self.profile(caller.player)))

    @operation(
        "PATCH",
        "/v1/players/me",
        tag="players",
        body=_with_name(gateway_pb2.UpdatePlayerRequest),
        answers={200: says(gateway_pb2.Player)},
        problems=(401, 404),
    )
    async def update_me(self, request: Request) -> Response:
        """Changes the own profile.

        Matches made before keep the old name.
        """
        caller = await self.caller(request)
        asked = await exchange.parse(request, gateway_pb2.UpdatePlayerRequest)
        name = clean_name(asked.name) if asked.HasField("name") else ""
        player, _ = _keys(caller.player)
        fields = await self._storage.run(_RENAME, [player], [name])
        if fields is None:
            raise _no_player()
        return Answer(await self._whole(Profile.read(caller.player, fields)))

    @operation("DELETE", "/v1/players/me", tag="players", answers={200: says(gateway_pb2.Empty)}, problems=(401, 409))
    async def delete_me(self, request: Request) -> Response:
        """Forgets the caller.

        Cancels the tickets that wait, leaves the rooms that are open, signs out everywhere and removes the profile, the list of matches,
        the ratings and the places in leaderboards. Matches that there are, or that are being made, go on without the player, and expire in
        their time.
        """
        caller = await self.caller(request)
        # The token is revoked last, so that whoever got no answer may ask again, and what was not done is done then. First what others
        # would meet the player in; then in the same order as for signing out, and for the same reason.
        for forget in self.forgetting:
            await forget(caller.player)
        generation = await self._remove(caller.player, caller.generation)
        # After the profile: who has none gets no rating any more.
        await self._ratings.forget(caller.player)
        await self._storage.call(self._storage.redis.zrem(guests_key(caller.player), caller.player))
        await self._revoke(caller.player, generation)
        return Answer(gateway_pb2.Empty())

    async def forget_unseen(self, player: str, since_ms: int) -> bool:
        """Forgets a player as `delete_me` does, unless they were seen after that time, in ms by the storage's clock; returns whether it
        did.

        It may be repeated, also after it was cut short.

        Raises:
            Raced: ROOM_BUSY.
            Unavailable: STORAGE_UNAVAILABLE.
        """
        # Here the profile goes first, for that decides: whoever has none cannot come back.
        generation = await self._remove(player, 0, since_ms)
        if generation < 0:
            return False
        for forget in self.forgetting:
            await forget(player)
        await self._ratings.forget(player)
        await self._revoke(player, generation)
        return True

    @operation(
        "GET",
        "/v1/players/{player_id:identifier}",
        tag="players",
        answers={200: says(gateway_pb2.Player)},
        problems=(404,),
        authorized=False,
    )
    async def get_player(self, request: Request) -> Response:
        """A player's public profile, with ratings."""
        return Answer(await self._whole(await self.profile(request.path_params["player_id"])))

    async def caller(self, request: Request) -> Caller:
        """Returns who is calling, with a token that is good for playing.

        Raises:
            Unauthenticated: as `Identity.caller`.
            Forbidden: SCOPE_MISSING.
        """
        caller = await self._identity.caller(exchange.bearer(request))
        caller.require("play")
        return caller

    async def profile(self, player: str) -> Profile:
        """Returns a player's profile.

        Raises:
            NotFound: PLAYER_NOT_FOUND.
        """
        if not _ID.fullmatch(player):
            raise _no_player()
        fields = await self._fields(player)
        if None in fields:
            raise _no_player()
        return Profile.read(player, fields)

    async def known(self, players: Iterable[str]) -> dict[str, Profile]:
        """Returns the profiles of those of these players who have one."""
        asked = [player for player in players if _ID.fullmatch(player)]
        found = await asyncio.gather(*map(self._fields, asked))
        return {player: Profile.read(player, fields) for player, fields in zip(asked, found, strict=True) if None not in fields}

    def authorization(self, profile: Profile) -> str:
        """The value of `authorization` for a call that the gateway makes for a player who is not there."""
        token, _ = self._signer.access(profile.id, profile.name, profile.generation, "play", _OWN_SECONDS)
        return f"Bearer {token}"

    async def see(self, player: str) -> None:
        """Notes that a player was seen now. Raises as `forget_unseen`."""
        await self._storage.run(_SEEN, [guests_key(player)], [player, 2 * self._refresh_ms])

    async def _remove(self, player: str, generation: int, unseen_since: int | None = None) -> int:
        keys = [*_keys(player), matches_key(player), live_key(player)]
        return int(await self._storage.run(_FORGET, keys, [generation, "" if unseen_since is None else unseen_since]))

    async def _fields(self, player: str) -> Any:
        return await self._storage.fields(_keys(player)[0], "name", "created", "generation")

    async def _whole(self, profile: Profile) -> gateway_pb2.Player:
        return profile.message(await self._ratings.of_player(profile.id))

    async def _revoke(self, player: str, generation: int) -> None:
        await self._storage.run(_REVOKE, [revocation_key(player)], [generation, self._revocation_seconds * 1000])

    async def _session(self, profile: Profile, secret: str, status: int, headers: dict[str, str] | None = None) -> Response:
        token, expires = self._signer.access(profile.id, profile.name, profile.generation, "play", self._access_seconds)
        player = await self._whole(profile)
        session = gateway_pb2.Session(player=player, access_token=token, refresh_token=f"{profile.id}.{secret}")
        session.expire_time.FromDatetime(expires)
        return Answer(session, status, {**(headers or {}), "Cache-Control": "no-store"})


async def revoke(storage: Storage, player: str, seconds: float, generation: int = 0) -> int:
    """Ends every token that a player has, anywhere; returns from which sign-in generation on tokens count.

    Args:
        seconds: for how long it is remembered; a token that is good for longer would come back then.
        generation: that of the token that asks, for a player without a profile.

    Raises:
        Unavailable: STORAGE_UNAVAILABLE.
    """
    # Two slots, so two scripts. First the new generation, which also ends the refresh tokens: from here on nobody gets another token of
    # the old generation. Then the revocation of those that are out.
    lowest = int(await storage.run(_SIGN_OUT, _keys(player), [generation]))
    await storage.run(_REVOKE, [revocation_key(player)], [lowest, round(seconds * 1000)])
    return lowest


def clean_name(name: str) -> str:
    """Returns a name as it is kept: composed (NFC), without white space around it.

    Raises:
        Unreadable: it is not 1 to 40 characters, as sent and as kept, or has characters that cannot be seen or have no meaning.
    """
    clean = unicodedata.normalize("NFC", name).strip()
    if any(character in _BLANK or unicodedata.category(character) in _UNSEEN for character in clean):
        raise Unreadable("name", "has a blank, control, format, private or unassigned character")
    if not clean or max(len(name), len(clean)) > _NAME_LENGTH:
        raise Unreadable("name", f"must be 1 to {_NAME_LENGTH} characters")
    return clean


def signed_in(player: str) -> bool:
    """Whether a player's id is one that signing in gives; one of an operator's token has no profile."""
    return _ID.fullmatch(player) is not None


def matches_key(player: str) -> str:
    """The key of the index of a player's matches."""
    return f"gateway:{{{player}}}:matches"


def live_key(player: str) -> str:
    """The key of those of a player's matches that may still be going."""
    return f"gateway:{{{player}}}:live"


def guests_keys() -> list[str]:
    """The keys of when each guest was seen last (sorted sets: player, ms)."""
    return [f"gateway:{{guests/{shard}}}:seen" for shard in range(_SHARDS)]


def guests_key(player: str) -> str:
    """The key among them that has a player."""
    return guests_keys()[zlib.crc32(player.encode()) % _SHARDS]


def _keys(player: str) -> list[str]:
    return [f"gateway:{{{player}}}:player", f"gateway:{{{player}}}:refresh"]


def _mint_player() -> str:
    return "p" + base64.b32encode(secrets.token_bytes(10)).decode().lower()


def _mint_secret() -> tuple[str, bytes]:
    """Returns a secret and the hash under which it is kept."""
    secret = secrets.token_urlsafe(32)
    return secret, _digest(secret)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _bad_refresh_token() -> Unauthenticated:
    return Unauthenticated("REFRESH_TOKEN_INVALID", "the refresh token is used up, expired or signed out; sign in again")


def _no_player() -> NotFound:
    return NotFound("PLAYER_NOT_FOUND", "there is no player of this id")
