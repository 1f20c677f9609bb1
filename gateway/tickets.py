"""Tickets over REST: asking for a match with others, waiting for it, and ceasing to."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import AsyncGenerator, Collection
from typing import Protocol

from google.protobuf.timestamp_pb2 import Timestamp
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from gateway import exchange, streams, transcoding
from gateway.answers import Answers
from gateway.exchange import JSON, Answer
from gateway.matching import Matching, Record, Wish, mint_ticket
from gateway.news import News
from gateway.operations import Says, makes, operation, says
from gateway.players import Players
from gateway.registry import GAMES, Game, descriptor_of
from gateway.schemas import Schema, Schemas, name_of, one_of_games
from gateway.streams import EventStream
from gloaming.gateway.v1 import gateway_pb2
from gloaming.table.v1 import table_pb2
from services.kit import requests
from services.kit.errors import Error, NotFound, Refused, Unreadable

WAITING, FORMING, MATCHED = gateway_pb2.Ticket.WAITING, gateway_pb2.Ticket.FORMING, gateway_pb2.Ticket.MATCHED
LONGEST_WAIT_SECONDS = 30
_MOST_BOTS_SECONDS = 600
_ANSWER_SECONDS = 600
# Whoever waits here looks at the ticket so often at least.
LOOK_SECONDS = 10.0

_ID = re.compile(r"([a-z_]+)-[a-z0-9]{8,40}")
_WAIT = re.compile(r"(\d{1,2}(\.\d{1,3})?)s")


def _create_body(schemas: Schemas) -> Schema:
    refs = {}
    for game in GAMES.values():
        options = descriptor_of(game.messages["Options"])
        name = name_of(options).removesuffix("Options") + "CreateTicket"
        schema = schemas.object(descriptor_of(gateway_pb2.CreateTicketRequest))
        properties = schema["properties"]
        properties["game"] = {"type": "string", "enum": [game.id]}
        properties["options"] = schemas.ref(options) | {"description": properties["options"]["description"]}
        count = {"type": "integer", "format": "int32", "minimum": game.min_seats, "maximum": game.max_seats}
        limits = {"min": count | {"default": game.min_seats}, "max": count | {"default": game.max_seats}}
        about = properties["seats"]["description"]
        properties["seats"] = {"type": "object", "properties": limits, "additionalProperties": False, "description": about}
        properties["botsAfterSeconds"] |= {"minimum": -1, "maximum": _MOST_BOTS_SECONDS}
        schema["required"] = ["game"]
        schemas.named[name] = schema | {"additionalProperties": False}
        refs[game.id] = {"$ref": f"#/components/schemas/{name}"}
    return one_of_games(refs)


class Ratings(Protocol):
    """Who knows how well players play."""

    async def rating(self, player: str, game: str) -> int:
        """A player's rating in a game."""


class Parties(Protocol):
    """Who knows which players are to stay together."""

    async def party(self, code: str, player: str) -> tuple[tuple[str, ...], gateway_pb2.CreateTicketRequest]:
        """The players of a room, for its host, and what it is for: a game, its options and settings.

        Raises:
            Error: there is no such room, it is another's, or it cannot be a party now.
        """

    async def queued(self, code: str, ticket_id: str, players: tuple[str, ...]) -> None:
        """Notes in the room the ticket with which these players of it look for others.

        Raises:
            Error: they are others by now.
        """

    async def party_over(self, code: str, ticket_id: str) -> None:
        """The ticket has ended with which a room's players looked for others."""


