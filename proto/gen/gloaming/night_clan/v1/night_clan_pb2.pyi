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
    __slots__ = ("variant",)
    class Variant(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VARIANT_UNSPECIFIED: _ClassVar[Options.Variant]
        NIGHT: _ClassVar[Options.Variant]
        DAY: _ClassVar[Options.Variant]
    VARIANT_UNSPECIFIED: Options.Variant
    NIGHT: Options.Variant
    DAY: Options.Variant
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    variant: Options.Variant
    def __init__(self, variant: _Optional[_Union[Options.Variant, str]] = ...) -> None: ...

class Card(_message.Message):
    __slots__ = ("card_id", "owner", "face_up", "kind")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Card.Kind]
        TROLL: _ClassVar[Card.Kind]
        MISTLETOE: _ClassVar[Card.Kind]
        RICHES: _ClassVar[Card.Kind]
        DAUGHTER: _ClassVar[Card.Kind]
        NIGHT_WATCH: _ClassVar[Card.Kind]
    KIND_UNSPECIFIED: Card.Kind
    TROLL: Card.Kind
    MISTLETOE: Card.Kind
    RICHES: Card.Kind
    DAUGHTER: Card.Kind
    NIGHT_WATCH: Card.Kind
    CARD_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    FACE_UP_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    card_id: str
    owner: int
    face_up: bool
    kind: Card.Kind
    def __init__(self, card_id: _Optional[str] = ..., owner: _Optional[int] = ..., face_up: _Optional[bool] = ..., kind: _Optional[_Union[Card.Kind, str]] = ...) -> None: ...

