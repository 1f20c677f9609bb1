"""A gateway on its stand: the real application with a real Redis, and a game service that answers as it is told."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import grpc
import httpx
from fastapi import FastAPI
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer

from gateway.__main__ import Server, configure
from gateway.app import create_app
from gateway.registry import GAMES
from gateway.settings import GatewaySettings
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.table.v1 import table_pb2
from services.kit.cursor import Cursor
from services.kit.errors import Error
from services.kit.servicer import status_of
from tests.harness import Keys

NIGHT_CLAN = GAMES["night_clan"]
MATCH_ID = "night_clan-abcdefghij"
MOVE = {"play": {"card": "DAUGHTER", "location": "CHURCH"}}

Context = grpc.aio.ServicerContext[Any, Any]


def cursor(version: int, n: int = 0) -> str:
    """A cursor."""
    return str(Cursor(version, n, b"marked"))


def match(match_id: str = MATCH_ID, *, version: int = 7, status: table_pb2.MatchStatus = table_pb2.PLAYING) -> night_clan_pb2.Match:
    """A match as a service answers with it."""
    made = night_clan_pb2.Match(
        id=match_id,
        game="night_clan",
        status=status,
        version=version,
        cursor=cursor(version),
        seats=[table_pb2.Seat(seat=0, player="p", name="Ann"), table_pb2.Seat(seat=1, name="Bot", bot=table_pb2.Bot.STANDARD)],
        viewer_seat=0,
        to_move=[0],
        commitment="0" * 64,
        view=night_clan_pb2.View(phase=night_clan_pb2.View.PLAY, hand=[night_clan_pb2.Card.TROLL]),
    )
    made.server_time.GetCurrentTime()
    return made


def event(version: int, n: int = 0) -> night_clan_pb2.WatchMatchResponse:
    """An event as a service streams it."""
    made = night_clan_pb2.MatchEvent(match_id=MATCH_ID, cursor=cursor(version, n), version=version)
    made.event.hand_kept.seat = 0
    return night_clan_pb2.WatchMatchResponse(event=made)


async def refuse(context: Context, error: Error) -> None:
    """Ends a call as the kit's servicer does."""
    from grpc_status import rpc_status

    await context.abort_with_status(rpc_status.to_status(status_of(error)))


def targets(address: str, own: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Where each game is: at this address, but for those that have one of their own."""
    return {**dict.fromkeys(GAMES, address), **own}


class Service:
    """Night Clan's service that answers as `verbs` say, and remembers what it was asked. It is there for the other games, and no more."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[tuple[str, Any, str]] = []
        self.matches: dict[str, night_clan_pb2.Match] = {}
        self.verbs: dict[str, Any] = {"CreateMatch": self._create, "GetMatch": self._get}
        self.health = HealthServicer()
        self._server: grpc.aio.Server | None = None

    async def _create(self, request: Any, context: Context) -> Any:
        return self.matches.setdefault(request.match_id, match(request.match_id, version=1))

    async def _get(self, request: Any, context: Context) -> Any:
        from services.kit.errors import NotFound

        if request.match_id not in self.matches:
            await refuse(context, NotFound("MATCH_NOT_FOUND", "there is no match of this id"))
        return self.matches[request.match_id]

    def calls(self, verb: str) -> list[Any]:
        """What it was asked of a verb."""
        return [request for name, request, _ in self.asked if name == verb]

    async def start(self) -> None:
        """Starts, on the same port again after `stop`."""
        handlers = {}
        for name, method in NIGHT_CLAN.methods.items():
            make = grpc.unary_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
            answer = self._streamed(name) if method.streams else self._answered(name)
            handlers[name] = make(answer, method.request.FromString, method.response.SerializeToString)
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NIGHT_CLAN.service, handlers),))
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self._server)
        for game in GAMES.values():
            await self.health.set(game.service, health_pb2.HealthCheckResponse.SERVING)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def stop(self) -> None:
        """Stops at once."""
        if self._server is not None:
            await self._server.stop(0)
            self._server = None

    def _note(self, name: str, request: Any, context: Context) -> None:
        authorization = dict(context.invocation_metadata() or ()).get("authorization", "")
        self.asked.append((name, request, str(authorization)))

    def _answered(self, name: str) -> Any:
        async def answer(request: Any, context: Context) -> Any:
            self._note(name, request, context)
            return await self.verbs[name](request, context)

        return answer

    def _streamed(self, name: str) -> Any:
        async def answer(request: Any, context: Context) -> AsyncIterator[Any]:
            self._note(name, request, context)
            async for message in self.verbs[name](request, context):
                yield message

        return answer


@dataclass
class Stand:
    """A running gateway."""

    app: FastAPI
    settings: GatewaySettings
    service: Service
    http: httpx.AsyncClient
    keys: Keys
    server: Server | None = None

    async def sign_in(self, name: str = "Ann") -> dict[str, Any]:
        """Signs in as a guest, and is that guest from now on."""
        response = await self.http.post("/v1/players", json={"name": name})
        assert response.status_code == 201, response.text
        session: dict[str, Any] = response.json()
        self.be(session)
        return session

    def be(self, session: dict[str, Any]) -> None:
        """Is the player of a session from now on."""
        self.http.headers["Authorization"] = f"Bearer {session['accessToken']}"


@asynccontextmanager
async def stand(
    keys: Keys, redis_url: str, *, on_socket: bool = False, services: Mapping[str, str] = MappingProxyType({}), **settings: Any
) -> AsyncIterator[Stand]:
    """Puts up a gateway and a service; with a real server on a real socket, or called in process. Some games may have real `services`."""
    service = Service()
    await service.start()
    chosen = GatewaySettings.model_validate(
        {
            "REDIS_URL": redis_url,
            "jwks_file": keys.jwks,
            "signing_key_file": keys.pem,
            "services": targets(f"127.0.0.1:{service.port}", services),
            "drain_seconds": 2,
            **settings,
        }
    )
    app = create_app(chosen)
    try:
        if on_socket:
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", 0))
                server = Server(app, configure(app, chosen))
                serving = asyncio.create_task(server.serve(sockets=[listener]))
                while not server.started:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}") as http:
                    yield Stand(app, chosen, service, http, keys, server)
                server.should_exit = True
                await serving
        else:
            transport = httpx.ASGITransport(app)
            async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://gateway") as http:
                yield Stand(app, chosen, service, http, keys)
    finally:
        await service.stop()
