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
    __slots__ = ("turns_to_dawn",)
    TURNS_TO_DAWN_FIELD_NUMBER: _ClassVar[int]
    turns_to_dawn: int
    def __init__(self, turns_to_dawn: _Optional[int] = ...) -> None: ...

class Compass(_message.Message):
    __slots__ = ()
    class Direction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DIRECTION_UNSPECIFIED: _ClassVar[Compass.Direction]
        NORTH: _ClassVar[Compass.Direction]
        EAST: _ClassVar[Compass.Direction]
        SOUTH: _ClassVar[Compass.Direction]
        WEST: _ClassVar[Compass.Direction]
    DIRECTION_UNSPECIFIED: Compass.Direction
    NORTH: Compass.Direction
    EAST: Compass.Direction
    SOUTH: Compass.Direction
    WEST: Compass.Direction
    def __init__(self) -> None: ...

class Ring(_message.Message):
    __slots__ = ()
    class Direction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DIRECTION_UNSPECIFIED: _ClassVar[Ring.Direction]
        CLOCKWISE: _ClassVar[Ring.Direction]
        COUNTERCLOCKWISE: _ClassVar[Ring.Direction]
    DIRECTION_UNSPECIFIED: Ring.Direction
    CLOCKWISE: Ring.Direction
    COUNTERCLOCKWISE: Ring.Direction
    def __init__(self) -> None: ...

class Square(_message.Message):
    __slots__ = ("square",)
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    square: int
    def __init__(self, square: _Optional[int] = ...) -> None: ...

class Move(_message.Message):
    __slots__ = ("lair", "camp", "hunt", "prowl", "feint", "lured")
    LAIR_FIELD_NUMBER: _ClassVar[int]
    CAMP_FIELD_NUMBER: _ClassVar[int]
    HUNT_FIELD_NUMBER: _ClassVar[int]
    PROWL_FIELD_NUMBER: _ClassVar[int]
    FEINT_FIELD_NUMBER: _ClassVar[int]
    LURED_FIELD_NUMBER: _ClassVar[int]
    lair: Square
    camp: Square
    hunt: Hunt
    prowl: Prowl
    feint: Feint
    lured: Lured
    def __init__(self, lair: _Optional[_Union[Square, _Mapping]] = ..., camp: _Optional[_Union[Square, _Mapping]] = ..., hunt: _Optional[_Union[Hunt, _Mapping]] = ..., prowl: _Optional[_Union[Prowl, _Mapping]] = ..., feint: _Optional[_Union[Feint, _Mapping]] = ..., lured: _Optional[_Union[Lured, _Mapping]] = ...) -> None: ...

class Hunt(_message.Message):
    __slots__ = ("to", "sword", "arrow", "bell", "ham")
    TO_FIELD_NUMBER: _ClassVar[int]
    SWORD_FIELD_NUMBER: _ClassVar[int]
    ARROW_FIELD_NUMBER: _ClassVar[int]
    BELL_FIELD_NUMBER: _ClassVar[int]
    HAM_FIELD_NUMBER: _ClassVar[int]
    to: int
    sword: Square
    arrow: Arrow
    bell: Square
    ham: Square
    def __init__(self, to: _Optional[int] = ..., sword: _Optional[_Union[Square, _Mapping]] = ..., arrow: _Optional[_Union[Arrow, _Mapping]] = ..., bell: _Optional[_Union[Square, _Mapping]] = ..., ham: _Optional[_Union[Square, _Mapping]] = ...) -> None: ...

class Arrow(_message.Message):
    __slots__ = ("direction",)
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    direction: Compass.Direction
    def __init__(self, direction: _Optional[_Union[Compass.Direction, str]] = ...) -> None: ...

class Prowl(_message.Message):
    __slots__ = ("direction", "attack")
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    ATTACK_FIELD_NUMBER: _ClassVar[int]
    direction: Ring.Direction
    attack: bool
    def __init__(self, direction: _Optional[_Union[Ring.Direction, str]] = ..., attack: _Optional[bool] = ...) -> None: ...

class Feint(_message.Message):
    __slots__ = ("steps",)
    STEPS_FIELD_NUMBER: _ClassVar[int]
    steps: int
    def __init__(self, steps: _Optional[int] = ...) -> None: ...