class Location(_message.Message):
    __slots__ = ("location", "capacity", "cards")
    class Name(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NAME_UNSPECIFIED: _ClassVar[Location.Name]
        LAMP_SHOP: _ClassVar[Location.Name]
        CHURCH: _ClassVar[Location.Name]
        LIBRARY: _ClassVar[Location.Name]
        OLD_CASTLE: _ClassVar[Location.Name]
        TOWER: _ClassVar[Location.Name]
        PALACE: _ClassVar[Location.Name]
        BAR: _ClassVar[Location.Name]
        BLACK_FOREST: _ClassVar[Location.Name]
    NAME_UNSPECIFIED: Location.Name
    LAMP_SHOP: Location.Name
    CHURCH: Location.Name
    LIBRARY: Location.Name
    OLD_CASTLE: Location.Name
    TOWER: Location.Name
    PALACE: Location.Name
    BAR: Location.Name
    BLACK_FOREST: Location.Name
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    location: Location.Name
    capacity: int
    cards: _containers.RepeatedCompositeFieldContainer[Card]
    def __init__(self, location: _Optional[_Union[Location.Name, str]] = ..., capacity: _Optional[int] = ..., cards: _Optional[_Iterable[_Union[Card, _Mapping]]] = ...) -> None: ...

class Move(_message.Message):
    __slots__ = ("keep", "mulligan", "play")
    KEEP_FIELD_NUMBER: _ClassVar[int]
    MULLIGAN_FIELD_NUMBER: _ClassVar[int]
    PLAY_FIELD_NUMBER: _ClassVar[int]
    keep: Keep
    mulligan: Mulligan
    play: Play
    def __init__(self, keep: _Optional[_Union[Keep, _Mapping]] = ..., mulligan: _Optional[_Union[Mulligan, _Mapping]] = ..., play: _Optional[_Union[Play, _Mapping]] = ...) -> None: ...

class Keep(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Mulligan(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Play(_message.Message):
    __slots__ = ("card", "location", "relocate")
    CARD_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    RELOCATE_FIELD_NUMBER: _ClassVar[int]
    card: Card.Kind
    location: Location.Name
    relocate: Relocate
    def __init__(self, card: _Optional[_Union[Card.Kind, str]] = ..., location: _Optional[_Union[Location.Name, str]] = ..., relocate: _Optional[_Union[Relocate, _Mapping]] = ...) -> None: ...

class Relocate(_message.Message):
    __slots__ = ("card_id", "to")
    CARD_ID_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    card_id: str
    to: Location.Name
    def __init__(self, card_id: _Optional[str] = ..., to: _Optional[_Union[Location.Name, str]] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("phase", "locations", "hand", "hand_sizes", "deck_sizes", "plays_left", "scoring", "scores")
    class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PHASE_UNSPECIFIED: _ClassVar[View.Phase]
        SETUP: _ClassVar[View.Phase]
        PLAY: _ClassVar[View.Phase]
        FINISHED: _ClassVar[View.Phase]
    PHASE_UNSPECIFIED: View.Phase
    SETUP: View.Phase
    PLAY: View.Phase
    FINISHED: View.Phase
    PHASE_FIELD_NUMBER: _ClassVar[int]
    LOCATIONS_FIELD_NUMBER: _ClassVar[int]
    HAND_FIELD_NUMBER: _ClassVar[int]
    HAND_SIZES_FIELD_NUMBER: _ClassVar[int]
    DECK_SIZES_FIELD_NUMBER: _ClassVar[int]
    PLAYS_LEFT_FIELD_NUMBER: _ClassVar[int]
    SCORING_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    phase: View.Phase
    locations: _containers.RepeatedCompositeFieldContainer[Location]
    hand: _containers.RepeatedScalarFieldContainer[Card.Kind]
    hand_sizes: _containers.RepeatedScalarFieldContainer[int]
    deck_sizes: _containers.RepeatedScalarFieldContainer[int]
    plays_left: int
    scoring: _containers.RepeatedCompositeFieldContainer[LocationScored]
    scores: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, phase: _Optional[_Union[View.Phase, str]] = ..., locations: _Optional[_Iterable[_Union[Location, _Mapping]]] = ..., hand: _Optional[_Iterable[_Union[Card.Kind, str]]] = ..., hand_sizes: _Optional[_Iterable[int]] = ..., deck_sizes: _Optional[_Iterable[int]] = ..., plays_left: _Optional[int] = ..., scoring: _Optional[_Iterable[_Union[LocationScored, _Mapping]]] = ..., scores: _Optional[_Iterable[int]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("hand_kept", "hand_shown", "cards_drawn", "card_played", "card_relocated", "location_scored", "seat_changed", "match_finished")
    HAND_KEPT_FIELD_NUMBER: _ClassVar[int]
    HAND_SHOWN_FIELD_NUMBER: _ClassVar[int]
    CARDS_DRAWN_FIELD_NUMBER: _ClassVar[int]
    CARD_PLAYED_FIELD_NUMBER: _ClassVar[int]
    CARD_RELOCATED_FIELD_NUMBER: _ClassVar[int]
    LOCATION_SCORED_FIELD_NUMBER: _ClassVar[int]
    SEAT_CHANGED_FIELD_NUMBER: _ClassVar[int]
    MATCH_FINISHED_FIELD_NUMBER: _ClassVar[int]
    hand_kept: HandKept
    hand_shown: HandShown
    cards_drawn: CardsDrawn
    card_played: CardPlayed
    card_relocated: CardRelocated
    location_scored: LocationScored
    seat_changed: _table_pb2.SeatChanged
    match_finished: _table_pb2.MatchFinished
    def __init__(self, hand_kept: _Optional[_Union[HandKept, _Mapping]] = ..., hand_shown: _Optional[_Union[HandShown, _Mapping]] = ..., cards_drawn: _Optional[_Union[CardsDrawn, _Mapping]] = ..., card_played: _Optional[_Union[CardPlayed, _Mapping]] = ..., card_relocated: _Optional[_Union[CardRelocated, _Mapping]] = ..., location_scored: _Optional[_Union[LocationScored, _Mapping]] = ..., seat_changed: _Optional[_Union[_table_pb2.SeatChanged, _Mapping]] = ..., match_finished: _Optional[_Union[_table_pb2.MatchFinished, _Mapping]] = ...) -> None: ...

class HandKept(_message.Message):
    __slots__ = ("seat",)
    SEAT_FIELD_NUMBER: _ClassVar[int]
    seat: int
    def __init__(self, seat: _Optional[int] = ...) -> None: ...

class HandShown(_message.Message):
    __slots__ = ("seat", "cards")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    seat: int
    cards: _containers.RepeatedScalarFieldContainer[Card.Kind]
    def __init__(self, seat: _Optional[int] = ..., cards: _Optional[_Iterable[_Union[Card.Kind, str]]] = ...) -> None: ...

class CardsDrawn(_message.Message):
    __slots__ = ("seat", "count", "cards")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    seat: int
    count: int
    cards: _containers.RepeatedScalarFieldContainer[Card.Kind]
    def __init__(self, seat: _Optional[int] = ..., count: _Optional[int] = ..., cards: _Optional[_Iterable[_Union[Card.Kind, str]]] = ...) -> None: ...

class CardPlayed(_message.Message):
    __slots__ = ("seat", "card", "location")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    CARD_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    seat: int
    card: Card
    location: Location.Name
    def __init__(self, seat: _Optional[int] = ..., card: _Optional[_Union[Card, _Mapping]] = ..., location: _Optional[_Union[Location.Name, str]] = ...) -> None: ...

class CardRelocated(_message.Message):
    __slots__ = ("seat", "card_id", "to")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    CARD_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    seat: int
    card_id: str
    to: Location.Name
    def __init__(self, seat: _Optional[int] = ..., card_id: _Optional[str] = ..., to: _Optional[_Union[Location.Name, str]] = ..., **kwargs) -> None: ...

class LocationScored(_message.Message):
    __slots__ = ("location", "cards", "taken_by", "effect", "points")
    class Effect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        EFFECT_UNSPECIFIED: _ClassVar[LocationScored.Effect]
        NO_TROLL: _ClassVar[LocationScored.Effect]
        SPOILED: _ClassVar[LocationScored.Effect]
        NEGATED: _ClassVar[LocationScored.Effect]
    EFFECT_UNSPECIFIED: LocationScored.Effect
    NO_TROLL: LocationScored.Effect
    SPOILED: LocationScored.Effect
    NEGATED: LocationScored.Effect
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    TAKEN_BY_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    location: Location.Name
    cards: _containers.RepeatedCompositeFieldContainer[Card]
    taken_by: int
    effect: LocationScored.Effect
    points: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, location: _Optional[_Union[Location.Name, str]] = ..., cards: _Optional[_Iterable[_Union[Card, _Mapping]]] = ..., taken_by: _Optional[int] = ..., effect: _Optional[_Union[LocationScored.Effect, str]] = ..., points: _Optional[_Iterable[int]] = ...) -> None: ...

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
