"""Matches over REST. Each call goes on to the game's service with the caller's own token: the gateway decides nothing about a match."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import random
import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import grpc
import structlog
from starlette.requests import Request
from starlette.responses import Response

from gateway import exchange, streams, transcoding
from gateway.answers import Answers
from gateway.exchange import JSON, Answer
from gateway.host import SETTLED_MS, Host, mint
from gateway.metrics import RESUMED
from gateway.operations import Says, each, operation, says
from gateway.players import Players, Profile, matches_key, signed_in
from gateway.registry import GAMES, Game, descriptor_of, game_of
from gateway.schemas import Schema, Schemas, name_of, one_of_games
from gateway.streams import EventStream
from gateway.upstream import Services, Upstream
from gloaming.gateway.v1 import gateway_pb2
from gloaming.table.v1 import table_pb2
from services.kit import logs
from services.kit.cursor import START, Cursor
from services.kit.errors import Forbidden, NotFound, Refused, Unreadable
from services.kit.storage import Script, Storage

_REMATCH = Script(Path(__file__).parent / "lua" / "rematch.lua")
_ANSWER_SECONDS = 86_400
PAGE, MOST_A_PAGE = 20, 50
_ME = "me"
_RESUME_SECONDS = 20.0
_NOT_IN_CREATE = frozenset({"matchId", "seats.name"})
_NOT_IN_MOVE = frozenset({"matchId", "requestId", "expectedVersion"})

_log = structlog.get_logger(__name__)


def _create_body(schemas: Schemas) -> Schema:
    refs = {}
    for game in GAMES.values():
        descriptor = descriptor_of(game.methods["CreateMatch"].request)
        name = name_of(descriptor).removesuffix("Request")
        schema = schemas.object(descriptor, _NOT_IN_CREATE)
        seats = schema["properties"]["seats"]
        for occupant in seats["items"]["oneOf"]:
            if "player" in occupant["properties"]:
                occupant["properties"]["player"] = {"type": "string", "enum": [_ME], "description": "Oneself."}
        seats |= {"minItems": game.min_seats, "maxItems": game.max_seats}
        seats |= {"contains": {"required": ["player"]}, "minContains": 1, "maxContains": 1}
        schema["properties"] = {"game": {"type": "string", "enum": [game.id]}, **schema["properties"]}
        schema["required"] = ["game", "seats"]
        schemas.named[name] = schema
        refs[game.id] = {"$ref": f"#/components/schemas/{name}"}
    return one_of_games(refs)


def _move_body(schemas: Schemas) -> Schema:
    # One object around the moves of all games, not an object a game: so a move that was listed fits, whatever types are made of this.
    any_game = next(iter(GAMES.values()))
    schema = schemas.object(descriptor_of(any_game.methods["SubmitMove"].request), _NOT_IN_MOVE)
    schema["properties"]["move"] = {**schemas.each("Move"), "description": schema["properties"]["move"]["description"]}
    schemas.named["SubmitMove"] = {**schema, "required": ["move"]}
    return {"$ref": "#/components/schemas/SubmitMove"}


class Matches:
    """The resource `matches`.

    Args:
        kept_seconds: how long it is remembered which match is the rematch of which.
        draining: set when this process is about to stop.
    """

    def __init__(
        self,
        storage: Storage,
        services: Services,
        players: Players,
        answers: Answers,
        host: Host,
        *,
        kept_seconds: float,
        draining: asyncio.Event,
    ) -> None:
        self._storage = storage
        self._services = services
        self._players = players
        self._answers = answers
        self._host = host
        self._kept_ms = int(kept_seconds * 1000)
        self._draining = draining

    @operation(
        "POST",
        "/v1/matches",
        tag="matches",
        body=_create_body,
        answers={201: says(each("Match"), "Location", means="The match, as the caller may see it")},
        parameters=("Idempotency-Key",),
        problems=(401, 403, 422),
    )
    async def create_match(self, request: Request) -> Response:
        """Makes a match with oneself and bots at once.

        `me` sits in exactly one of the seats, bots in the others.
        """
        authorization = exchange.bearer(request)
        caller = await self._players.caller(request)
        value = transcoding.read(await exchange.body(request))
        game = GAMES.get(name) if isinstance(name := value.pop("game", None), str) else None
        if game is None:
            raise Unreadable("game", f"must be one of {', '.join(GAMES)}")
        asked = transcoding.build(value, self._services[game.id].request("CreateMatch"), omit=_NOT_IN_CREATE)
        _check_seats(game, asked)
        key = exchange.idempotency_key(request)

        async def run(match_id: str) -> Response:
            return await self._create(game, match_id, asked, caller.player, caller.name, authorization)

        return await self._answers.once(
            request, key, scope=caller.player, asked=asked, mint=lambda: mint(game), seconds=_ANSWER_SECONDS, run=run
        )

    async def _create(self, game: Game, match_id: str, asked: Any, player: str, name: str, authorization: str) -> Response:
        """Makes the match unless it is there, and returns it."""
        await self._host.admit(player, authorization, match_id)
        with contextlib.suppress(NotFound):  # an operator's token has no profile: the token's name will do
            name = (await self._players.profile(player)).name
        create = type(asked)()
        create.CopyFrom(asked)
        create.match_id = match_id
        for seat in create.seats:
            if seat.WhichOneof("occupant") == "player":
                seat.player, seat.name = player, name or player
        await self._host.make(game, create)
        upstream = self._services[game.id]
        match = await upstream.call("GetMatch", authorization, upstream.request("GetMatch")(match_id=match_id))
        return Answer(match, 201, {"Location": f"/v1/matches/{match_id}"})

    @operation(
        "GET",
        "/v1/matches/{match_id:identifier}",
        tag="matches",
        answers={200: says(each("Match"), "ETag"), 304: Says({}, ("ETag",), "Nothing has changed")},
        parameters=("If-None-Match",),
        problems=(401, 403, 404),
    )
    async def get_match(self, request: Request) -> Response:
        """A match as the caller may see it now."""
        upstream, match_id, authorization = self._at(request)
        match = await upstream.call("GetMatch", authorization, upstream.request("GetMatch")(match_id=match_id))
        headers = {"ETag": _etag(match), "Cache-Control": "private, no-cache", "Vary": "Authorization"}
        if exchange.matches_etag(request, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        return Answer(match, headers=headers)

    @operation(
        "GET",
        "/v1/matches/{match_id:identifier}/moves",
        tag="matches",
        answers={200: says(each("ListMovesResponse"))},
        problems=(401, 403, 404),
    )
    async def list_moves(self, request: Request) -> Response:
        """Every legal move of the caller now, with the version they hold for."""
        upstream, match_id, authorization = self._at(request)
        return Answer(await upstream.call("ListMoves", authorization, upstream.request("ListMoves")(match_id=match_id)))

    @operation(
        "POST",
        "/v1/matches/{match_id:identifier}/moves",
        tag="matches",
        body=_move_body,
        answers={200: says(each("SubmitMoveResponse"))},
        parameters=("Idempotency-Key", "If-Match"),
        problems=(401, 403, 404, 409, 412, 422),
    )
    async def submit_move(self, request: Request) -> Response:
        """Plays a move.

        Judged on the match as it is then, or with If-Match only at that version (412). 409 when others kept moving first.
        """
        upstream, match_id, authorization = self._at(request)
        move: Any = await exchange.parse(request, upstream.request("SubmitMove"), omit=_NOT_IN_MOVE)
        move.match_id = match_id
        # Without a key of the client's, one for this request alone: the call may be repeated on its way to the service.
        move.request_id = exchange.idempotency_key(request) or secrets.token_urlsafe(16)
        version = exchange.expected_version(request)
        if version is not None:
            move.expected_version = version
        return Answer(await upstream.call("SubmitMove", authorization, move))

    @operation(
        "POST",
        "/v1/matches/{match_id:identifier}:resign",
        tag="matches",
        body=gateway_pb2.Empty,
        body_required=False,
        answers={200: says(each("ResignResponse"))},
        parameters=("Idempotency-Key",),
        problems=(401, 403, 404, 409, 422),
    )
    async def resign_match(self, request: Request) -> Response:
        """Resigns the caller's seat."""
        upstream, match_id, authorization = self._at(request)
        await exchange.no_body(request)
        request_id = exchange.idempotency_key(request) or secrets.token_urlsafe(16)
        return Answer(await upstream.call("Resign", authorization, upstream.request("Resign")(match_id=match_id, request_id=request_id)))

    @operation(
        "POST",
        "/v1/matches/{match_id:identifier}:rematch",
        tag="matches",
        body=gateway_pb2.Empty,
        body_required=False,
        answers={
            200: says(each("Match"), "Location", means="The rematch, which somebody else asked for first"),
            201: says(each("Match"), "Location", means="The rematch, as the caller may see it"),
        },
        parameters=("Idempotency-Key",),
        problems=(401, 403, 404, 422),
    )
    async def rematch(self, request: Request) -> Response:
        """Makes the same match once more.

        For whoever had a seat in it, once it is finished: the same players and bots in the same seats, with the same options and settings.
        There is one rematch of a match, however many ask for it. 422 (PLAYER_GONE) where one of the players has been deleted and there is
        no rematch yet.
        """
        upstream, match_id, authorization = self._at(request)
        caller = await self._players.caller(request)
        await exchange.no_body(request)
        key = exchange.idempotency_key(request)
        game = upstream.game
        get = upstream.request("GetMatch")
        match = await upstream.call("GetMatch", authorization, get(match_id=match_id))
        if all(seat.player != caller.player for seat in match.seats):
            raise Forbidden("NOT_YOUR_SEAT", "you had no seat in this match")
        if match.status != table_pb2.FINISHED:
            raise Refused("MATCH_NOT_FINISHED", "a match has a rematch once it is finished")

        rematch_key = f"gateway:{{{match_id}}}:rematch"

        async def run(minted: str) -> Response:
            # Who comes to a rematch that somebody else asked for sits in it already.
            made_before = await self._storage.get(rematch_key)
            seated = [seat.player for seat in match.seats if signed_in(seat.player)]
            known = await self._players.known(seated)
            if len(known) < len(seated):
                there = await self._found(made_before.decode(), authorization) if made_before is not None else None
                if there is None:
                    raise Refused("PLAYER_GONE", "one of the players is not there any more")
                return Answer(there, 200, {"Location": f"/v1/matches/{there.id}"})
            await self._host.admit(caller.player, authorization, minted if made_before is None else made_before.decode())
            again = (await self._storage.run(_REMATCH, [rematch_key], [minted, self._kept_ms])).decode()
            create = upstream.request("CreateMatch")(
                match_id=again,
                options=match.options,
                settings=match.settings,
                seats=[_same_seat(seat, known) for seat in match.seats],
                order=table_pb2.Seating.AS_LISTED,
            )
            await self._host.make(game, create)
            made = await upstream.call("GetMatch", authorization, get(match_id=again))
            return Answer(made, 201 if again == minted else 200, {"Location": f"/v1/matches/{again}"})

        return await self._answers.once(
            request, key, scope=caller.player, asked=gateway_pb2.Empty(), mint=lambda: mint(game), seconds=_ANSWER_SECONDS, run=run
        )

    @operation(
        "GET",
        "/v1/matches/{match_id:identifier}/record",
        tag="matches",
        answers={200: says(each("Record"))},
        problems=(401, 403, 404, 422),
    )
    async def get_record(self, request: Request) -> Response:
        """The whole record of a finished match, its seed included."""
        upstream, match_id, authorization = self._at(request)
        return Answer(await upstream.call("GetRecord", authorization, upstream.request("GetRecord")(match_id=match_id)))

    @operation(
        "GET",
        "/v1/matches/{match_id:identifier}/events",
        tag="matches",
        answers={
            200: Says({JSON: each("ListEventsResponse"), streams.MEDIA_TYPE: lambda _: {"type": "string"}}, (), "A page, or a stream"),
            204: Says({}, (), "The stream is over: the match has ended, and the cursor is its last"),
        },
        parameters=("after", "pageSize-Events", "Last-Event-ID"),
        problems=(401, 403, 404, 422),
    )
    async def list_events(self, request: Request) -> Response:
        """The events of a match, a page at a time or as a stream.

        With `Accept: text/event-stream` they are streamed: `event: event` with a MatchEvent as its data, or `event: snapshot` with a Match
        where a cursor does not belong to the match's history; `id:` is the cursor, and Last-Event-ID resumes. The stream ends with the
        match.
        """
        upstream, match_id, authorization = self._at(request)
        after = _cursor(exchange.text_query(request, "after"), "after")
        after = _cursor(request.headers.get("last-event-id", ""), "Last-Event-ID") or after
        size = exchange.int_query(request, "pageSize", 0)
        if streams.MEDIA_TYPE in request.headers.get("accept", ""):
            return await self._stream(upstream, match_id, after, authorization)
        asked = upstream.request("ListEvents")(match_id=match_id, after_cursor=after, page_size=size)
        return Answer(await upstream.call("ListEvents", authorization, asked))

    async def _stream(self, upstream: Upstream, match_id: str, after: str, authorization: str) -> Response:
        # Whatever is wrong is said before the stream begins.
        match: Any = await upstream.call("GetMatch", authorization, upstream.request("GetMatch")(match_id=match_id))
        frames = self._frames(upstream, match_id, after or START, authorization)
        if match.status == table_pb2.FINISHED:
            # All of it is there already, so the first frame comes at once, or never.
            first = await anext(frames, None)
            if first is None:
                return Response(status_code=204)
            frames = _chain(first, frames)
        return EventStream(frames, self._draining)

    async def _frames(self, upstream: Upstream, match_id: str, cursor: str, authorization: str) -> AsyncGenerator[bytes]:
        """Yields the match from a cursor on, to its end; goes on by itself at another replica when one stops."""
        watch = upstream.request("WatchMatch")
        patience = time.monotonic() + _RESUME_SECONDS
        while True:
            call = upstream.stream("WatchMatch", authorization, watch(match_id=match_id, after_cursor=cursor))
            try:
                async for message in call:
                    kind = message.WhichOneof("kind")
                    if kind is None:
                        continue  # a newer service's, and not known here
                    seen = getattr(message, kind)
                    cursor = seen.cursor
                    yield streams.frame(kind, cursor, transcoding.render(seen))
                    patience = time.monotonic() + _RESUME_SECONDS
                return
            except grpc.aio.AioRpcError as end:
                if end.code() is not grpc.StatusCode.UNAVAILABLE or time.monotonic() > patience:
                    # The client comes back with its cursor, and is told what is wrong.
                    _log.info("stream ended", game=upstream.game.id, code=end.code().name)
                    return
            finally:
                call.cancel()
            RESUMED.inc()
            await asyncio.sleep(random.uniform(0.01, 0.25))

    @operation(
        "GET",
        "/v1/players/me/matches",
        tag="matches",
        answers={200: says(gateway_pb2.ListMatchesResponse)},
        parameters=("pageSize", "pageToken"),
        problems=(401,),
    )
    async def list_my_matches(self, request: Request) -> Response:
        """The caller's matches, newest first.

        The newest thousand are kept; those that have expired are left out, so that a page may be shorter than asked for.
        """
        authorization = exchange.bearer(request)
        caller = await self._players.caller(request)
        size = min(exchange.int_query(request, "pageSize", 0) or PAGE, MOST_A_PAGE)
        newest = _read_token(exchange.text_query(request, "pageToken"))
        key = matches_key(caller.player)
        entries = await self._entries(key, newest, size + 1)
        page = entries[:size]
        found = await asyncio.gather(*(self._summary(match_id, authorization) for match_id, _ in page))
        answer = gateway_pb2.ListMatchesResponse(matches=[summary for summary in found if summary is not None])
        if len(entries) > size:
            answer.next_page_token = _write_token(*page[-1])
        settled = time.time() * 1000 - SETTLED_MS
        gone = [match_id for (match_id, made), summary in zip(page, found, strict=True) if summary is None and made < settled]
        if gone:
            await self._storage.call(self._storage.redis.zrem(key, *gone))
        return Answer(answer)

    async def _entries(self, key: str, before: tuple[str, int] | None, count: int) -> list[tuple[str, int]]:
        """Returns matches and when they were made, newest first, from right after one of them on."""
        redis = self._storage.redis
        if before is None:
            read: Any = await self._storage.call(redis.zrange(key, 0, count - 1, desc=True, withscores=True))
            return [(match_id.decode(), int(made)) for match_id, made in read]
        # Those made in the same millisecond are told apart by id; a match that has dropped out of the index still marks its place.
        last, made = before
        same: Any = await self._storage.call(redis.zrange(key, made, made, byscore=True))
        older: Any = await self._storage.call(
            redis.zrange(key, f"({made}", "-inf", desc=True, byscore=True, offset=0, num=count, withscores=True)
        )
        entries = [(match_id.decode(), made) for match_id in reversed(same) if match_id.decode() < last]
        return (entries + [(match_id.decode(), int(score)) for match_id, score in older])[:count]

    async def _summary(self, match_id: str, authorization: str) -> gateway_pb2.MatchSummary | None:
        """Returns a match in short, or None when it is gone."""
        match = await self._found(match_id, authorization)
        if match is None:
            return None
        summary = gateway_pb2.MatchSummary()
        for field in summary.DESCRIPTOR.fields:
            value = getattr(match, field.name)
            if field.is_repeated:
                getattr(summary, field.name).extend(value)
            elif not field.has_presence:
                setattr(summary, field.name, value)
            elif match.HasField(field.name):
                if field.message_type is not None:
                    getattr(summary, field.name).CopyFrom(value)
                else:
                    setattr(summary, field.name, value)
        return summary

    async def _found(self, match_id: str, authorization: str) -> Any:
        """Returns a match, or None when it is gone."""
        try:
            upstream = self._services.of_match(match_id)
            return await upstream.call("GetMatch", authorization, upstream.request("GetMatch")(match_id=match_id))
        except NotFound:
            return None
        except grpc.aio.AioRpcError as refusal:
            if refusal.code() is grpc.StatusCode.NOT_FOUND:
                return None
            raise

    def _at(self, request: Request) -> tuple[Upstream, str, str]:
        """Returns the service of the match that the path names, the match's id, and the caller's authorization."""
        authorization = exchange.bearer(request)
        match_id: str = request.path_params["match_id"]
        logs.about(match_id)
        return self._services.of_match(match_id), match_id, authorization


