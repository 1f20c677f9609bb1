"""The client of `gloaming.relay.v1.RelayService`: one stream to each replica of a game's service carries all sockets that play that game.

A socket that touches a game becomes an attachment to the replica that has the fewest. When a stream ends, whatever the reason, its
attachments go on at other replicas: with the token, the watches after their last cursors, and the requests that have no answer yet, which a
request id makes safe to send again. Frames are passed through as bytes. What waits to go up goes along in the next write, one of which is
under way at a time, and nothing ever waits for company.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import random
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

import grpc
import grpc.aio
import structlog

from gateway import metrics
from gateway.frames import Asked, Frame, pack, refusal
from gateway.problems import reason_of
from gateway.registry import GAMES, Game
from gateway.targets import Dialer, resolve
from gloaming.live.v1 import live_pb2
from gloaming.relay.v1 import relay_pb2
from services.kit.errors import Unavailable
from services.kit.metrics import PILLOW_SECONDS
from services.kit.tls import Certificate

METHOD = "/gloaming.relay.v1.RelayService/Relay"
_BATCH_BYTES = 1024 * 1024
_MESSAGE_BYTES = 16 * 1024 * 1024
# A stream that lived so long, or said something, was a good one.
_SOUND_SECONDS = 2.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 2.0
_OPTIONS = [
    ("grpc.max_receive_message_length", _MESSAGE_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),  # how long connecting may take, too
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),
]
_GONE = Unavailable("UNAVAILABLE", "the game's service cannot be reached; connect again, with the cursors")

_log = structlog.get_logger(__name__)
_ingress, _total = (PILLOW_SECONDS.labels(stage) for stage in ("ingress", "total"))


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the relay waits for what, in seconds.

    Args:
        replica: how long an attachment is without a replica before its socket is given up.
        resolve: how long the addresses of a target are good.
        queued_bytes: how much may wait to go up to one replica.
    """

    replica: float = 20.0
    resolve: float = 3.0
    queued_bytes: int = 8 * 1024 * 1024


class Socket(Protocol):
    """What the relay knows of a socket."""

    @property
    def token(self) -> str:
        """The access token that it goes by."""

    @property
    def round_trip_ms(self) -> int | None:
        """How long its line takes there and back, as measured."""

    def tell(self, frame: Frame) -> None:
        """Takes a frame to be sent; never waits."""

    def answered(self, size: int) -> None:
        """Is told that a request of this size has its answer."""

    def end(self, code: int, reason: str, frame: Frame | None = None) -> None:
        """Closes, after a last frame."""


class _Request:
    """A request without an answer yet."""

    __slots__ = ("after", "asked", "before", "fresh", "number", "received", "timed")

    def __init__(self, asked: Asked, received: float, number: int, timed: bool) -> None:
        self.asked = asked
        self.received = received
        self.number = number
        self.timed = timed
        # Of a watch: the cursor asked for, the one held until then, and whether there was none.
        self.after = self.before = ""
        self.fresh = False


def _watches(request: _Request, match_id: str) -> bool:
    return request.asked.kind == "watch" and request.asked.match_id == match_id


