"""The operator's command: python -m gateway.admin COMMAND, with --help.

Matches are looked at and ended by their game's service, which is asked with a token that the command signs for itself: state and seed leave
no service but there, on request, and logged. What belongs to the gateway (revocations) it does in Redis. It reads the same environment as
the gateway. What cannot be done is said in one sentence, with the exit status 1; a wrong argument has 2.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import grpc
import grpc.aio
import httpx
from pydantic import Field, field_validator
from pydantic_settings import NoDecode
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError

from gateway import backup, drain, transcoding
from gateway.players import clean_name, matches_key, revoke, signed_in
from gateway.problems import reason_of
from gateway.registry import GAMES, game_of
from gateway.settings import GatewaySettings
from gateway.tokens import SCOPES, Signer
from gateway.upstream import Services
from gloaming.operator.v1 import operator_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import Error, NotFound, Unavailable, Unreadable
from services.kit.settings import read
from services.kit.storage import Storage

_YEAR = 31_536_000
_DAY = 86_400
# Longer than any token is good that `token` prints.
_REVOKED_DAYS = _YEAR // _DAY + 1
_TOKEN_SECONDS, _OWN_SECONDS = 3600, 60
_HTTP_SECONDS = 10.0
_PLAYER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_WHO = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_PREFIX = re.compile(f"({'|'.join(GAMES)})(-[a-z0-9]{{0,40}})?")
_ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}")
_URL = re.compile(r"https?://" + _ADDRESS.pattern + "/?")
_NOBODY = "gateway"
_OPERATOR = "give --redis-url, or REDIS_URL, with the Redis user `operator` (deploy/redis/users.acl)"
_STATUS = {"playing": table_pb2.PLAYING, "finished": table_pb2.FINISHED}
_UNREACHABLE = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED})


class Settings(GatewaySettings):
    """What the gateway is set to, as far as it is known here."""

    services: Annotated[dict[str, str], NoDecode] = Field(default={})
    signing_key_file: Path = Path()
    jwks_file: Path = Path()

    @field_validator("services")
    @classmethod
    def _every_game(cls, value: dict[str, str]) -> dict[str, str]:
        return GatewaySettings._every_game(value) if value else value


class _Cannot(Exception):
    """What was asked cannot be done; the message says why in a sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what the command line asks for; returns the exit status."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    for name, value in vars(asked).items():
        # What the shell gave in another encoding: it can be neither sent nor logged.
        if isinstance(value, str) and not _is_text(value):
            parser.error(f"{name} must be UTF-8")
    if getattr(asked, "key", None) is not None:
        os.environ["GLOAMING_SIGNING_KEY_FILE"] = str(asked.key)
    if getattr(asked, "redis_url", None) is not None:
        os.environ["REDIS_URL"] = asked.redis_url
        os.environ.pop("REDIS_URL_FILE", None)
    if asked.command == "token":
        token(asked)
        return 0
    try:
        return asyncio.run(_COMMANDS[asked.command](asked, read(Settings)))
    except (_Cannot, backup.BackupError) as fault:
        print(fault, file=sys.stderr)
    except (Error, grpc.aio.AioRpcError, RedisError, httpx.HTTPError, httpx.InvalidURL, OSError) as fault:
        print(_sentence(fault), file=sys.stderr)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gateway.admin", description="Gloaming's operator: matches, players, replicas, backups."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, does: str, *, calls: bool = False, redis: bool = False) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=does, description=does[0].upper() + does[1:] + ".")
        added.add_argument("--json", action="store_true", help="print JSON")
        if calls:
            added.add_argument("--key", type=Path, help="the private key (default: what GLOAMING_SIGNING_KEY_FILE names)")
            added.add_argument("--by", type=_who, default=_me(), help="who you are, for the services' logs (default: your user name)")
        if redis:
            added.add_argument("--redis-url", help="the Redis to use (default: REDIS_URL)")
        return added

    find = command("find", "list matches, as they are found", calls=True, redis=True)
    find.add_argument("prefix", nargs="?", type=_prefix, help="what their ids begin with: a game's id, or more (default: any)")
    find.add_argument("--player", type=_player, help="only those of the player of this id")
    find.add_argument("--name", default="", help="only those of players whose name has this in it")
    find.add_argument("--status", choices=_STATUS, help="only those that stand so")
    find.add_argument("--limit", type=_number(1, 1_000_000), default=100, help="at most so many (default 100)")
    inspect = command("inspect", "tell what is stored of a match", calls=True)
    inspect.add_argument("match", type=_match)
    inspect.add_argument("--reveal-secrets", action="store_true", help="tell the seed, the state and every seat's view too; it is logged")
    inspect.add_argument("--reason", default="", help="why; must be given with --reveal-secrets")
    end = command("end", "end a match: nobody wins it, no rating changes, its watchers are told", calls=True)
    end.add_argument("match", type=_match)
    end.add_argument("--reason", required=True, help="why; it is logged")
    revoked = command("revoke", "end every token that a player has, at once and everywhere", redis=True)
    revoked.add_argument("player", type=_player)
    days = _number(1, 3660)
    revoked.add_argument("--days", type=days, default=_REVOKED_DAYS, help=f"for how long (default {_REVOKED_DAYS}: longer than any token)")
    token_arguments(commands.add_parser("token", help="print an access token, for who makes matches over gRPC (`host`), or plays (`play`)"))
    stop = command("drain", "have one replica send everybody elsewhere, and stop as SIGTERM does", calls=True)
    stop.add_argument("replica", type=_replica, help="a game service's HOST:PORT (gRPC), or a gateway's http://HOST:PORT")
    stop.add_argument(
        "--after", type=_number(0, 300), default=5, help="seconds until a gateway stops that is not ready any more (default 5)"
    )
    saved = command("backup", "write all that is stored to a file", redis=True)
    saved.add_argument("file", type=Path, help="a new file, which holds secrets; - for standard output")
    put = command("restore", "put all back that a backup holds", redis=True)
    put.add_argument("file", type=Path, help="the backup; - for standard input")
    put.add_argument("--replace", action="store_true", help="remove what is stored before; else there may be nothing")
    return parser


