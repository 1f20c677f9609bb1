"""What an operator sets, for the gateway. Environment variables, prefixed `GLOAMING_` but for `REDIS_URL` and `REDIS_URL_FILE`."""

from __future__ import annotations

import ipaddress
import itertools
import math
import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, FilePath, field_validator
from pydantic_settings import NoDecode

from gateway.registry import GAMES
from services.kit.limits import rate
from services.kit.settings import MOST_DAYS, Common, Listen, ServiceSettings


class GatewaySettings(Common):
    """Settings of the gateway."""

    listen: Listen = Field(default="0.0.0.0:8080", description="Address of the HTTP server.")
    services: Annotated[dict[str, str], NoDecode] = Field(
        description="Where each game is, as gRPC names targets: `night_clan=dns:///night-clan:50051,…`."
    )
    signing_key_file: FilePath = Field(description="The private key of access tokens (Ed25519, PEM).")
    access_token_seconds: int = Field(default=900, ge=1, le=86_400, description="How long an access token is good.")
    refresh_days: float = Field(
        default=90, gt=0, le=MOST_DAYS, description="How long a refresh token is good, and a profile kept that nobody uses."
    )
    guest_days: float = Field(
        default=90,
        gt=0,
        le=MOST_DAYS,
        description="A guest who has not signed in or refreshed for so long is forgotten, with all they own.",
    )
    body_limit: int = Field(default=65_536, ge=1024, le=16_777_216, description="Most bytes of a request body.")
    rpc_seconds: float = Field(default=5, gt=0, le=60, description="How long a call to a game service may take.")
    room_seconds: float = Field(default=7200, ge=60, le=604_800, description="How long a room is kept in which nothing happens.")
    ticket_bands: str = Field(
        default="0:100,5:200,10:400,20:any",
        description="How far from a ticket's rating others' may be, by the seconds that it has waited: each step is wider than the last.",
    )
    ticket_patience_seconds: float = Field(
        default=10, ge=0, le=600, description="How long a ticket holds out for the most seats it wishes for."
    )
    ticket_bots_seconds: int = Field(
        default=20, ge=-1, le=600, description="After how long bots take free seats, for tickets that do not say; -1: never."
    )
    ticket_unseen_seconds: float = Field(default=30, ge=1, le=600, description="A ticket expires that nobody has looked at for so long.")
    socket_buffer: int = Field(
        default=262_144,
        ge=65_536,
        le=67_108_864,
        description="Most bytes that wait for a live socket whose client does not read; then it is cut off.",
    )
    trusted_proxies: Annotated[list[str], NoDecode] = Field(
        default=[],
        description="Networks of the proxies whose `X-Forwarded-For` is believed, separated by commas: `10.0.0.0/8,::1`.",
    )
    limit_sign_ins: str = Field(
        default="60:120",
        description="Sign-ins and refreshes from one address (of IPv6: one /64), all gateways together: so many a minute, "
        "after so many at once. `0`: no limit; so for the limits below.",
    )
    limit_making: str = Field(
        default="120:120", description="Matches, rematches, rooms (opened, joined, started) and tickets that one player asks for."
    )
    limit_making_address: str = Field(default="600:600", description="The same from one address.")
    limit_rooms: str = Field(
        default="60:60", description="Codes of rooms that one player tries and that no room has; a code that a room has counts nothing."
    )
    limit_rooms_address: str = Field(default="300:300", description="The same from one address.")
    limit_sockets: str = Field(default="60:60", description="Live sockets that one player opens.")
    limit_sockets_address: str = Field(default="600:600", description="The same from one address.")
    limit_moves: str = Field(default="12000:400", description="Moves of one player, by REST and live socket, at each gateway by itself.")
    most_live_matches: int = Field(
        default=200, ge=0, le=1000, description="Matches that one player may have going when asking for another; `0`: no limit."
    )
    webhook_networks: Annotated[list[str], NoDecode] = Field(
        default=[],
        description="Networks in which players' webhooks may be beside public addresses, separated by commas; there by http and on every "
        "port too.",
    )
    cors_origins: Annotated[list[str], NoDecode] = Field(default=[], description="Origins whose pages may call, separated by commas.")

    @field_validator("services", mode="before")
    @classmethod
    def _targets(cls, value: object) -> object:
        # A target may hold commas itself: `night_clan=ipv4:10.0.0.1:50051,10.0.0.2:50051`.
        if not isinstance(value, str):
            return value
        return dict(part.partition("=")[::2] for part in re.split(r",\s*(?=[a-z_]+=)", value.strip()))

    @field_validator("services")
    @classmethod
    def _every_game(cls, value: dict[str, str]) -> dict[str, str]:
        if set(value) != set(GAMES) or not all(value.values()):
            raise ValueError(f"give one target for each of {', '.join(GAMES)}, as in night_clan=127.0.0.1:50051")
        return value

    @field_validator("ticket_bands")
    @classmethod
    def _bands_widen(cls, value: str) -> str:
        steps = bands(value)
        widths = [math.inf if band is None else band for _, band in steps]
        widen = all(a < b for a, b in itertools.pairwise(widths))
        later = all(a < b for (a, _), (b, _) in itertools.pairwise(steps))
        if steps[0][0] != 0 or not widen or not later:
            raise ValueError("give seconds from 0 on and widths, as in 0:100,5:200,20:any, each later and wider than the one before")
        return value

    @field_validator(
        "limit_sign_ins",
        "limit_making",
        "limit_making_address",
        "limit_rooms",
        "limit_rooms_address",
        "limit_sockets",
        "limit_sockets_address",
        "limit_moves",
    )
    @classmethod
    def _rates(cls, value: str) -> str:
        rate(value)
        return value

    @field_validator("trusted_proxies", "webhook_networks")
    @classmethod
    def _networks(cls, value: list[str]) -> list[str]:
        for network in value:
            ipaddress.ip_network(network)
        return value

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, value: list[str]) -> list[str]:
        for origin in value:
            if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s]+", origin):
                raise ValueError("give origins as browsers name them, as in https://play.example,http://localhost:5173, or *")
        return value

    @field_validator("cors_origins", "trusted_proxies", "webhook_networks", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value


def bands(text: str) -> tuple[tuple[int, int | None], ...]:
    """Reads the steps of a ticket's band: from how many ms on, how wide; None is any.

    Raises:
        ValueError: it is not seconds and widths.
    """
    if not re.fullmatch(r"\d{1,4}(\.\d{1,3})?:(\d{1,6}|any)(,\d{1,4}(\.\d{1,3})?:(\d{1,6}|any)){0,15}", text, re.ASCII):
        raise ValueError("give seconds and widths, as in 0:100,5:200,20:any")
    steps = (step.partition(":") for step in text.split(","))
    return tuple((round(float(since) * 1000), None if width == "any" else int(width)) for since, _, width in steps)


# What the fields that all processes share do not say themselves.
_SAID = {
    "REDIS_URL": (
        "The Redis that holds everything: `redis://`, `rediss://` or `unix://`; `redis+sentinel://host:port,…/service/0` or "
        "`redis+cluster://host:port,…`, `rediss+…` with TLS, and then `?ssl_ca_certs=FILE&ssl_certfile=FILE&ssl_keyfile=FILE`."
    ),
    "GLOAMING_LOG_LEVEL": "What is logged: `DEBUG`, `INFO`, `WARNING` or `ERROR`.",
}


def table() -> str:
    """Every environment variable of the gateway and of the services, as a table in Markdown."""
    rows = (
        *_rows(Common, "all"),
        *_rows(GatewaySettings, "gateway"),
        *_rows(ServiceSettings, "services"),
    )
    return "\n".join(["| variable | of | default | what it says |", "| --- | --- | --- | --- |", *rows])


def _rows(kind: type[Common], of: str) -> Iterator[str]:
    for name, field in kind.model_fields.items():
        if kind is Common or name not in Common.model_fields:
            variable = str(field.validation_alias or f"GLOAMING_{name.upper()}")
            default = "must be set" if field.is_required() else f"`{field.default}`" if field.default not in ("", [], None) else "none"
            yield f"| `{variable}` | {of} | {default} | {field.description or _SAID[variable]} |"