class Tickets:
    """The resource `tickets`.

    Args:
        draining: set when this process is about to stop.
    """

    def __init__(
        self,
        matching: Matching,
        players: Players,
        answers: Answers,
        news: News,
        *,
        ratings: Ratings,
        parties: Parties,
        draining: asyncio.Event,
    ) -> None:
        self._matching = matching
        self._players = players
        self._answers = answers
        self._news = news
        self._ratings = ratings
        self._parties = parties
        self._draining = draining
        self._look_seconds = min(LOOK_SECONDS, matching.pace.unseen / 3000)

    @operation(
        "POST",
        "/v1/tickets",
        tag="tickets",
        body=_create_body,
        answers={
            201: says(gateway_pb2.Ticket, "Location", means="The ticket"),
            200: says(gateway_pb2.Ticket, "Location", means="The live ticket from before, which asks for the same"),
        },
        parameters=("Idempotency-Key",),
        problems=(401, 403, 404, 422),
    )
    async def create_ticket(self, request: Request) -> Response:
        """Wishes for a match with others.

        Only who wishes for the same game, options and settings is found; ratings are near at first, and may be farther the longer it waits.
        A player has at most one live ticket a game: asking for the same again returns it, asking for something else is 422 (TICKET_EXISTS).
        A party wishes for what its room is for, else 422 (PARTY_WISH_DIFFERS).
        """
        caller = await self._players.caller(request)
        read = transcoding.read(await exchange.body(request))
        asked = transcoding.build(read, gateway_pb2.CreateTicketRequest)
        key = exchange.idempotency_key(request)
        game = GAMES.get(asked.game)
        if game is None:
            raise Unreadable("game", f"must be one of {', '.join(GAMES)}")
        _complete(game, asked, seats_given=read.get("seats", {}))

        async def run(ticket_id: str) -> Response:
            await self._matching.host.admit(caller.player, exchange.bearer(request))
            players: tuple[str, ...] = (caller.player,)
            if asked.party:
                players, theirs = await self._parties.party(asked.party, caller.player)
                _check_party(asked, theirs)
            said, named = await self._matching.create(game, ticket_id, await self._wish(game, asked, players))
            if said == "OTHER":
                raise Refused("TICKET_EXISTS", "another ticket of yours, or of your party's, waits; cancel it first")
            record = await self._looked(game, named, caller.player)
            if asked.party and record.live:
                record = await self._queue(game, record, caller.player)
            return Answer(self.message(record), 201 if said == "MADE" else 200, {"Location": f"/v1/tickets/{named}"})

        return await self._answers.once(
            request, key, scope=caller.player, asked=asked, mint=lambda: mint_ticket(game), seconds=_ANSWER_SECONDS, run=run
        )

    async def _queue(self, game: Game, record: Record, player: str) -> Record:
        """Notes a party's ticket in its room; returns it as it is then."""
        code = record.request.party
        try:
            await self._parties.queued(code, record.id, record.players)
        except Error:
            await self._matching.end(game, record.id, gateway_pb2.Ticket.CANCELLED)
            raise
        record = await self._looked(game, record.id, player)
        if not record.live:  # It may have ended before the room knew of it.
            await self._parties.party_over(code, record.id)
        return record

    async def _wish(self, game: Game, asked: gateway_pb2.CreateTicketRequest, players: tuple[str, ...]) -> Wish:
        if len(players) > asked.seats.max:
            raise Refused("PARTY_TOO_LARGE", f"the party has {len(players)} players, and at most {asked.seats.max} are to play")
        ratings = await asyncio.gather(*(self._ratings.rating(player, game.id) for player in players))
        default, asks = self._matching.pace.bots, asked.HasField("bots_after_seconds")
        alike = gateway_pb2.CreateTicketRequest(game=game.id, options=asked.options, settings=asked.settings)
        return Wish(
            queue=hashlib.sha256(alike.SerializeToString(deterministic=True)).hexdigest()[:32].encode(),
            asked=hashlib.sha256("\n".join(sorted(players)).encode() + asked.SerializeToString(deterministic=True)).digest(),
            request=asked,
            players=players,
            rating=round(sum(ratings) / len(ratings)),
            bots_ms=default if not asks else None if asked.bots_after_seconds < 0 else asked.bots_after_seconds * 1000,
        )

    @operation(
        "GET",
        "/v1/tickets/{ticket_id:identifier}",
        tag="tickets",
        answers={
            200: Says({JSON: makes(gateway_pb2.Ticket), streams.MEDIA_TYPE: lambda _: {"type": "string"}}, (), "The ticket, or a stream"),
        },
        parameters=("wait",),
        problems=(401, 403, 404),
    )
    async def get_ticket(self, request: Request) -> Response:
        """A ticket of the caller's.

        With `wait` the answer comes as soon as the ticket's status changes, at the latest after so long; at once where it does not change
        any more. With `Accept: text/event-stream` it is streamed, now and at each change, as `event: ticket` with a Ticket as its data; the
        stream ends when the ticket does not change any more. Whoever waits or streams looks at the ticket all the while.
        """
        caller = await self._players.caller(request)
        game, ticket_id = _named(request)
        wait = _wait(exchange.text_query(request, "wait"))
        record = await self._looked(game, ticket_id, caller.player)
        if streams.MEDIA_TYPE in request.headers.get("accept", ""):
            return EventStream(self._frames(game, ticket_id, caller.player), self._draining)
        if wait and record.live:
            record = await self._changed(request, game, record, caller.player, wait)
        return Answer(self.message(record), headers={"Cache-Control": "no-store"})

    @operation(
        "DELETE",
        "/v1/tickets/{ticket_id:identifier}",
        tag="tickets",
        answers={200: says(gateway_pb2.Ticket, means="The ticket: CANCELLED, unless it was over before")},
        problems=(401, 403, 404, 422),
    )
    async def cancel_ticket(self, request: Request) -> Response:
        """Cancels a ticket of the caller's, for all of its players.

        422 (TICKET_MATCHED) when others have been found already.
        """
        caller = await self._players.caller(request)
        game, ticket_id = _named(request)
        if await self._matching.look(game, ticket_id, caller.player) is None:
            raise _no_ticket()
        await self._matching.end(game, ticket_id, gateway_pb2.Ticket.CANCELLED)
        record = await self._looked(game, ticket_id, caller.player)
        if record.status in (FORMING, MATCHED):
            raise _too_late()
        return Answer(self.message(record))

    async def cancel(self, ticket_id: str) -> None:
        """Cancels a ticket, whosever it is, unless it is over; for a party that is about to change.

        Raises:
            Refused: TICKET_MATCHED; others have been found, and the match is being made.
        """
        if (game := _game(ticket_id)) is None:
            return
        await self._matching.end(game, ticket_id, gateway_pb2.Ticket.CANCELLED)
        record = await self._matching.look(game, ticket_id)
        if record is not None and record.status == FORMING:
            raise Refused("TICKET_MATCHED", "others have been found and the match is being made; try again in a moment")

    async def is_live(self, ticket_id: str) -> bool:
        """Whether there may be a match of a ticket yet, whosever it is."""
        game = _game(ticket_id)
        record = None if game is None else await self._matching.look(game, ticket_id)
        return record is not None and record.live

    async def read(self, player: str, ticket_id: str) -> gateway_pb2.Ticket | None:
        """Returns a ticket of a player's, which has been looked at by that; None where there is none."""
        game = _game(ticket_id)
        record = None if game is None else await self._matching.look(game, ticket_id, player)
        return None if record is None else self.message(record)

    async def live(self, player: str) -> list[str]:
        """Returns the ids of a player's live tickets."""
        return await self._matching.live(player)

    async def forget(self, player: str) -> None:
        """Cancels a player's tickets, but for those whose match is being made."""
        for ticket_id in await self._matching.live(player):
            with contextlib.suppress(Refused):
                await self.cancel(ticket_id)

    def message(self, record: Record) -> gateway_pb2.Ticket:
        """Returns a ticket as its players see it."""
        asked = record.request
        ticket = gateway_pb2.Ticket(
            id=record.id,
            game=asked.game,
            options=asked.options,
            settings=asked.settings,
            seats=asked.seats,
            players=record.players,
            status=gateway_pb2.Ticket.Status.Name(record.status),
            match_id=record.match if record.status == MATCHED else "",
            create_time=_timestamp(record.created),
        )
        if record.status == WAITING:
            ticket.explanation.CopyFrom(self._explanation(record))
        if record.status == gateway_pb2.Ticket.FAILED:
            ticket.failure.CopyFrom(gateway_pb2.Failure(reason=record.reason, detail=record.detail))
        return ticket

    def _explanation(self, record: Record) -> gateway_pb2.TicketExplanation:
        pace, seats, waited = self._matching.pace, record.request.seats, record.now - record.created
        explanation = gateway_pb2.TicketExplanation(rating=record.rating, expire_time=_timestamp(record.seen + pace.unseen))
        step = max(n for n, (since, _) in enumerate(pace.bands) if since <= waited)
        band = pace.bands[step][1]
        if band is not None:
            explanation.band = band
        if step + 1 < len(pace.bands):
            since, wider = pace.bands[step + 1]
            explanation.widen_time.CopyFrom(_timestamp(record.created + since))
            if wider is not None:
                explanation.next_band = wider
        fewer = record.created + pace.patience if record.bots is None else min(record.created + pace.patience, record.bots)
        explanation.seats_wanted = seats.min if record.now >= fewer else seats.max
        if record.now < fewer and seats.min < seats.max:
            explanation.fewer_time.CopyFrom(_timestamp(fewer))
        if record.bots is not None:
            explanation.bots_time.CopyFrom(_timestamp(record.bots))
        explanation.summary = _summary(record, explanation)
        return explanation

    async def _looked(self, game: Game, ticket_id: str, player: str) -> Record:
        record = await self._matching.look(game, ticket_id, player)
        if record is None:
            raise _no_ticket()
        return record

    async def _changed(self, request: Request, game: Game, before: Record, player: str, seconds: float) -> Record:
        """Waits until a ticket's status is another one, and returns it; at the latest after so long."""
        loop = asyncio.get_running_loop()
        over, changed, record = loop.time() + seconds, asyncio.Event(), before
        gone = asyncio.ensure_future(_gone(request))
        drained = asyncio.ensure_future(self._draining.wait())
        try:
            async with self._news.listen(player, lambda _: changed.set()):
                while record.status == before.status and not drained.done() and (left := over - loop.time()) > 0:
                    heard = asyncio.ensure_future(changed.wait())
                    await asyncio.wait({gone, drained, heard}, timeout=min(left, self._look_seconds), return_when=asyncio.FIRST_COMPLETED)
                    heard.cancel()
                    if gone.done():
                        raise ClientDisconnect
                    changed.clear()
                    record = await self._looked(game, before.id, player)
        finally:
            gone.cancel()
            drained.cancel()
        return record

    async def _frames(self, game: Game, ticket_id: str, player: str) -> AsyncGenerator[bytes]:
        """Yields a ticket whenever it has changed, or what it waits for has."""
        changed, told = asyncio.Event(), None
        async with self._news.listen(player, lambda _: changed.set()):
            while (record := await self._matching.look(game, ticket_id, player)) is not None:
                ticket = self.message(record)
                explanation = ticket.explanation
                state = (record.version, explanation.band if explanation.HasField("band") else None, explanation.seats_wanted)
                if state != told:
                    told = state
                    yield streams.frame("ticket", str(record.version), transcoding.render(ticket))
                if not record.live:
                    return
                moments = (explanation.widen_time, explanation.fewer_time)
                waits = [moment.ToMilliseconds() / 1000 - record.now / 1000 for moment in moments if moment.seconds]
                try:
                    async with asyncio.timeout(max(0.05, min(self._look_seconds, *waits)) if waits else self._look_seconds):
                        await changed.wait()
                except TimeoutError:
                    continue
                changed.clear()


