"""Rooms: private tables with a code. `gateway.room` holds their rules; here they are stored, and their matches are made.

Keys: `gateway:{room/<code>}:room` (a document, written by compare and set), `gateway:{<player>}:rooms` (sorted set: codes of rooms that the
player came to), and for all rooms together `gateway:{rooms}:starting` (sorted set: codes of rooms whose match is being made). All but the
last expire when nothing changes any more.

A start is noted before it is written, and the same write mints the match's id. So whoever dies between that and the end leaves a note by
which another gateway goes on, with the same id: one match, however often it is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeAlias
from weakref import WeakValueDictionary

import grpc
import msgspec
import structlog
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

from gateway import exchange, transcoding
from gateway import room as rules
from gateway.answers import Answers
from gateway.exchange import Answer
from gateway.host import Host, mint
from gateway.metrics import ROOMS
from gateway.news import News
from gateway.operations import Handler, Makes, operation, says
from gateway.players import Players
from gateway.registry import GAMES, descriptor_of
from gateway.room import OPEN, STARTED, STARTING, Room
from gateway.schemas import Schema, Schemas, name_of, one_of_games
from gateway.upstream import Services
from gloaming.gateway.v1 import gateway_pb2
from gloaming.table.v1 import table_pb2
from services.kit import requests
from services.kit.errors import Error, NotFound, Raced, Refused, Unavailable, Unreadable
from services.kit.identity import Caller
from services.kit.problems import STATUS_BY_CODE
from services.kit.storage import Script, Storage

_LUA = Path(__file__).parent / "lua"
_LOAD = Script(_LUA / "room_load.lua")
_PUT = Script(_LUA / "room_put.lua")
_SCHEDULE = Script(_LUA / "room_schedule.lua")
_CLAIM = Script(_LUA / "room_claim.lua")
_SETTLE = Script(_LUA / "room_settle.lua")
_INDEX = Script(_LUA / "room_index.lua")

# Without those that are taken for others (I, L, O, Q, U): 86 million codes.
LETTERS = "ABCDEFGHJKMNPRSTVWXYZ"
_CODE = re.compile(f"[{LETTERS}]{{6}}")
# So many codes are tried until one is free.
_CODES = 20
_STARTING = "gateway:{rooms}:starting"
# For so long a start is left to the gateway that began it, and then to the one that claimed it.
_LEASE_MS = 10_000
_SWEEP_SECONDS = 1.0
_SWEPT_AT_ONCE = 32
# So often others may change a room between its reading and its writing; each time one of them has got through.
_TRIES = 100
_DAY_SECONDS = 86_400
_ANSWER_SECONDS = _DAY_SECONDS
# So many rooms that a player came to last are remembered.
_MOST_ROOMS = 20

_Verb: TypeAlias = Callable[[Room], Room]
_log = structlog.get_logger(__name__)


def _create_body(schemas: Schemas) -> Schema:
    refs = {}
    for game in GAMES.values():
        name = name_of(descriptor_of(game.messages["Options"])).removesuffix("Options") + "CreateRoom"
        schema = schemas.object(descriptor_of(gateway_pb2.CreateRoomRequest))
        schema["properties"]["game"] = {"type": "string", "enum": [game.id]}
        about = {"description": schema["properties"]["options"]["description"]}
        schema["properties"]["options"] = schemas.ref(descriptor_of(game.messages["Options"])) | about
        schema["properties"]["seats"] |= {"minimum": game.min_seats, "maximum": game.max_seats, "default": game.max_seats}
        schema["required"] = ["game"]
        schemas.named[name] = schema
        refs[game.id] = {"$ref": f"#/components/schemas/{name}"}
    return one_of_games(refs)


def _kick_body(schemas: Schemas) -> Schema:
    ref = schemas.ref(descriptor_of(gateway_pb2.KickRequest))
    schema = schemas.named[name_of(descriptor_of(gateway_pb2.KickRequest))]
    schema["properties"]["player"] |= {"minLength": 1}
    schema["required"] = ["player"]
    return ref


class PartyTickets(Protocol):
    """Who knows what becomes of the tickets with which rooms' players look for others."""

    async def cancel(self, ticket_id: str) -> None:
        """Cancels the ticket of a party that is about to change; does nothing where it has ended.

        Raises:
            Refused: TICKET_MATCHED; others were found, and the match is being made.
        """

    async def is_live(self, ticket_id: str) -> bool:
        """Whether there may be a match of it yet."""


