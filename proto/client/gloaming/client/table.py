"""The matches of one game."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message

from gloaming.client.connection import Connection, read, write
from gloaming.gateway.v1 import gateway_pb2
from gloaming.table.v1 import table_pb2

ME = table_pb2.SeatRequest(player="me")
BOT = table_pb2.SeatRequest(bot=table_pb2.Bot.STANDARD)

_REMEMBERED = 64

OptionsT = TypeVar("OptionsT", bound=Message)
MoveT = TypeVar("MoveT", bound=Message)
MatchT = TypeVar("MatchT", bound=Message)
MatchEventT = TypeVar("MatchEventT", bound=Message)
MovesT = TypeVar("MovesT", bound=Message)
PlayedT = TypeVar("PlayedT", bound=Message)
ResignedT = TypeVar("ResignedT", bound=Message)
RecordT = TypeVar("RecordT", bound=Message)
WatchedT = TypeVar("WatchedT", bound=Message)

# A module only gives its classes out.
OptionsCo = TypeVar("OptionsCo", bound=Message, covariant=True)
MoveCo = TypeVar("MoveCo", bound=Message, covariant=True)
MatchCo = TypeVar("MatchCo", bound=Message, covariant=True)
MatchEventCo = TypeVar("MatchEventCo", bound=Message, covariant=True)
MovesCo = TypeVar("MovesCo", bound=Message, covariant=True)
PlayedCo = TypeVar("PlayedCo", bound=Message, covariant=True)
ResignedCo = TypeVar("ResignedCo", bound=Message, covariant=True)
RecordCo = TypeVar("RecordCo", bound=Message, covariant=True)
WatchedCo = TypeVar("WatchedCo", bound=Message, covariant=True)


class Module(Protocol[OptionsCo, MoveCo, MatchCo, MatchEventCo, MovesCo, PlayedCo, ResignedCo, RecordCo, WatchedCo]):
    """A game's generated module, `night_clan_pb2`."""

    # Named as the module names them.
    @property
    def DESCRIPTOR(self) -> FileDescriptor: ...  # noqa: D102
    @property
    def Options(self) -> type[OptionsCo]: ...  # noqa: D102
    @property
    def Move(self) -> type[MoveCo]: ...  # noqa: D102
    @property
    def Match(self) -> type[MatchCo]: ...  # noqa: D102
    @property
    def MatchEvent(self) -> type[MatchEventCo]: ...  # noqa: D102
    @property
    def ListMovesResponse(self) -> type[MovesCo]: ...  # noqa: D102
    @property
    def SubmitMoveResponse(self) -> type[PlayedCo]: ...  # noqa: D102
    @property
    def ResignResponse(self) -> type[ResignedCo]: ...  # noqa: D102
    @property
    def Record(self) -> type[RecordCo]: ...  # noqa: D102
    @property
    def WatchMatchResponse(self) -> type[WatchedCo]: ...  # noqa: D102


class CursorGoneError(Exception):
    """A cursor does not belong to the match's history.

    Args:
        snapshot: the match as it is; events go on from its cursor.
    """

    def __init__(self, snapshot: Any) -> None:
        super().__init__(f"the history of {snapshot.id} is another; go on from the snapshot")
        self.snapshot = snapshot