# Tokens, for this command and `python -m gateway token`.


def token_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what `token` takes."""
    parser.add_argument("--key", type=Path, help="the private key (default: what GLOAMING_SIGNING_KEY_FILE names)")
    parser.add_argument("--subject", type=_player, default="ops", help="whom it speaks for (default ops)")
    parser.add_argument("--name", type=_name, default="", help="the name that others see")
    parser.add_argument("--scope", type=_scope, default="host", help=f"what it is good for: {' or '.join(SCOPES)}, or both (default host)")
    parser.add_argument("--seconds", type=_number(1, _YEAR), help=f"how long it is good, 1 to {_YEAR} (default {_TOKEN_SECONDS})")


def token(asked: argparse.Namespace) -> None:
    """Prints an access token; without a good key the process ends with a sentence."""
    longest = _YEAR
    if signed_in(asked.subject):
        # Signing out is remembered for as long as the gateway's own tokens are good.
        known = os.environ.get("GLOAMING_ACCESS_TOKEN_SECONDS", "")
        longest = int(known) if known.isascii() and known.isdecimal() else int(Settings.model_fields["access_token_seconds"].default)
    seconds = asked.seconds or min(_TOKEN_SECONDS, longest)
    if seconds > longest:
        sys.exit(f"A token for a player who signs in is good for at most {longest} s, or it would outlive their signing out.")
    try:
        signer = _signer(asked.key or os.environ.get("GLOAMING_SIGNING_KEY_FILE", ""))
        print(signer.access(asked.subject, asked.name, 0, asked.scope, seconds)[0])
    except _Cannot as fault:
        sys.exit(str(fault))


def _signer(key: Path | str) -> Signer:
    if not str(key) or str(key) == ".":
        raise _Cannot("Name the private key: with --key, or with GLOAMING_SIGNING_KEY_FILE.")
    try:
        return Signer(Path(key))
    except OSError as fault:
        raise _Cannot(f"{key} cannot be read: {fault.strerror}.") from fault
    except ValueError as fault:
        raise _Cannot(f"{fault}.") from fault


# Matches.


async def _find(asked: argparse.Namespace, settings: Settings) -> int:
    status = _STATUS[asked.status] if asked.status else table_pb2.MATCH_STATUS_UNSPECIFIED
    found: dict[str, operator_pb2.MatchSummary] = {}
    away: set[str] = set()
    beginning, player = asked.prefix or "", asked.player or ""
    async with _calling(asked, settings) as (services, authorization):
        if signed_in(player) and (ids := await _of_player(settings, player)):
            for match_id in ids:
                told = None
                if match_id.startswith(beginning):
                    with _noting(away, match_id.partition("-")[0]):
                        told = await _summary(services, authorization, match_id)
                if told and status in (told.status, table_pb2.MATCH_STATUS_UNSPECIFIED) and _has(told, asked.name):
                    found[match_id] = told
                if len(found) == asked.limit:
                    break
        else:
            prefix = beginning if "-" in beginning else ""
            request = operator_pb2.ListMatchesRequest(prefix=prefix, player=player, name=asked.name, status=status)
            for game in [beginning.partition("-")[0]] if beginning else GAMES:
                with _noting(away, game):
                    listing = services[game].stream("ListMatches", authorization, request)
                    async for page in listing:
                        found |= {match.match_id: match for match in page.matches}
                        if len(found) >= asked.limit:
                            listing.cancel()
                            break
    matches = list(found.values())[: asked.limit]
    lines = map(_line, matches) if matches else ["No match is like that."]
    _say(asked, {"matches": [transcoding.plain(match) for match in matches], "away": sorted(away)}, *lines)
    for game in sorted(away):
        print(f"Matches of {game} are not among these: its service does not answer.", file=sys.stderr)
    return 1 if away else 0


@contextlib.contextmanager
def _noting(away: set[str], game: str) -> Iterator[None]:
    """Notes that a game does not answer, where it does not: the others are told all the same."""
    try:
        yield
    except grpc.aio.AioRpcError as fault:
        if reason_of(fault) or fault.code() not in _UNREACHABLE:
            raise
        away.add(game)


def _has(match: operator_pb2.MatchSummary, name: str) -> bool:
    return not name or any(name.casefold() in seat.name.casefold() for seat in match.seats)


async def _of_player(settings: Settings, player: str) -> list[str]:
    """The ids of a player's matches, newest first, as the gateway has them."""
    async with _storing(settings) as storage:
        listed: Any = await storage.call(storage.redis.zrevrange(matches_key(player), 0, -1))
    return [match_id.decode() for match_id in listed]