def _complete(game: Game, asked: gateway_pb2.CreateTicketRequest, seats_given: Collection[str] = ()) -> None:
    """Fills in what was left out, so that equal wishes are equal.

    Args:
        seats_given: which of `seats` were not left out; a number of 0 does not tell.

    Raises:
        Unreadable: something is out of range.
    """
    for name in ("min", "max"):
        if name in seats_given and not game.min_seats <= getattr(asked.seats, name) <= game.max_seats:
            raise Unreadable(f"seats.{name}", f"must be {game.min_seats} to {game.max_seats}")
    asked.seats.min = asked.seats.min or game.min_seats
    asked.seats.max = asked.seats.max or game.max_seats
    if asked.seats.min > asked.seats.max:
        raise Unreadable("seats.max", "must not be less than seats.min")
    if not -1 <= asked.bots_after_seconds <= _MOST_BOTS_SECONDS:
        raise Unreadable("botsAfterSeconds", f"must be -1 to {_MOST_BOTS_SECONDS}")
    options = game.messages["Options"].FromString(asked.options)
    asked.options = options.SerializeToString(deterministic=True)
    settings = table_pb2.Settings()
    settings.CopyFrom(asked.settings)
    settings.MergeFrom(requests.settings(asked.settings))
    asked.settings.CopyFrom(settings)
    asked.party = asked.party.upper()


