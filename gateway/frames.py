"""Frames of the live socket, read and written in both subprotocols: `gloaming.v1.proto` as they are, `gloaming.v1.json` by transcoding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec
from google.protobuf.message import DecodeError

from gateway import transcoding
from gateway.registry import Game, game_of
from gloaming.gateway.v1 import gateway_pb2
from gloaming.live.v1 import live_pb2
from services.kit.errors import Error, NotFound, Unreadable
from services.kit.problems import live_problem

JSON = "gloaming.v1.json"
PROTO = "gloaming.v1.proto"
KINDS = ("watch", "unwatch", "move", "authenticate", "ping", "pong")
# The kinds that a game's service answers.
ROUTED = frozenset({"watch", "unwatch", "move"})

_REQUEST_ID = re.compile(r"[\x20-\x7e]{1,128}")
_REQUEST_ID_TAG = 0x0A
_NONCE_LENGTH = 64
_MESSAGE_BYTES = 131_072

Message: TypeAlias = (
    live_pb2.Result | live_pb2.Problem | live_pb2.Ping | live_pb2.Pong | live_pb2.Draining | gateway_pb2.Room | gateway_pb2.Ticket
)


class Wrong(Exception):
    """A frame that is refused, and as much as could be read of whom it is from.

    Args:
        error: what is wrong with it.
    """

    def __init__(self, error: Error, request_id: str = "", match_id: str = "") -> None:
        super().__init__(str(error))
        self.error = error
        self.request_id = request_id
        self.match_id = match_id


class Asked:
    """A client's frame that has been read.

    Attributes:
        kind: which of `KINDS` is set.
        body: its message.
        request_id: the request's; empty for pings and pongs.
        match_id: the match that it is about; empty where it is about none.
        game: that match's.
        wire: the frame in protobuf.
    """

    __slots__ = ("body", "game", "kind", "match_id", "request_id", "wire")

    def __init__(self, frame: live_pb2.ClientFrame, wire: bytes | None) -> None:
        kind, request_id = frame.WhichOneof("kind"), frame.request_id
        if kind is None:
            raise Wrong(Unreadable("", f"exactly one of {', '.join(KINDS)} must be set"), _sane(request_id))
        body: Any = getattr(frame, kind)
        self.kind = kind
        self.body = body
        self.request_id = request_id
        self.match_id = ""
        self.game: Game | None = None
        if kind in ROUTED:
            self.match_id = body.match_id
            if not _REQUEST_ID.fullmatch(request_id):
                raise Wrong(_BAD_REQUEST_ID)
            try:
                self.game = game_of(self.match_id)
            except NotFound as fault:
                raise Wrong(fault, request_id) from None
        elif kind == "authenticate":
            if not _REQUEST_ID.fullmatch(request_id):
                raise Wrong(_BAD_REQUEST_ID)
        elif len(body.nonce) > _NONCE_LENGTH:
            raise Wrong(Unreadable(f"{kind}.nonce", f"has more than {_NONCE_LENGTH} characters"), _sane(request_id))
        self.wire = frame.SerializeToString() if wire is None else wire


_BAD_REQUEST_ID = Unreadable("requestId", "must be 1 to 128 printable ASCII characters")


def read(data: bytes, *, json: bool) -> Asked:
    """Reads a client's frame.

    Raises:
        Wrong: it is none.
    """
    if json:
        return _read_json(data)
    try:
        frame = live_pb2.ClientFrame.FromString(data)
    except DecodeError:
        raise Wrong(Unreadable("", "the frame is not a gloaming.live.v1.ClientFrame"), _first_field(data)) from None
    return Asked(frame, data)


def _read_json(data: bytes) -> Asked:
    request_id = match_id = ""
    try:
        value = transcoding.read(data, "frame")
        request_id = _sane(value.get("requestId"))
        for body in value.values():
            if isinstance(body, dict):
                match_id = match_id or _match_id(body.get("matchId"))
        frame = transcoding.build(value, live_pb2.ClientFrame)
    except Error as fault:
        raise Wrong(fault, request_id, match_id) from None
    return Asked(frame, None)


def _sane(request_id: object) -> str:
    """A request id, or nothing where it is none."""
    return request_id if isinstance(request_id, str) and _REQUEST_ID.fullmatch(request_id) else ""


def _match_id(text: object) -> str:
    """A match's id, or nothing where it is none."""
    try:
        return text if isinstance(text, str) and game_of(text) else ""
    except NotFound:
        return ""


