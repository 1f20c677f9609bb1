"""A client of a Gloaming gateway, for Python programs.

    async with Client("http://127.0.0.1:8080") as client:
        await client.sign_in("Anna")
        table = client.game(night_clan_pb2)
        match = await table.create_match([ME, BOT])
        async for news in table.watch(match.id):
            print(news)
            if moves := (await table.moves(match.id)).moves:
                await table.play(match.id, moves[0])

Every answer is the game's own protobuf message. What is newer than the generated code (fields, enum values) is skipped. A request that got
no answer is sent again under the same Idempotency-Key, so that nothing happens twice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from gloaming.client.connection import AnswerError, Connection, ProblemError, UnreachableError, write
from gloaming.client.live import Live, LiveTable
from gloaming.client.rooms import Rooms
from gloaming.client.table import (
    BOT,
    ME,
    CursorGoneError,
    MatchEventT,
    MatchT,
    Module,
    MovesT,
    MoveT,
    OptionsT,
    PlayedT,
    RecordT,
    ResignedT,
    Table,
    WatchedT,
)
from gloaming.client.tickets import Tickets
from gloaming.gateway.v1 import gateway_pb2

__all__ = [
    "BOT",
    "ME",
    "AnswerError",
    "Client",
    "CursorGoneError",
    "Live",
    "LiveTable",
    "ProblemError",
    "Rooms",
    "Table",
    "Tickets",
    "UnreachableError",
]


class Client(Connection):
    """A player at a gateway: signing in, profiles, the catalogue, the own matches; and the way to everything else.

    `game` has the matches of one game, `rooms` and `tickets` what brings people together, `live` everything over one socket. A client
    belongs to one event loop; any number of tasks may use it at once.
    """

    @property
    def rooms(self) -> Rooms:
        """The rooms that there are."""
        return Rooms(self)

    @property
    def tickets(self) -> Tickets:
        """One's own tickets."""
        return Tickets(self)

    def live(self) -> Live:
        """Returns a live socket, to be opened: `async with client.live() as live`."""
        return Live(self)

    @property
    def player(self) -> gateway_pb2.Player:
        """Who is signed in.

        Raises:
            RuntimeError: nobody is.
        """
        return self.signed_in().player

    async def sign_in(self, name: str) -> gateway_pb2.Player:
        """Signs in as a new guest."""
        return (await self.enter("/v1/players", write(gateway_pb2.CreatePlayerRequest(name=name)))).player

    async def refresh(self) -> None:
        """Buys a fresh pair of tokens; done by itself when it is time."""
        await self.renew(self.signed_in().access_token)

    async def sign_out(self) -> None:
        """Revokes every token of the player, here and elsewhere."""
        await self.send("POST", "/v1/players/me:signOut", gateway_pb2.Empty, body={})
        self.session = None

    async def me(self) -> gateway_pb2.Player:
        """Returns the own profile, with ratings."""
        return await self.send("GET", "/v1/players/me", gateway_pb2.Player)

    async def profile(self, player: str) -> gateway_pb2.Player:
        """Returns anybody's profile, with ratings, by the player's id."""
        return await self.send("GET", f"/v1/players/{player}", gateway_pb2.Player, authorized=False)

    async def rename(self, name: str) -> gateway_pb2.Player:
        """Changes the own name."""
        return await self.send("PATCH", "/v1/players/me", gateway_pb2.Player, body={"name": name})

    async def forget_me(self) -> None:
        """Signs out everywhere and removes the own profile.

        Raises:
            ProblemError: 401, also where an attempt before has done it and its answer was lost.
        """
        await self.send("DELETE", "/v1/players/me", gateway_pb2.Empty)
        self.session = None

    async def games(self) -> Sequence[gateway_pb2.Game]:
        """Returns the catalogue."""
        return (await self.send("GET", "/v1/games", gateway_pb2.ListGamesResponse, authorized=False)).games

    async def describe(self, game: str) -> gateway_pb2.Game:
        """Returns a game by its id, with the JSON Schemas of its messages."""
        return await self.send("GET", f"/v1/games/{game}", gateway_pb2.Game, authorized=False)

    async def my_matches(self) -> AsyncGenerator[gateway_pb2.MatchSummary, None]:
        """Yields one's own matches, newest first."""
        async for page in self.pages("/v1/players/me/matches", gateway_pb2.ListMatchesResponse):
            for match in page.matches:
                yield match

    def game(
        self, module: Module[OptionsT, MoveT, MatchT, MatchEventT, MovesT, PlayedT, ResignedT, RecordT, WatchedT]
    ) -> Table[OptionsT, MoveT, MatchT, MatchEventT, MovesT, PlayedT, ResignedT, RecordT, WatchedT]:
        """Returns the matches of a game, by its generated module: `client.game(night_clan_pb2)`."""
        return Table(self, module)