def _check_party(asked: gateway_pb2.CreateTicketRequest, theirs: gateway_pb2.CreateTicketRequest) -> None:
    """Raises `Refused` where a party is to wish for something else than its room is for."""
    _complete(GAMES[theirs.game], theirs)
    for name in ("game", "options", "settings"):
        if getattr(asked, name) != getattr(theirs, name):
            raise Refused("PARTY_WISH_DIFFERS", f"the {name} must be the room's")


def _summary(record: Record, explanation: gateway_pb2.TicketExplanation) -> str:
    """The whole of it in a sentence."""

    def when(moment: Timestamp) -> str:
        seconds = max(1, round((moment.ToMilliseconds() - record.now) / 1000))
        return f"in {seconds} second{'s' if seconds != 1 else ''}"

    seats, wanted = record.request.seats, explanation.seats_wanted
    missing = max(0, wanted - len(record.players))
    near = f"rated within {explanation.band} of {explanation.rating}" if explanation.HasField("band") else "of any rating"
    said = [f"Looking for {missing} other{'s' if missing != 1 else ''} {near}" if missing else "About to begin"]
    if explanation.HasField("widen_time"):
        wider = f"within {explanation.next_band}" if explanation.HasField("next_band") else "any"
        said.append(f"{wider} {when(explanation.widen_time)}")
    if explanation.HasField("fewer_time"):
        said.append(f"{seats.min} at the table will do {when(explanation.fewer_time)}")
    if explanation.HasField("bots_time"):
        due = explanation.bots_time.ToMilliseconds() <= record.now
        said.append("bots take free seats now" if due else f"bots take free seats {when(explanation.bots_time)}")
    return "; ".join(said) + "."


