"""Webhooks: a player's turns, told to a URL of their own, as Standard Webhooks are (https://www.standardwebhooks.com).

Off unless the operator wants it (GLOAMING_WEBHOOKS, for gateways and services alike). Every gateway asks every game's service who has come
to be to move and which matches have ended (`services.kit.turns`). What is to be told is taken in before that is acknowledged, and sent
until it is taken, is no news any more, or was tried for a day: nothing is lost with a process, and a notice that is sent twice has the
same `webhook-id`. Of a match only the newest is told. A player who watches the match sees for themselves: they are told once they have gone
and it is their turn still.

Keys: `gateway:{<player>}:player` (fields of the profile, so that both have one life), `gateway:{<player>}:notices` (hash: match id, what is
or was told of it), `gateway:{webhooks/<shard>}:due` (sorted sets: "player match", when it is to be sent, in ms).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import random
import secrets
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import grpc
import grpc.aio
import structlog
from starlette.requests import Request
from starlette.responses import Response

from gateway import exchange, transcoding
from gateway.exchange import Answer
from gateway.metrics import WEBHOOK_SECONDS, WEBHOOKS
from gateway.operations import operation, says
from gateway.outward import Network, Outward, Undelivered, target_of
from gateway.players import Players, signed_in
from gateway.problems import reason_of
from gateway.registry import GAMES, game_of
from gateway.tokens import HostToken
from gateway.upstream import Services
from gloaming.gateway.v1 import gateway_pb2
from gloaming.relay.v1 import relay_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import Error, NotFound, Refused
from services.kit.limits import Buckets, Rate
from services.kit.storage import Script, Storage
from services.kit.version import VERSION

_LUA = Path(__file__).parent / "lua"
_SET, _UNSET = Script(_LUA / "webhook_set.lua"), Script(_LUA / "webhook_unset.lua")
_TELL, _LOOK, _NOTE = Script(_LUA / "webhook_tell.lua"), Script(_LUA / "webhook_look.lua"), Script(_LUA / "webhook_note.lua")
_SCHEDULE, _CLAIM, _SETTLE = (Script(_LUA / f"webhook_{verb}.lua") for verb in ("schedule", "claim", "settle"))

_FIELDS = ("url", "created", "told", "failed", "reason", "disabled")
_PREFIX = "whsec_"
_SECRET_BYTES = 32
_SHARDS = 8
_PAGE = 100
# Of so many matches it is known what was told; longer than the longest clock, for what may come up again until then.
_MOST_NOTICES = 500
_KEEP_MS = 8 * 86_400_000
_GONE = 410
_OFTEN = Rate(interval=1.0, burst=60)
# Its own: tests that watch the shared one would see it move in the background.
_chance = random.Random()

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often what is done, in seconds; each time somewhat more or less, so that gateways do not act together.

    Args:
        idle: the pause before a service that had few turns is asked again, and before due notices are looked for.
        longest: the pause, which doubles from `idle` on, of a service that does not answer.
        lease: how long a gateway has for the notices it claimed, before another may take them.
        seconds: how long sending one may take; much less than that.
        again: the pause before a notice that was not taken is sent again, which grows fourfold each time.
        again_longest: the longest of those.
        over: after how long it is given up.
        patience: after how long in which nothing was taken a webhook is disabled.
        most: how many are sent at once.
        each: how many of those to one player.
        often: how often something is sent to one player, by each gateway.
    """

    idle: float = 1.0
    longest: float = 30.0
    lease: float = 60.0
    seconds: float = 5.0
    again: float = 5.0
    again_longest: float = 4 * 3600.0
    over: float = 86_400.0
    patience: float = 3 * 86_400.0
    most: int = 64
    each: int = 4
    often: Rate = _OFTEN

    def pause(self, tries: int) -> float:
        """The pause after so many tries."""
        return min(self.again * 4.0 ** min(tries - 1, 20), self.again_longest)


PACE = Pace()


