"""The load of the pillow bench: a process of its own that plays all seats of so many rooms, and tells what it saw as one line of JSON.

It shares its cores with the server that it measures, so while the clock runs it does next to nothing: frames to send were made before, what
comes is kept as it is and only searched for the bytes with which the player's next round begins. All of it is read afterwards. Times are
taken from that, and it must be what it is when every reaction is decided once and every round resolved: to every player alike, and in the
match as it is stored.

It is not built on `gloaming.client`, as the bench of moves over REST is: that spends seven times as much on a reaction (790 µs of CPU
to 113, four players of one room, measured in turn), on the very cores that the server has to share.
"""

from __future__ import annotations

import gc
import json
import secrets
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from deploy.processes import LOCALHOST
from gateway.tokens import Signer
from gloaming.live.v1 import live_pb2
from gloaming.night_knight.v1 import night_knight_pb2 as pb
from gloaming.night_knight.v1 import night_knight_pb2_grpc
from gloaming.table.v1 import table_pb2
from tests.bench import machine

SEATS = 4
# A match has 300 rounds, and the last one that is played must be followed by another, so that all have somewhere to end.
ROUNDS_A_MATCH = 298
# So many rounds of a later match are not counted: its processes are warm, its sockets are not.
SETTLE = 5
STALL_SECONDS = 10.0

_OPTIONS = pb.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=30_000)
_RECEIVED_BYTES = 65_536
_HANDSHAKE = (
    "GET /v1/live HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: gloaming.v1.proto, bearer.{token}\r\n\r\n"
)
_PAGE = 500


class Untrue(AssertionError):
    """What was seen is not what there is to be seen; the message says what."""


class Server(NamedTuple):
    """Where a server is.

    Args:
        port: the gateway's.
        service: Night Knight's address.
        key: the file with the key that tokens are signed with.
        pids: whose CPU time is told, by name.
    """

    port: int
    service: str
    key: str
    pids: dict[str, int]