class Attachment:
    """A socket at a replica, or on its way to one.

    Attributes:
        watches: the last cursor of each match that is watched.
        lost_at: since when it has had no good stream, or 0.
    """

    def __init__(self, fleet: Fleet, to: Socket) -> None:
        self.socket = to
        self.watches: dict[str, str] = {}
        self.lost_at = time.monotonic()
        self.gone = False
        self._fleet = fleet
        self._stream: Stream | None = None
        self._number = 0
        self._asked = 0
        self._requests: dict[str, list[_Request]] = {}
        # Watches that were taken up again: request ids of ours, and their matches.
        self._resumed: dict[str, str] = {}

    def ask(self, asked: Asked, received: float) -> None:
        """Sends a request on.

        Raises:
            Unavailable: OVERLOADED; too much waits already.
        """
        if self._stream is not None and self._stream.full:
            raise Unavailable("OVERLOADED", "the game's service is behind; try again")
        self._asked += 1
        request = _Request(asked, received, self._asked, asked.kind == "move" and self._fleet.game.real_time)
        if asked.kind == "watch":
            request.after = asked.body.after
            request.fresh = asked.match_id not in self.watches
            request.before = self.watches.setdefault(asked.match_id, request.after)
        elif asked.kind == "unwatch":
            self.watches.pop(asked.match_id, None)
        self._requests.setdefault(asked.request_id, []).append(request)
        if self._stream is not None:
            self._stream.put(relay_pb2.Up(attachment=self._number, frame=asked.wire), received if request.timed else 0.0)

    def renew(self) -> None:
        """Sends on that the socket goes by a newer token."""
        self._put(token=self.socket.token)

    def measured(self) -> None:
        """Sends on how long the line takes, where that matters."""
        if self._fleet.game.real_time and (ms := self.socket.round_trip_ms) is not None:
            self._put(round_trip_ms=ms)

    def detach(self) -> None:
        """The socket is gone."""
        self.gone = True
        self._put(detach=True)
        if self._stream is not None:
            self._stream.attachments.pop(self._number, None)
            self._stream = None

    def _put(self, **kind: Any) -> None:
        if self._stream is not None:
            self._stream.put(relay_pb2.Up(attachment=self._number, **kind))

    def board(self, stream: Stream) -> None:
        """Goes on at a replica, from where it was."""
        self._stream = stream
        self._number = stream.admit(self)
        self._resumed.clear()
        self.renew()
        self.measured()
        requests = sorted((each for same in self._requests.values() for each in same), key=lambda request: request.number)
        anew = {each.asked.match_id for each in requests if each.asked.kind == "watch"}
        for match_id in [match_id for match_id in self.watches if match_id not in anew]:
            self._watch_again(match_id)
        for each in requests:
            self._put(frame=each.asked.wire)

    def _watch_again(self, match_id: str) -> None:
        request_id = f"resumed-{secrets.token_hex(12)}"
        self._resumed[request_id] = match_id
        watch = live_pb2.Watch(match_id=match_id, after=self.watches[match_id])
        self._put(frame=live_pb2.ClientFrame(request_id=request_id, watch=watch).SerializeToString())

    def adrift(self, now: float, sound: bool) -> None:
        """Has lost its replica."""
        self._stream = None
        if sound or not self.lost_at:
            self.lost_at = now

    def told(self, frame: Frame | None, request_id: str, match_id: str, cursor: str, ended: bool, close: int) -> None:
        """Passes on what the replica says."""
        if cursor and match_id in self.watches:
            self.watches[match_id] = cursor
        if request_id and frame is not None:
            frame = self._answer(request_id, frame)
        if frame is not None:
            self.socket.tell(frame)
        if ended:
            self.watches.pop(match_id, None)
        if close:
            self.socket.end(close, "")

    def _answer(self, request_id: str, frame: Frame) -> Frame | None:
        """Notes that a request has its answer, and returns what the socket is told of it."""
        same = self._requests.get(request_id)
        if same is None:
            return self._answer_to_ours(request_id, frame)
        request = same[0]
        if len(same) > 1:
            about = frame.answers()
            request = next((each for each in same if each.asked.match_id == about), request)
        same.remove(request)
        if not same:
            del self._requests[request_id]
        asked = request.asked
        if asked.kind == "watch":
            if frame.result():
                # Unless more has been heard of the match since.
                if self.watches.get(asked.match_id) == request.before:
                    self.watches[asked.match_id] = request.after
            elif request.fresh:
                later = [each for same in self._requests.values() for each in same if _watches(each, asked.match_id)]
                if later:
                    later[0].fresh = True  # Now it depends on that one.
                else:
                    self.watches.pop(asked.match_id, None)
        if request.timed:
            _total.observe(time.monotonic() - request.received)
        self.socket.answered(len(asked.wire))
        return frame

    def _answer_to_ours(self, request_id: str, frame: Frame) -> Frame | None:
        match_id = self._resumed.pop(request_id, None)
        problem = frame.problem()
        if match_id is None or problem is None or match_id not in self.watches:
            return None
        if problem.status == 503:
            asyncio.get_running_loop().call_later(random.uniform(0.2, 0.5), self._watch_still, match_id, self._stream)
            return None
        # The match cannot be watched any more: the client knows nothing of the request, but is told.
        del self.watches[match_id]
        problem.request_id = ""
        return pack(problem)

    def _watch_still(self, match_id: str, stream: Stream | None) -> None:
        if self._stream is stream and self._stream is not None and match_id in self.watches:
            self._watch_again(match_id)


