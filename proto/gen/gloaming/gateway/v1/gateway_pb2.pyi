import datetime

from gloaming.table.v1 import table_pb2 as _table_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Player(_message.Message):
    __slots__ = ("id", "name", "create_time", "ratings")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    RATINGS_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    create_time: _timestamp_pb2.Timestamp
    ratings: _containers.RepeatedCompositeFieldContainer[Rating]
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ratings: _Optional[_Iterable[_Union[Rating, _Mapping]]] = ...) -> None: ...

class Rating(_message.Message):
    __slots__ = ("game", "rating", "deviation", "score", "matches")
    GAME_FIELD_NUMBER: _ClassVar[int]
    RATING_FIELD_NUMBER: _ClassVar[int]
    DEVIATION_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    game: str
    rating: int
    deviation: int
    score: int
    matches: int
    def __init__(self, game: _Optional[str] = ..., rating: _Optional[int] = ..., deviation: _Optional[int] = ..., score: _Optional[int] = ..., matches: _Optional[int] = ...) -> None: ...

class Leaderboard(_message.Message):
    __slots__ = ("game", "entries", "next_page_token")
    GAME_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    game: str
    entries: _containers.RepeatedCompositeFieldContainer[LeaderboardEntry]
    next_page_token: str
    def __init__(self, game: _Optional[str] = ..., entries: _Optional[_Iterable[_Union[LeaderboardEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class LeaderboardEntry(_message.Message):
    __slots__ = ("rank", "player", "name", "rating")
    RANK_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RATING_FIELD_NUMBER: _ClassVar[int]
    rank: int
    player: str
    name: str
    rating: Rating
    def __init__(self, rank: _Optional[int] = ..., player: _Optional[str] = ..., name: _Optional[str] = ..., rating: _Optional[_Union[Rating, _Mapping]] = ...) -> None: ...

class CreateRoomRequest(_message.Message):
    __slots__ = ("game", "options", "settings", "seats")
    GAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    game: str
    options: bytes
    settings: _table_pb2.Settings
    seats: int
    def __init__(self, game: _Optional[str] = ..., options: _Optional[bytes] = ..., settings: _Optional[_Union[_table_pb2.Settings, _Mapping]] = ..., seats: _Optional[int] = ...) -> None: ...

class Room(_message.Message):
    __slots__ = ("code", "game", "options", "settings", "seats", "host", "members", "status", "match_id", "ticket_id", "version", "expire_time")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNSPECIFIED: _ClassVar[Room.Status]
        OPEN: _ClassVar[Room.Status]
        STARTING: _ClassVar[Room.Status]
        STARTED: _ClassVar[Room.Status]
    STATUS_UNSPECIFIED: Room.Status
    OPEN: Room.Status
    STARTING: Room.Status
    STARTED: Room.Status
    CODE_FIELD_NUMBER: _ClassVar[int]
    GAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    TICKET_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    code: str
    game: str
    options: bytes
    settings: _table_pb2.Settings
    seats: int
    host: str
    members: _containers.RepeatedCompositeFieldContainer[RoomMember]
    status: Room.Status
    match_id: str
    ticket_id: str
    version: int
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, code: _Optional[str] = ..., game: _Optional[str] = ..., options: _Optional[bytes] = ..., settings: _Optional[_Union[_table_pb2.Settings, _Mapping]] = ..., seats: _Optional[int] = ..., host: _Optional[str] = ..., members: _Optional[_Iterable[_Union[RoomMember, _Mapping]]] = ..., status: _Optional[_Union[Room.Status, str]] = ..., match_id: _Optional[str] = ..., ticket_id: _Optional[str] = ..., version: _Optional[int] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RoomMember(_message.Message):
    __slots__ = ("player", "name", "bot", "ready")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BOT_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    player: str
    name: str
    bot: _table_pb2.Bot.Kind
    ready: bool
    def __init__(self, player: _Optional[str] = ..., name: _Optional[str] = ..., bot: _Optional[_Union[_table_pb2.Bot.Kind, str]] = ..., ready: _Optional[bool] = ...) -> None: ...

class KickRequest(_message.Message):
    __slots__ = ("player",)
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    player: str
    def __init__(self, player: _Optional[str] = ...) -> None: ...

class ReadyRequest(_message.Message):
    __slots__ = ("ready",)
    READY_FIELD_NUMBER: _ClassVar[int]
    ready: bool
    def __init__(self, ready: _Optional[bool] = ...) -> None: ...

class CreateTicketRequest(_message.Message):
    __slots__ = ("game", "options", "settings", "seats", "party", "bots_after_seconds")
    GAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    PARTY_FIELD_NUMBER: _ClassVar[int]
    BOTS_AFTER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    game: str
    options: bytes
    settings: _table_pb2.Settings
    seats: Seats
    party: str
    bots_after_seconds: int
    def __init__(self, game: _Optional[str] = ..., options: _Optional[bytes] = ..., settings: _Optional[_Union[_table_pb2.Settings, _Mapping]] = ..., seats: _Optional[_Union[Seats, _Mapping]] = ..., party: _Optional[str] = ..., bots_after_seconds: _Optional[int] = ...) -> None: ...

class Ticket(_message.Message):
    __slots__ = ("id", "game", "options", "settings", "seats", "players", "status", "explanation", "match_id", "create_time", "failure")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNSPECIFIED: _ClassVar[Ticket.Status]
        WAITING: _ClassVar[Ticket.Status]
        FORMING: _ClassVar[Ticket.Status]
        MATCHED: _ClassVar[Ticket.Status]
        CANCELLED: _ClassVar[Ticket.Status]
        EXPIRED: _ClassVar[Ticket.Status]
        FAILED: _ClassVar[Ticket.Status]
    STATUS_UNSPECIFIED: Ticket.Status
    WAITING: Ticket.Status
    FORMING: Ticket.Status
    MATCHED: Ticket.Status
    CANCELLED: Ticket.Status
    EXPIRED: Ticket.Status
    FAILED: Ticket.Status
    ID_FIELD_NUMBER: _ClassVar[int]
    GAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    PLAYERS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    id: str
    game: str
    options: bytes
    settings: _table_pb2.Settings
    seats: Seats
    players: _containers.RepeatedScalarFieldContainer[str]
    status: Ticket.Status
    explanation: TicketExplanation
    match_id: str
    create_time: _timestamp_pb2.Timestamp
    failure: Failure
    def __init__(self, id: _Optional[str] = ..., game: _Optional[str] = ..., options: _Optional[bytes] = ..., settings: _Optional[_Union[_table_pb2.Settings, _Mapping]] = ..., seats: _Optional[_Union[Seats, _Mapping]] = ..., players: _Optional[_Iterable[str]] = ..., status: _Optional[_Union[Ticket.Status, str]] = ..., explanation: _Optional[_Union[TicketExplanation, _Mapping]] = ..., match_id: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class TicketExplanation(_message.Message):
    __slots__ = ("summary", "rating", "band", "widen_time", "next_band", "seats_wanted", "fewer_time", "bots_time", "expire_time")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    RATING_FIELD_NUMBER: _ClassVar[int]
    BAND_FIELD_NUMBER: _ClassVar[int]
    WIDEN_TIME_FIELD_NUMBER: _ClassVar[int]
    NEXT_BAND_FIELD_NUMBER: _ClassVar[int]
    SEATS_WANTED_FIELD_NUMBER: _ClassVar[int]
    FEWER_TIME_FIELD_NUMBER: _ClassVar[int]
    BOTS_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    summary: str
    rating: int
    band: int
    widen_time: _timestamp_pb2.Timestamp
    next_band: int
    seats_wanted: int
    fewer_time: _timestamp_pb2.Timestamp
    bots_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, summary: _Optional[str] = ..., rating: _Optional[int] = ..., band: _Optional[int] = ..., widen_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_band: _Optional[int] = ..., seats_wanted: _Optional[int] = ..., fewer_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., bots_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("reason", "detail")
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    reason: str
    detail: str
    def __init__(self, reason: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class CreatePlayerRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class UpdatePlayerRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class RefreshRequest(_message.Message):
    __slots__ = ("refresh_token",)
    REFRESH_TOKEN_FIELD_NUMBER: _ClassVar[int]
    refresh_token: str
    def __init__(self, refresh_token: _Optional[str] = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ("player", "access_token", "expire_time", "refresh_token")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    ACCESS_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    REFRESH_TOKEN_FIELD_NUMBER: _ClassVar[int]
    player: Player
    access_token: str
    expire_time: _timestamp_pb2.Timestamp
    refresh_token: str
    def __init__(self, player: _Optional[_Union[Player, _Mapping]] = ..., access_token: _Optional[str] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., refresh_token: _Optional[str] = ...) -> None: ...

class Game(_message.Message):
    __slots__ = ("id", "title", "seats", "real_time", "service", "schemas")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    REAL_TIME_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    SCHEMAS_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    seats: Seats
    real_time: bool
    service: str
    schemas: Schemas
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., seats: _Optional[_Union[Seats, _Mapping]] = ..., real_time: _Optional[bool] = ..., service: _Optional[str] = ..., schemas: _Optional[_Union[Schemas, _Mapping]] = ...) -> None: ...

class Seats(_message.Message):
    __slots__ = ("min", "max")
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    min: int
    max: int
    def __init__(self, min: _Optional[int] = ..., max: _Optional[int] = ...) -> None: ...

class Schemas(_message.Message):
    __slots__ = ("options", "move", "view", "event")
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    options: _struct_pb2.Struct
    move: _struct_pb2.Struct
    view: _struct_pb2.Struct
    event: _struct_pb2.Struct
    def __init__(self, options: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., move: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., view: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., event: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ListGamesResponse(_message.Message):
    __slots__ = ("games",)
    GAMES_FIELD_NUMBER: _ClassVar[int]
    games: _containers.RepeatedCompositeFieldContainer[Game]
    def __init__(self, games: _Optional[_Iterable[_Union[Game, _Mapping]]] = ...) -> None: ...

class MatchSummary(_message.Message):
    __slots__ = ("id", "game", "status", "version", "seats", "viewer_seat", "to_move", "deadline", "outcome")
    ID_FIELD_NUMBER: _ClassVar[int]
    GAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    VIEWER_SEAT_FIELD_NUMBER: _ClassVar[int]
    TO_MOVE_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    id: str
    game: str
    status: _table_pb2.MatchStatus
    version: int
    seats: _containers.RepeatedCompositeFieldContainer[_table_pb2.Seat]
    viewer_seat: int
    to_move: _containers.RepeatedScalarFieldContainer[int]
    deadline: _timestamp_pb2.Timestamp
    outcome: _table_pb2.Outcome
    def __init__(self, id: _Optional[str] = ..., game: _Optional[str] = ..., status: _Optional[_Union[_table_pb2.MatchStatus, str]] = ..., version: _Optional[int] = ..., seats: _Optional[_Iterable[_Union[_table_pb2.Seat, _Mapping]]] = ..., viewer_seat: _Optional[int] = ..., to_move: _Optional[_Iterable[int]] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., outcome: _Optional[_Union[_table_pb2.Outcome, _Mapping]] = ...) -> None: ...

class ListMatchesResponse(_message.Message):
    __slots__ = ("matches", "next_page_token")
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    matches: _containers.RepeatedCompositeFieldContainer[MatchSummary]
    next_page_token: str
    def __init__(self, matches: _Optional[_Iterable[_Union[MatchSummary, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SetWebhookRequest(_message.Message):
    __slots__ = ("url",)
    URL_FIELD_NUMBER: _ClassVar[int]
    url: str
    def __init__(self, url: _Optional[str] = ...) -> None: ...

class Webhook(_message.Message):
    __slots__ = ("url", "create_time", "secret", "last_success_time", "last_failure", "disabled")
    class Failure(_message.Message):
        __slots__ = ("time", "reason")
        TIME_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        time: _timestamp_pb2.Timestamp
        reason: str
        def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...
    URL_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    LAST_SUCCESS_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_FAILURE_FIELD_NUMBER: _ClassVar[int]
    DISABLED_FIELD_NUMBER: _ClassVar[int]
    url: str
    create_time: _timestamp_pb2.Timestamp
    secret: str
    last_success_time: _timestamp_pb2.Timestamp
    last_failure: Webhook.Failure
    disabled: bool
    def __init__(self, url: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., secret: _Optional[str] = ..., last_success_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_failure: _Optional[_Union[Webhook.Failure, _Mapping]] = ..., disabled: _Optional[bool] = ...) -> None: ...

class WebhookNotice(_message.Message):
    __slots__ = ("type", "timestamp", "data")
    class Data(_message.Message):
        __slots__ = ("match_id", "game", "seat", "version", "deadline", "outcome")
        MATCH_ID_FIELD_NUMBER: _ClassVar[int]
        GAME_FIELD_NUMBER: _ClassVar[int]
        SEAT_FIELD_NUMBER: _ClassVar[int]
        VERSION_FIELD_NUMBER: _ClassVar[int]
        DEADLINE_FIELD_NUMBER: _ClassVar[int]
        OUTCOME_FIELD_NUMBER: _ClassVar[int]
        match_id: str
        game: str
        seat: int
        version: int
        deadline: _timestamp_pb2.Timestamp
        outcome: _table_pb2.Outcome
        def __init__(self, match_id: _Optional[str] = ..., game: _Optional[str] = ..., seat: _Optional[int] = ..., version: _Optional[int] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., outcome: _Optional[_Union[_table_pb2.Outcome, _Mapping]] = ...) -> None: ...
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    type: str
    timestamp: _timestamp_pb2.Timestamp
    data: WebhookNotice.Data
    def __init__(self, type: _Optional[str] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., data: _Optional[_Union[WebhookNotice.Data, _Mapping]] = ...) -> None: ...

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Problem(_message.Message):
    __slots__ = ("type", "title", "status", "detail", "reason", "violations")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    type: str
    title: str
    status: int
    detail: str
    reason: str
    violations: _containers.RepeatedCompositeFieldContainer[Violation]
    def __init__(self, type: _Optional[str] = ..., title: _Optional[str] = ..., status: _Optional[int] = ..., detail: _Optional[str] = ..., reason: _Optional[str] = ..., violations: _Optional[_Iterable[_Union[Violation, _Mapping]]] = ...) -> None: ...

class Violation(_message.Message):
    __slots__ = ("field", "description")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    field: str
    description: str
    def __init__(self, field: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...
