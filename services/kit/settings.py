"""What an operator sets, for a game service. Environment variables, prefixed `GLOAMING_` but for `REDIS_URL` and `REDIS_URL_FILE`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias, TypeVar

import redis.asyncio
from pydantic import AfterValidator, BeforeValidator, Field, FilePath, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from redis.exceptions import RedisError

from services.kit import tls
from services.kit.limits import rate
from services.kit.topology import masters_of

PREFIX = "GLOAMING_"
MOST_DAYS = 3650
_DAY_MS = 86_400_000


def _checked(check: Callable[[bytes], object]) -> Callable[[Path | None], Path | None]:
    """A validator of a file by what is in it."""

    def validate(file: Path | None) -> Path | None:
        if file is not None:
            try:
                check(file.read_bytes())
            except OSError as fault:
                raise ValueError(f"cannot be read: {fault.strerror}") from None
        return file

    return validate


def address(value: str) -> str:
    """Validates an address to listen on."""
    if not (port := re.search(r":(\d{1,5})$", value, re.ASCII)) or int(port[1]) > 65535:
        raise ValueError("give an address and a port, as in 0.0.0.0:8080")
    return value


Listen: TypeAlias = Annotated[str, AfterValidator(address)]
MaybeListen: TypeAlias = Annotated[str, AfterValidator(lambda value: value and address(value))]
_Nothing = BeforeValidator(lambda value: None if value == "" else value)
CertificateFile: TypeAlias = Annotated[FilePath | None, _Nothing, AfterValidator(_checked(tls.certificates))]
KeyFile: TypeAlias = Annotated[FilePath | None, _Nothing, AfterValidator(_checked(tls.public_half))]


class Redis(BaseSettings):
    """Where Redis is."""

    # What is wrong may hold a password.
    model_config = SettingsConfigDict(env_prefix=PREFIX, hide_input_in_errors=True, allow_inf_nan=False)

    redis_url: str = Field(
        default="redis://127.0.0.1:6379/0", validation_alias="REDIS_URL", pattern=r"^(rediss?(\+sentinel|\+cluster)?|unix)://"
    )
    redis_url_file: Annotated[FilePath | None, _Nothing] = Field(
        default=None, validation_alias="REDIS_URL_FILE", description="A file that says it instead, since it may hold a password."
    )

    @model_validator(mode="before")
    @classmethod
    def _url_from_file(cls, given: Any) -> Any:
        file = given.get("REDIS_URL_FILE") if isinstance(given, dict) else None
        if not file:
            return given
        if given.get("REDIS_URL"):
            raise ValueError("REDIS_URL and REDIS_URL_FILE: set one of them")
        try:
            url = Path(file).read_text().strip()
        except OSError as fault:
            raise ValueError(f"REDIS_URL_FILE: cannot be read: {fault.strerror}") from None
        except ValueError:
            raise ValueError("REDIS_URL_FILE: holds no text") from None
        return {**given, "REDIS_URL": url}

    @field_validator("redis_url")
    @classmethod
    def _names_a_redis(cls, url: str) -> str:
        # What redis-py says of it may repeat a part of the password.
        try:
            _try_url(url)
        except OSError as fault:
            raise ValueError(
                f"the files that ssl_ca_certs, ssl_certfile or ssl_keyfile name cannot be used: {fault.strerror or fault}"
            ) from None
        except (TypeError, ValueError, RedisError):
            raise ValueError(
                "is no address of a Redis; in a password write %2F for / and so on, and after ? only what redis-py knows"
            ) from None
        return url


def _try_url(url: str) -> None:
    """Makes what a connection is made of, and no connection; raises what redis-py raises."""
    masters = masters_of(url)
    if masters is None:
        pool: Any = redis.asyncio.ConnectionPool.from_url(url)  # redis-py leaves it untyped
        connection = pool.make_connection()
    else:
        kind: Any = masters.options.get("connection_class", redis.asyncio.Connection)
        connection = kind(**{name: value for name, value in masters.options.items() if name != "connection_class"})
    if isinstance(connection, redis.asyncio.SSLConnection):
        connection.ssl_context.get()


class Common(Redis):
    """Settings of every process."""

    wait_replicas: int = Field(default=0, ge=0, le=10, description="So many Redis replicas have a move before it is acknowledged.")
    wait_ms: int = Field(default=500, ge=1, le=900, description="How long they have for it; then the answer is 503, and safe to repeat.")
    jwks_file: FilePath = Field(description="Public keys of access tokens (JWKS).")
    webhooks: bool = Field(
        default=False, description="Whether players may have their turns told to a URL of their own; the same for all processes."
    )
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")
    drain_seconds: float = Field(default=10, ge=0, le=300, description="How long a stopping process lets calls finish.")
    tls_cert_file: CertificateFile = Field(
        default=None,
        description="The certificate (PEM) that gateway and services show each other; with the next two, else none speaks TLS.",
    )
    tls_key_file: KeyFile = Field(default=None, description="Its key (PEM).")
    tls_ca_file: CertificateFile = Field(default=None, description="The authorities (PEM) whose certificates the other side must have.")

    @model_validator(mode="after")
    def _mutual_tls(self) -> Self:
        _go_together(self, "tls_cert_file", "tls_key_file", "tls_ca_file")
        return self

    def certificate(self) -> tls.Certificate | None:
        """What gateway and services show each other; None where they speak no TLS. Raises Unstartable if it is no longer good."""
        return _certificate("GLOAMING_TLS_CERT_FILE", self.tls_cert_file, self.tls_key_file, self.tls_ca_file)


class ServiceSettings(Common):
    """Settings of a game service."""

    listen: Listen = Field(default="0.0.0.0:50051", description="Address of the gRPC server.")
    metrics_listen: MaybeListen = Field(default="0.0.0.0:9100", description="Address of the metrics page; empty: none.")
    health_listen: MaybeListen = Field(
        default="", description="Address where health (grpc.health.v1) and nothing else is told without TLS, for probes; empty: nowhere."
    )
    public_listen: MaybeListen = Field(
        default="",
        description="Address of a second gRPC server, for players from outside, with TLS but no certificates of clients: the game's verbs, "
        "health and reflection; empty: none.",
    )
    public_tls_cert_file: CertificateFile = Field(default=None, description="Its certificate (PEM).")
    public_tls_key_file: KeyFile = Field(default=None, description="The key of that (PEM).")
    public_limit_calls: str = Field(
        default="12000:400",
        description="Calls of one player there, at each replica by itself; a stream is one. So many a minute, after so many at once; "
        "`0`: no limit.",
    )
    bot_delay_ms: int = Field(default=600, ge=0, le=60_000, description="How long a bot thinks before each move.")
    deadline_shards: int = Field(default=8, ge=1, le=64, description="Into how many keys deadlines are spread; the same for all replicas.")
    outage_ms: int = Field(
        default=3_000, ge=100, le=_DAY_MS, description="A pause of service longer than this is credited to running clocks."
    )
    sweep_ms: int = Field(
        default=1_000, ge=10, le=_DAY_MS, validate_default=True, description="How often at least a replica looks for due deadlines."
    )
    lease_ms: int = Field(
        default=5_000, ge=100, le=_DAY_MS, description="How long a replica has for the deadlines it claimed, before another may take them."
    )
    live_ttl_days: int = Field(default=30, ge=1, le=MOST_DAYS, description="A match in which nothing happens for so long is dropped.")
    finished_ttl_days: float = Field(default=7, gt=0, le=MOST_DAYS, description="How long a finished match is kept.")

    presence_lease_ms: int = Field(
        default=15_000,
        ge=100,
        le=_DAY_MS,
        description="A player who watches, and whose replica is gone without a word, counts as there for so long.",
    )
    presence_grace_ms: int = Field(
        default=5_000, ge=0, le=_DAY_MS, description="A player who ceased to watch counts as there for so long, so as to come back."
    )
    abandon_seconds: int = Field(
        default=604_800,
        ge=0,
        le=MOST_DAYS * 86_400,
        description="A match is given up in which no player did anything for so long and three moves' time; 0: none is.",
    )
    result_lease_ms: int = Field(
        default=30_000,
        ge=100,
        le=_DAY_MS,
        description="A result that was handed out and is not acknowledged is handed out again after so long.",
    )

    @field_validator("sweep_ms")
    @classmethod
    def _sweeps_are_no_outages(cls, sweep_ms: int, info: ValidationInfo) -> int:
        outage_ms = info.data.get("outage_ms")
        if outage_ms is not None and outage_ms <= sweep_ms:
            raise ValueError(f"must be less than the outage_ms of {outage_ms}, or every pause between two sweeps is an outage")
        return sweep_ms

    @field_validator("public_limit_calls")
    @classmethod
    def _is_a_rate(cls, limit: str) -> str:
        rate(limit)
        return limit

    @model_validator(mode="after")
    def _public_tls(self) -> Self:
        _go_together(self, "public_listen", "public_tls_cert_file", "public_tls_key_file")
        return self

    def public_certificate(self) -> tls.Certificate | None:
        """What the server for players from outside shows; None where there is none. Raises Unstartable if it is no longer good."""
        return _certificate("GLOAMING_PUBLIC_TLS_CERT_FILE", self.public_tls_cert_file, self.public_tls_key_file)


def _go_together(settings: BaseSettings, *names: str) -> None:
    """Raises ValueError where some are set and others are not, or a key is not that of the certificate."""
    variables = {name: _variable(type(settings), (name,)) for name in names}
    missing = [variables[name] for name in names if not getattr(settings, name)]
    if len(missing) == len(names):
        return
    if missing:
        raise ValueError(f"{' and '.join(missing)} must be set too: all of {', '.join(variables.values())}, or none")
    certificate, key = (next(name for name in names if name.endswith(end)) for end in ("cert_file", "key_file"))
    if not tls.fits(getattr(settings, certificate).read_bytes(), getattr(settings, key).read_bytes()):
        raise ValueError(f"{variables[key]}: it is not the key of {variables[certificate]}")


class Unstartable(ValueError):
    """A process cannot start as it is set up; the message says what to set."""


def _certificate(setting: str, certificate: Path | None, key: Path | None, authorities: Path | None = None) -> tls.Certificate | None:
    if certificate is None or key is None:
        return None
    try:
        return tls.Certificate(certificate, key, authorities)
    except (OSError, ValueError) as fault:
        raise Unstartable(f"{setting}: {fault}") from fault


S = TypeVar("S", bound=BaseSettings)


def read(kind: type[S]) -> S:
    """Reads a process's settings from its environment; bad ones end the process with a sentence that says what to set."""
    try:
        return kind()
    except ValidationError as fault:
        sys.exit("\n".join(["These environment variables need another value:", *(f"  {_said(kind, error)}" for error in fault.errors())]))


def unknown(kind: type[BaseSettings], *others: type[BaseSettings]) -> list[str]:
    """The variables of the environment that have our prefix and are no setting of these kinds: misspelled, or meant for others."""
    known = {
        str(field.validation_alias or _variable(each, (name,))) for each in (kind, *others) for name, field in each.model_fields.items()
    }
    return sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known)


def _said(kind: type[BaseSettings], error: Any) -> str:
    said = error["msg"].removeprefix("Value error, ")
    # What is wrong with several names them itself.
    return f"{_variable(kind, error['loc'])}: {said}" if error["loc"] else said


def _variable(kind: type[BaseSettings], loc: tuple[int | str, ...]) -> str:
    name = ".".join(map(str, loc))
    return name if name.isupper() else f"{kind.model_config.get('env_prefix', '')}{name}".upper()
