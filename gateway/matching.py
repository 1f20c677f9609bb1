"""Matching: tickets that wait, and how they come together.

All of a game's matchmaking lies in one slot, so that each step of it is one script. Its keys begin with `gateway:{tickets/<game>}`:
`:ticket:<id>` a ticket (hash; an ended one expires), `:players` the live ticket of each player (hash), `:queue:<wish>` the tickets that
wait for the same (sorted set: by rating), `:due` when each waiting ticket is looked at next (sorted set: ms), `:match:<id>` who is to play
a match that is being made (hash; it expires once that is settled), `:forming` until when each such match is somebody's to make (sorted
set: ms).

Only who wishes for the same meets, so that a wish that no match can be made of harms nobody else. A match is formed in one script, which
claims the tickets and keeps the match's id. Any gateway makes it then, and may make it again: whoever dies on the way is replaced when its
lease is over. Any number of gateways do all of this side by side.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import string
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
import structlog

from gateway import problems
from gateway.host import Host, mint
from gateway.metrics import TICKET_SECONDS, TICKETS, TICKETS_WAITING
from gateway.news import News
from gateway.players import Players
from gateway.registry import GAMES, Game
from gloaming.gateway.v1 import gateway_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import Error, NotFound
from services.kit.storage import Argument, Script, Storage

_LUA = Path(__file__).parent / "lua"
_CREATE, _LOOK, _END = Script(_LUA / "ticket_create.lua"), Script(_LUA / "ticket_look.lua"), Script(_LUA / "ticket_end.lua")
_DUE, _FORM = Script(_LUA / "ticket_due.lua"), Script(_LUA / "ticket_form.lua")
_GROUP, _SETTLE = Script(_LUA / "ticket_group.lua"), Script(_LUA / "ticket_settle.lua")
_LIVE = Script(_LUA / "ticket_live.lua")

_ALPHABET = string.digits + string.ascii_lowercase
# So many that are due are claimed at once.
_AT_ONCE = 64
# What a service refuses for what was asked: it would refuse it again.
_REFUSALS = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.OUT_OF_RANGE,
    }
)
# What a service fails with by a fault of its own. What it does not answer at all is asked until it does.
_FAULTS = frozenset({grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS, grpc.StatusCode.UNIMPLEMENTED})
_MOST_FAULTS = 3

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things take, in ms.

    Args:
        bands: how far another's rating may be, by how long a ticket has waited, widening; None is any. The first is from 0 on.
        patience: how long a ticket holds out for the most seats it wishes for.
        unseen: how long it may go without being looked at.
        bots: after how long bots take free seats, for tickets that do not say; None is never.
        again: how often at least it is tried to match a ticket.
        sweep: how often at least it is looked whether something is due.
        lease: how long a gateway has for what it claimed, before another may take it.
        kept: how long an ended ticket is kept.
        near: how many neighbours by rating are looked at, each way.
    """

    bands: tuple[tuple[int, int | None], ...] = ((0, 100), (5_000, 200), (10_000, 400), (20_000, None))
    patience: int = 10_000
    unseen: int = 30_000
    bots: int | None = 20_000
    again: int = 10_000
    sweep: int = 1_000
    lease: int = 5_000
    kept: int = 600_000
    near: int = 64


@dataclass(frozen=True, slots=True)
class Wish:
    """What a ticket asks for.

    Args:
        queue: a digest of what has to be the same for all who meet.
        asked: a digest of all that is asked for.
        request: all of it, complete.
        bots_ms: after how long bots take free seats; None is never.
    """

    queue: bytes
    asked: bytes
    request: gateway_pb2.CreateTicketRequest
    players: tuple[str, ...]
    rating: int
    bots_ms: int | None


@dataclass(frozen=True, slots=True)
class Record:
    """A ticket as it is stored; times in ms by the storage's clock.

    Attributes:
        bots: when bots take free seats; None is never.
        now: when it was read.
    """

    id: str
    status: int
    version: int
    request: gateway_pb2.CreateTicketRequest
    players: tuple[str, ...]
    rating: int
    created: int
    seen: int
    bots: int | None
    match: str
    reason: str
    detail: str
    now: int

    @property
    def live(self) -> bool:
        """Whether there may be a match of it yet."""
        return self.status in (gateway_pb2.Ticket.WAITING, gateway_pb2.Ticket.FORMING)


def mint_ticket(game: Game) -> str:
    """An id for a ticket that is to be made. Those of equal rating stand in the queue by it: the oldest first."""
    moment, digits = int(time.time() * 1000), ""
    for _ in range(9):
        moment, digit = divmod(moment, 36)
        digits = _ALPHABET[digit] + digits
    return f"{game.id}-{digits}{''.join(secrets.choice(_ALPHABET) for _ in range(14))}"


