"""The application: what the gateway is made of, put together once."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ipaddress
import json
from collections.abc import AsyncIterator

import grpc
import jwt
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match

from gateway import openapi, problems
from gateway.answers import Answers
from gateway.catalogue import Catalogue
from gateway.drain import PATH as DRAIN_PATH
from gateway.drain import Drain
from gateway.edge import Edge
from gateway.guests import Guests
from gateway.health import Health
from gateway.host import Host
from gateway.leaderboards import Leaderboards
from gateway.limits import Throttle
from gateway.live import PATH, Limits, Live, Told
from gateway.matches import Matches
from gateway.matching import Matching, Pace
from gateway.news import Kind, News
from gateway.operations import operations_of
from gateway.outward import Outward
from gateway.pages import Pages
from gateway.players import Players
from gateway.ratings import Ratings
from gateway.relay import Patience, Relay
from gateway.results import Results
from gateway.rooms import Rooms
from gateway.settings import GatewaySettings, bands
from gateway.site import Site
from gateway.tickets import Tickets
from gateway.tokens import HostToken, Signer
from gateway.upstream import Services
from gateway.webhooks import PACE, Notices, Webhooks
from services.kit import tracing
from services.kit.errors import Error
from services.kit.identity import Identity
from services.kit.settings import Unstartable
from services.kit.storage import Storage

_READ_BY_PAGES = ["Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID"]
_SHOWN_TO_PAGES = ["Allow", "ETag", "Location", "Retry-After", "WWW-Authenticate", "X-Request-Id"]
_DAY_SECONDS = 86_400
_LIMITS, _PATIENCE = Limits(), Patience()


def create_app(settings: GatewaySettings, limits: Limits = _LIMITS, patience: Patience = _PATIENCE) -> FastAPI:
    """Returns the gateway. `app.state.draining` is set by whoever is about to stop it, `app.state.stop` by whoever can.

    Args:
        limits: of live sockets; how much may wait for one is a setting.
        patience: of their relay.

    Raises:
        Unstartable: the settings do not let it.
    """
    storage = Storage(settings.redis_url, wait_replicas=settings.wait_replicas, wait_ms=settings.wait_ms)
    signer, identity = _keys(settings, storage)
    certificate = settings.certificate()
    services = Services(settings.services, settings.rpc_seconds, lambda: token.authorization, certificate, patience.resolve)
    draining = asyncio.Event()
    kept = settings.refresh_days * _DAY_SECONDS

    answers = Answers(storage)
    token = HostToken(signer)
    throttle = Throttle(storage, identity, settings)
    host = Host(storage, services, token, index_seconds=kept, most_live=settings.most_live_matches)
    ratings = Ratings(storage)
    players = Players(storage, identity, signer, answers, access_seconds=settings.access_token_seconds, refresh_seconds=kept)
    matches = Matches(storage, services, players, answers, host, kept_seconds=kept, draining=draining)
    news = News(storage)
    rooms = Rooms(storage, services, players, answers, host, news, seconds=settings.room_seconds)
    pace = Pace(
        bands=bands(settings.ticket_bands),
        patience=round(settings.ticket_patience_seconds * 1000),
        unseen=round(settings.ticket_unseen_seconds * 1000),
        bots=settings.ticket_bots_seconds * 1000 if settings.ticket_bots_seconds >= 0 else None,
    )
    matching = Matching(storage, players, host, news, pace)
    tickets = Tickets(matching, players, answers, news, ratings=ratings, parties=rooms, draining=draining)
    rooms.tickets, matching.party_over = tickets, rooms.party_over
    networks = [ipaddress.ip_network(each) for each in settings.webhook_networks]
    webhooks = Webhooks(storage, players, on=settings.webhooks, networks=networks)
    notices = Notices(storage, services, token, Outward(networks, seconds=PACE.seconds), PACE) if settings.webhooks else None
    players.forgetting = (tickets.forget, rooms.forget, webhooks.forget)
    told: dict[Kind, Told] = {"room": Told(rooms.read, rooms.of), "ticket": Told(tickets.read, tickets.live)}
    results = Results(services, token, players, ratings)
    # An access token may be in use without a refresh.
    unseen = max(settings.guest_days * _DAY_SECONDS, settings.access_token_seconds)
    guests = Guests(storage, services, players, seconds=unseen)
    relay = Relay(settings.services, lambda: token.authorization, patience, certificate)
    look = min(limits.look_seconds, settings.ticket_unseen_seconds / 3)
    limits = dataclasses.replace(limits, waiting_bytes=settings.socket_buffer, look_seconds=look)
    live = Live(relay, identity, draining, limits, news, told, throttle)
    more = (webhooks, Catalogue(), Leaderboards(players, ratings), Health(storage, services, draining))
    resources = (players, matches, rooms, tickets, *more)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with services, results, guests, relay, news, live, rooms, matching, notices or contextlib.nullcontext():
                yield
        finally:
            await storage.close()
            tracing.stop()

    app = FastAPI(
        title="Gloaming",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        # FastAPI's own tracing would take up any client's trace context, and tell paths and queries: `services.kit.tracing` is ours.
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    app.state.settings = settings
    app.state.draining = draining
    app.state.leaving = asyncio.Event()
    app.state.stop = draining.set
    described = [each for resource in resources for each in operations_of(resource)]
    for operation, handler in described:
        app.add_api_route(operation.path, throttle.guarded(operation, handler), methods=[operation.method], include_in_schema=False)
    pages = Pages(lambda: openapi.document(operation for operation, _ in described), settings.jwks_file)
    site = Site()
    for path, page in {
        "/": site.index,
        "/web/{path:path}": site.file,
        "/openapi.json": pages.openapi,
        "/docs": pages.docs,
        "/docs/start.js": pages.start,
        "/docs/swagger-ui.css": pages.asset,
        "/docs/swagger-ui-bundle.js": pages.asset,
        "/.well-known/jwks.json": pages.jwks,
    }.items():
        app.add_api_route(path, page, methods=["GET"], include_in_schema=False)
    app.add_api_route(DRAIN_PATH, Drain(identity).drain, methods=["POST"], include_in_schema=False)
    app.add_api_route(PATH, live.no_socket, methods=["GET"], include_in_schema=False)
    app.add_api_websocket_route(PATH, live.serve)
    for kind in (Error, grpc.aio.AioRpcError, problems.Unacceptable, HTTPException, ClientDisconnect):
        app.add_exception_handler(kind, _refuse)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=_READ_BY_PAGES,
            expose_headers=_SHOWN_TO_PAGES,
            max_age=600,
        )
    app.add_middleware(Edge)
    return app


def _keys(settings: GatewaySettings, storage: Storage) -> tuple[Signer, Identity]:
    """What signs access tokens, and what checks them.

    Raises:
        Unstartable: they are not good, or not of one pair.
    """
    try:
        signer = Signer(settings.signing_key_file)
    except OSError as fault:
        raise Unstartable(f"GLOAMING_SIGNING_KEY_FILE: {settings.signing_key_file} cannot be read: {fault.strerror}") from fault
    except ValueError as fault:
        raise Unstartable(f"GLOAMING_SIGNING_KEY_FILE: {fault}") from fault
    try:
        identity = Identity.from_file(settings.jwks_file, storage)
        known = {key.get("kid") for key in json.loads(settings.jwks_file.read_text())["keys"]}
    except (OSError, ValueError, KeyError, AttributeError, jwt.PyJWTError) as fault:
        raise Unstartable(f"GLOAMING_JWKS_FILE: {settings.jwks_file} is not a set of public keys (JWKS): {fault}") from fault
    if signer.key_id not in known:
        raise Unstartable(f"GLOAMING_JWKS_FILE: {settings.jwks_file} does not hold the public key of {settings.signing_key_file}")
    return signer, identity


async def _refuse(request: Request, error: Exception) -> Response:
    if isinstance(error, ClientDisconnect):
        return Response(status_code=499)  # nobody is there to read it; for the log
    if isinstance(error, HTTPException) and error.status_code == 405:
        # A path's methods are routes of their own: what is allowed is what any of them allows.
        probes = ({**request.scope, "method": method} for method in ("DELETE", "GET", "PATCH", "POST", "PUT"))
        allowed = [probe["method"] for probe in probes if any(route.matches(probe)[0] is Match.FULL for route in request.app.routes)]
        allowed += ["HEAD"] if "GET" in allowed else []
        error = HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})
    return problems.answer_for(error)
