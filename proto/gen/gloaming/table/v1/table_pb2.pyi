import datetime

from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MatchStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MATCH_STATUS_UNSPECIFIED: _ClassVar[MatchStatus]
    PLAYING: _ClassVar[MatchStatus]
    FINISHED: _ClassVar[MatchStatus]
MATCH_STATUS_UNSPECIFIED: MatchStatus
PLAYING: MatchStatus
FINISHED: MatchStatus
GAME_FIELD_NUMBER: _ClassVar[int]
game: _descriptor.FieldDescriptor
OF_GAME_FIELD_NUMBER: _ClassVar[int]
of_game: _descriptor.FieldDescriptor

class GameInfo(_message.Message):
    __slots__ = ("id", "title", "min_seats", "max_seats", "real_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    MIN_SEATS_FIELD_NUMBER: _ClassVar[int]
    MAX_SEATS_FIELD_NUMBER: _ClassVar[int]
    REAL_TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    min_seats: int
    max_seats: int
    real_time: bool
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., min_seats: _Optional[int] = ..., max_seats: _Optional[int] = ..., real_time: _Optional[bool] = ...) -> None: ...

class Settings(_message.Message):
    __slots__ = ("move_seconds", "spectators", "rated", "start_seconds")
    MOVE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SPECTATORS_FIELD_NUMBER: _ClassVar[int]
    RATED_FIELD_NUMBER: _ClassVar[int]
    START_SECONDS_FIELD_NUMBER: _ClassVar[int]
    move_seconds: int
    spectators: bool
    rated: bool
    start_seconds: int
    def __init__(self, move_seconds: _Optional[int] = ..., spectators: _Optional[bool] = ..., rated: _Optional[bool] = ..., start_seconds: _Optional[int] = ...) -> None: ...

class Seating(_message.Message):
    __slots__ = ()
    class Order(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ORDER_UNSPECIFIED: _ClassVar[Seating.Order]
        DRAWN: _ClassVar[Seating.Order]
        AS_LISTED: _ClassVar[Seating.Order]
    ORDER_UNSPECIFIED: Seating.Order
    DRAWN: Seating.Order
    AS_LISTED: Seating.Order
    def __init__(self) -> None: ...

class Bot(_message.Message):
    __slots__ = ()
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Bot.Kind]
        STANDARD: _ClassVar[Bot.Kind]
    KIND_UNSPECIFIED: Bot.Kind
    STANDARD: Bot.Kind
    def __init__(self) -> None: ...

class SeatRequest(_message.Message):
    __slots__ = ("player", "bot", "name")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    BOT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    player: str
    bot: Bot.Kind
    name: str
    def __init__(self, player: _Optional[str] = ..., bot: _Optional[_Union[Bot.Kind, str]] = ..., name: _Optional[str] = ...) -> None: ...

class Seat(_message.Message):
    __slots__ = ("seat", "player", "name", "bot", "resigned", "stand_in", "connected", "deadline")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BOT_FIELD_NUMBER: _ClassVar[int]
    RESIGNED_FIELD_NUMBER: _ClassVar[int]
    STAND_IN_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    seat: int
    player: str
    name: str
    bot: Bot.Kind
    resigned: bool
    stand_in: bool
    connected: bool
    deadline: _timestamp_pb2.Timestamp
    def __init__(self, seat: _Optional[int] = ..., player: _Optional[str] = ..., name: _Optional[str] = ..., bot: _Optional[_Union[Bot.Kind, str]] = ..., resigned: _Optional[bool] = ..., stand_in: _Optional[bool] = ..., connected: _Optional[bool] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ("ending", "ranks", "winners")
    class Ending(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ENDING_UNSPECIFIED: _ClassVar[Outcome.Ending]
        COMPLETED: _ClassVar[Outcome.Ending]
        RESIGNED: _ClassVar[Outcome.Ending]
        ABANDONED: _ClassVar[Outcome.Ending]
    ENDING_UNSPECIFIED: Outcome.Ending
    COMPLETED: Outcome.Ending
    RESIGNED: Outcome.Ending
    ABANDONED: Outcome.Ending
    ENDING_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    WINNERS_FIELD_NUMBER: _ClassVar[int]
    ending: Outcome.Ending
    ranks: _containers.RepeatedScalarFieldContainer[int]
    winners: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ending: _Optional[_Union[Outcome.Ending, str]] = ..., ranks: _Optional[_Iterable[int]] = ..., winners: _Optional[_Iterable[int]] = ...) -> None: ...

class SeatChanged(_message.Message):
    __slots__ = ("seat",)
    SEAT_FIELD_NUMBER: _ClassVar[int]
    seat: Seat
    def __init__(self, seat: _Optional[_Union[Seat, _Mapping]] = ...) -> None: ...

class MatchFinished(_message.Message):
    __slots__ = ("outcome",)
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    outcome: Outcome
    def __init__(self, outcome: _Optional[_Union[Outcome, _Mapping]] = ...) -> None: ...

class Played(_message.Message):
    __slots__ = ("seat", "time", "by")
    class By(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BY_UNSPECIFIED: _ClassVar[Played.By]
        PLAYER: _ClassVar[Played.By]
        BOT: _ClassVar[Played.By]
        CLOCK: _ClassVar[Played.By]
    BY_UNSPECIFIED: Played.By
    PLAYER: Played.By
    BOT: Played.By
    CLOCK: Played.By
    SEAT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    seat: int
    time: _timestamp_pb2.Timestamp
    by: Played.By
    def __init__(self, seat: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., by: _Optional[_Union[Played.By, str]] = ...) -> None: ...