class Matching:
    """Tickets, matched. Open it where the event loop runs: `async with matching`.

    Attributes:
        party_over: is told the code of a party and the id of its ticket, once that has ended. It may be told twice, or, when this process
            dies, not at all.
    """

    def __init__(self, storage: Storage, players: Players, host: Host, news: News, pace: Pace) -> None:
        self.pace = pace
        self._storage = storage
        self._players = players
        self.host = host
        self.party_over: Callable[[str, str], Coroutine[Any, Any, None]] | None = None
        self._news = news
        self._sooner = {game: asyncio.Event() for game in GAMES}
        self._claimed = dict.fromkeys(GAMES, 0)
        self._sweeping: list[asyncio.Task[None]] = []
        self._work: set[asyncio.Task[None]] = set()
        self._steps: list[Argument] = [value for since, band in pace.bands for value in (since, -1 if band is None else band)]

    async def create(self, game: Game, ticket_id: str, wish: Wish) -> tuple[str, str]:
        """Makes a ticket, and begins to look for others.

        Returns:
            MADE and its id; or SAME or OTHER and the id of the live ticket that one of its players has, for the same or something else.
        """
        request = wish.request
        bots = -1 if wish.bots_ms is None else wish.bots_ms
        arguments: list[Argument] = [ticket_id, wish.queue, wish.asked, request.SerializeToString()]
        arguments += [request.seats.min, request.seats.max, wish.rating, bots, self.pace.unseen, self.pace.sweep, *wish.players]
        while True:
            said, named = await self._storage.run(_CREATE, [_base(game)], arguments)
            if said != b"STALE":
                break
            await self.end(game, named.decode(), gateway_pb2.Ticket.EXPIRED)
        if said == b"MADE":
            self._start(self._begin(game, ticket_id, wish.players))
        return said.decode(), named.decode()

    async def look(self, game: Game, ticket_id: str, player: str = "") -> Record | None:
        """Returns a ticket, or None when there is none, or it is not that player's. With a player, it has been looked at."""
        while True:
            read = await self._storage.run(_LOOK, [_base(game)], [ticket_id, player, self.pace.unseen])
            if read is None:
                return None
            now, stale, *fields = read
            if not stale:
                return _record(ticket_id, now, fields)
            await self.end(game, ticket_id, gateway_pb2.Ticket.EXPIRED)

    async def end(self, game: Game, ticket_id: str, outcome: gateway_pb2.Ticket.Status) -> None:
        """Cancels a ticket, or lets it expire if it has gone unseen for too long; one that waits no more stays as it is."""
        name = gateway_pb2.Ticket.Status.Name(outcome)
        ended = await self._storage.run(_END, [_base(game)], [ticket_id, name, self.pace.unseen, self.pace.kept])
        if ended:
            TICKETS.labels(game.id, name.lower()).inc()
        # Told even by whoever came too late for it: the first may have lost the answer.
        if (record := await self.look(game, ticket_id)) is not None and record.status == outcome:
            self._end_party(record.request.party, ticket_id)
            await self._news.tell(record.players, "ticket", ticket_id)

    async def live(self, player: str) -> list[str]:
        """Returns the ids of a player's live tickets, of all games."""
        found = await asyncio.gather(*(self._storage.run(_LIVE, [_base(game)], [player]) for game in GAMES.values()))
        return [ticket_id.decode() for ticket_id in found if ticket_id is not None]

    # What happens by itself.

    async def __aenter__(self) -> Matching:
        self._sweeping = [asyncio.create_task(self._sweep(game)) for game in GAMES.values()]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        # What is cut off on the way is taken over by another when its lease is over.
        tasks = [*self._sweeping, *self._work]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._guarded(work))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    def _end_party(self, party: str, ticket_id: str) -> None:
        # By the way: it may be the party's own room that has the ticket ended, and is locked meanwhile.
        if party and self.party_over is not None:
            self._start(self.party_over(party, ticket_id))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Error as fault:
            log.warning("matching_failed", reason=fault.reason)  # It is due again.
        except Exception:
            log.exception("matching_failed")

    async def _sweep(self, game: Game) -> None:
        sooner = self._sooner[game.id]
        while True:
            sooner.clear()
            wait_ms = self.pace.sweep
            try:
                room = _AT_ONCE - self._claimed[game.id]
                now, due, waiting, tickets, matches = await self._storage.run(_DUE, [_base(game)], [self.pace.lease, room])
                TICKETS_WAITING.labels(game.id).set(waiting)
                for ticket in tickets:
                    self._start(self._swept(game, self._match(game, ticket.decode())))
                for match in matches:
                    self._start(self._swept(game, self._make(game, match.decode())))
                if due >= 0 and self._claimed[game.id] < _AT_ONCE:
                    wait_ms = max(0, min(wait_ms, due - now))
            except Error as fault:
                log.warning("sweep_failed", game=game.id, reason=fault.reason)
            except Exception:
                log.exception("sweep_failed", game=game.id)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1000):
                    await sooner.wait()

    def _swept(self, game: Game, work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
        """What was claimed, counted: there is a bound to what is done at once, so that one that takes long does not hold up the others."""
        self._claimed[game.id] += 1

        async def counted() -> None:
            try:
                await work
            finally:
                self._claimed[game.id] -= 1
                if self._claimed[game.id] == _AT_ONCE // 2:
                    self._sooner[game.id].set()

        return counted()

    async def _begin(self, game: Game, ticket_id: str, players: Sequence[str]) -> None:
        await self._news.tell(players, "ticket", ticket_id)
        await self._match(game, ticket_id)

    async def _match(self, game: Game, ticket_id: str) -> None:
        """Looks for a match for a ticket, and makes it."""
        pace, match_id = self.pace, mint(game)
        arguments: list[Argument] = [ticket_id, match_id, pace.unseen, pace.patience, pace.again, pace.near, pace.lease, *self._steps]
        said, *wait = await self._storage.run(_FORM, [_base(game)], arguments)
        if said == b"FORMED":
            await self._make(game, match_id)
        elif said == b"STALE":
            await self.end(game, ticket_id, gateway_pb2.Ticket.EXPIRED)
        elif wait and wait[0] < pace.sweep:
            asyncio.get_running_loop().call_later(wait[0] / 1000, self._sooner[game.id].set)

    async def _make(self, game: Game, match_id: str) -> None:
        """Makes a match that was formed, by whomever, and tells its players."""
        group = await self._storage.run(_GROUP, [_base(game)], [match_id, self.pace.lease])
        if group is None:
            return
        bots, tries, packed, *tickets = group
        players = [player for _, those in _pairs(tickets) for player in those]
        asked = gateway_pb2.CreateTicketRequest.FromString(packed)
        request: Any = game.methods["CreateMatch"].request(match_id=match_id, settings=asked.settings, order=table_pb2.Seating.DRAWN)
        request.options.MergeFromString(asked.options)
        request.options.SetInParent()
        for player, name in zip(players, await asyncio.gather(*map(self._name, players)), strict=True):
            request.seats.add(player=player, name=name)
        for _ in range(bots):
            request.seats.add(bot=table_pb2.Bot.STANDARD)
        try:
            await self.host.make(game, request)
        except grpc.aio.AioRpcError as refusal:
            code = refusal.code()
            if code in _REFUSALS:
                await self._settle(game, match_id, "FAILED", problems.reason_of(refusal) or code.name, refusal.details() or "")
            elif code in _FAULTS and tries >= _MOST_FAULTS:
                log.error("match_failed", game=game.id, match=match_id, code=code.name)
                await self._settle(game, match_id, "FAILED", "SERVICE_FAILED", "the game's service fails to make this match")
            else:
                log.warning("match_delayed", game=game.id, match=match_id, code=code.name)  # The lease ends, and it is tried again.
                await asyncio.gather(*(self._news.tell(those, "ticket", ticket_id) for ticket_id, those in _pairs(tickets)))
            return
        await self._settle(game, match_id, "MATCHED")

    async def _settle(self, game: Game, match_id: str, outcome: str, reason: str = "", detail: str = "") -> None:
        settled = await self._storage.run(_SETTLE, [_base(game)], [match_id, outcome, reason, detail, self.pace.kept])
        if settled is None:
            return
        first, *tickets = settled
        told = []
        for ticket_id, players, waited, packed in zip(*(tickets[n::4] for n in range(4)), strict=True):
            if first:
                TICKETS.labels(game.id, outcome.lower()).inc()
                if outcome == "MATCHED":
                    TICKET_SECONDS.labels(game.id).observe(waited / 1000)
            self._end_party(gateway_pb2.CreateTicketRequest.FromString(packed).party, ticket_id.decode())
            told.append(self._news.tell(players.decode().split(), "ticket", ticket_id.decode()))
        await asyncio.gather(*told)

    async def _name(self, player: str) -> str:
        """The name that others see; of a player without a profile, as an operator, the id."""
        try:
            return (await self._players.profile(player)).name
        except NotFound:
            return player


def _base(game: Game) -> str:
    return f"gateway:{{tickets/{game.id}}}"


def _pairs(tickets: Sequence[bytes]) -> list[tuple[str, list[str]]]:
    """Reads tickets' ids and players, one behind the other."""
    return [(named.decode(), players.decode().split()) for named, players in zip(tickets[::2], tickets[1::2], strict=True)]


def _record(ticket_id: str, now: int, fields: Sequence[bytes]) -> Record:
    """Reads what ticket_look.lua returns."""
    stored = dict(zip(fields[::2], fields[1::2], strict=True))
    bots = int(stored[b"bots"])
    return Record(
        id=ticket_id,
        status=gateway_pb2.Ticket.Status.Value(stored[b"status"].decode()),
        version=int(stored[b"version"]),
        request=gateway_pb2.CreateTicketRequest.FromString(stored[b"request"]),
        players=tuple(stored[b"players"].decode().split()),
        rating=int(stored[b"rating"]),
        created=int(stored[b"created"]),
        seen=int(stored[b"seen"]),
        bots=None if bots < 0 else bots,
        match=stored.get(b"match", b"").decode(),
        reason=stored.get(b"reason", b"").decode(),
        detail=stored.get(b"detail", b"").decode(),
        now=now,
    )