class Webhooks:
    """Where players' turns are told.

    Args:
        on: whether any are; else nobody may set one.
        networks: where webhooks may be though they are not in the open.
    """

    def __init__(self, storage: Storage, players: Players, *, on: bool, networks: Sequence[Network] = ()) -> None:
        self._storage = storage
        self._players = players
        self._on = on
        self._networks = networks

    @operation(
        "PUT",
        "/v1/players/me/webhook",
        tag="players",
        body=gateway_pb2.SetWebhookRequest,
        answers={200: says(gateway_pb2.Webhook, means="The webhook, with its secret")},
        problems=(401, 404, 422),
    )
    async def set_webhook(self, request: Request) -> Response:
        """Has the caller's turns told to a URL.

        From then on each turn that comes to the caller, and the end of each of their matches, is sent there: a POST of a WebhookNotice,
        with the headers `webhook-id`, `webhook-timestamp` and `webhook-signature` of Standard Webhooks. In real time only the end is told.
        A turn is not told while the caller watches the match. Answer 2xx within 5 seconds; what is not taken is sent again for a day, 410
        removes the webhook. Each time it is set it gets a new secret, and begins anew. 422 (WEBHOOKS_OFF) where the operator does not
        want it.
        """
        caller = await self._players.caller(request)
        asked = await exchange.parse(request, gateway_pb2.SetWebhookRequest)
        if not self._on:
            raise Refused("WEBHOOKS_OFF", "this server tells nothing to webhooks")
        target_of(asked.url, self._networks)
        secret = _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
        player, _ = _keys(caller.player)
        created = await self._storage.run(_SET, [player], [asked.url, secret])
        if created is None:
            raise NotFound("PLAYER_NOT_FOUND", "there is no player of this id")
        webhook = gateway_pb2.Webhook(url=asked.url, secret=secret)
        webhook.create_time.FromMilliseconds(created)
        return Answer(webhook, headers={"Cache-Control": "no-store"})

    @operation("GET", "/v1/players/me/webhook", tag="players", answers={200: says(gateway_pb2.Webhook)}, problems=(401, 404))
    async def get_webhook(self, request: Request) -> Response:
        """Where the caller's turns are told, and how that goes.

        Without the secret. 404 (WEBHOOK_NOT_FOUND) where they are not.
        """
        caller = await self._players.caller(request)
        player, _ = _keys(caller.player)
        url, created, told, failed, reason, disabled = await self._storage.fields(player, *(f"webhook_{name}" for name in _FIELDS))
        if url is None or created is None:
            raise NotFound("WEBHOOK_NOT_FOUND", "no webhook is set")
        webhook = gateway_pb2.Webhook(url=url.decode(), disabled=disabled is not None)
        webhook.create_time.FromMilliseconds(int(created))
        if told is not None:
            webhook.last_success_time.FromMilliseconds(int(told))
        if failed is not None and reason is not None:
            webhook.last_failure.time.FromMilliseconds(int(failed))
            webhook.last_failure.reason = reason.decode()
        return Answer(webhook)

    @operation("DELETE", "/v1/players/me/webhook", tag="players", answers={200: says(gateway_pb2.Empty)}, problems=(401,))
    async def delete_webhook(self, request: Request) -> Response:
        """Has the caller's turns told nowhere any more.

        A notice that is on its way may still arrive.
        """
        caller = await self._players.caller(request)
        await self.forget(caller.player)
        return Answer(gateway_pb2.Empty())

    async def forget(self, player: str) -> None:
        """Has a player's turns told nowhere any more, and forgets what was told. Raises Unavailable: STORAGE_UNAVAILABLE."""
        await self._storage.run(_UNSET, _keys(player), [""])