class Lured(_message.Message):
    __slots__ = ("direction",)
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    direction: Ring.Direction
    def __init__(self, direction: _Optional[_Union[Ring.Direction, str]] = ...) -> None: ...

class Tokens(_message.Message):
    __slots__ = ("arrows", "bell", "ham")
    ARROWS_FIELD_NUMBER: _ClassVar[int]
    BELL_FIELD_NUMBER: _ClassVar[int]
    HAM_FIELD_NUMBER: _ClassVar[int]
    arrows: int
    bell: bool
    ham: bool
    def __init__(self, arrows: _Optional[int] = ..., bell: _Optional[bool] = ..., ham: _Optional[bool] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("huntress", "monster", "side", "lit_squares", "bell", "tokens", "feint_left", "turns_left", "turns", "announcements", "ham")
    HUNTRESS_FIELD_NUMBER: _ClassVar[int]
    MONSTER_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    LIT_SQUARES_FIELD_NUMBER: _ClassVar[int]
    BELL_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    FEINT_LEFT_FIELD_NUMBER: _ClassVar[int]
    TURNS_LEFT_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    ANNOUNCEMENTS_FIELD_NUMBER: _ClassVar[int]
    HAM_FIELD_NUMBER: _ClassVar[int]
    huntress: int
    monster: int
    side: Compass.Direction
    lit_squares: _containers.RepeatedScalarFieldContainer[int]
    bell: int
    tokens: Tokens
    feint_left: bool
    turns_left: int
    turns: int
    announcements: _containers.RepeatedCompositeFieldContainer[Announcement]
    ham: int
    def __init__(self, huntress: _Optional[int] = ..., monster: _Optional[int] = ..., side: _Optional[_Union[Compass.Direction, str]] = ..., lit_squares: _Optional[_Iterable[int]] = ..., bell: _Optional[int] = ..., tokens: _Optional[_Union[Tokens, _Mapping]] = ..., feint_left: _Optional[bool] = ..., turns_left: _Optional[int] = ..., turns: _Optional[int] = ..., announcements: _Optional[_Iterable[_Union[Announcement, _Mapping]]] = ..., ham: _Optional[int] = ...) -> None: ...

class Announcement(_message.Message):
    __slots__ = ("turn", "side_announced", "monster_sighted", "bell_rang", "ham_distance", "monster_attacked", "bell_placed", "ham_placed", "arrow_shot", "sword_swung")
    TURN_FIELD_NUMBER: _ClassVar[int]
    SIDE_ANNOUNCED_FIELD_NUMBER: _ClassVar[int]
    MONSTER_SIGHTED_FIELD_NUMBER: _ClassVar[int]
    BELL_RANG_FIELD_NUMBER: _ClassVar[int]
    HAM_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    MONSTER_ATTACKED_FIELD_NUMBER: _ClassVar[int]
    BELL_PLACED_FIELD_NUMBER: _ClassVar[int]
    HAM_PLACED_FIELD_NUMBER: _ClassVar[int]
    ARROW_SHOT_FIELD_NUMBER: _ClassVar[int]
    SWORD_SWUNG_FIELD_NUMBER: _ClassVar[int]
    turn: int
    side_announced: SideAnnounced
    monster_sighted: MonsterSighted
    bell_rang: BellRang
    ham_distance: HamDistance
    monster_attacked: MonsterAttacked
    bell_placed: BellPlaced
    ham_placed: HamPlaced
    arrow_shot: ArrowShot
    sword_swung: SwordSwung
    def __init__(self, turn: _Optional[int] = ..., side_announced: _Optional[_Union[SideAnnounced, _Mapping]] = ..., monster_sighted: _Optional[_Union[MonsterSighted, _Mapping]] = ..., bell_rang: _Optional[_Union[BellRang, _Mapping]] = ..., ham_distance: _Optional[_Union[HamDistance, _Mapping]] = ..., monster_attacked: _Optional[_Union[MonsterAttacked, _Mapping]] = ..., bell_placed: _Optional[_Union[BellPlaced, _Mapping]] = ..., ham_placed: _Optional[_Union[HamPlaced, _Mapping]] = ..., arrow_shot: _Optional[_Union[ArrowShot, _Mapping]] = ..., sword_swung: _Optional[_Union[SwordSwung, _Mapping]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("night_fell", "monster_hid", "huntress_camped", "side_announced", "huntress_moved", "monster_moved", "monster_sighted", "bell_placed", "bell_rang", "ham_placed", "ham_distance", "arrow_shot", "square_lit", "seat_changed", "match_finished", "sword_swung", "monster_attacked", "feint_played", "dawn_near")
    NIGHT_FELL_FIELD_NUMBER: _ClassVar[int]
    MONSTER_HID_FIELD_NUMBER: _ClassVar[int]
    HUNTRESS_CAMPED_FIELD_NUMBER: _ClassVar[int]
    SIDE_ANNOUNCED_FIELD_NUMBER: _ClassVar[int]
    HUNTRESS_MOVED_FIELD_NUMBER: _ClassVar[int]
    MONSTER_MOVED_FIELD_NUMBER: _ClassVar[int]
    MONSTER_SIGHTED_FIELD_NUMBER: _ClassVar[int]
    BELL_PLACED_FIELD_NUMBER: _ClassVar[int]
    BELL_RANG_FIELD_NUMBER: _ClassVar[int]
    HAM_PLACED_FIELD_NUMBER: _ClassVar[int]
    HAM_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    ARROW_SHOT_FIELD_NUMBER: _ClassVar[int]
    SQUARE_LIT_FIELD_NUMBER: _ClassVar[int]
    SEAT_CHANGED_FIELD_NUMBER: _ClassVar[int]
    MATCH_FINISHED_FIELD_NUMBER: _ClassVar[int]
    SWORD_SWUNG_FIELD_NUMBER: _ClassVar[int]
    MONSTER_ATTACKED_FIELD_NUMBER: _ClassVar[int]
    FEINT_PLAYED_FIELD_NUMBER: _ClassVar[int]
    DAWN_NEAR_FIELD_NUMBER: _ClassVar[int]
    night_fell: NightFell
    monster_hid: MonsterHid
    huntress_camped: HuntressCamped
    side_announced: SideAnnounced
    huntress_moved: HuntressMoved
    monster_moved: MonsterMoved
    monster_sighted: MonsterSighted
    bell_placed: BellPlaced
    bell_rang: BellRang
    ham_placed: HamPlaced
    ham_distance: HamDistance
    arrow_shot: ArrowShot
    square_lit: SquareLit
    seat_changed: _table_pb2.SeatChanged
    match_finished: _table_pb2.MatchFinished
    sword_swung: SwordSwung
    monster_attacked: MonsterAttacked
    feint_played: FeintPlayed
    dawn_near: DawnNear
    def __init__(self, night_fell: _Optional[_Union[NightFell, _Mapping]] = ..., monster_hid: _Optional[_Union[MonsterHid, _Mapping]] = ..., huntress_camped: _Optional[_Union[HuntressCamped, _Mapping]] = ..., side_announced: _Optional[_Union[SideAnnounced, _Mapping]] = ..., huntress_moved: _Optional[_Union[HuntressMoved, _Mapping]] = ..., monster_moved: _Optional[_Union[MonsterMoved, _Mapping]] = ..., monster_sighted: _Optional[_Union[MonsterSighted, _Mapping]] = ..., bell_placed: _Optional[_Union[BellPlaced, _Mapping]] = ..., bell_rang: _Optional[_Union[BellRang, _Mapping]] = ..., ham_placed: _Optional[_Union[HamPlaced, _Mapping]] = ..., ham_distance: _Optional[_Union[HamDistance, _Mapping]] = ..., arrow_shot: _Optional[_Union[ArrowShot, _Mapping]] = ..., square_lit: _Optional[_Union[SquareLit, _Mapping]] = ..., seat_changed: _Optional[_Union[_table_pb2.SeatChanged, _Mapping]] = ..., match_finished: _Optional[_Union[_table_pb2.MatchFinished, _Mapping]] = ..., sword_swung: _Optional[_Union[SwordSwung, _Mapping]] = ..., monster_attacked: _Optional[_Union[MonsterAttacked, _Mapping]] = ..., feint_played: _Optional[_Union[FeintPlayed, _Mapping]] = ..., dawn_near: _Optional[_Union[DawnNear, _Mapping]] = ...) -> None: ...

class NightFell(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MonsterHid(_message.Message):
    __slots__ = ("square",)
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    square: int
    def __init__(self, square: _Optional[int] = ...) -> None: ...

class HuntressCamped(_message.Message):
    __slots__ = ("square",)
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    square: int
    def __init__(self, square: _Optional[int] = ...) -> None: ...

class SideAnnounced(_message.Message):
    __slots__ = ("side",)
    SIDE_FIELD_NUMBER: _ClassVar[int]
    side: Compass.Direction
    def __init__(self, side: _Optional[_Union[Compass.Direction, str]] = ...) -> None: ...

class HuntressMoved(_message.Message):
    __slots__ = ("to",)
    TO_FIELD_NUMBER: _ClassVar[int]
    to: int
    def __init__(self, to: _Optional[int] = ...) -> None: ...

class MonsterMoved(_message.Message):
    __slots__ = ("to",)
    TO_FIELD_NUMBER: _ClassVar[int]
    to: int
    def __init__(self, to: _Optional[int] = ...) -> None: ...

class MonsterSighted(_message.Message):
    __slots__ = ("square", "cause")
    class Cause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CAUSE_UNSPECIFIED: _ClassVar[MonsterSighted.Cause]
        FIRELIGHT: _ClassVar[MonsterSighted.Cause]
        FEINT: _ClassVar[MonsterSighted.Cause]
    CAUSE_UNSPECIFIED: MonsterSighted.Cause
    FIRELIGHT: MonsterSighted.Cause
    FEINT: MonsterSighted.Cause
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    square: int
    cause: MonsterSighted.Cause
    def __init__(self, square: _Optional[int] = ..., cause: _Optional[_Union[MonsterSighted.Cause, str]] = ...) -> None: ...

class BellPlaced(_message.Message):
    __slots__ = ("square",)
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    square: int
    def __init__(self, square: _Optional[int] = ...) -> None: ...

class BellRang(_message.Message):
    __slots__ = ("square",)
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    square: int
    def __init__(self, square: _Optional[int] = ...) -> None: ...

class HamPlaced(_message.Message):
    __slots__ = ("square",)
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    square: int
    def __init__(self, square: _Optional[int] = ...) -> None: ...

class HamDistance(_message.Message):
    __slots__ = ("square", "distance")
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_FIELD_NUMBER: _ClassVar[int]
    square: int
    distance: int
    def __init__(self, square: _Optional[int] = ..., distance: _Optional[int] = ...) -> None: ...

class ArrowShot(_message.Message):
    __slots__ = ("direction", "square", "burning", "hit")
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    BURNING_FIELD_NUMBER: _ClassVar[int]
    HIT_FIELD_NUMBER: _ClassVar[int]
    direction: Compass.Direction
    square: int
    burning: bool
    hit: bool
    def __init__(self, direction: _Optional[_Union[Compass.Direction, str]] = ..., square: _Optional[int] = ..., burning: _Optional[bool] = ..., hit: _Optional[bool] = ...) -> None: ...

class SquareLit(_message.Message):
    __slots__ = ("square",)
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    square: int
    def __init__(self, square: _Optional[int] = ...) -> None: ...

class SwordSwung(_message.Message):
    __slots__ = ("square", "hit")
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    HIT_FIELD_NUMBER: _ClassVar[int]
    square: int
    hit: bool
    def __init__(self, square: _Optional[int] = ..., hit: _Optional[bool] = ...) -> None: ...

class MonsterAttacked(_message.Message):
    __slots__ = ("square", "hit")
    SQUARE_FIELD_NUMBER: _ClassVar[int]
    HIT_FIELD_NUMBER: _ClassVar[int]
    square: int
    hit: bool
    def __init__(self, square: _Optional[int] = ..., hit: _Optional[bool] = ...) -> None: ...

class FeintPlayed(_message.Message):
    __slots__ = ("steps",)
    STEPS_FIELD_NUMBER: _ClassVar[int]
    steps: int
    def __init__(self, steps: _Optional[int] = ...) -> None: ...

class DawnNear(_message.Message):
    __slots__ = ("turns_left",)
    TURNS_LEFT_FIELD_NUMBER: _ClassVar[int]
    turns_left: int
    def __init__(self, turns_left: _Optional[int] = ...) -> None: ...

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
