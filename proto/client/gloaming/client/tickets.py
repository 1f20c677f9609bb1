"""Wishes for a match with others. One is made by `Table.create_ticket`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from gloaming.client.connection import REQUEST_SECONDS, Connection, read
from gloaming.gateway.v1 import gateway_pb2

_LIVE = (gateway_pb2.Ticket.WAITING, gateway_pb2.Ticket.FORMING)


class Tickets:
    """The player's own tickets. Get them from `Client.tickets`.

    A ticket must be looked at, or it expires: `watch` and `matched` do so all the while.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, ticket_id: str, *, wait: float = 0) -> gateway_pb2.Ticket:
        """Returns a ticket: as it is, or as soon as its status has changed, at the latest after so many seconds (25 at most)."""
        query = {"wait": f"{wait:g}s"} if wait else {}
        path = f"/v1/tickets/{ticket_id}"
        return await self._connection.send("GET", path, gateway_pb2.Ticket, query=query, seconds=wait + REQUEST_SECONDS)

    async def cancel(self, ticket_id: str) -> gateway_pb2.Ticket:
        """Cancels a ticket, for all who play with it.

        Raises:
            ProblemError: others were found already (422, TICKET_MATCHED), …
        """
        return await self._connection.send("DELETE", f"/v1/tickets/{ticket_id}", gateway_pb2.Ticket)

    async def watch(self, ticket_id: str) -> AsyncGenerator[gateway_pb2.Ticket, None]:
        """Yields a ticket now and whenever it, or what it waits for, has changed, until it waits no more."""
        told = None
        async with contextlib.aclosing(self._connection.events(f"/v1/tickets/{ticket_id}")) as events:
            async for event in events:
                if event.event == "ticket" and (ticket := read(event.data, gateway_pb2.Ticket)) != told:
                    told = ticket
                    yield ticket
                    if ticket.status not in _LIVE:
                        return

    async def matched(self, ticket_id: str) -> gateway_pb2.Ticket:
        """Waits until a ticket waits no more, and returns it: MATCHED, with the match's id, or CANCELLED, EXPIRED, FAILED."""
        ticket = await self.get(ticket_id)
        while ticket.status in _LIVE:
            ticket = await self.get(ticket_id, wait=25)
        return ticket