class Notices:
    """Tells turns. Open it where the event loop runs, within `services`: `async with notices`."""

    def __init__(self, storage: Storage, services: Services, token: HostToken, outward: Outward, pace: Pace = PACE) -> None:
        self._storage = storage
        self._services = services
        self._token = token
        self._outward = outward
        self._pace = pace
        self._often = Buckets(pace.often)
        self._running: list[asyncio.Task[None]] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._under_way: Counter[str] = Counter()
        self._sooner = asyncio.Event()

    # What is to be told.

    async def _listen(self, game: str) -> None:
        """Takes a game's turns in, for ever."""
        pause = self._pace.idle
        while True:
            try:
                came = await self.take_in(game)
            except (Error, grpc.aio.AioRpcError) as fault:
                if pause == self._pace.idle:
                    reason = fault.reason if isinstance(fault, Error) else reason_of(fault) or fault.code().name
                    _log.warning("turns wait", game=game, reason=reason)
                pause = min(2 * pause, self._pace.longest)
            except Exception:
                # A fault of ours must not end it for good: what could not be told comes again.
                _log.exception("turns failed", game=game)
                pause = self._pace.longest
            else:
                pause = self._pace.idle
                if came > _PAGE // 2:
                    continue
            await asyncio.sleep(_chance.uniform(0.75, 1.25) * pause)

    async def take_in(self, game: str) -> int:
        """Takes in what a service hands out now; returns how many matches that were.

        Raises:
            grpc.aio.AioRpcError: the service cannot be asked now.
            Unavailable: STORAGE_UNAVAILABLE.
        """
        service, authorization = self._services[game], self._token.authorization
        listed = await service.call("ListTurns", authorization, relay_pb2.ListTurnsRequest(page_size=_PAGE))
        turns: list[relay_pb2.Turn] = list(listed.turns)
        taken = await asyncio.gather(*(self._take(turn) for turn in turns))
        if done := [turn.match_id for turn, is_done in zip(turns, taken, strict=True) if is_done]:
            await service.call("AcknowledgeTurns", authorization, relay_pb2.AcknowledgeTurnsRequest(match_ids=done, claim=listed.claim))
        return len(turns)

    async def _take(self, turn: relay_pb2.Turn) -> bool:
        """Takes in what a match has to tell each of its players; returns whether that is all, or the match is to be handed out again."""
        seats = [seat for seat in turn.seats if signed_in(seat.player)]
        try:
            return all(await asyncio.gather(*(self._take_for(turn, seat) for seat in seats)))
        except Error:
            raise
        except Exception:
            # It comes again, and does not keep others waiting.
            _log.exception("a turn cannot be told", match=turn.match_id)
            return False

    async def _take_for(self, turn: relay_pb2.Turn, seat: table_pb2.Seat) -> bool:
        kind, clock, body = _kind(turn, seat), "-", b""
        if kind in ("turn", "wait") and seat.HasField("deadline"):
            clock = str(seat.deadline.ToMilliseconds())
        if kind in ("turn", "ended"):
            body = transcoding.render(_notice(kind, turn, seat))
        arguments: list[str | bytes | int] = [turn.match_id, turn.version, kind, clock, body, _MOST_NOTICES, _KEEP_MS]
        # Each of it may be repeated, so whoever stops half-way has it handed out again.
        if not await self._storage.run(_TELL, _keys(seat.player), arguments):
            return True
        if kind == "wait":
            return False
        await self._storage.run(_SCHEDULE, [_due_key(seat.player)], [f"{seat.player} {turn.match_id}", _KEEP_MS])
        self._sooner.set()
        return True

    # How it is told.

    async def _send_all(self) -> None:
        """Sends what is due, for ever."""
        while True:
            self._sooner.clear()
            try:
                await self._send_due()
            except Error as fault:
                _log.warning("notices wait", reason=fault.reason)
            except Exception:
                _log.exception("notices failed")
            try:
                async with asyncio.timeout(_chance.uniform(0.75, 1.25) * self._pace.idle):
                    await self._sooner.wait()
            except TimeoutError:
                pass

    async def _send_due(self) -> None:
        """Begins to send what is due now, as far as there is room.

        Raises:
            Unavailable: STORAGE_UNAVAILABLE.
        """
        for key in _chance.sample(_DUE, _SHARDS):
            if (room := self._pace.most - len(self._sending)) <= 0:
                return
            claimed, *notices = await self._storage.run(_CLAIM, [key], [round(self._pace.lease * 1000), room])
            for notice in notices:
                task = asyncio.create_task(self._send(key, notice.decode(), claimed))
                self._sending.add(task)
                task.add_done_callback(self._sent)

    def _sent(self, task: asyncio.Task[None]) -> None:
        if len(self._sending) >= self._pace.most:
            self._sooner.set()
        self._sending.discard(task)

    async def _send(self, key: str, notice: str, claimed: int) -> None:
        """Sends a notice that was claimed. What fails here is left to whoever claims it next."""
        player, _, match_id = notice.partition(" ")
        try:
            # Whoever does not answer takes no more than a few of the places.
            pause: float | None = self._pace.idle
            if self._under_way[player] < self._pace.each:
                self._under_way[player] += 1
                try:
                    pause = self._often.take(player) or await self._try(player, match_id)
                finally:
                    self._under_way[player] -= 1
                    self._under_way += Counter()  # forgets those at zero
            await self._storage.run(_SETTLE, [key], [notice, claimed, "" if pause is None else round(pause * 1000)])
        except Error as fault:
            _log.warning("notices wait", reason=fault.reason)
        except Exception:
            _log.exception("a notice failed", match=match_id)

    async def _try(self, player: str, match_id: str) -> float | None:
        """Sends what is to be told to a player of a match, if anything is; returns after how many seconds it is to be sent again, or None.

        Raises:
            Unavailable: STORAGE_UNAVAILABLE.
        """
        keys = _keys(player)
        found = await self._storage.run(_LOOK, keys, [match_id])
        if found is None:
            return None
        now, url, secret, version, kind, clock, tries, since, body = found
        tries += 1
        pause: float | None = None
        if clock != b"-" and now > int(clock):
            # The clock has moved for them, or is about to.
            reason, outcome = "-", "dropped"
        else:
            reason = await self._post(url.decode(), secret.decode(), _id(player, match_id, version, kind.decode()), body)
            outcome = "failed" if reason else "told"
        if reason == f"STATUS_{_GONE}":
            await self._storage.run(_UNSET, keys, [secret])
            outcome = "gone"
        elif outcome == "failed":
            pause = _chance.uniform(0.8, 1.2) * self._pace.pause(tries)
            if now - since + pause * 1000 > self._pace.over * 1000:
                pause, outcome = None, "given_up"
        patience = round(self._pace.patience * 1000)
        arguments = [match_id, version, secret, tries, reason, int(pause is None), patience]
        if await self._storage.run(_NOTE, keys, arguments):
            pause, outcome = None, "disabled"
        WEBHOOKS.labels(outcome).inc()
        if outcome == "told":
            WEBHOOK_SECONDS.observe(max(0.0, time.time() - since / 1000))
        elif outcome != "dropped":
            _log.info("a notice was not taken", match=match_id, reason=reason, tries=tries, outcome=outcome)
        return pause

    async def _post(self, url: str, secret: str, notice_id: str, body: bytes) -> str:
        """Sends a notice once; returns why it was not taken, or nothing when it was."""
        timestamp = int(time.time())
        headers = {
            "User-Agent": f"Gloaming/{VERSION}",
            "Content-Type": exchange.JSON,
            "webhook-id": notice_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(secret, notice_id, timestamp, body),
        }
        try:
            status = await self._outward.post(url, body, headers)
        except Undelivered as fault:
            return fault.reason
        return "" if 200 <= status < 300 else f"STATUS_{status}"

    async def __aenter__(self) -> Notices:
        self._running = [asyncio.create_task(self._listen(game)) for game in GAMES]
        self._running.append(asyncio.create_task(self._send_all()))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        # Each takes some seconds at most; who cut one off would have it sent twice.
        await asyncio.gather(*self._sending)
        self._outward.close()


