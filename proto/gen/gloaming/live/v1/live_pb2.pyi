import datetime

from gloaming.gateway.v1 import gateway_pb2 as _gateway_pb2
from gloaming.table.v1 import table_pb2 as _table_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClientFrame(_message.Message):
    __slots__ = ("request_id", "watch", "unwatch", "move", "authenticate", "ping", "pong")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WATCH_FIELD_NUMBER: _ClassVar[int]
    UNWATCH_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    AUTHENTICATE_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    watch: Watch
    unwatch: Unwatch
    move: Move
    authenticate: Authenticate
    ping: Ping
    pong: Pong
    def __init__(self, request_id: _Optional[str] = ..., watch: _Optional[_Union[Watch, _Mapping]] = ..., unwatch: _Optional[_Union[Unwatch, _Mapping]] = ..., move: _Optional[_Union[Move, _Mapping]] = ..., authenticate: _Optional[_Union[Authenticate, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ..., pong: _Optional[_Union[Pong, _Mapping]] = ...) -> None: ...

class Watch(_message.Message):
    __slots__ = ("match_id", "after")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    after: str
    def __init__(self, match_id: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class Unwatch(_message.Message):
    __slots__ = ("match_id",)
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    def __init__(self, match_id: _Optional[str] = ...) -> None: ...

class Move(_message.Message):
    __slots__ = ("match_id", "move", "expected_version")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    move: bytes
    expected_version: int
    def __init__(self, match_id: _Optional[str] = ..., move: _Optional[bytes] = ..., expected_version: _Optional[int] = ...) -> None: ...

class Authenticate(_message.Message):
    __slots__ = ("access_token",)
    ACCESS_TOKEN_FIELD_NUMBER: _ClassVar[int]
    access_token: str
    def __init__(self, access_token: _Optional[str] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ("nonce",)
    NONCE_FIELD_NUMBER: _ClassVar[int]
    nonce: str
    def __init__(self, nonce: _Optional[str] = ...) -> None: ...

class Pong(_message.Message):
    __slots__ = ("nonce",)
    NONCE_FIELD_NUMBER: _ClassVar[int]
    nonce: str
    def __init__(self, nonce: _Optional[str] = ...) -> None: ...

class ServerFrame(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[ServerMessage]
    def __init__(self, messages: _Optional[_Iterable[_Union[ServerMessage, _Mapping]]] = ...) -> None: ...

class ServerMessage(_message.Message):
    __slots__ = ("result", "problem", "snapshot", "event", "ping", "pong", "draining", "room", "ticket")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    ROOM_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    result: Result
    problem: Problem
    snapshot: Snapshot
    event: Event
    ping: Ping
    pong: Pong
    draining: Draining
    room: _gateway_pb2.Room
    ticket: _gateway_pb2.Ticket
    def __init__(self, result: _Optional[_Union[Result, _Mapping]] = ..., problem: _Optional[_Union[Problem, _Mapping]] = ..., snapshot: _Optional[_Union[Snapshot, _Mapping]] = ..., event: _Optional[_Union[Event, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ..., pong: _Optional[_Union[Pong, _Mapping]] = ..., draining: _Optional[_Union[Draining, _Mapping]] = ..., room: _Optional[_Union[_gateway_pb2.Room, _Mapping]] = ..., ticket: _Optional[_Union[_gateway_pb2.Ticket, _Mapping]] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("request_id", "match_id", "version")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    match_id: str
    version: int
    def __init__(self, request_id: _Optional[str] = ..., match_id: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ("request_id", "match_id", "type", "title", "status", "detail", "reason", "violations", "retry_after")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    match_id: str
    type: str
    title: str
    status: int
    detail: str
    reason: str
    violations: _containers.RepeatedCompositeFieldContainer[_gateway_pb2.Violation]
    retry_after: int
    def __init__(self, request_id: _Optional[str] = ..., match_id: _Optional[str] = ..., type: _Optional[str] = ..., title: _Optional[str] = ..., status: _Optional[int] = ..., detail: _Optional[str] = ..., reason: _Optional[str] = ..., violations: _Optional[_Iterable[_Union[_gateway_pb2.Violation, _Mapping]]] = ..., retry_after: _Optional[int] = ...) -> None: ...

class Snapshot(_message.Message):
    __slots__ = ("match_id", "match")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    match: bytes
    def __init__(self, match_id: _Optional[str] = ..., match: _Optional[bytes] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("match_id", "cursor", "version", "time", "event")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    cursor: str
    version: int
    time: _timestamp_pb2.Timestamp
    event: bytes
    def __init__(self, match_id: _Optional[str] = ..., cursor: _Optional[str] = ..., version: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., event: _Optional[bytes] = ...) -> None: ...

class Draining(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