async def _summary(services: Services, authorization: str, match_id: str) -> operator_pb2.MatchSummary | None:
    with contextlib.suppress(NotFound):
        upstream = services.of_match(match_id)
        try:
            told = await upstream.call("InspectMatch", authorization, operator_pb2.InspectMatchRequest(match_id=match_id))
        except grpc.aio.AioRpcError as refusal:
            if reason_of(refusal) == "MATCH_UNREADABLE":
                return operator_pb2.MatchSummary(match_id=match_id)
            if refusal.code() is not grpc.StatusCode.NOT_FOUND:
                raise
        else:
            return cast(operator_pb2.MatchSummary, told.summary)
    return None  # it is kept no more


async def _inspect(asked: argparse.Namespace, settings: Settings) -> int:
    if asked.reveal_secrets and not asked.reason.strip():
        raise _Cannot("Say why, with --reason: what is hidden is only told with a reason, which is logged.")
    request = operator_pb2.InspectMatchRequest(match_id=asked.match, reveal_secrets=asked.reveal_secrets, reason=asked.reason)
    async with _calling(asked, settings) as (services, authorization):
        told = await services.of_match(asked.match).call("InspectMatch", authorization, request)
    plain = dict(transcoding.plain(told))
    if told.HasField("secrets"):
        plain["secrets"] = {**plain["secrets"], "state": json.loads(told.secrets.state)}
    else:
        plain.pop("secrets", None)
    watched = ", ".join(f"seat {watcher.seat} on {watcher.replica}" for watcher in told.watchers) or "from no seat"
    lines = [
        _line(told.summary),
        f"  made {_when(told.create_time)}, changed {_when(told.update_time)}, kept until {_when(told.expire_time)}",
        f"  {told.events} events, {told.answers} answers, {told.stored_bytes} bytes; watched {watched}",
        f"  settings {json.dumps(plain['match']['settings'])}, options {json.dumps(plain['match']['options'])}",
        f"  deadline {plain['match'].get('deadline') or 'none'}",
        "As spectators see it:",
        json.dumps(plain["match"]["view"], indent=2, ensure_ascii=False),
    ]
    if "secrets" in plain:
        lines += ["What is hidden:", json.dumps(plain["secrets"], indent=2, ensure_ascii=False)]
    _say(asked, plain, *lines)
    return 0