def _verb(
    name: str, *, body: type[Message] | Makes = gateway_pb2.Empty, body_required: bool = False, means: str = ""
) -> Callable[[Handler], Handler]:
    """What all verbs of a room have in common."""
    return operation(
        "POST",
        f"/v1/rooms/{{code:identifier}}:{name}",
        tag="rooms",
        body=body,
        body_required=body_required,
        answers={200: says(gateway_pb2.Room, means=means)},
        parameters=("Idempotency-Key",),
        problems=(401, 403, 404, 409, 422),
    )


class Rooms:
    """The resource `rooms`. Open it where the event loop runs, so that starts that others left are gone on with: `async with rooms`.

    Args:
        seconds: how long a room is kept in which nothing happens.
        tickets: what becomes of the tickets of parties; it is to be set before one is made.
    """

    def __init__(
        self,
        storage: Storage,
        services: Services,
        players: Players,
        answers: Answers,
        host: Host,
        news: News,
        *,
        seconds: float,
        tickets: PartyTickets | None = None,
    ) -> None:
        self._storage = storage
        self._services = services
        self._players = players
        self._answers = answers
        self._host = host
        self._news = news
        self._open_ms = int(seconds * 1000)
        self._started_ms = max(self._open_ms, _DAY_SECONDS * 1000)
        self.tickets = tickets
        # Whoever changes a room through this gateway goes one after the other: only gateways race.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._sweeping: asyncio.Task[None] | None = None

    @operation(
        "POST",
        "/v1/rooms",
        tag="rooms",
        body=_create_body,
        answers={201: says(gateway_pb2.Room, "Location", means="The room, its host in it")},
        parameters=("Idempotency-Key",),
        problems=(401, 403, 422),
    )
    async def create_room(self, request: Request) -> Response:
        """Opens a room, with the caller as its host.

        Whoever has its code may join. What the game itself says of the options is said when the room starts: 400 then, and the room is open
        again. A room in which nothing happens ends after some time, and one without players at once.
        """
        caller = await self._players.caller(request)
        asked = await exchange.parse(request, gateway_pb2.CreateRoomRequest)
        _check(asked)
        key = exchange.idempotency_key(request)

        async def run(mark: str) -> Response:
            room, expires = await self._open(mark, asked, caller)
            return Answer(room.message(expires), 201, {"Location": f"/v1/rooms/{room.code}"})

        return await self._answers.once(request, key, scope=caller.player, asked=asked, mint=_mint_mark, seconds=_ANSWER_SECONDS, run=run)

    @operation("GET", "/v1/rooms/{code:identifier}", tag="rooms", answers={200: says(gateway_pb2.Room)}, problems=(401, 403, 404))
    async def get_room(self, request: Request) -> Response:
        """A room as it is now.

        For anybody who knows its code, so that a link shows who is there before one joins.
        """
        await self._players.caller(request)
        room, expires = await self._looked(*await self._load(_code(request)))
        return Answer(room.message(expires))

    @_verb("join")
    async def join_room(self, request: Request) -> Response:
        """Joins a room.

        For whoever is there already it does nothing. 403 (KICKED) for whom the host has sent out; 422 (ROOM_FULL, ROOM_STARTED).

        Whatever changes who is in a room, or who is ready, cancels the ticket with which its players look for others. In the moment in
        which others have been found and the match is being made, that is refused instead: 422 (TICKET_MATCHED), try again.
        """
        caller = await self._players.caller(request)
        await exchange.no_body(request)

        async def run(code: str, _: str) -> Response:
            name = await self._name(caller)
            await self._index(caller.player, code)
            return await self._answer(code, lambda room: rules.join(room, caller.player, name))

        return await self._once(request, caller, gateway_pb2.Empty(), run)

    @_verb("leave", means="The room, without the caller; without a host when it has ended")
    async def leave_room(self, request: Request) -> Response:
        """Leaves a room.

        For whoever is not there it does nothing. When the host leaves, whoever came first of those that remain becomes host; when the last
        player leaves, the room ends. 422 (ROOM_STARTED, or TICKET_MATCHED where others were found) in the moment in which its match is
        being made: try again. To leave the room of a match that is there does not leave the match.
        """
        caller = await self._players.caller(request)
        await exchange.no_body(request)

        async def run(code: str, _: str) -> Response:
            return await self._answer(code, lambda room: rules.leave(room, caller.player))

        return await self._once(request, caller, gateway_pb2.Empty(), run)

    @_verb("kick", body=_kick_body, body_required=True)
    async def kick_member(self, request: Request) -> Response:
        """Sends a player out of a room.

        For its host. The player may not come back, as long as there is the room. Bots are removed by `:removeBot`.
        """
        caller = await self._players.caller(request)
        asked = await exchange.parse(request, gateway_pb2.KickRequest)
        if not asked.player:
            raise Unreadable("player", "must be a player's id")

        async def run(code: str, _: str) -> Response:
            return await self._answer(code, lambda room: rules.kick(room, caller.player, asked.player))

        return await self._once(request, caller, asked, run)

    @_verb("addBot")
    async def add_bot(self, request: Request) -> Response:
        """Adds a bot to a room.

        For its host. Each call adds one; a retry under the same Idempotency-Key does not.
        """
        caller = await self._players.caller(request)
        await exchange.no_body(request)

        async def run(code: str, mark: str) -> Response:
            return await self._answer(code, lambda room: rules.add_bot(room, caller.player, mark))

        return await self._once(request, caller, gateway_pb2.Empty(), run)

    @_verb("removeBot")
    async def remove_bot(self, request: Request) -> Response:
        """Removes the bot that was added last from a room.

        For its host.
        """
        caller = await self._players.caller(request)
        await exchange.no_body(request)

        async def run(code: str, _: str) -> Response:
            return await self._answer(code, lambda room: rules.remove_bot(room, caller.player))

        return await self._once(request, caller, gateway_pb2.Empty(), run)

    @_verb("ready", body=gateway_pb2.ReadyRequest)
    async def say_ready(self, request: Request) -> Response:
        """Says whether one is ready for the match.

        It holds until one says otherwise or leaves, whoever else comes or goes. The host is always ready. Not to be ready any more cancels
        the ticket with which the room's players look for others.
        """
        caller = await self._players.caller(request)
        asked = gateway_pb2.ReadyRequest()
        if body := await exchange.body(request):
            asked = transcoding.parse(body, gateway_pb2.ReadyRequest)
        ready = asked.ready if asked.HasField("ready") else True

        async def run(code: str, _: str) -> Response:
            return await self._answer(code, lambda room: rules.say_ready(room, caller.player, ready))

        return await self._once(request, caller, asked, run)

    @_verb("start", means="The room, with its match")
    async def start_room(self, request: Request) -> Response:
        """Has the match of a room made, with those who are there; the order of seats is drawn.

        For its host, once everybody is ready (422 NOT_READY) and there are enough for the game (422 TOO_FEW_MEMBERS), and not while the
        host has too many matches going (422 TOO_MANY_MATCHES). There is one match, however often it is asked for: whoever of the members
        asks again gets it. Where the game's service refuses the options or the settings, the room is open again, and this answers what the
        service said.
        """
        caller = await self._players.caller(request)
        await exchange.no_body(request)

        async def run(code: str, _: str) -> Response:
            room, _expires = await self._load(code)
            match_id = mint(GAMES[room.game])
            # Whether they may have another match is not told to who could not start this one.
            if rules.start(room, caller.player, match_id) is not room:
                await self._host.admit(caller.player, exchange.bearer(request))
            room, expires = await self._change(code, lambda room: rules.start(room, caller.player, match_id))
            if room.status == STARTING:
                room, expires = await self._make(room)
            return Answer(room.message(expires))

        return await self._once(request, caller, gateway_pb2.Empty(), run)

    async def read(self, player: str, code: str) -> Message | None:
        """Returns a room for a player who was told that it has changed; it may be that they are not in it any more. None when it has ended.

        Raises:
            Unavailable: STORAGE_UNAVAILABLE.
        """
        with contextlib.suppress(NotFound):
            room, expires = await self._looked(*await self._load(code))
            return room.message(expires)
        return None

    async def of(self, player: str) -> tuple[str, ...]:
        """Returns the codes of the rooms that a player is in, the one that they came to last first.

        Raises:
            Unavailable: STORAGE_UNAVAILABLE.
        """
        noted: Any = await self._storage.call(self._storage.redis.zrange(_index_key(player), 0, -1, desc=True))
        codes = [code.decode() for code in noted]
        found = await asyncio.gather(*(self._storage.run(_LOAD, [_key(code)], []) for code in codes))
        return tuple(code for code, there in zip(codes, found, strict=True) if there and player in _decode(there[0]).players)

    async def forget(self, player: str) -> None:
        """Has a player leave every room whose match is neither there nor being made, as by `:leave`.

        Raises:
            Raced: ROOM_BUSY.
            Unavailable: STORAGE_UNAVAILABLE.
        """
        for code in await self.of(player):
            with contextlib.suppress(NotFound, Refused):
                await self._change(code, lambda room: rules.leave(room, player) if room.status == OPEN else room)
        await self._storage.call(self._storage.redis.delete(_index_key(player)))

    async def party(self, code: str, player: str) -> tuple[tuple[str, ...], gateway_pb2.CreateTicketRequest]:
        """Returns the ids of the players who are to be matched together, in the order in which they came, and for what: a game, its options
        and settings. The host asks; all are ready.

        Raises:
            NotFound: ROOM_NOT_FOUND.
            Forbidden: NOT_A_MEMBER, NOT_THE_HOST.
            Refused: ROOM_STARTED, NOT_READY.
        """
        room, _ = await self._load(canonical(code))
        settings = table_pb2.Settings.FromString(room.settings)
        return rules.party(room, player), gateway_pb2.CreateTicketRequest(game=room.game, options=room.options, settings=settings)

    async def queued(self, code: str, ticket_id: str, players: tuple[str, ...] | None = None) -> None:
        """Notes the ticket with which a room's players look for others; from then on it is cancelled when they change.

        Args:
            players: for whom the ticket was made.

        Raises:
            NotFound: ROOM_NOT_FOUND.
            Refused: ROOM_STARTED.
            Raced: PARTY_CHANGED; they are others by now, and the ticket is to be given up.
        """

        def verb(room: Room) -> Room:
            if players is not None and room.players != players:
                raise Raced("PARTY_CHANGED", "somebody has come or gone; try again")
            return rules.queued(room, ticket_id)

        await self._change(canonical(code), verb)

    async def party_over(self, code: str, ticket_id: str) -> None:
        """A ticket has ended with which a room's players looked for others; nothing changes where they look with another, or it is gone.

        Raises:
            Raced: ROOM_BUSY.
            Unavailable: STORAGE_UNAVAILABLE.
        """
        with contextlib.suppress(NotFound):
            await self._change(canonical(code), lambda room: rules.unqueued(room, ticket_id), cancel=False)

    async def _looked(self, room: Room, expires: int) -> tuple[Room, int]:
        """Looks at a room's ticket, and returns the room: without it where it has ended and nobody has said so."""
        ticket_id = room.ticket_id
        if not ticket_id or self.tickets is None or await self.tickets.is_live(ticket_id):
            return room, expires
        return await self._change(room.code, lambda there: rules.unqueued(there, ticket_id), cancel=False)

    async def _open(self, mark: str, asked: gateway_pb2.CreateRoomRequest, caller: Caller) -> tuple[Room, int]:
        """Opens a room unless this request has opened it before, under the first of its codes that is free; returns it as it is now."""
        name = await self._name(caller)
        for code in _codes(mark):
            await self._index(caller.player, code)
            room = rules.opened(code, mark, asked, caller.player, name)
            written, stored, expires = await self._put(None, room)
            if written:
                ROOMS.labels("opened").inc()
                await self._tell(room.players, code)
                return room, expires
            there = _decode(stored)
            if there.mark == mark:
                return there, expires
        raise Unavailable("NO_CODE_FREE", "no code was found for the room; try again")

    async def _answer(self, code: str, verb: _Verb) -> Response:
        room, expires = await self._looked(*await self._change(code, verb))
        return Answer(room.message(expires))

    async def _once(self, request: Request, caller: Caller, asked: Message, run: Callable[[str, str], Awaitable[Response]]) -> Response:
        """Carries a verb out on the room that the path names; with an Idempotency-Key only once, as far as that matters.

        Args:
            run: is given the room's code, and a mark of the request that a retry under its key has as well.
        """
        code = _code(request)
        key = exchange.idempotency_key(request)
        return await self._answers.once(
            request,
            key,
            scope=caller.player,
            asked=asked,
            mint=_mint_mark,
            seconds=_ANSWER_SECONDS,
            run=lambda mark: run(code, mark),
        )

    async def _load(self, code: str) -> tuple[Room, int]:
        """Returns a room, and when it expires."""
        found = await self._storage.run(_LOAD, [_key(code)], [])
        if found is None:
            raise _no_room()
        return _decode(found[0]), int(found[1])

    async def _put(self, before: Room | None, after: Room, latest: int = 0) -> tuple[bool, bytes, int]:
        """Writes a room, if it is still as it was before; returns whether it is written, what is stored now and when that expires."""
        lifetime = self._started_ms if after.status == STARTED else self._open_ms
        new = _encode(after) if after.players else b""
        written, stored, expires = await self._storage.run(
            _PUT, [_key(after.code)], [_encode(before) if before else b"", new, lifetime, latest]
        )
        return bool(written), stored, int(expires)

    async def _change(self, code: str, verb: _Verb, *, cancel: bool = True) -> tuple[Room, int]:
        """Changes a room, judged on what it is when it is written; returns it as it has become, and when it expires.

        Args:
            cancel: whether a ticket that is the room's no more is to be cancelled; otherwise it has ended.

        Raises:
            NotFound: ROOM_NOT_FOUND.
            Raced: ROOM_BUSY; others kept changing it first.
            Error: as the verb does.
        """
        async with self._locks.setdefault(code, asyncio.Lock()):
            before, expires = await self._load(code)
            for _ in range(_TRIES):
                after = verb(before)
                if after is before:
                    return before, expires
                starts = after.status == STARTING != before.status
                if cancel and before.ticket_id and not after.ticket_id and self.tickets is not None:
                    await self.tickets.cancel(before.ticket_id)
                # What is due, and what is to be told to nobody else, first: whoever stops right after the write has left nothing undone.
                latest = await self._storage.run(_SCHEDULE, [_STARTING], [code, _LEASE_MS]) if starts else 0
                written, stored, expires = await self._put(before, after, latest)
                if written:
                    break
                if not stored:
                    raise _no_room()
                before = _decode(stored)
            else:
                raise Raced("ROOM_BUSY", "others kept changing the room first; try again")
        if became := _became(before, after):
            ROOMS.labels(became).inc()
        await self._tell((*after.players, *(player for player in before.players if player not in after.players)), code)
        return after, expires

    async def _make(self, room: Room) -> tuple[Room, int]:
        """Makes the match of a room that is starting, unless it is there, and returns the room as it has become.

        Raises:
            Error, grpc.aio.AioRpcError: it is refused, and the room is open again; or cannot be made now, and some gateway will go on.
        """
        game = GAMES[room.game]
        request = self._services[game.id].request("CreateMatch")(
            match_id=room.match_id,
            options=game.messages["Options"].FromString(room.options),
            settings=table_pb2.Settings.FromString(room.settings),
            seats=[
                table_pb2.SeatRequest(player=member.player, name=member.name)
                if member.player
                else table_pb2.SeatRequest(bot=table_pb2.Bot.STANDARD)
                for member in room.members
            ],
            order=table_pb2.Seating.DRAWN,
        )
        try:
            await self._host.make(game, request)
        except (Error, grpc.aio.AioRpcError) as refusal:
            code = refusal.code if isinstance(refusal, Error) else refusal.code()
            if STATUS_BY_CODE.get(code, 500) < 500:
                await self._change(room.code, lambda there: rules.reopened(there, room.match_id))
            raise
        after, expires = await self._change(room.code, lambda there: rules.started(there, room.match_id))
        await self._storage.call(self._storage.redis.zrem(_STARTING, room.code))
        return after, expires

    async def _sweep(self) -> None:
        """Goes on with starts that were begun and did not come to an end: their gateway died, or the game's service was away."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            try:
                claimed, *codes = await self._storage.run(_CLAIM, [_STARTING], [_LEASE_MS, _SWEPT_AT_ONCE])
            except Error as fault:
                _log.warning("sweep_failed", reason=fault.reason)
                continue
            except Exception:
                _log.exception("sweep_failed")
                continue
            await asyncio.gather(*(self._go_on(code.decode(), claimed) for code in codes))

    async def _go_on(self, code: str, claimed: int) -> None:
        try:
            room, _ = await self._load(code)
            if room.status == STARTING:
                await self._make(room)
                _log.info("start_resumed", game=room.game)
                return
        except NotFound:
            pass
        except (Error, grpc.aio.AioRpcError) as fault:
            _log.warning("start_failed", code=fault.code.name if isinstance(fault, Error) else fault.code().name)
            return  # The lease ends, and it comes again.
        except Exception:
            _log.exception("start_failed")
            return
        with contextlib.suppress(Unavailable):
            await self._storage.run(_SETTLE, [_STARTING], [code, claimed])

    async def _tell(self, players: tuple[str, ...], code: str) -> None:
        # What was changed is stored. Whoever cannot hear of it now has lost the storage as well, and reads all again when it is back.
        with contextlib.suppress(Unavailable):
            await self._news.tell(players, "room", code)

    async def _index(self, player: str, code: str) -> None:
        """Notes a room that a player is about to be in; first, since one that they did not get into drops out by itself."""
        await self._storage.run(_INDEX, [_index_key(player)], [code, _MOST_ROOMS, self._started_ms])

    async def _name(self, caller: Caller) -> str:
        with contextlib.suppress(NotFound):
            return (await self._players.profile(caller.player)).name
        return caller.name or caller.player  # an operator's token has no profile

    async def __aenter__(self) -> Rooms:
        self._sweeping = asyncio.create_task(self._sweep())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)


def canonical(code: str) -> str:
    """Returns a code in capitals.

    Raises:
        NotFound: ROOM_NOT_FOUND; it is no code.
    """
    capitals = code.upper()
    if not _CODE.fullmatch(capitals):
        raise _no_room()
    return capitals


def _code(request: Request) -> str:
    return canonical(request.path_params["code"])


def _check(asked: gateway_pb2.CreateRoomRequest) -> None:
    """Raises `Unreadable` unless a room may be asked for like this; fills in how many may come."""
    game = GAMES.get(asked.game)
    if game is None:
        raise Unreadable("game", f"must be one of {', '.join(GAMES)}")
    if not asked.HasField("seats"):
        asked.seats = game.max_seats
    if not game.min_seats <= asked.seats <= game.max_seats:
        raise Unreadable("seats", f"must be {game.min_seats} to {game.max_seats}")
    requests.settings(asked.settings)


def _became(before: Room, after: Room) -> str:
    """What became of a room, for the metric; nothing where that is not counted."""
    if not after.players:
        return "ended"
    if before.status == STARTING and after.status != STARTING:
        return "started" if after.status == STARTED else "refused"
    return ""


def _mint_mark() -> str:
    return secrets.token_hex(12)


def _codes(mark: str) -> list[str]:
    """The codes that a room of this mark may have: a retry of the request that opens it comes to the same."""
    codes = []
    for n in range(_CODES):
        number = int.from_bytes(hashlib.sha256(f"{mark}/{n}".encode()).digest())
        codes.append("".join(LETTERS[number // len(LETTERS) ** place % len(LETTERS)] for place in range(6)))
    return codes


def _key(code: str) -> str:
    return f"gateway:{{room/{code}}}:room"


def _index_key(player: str) -> str:
    return f"gateway:{{{player}}}:rooms"


def _encode(room: Room) -> bytes:
    return msgspec.msgpack.encode(room)


def _decode(document: bytes) -> Room:
    return msgspec.msgpack.decode(document, type=Room)


def _no_room() -> NotFound:
    return NotFound("ROOM_NOT_FOUND", "there is no room of this code")