def _check_seats(game: Game, asked: Any) -> None:
    """Raises `Unreadable` unless the seats are as many as the game takes, `me` in exactly one of them and no other player in any."""
    if not game.min_seats <= len(asked.seats) <= game.max_seats:
        raise Unreadable("seats", f"must be {game.min_seats} to {game.max_seats}")
    for index, seat in enumerate(asked.seats):
        if seat.WhichOneof("occupant") is None:
            raise Unreadable(f"seats[{index}]", "must be a player or a bot")
        if seat.WhichOneof("occupant") == "player" and seat.player != _ME:
            raise Unreadable(f"seats[{index}].player", f"must be {_ME}")
    if sum(seat.player == _ME for seat in asked.seats) != 1:
        raise Unreadable("seats", f"must have {_ME} in exactly one of them")


def _same_seat(seat: table_pb2.Seat, known: Mapping[str, Profile]) -> table_pb2.SeatRequest:
    """Who sat in a seat, under the name that they have now."""
    if not seat.player:
        return table_pb2.SeatRequest(bot=seat.bot)
    return table_pb2.SeatRequest(player=seat.player, name=known[seat.player].name if seat.player in known else seat.name)


def _etag(match: Any) -> str:
    """Returns the tag of a match as one viewer sees it; the time at which it was read makes no difference."""
    read = match.server_time
    match.ClearField("server_time")
    digest = hashlib.sha256(match.SerializeToString(deterministic=True)).digest()
    match.server_time.CopyFrom(read)
    return f'W/"{base64.urlsafe_b64encode(digest[:15]).decode()}"'


def _cursor(text: str, name: str) -> str:
    """Returns a cursor as it was given; judged here, where the name is known under which it came.

    Raises:
        Unreadable: it is neither a cursor nor empty.
    """
    if text:
        Cursor.parse(text, name)
    return text


def _write_token(match_id: str, made: int) -> str:
    return base64.urlsafe_b64encode(f"{made}.{match_id}".encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[str, int] | None:
    if not token:
        return None
    try:
        made, _, match_id = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode().partition(".")
        game_of(match_id)
        if not (made.isascii() and made.isdecimal() and len(made) <= 15):
            raise ValueError(made)
        return match_id, int(made)
    except (binascii.Error, NotFound, ValueError):
        raise Unreadable("pageToken", "must be the nextPageToken of a page") from None


async def _chain(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    try:
        yield first
        async for each in rest:
            yield each
    finally:
        await rest.aclose()
