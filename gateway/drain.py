"""How an operator has one gateway stop: first it sends everybody elsewhere while it goes on serving, then it stops as by SIGTERM."""

from __future__ import annotations

import asyncio

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response

from gateway import exchange
from gateway.exchange import JSON
from services.kit.errors import Unreadable
from services.kit.identity import Identity

PATH = "/drainz"
SCOPE = "operator"
_AFTER_SECONDS, _LONGEST_SECONDS = 5, 300

_log = structlog.get_logger(__name__)


class Drain:
    """The path /drainz, which only operators use."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    async def drain(self, request: Request) -> Response:
        """From now on /readyz says that this process is not ready, and every answer closes its connection; `after` so many seconds (5), in
        which load balancers leave it out, it ends streams, lets requests finish, and stops. Asked again it goes on as it was.

        Raises:
            Unauthenticated, Forbidden: the token is not an operator's.
            Unreadable: `after` is not 0 to 300.
        """
        caller = await self._identity.caller(exchange.bearer(request))
        caller.require(SCOPE)
        after = exchange.int_query(request, "after", _AFTER_SECONDS)
        if after > _LONGEST_SECONDS:
            raise Unreadable("after", f"must be 0 to {_LONGEST_SECONDS}")
        state = request.app.state
        if not state.leaving.is_set():
            _log.warning("told to drain", operator=caller.player, seconds=after)
            state.leaving.set()
            asyncio.get_running_loop().call_later(after, state.stop)
        return Response(msgspec.json.encode({"draining": True}), 202, {"Cache-Control": "no-store"}, JSON)