async def _end(asked: argparse.Namespace, settings: Settings) -> int:
    request = operator_pb2.EndMatchRequest(match_id=asked.match, reason=asked.reason)
    async with _calling(asked, settings) as (services, authorization):
        told = await services.of_match(asked.match).call("EndMatch", authorization, request)
    how = table_pb2.Outcome.Ending.Name(told.summary.outcome.ending)
    _say(asked, transcoding.plain(told), f"{asked.match} {'has ended' if told.ended else 'had ended already'}: {how}.")
    return 0


def _line(match: operator_pb2.MatchSummary) -> str:
    if not match.version:
        return f"{match.match_id}  UNREADABLE"
    seats = ", ".join(f"{seat.name} ({seat.player})" if seat.player else seat.name for seat in match.seats)
    ended = match.HasField("outcome")
    stands = table_pb2.Outcome.Ending.Name(match.outcome.ending) if ended else table_pb2.MatchStatus.Name(match.status)
    return f"{match.match_id}  {stands}  version {match.version}  {seats}"


# Players, replicas, backups.


async def _revoke(asked: argparse.Namespace, settings: Settings) -> int:
    if asked.player == _NOBODY:
        raise _Cannot(f"{_NOBODY} is the gateway itself; to end its tokens give it another key.")
    async with _storing(settings) as storage:
        generation = await revoke(storage, asked.player, asked.days * _DAY)
    plain = {"player": asked.player, "generation": generation, "days": asked.days}
    says = [f"No token that {asked.player} has is good any more; this is remembered for {asked.days} days."]
    if not signed_in(asked.player):
        says.append("Nor will be one that is printed for that subject until then: choose another.")
    _say(asked, plain, *says)
    return 0


async def _drain(asked: argparse.Namespace, settings: Settings) -> int:
    if _URL.fullmatch(asked.replica):
        authorization = _authorization(asked, settings)
        url = asked.replica.rstrip("/") + drain.PATH
        async with httpx.AsyncClient(timeout=_HTTP_SECONDS, trust_env=False) as client:
            try:
                answer = await client.post(url, params={"after": asked.after}, headers={"Authorization": authorization})
            except (httpx.HTTPError, httpx.InvalidURL) as fault:
                raise _Cannot(f"No gateway answers at {asked.replica}.") from fault
        if answer.status_code != 202:
            reason = _problem(answer)
            raise _Cannot(f"{asked.replica} refuses: {reason}.")
        _say(asked, {"replica": asked.replica, "after": asked.after}, f"{asked.replica} drains, and stops in {asked.after} s.")
        return 0
    async with _calling(asked, settings, at=asked.replica) as (services, authorization):
        told = await services[next(iter(GAMES))].call("Drain", authorization, operator_pb2.DrainRequest())
    _say(asked, transcoding.plain(told), f"{told.game} at {asked.replica} ({told.process}) drains, and stops.")
    return 0


def _problem(answer: httpx.Response) -> str:
    """Why a gateway refuses."""
    try:
        said = answer.json()
        return f"{said['reason']}, {said['detail']}"
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status_code}"


async def _backup(asked: argparse.Namespace, settings: Settings) -> int:
    async with _storing(settings) as storage:
        if str(asked.file) != "-":
            counts = await backup.back_up(storage, asked.file)
        elif sys.stdout.isatty():
            raise _Cannot("A backup is no text: send standard output to a file.")
        else:
            counts = await backup.write(storage, sys.stdout.buffer)
            sys.stdout.flush()
    _say(asked, counts.plain(), f"Written: {_counted(counts)}.", to=sys.stderr if str(asked.file) == "-" else sys.stdout)
    return 0


async def _restore(asked: argparse.Namespace, settings: Settings) -> int:
    with contextlib.ExitStack() as stack:
        path = asked.file
        if str(path) == "-":
            # It is read twice: nothing is written before it is known to be whole.
            spooled = stack.enter_context(tempfile.NamedTemporaryFile())
            await asyncio.to_thread(shutil.copyfileobj, sys.stdin.buffer, spooled)
            spooled.flush()
            path = Path(spooled.name)
        async with _storing(settings) as storage:
            counts = await backup.restore(storage, path, replace=asked.replace)
    _say(asked, counts.plain(), f"Restored: {_counted(counts)}; {counts.expired} keys had expired.")
    return 0


def _counted(counts: backup.Counts) -> str:
    return f"{counts.matches} matches and {counts.players} players, {sum(counts.keys.values())} keys in all"


_COMMANDS: dict[str, Callable[[argparse.Namespace, Settings], Coroutine[Any, Any, int]]] = {
    "find": _find,
    "inspect": _inspect,
    "end": _end,
    "revoke": _revoke,
    "drain": _drain,
    "backup": _backup,
    "restore": _restore,
}


