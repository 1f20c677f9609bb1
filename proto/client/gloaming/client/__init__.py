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

from collections.abc import AsyncIterator, Sequence

from gloaming.client.connection import Connection, ProblemError, write
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
from gloaming.gateway.v1 import gateway_pb2

__all__ = ["BOT", "ME", "Client", "CursorGoneError", "ProblemError", "Table"]


class Client(Connection):
    """A player at a gateway: signing in, the own profile, the catalogue, the own matches."""

    @property
    def player(self) -> gateway_pb2.Player:
        """Who is signed in.

        Raises:
            RuntimeError: nobody is.
        """
        return self._signed_in().player

    async def sign_in(self, name: str) -> gateway_pb2.Player:
        """Signs in as a new guest."""
        body = gateway_pb2.CreatePlayerRequest(name=name)
        self.session = await self.send("POST", "/v1/players", gateway_pb2.Session, body=write(body), authorized=False)
        return self.session.player

    async def refresh(self) -> None:
        """Buys a fresh pair of tokens; done by itself when it is time."""
        await self._renew(self._signed_in().access_token)

    async def sign_out(self) -> None:
        """Revokes every token of the player, here and elsewhere."""
        await self.send("POST", "/v1/players/me:signOut", gateway_pb2.Empty, body={})
        self.session = None

    async def me(self) -> gateway_pb2.Player:
        """Returns the own profile."""
        return await self.send("GET", "/v1/players/me", gateway_pb2.Player)

    async def rename(self, name: str) -> gateway_pb2.Player:
        """Changes the own name."""
        return await self.send("PATCH", "/v1/players/me", gateway_pb2.Player, body={"name": name})

    async def forget_me(self) -> None:
        """Signs out everywhere and removes the own profile."""
        await self.send("DELETE", "/v1/players/me", gateway_pb2.Empty)
        self.session = None

    async def games(self) -> Sequence[gateway_pb2.Game]:
        """Returns the catalogue."""
        return (await self.send("GET", "/v1/games", gateway_pb2.ListGamesResponse, authorized=False)).games

    async def my_matches(self) -> AsyncIterator[gateway_pb2.MatchSummary]:
        """Yields one's own matches, newest first."""
        token = ""
        while True:
            page = await self.send("GET", "/v1/players/me/matches", gateway_pb2.ListMatchesResponse, query={"pageToken": token})
            for match in page.matches:
                yield match
            token = page.next_page_token
            if not token:
                return

    def game(
        self, module: Module[OptionsT, MoveT, MatchT, MatchEventT, MovesT, PlayedT, ResignedT, RecordT, WatchedT]
    ) -> Table[OptionsT, MoveT, MatchT, MatchEventT, MovesT, PlayedT, ResignedT, RecordT, WatchedT]:
        """Returns the matches of a game, by its generated module: `client.game(night_clan_pb2)`."""
        return Table(self, module)