def signature(secret: str, notice_id: str, timestamp: int, body: bytes) -> str:
    """What the header `webhook-signature` holds: the first scheme of Standard Webhooks, HMAC-SHA-256.

    Args:
        secret: `whsec_` and base64.
        timestamp: when it is sent, in seconds since 1970.
    """
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signed = hmac.digest(key, b"%s.%d.%s" % (notice_id.encode(), timestamp, body), "sha256")
    return f"v1,{base64.b64encode(signed).decode()}"


def _kind(turn: relay_pb2.Turn, seat: table_pb2.Seat) -> str:
    """What there is to tell a seat, as webhook_tell.lua has it."""
    if seat.resigned:
        return "none"
    if turn.HasField("outcome"):
        return "ended"
    if seat.seat not in turn.to_move:
        return "none"
    return "wait" if seat.connected else "turn"


def _notice(kind: str, turn: relay_pb2.Turn, seat: table_pb2.Seat) -> gateway_pb2.WebhookNotice:
    notice = gateway_pb2.WebhookNotice(type=kind, timestamp=turn.time)
    data = notice.data
    data.match_id, data.game, data.seat, data.version = turn.match_id, game_of(turn.match_id).id, seat.seat, turn.version
    if turn.HasField("outcome"):
        data.outcome.CopyFrom(turn.outcome)
    elif seat.HasField("deadline"):
        data.deadline.CopyFrom(seat.deadline)
    return notice


def _id(player: str, match_id: str, version: int, kind: str) -> str:
    """The id of a notice: the same however often it is sent, and by whichever gateway."""
    return "msg_" + hashlib.sha256(f"{player} {match_id} {version} {kind}".encode()).hexdigest()[:32]


def _keys(player: str) -> list[str]:
    return [f"gateway:{{{player}}}:player", f"gateway:{{{player}}}:notices"]


_DUE = [f"gateway:{{webhooks/{shard}}}:due" for shard in range(_SHARDS)]


def _due_key(player: str) -> str:
    return _DUE[zlib.crc32(player.encode()) % _SHARDS]
