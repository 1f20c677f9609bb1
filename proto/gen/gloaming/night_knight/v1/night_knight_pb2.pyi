import datetime

from gloaming.live.v1 import live_pb2 as _live_pb2
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
    __slots__ = ("squire", "action_ms", "own_card_delay_ms", "countdown_ms", "ordering", "max_compensation_ms")
    class Ordering(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ORDERING_UNSPECIFIED: _ClassVar[Options.Ordering]
        ARRIVAL: _ClassVar[Options.Ordering]
        COMPENSATED: _ClassVar[Options.Ordering]
    ORDERING_UNSPECIFIED: Options.Ordering
    ARRIVAL: Options.Ordering
    COMPENSATED: Options.Ordering
    SQUIRE_FIELD_NUMBER: _ClassVar[int]
    ACTION_MS_FIELD_NUMBER: _ClassVar[int]
    OWN_CARD_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    COUNTDOWN_MS_FIELD_NUMBER: _ClassVar[int]
    ORDERING_FIELD_NUMBER: _ClassVar[int]
    MAX_COMPENSATION_MS_FIELD_NUMBER: _ClassVar[int]
    squire: bool
    action_ms: int
    own_card_delay_ms: int
    countdown_ms: int
    ordering: Options.Ordering
    max_compensation_ms: int
    def __init__(self, squire: _Optional[bool] = ..., action_ms: _Optional[int] = ..., own_card_delay_ms: _Optional[int] = ..., countdown_ms: _Optional[int] = ..., ordering: _Optional[_Union[Options.Ordering, str]] = ..., max_compensation_ms: _Optional[int] = ...) -> None: ...

class Card(_message.Message):
    __slots__ = ("seat", "card")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Card.Kind]
        SLEEPING_DRAGON: _ClassVar[Card.Kind]
        KING_OF_SILENCE: _ClassVar[Card.Kind]
        ATTACKING_KNIGHT: _ClassVar[Card.Kind]
        DEFENDING_KNIGHT: _ClassVar[Card.Kind]
    KIND_UNSPECIFIED: Card.Kind
    SLEEPING_DRAGON: Card.Kind
    KING_OF_SILENCE: Card.Kind
    ATTACKING_KNIGHT: Card.Kind
    DEFENDING_KNIGHT: Card.Kind
    SEAT_FIELD_NUMBER: _ClassVar[int]
    CARD_FIELD_NUMBER: _ClassVar[int]
    seat: int
    card: Card.Kind
    def __init__(self, seat: _Optional[int] = ..., card: _Optional[_Union[Card.Kind, str]] = ...) -> None: ...

class Move(_message.Message):
    __slots__ = ("react", "peek")
    REACT_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    react: React
    peek: Peek
    def __init__(self, react: _Optional[_Union[React, _Mapping]] = ..., peek: _Optional[_Union[Peek, _Mapping]] = ...) -> None: ...

class React(_message.Message):
    __slots__ = ("round", "action", "target")
    class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ACTION_UNSPECIFIED: _ClassVar[React.Action]
        THROW: _ClassVar[React.Action]
        SHIELD: _ClassVar[React.Action]
        SLEEP: _ClassVar[React.Action]
        TOUCH: _ClassVar[React.Action]
        PASS: _ClassVar[React.Action]
    ACTION_UNSPECIFIED: React.Action
    THROW: React.Action
    SHIELD: React.Action
    SLEEP: React.Action
    TOUCH: React.Action
    PASS: React.Action
    ROUND_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    round: int
    action: React.Action
    target: int
    def __init__(self, round: _Optional[int] = ..., action: _Optional[_Union[React.Action, str]] = ..., target: _Optional[int] = ...) -> None: ...

class Peek(_message.Message):
    __slots__ = ("round",)
    ROUND_FIELD_NUMBER: _ClassVar[int]
    round: int
    def __init__(self, round: _Optional[int] = ...) -> None: ...