class Player:
    """A seat, at a socket.

    Attributes:
        came: everything that was received, and when.
        sent: when the reaction to each round was sent, by round.
        round: the round that it saw begin last.
    """

    def __init__(self, server: Server, seat: int, token: str) -> None:
        self.seat = seat
        self.round = 0
        self.sent: dict[int, float] = {}
        self.came: list[tuple[float, bytes]] = []
        self.socket = socket.create_connection((LOCALHOST, server.port), STALL_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(_HANDSHAKE.format(host=LOCALHOST, token=token).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._received()
        head, _, rest = head.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101"):
            raise Untrue(f"the gateway refused a socket: {head.decode(errors='replace')}")
        if rest:
            self.came.append((time.perf_counter(), rest))

    def receive(self) -> None:
        """Takes whatever comes next."""
        data = self._received()
        self.came.append((time.perf_counter(), data))
        if REVEALS[self.round + 1] in data:
            self.round += 1
        if PING in data:
            self.socket.send(pong(data))

    def catch_up(self) -> None:
        """Receives what has come already."""
        while select.select([self.socket], [], [], 0)[0]:
            self.receive()

    def _received(self) -> bytes:
        data = self.socket.recv(_RECEIVED_BYTES)
        if not data:
            raise Untrue("the gateway closed a socket")
        return data

    def await_first_round(self) -> None:
        """Waits until the first round is open, in the snapshot or by an event after it."""
        while self.round == 0:
            self.receive()
            for _, message in messages(self.came):
                if message.HasField("problem"):
                    raise Untrue(f"a watch was refused: {message.problem}")
                if message.HasField("snapshot"):
                    match = pb.Match.FromString(message.snapshot.match)
                    if match.view.phase == pb.View.ACTION:
                        self.round = match.view.round


class Room:
    """A match whose four players are here.

    Attributes:
        match_id: the match's id.
        players: by seat.
        reactions: what is sent, by round.
    """

    def __init__(self, server: Server, match_id: str, tokens: Sequence[str]) -> None:
        self.match_id = match_id
        rounds = range(ROUNDS_A_MATCH + 2)
        self.reactions = [client_frame(f"r{n}", move=touch(match_id, n)) for n in rounds]
        self.players = [Player(server, seat, token) for seat, token in enumerate(tokens)]
        for player in self.players:
            player.socket.sendall(client_frame("watch", watch=live_pb2.Watch(match_id=match_id)))

    def close(self) -> None:
        """Leaves."""
        for player in self.players:
            player.socket.close()


def touch(match_id: str, number: int) -> live_pb2.Move:
    """The move that touches a pillow, so that four reactions are decided in each round and nobody gets rid of a card."""
    move = pb.Move(react=pb.React(round=number, action=pb.React.TOUCH))
    return live_pb2.Move(match_id=match_id, move=move.SerializeToString())


def client_frame(request_id: str = "", **kind: Any) -> bytes:
    """A ClientFrame as a client's binary WebSocket frame, masked with zeros (RFC 6455, 5.3)."""
    body = live_pb2.ClientFrame(request_id=request_id, **kind).SerializeToString()
    size = struct.pack(">B", 0x80 | len(body)) if len(body) < 126 else struct.pack(">BH", 0x80 | 126, len(body))
    return b"\x82" + size + bytes(4) + body


def pong(data: bytes) -> bytes:
    """The answer to the ping in what was received."""
    start = data.index(PING) + len(PING)
    return client_frame(pong=live_pb2.Pong(nonce=data[start : start + _NONCE].decode()))


def _reveal(number: int) -> bytes:
    """How the event that shows all cards of a round begins, from its kind to its first card's."""
    cards = [pb.Card(seat=seat, card=pb.Card.KING_OF_SILENCE) for seat in range(SEATS)]
    event = pb.Event(own_card_shown=pb.OwnCardShown(round=number, cards=cards)).SerializeToString()
    return event[: event.index(cards[0].SerializeToString()) + 1]


REVEALS = [_reveal(number) for number in range(ROUNDS_A_MATCH + 3)]
# How a server's ping begins, up to the nonce: the gateway's have so many characters.
_NONCE = 16
PING = live_pb2.ServerMessage(ping=live_pb2.Ping(nonce="x" * _NONCE)).SerializeToString()[:-_NONCE]


def messages(came: Sequence[tuple[float, bytes]]) -> Iterator[tuple[float, live_pb2.ServerMessage]]:
    """The messages in what was received, and when each was there."""
    data, ends, place = b"".join([part for _, part in came]), [], 0
    for _, part in came:
        place += len(part)
        ends.append(place)
    start = part_number = 0
    while start + 2 <= len(data):
        size, body = data[start + 1], start + 2
        if size == 126:
            size, body = struct.unpack_from(">H", data, body)[0], body + 2
        elif size == 127:
            size, body = struct.unpack_from(">Q", data, body)[0], body + 8
        if body + size > len(data):
            return
        if data[start] != 0x82:
            raise Untrue(f"the gateway sent a frame of the kind {data[start]:#x}: {data[start : body + size]!r}")
        start = body + size
        while ends[part_number] < start:
            part_number += 1
        for message in live_pb2.ServerFrame.FromString(data[body:start]).messages:
            yield came[part_number][0], message


def play(rooms: Sequence[Room], last: int) -> None:
    """Every player reacts to the round that is open and to each one after it up to `last` as soon as it sees it begin.

    Returns when all have seen the round after it begin.
    """
    poller = select.epoll()
    try:
        _play(poller, rooms, last)
    finally:
        poller.close()


def _play(poller: select.epoll, rooms: Sequence[Room], last: int) -> None:
    by_fd = {}
    clock = time.perf_counter
    for room in rooms:
        for player in room.players:
            fd = player.socket.fileno()
            poller.register(fd, select.EPOLLIN)
            by_fd[fd] = (player, player.socket.recv, player.socket.send, player.came.append, room.reactions)
    for room in rooms:
        for player in room.players:
            player.sent[player.round] = clock()
            player.socket.send(room.reactions[player.round])
    playing = len(by_fd)
    while playing:
        ready = poller.poll(STALL_SECONDS)
        if not ready:
            raise Untrue(f"nothing happens any more, with {playing} of {len(by_fd)} players waiting for a round")
        for fd, _ in ready:
            player, receive, send, keep, reactions = by_fd[fd]
            data = receive(_RECEIVED_BYTES)
            now = clock()
            keep((now, data))
            number = player.round + 1
            if REVEALS[number] in data:
                player.round = number
                if number > last:
                    playing -= 1
                else:
                    player.sent[number] = now
                    send(reactions[number])
            if PING in data:
                send(pong(data))
            elif not data:
                raise Untrue("the gateway closed a socket")


class Seen(NamedTuple):
    """An event, as a player saw it."""

    cursor: str
    version: int
    event: bytes


def check(room: Room, stub: Any, metadata: Any, last: int) -> None:
    """What all players of a room saw must be what is stored, from before the first reaction on, and each round up to `last` must be whole.

    Raises:
        Untrue: it is not.
    """
    stored, after = [], ""
    while True:
        page = stub.ListEvents(pb.ListEventsRequest(match_id=room.match_id, after_cursor=after, page_size=_PAGE), metadata=metadata)
        stored += [Seen(event.cursor, event.version, event.event.SerializeToString(deterministic=True)) for event in page.events]
        after = page.next_cursor
        if not page.more:
            break
    events = [pb.Event.FromString(event.event) for event in stored]
    reacted = next(n for n, event in enumerate(events) if event.HasField("reacted"))
    for player in room.players:
        seen = _events(player, last)
        # Whoever began to watch later had more in the snapshot.
        first = next((n for n, event in enumerate(stored) if event.cursor == seen[0].cursor), len(stored))
        if first > reacted or list(map(_hidden, seen)) != list(map(_hidden, stored[first : first + len(seen)])):
            raise Untrue(f"what a player of {room.match_id} saw is not what is stored")
    _check_rounds(events, last)


def _events(player: Player, last: int) -> list[Seen]:
    """What a player saw; each of its requests must have been answered once, with a result."""
    events, results = [], []
    for _, message in messages(player.came):
        kind = message.WhichOneof("kind")
        if kind == "event":
            event = pb.Event.FromString(message.event.event)
            events.append(Seen(message.event.cursor, message.event.version, event.SerializeToString(deterministic=True)))
        elif kind == "result":
            results.append(message.result.request_id)
        elif kind not in ("ping", "snapshot"):
            raise Untrue(f"a player was told: {message}")
    if sorted(results) != sorted(["watch", *(f"r{number}" for number in range(1, last + 1))]):
        raise Untrue(f"{last} reactions and a watch were answered by {len(results)} results")
    return events


def _hidden(seen: Seen) -> Seen:
    """The event without what only some may see."""
    event = pb.Event.FromString(seen.event)
    return seen._replace(event=b"") if event.HasField("cards_revealed") else seen


def _check_rounds(events: Sequence[pb.Event], last: int) -> None:
    begun = shown = resolved = 0
    reacted: list[pb.Reaction] = []
    for event in events:
        match event.WhichOneof("kind"):
            case "round_started":
                begun, shown, reacted = event.round_started.round, 0, []
            case "own_card_shown":
                shown = event.own_card_shown.round
            case "reacted":
                reacted.append(event.reacted)
            case "round_resolved":
                ranks = [reaction.rank for reaction in reacted]
                seats = sorted(reaction.seat for reaction in reacted)
                verdicts = {reaction.verdict for reaction in reacted}
                rules = {result.rule for result in event.round_resolved.results}
                whole = (begun, shown, ranks, seats, verdicts, rules)
                resolved += 1
                if event.round_resolved.round != resolved or whole != (
                    resolved,
                    resolved,
                    [1, 2, 3, 4],
                    [0, 1, 2, 3],
                    {pb.Reaction.TOUCHED},
                    {"NK-11"},
                ):
                    raise Untrue(f"round {resolved} was resolved after this: {whole}")
    if resolved != last:
        raise Untrue(f"{resolved} rounds were resolved and not {last}")


def latencies(player: Player, after: int) -> list[float]:
    """How long it took from sending a reaction to seeing it, in seconds, in all rounds after this one."""
    took, number = [], 0
    for at, message in messages(player.came):
        if message.HasField("event"):
            event = pb.Event.FromString(message.event.event)
            if event.HasField("reacted") and event.reacted.seat == player.seat:
                number += 1
                if number > after:
                    took.append(at - player.sent[number])
    return took


class Host:
    """Makes matches and players, by the server's own key."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._signer = Signer(Path(server.key))
        self._channel = grpc.insecure_channel(server.service)
        self.stub: Any = night_knight_pb2_grpc.NightKnightServiceStub(self._channel)
        self.metadata = [("authorization", f"Bearer {self._token('bench', 'host')}")]

    def room(self, options: pb.Options = _OPTIONS) -> Room:
        """A new match with four players at their sockets, its first round about to begin."""
        word = secrets.token_hex(12)
        names = [f"{word}{seat}" for seat in range(SEATS)]
        request = pb.CreateMatchRequest(
            match_id=f"night_knight-{word}",
            options=options,
            settings=table_pb2.Settings(start_seconds=0),
            seats=[table_pb2.SeatRequest(player=name, name="Bench") for name in names],
            order=table_pb2.Seating.AS_LISTED,
        )
        match = self.stub.CreateMatch(request, metadata=self.metadata)
        return Room(self._server, match.id, [self._token(name, "play") for name in names])

    def player(self) -> Player:
        """Somebody at a socket who watches nothing."""
        return Player(self._server, 0, self._token(secrets.token_hex(12), "play"))

    def _token(self, player: str, scope: str) -> str:
        return self._signer.access(player, "Bench", 1, scope, 3600)[0]

    def close(self) -> None:
        """Hangs up."""
        self._channel.close()


def measure(server: Server, rooms: int, warm_up: int, rounds: int) -> dict[str, Any]:
    """So many rooms play so many rounds each, in as many matches as that takes; the clock stands still between these."""
    took: list[float] = []
    seconds, counted, passes = 0.0, 0, 0
    cpu = dict.fromkeys([*server.pids, "load"], 0.0)
    settle = warm_up
    while counted < rounds:
        some = min(rounds - counted, ROUNDS_A_MATCH - settle)
        with ExitStack() as stack:
            host = Host(server)
            stack.callback(host.close)
            playing = []
            for _ in range(rooms):
                playing.append(host.room())
                stack.callback(playing[-1].close)
            for room in playing:
                for player in room.players:
                    player.await_first_round()
            gc.collect()
            gc.disable()
            play(playing, settle)
            before, began = _cpu(server), time.perf_counter()
            play(playing, settle + some)
            seconds += time.perf_counter() - began
            cpu = {name: cpu[name] + spent - before[name] for name, spent in _cpu(server).items()}
            gc.enable()
            for room in playing:
                check(room, host.stub, host.metadata, settle + some)
                for player in room.players:
                    took += latencies(player, settle)
                    passes += sum(at > began for at, _ in player.came)
        counted, settle = counted + some, SETTLE
    if len(took) != rooms * SEATS * rounds:
        raise Untrue(f"{len(took)} reactions were decided and not {rooms * SEATS * rounds}")
    took.sort()
    return {
        "reactions": len(took),
        "seconds": seconds,
        "p50_ms": 1000 * took[(len(took) - 1) // 2],
        "p99_ms": 1000 * took[int((len(took) - 1) * 0.99)],
        "reads_a_reaction": passes / len(took),
        "cpu_seconds": cpu,
    }


def _cpu(server: Server) -> dict[str, float]:
    return {**{name: machine.cpu_seconds(pid) for name, pid in server.pids.items()}, "load": time.process_time()}


def main() -> None:
    """Reads what is asked from the command line, and prints what was measured."""
    if sys.platform != "linux":
        sys.exit("the load of the pillow bench needs Linux, for its epoll")
    asked = json.loads(sys.argv[1])
    print(json.dumps(measure(Server(**asked["server"]), asked["rooms"], asked["warm_up"], asked["rounds"])))


if __name__ == "__main__":
    main()
