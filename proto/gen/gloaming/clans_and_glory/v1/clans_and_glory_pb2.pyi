import datetime

from gloaming.table.v1 import table_pb2 as _table_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Options(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Resident(_message.Message):
    __slots__ = ("color", "strength")
    class Color(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        COLOR_UNSPECIFIED: _ClassVar[Resident.Color]
        RED: _ClassVar[Resident.Color]
        ORANGE: _ClassVar[Resident.Color]
        YELLOW: _ClassVar[Resident.Color]
        GREEN: _ClassVar[Resident.Color]
        BLUE: _ClassVar[Resident.Color]
        PURPLE: _ClassVar[Resident.Color]
        GREY: _ClassVar[Resident.Color]
    COLOR_UNSPECIFIED: Resident.Color
    RED: Resident.Color
    ORANGE: Resident.Color
    YELLOW: Resident.Color
    GREEN: Resident.Color
    BLUE: Resident.Color
    PURPLE: Resident.Color
    GREY: Resident.Color
    COLOR_FIELD_NUMBER: _ClassVar[int]
    STRENGTH_FIELD_NUMBER: _ClassVar[int]
    color: Resident.Color
    strength: int
    def __init__(self, color: _Optional[_Union[Resident.Color, str]] = ..., strength: _Optional[int] = ...) -> None: ...

class Slot(_message.Message):
    __slots__ = ("resident", "face_down")
    RESIDENT_FIELD_NUMBER: _ClassVar[int]
    FACE_DOWN_FIELD_NUMBER: _ClassVar[int]
    resident: Resident
    face_down: bool
    def __init__(self, resident: _Optional[_Union[Resident, _Mapping]] = ..., face_down: _Optional[bool] = ...) -> None: ...

class Field(_message.Message):
    __slots__ = ("campfire", "slots", "shields")
    CAMPFIRE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    SHIELDS_FIELD_NUMBER: _ClassVar[int]
    campfire: bool
    slots: _containers.RepeatedCompositeFieldContainer[Slot]
    shields: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, campfire: _Optional[bool] = ..., slots: _Optional[_Iterable[_Union[Slot, _Mapping]]] = ..., shields: _Optional[_Iterable[int]] = ...) -> None: ...

class Move(_message.Message):
    __slots__ = ("place",)
    PLACE_FIELD_NUMBER: _ClassVar[int]
    place: Place
    def __init__(self, place: _Optional[_Union[Place, _Mapping]] = ...) -> None: ...

class Place(_message.Message):
    __slots__ = ("card", "field", "slot", "face_down", "shield")
    CARD_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    FACE_DOWN_FIELD_NUMBER: _ClassVar[int]
    SHIELD_FIELD_NUMBER: _ClassVar[int]
    card: Resident
    field: int
    slot: int
    face_down: bool
    shield: bool
    def __init__(self, card: _Optional[_Union[Resident, _Mapping]] = ..., field: _Optional[int] = ..., slot: _Optional[int] = ..., face_down: _Optional[bool] = ..., shield: _Optional[bool] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("fields", "hand", "hand_sizes", "shields_left", "removed_count", "scoring", "scores")
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    HAND_FIELD_NUMBER: _ClassVar[int]
    HAND_SIZES_FIELD_NUMBER: _ClassVar[int]
    SHIELDS_LEFT_FIELD_NUMBER: _ClassVar[int]
    REMOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SCORING_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedCompositeFieldContainer[Field]
    hand: _containers.RepeatedCompositeFieldContainer[Resident]
    hand_sizes: _containers.RepeatedScalarFieldContainer[int]
    shields_left: _containers.RepeatedScalarFieldContainer[int]
    removed_count: int
    scoring: _containers.RepeatedCompositeFieldContainer[FieldScored]
    scores: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, fields: _Optional[_Iterable[_Union[Field, _Mapping]]] = ..., hand: _Optional[_Iterable[_Union[Resident, _Mapping]]] = ..., hand_sizes: _Optional[_Iterable[int]] = ..., shields_left: _Optional[_Iterable[int]] = ..., removed_count: _Optional[int] = ..., scoring: _Optional[_Iterable[_Union[FieldScored, _Mapping]]] = ..., scores: _Optional[_Iterable[int]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("hand_dealt", "resident_placed", "shield_placed", "field_scored", "seat_changed", "match_finished")
    HAND_DEALT_FIELD_NUMBER: _ClassVar[int]
    RESIDENT_PLACED_FIELD_NUMBER: _ClassVar[int]
    SHIELD_PLACED_FIELD_NUMBER: _ClassVar[int]
    FIELD_SCORED_FIELD_NUMBER: _ClassVar[int]
    SEAT_CHANGED_FIELD_NUMBER: _ClassVar[int]
    MATCH_FINISHED_FIELD_NUMBER: _ClassVar[int]
    hand_dealt: HandDealt
    resident_placed: ResidentPlaced
    shield_placed: ShieldPlaced
    field_scored: FieldScored
    seat_changed: _table_pb2.SeatChanged
    match_finished: _table_pb2.MatchFinished
    def __init__(self, hand_dealt: _Optional[_Union[HandDealt, _Mapping]] = ..., resident_placed: _Optional[_Union[ResidentPlaced, _Mapping]] = ..., shield_placed: _Optional[_Union[ShieldPlaced, _Mapping]] = ..., field_scored: _Optional[_Union[FieldScored, _Mapping]] = ..., seat_changed: _Optional[_Union[_table_pb2.SeatChanged, _Mapping]] = ..., match_finished: _Optional[_Union[_table_pb2.MatchFinished, _Mapping]] = ...) -> None: ...

class HandDealt(_message.Message):
    __slots__ = ("seat", "count", "cards")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    seat: int
    count: int
    cards: _containers.RepeatedCompositeFieldContainer[Resident]
    def __init__(self, seat: _Optional[int] = ..., count: _Optional[int] = ..., cards: _Optional[_Iterable[_Union[Resident, _Mapping]]] = ...) -> None: ...

class ResidentPlaced(_message.Message):
    __slots__ = ("seat", "field", "slot", "resident", "face_down")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    RESIDENT_FIELD_NUMBER: _ClassVar[int]
    FACE_DOWN_FIELD_NUMBER: _ClassVar[int]
    seat: int
    field: int
    slot: int
    resident: Resident
    face_down: bool
    def __init__(self, seat: _Optional[int] = ..., field: _Optional[int] = ..., slot: _Optional[int] = ..., resident: _Optional[_Union[Resident, _Mapping]] = ..., face_down: _Optional[bool] = ...) -> None: ...

class ShieldPlaced(_message.Message):
    __slots__ = ("seat", "field")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    seat: int
    field: int
    def __init__(self, seat: _Optional[int] = ..., field: _Optional[int] = ...) -> None: ...

class FieldScored(_message.Message):
    __slots__ = ("field", "taken", "left")
    class Taken(_message.Message):
        __slots__ = ("seat", "residents")
        SEAT_FIELD_NUMBER: _ClassVar[int]
        RESIDENTS_FIELD_NUMBER: _ClassVar[int]
        seat: int
        residents: _containers.RepeatedCompositeFieldContainer[Resident]
        def __init__(self, seat: _Optional[int] = ..., residents: _Optional[_Iterable[_Union[Resident, _Mapping]]] = ...) -> None: ...
    FIELD_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    field: int
    taken: _containers.RepeatedCompositeFieldContainer[FieldScored.Taken]
    left: _containers.RepeatedCompositeFieldContainer[Resident]
    def __init__(self, field: _Optional[int] = ..., taken: _Optional[_Iterable[_Union[FieldScored.Taken, _Mapping]]] = ..., left: _Optional[_Iterable[_Union[Resident, _Mapping]]] = ...) -> None: ...

class Match(_message.Message):
    __slots__ = ("id", "game", "status", "version", "cursor", "seats", "viewer_seat", "to_move", "deadline", "server_time", "commitment", "options", "settings", "view", "outcome")
    ID_FIELD_NUMBER: _ClassVar[int]
    GAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    VIEWER_SEAT_FIELD_NUMBER: _ClassVar[int]
    TO_MOVE_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    SERVER_TIME_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    id: str
    game: str
    status: _table_pb2.MatchStatus
    version: int
    cursor: str
    seats: _containers.RepeatedCompositeFieldContainer[_table_pb2.Seat]
    viewer_seat: int
    to_move: _containers.RepeatedScalarFieldContainer[int]
    deadline: _timestamp_pb2.Timestamp
    server_time: _timestamp_pb2.Timestamp
    commitment: str
    options: Options
    settings: _table_pb2.Settings
    view: View
    outcome: _table_pb2.Outcome
    def __init__(self, id: _Optional[str] = ..., game: _Optional[str] = ..., status: _Optional[_Union[_table_pb2.MatchStatus, str]] = ..., version: _Optional[int] = ..., cursor: _Optional[str] = ..., seats: _Optional[_Iterable[_Union[_table_pb2.Seat, _Mapping]]] = ..., viewer_seat: _Optional[int] = ..., to_move: _Optional[_Iterable[int]] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., server_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., commitment: _Optional[str] = ..., options: _Optional[_Union[Options, _Mapping]] = ..., settings: _Optional[_Union[_table_pb2.Settings, _Mapping]] = ..., view: _Optional[_Union[View, _Mapping]] = ..., outcome: _Optional[_Union[_table_pb2.Outcome, _Mapping]] = ...) -> None: ...

class MatchEvent(_message.Message):
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
    event: Event
    def __init__(self, match_id: _Optional[str] = ..., cursor: _Optional[str] = ..., version: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., event: _Optional[_Union[Event, _Mapping]] = ...) -> None: ...

class CreateMatchRequest(_message.Message):
    __slots__ = ("match_id", "options", "settings", "seats", "order")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    options: Options
    settings: _table_pb2.Settings
    seats: _containers.RepeatedCompositeFieldContainer[_table_pb2.SeatRequest]
    order: _table_pb2.Seating.Order
    def __init__(self, match_id: _Optional[str] = ..., options: _Optional[_Union[Options, _Mapping]] = ..., settings: _Optional[_Union[_table_pb2.Settings, _Mapping]] = ..., seats: _Optional[_Iterable[_Union[_table_pb2.SeatRequest, _Mapping]]] = ..., order: _Optional[_Union[_table_pb2.Seating.Order, str]] = ...) -> None: ...

class GetMatchRequest(_message.Message):
    __slots__ = ("match_id",)
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    def __init__(self, match_id: _Optional[str] = ...) -> None: ...

class ListMovesRequest(_message.Message):
    __slots__ = ("match_id",)
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    def __init__(self, match_id: _Optional[str] = ...) -> None: ...

class ListMovesResponse(_message.Message):
    __slots__ = ("match_id", "version", "moves")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    version: int
    moves: _containers.RepeatedCompositeFieldContainer[Move]
    def __init__(self, match_id: _Optional[str] = ..., version: _Optional[int] = ..., moves: _Optional[_Iterable[_Union[Move, _Mapping]]] = ...) -> None: ...

class SubmitMoveRequest(_message.Message):
    __slots__ = ("match_id", "move", "request_id", "expected_version")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    move: Move
    request_id: str
    expected_version: int
    def __init__(self, match_id: _Optional[str] = ..., move: _Optional[_Union[Move, _Mapping]] = ..., request_id: _Optional[str] = ..., expected_version: _Optional[int] = ...) -> None: ...

class SubmitMoveResponse(_message.Message):
    __slots__ = ("match_id", "version", "cursor", "events")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    version: int
    cursor: str
    events: _containers.RepeatedCompositeFieldContainer[MatchEvent]
    def __init__(self, match_id: _Optional[str] = ..., version: _Optional[int] = ..., cursor: _Optional[str] = ..., events: _Optional[_Iterable[_Union[MatchEvent, _Mapping]]] = ...) -> None: ...

class ResignRequest(_message.Message):
    __slots__ = ("match_id", "request_id")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    request_id: str
    def __init__(self, match_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResignResponse(_message.Message):
    __slots__ = ("match_id", "version", "cursor", "events")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    version: int
    cursor: str
    events: _containers.RepeatedCompositeFieldContainer[MatchEvent]
    def __init__(self, match_id: _Optional[str] = ..., version: _Optional[int] = ..., cursor: _Optional[str] = ..., events: _Optional[_Iterable[_Union[MatchEvent, _Mapping]]] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("match_id", "after_cursor", "page_size")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_CURSOR_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    after_cursor: str
    page_size: int
    def __init__(self, match_id: _Optional[str] = ..., after_cursor: _Optional[str] = ..., page_size: _Optional[int] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("events", "next_cursor", "more", "snapshot")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[MatchEvent]
    next_cursor: str
    more: bool
    snapshot: Match
    def __init__(self, events: _Optional[_Iterable[_Union[MatchEvent, _Mapping]]] = ..., next_cursor: _Optional[str] = ..., more: _Optional[bool] = ..., snapshot: _Optional[_Union[Match, _Mapping]] = ...) -> None: ...

class WatchMatchRequest(_message.Message):
    __slots__ = ("match_id", "after_cursor")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_CURSOR_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    after_cursor: str
    def __init__(self, match_id: _Optional[str] = ..., after_cursor: _Optional[str] = ...) -> None: ...

class WatchMatchResponse(_message.Message):
    __slots__ = ("snapshot", "event")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    snapshot: Match
    event: MatchEvent
    def __init__(self, snapshot: _Optional[_Union[Match, _Mapping]] = ..., event: _Optional[_Union[MatchEvent, _Mapping]] = ...) -> None: ...

class GetRecordRequest(_message.Message):
    __slots__ = ("match_id",)
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    def __init__(self, match_id: _Optional[str] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("match_id", "game", "seed", "commitment", "options", "settings", "order", "listed", "seats", "create_time", "moves", "outcome", "scores")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    GAME_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    LISTED_FIELD_NUMBER: _ClassVar[int]
    SEATS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    game: str
    seed: str
    commitment: str
    options: Options
    settings: _table_pb2.Settings
    order: _table_pb2.Seating.Order
    listed: _containers.RepeatedCompositeFieldContainer[_table_pb2.SeatRequest]
    seats: _containers.RepeatedCompositeFieldContainer[_table_pb2.Seat]
    create_time: _timestamp_pb2.Timestamp
    moves: _containers.RepeatedCompositeFieldContainer[RecordedMove]
    outcome: _table_pb2.Outcome
    scores: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, match_id: _Optional[str] = ..., game: _Optional[str] = ..., seed: _Optional[str] = ..., commitment: _Optional[str] = ..., options: _Optional[_Union[Options, _Mapping]] = ..., settings: _Optional[_Union[_table_pb2.Settings, _Mapping]] = ..., order: _Optional[_Union[_table_pb2.Seating.Order, str]] = ..., listed: _Optional[_Iterable[_Union[_table_pb2.SeatRequest, _Mapping]]] = ..., seats: _Optional[_Iterable[_Union[_table_pb2.Seat, _Mapping]]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., moves: _Optional[_Iterable[_Union[RecordedMove, _Mapping]]] = ..., outcome: _Optional[_Union[_table_pb2.Outcome, _Mapping]] = ..., scores: _Optional[_Iterable[int]] = ...) -> None: ...

class RecordedMove(_message.Message):
    __slots__ = ("played", "move", "resignation")
    PLAYED_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    RESIGNATION_FIELD_NUMBER: _ClassVar[int]
    played: _table_pb2.Played
    move: Move
    resignation: Resignation
    def __init__(self, played: _Optional[_Union[_table_pb2.Played, _Mapping]] = ..., move: _Optional[_Union[Move, _Mapping]] = ..., resignation: _Optional[_Union[Resignation, _Mapping]] = ...) -> None: ...

class Resignation(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