class Reaction(_message.Message):
    __slots__ = ("seat", "action", "target", "verdict", "rank", "evidence")
    class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VERDICT_UNSPECIFIED: _ClassVar[Reaction.Verdict]
        GRANTED: _ClassVar[Reaction.Verdict]
        TOO_LATE: _ClassVar[Reaction.Verdict]
        TOUCHED: _ClassVar[Reaction.Verdict]
        PASSED: _ClassVar[Reaction.Verdict]
    VERDICT_UNSPECIFIED: Reaction.Verdict
    GRANTED: Reaction.Verdict
    TOO_LATE: Reaction.Verdict
    TOUCHED: Reaction.Verdict
    PASSED: Reaction.Verdict
    SEAT_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    seat: int
    action: React.Action
    target: int
    verdict: Reaction.Verdict
    rank: int
    evidence: Evidence
    def __init__(self, seat: _Optional[int] = ..., action: _Optional[_Union[React.Action, str]] = ..., target: _Optional[int] = ..., verdict: _Optional[_Union[Reaction.Verdict, str]] = ..., rank: _Optional[int] = ..., evidence: _Optional[_Union[Evidence, _Mapping]] = ...) -> None: ...

class Evidence(_message.Message):
    __slots__ = ("received_ms", "round_trip_ms", "compensation_ms", "cap_ms", "rule")
    RECEIVED_MS_FIELD_NUMBER: _ClassVar[int]
    ROUND_TRIP_MS_FIELD_NUMBER: _ClassVar[int]
    COMPENSATION_MS_FIELD_NUMBER: _ClassVar[int]
    CAP_MS_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    received_ms: int
    round_trip_ms: int
    compensation_ms: int
    cap_ms: int
    rule: str
    def __init__(self, received_ms: _Optional[int] = ..., round_trip_ms: _Optional[int] = ..., compensation_ms: _Optional[int] = ..., cap_ms: _Optional[int] = ..., rule: _Optional[str] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("seat", "card", "right", "rule")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    CARD_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    seat: int
    card: Card.Kind
    right: bool
    rule: str
    def __init__(self, seat: _Optional[int] = ..., card: _Optional[_Union[Card.Kind, str]] = ..., right: _Optional[bool] = ..., rule: _Optional[str] = ...) -> None: ...

class Round(_message.Message):
    __slots__ = ("round", "cards", "reactions", "results")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    REACTIONS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    round: int
    cards: _containers.RepeatedCompositeFieldContainer[Card]
    reactions: _containers.RepeatedCompositeFieldContainer[Reaction]
    results: _containers.RepeatedCompositeFieldContainer[Result]
    def __init__(self, round: _Optional[int] = ..., cards: _Optional[_Iterable[_Union[Card, _Mapping]]] = ..., reactions: _Optional[_Iterable[_Union[Reaction, _Mapping]]] = ..., results: _Optional[_Iterable[_Union[Result, _Mapping]]] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("round", "phase", "pillows_left", "cards", "reactions", "pile_sizes", "out", "last_round", "phase_end_time")
    class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PHASE_UNSPECIFIED: _ClassVar[View.Phase]
        COUNTDOWN: _ClassVar[View.Phase]
        ACTION: _ClassVar[View.Phase]
        RESOLUTION: _ClassVar[View.Phase]
        FINISHED: _ClassVar[View.Phase]
    PHASE_UNSPECIFIED: View.Phase
    COUNTDOWN: View.Phase
    ACTION: View.Phase
    RESOLUTION: View.Phase
    FINISHED: View.Phase
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    PILLOWS_LEFT_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    REACTIONS_FIELD_NUMBER: _ClassVar[int]
    PILE_SIZES_FIELD_NUMBER: _ClassVar[int]
    OUT_FIELD_NUMBER: _ClassVar[int]
    LAST_ROUND_FIELD_NUMBER: _ClassVar[int]
    PHASE_END_TIME_FIELD_NUMBER: _ClassVar[int]
    round: int
    phase: View.Phase
    pillows_left: int
    cards: _containers.RepeatedCompositeFieldContainer[Card]
    reactions: _containers.RepeatedCompositeFieldContainer[Reaction]
    pile_sizes: _containers.RepeatedScalarFieldContainer[int]
    out: _containers.RepeatedScalarFieldContainer[int]
    last_round: Round
    phase_end_time: _timestamp_pb2.Timestamp
    def __init__(self, round: _Optional[int] = ..., phase: _Optional[_Union[View.Phase, str]] = ..., pillows_left: _Optional[int] = ..., cards: _Optional[_Iterable[_Union[Card, _Mapping]]] = ..., reactions: _Optional[_Iterable[_Union[Reaction, _Mapping]]] = ..., pile_sizes: _Optional[_Iterable[int]] = ..., out: _Optional[_Iterable[int]] = ..., last_round: _Optional[_Union[Round, _Mapping]] = ..., phase_end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("round_started", "peeked", "cards_revealed", "own_card_shown", "reacted", "round_resolved", "seat_changed", "match_finished")
    ROUND_STARTED_FIELD_NUMBER: _ClassVar[int]
    PEEKED_FIELD_NUMBER: _ClassVar[int]
    CARDS_REVEALED_FIELD_NUMBER: _ClassVar[int]
    OWN_CARD_SHOWN_FIELD_NUMBER: _ClassVar[int]
    REACTED_FIELD_NUMBER: _ClassVar[int]
    ROUND_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    SEAT_CHANGED_FIELD_NUMBER: _ClassVar[int]
    MATCH_FINISHED_FIELD_NUMBER: _ClassVar[int]
    round_started: RoundStarted
    peeked: Peeked
    cards_revealed: CardsRevealed
    own_card_shown: OwnCardShown
    reacted: Reaction
    round_resolved: RoundResolved
    seat_changed: _table_pb2.SeatChanged
    match_finished: _table_pb2.MatchFinished
    def __init__(self, round_started: _Optional[_Union[RoundStarted, _Mapping]] = ..., peeked: _Optional[_Union[Peeked, _Mapping]] = ..., cards_revealed: _Optional[_Union[CardsRevealed, _Mapping]] = ..., own_card_shown: _Optional[_Union[OwnCardShown, _Mapping]] = ..., reacted: _Optional[_Union[Reaction, _Mapping]] = ..., round_resolved: _Optional[_Union[RoundResolved, _Mapping]] = ..., seat_changed: _Optional[_Union[_table_pb2.SeatChanged, _Mapping]] = ..., match_finished: _Optional[_Union[_table_pb2.MatchFinished, _Mapping]] = ...) -> None: ...

class RoundStarted(_message.Message):
    __slots__ = ("round", "pile_sizes")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PILE_SIZES_FIELD_NUMBER: _ClassVar[int]
    round: int
    pile_sizes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, round: _Optional[int] = ..., pile_sizes: _Optional[_Iterable[int]] = ...) -> None: ...

class Peeked(_message.Message):
    __slots__ = ("seat",)
    SEAT_FIELD_NUMBER: _ClassVar[int]
    seat: int
    def __init__(self, seat: _Optional[int] = ...) -> None: ...

class CardsRevealed(_message.Message):
    __slots__ = ("round", "cards")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    round: int
    cards: _containers.RepeatedCompositeFieldContainer[Card]
    def __init__(self, round: _Optional[int] = ..., cards: _Optional[_Iterable[_Union[Card, _Mapping]]] = ...) -> None: ...

class OwnCardShown(_message.Message):
    __slots__ = ("round", "cards")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    round: int
    cards: _containers.RepeatedCompositeFieldContainer[Card]
    def __init__(self, round: _Optional[int] = ..., cards: _Optional[_Iterable[_Union[Card, _Mapping]]] = ...) -> None: ...

class RoundResolved(_message.Message):
    __slots__ = ("round", "results")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    round: int
    results: _containers.RepeatedCompositeFieldContainer[Result]
    def __init__(self, round: _Optional[int] = ..., results: _Optional[_Iterable[_Union[Result, _Mapping]]] = ...) -> None: ...

class WindowEnded(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

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
    __slots__ = ("played", "move", "resignation", "window_ended", "reaction")
    PLAYED_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    RESIGNATION_FIELD_NUMBER: _ClassVar[int]
    WINDOW_ENDED_FIELD_NUMBER: _ClassVar[int]
    REACTION_FIELD_NUMBER: _ClassVar[int]
    played: _table_pb2.Played
    move: Move
    resignation: Resignation
    window_ended: WindowEnded
    reaction: Reaction
    def __init__(self, played: _Optional[_Union[_table_pb2.Played, _Mapping]] = ..., move: _Optional[_Union[Move, _Mapping]] = ..., resignation: _Optional[_Union[Resignation, _Mapping]] = ..., window_ended: _Optional[_Union[WindowEnded, _Mapping]] = ..., reaction: _Optional[_Union[Reaction, _Mapping]] = ...) -> None: ...

class PlayRequest(_message.Message):
    __slots__ = ("request_id", "watch", "unwatch", "move", "authenticate", "ping", "pong")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WATCH_FIELD_NUMBER: _ClassVar[int]
    UNWATCH_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    AUTHENTICATE_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    watch: _live_pb2.Watch
    unwatch: _live_pb2.Unwatch
    move: PlayMove
    authenticate: _live_pb2.Authenticate
    ping: _live_pb2.Ping
    pong: _live_pb2.Pong
    def __init__(self, request_id: _Optional[str] = ..., watch: _Optional[_Union[_live_pb2.Watch, _Mapping]] = ..., unwatch: _Optional[_Union[_live_pb2.Unwatch, _Mapping]] = ..., move: _Optional[_Union[PlayMove, _Mapping]] = ..., authenticate: _Optional[_Union[_live_pb2.Authenticate, _Mapping]] = ..., ping: _Optional[_Union[_live_pb2.Ping, _Mapping]] = ..., pong: _Optional[_Union[_live_pb2.Pong, _Mapping]] = ...) -> None: ...

class PlayMove(_message.Message):
    __slots__ = ("match_id", "move", "expected_version")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    move: Move
    expected_version: int
    def __init__(self, match_id: _Optional[str] = ..., move: _Optional[_Union[Move, _Mapping]] = ..., expected_version: _Optional[int] = ...) -> None: ...

class PlayResponse(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[PlayMessage]
    def __init__(self, messages: _Optional[_Iterable[_Union[PlayMessage, _Mapping]]] = ...) -> None: ...

class PlayMessage(_message.Message):
    __slots__ = ("result", "problem", "snapshot", "event", "ping", "pong")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    result: _live_pb2.Result
    problem: _live_pb2.Problem
    snapshot: PlaySnapshot
    event: MatchEvent
    ping: _live_pb2.Ping
    pong: _live_pb2.Pong
    def __init__(self, result: _Optional[_Union[_live_pb2.Result, _Mapping]] = ..., problem: _Optional[_Union[_live_pb2.Problem, _Mapping]] = ..., snapshot: _Optional[_Union[PlaySnapshot, _Mapping]] = ..., event: _Optional[_Union[MatchEvent, _Mapping]] = ..., ping: _Optional[_Union[_live_pb2.Ping, _Mapping]] = ..., pong: _Optional[_Union[_live_pb2.Pong, _Mapping]] = ...) -> None: ...

class PlaySnapshot(_message.Message):
    __slots__ = ("match_id", "match")
    MATCH_ID_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    match_id: str
    match: Match
    def __init__(self, match_id: _Optional[str] = ..., match: _Optional[_Union[Match, _Mapping]] = ...) -> None: ...

class Resignation(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
