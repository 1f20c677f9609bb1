"""A gateway on its stand: the real application with a real Redis, and a game service that answers as it is told."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import grpc
import httpx
from fastapi import FastAPI
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer

from gateway.__main__ import Server, configure
from gateway.app import create_app
from gateway.live import Limits
from gateway.registry import GAMES
from gateway.relay import METHOD, Patience
from gateway.settings import GatewaySettings
from gloaming.live.v1 import live_pb2
from gloaming.night_clan.v1 import night_clan_pb2
from gloaming.relay.v1 import relay_pb2
from gloaming.table.v1 import table_pb2
from services.kit.cursor import Cursor
from services.kit.errors import Error
from services.kit.servicer import status_of
from tests import unlimited
from tests.harness import Keys

NIGHT_CLAN = GAMES["night_clan"]
MATCH_ID = "night_clan-abcdefghij"
MOVE = {"play": {"card": "DAUGHTER", "location": "CHURCH"}}

LIMITS, PATIENCE = Limits(), Patience()
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


def no_results() -> grpc.GenericRpcHandler:
    """A ResultService that has none."""

    async def none(request: relay_pb2.ListResultsRequest, context: Context) -> relay_pb2.ListResultsResponse:
        return relay_pb2.ListResultsResponse()

    parse, pack = relay_pb2.ListResultsRequest.FromString, relay_pb2.ListResultsResponse.SerializeToString
    handler: Any = grpc.unary_unary_rpc_method_handler(none, parse, pack)
    return grpc.method_handlers_generic_handler("gloaming.relay.v1.ResultService", {"ListResults": handler})


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
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NIGHT_CLAN.service, handlers), no_results()))
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
class World:
    """What all replicas of a scripted RelayService have in common: the matches, and who played what.

    Attributes:
        played: by match, the moves in order; a move's version is its place, from 1.
        asked: how often each request came, by match and request id.
    """

    played: dict[str, list[bytes]] = field(default_factory=dict)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    replicas: list[Replica] = field(default_factory=list)

    async def replica(self) -> Replica:
        """Starts one more."""
        replica = Replica(self)
        await replica.start()
        return replica

    def play(self, match_id: str, move: bytes = b"") -> None:
        """Makes an event of a match, and tells all who watch."""
        self.played.setdefault(match_id, []).append(move)
        version = len(self.played[match_id])
        for replica in self.replicas:
            for link in replica.links:
                if watching := [number for number, matches in link.watching.items() if match_id in matches]:
                    link.send(happened(match_id, version, watching))

    async def close(self) -> None:
        """Stops every replica."""
        for replica in self.replicas:
            await replica.stop()


def happened(match_id: str, version: int, attachments: list[int]) -> relay_pb2.Down:
    """An event of a match, for some sockets."""
    event = live_pb2.Event(match_id=match_id, cursor=cursor(version), version=version)
    event.time.FromSeconds(1_800_000_000 + version)
    if match_id.startswith("night_clan"):
        event.event = night_clan_pb2.Event(hand_kept=night_clan_pb2.HandKept(seat=version % 2)).SerializeToString()
    return relay_pb2.Down(
        attachments=attachments, frame=framed(live_pb2.ServerMessage(event=event)), match_id=match_id, cursor=cursor(version)
    )


def framed(*messages: live_pb2.ServerMessage) -> bytes:
    """Messages as a frame."""
    return live_pb2.ServerFrame(messages=messages).SerializeToString()


class Link:
    """One gateway's stream, as a replica has it.

    Attributes:
        tokens: the newest token of each attachment.
        round_trips: the newest round trip of each.
        watching: which matches each watches.
        ups: all that came, in order.
        batches: how many messages came with each write.
    """

    def __init__(self, authorization: str) -> None:
        self.authorization = authorization
        self.tokens: dict[int, str] = {}
        self.round_trips: dict[int, int] = {}
        self.watching: dict[int, set[str]] = {}
        self.ups: list[relay_pb2.Up] = []
        self.batches: list[int] = []
        self.downs: asyncio.Queue[bytes | Error | None] = asyncio.Queue()

    def send(self, *downs: relay_pb2.Down) -> None:
        """Sends messages down."""
        self.downs.put_nowait(relay_pb2.RelayResponse(messages=downs).SerializeToString())

    def end(self, error: Error | None = None) -> None:
        """Ends the stream."""
        self.downs.put_nowait(error)


class Replica:
    """A RelayService as a game's would be: it plays every move, and tells all who watch.

    Attributes:
        links: the streams that are open.
        taken: every frame that came, with the attachment's token.
        silent: whether it answers nothing, though it does what it is asked.
        refuses: ends every stream at once with this.
        answer: answers a frame instead, where set, and returns whether it did.
    """

    def __init__(self, world: World) -> None:
        self.port = 0
        self.links: list[Link] = []
        self.taken: list[tuple[str, live_pb2.ClientFrame]] = []
        self.silent = False
        self.refuses: Error | None = None
        self.answer: Any = None
        self.opened = 0
        self._world = world
        self._server: grpc.aio.Server | None = None
        world.replicas.append(self)

    @property
    def address(self) -> str:
        """Where it is."""
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Starts, on the same port again after `stop`."""
        service, _, name = METHOD[1:].partition("/")
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        handler: Any = grpc.stream_stream_rpc_method_handler(self._relay)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {name: handler}), no_results()))
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def stop(self) -> None:
        """Stops at once, as if killed."""
        if self._server is not None:
            await self._server.stop(0)
            self._server = None

    async def _relay(self, requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        self.opened += 1
        if self.refuses is not None:
            await refuse(context, self.refuses)
        link = Link(str(dict(context.invocation_metadata() or ()).get("authorization", "")))
        self.links.append(link)
        reading = asyncio.create_task(self._read(requests, link))
        try:
            while (down := await link.downs.get()) is not None:
                if isinstance(down, Error):
                    await refuse(context, down)
                else:
                    yield down
        finally:
            reading.cancel()
            self.links.remove(link)

    async def _read(self, requests: AsyncIterator[bytes], link: Link) -> None:
        async for data in requests:
            ups = relay_pb2.RelayRequest.FromString(data).messages
            link.batches.append(len(ups))
            for up in ups:
                link.ups.append(up)
                number = up.attachment
                match up.WhichOneof("kind"):
                    case "token":
                        link.tokens[number] = up.token
                        link.watching.setdefault(number, set())
                    case "round_trip_ms":
                        link.round_trips[number] = up.round_trip_ms
                    case "detach":
                        del link.tokens[number], link.watching[number]
                    case "frame":
                        frame = live_pb2.ClientFrame.FromString(up.frame)
                        self.taken.append((link.tokens[number], frame))
                        if self.answer is None or not self.answer(link, number, frame):
                            self._do(link, number, frame)

    def _do(self, link: Link, number: int, frame: live_pb2.ClientFrame) -> None:
        kind = str(frame.WhichOneof("kind"))
        match_id = getattr(frame, kind).match_id
        key = (match_id, frame.request_id)
        self._world.asked[key] += 1
        played = self._world.played.setdefault(match_id, [])
        if kind == "move" and self._world.asked[key] == 1:
            self._world.play(match_id, frame.move.move)
        if self.silent:
            return
        self.result(link, number, frame, len(played))
        if kind == "watch":
            link.watching[number].add(match_id)
            if frame.watch.after:
                for version in range(Cursor.parse(frame.watch.after).version + 1, len(played) + 1):
                    link.send(happened(match_id, version, [number]))
            else:
                link.send(self.snapshot(match_id, len(played), number))
        elif kind == "unwatch":
            link.watching[number].discard(match_id)

    def result(self, link: Link, number: int, frame: live_pb2.ClientFrame, version: int = 0) -> None:
        """Answers a request."""
        match_id = getattr(frame, str(frame.WhichOneof("kind"))).match_id
        result = live_pb2.Result(request_id=frame.request_id, match_id=match_id, version=version)
        packed = framed(live_pb2.ServerMessage(result=result))
        link.send(relay_pb2.Down(attachments=[number], frame=packed, request_id=frame.request_id))

    @staticmethod
    def snapshot(match_id: str, version: int, number: int) -> relay_pb2.Down:
        """A match as it is."""
        packed = match(match_id, version=version).SerializeToString() if match_id.startswith("night_clan") else b""
        snapshot = live_pb2.Snapshot(match_id=match_id, match=packed)
        frame = framed(live_pb2.ServerMessage(snapshot=snapshot))
        return relay_pb2.Down(attachments=[number], frame=frame, match_id=match_id, cursor=cursor(version))


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

    @property
    def live_url(self) -> str:
        """Where the live socket is."""
        return f"ws://{self.http.base_url.host}:{self.http.base_url.port}/v1/live"

    def be(self, session: dict[str, Any]) -> None:
        """Is the player of a session from now on."""
        self.http.headers["Authorization"] = f"Bearer {session['accessToken']}"


@asynccontextmanager
async def stand(
    keys: Keys,
    redis_url: str,
    *,
    on_socket: bool = False,
    services: Mapping[str, str] = MappingProxyType({}),
    limits: Limits = LIMITS,
    patience: Patience = PATIENCE,
    **settings: Any,
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
            **unlimited.SETTINGS,
            **settings,
        }
    )
    app = create_app(chosen, limits, patience)
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


@asynccontextmanager
async def live_stand(keys: Keys, redis_url: str, world: World, **more: Any) -> AsyncIterator[Stand]:
    """A gateway on a real socket whose Night Clan and Night Knight are the replicas of a scripted world; it starts one if there is none."""
    if not world.replicas:
        await world.replica()
    target = "ipv4:" + ",".join(replica.address for replica in world.replicas)
    try:
        async with stand(keys, redis_url, on_socket=True, **{"services": {"night_clan": target, "night_knight": target}, **more}) as there:
            yield there
    finally:
        await world.close()
