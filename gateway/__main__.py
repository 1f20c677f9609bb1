"""The gateway's command line.

python -m gateway                                            serves
python -m gateway keys DIRECTORY                             makes the keys that access tokens are signed and checked with
python -m gateway token --subject ops --scope host           prints an access token, as `python -m gateway.admin token` does
python -m gateway settings                                   prints what the environment may set, as a table in Markdown
python -m gateway reasons                                    prints every reason that a refusal may have, as tables in Markdown
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog
import uvicorn
from fastapi import FastAPI

from gateway import admin, reasons
from gateway.app import create_app
from gateway.protocol import HEAD_BYTES, MESSAGE_BYTES, Protocol, WebSocket
from gateway.settings import GatewaySettings, table
from gateway.tokens import write_keys
from services.kit import logs, tracing
from services.kit.garbage import collect_seldom
from services.kit.settings import ServiceSettings, Unstartable, read, unknown
from services.kit.version import VERSION

_log = structlog.get_logger(__name__)


class Server(uvicorn.Server):
    """A server that lets streams end by themselves when it stops."""

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._app = app
        app.state.stop = self.stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens."""
        try:
            await super().startup(sockets)
        except SystemExit:
            listen = self._app.state.settings.listen
            raise SystemExit(f"GLOAMING_LISTEN: cannot listen on {listen}; is it taken?") from None

    def stop(self) -> None:
        """Has it stop as SIGTERM does."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends streams, lets other requests finish, and stops."""
        self._app.state.draining.set()
        await super().shutdown(sockets)

    def _log_started_message(self, listeners: Sequence[socket.SocketType]) -> None:
        """Says where it listens; what uvicorn says is for a server in a terminal."""
        _log.info("serving", version=VERSION, addresses=[f"{host}:{port}" for host, port, *_ in (each.getsockname() for each in listeners)])


def configure(app: FastAPI, settings: GatewaySettings) -> uvicorn.Config:
    """Returns how the application is served."""
    host, _, port = settings.listen.rpartition(":")
    return uvicorn.Config(
        app,
        host=host.strip("[]"),
        port=int(port),
        loop="uvloop",
        http=Protocol,
        h11_max_incomplete_event_size=HEAD_BYTES,
        ws=WebSocket,
        ws_max_size=MESSAGE_BYTES,
        ws_per_message_deflate=False,
        ws_ping_interval=None,  # the live socket has pings of its own
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Of nobody unless it is said; uvicorn itself believes 127.0.0.1, and an environment variable.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        # Longer than load balancers keep an idle connection, so that they never use one that is just being closed.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m gateway", description="Gloaming's gateway: REST, event streams, live sockets.")
    parser.add_argument("--version", action="version", version=f"gloaming {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", help="serve (the default); settings come from the environment")
    keys = commands.add_parser("keys", help="make the keys that access tokens are signed and checked with")
    keys.add_argument("directory", type=Path, help="where signing-key.pem (for the gateway alone) and jwks.json (for every service) go")
    admin.token_arguments(commands.add_parser("token", help="print an access token, for operators"))
    commands.add_parser("settings", help="print what the environment may set, as a table in Markdown")
    commands.add_parser("reasons", help="print every reason that a refusal may have, as tables in Markdown")
    asked = parser.parse_args(arguments)
    match asked.command:
        case "keys":
            try:
                write_keys(asked.directory)
            except FileExistsError as fault:
                sys.exit(str(fault))
        case "token":
            admin.token(asked)
        case "settings":
            print(table())
        case "reasons":
            print(reasons.table())
        case _:
            serve(read(GatewaySettings))


def serve(settings: GatewaySettings) -> None:
    """Serves until SIGTERM or SIGINT; then ends streams, lets requests finish, and stops."""
    logs.configure(settings.log_level, "gateway")
    for name in unknown(GatewaySettings, ServiceSettings):
        _log.warning("unknown_setting", variable=name)
    tracing.configure("gateway")
    try:
        app = create_app(settings)
    except Unstartable as fault:
        sys.exit(str(fault))
    collect_seldom()
    Server(app, configure(app, settings)).run()


if __name__ == "__main__":
    main()