def _first_field(data: bytes) -> str:
    """The request id of a frame that cannot be read as a whole: it is the first field where it is written in order."""
    if len(data) > 2 and data[0] == _REQUEST_ID_TAG and 1 <= data[1] < 0x80 and len(data) >= 2 + data[1]:
        return _sane(data[2 : 2 + data[1]].decode("ascii", "replace"))
    return ""


class Frame:
    """A server's frame on its way to sockets, however many.

    Attributes:
        wire: a `gloaming.live.v1.ServerFrame`. Frames put one behind the other are one frame.
    """

    __slots__ = ("_json", "wire")

    def __init__(self, wire: bytes) -> None:
        self.wire = wire
        self._json: bytes | None = None

    @property
    def json(self) -> bytes:
        """The frame's messages in JSON, with commas between them."""
        if self._json is None:
            messages = transcoding.plain(live_pb2.ServerFrame.FromString(self.wire))["messages"]
            self._json = msgspec.json.encode(messages)[1:-1]
        return self._json

    def result(self) -> bool:
        """Whether it holds a result."""
        return any(message.HasField("result") for message in live_pb2.ServerFrame.FromString(self.wire).messages)

    def problem(self) -> live_pb2.Problem | None:
        """The problem in it, if any."""
        for message in live_pb2.ServerFrame.FromString(self.wire).messages:
            if message.HasField("problem"):
                return message.problem
        return None

    def answers(self) -> str:
        """The match that the answer in it is about."""
        for message in live_pb2.ServerFrame.FromString(self.wire).messages:
            if message.HasField("result"):
                return message.result.match_id
            if message.HasField("problem"):
                return message.problem.match_id
        return ""


def messages(frames: list[Frame]) -> Iterator[list[Frame]]:
    """Yields frames by the messages that they are sent in: many a client takes none of more than a mebibyte."""
    start = size = 0
    for n, frame in enumerate(frames):
        size += len(frame.wire)
        if size > _MESSAGE_BYTES and n > start:
            yield frames[start:n]
            start, size = n, len(frame.wire)
    yield frames[start:] if start else frames


def text(frames: list[Frame]) -> bytes:
    """Returns frames as one text frame."""
    return b'{"messages":[' + b",".join([frame.json for frame in frames]) + b"]}"


def binary(frames: list[Frame]) -> bytes:
    """Returns frames as one binary frame."""
    return frames[0].wire if len(frames) == 1 else b"".join([frame.wire for frame in frames])


def pack(message: Message) -> Frame:
    """Returns one message as a frame."""
    packed = live_pb2.ServerMessage()
    field: Any = getattr(packed, _FIELDS[type(message)])
    field.CopyFrom(message)
    field.SetInParent()
    return Frame(live_pb2.ServerFrame(messages=[packed]).SerializeToString())


_FIELDS: dict[type[Message], str] = {
    live_pb2.Result: "result",
    live_pb2.Problem: "problem",
    live_pb2.Ping: "ping",
    live_pb2.Pong: "pong",
    live_pb2.Draining: "draining",
    gateway_pb2.Room: "room",
    gateway_pb2.Ticket: "ticket",
}


def refusal(error: Error, request_id: str = "", match_id: str = "") -> Frame:
    """Returns the frame that tells of an error."""
    return pack(live_problem(error, request_id, match_id))