class Table(Generic[OptionsT, MoveT, MatchT, MatchEventT, MovesT, PlayedT, ResignedT, RecordT, WatchedT]):
    """The matches of one game. Get one from `Client.game`."""

    def __init__(
        self, connection: Connection, module: Module[OptionsT, MoveT, MatchT, MatchEventT, MovesT, PlayedT, ResignedT, RecordT, WatchedT]
    ) -> None:
        self._connection = connection
        self._module = module
        (service,) = module.DESCRIPTOR.services_by_name.values()
        self.game: str = service.GetOptions().Extensions[_extension()].id
        self._seen: OrderedDict[str, tuple[str, str]] = OrderedDict()

    async def create_match(
        self,
        seats: Iterable[table_pb2.SeatRequest | Mapping[str, str]] = (ME, BOT),
        *,
        options: OptionsT | None = None,
        settings: table_pb2.Settings | None = None,
        order: table_pb2.Seating.Order = table_pb2.Seating.DRAWN,
    ) -> MatchT:
        """Makes a match with oneself (`ME`, or {"player": "me"}) in exactly one seat and bots (`BOT`) in the others."""
        body = self._wish(options, settings)
        body["seats"] = [write(seat) if isinstance(seat, Message) else dict(seat) for seat in seats]
        body["order"] = table_pb2.Seating.Order.Name(order)
        return await self._connection.send("POST", "/v1/matches", self._module.Match, body=body)

    async def create_room(
        self, *, seats: int | None = None, options: OptionsT | None = None, settings: table_pb2.Settings | None = None
    ) -> gateway_pb2.Room:
        """Opens a room, with oneself as its host; `Client.rooms` has the rest.

        Args:
            seats: how many may come, bots included; as many as the game takes when not given.
        """
        body = self._wish(options, settings)
        if seats is not None:
            body["seats"] = seats
        return await self._connection.send("POST", "/v1/rooms", gateway_pb2.Room, body=body)

    async def create_ticket(
        self,
        *,
        seats: tuple[int, int] | None = None,
        options: OptionsT | None = None,
        settings: table_pb2.Settings | None = None,
        party: str = "",
        bots_after_seconds: int | None = None,
    ) -> gateway_pb2.Ticket:
        """Wishes for a match with others, or returns the ticket that wishes for the same already; `Client.tickets` has the rest.

        Args:
            seats: fewest and most that are to play; as the game allows when not given.
            party: the code of a room whose players are to play together.
            bots_after_seconds: after how long bots take the seats that are still free, -1: never; as the operator has set when not given.

        Raises:
            ProblemError: another ticket waits (422, TICKET_EXISTS), …
        """
        body = self._wish(options, settings)
        if seats is not None:
            body["seats"] = {"min": seats[0], "max": seats[1]}
        if party:
            body["party"] = party
        if bots_after_seconds is not None:
            body["botsAfterSeconds"] = bots_after_seconds
        return await self._connection.send("POST", "/v1/tickets", gateway_pb2.Ticket, body=body)

    async def leaderboard(self) -> AsyncGenerator[gateway_pb2.LeaderboardEntry, None]:
        """Yields the game's leaderboard, best first."""
        path = f"/v1/games/{self.game}/leaderboard"
        async for page in self._connection.pages(path, gateway_pb2.Leaderboard, authorized=False):
            for entry in page.entries:
                yield entry

    async def match(self, match_id: str) -> MatchT:
        """Returns a match as the player may see it now; its body travels only when it has changed."""
        etag, text = self._seen.pop(match_id, ("", ""))
        headers = {"If-None-Match": etag} if etag else {}
        response = await self._connection.exchange("GET", f"/v1/matches/{match_id}", headers=headers)
        if response.status_code != 304:
            etag, text = response.headers.get("ETag", ""), response.text
        self._seen[match_id] = etag, text
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return read(text, self._module.Match)

    async def moves(self, match_id: str) -> MovesT:
        """Returns every legal move of the player now."""
        return await self._connection.send("GET", f"/v1/matches/{match_id}/moves", self._module.ListMovesResponse)

    async def play(self, match_id: str, move: MoveT, *, expected_version: int | None = None, key: str | None = None) -> PlayedT:
        """Plays a move.

        Args:
            expected_version: refuse it unless the match is at this version.
            key: the Idempotency-Key; a fresh one when not given. The same move under the same key is played once.

        Raises:
            ProblemError: it is against the rules now (422), others were first (409), the version is another (412), …
        """
        headers = {}
        if expected_version is not None:
            headers["If-Match"] = f'"{expected_version}"'
        if key is not None:
            headers["Idempotency-Key"] = key
        path = f"/v1/matches/{match_id}/moves"
        return await self._connection.send("POST", path, self._module.SubmitMoveResponse, body={"move": write(move)}, headers=headers)

    async def resign(self, match_id: str) -> ResignedT:
        """Resigns the player's seat."""
        return await self._connection.send("POST", f"/v1/matches/{match_id}:resign", self._module.ResignResponse, body={})

    async def rematch(self, match_id: str) -> MatchT:
        """Makes a finished match once more, the same in the same seats; there is one, however many ask for it."""
        return await self._connection.send("POST", f"/v1/matches/{match_id}:rematch", self._module.Match, body={})

    async def record(self, match_id: str) -> RecordT:
        """Returns the whole record of a finished match."""
        return await self._connection.send("GET", f"/v1/matches/{match_id}/record", self._module.Record)

    async def events(self, match_id: str, after: str = "", *, page_size: int = 0) -> AsyncGenerator[MatchEventT, None]:
        """Yields the events that there are now, from the beginning or after a cursor.

        Raises:
            CursorGoneError: the cursor does not belong to the match's history any more.
        """
        kind: Any = getattr(self._module, "ListEventsResponse")  # noqa: B009
        path = f"/v1/matches/{match_id}/events"
        while True:
            page = await self._connection.send("GET", path, kind, query={"after": after, "pageSize": page_size})
            if page.HasField("snapshot"):
                raise CursorGoneError(page.snapshot)
            for event in page.events:
                yield event
            if not page.more:
                return
            after = page.next_cursor

    async def watch(self, match_id: str, after: str = "") -> AsyncGenerator[WatchedT, None]:
        """Yields every event from the beginning or after a cursor, as it happens, across broken connections, until the match ends.

        A `snapshot` comes instead of events where a cursor does not belong to the match's history. Whoever leaves the loop early and wants
        the connection closed at once, closes the iterator (`contextlib.aclosing`).
        """
        async with contextlib.aclosing(self._connection.events(f"/v1/matches/{match_id}/events", after)) as events:
            async for event in events:
                if event.event in ("event", "snapshot"):
                    yield read(f'{{"{event.event}":{event.data}}}', self._module.WatchMatchResponse)

    def _wish(self, options: OptionsT | None, settings: table_pb2.Settings | None) -> dict[str, Any]:
        body: dict[str, Any] = {"game": self.game}
        if options is not None:
            body["options"] = write(options)
        if settings is not None:
            body["settings"] = write(settings)
        return body


def _extension() -> Any:
    return table_pb2.game
