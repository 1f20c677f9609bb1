"""What operators ask of a process: whether it lives, whether it is of use now, and its metrics."""

from __future__ import annotations

import asyncio

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from gateway.exchange import JSON
from gateway.metrics import SERVING
from gateway.operations import Says, operation
from gateway.schemas import Schema, Schemas
from gateway.upstream import Services
from services.kit.storage import Storage


def _readiness(_: Schemas) -> Schema:
    return {
        "type": "object",
        "required": ["ready", "draining", "storage", "services", "allServing"],
        "properties": {
            "ready": {"type": "boolean"},
            "draining": {"type": "boolean"},
            "storage": {"type": "boolean"},
            "services": {"type": "object", "additionalProperties": {"type": "string"}},
            "allServing": {"type": "boolean"},
        },
    }


def _liveness(_: Schemas) -> Schema:
    return {"type": "object", "required": ["alive"], "properties": {"alive": {"type": "boolean"}}}


class Health:
    """The probes, and the metrics page."""

    def __init__(self, storage: Storage, services: Services, draining: asyncio.Event) -> None:
        self._storage = storage
        self._services = services
        self._draining = draining

    @operation("GET", "/healthz", tag="operators", answers={200: Says({JSON: _liveness})}, authorized=False)
    async def get_health(self, request: Request) -> Response:
        """Whether the process lives."""
        return Response(b'{"alive":true}', media_type=JSON)

    @operation(
        "GET",
        "/readyz",
        tag="operators",
        answers={200: Says({JSON: _readiness}, means="Ready"), 503: Says({JSON: _readiness}, means="Not ready; the body says why")},
        authorized=False,
    )
    async def get_readiness(self, request: Request) -> Response:
        """Whether requests can be served now.

        They can when Redis answers and the process is not about to stop. A game that is away takes no other with it: what each game's
        service says of itself (gRPC health v1: SERVING, …; or UNREACHABLE) is in the body, and `allServing` whether all of them serve.
        """
        storage, services = await asyncio.gather(self._storage.alive("gateway"), self._look())
        draining = self._draining.is_set() or request.app.state.leaving.is_set()
        ready = storage and not draining
        all_serve = all(status == "SERVING" for status in services.values())
        body = {"ready": ready, "draining": draining, "storage": storage, "services": services, "allServing": all_serve}
        return Response(msgspec.json.encode(body), 200 if ready else 503, {"Cache-Control": "no-store"}, JSON)

    @operation("GET", "/metrics", tag="operators", answers={200: Says({"text/plain": lambda _: {"type": "string"}})}, authorized=False)
    async def get_metrics(self, request: Request) -> Response:
        """Metrics, for Prometheus."""
        await self._look()
        return Response(generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _look(self) -> dict[str, str]:
        """Asks each game's service how it is; the metric says it too."""
        services = await self._services.health()
        for game, status in services.items():
            SERVING.labels(game).set(status == "SERVING")
        return services
