import datetime

from gloaming.table.v1 import table_pb2 as _table_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RelayRequest(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[Up]
    def __init__(self, messages: _Optional[_Iterable[_Union[Up, _Mapping]]] = ...) -> None: ...

class Up(_message.Message):
    __slots__ = ("attachment", "token", "frame", "round_trip_ms", "detach")
    ATTACHMENT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    ROUND_TRIP_MS_FIELD_NUMBER: _ClassVar[int]
    DETACH_FIELD_NUMBER: _ClassVar[int]
    attachment: int
    token: str
    frame: bytes
    round_trip_ms: int
    detach: bool
    def __init__(self, attachment: _Optional[int] = ..., token: _Optional[str] = ..., frame: _Optional[bytes] = ..., round_trip_ms: _Optional[int] = ..., detach: _Optional[bool] = ...) -> None: ...

class RelayResponse(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[Down]
    def __init__(self, messages: _Optional[_Iterable[_Union[Down, _Mapping]]] = ...) -> None: ...

class Down(_message.Message):
    __slots__ = ("attachments", "frame", "match_id", "cursor", "request_id", "close", "ended")
    ATTACHMENTS_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    attachments: _containers.RepeatedScalarFieldContainer[int]
    frame: bytes
    match_id: str
    cursor: str
    request_id: str
    close: int
    ended: bool
    def __init__(self, attachments: _Optional[_Iterable[int]] = ..., frame: _Optional[bytes] = ..., match_id: _Optional[str] = ..., cursor: _Optional[str] = ..., request_id: _Optional[str] = ..., close: _Optional[int] = ..., ended: _Optional[bool] = ...) -> None: ...

class ListResultsRequest(_message.Message):
    __slots__ = ("page_size",)
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    def __init__(self, page_size: _Optional[int] = ...) -> None: ...

class ListResultsResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[Result]
    def __init__(self, results: _Optional[_Iterable[_Union[Result, _Mapping]]] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("match_id", "seats", "outcome", "finish_time")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FINISH_TIME_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    seats: _containers.RepeatedCompositeFieldContainer[_table_pb2.Seat]
    outcome: _table_pb2.Outcome
    finish_time: _timestamp_pb2.Timestamp
    def __init__(self, match_id: _Optional[str] = ..., seats: _Optional[_Iterable[_Union[_table_pb2.Seat, _Mapping]]] = ..., outcome: _Optional[_Union[_table_pb2.Outcome, _Mapping]] = ..., finish_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AcknowledgeResultsRequest(_message.Message):
    __slots__ = ("match_ids",)
    MATCH_IDS_FIELD_NUMBER: _ClassVar[int]
    match_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, match_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class AcknowledgeResultsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTurnsRequest(_message.Message):
    __slots__ = ("page_size",)
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    def __init__(self, page_size: _Optional[int] = ...) -> None: ...

class ListTurnsResponse(_message.Message):
    __slots__ = ("turns", "claim")
    TURNS_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    turns: _containers.RepeatedCompositeFieldContainer[Turn]
    claim: str
    def __init__(self, turns: _Optional[_Iterable[_Union[Turn, _Mapping]]] = ..., claim: _Optional[str] = ...) -> None: ...

class Turn(_message.Message):
    __slots__ = ("match_id", "version", "seats", "to_move", "outcome", "time")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    TO_MOVE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    version: int
    seats: _containers.RepeatedCompositeFieldContainer[_table_pb2.Seat]
    to_move: _containers.RepeatedScalarFieldContainer[int]
    outcome: _table_pb2.Outcome
    time: _timestamp_pb2.Timestamp
    def __init__(self, match_id: _Optional[str] = ..., version: _Optional[int] = ..., seats: _Optional[_Iterable[_Union[_table_pb2.Seat, _Mapping]]] = ..., to_move: _Optional[_Iterable[int]] = ..., outcome: _Optional[_Union[_table_pb2.Outcome, _Mapping]] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AcknowledgeTurnsRequest(_message.Message):
    __slots__ = ("match_ids", "claim")
    MATCH_IDS_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    match_ids: _containers.RepeatedScalarFieldContainer[str]
    claim: str
    def __init__(self, match_ids: _Optional[_Iterable[str]] = ..., claim: _Optional[str] = ...) -> None: ...

class AcknowledgeTurnsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