def _wait(text: str) -> float:
    """Returns how long to wait, in seconds.

    Raises:
        Unreadable: it is not a number of seconds as proto3 JSON writes a Duration, or too long.
    """
    if not text:
        return 0.0
    shaped = _WAIT.fullmatch(text) if text.isascii() else None
    if shaped is None or float(shaped[1]) > LONGEST_WAIT_SECONDS:
        raise Unreadable("wait", f"must be from 0s to {LONGEST_WAIT_SECONDS}s, as in 25s")
    return float(shaped[1])


def _game(ticket_id: str) -> Game | None:
    shaped = _ID.fullmatch(ticket_id)
    return GAMES.get(shaped[1]) if shaped else None


def _named(request: Request) -> tuple[Game, str]:
    ticket_id: str = request.path_params["ticket_id"]
    if (game := _game(ticket_id)) is None:
        raise _no_ticket()
    return game, ticket_id


def _no_ticket() -> NotFound:
    return NotFound("TICKET_NOT_FOUND", "you have no ticket of this id")


def _too_late() -> Refused:
    return Refused("TICKET_MATCHED", "others have been found: it is too late to cancel")


def _timestamp(ms: int) -> Timestamp:
    return Timestamp(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)


async def _gone(request: Request) -> None:
    """Waits until the client has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
