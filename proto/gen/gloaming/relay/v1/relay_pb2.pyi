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
