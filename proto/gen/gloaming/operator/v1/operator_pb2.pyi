import datetime

from gloaming.table.v1 import table_pb2 as _table_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListMatchesRequest(_message.Message):
    __slots__ = ("prefix", "player", "name", "status")
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    player: str
    name: str
    status: _table_pb2.MatchStatus
    def __init__(self, prefix: _Optional[str] = ..., player: _Optional[str] = ..., name: _Optional[str] = ..., status: _Optional[_Union[_table_pb2.MatchStatus, str]] = ...) -> None: ...

class ListMatchesResponse(_message.Message):
    __slots__ = ("matches",)
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    matches: _containers.RepeatedCompositeFieldContainer[MatchSummary]
    def __init__(self, matches: _Optional[_Iterable[_Union[MatchSummary, _Mapping]]] = ...) -> None: ...

class MatchSummary(_message.Message):
    __slots__ = ("match_id", "status", "version", "seats", "settings", "outcome")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    status: _table_pb2.MatchStatus
    version: int
    seats: _containers.RepeatedCompositeFieldContainer[_table_pb2.Seat]
    settings: _table_pb2.Settings
    outcome: _table_pb2.Outcome
    def __init__(self, match_id: _Optional[str] = ..., status: _Optional[_Union[_table_pb2.MatchStatus, str]] = ..., version: _Optional[int] = ..., seats: _Optional[_Iterable[_Union[_table_pb2.Seat, _Mapping]]] = ..., settings: _Optional[_Union[_table_pb2.Settings, _Mapping]] = ..., outcome: _Optional[_Union[_table_pb2.Outcome, _Mapping]] = ...) -> None: ...

class InspectMatchRequest(_message.Message):
    __slots__ = ("match_id", "reveal_secrets", "reason")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    REVEAL_SECRETS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    reveal_secrets: bool
    reason: str
    def __init__(self, match_id: _Optional[str] = ..., reveal_secrets: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class InspectMatchResponse(_message.Message):
    __slots__ = ("game", "summary", "match", "create_time", "update_time", "expire_time", "events", "answers", "stored_bytes", "watchers", "secrets")
    GAME_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    WATCHERS_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    game: str
    summary: MatchSummary
    match: bytes
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    events: int
    answers: int
    stored_bytes: int
    watchers: _containers.RepeatedCompositeFieldContainer[Watcher]
    secrets: Secrets
    def __init__(self, game: _Optional[str] = ..., summary: _Optional[_Union[MatchSummary, _Mapping]] = ..., match: _Optional[bytes] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., events: _Optional[int] = ..., answers: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., watchers: _Optional[_Iterable[_Union[Watcher, _Mapping]]] = ..., secrets: _Optional[_Union[Secrets, _Mapping]] = ...) -> None: ...

class Watcher(_message.Message):
    __slots__ = ("seat", "replica", "expire_time")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    seat: int
    replica: str
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, seat: _Optional[int] = ..., replica: _Optional[str] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Secrets(_message.Message):
    __slots__ = ("seed", "state", "views")
    SEED_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VIEWS_FIELD_NUMBER: _ClassVar[int]
    seed: str
    state: str
    views: _containers.RepeatedCompositeFieldContainer[SeatView]
    def __init__(self, seed: _Optional[str] = ..., state: _Optional[str] = ..., views: _Optional[_Iterable[_Union[SeatView, _Mapping]]] = ...) -> None: ...

class SeatView(_message.Message):
    __slots__ = ("game", "seat", "match")
    GAME_FIELD_NUMBER: _ClassVar[int]
    SEAT_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    game: str
    seat: int
    match: bytes
    def __init__(self, game: _Optional[str] = ..., seat: _Optional[int] = ..., match: _Optional[bytes] = ...) -> None: ...

class EndMatchRequest(_message.Message):
    __slots__ = ("match_id", "reason")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    reason: str
    def __init__(self, match_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class EndMatchResponse(_message.Message):
    __slots__ = ("summary", "ended")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    summary: MatchSummary
    ended: bool
    def __init__(self, summary: _Optional[_Union[MatchSummary, _Mapping]] = ..., ended: _Optional[bool] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrainResponse(_message.Message):
    __slots__ = ("game", "process")
    GAME_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    game: str
    process: str
    def __init__(self, game: _Optional[str] = ..., process: _Optional[str] = ...) -> None: ...
