"""The gateway's command line.

python -m gateway                                            serves
python -m gateway keys DIRECTORY                             makes the keys that access tokens are signed and checked with
python -m gateway token --subject ops --scope host           prints an operator's access token
python -m gateway settings                                   prints what the environment may set, as a table in Markdown
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog
import uvicorn
from fastapi import FastAPI

from gateway.app import create_app
from gateway.protocol import HEAD_BYTES, MESSAGE_BYTES, Protocol, WebSocket
from gateway.settings import GatewaySettings, table
from gateway.tokens import SCOPES, Signer, write_keys
from services.kit import logs
from services.kit.garbage import collect_seldom
from services.kit.settings import read

_YEAR = 31_536_000

_log = structlog.get_logger(__name__)


class Server(uvicorn.Server):
    """A server that lets streams end by themselves when it stops."""

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends streams, lets other requests finish, and stops."""
        self._app.state.draining.set()
        await super().shutdown(sockets)

    def _log_started_message(self, listeners: Sequence[socket.SocketType]) -> None:
        """Says where it listens; what uvicorn says is for a server in a terminal."""
        _log.info("serving", addresses=[f"{host}:{port}" for host, port, *_ in (each.getsockname() for each in listeners)])


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
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", help="serve (the default); settings come from the environment")
    keys = commands.add_parser("keys", help="make the keys that access tokens are signed and checked with")
    keys.add_argument("directory", type=Path, help="where signing-key.pem (for the gateway alone) and jwks.json (for every service) go")
    token = commands.add_parser("token", help="print an access token, for operators")
    token.add_argument("--key", type=Path, help="the private key (default: what GLOAMING_SIGNING_KEY_FILE names)")
    token.add_argument("--subject", default="ops", help="whom it speaks for (default ops)")
    token.add_argument("--name", default="", help="the name that others see")
    token.add_argument("--scope", type=_scope, default="host", help=f"what it is good for: {' or '.join(SCOPES)}, or both (default host)")
    token.add_argument("--seconds", type=_seconds, default=3600, help=f"how long it is good, 1 to {_YEAR} (default 3600)")
    commands.add_parser("settings", help="print what the environment may set, as a table in Markdown")
    asked = parser.parse_args(arguments)
    match asked.command:
        case "keys":
            try:
                write_keys(asked.directory)
            except FileExistsError as fault:
                sys.exit(str(fault))
        case "token":
            print(_signer(asked.key).access(asked.subject, asked.name, 0, asked.scope, asked.seconds)[0])
        case "settings":
            print(table())
        case _:
            serve(read(GatewaySettings))


def _scope(text: str) -> str:
    words = text.split()
    if not words or not set(words) <= set(SCOPES):
        raise argparse.ArgumentTypeError(f"must be {' or '.join(SCOPES)}, or both")
    return " ".join(words)


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= _YEAR):
        raise argparse.ArgumentTypeError(f"must be 1 to {_YEAR}")
    return int(text)


def _signer(key: Path | None) -> Signer:
    """The signer with a key, or with the one that the environment names; without a good one the process ends with a sentence."""
    named = str(key or os.environ.get("GLOAMING_SIGNING_KEY_FILE", ""))
    if not named:
        sys.exit("Name the private key: with --key, or with GLOAMING_SIGNING_KEY_FILE.")
    try:
        return Signer(Path(named))
    except OSError as fault:
        sys.exit(f"{named} cannot be read: {fault.strerror}.")
    except ValueError as fault:
        sys.exit(f"{fault}.")


def serve(settings: GatewaySettings) -> None:
    """Serves until SIGTERM or SIGINT; then ends streams, lets requests finish, and stops."""
    logs.configure(settings.log_level, "gateway")
    app = create_app(settings)
    collect_seldom()
    Server(app, configure(app, settings)).run()


if __name__ == "__main__":
    main()
