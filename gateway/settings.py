"""What an operator sets, for the gateway. Environment variables, prefixed `GLOAMING_` but for `REDIS_URL`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import NoDecode

from gateway.registry import GAMES
from services.kit.settings import Common, ServiceSettings


class GatewaySettings(Common):
    """Settings of the gateway."""

    listen: str = Field(default="0.0.0.0:8080", description="Address of the HTTP server.")
    services: Annotated[dict[str, str], NoDecode] = Field(
        description="Where each game is, as gRPC names targets: `night_clan=dns:///night-clan:50051,…`."
    )
    signing_key_file: Path = Field(description="The private key of access tokens (Ed25519, PEM).")
    access_token_seconds: int = Field(default=900, ge=1, le=86_400, description="How long an access token is good.")
    refresh_days: float = Field(default=90, gt=0, description="How long a refresh token is good, and a profile kept that nobody uses.")
    body_limit: int = Field(default=65_536, ge=1024, description="Most bytes of a request body.")
    rpc_seconds: float = Field(default=5, gt=0, le=60, description="How long a call to a game service may take.")
    socket_buffer: int = Field(
        default=262_144, ge=65_536, description="Most bytes that wait for a live socket whose client does not read; then it is cut off."
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

    @field_validator("cors_origins", mode="before")
    @classmethod
    def _origins(cls, value: object) -> object:
        return [origin.strip() for origin in value.split(",") if origin.strip()] if isinstance(value, str) else value


# What the fields that all processes share do not say themselves.
_SAID = {
    "REDIS_URL": "The Redis that holds everything: `redis://`, `rediss://` or `unix://`.",
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
            default = "must be set" if field.is_required() else f"`{field.default}`" if field.default not in ("", []) else "none"
            yield f"| `{variable}` | {of} | {default} | {field.description or _SAID[variable]} |"