@contextlib.asynccontextmanager
async def _calling(asked: argparse.Namespace, settings: Settings, at: str = "") -> AsyncIterator[tuple[Services, str]]:
    """Every game's service, or the one replica at an address for all of them, and the authorization of whoever runs this command."""
    authorization = _authorization(asked, settings)
    targets = dict.fromkeys(GAMES, at) if at else settings.services
    if not targets:
        raise _Cannot("Say where the games' services are: GLOAMING_SERVICES, as the gateway has it.")
    async with Services(targets, settings.rpc_seconds, certificate=settings.certificate()) as services:
        yield services, authorization


def _authorization(asked: argparse.Namespace, settings: Settings) -> str:
    signed, _ = _signer(settings.signing_key_file).access(f"operator:{asked.by}", asked.by, 0, drain.SCOPE, _OWN_SECONDS)
    return f"Bearer {signed}"


@contextlib.asynccontextmanager
async def _storing(settings: Settings) -> AsyncIterator[Storage]:
    storage = Storage(settings.redis_url)
    try:
        yield storage
    finally:
        await storage.close()


def _sentence(fault: Exception) -> str:
    """What to say of a fault."""
    if isinstance(fault, grpc.aio.AioRpcError):
        if reason := reason_of(fault):
            return f"{reason}: {fault.details()}."
        if fault.code() in _UNREACHABLE:
            return "The game's service does not answer; is GLOAMING_SERVICES right?"
        return f"The game's service refuses: {fault.code().name}."
    causes = (fault, fault.__cause__)
    if any(isinstance(each, AuthenticationError) for each in causes):
        return f"Redis does not know this user or password: {_OPERATOR}."
    if any(isinstance(each, NoPermissionError) or "ACL failure" in str(each) or "NOPERM" in str(each) for each in causes if each):
        return f"This Redis user may not do that: {_OPERATOR}."
    if isinstance(fault, Unavailable) and fault.reason == "STORAGE_UNAVAILABLE":
        return "Redis does not answer; is REDIS_URL right?"
    if isinstance(fault, Error):
        return f"{fault.reason}: {fault.detail}."
    if isinstance(fault, RedisError):
        return f"Redis refuses: {str(fault).rstrip('.')}."
    return f"It failed: {str(fault).rstrip('.') or type(fault).__name__}."


def _say(asked: argparse.Namespace, plain: Any, *lines: str, to: Any = None) -> None:
    text = json.dumps(plain, indent=2, ensure_ascii=False) if asked.json else "\n".join(lines)
    with contextlib.suppress(BrokenPipeError):
        print(text, file=to or sys.stdout, flush=True)


def _when(time: Any) -> str:
    return str(time.ToDatetime().isoformat(" ", "seconds")) if time.ByteSize() else "never"


def _me() -> str:
    me = os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    return me if _WHO.fullmatch(me) else "operator"


# What arguments may be.


def _number(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"must be {least} to {most}")
        return int(text)

    return number


def _shaped(shape: re.Pattern[str], must: str) -> Callable[[str], str]:
    def shaped(text: str) -> str:
        if not shape.fullmatch(text):
            raise argparse.ArgumentTypeError(must)
        return text

    return shaped


_player = _shaped(_PLAYER, "must be a player's id")
_who = _shaped(_WHO, "must be a name of at most 64 letters, digits, . _ @ -")
_prefix = _shaped(_PREFIX, f"must begin with a game's id: {', '.join(GAMES)}")


def _replica(text: str) -> str:
    if not re.fullmatch(f"{_ADDRESS.pattern}|{_URL.pattern}", text) or int(text.rstrip("/").rpartition(":")[2]) > 65_535:
        raise argparse.ArgumentTypeError("must be HOST:PORT of a service, or http://HOST:PORT of a gateway")
    return text


def _name(text: str) -> str:
    try:
        return clean_name(text) if text else ""
    except Unreadable as fault:
        raise argparse.ArgumentTypeError(fault.description) from None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _match(text: str) -> str:
    try:
        game_of(text)
    except NotFound:
        raise argparse.ArgumentTypeError("must be the id of a match") from None
    return text


def _scope(text: str) -> str:
    words = text.split()
    if not words or not set(words) <= set(SCOPES):
        raise argparse.ArgumentTypeError(f"must be {' or '.join(SCOPES)}, or both")
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main())