class Stream:
    """The stream to one replica.

    Args:
        address: the replica's, as gRPC names targets.
        dial: makes channels to it.
        authorization: returns the gateway's own.
        lost: called when the stream has ended, and whether it was a good one, before another can be opened.

    Attributes:
        attachments: the sockets on it, by number.
    """

    def __init__(
        self, address: str, dial: Dialer, authorization: Callable[[], str], lost: Callable[[Stream, bool], None], queued_bytes: int
    ) -> None:
        self.address = address
        self.attachments: dict[int, Attachment] = {}
        self.leaving = False
        self.retry_at = 0.0
        self._authorization = authorization
        self._lost = lost
        self._queued_bytes = queued_bytes
        self._failures = 0
        self._dial = dial
        self._pems = dial.pems
        self._channel = dial([address], _OPTIONS)
        self._running: asyncio.Task[None] | None = None
        self._next = 0
        self._waiting: list[bytes] = []
        self._size = 0
        self._timed: list[float] = []
        self._bell: asyncio.Future[None] | None = None

    def admit(self, attachment: Attachment) -> int:
        """Takes an attachment, and returns its number."""
        self._next += 1
        self.attachments[self._next] = attachment
        if self._running is None:
            # It is nobody's request, though one was the first to need it.
            self._running = asyncio.create_task(self._run(), context=contextvars.Context())
        return self._next

    @property
    def full(self) -> bool:
        """Whether the replica reads too slowly for more to be taken."""
        return self._size > self._queued_bytes

    def put(self, up: relay_pb2.Up, received: float = 0.0) -> None:
        """Sends a message with the next write.

        Args:
            received: when it came from the client, if its time is measured.
        """
        if self._running is None:
            return
        packed = relay_pb2.RelayRequest(messages=[up]).SerializeToString()
        self._waiting.append(packed)
        self._size += len(packed)
        if received:
            self._timed.append(received)
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)

    async def _run(self) -> None:
        began = time.monotonic()
        heard = False
        if self._pems != (pems := self._dial.pems):
            self._channel, old, self._pems = self._dial([self.address], _OPTIONS), self._channel, pems
            await old.close()
        call: Any = self._channel.stream_stream(METHOD)(metadata=(("authorization", self._authorization()),))
        writing = asyncio.create_task(self._write(call))
        try:
            while (data := await call.read()) is not grpc.aio.EOF:
                heard = True
                for down in relay_pb2.RelayResponse.FromString(data).messages:
                    self._tell(down)
            # Ended in good order, or refused: either way there is nobody to talk to any more.
            _log.info("relay ended", address=self.address, code=(await call.code()).name, reason=await _reason(call))
        except grpc.aio.AioRpcError as end:
            _log.info("relay ended", address=self.address, code=end.code().name, reason=reason_of(end))
        except asyncio.CancelledError:
            if call.cancelled() and not self.leaving:
                _log.info("relay ended", address=self.address, code="CANCELLED")
            else:
                raise
        except Exception as fault:  # a service that speaks another language
            _log.error("relay broken", address=self.address, exc_info=fault)
        finally:
            writing.cancel()
            call.cancel()
            self._running = None
            self._waiting, self._size, self._timed = [], 0, []
            sound = heard or time.monotonic() - began > _SOUND_SECONDS
            self._failures = 1 if sound else self._failures + 1
            pause = min(_FIRST_PAUSE_SECONDS * 2 ** min(self._failures, 10), _LONGEST_PAUSE_SECONDS)
            self.retry_at = time.monotonic() + pause * random.uniform(0.5, 1)
            self._lost(self, sound)

    async def _write(self, call: Any) -> None:
        """Writes whatever waits, as one message, and then whatever came meanwhile."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError):
            while True:
                if not self._waiting:
                    self._bell = loop.create_future()
                    await self._bell
                batch, size = self._waiting, 0
                if self._size > _BATCH_BYTES:
                    count = 0
                    while count < len(batch) and size < _BATCH_BYTES:
                        size += len(batch[count])
                        count += 1
                    batch, self._waiting = batch[:count], batch[count:]
                else:
                    size, self._waiting = self._size, []
                if self._timed:
                    now = time.monotonic()
                    for received in self._timed:
                        _ingress.observe(now - received)
                    self._timed.clear()
                await call.write(b"".join(batch))
                self._size -= size

    def _tell(self, down: relay_pb2.Down) -> None:
        frame = Frame(down.frame) if down.frame else None
        request_id, match_id, cursor, ended, close = down.request_id, down.match_id, down.cursor, down.ended, down.close
        for number in down.attachments:
            attachment = self.attachments.get(number)
            if attachment is not None:
                attachment.lost_at = 0.0
                attachment.told(frame, request_id, match_id, cursor, ended, close)

    async def close(self) -> None:
        """Ends the stream for good."""
        self.leaving = True
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._channel.close()


async def _reason(call: Any) -> str:
    return reason_of(grpc.aio.AioRpcError(await call.code(), await call.initial_metadata(), await call.trailing_metadata()))


class Fleet:
    """The replicas of one game's service, and the sockets that play it.

    Args:
        target: where they are, as gRPC names targets.
        certificate: with it they are called by TLS.
    """

    def __init__(
        self, game: Game, target: str, authorization: Callable[[], str], patience: Patience, certificate: Certificate | None = None
    ) -> None:
        self.game = game
        self._target = target
        self._dial = Dialer(target, certificate)
        self._authorization = authorization
        self._patience = patience
        self._streams: dict[str, Stream] = {}
        self._resolved_at = float("-inf")
        self._attached: set[Attachment] = set()
        self._adrift: list[Attachment] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._homing = self._resolving = False
        self._closed = False

    def attach(self, to: Socket) -> Attachment:
        """Attaches a socket; what it asks before there is a replica is kept."""
        attachment = Attachment(self, to)
        self._attached.add(attachment)
        stream = self._choose() if self._is_resolved() else None
        if stream is not None:
            attachment.board(stream)
        else:
            self._adrift.append(attachment)
            self._find_homes()
        if not self._resolving:
            self._resolving = True
            self._spawn(self._keep_resolving())
        return attachment

    def detach(self, attachment: Attachment) -> None:
        """The attachment's socket is gone."""
        attachment.detach()
        self._attached.discard(attachment)

    def _is_resolved(self) -> bool:
        return self._resolved_at > time.monotonic() - 2 * self._patience.resolve

    def _choose(self) -> Stream | None:
        """The replica with the fewest attachments, of those that are not known to be out of reach."""
        now = time.monotonic()
        fit = [stream for stream in self._streams.values() if not stream.leaving and stream.retry_at <= now and not stream.full]
        return min(fit, key=lambda stream: (len(stream.attachments), random.random()), default=None)

    def _lost(self, stream: Stream, sound: bool) -> None:
        """A stream has ended: its attachments go on elsewhere."""
        attachments, stream.attachments = list(stream.attachments.values()), {}
        if self._closed:
            return
        if stream.leaving:
            self._streams.pop(stream.address, None)
            self._spawn(stream.close())
        now = time.monotonic()
        for attachment in attachments:
            attachment.adrift(now, sound)
        self._adrift += attachments
        if attachments:
            metrics.RELAYS_RESUMED.labels(self.game.id).inc()
            self._find_homes()

    def _find_homes(self) -> None:
        if not self._homing:
            self._homing = True
            self._spawn(self._home())

    async def _home(self) -> None:
        """Attaches whoever is adrift, until nobody is."""
        pause = 0.02
        try:
            if not self._is_resolved():
                await self._resolve()
            else:
                # Not everybody at once, should everybody have lost the same replica.
                await asyncio.sleep(random.uniform(0, pause))
            while self._adrift:
                attachments, self._adrift = self._adrift, []
                now = time.monotonic()
                for attachment in attachments:
                    if attachment.gone:
                        continue
                    stream = self._choose()
                    if stream is not None:
                        attachment.board(stream)
                    elif now - attachment.lost_at > self._patience.replica:
                        attachment.socket.end(1013, _GONE.reason, refusal(_GONE))
                    else:
                        self._adrift.append(attachment)
                if self._adrift:
                    await asyncio.sleep(random.uniform(0.5, 1) * pause)
                    pause = min(pause * 2, 0.5)
                    if self._resolved_at < time.monotonic() - 1:
                        await self._resolve()
        finally:
            self._homing = False

    async def _keep_resolving(self) -> None:
        """Looks for replicas that came or went, as long as there is anybody for them."""
        try:
            while self._attached:
                await asyncio.sleep(self._patience.resolve)
                await self._resolve()
        finally:
            self._resolving = False

    async def _resolve(self) -> None:
        addresses = await resolve(self._target)
        if addresses is None or self._closed:
            return
        self._resolved_at = time.monotonic()
        for address in addresses - self._streams.keys():
            self._streams[address] = Stream(address, self._dial, self._authorization, self._lost, self._patience.queued_bytes)
        for address, stream in list(self._streams.items()):
            stream.leaving = address not in addresses
            if stream.leaving and not stream.attachments:
                del self._streams[address]
                self._spawn(stream.close())

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Ends every stream."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in list(self._streams.values()):
            await stream.close()


class Relay:
    """Every game's fleet. Open it where the event loop runs: `async with relay`.

    Args:
        targets: where each game is.
        authorization: returns the gateway's own, for the scope `relay`.
        certificate: with it services are called by TLS.
    """

    def __init__(
        self, targets: Mapping[str, str], authorization: Callable[[], str], patience: Patience, certificate: Certificate | None = None
    ) -> None:
        self._fleets = {game.id: Fleet(game, targets[game.id], authorization, patience, certificate) for game in GAMES.values()}

    def attach(self, game: Game, to: Socket) -> Attachment:
        """Attaches a socket to a game."""
        return self._fleets[game.id].attach(to)

    def detach(self, game_id: str, attachment: Attachment) -> None:
        """Ends an attachment."""
        self._fleets[game_id].detach(attachment)

    async def __aenter__(self) -> Relay:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for fleet in self._fleets.values():
            await fleet.close()
