"""What an operator sets, for a game service. Environment variables, prefixed `GLOAMING_` but for `REDIS_URL`."""

from __future__ import annotations

import sys
from typing import TypeVar

from pydantic import Field, FilePath, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Common(BaseSettings):
    """Settings of every process."""

    model_config = SettingsConfigDict(env_prefix="GLOAMING_")

    redis_url: str = Field(
        default="redis://127.0.0.1:6379/0", validation_alias="REDIS_URL", pattern=r"^(rediss?(\+sentinel|\+cluster)?|unix)://"
    )
    wait_replicas: int = Field(default=0, ge=0, le=10, description="So many Redis replicas have a move before it is acknowledged.")
    wait_ms: int = Field(default=500, ge=1, le=900, description="How long they have for it; then the answer is 503, and safe to repeat.")
    jwks_file: FilePath = Field(description="Public keys of access tokens (JWKS).")
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")
    drain_seconds: float = Field(default=10, ge=0, le=300, description="How long a stopping process lets calls finish.")


class ServiceSettings(Common):
    """Settings of a game service."""

    listen: str = Field(default="0.0.0.0:50051", pattern=r":\d{1,5}$", description="Address of the gRPC server.")
    metrics_listen: str = Field(default="0.0.0.0:9100", pattern=r"^$|:\d{1,5}$", description="Address of the metrics page; empty: none.")
    bot_delay_ms: int = Field(default=600, ge=0, le=60_000, description="How long a bot thinks before each move.")
    deadline_shards: int = Field(default=8, ge=1, le=64, description="Into how many keys deadlines are spread; the same for all replicas.")
    outage_ms: int = Field(default=3_000, ge=100, description="A pause of service longer than this is credited to running clocks.")
    sweep_ms: int = Field(default=1_000, ge=10, validate_default=True, description="How often at least a replica looks for due deadlines.")
    lease_ms: int = Field(
        default=5_000, ge=100, description="How long a replica has for the deadlines it claimed, before another may take them."
    )
    live_ttl_days: int = Field(default=30, ge=1, description="A match in which nothing happens for so long is dropped.")
    finished_ttl_days: float = Field(default=7, gt=0, description="How long a finished match is kept.")

    presence_lease_ms: int = Field(
        default=15_000, ge=100, description="A player who watches, and whose replica is gone without a word, counts as there for so long."
    )
    presence_grace_ms: int = Field(
        default=5_000, ge=0, description="A player who ceased to watch counts as there for so long, so as to come back."
    )
    abandon_seconds: int = Field(
        default=604_800,
        ge=0,
        description="A match is given up in which no player did anything for so long and three moves' time; 0: none is.",
    )
    result_lease_ms: int = Field(
        default=30_000,
        ge=100,
        description="A result that was handed out and is not acknowledged is handed out again after so long.",
    )

    @field_validator("sweep_ms")
    @classmethod
    def _sweeps_are_no_outages(cls, sweep_ms: int, info: ValidationInfo) -> int:
        outage_ms = info.data.get("outage_ms")
        if outage_ms is not None and outage_ms <= sweep_ms:
            raise ValueError(f"must be less than the outage_ms of {outage_ms}, or every pause between two sweeps is an outage")
        return sweep_ms


S = TypeVar("S", bound=BaseSettings)


def read(kind: type[S]) -> S:
    """Reads a process's settings from its environment; bad ones end the process with a sentence that says what to set."""
    try:
        return kind()
    except ValidationError as fault:
        wrong = [f"  {_variable(kind, error['loc'])}: {error['msg']}" for error in fault.errors()]
        sys.exit("\n".join(["These environment variables need another value:", *wrong]))


def _variable(kind: type[BaseSettings], loc: tuple[int | str, ...]) -> str:
    name = ".".join(map(str, loc))
    return name if name.isupper() else f"{kind.model_config.get('env_prefix', '')}{name}".upper()
