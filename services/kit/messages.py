"""What clients are told, built for one viewer at a time: from the rules' `view`, and from events that the rules' `redact` made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from gloaming.relay.v1 import relay_pb2
from gloaming.table.v1 import table_pb2
from services.kit.chance import commitment
from services.kit.cursor import Cursor
from services.kit.game import Game, Value, outcome_message
from services.kit.sessions import Entry, Listed, Outcome, Placed, Seat, Session


class Messages:
    """The messages of one game."""

    def __init__(self, game: Game) -> None:
        self._game = game
        # How an event that a seat changed hands begins, as protobuf writes it: looked at before any is read.
        self._seat_changed_tag = self.make("Event", seat_changed=table_pb2.SeatChanged()).SerializeToString()[:1]

    def make(self, name: str, **fields: Any) -> Message:
        """A message of the game by its name."""
        message: Message = self._game.message(name)(**fields)
        return message

    def match(self, session: Session, viewer: int | None, credit: int) -> Message:
        """A match as a viewer may see it; `credit` is all that clocks have been credited with by now, ms."""
        table = session.table
        connected = frozenset() if table.outcome else session.present
        to_move = () if table.outcome else self._game.rules.to_move(session.state)
        credited = max(0, credit - table.credit)
        clocks = [seat.due + credited for seat in table.seats if seat.due is not None and not seat.automatic]
        view: Any = self._game.codec.view_to_proto(self._game.rules.view(session.state, viewer))
        if table.window:
            view.phase_end_time.CopyFrom(_timestamp(table.window.due + credited))
        return self.make(
            "Match",
            id=session.match_id,
            game=self._game.id,
            status=table_pb2.FINISHED if table.outcome else table_pb2.PLAYING,
            version=session.version,
            cursor=str(session.cursor),
            seats=[_seat(n, seat, connected=n in connected, credited=credited) for n, seat in enumerate(table.seats)],
            viewer_seat=viewer,
            to_move=to_move,
            deadline=_timestamp(min(clocks)) if clocks else None,
            server_time=_timestamp(session.now),
            commitment=commitment(session.meta.seed),
            options=self._options(session),
            settings=settings_of(session),
            view=view,
            outcome=_outcome(table.outcome) if table.outcome else None,
        )

    def event(self, match_id: str, placed: Placed, viewer: int | None) -> Message:
        """An event at its place, as a viewer may know it."""
        return self.make(
            "MatchEvent",
            match_id=match_id,
            cursor=str(placed.cursor),
            version=placed.cursor.version,
            time=_timestamp(placed.time),
            event=self._game.message("Event").FromString(placed.entry.seen_by(viewer)),
        )

    def accepted(self, name: str, match_id: str, place: Cursor, placed: Sequence[Placed], seat: int) -> Message:
        """What a seat gets for what it did: the place that the match came to with it, and what came of it."""
        events = [self.event(match_id, there, seat) for there in placed]
        return self.make(name, match_id=match_id, version=place.version, cursor=str(place), events=events)

    def record(self, session: Session, outcome: Outcome, placed: Sequence[Placed]) -> Message:
        """The record of a finished match from all of its events, seed included (ALL-03)."""
        view = self._game.codec.view_to_proto(self._game.rules.view(session.state, None))
        return self.make(
            "Record",
            match_id=session.match_id,
            game=self._game.id,
            seed=session.meta.seed.hex(),
            commitment=commitment(session.meta.seed),
            options=self._options(session),
            settings=settings_of(session),
            order=session.meta.order,
            listed=[_seat_request(listed) for listed in session.meta.listed],
            seats=[_seat(n, seat) for n, seat in enumerate(session.table.seats)],
            create_time=_timestamp(placed[0].time),
            moves=[self._recorded(there) for there in placed if there.entry.act],
            outcome=_outcome(outcome),
            scores=getattr(view, "scores", ()),
        )

    def result(self, session: Session, outcome: Outcome, last: Placed) -> relay_pb2.Result:
        """How a match ended, with its last event."""
        return relay_pb2.Result(
            match_id=session.match_id,
            seats=[_seat(n, seat) for n, seat in enumerate(session.table.seats)],
            outcome=_outcome(outcome),
            finish_time=_timestamp(last.time),
        )

    def turn(self, session: Session, to_move: Sequence[int], last: Placed, credit: int) -> relay_pb2.Turn:
        """Whose turn it is, or how the match ended, with its last event; `credit` as in `match`."""
        table = session.table
        credited = max(0, credit - table.credit)
        return relay_pb2.Turn(
            match_id=session.match_id,
            version=session.version,
            seats=[_seat(n, seat, connected=n in session.present, credited=credited) for n, seat in enumerate(table.seats)],
            to_move=to_move,
            outcome=_outcome(table.outcome) if table.outcome else None,
            time=_timestamp(last.time),
        )

    def entries(self, events: Iterable[Value], seats: int) -> list[Entry]:
        """The game's events for the stream, as each viewer may know them."""
        return [self._entry(event, seats) for event in events]

    def seat_changed(self, seat: int, after: Seat, *, connected: bool, credited: int = 0) -> Entry:
        """A seat changed hands, or its player came or went; `credited` is what its clock does not include yet, ms."""
        return self._platform_entry(seat_changed=table_pb2.SeatChanged(seat=_seat(seat, after, connected=connected, credited=credited)))

    def seat_given_up(self, placed: Placed, seat: int) -> bool:
        """Whether with this entry the seat's player resigned, and from now on only watches."""
        if not placed.entry.public.startswith(self._seat_changed_tag):
            return False
        changed = self._game.message("Event").FromString(placed.entry.public).seat_changed.seat
        return changed.seat == seat and bool(changed.resigned)

    def match_finished(self, outcome: Outcome) -> Entry:
        """The match ended."""
        return self._platform_entry(final=True, match_finished=table_pb2.MatchFinished(outcome=_outcome(outcome)))

    def _entry(self, event: Value, seats: int) -> Entry:
        def encoded(seen: Value) -> bytes:
            return self._game.codec.event_to_proto(seen).SerializeToString(deterministic=True)

        # Most events are the same to everybody, and only what is not is encoded again.
        public = self._game.rules.redact(event, None)
        known = encoded(public)
        seen = ((seat, self._game.rules.redact(event, seat)) for seat in range(seats))
        return Entry(known, {seat: more for seat, own in seen if own != public and (more := encoded(own)) != known})

    def _platform_entry(self, *, final: bool = False, **kind: Message) -> Entry:
        return Entry(self.make("Event", **kind).SerializeToString(deterministic=True), final=final)

    def _recorded(self, placed: Placed) -> Message:
        recorded: Any = self._game.message("RecordedMove").FromString(placed.entry.act)
        recorded.played.time.CopyFrom(_timestamp(placed.time))
        done: Message = recorded
        return done

    def _options(self, session: Session) -> Message:
        options: Message = self._game.message("Options").FromString(session.meta.options)
        return options


def settings_of(session: Session) -> table_pb2.Settings:
    """The platform's settings of a match."""
    return table_pb2.Settings.FromString(session.meta.settings)


def _timestamp(ms: int) -> Timestamp:
    return Timestamp(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)


def _outcome(outcome: Outcome) -> table_pb2.Outcome:
    return outcome_message(outcome.ending, outcome.ranks)


def _seat(n: int, seat: Seat, *, connected: bool = False, credited: int = 0) -> table_pb2.Seat:
    return table_pb2.Seat(
        seat=n,
        player=seat.player,
        name=seat.name,
        bot=table_pb2.Bot.Kind.Name(seat.bot),
        resigned=seat.resigned,
        stand_in=seat.stand_in,
        connected=connected,
        deadline=None if seat.due is None or seat.automatic else _timestamp(seat.due + credited),
    )


def _seat_request(listed: Listed) -> table_pb2.SeatRequest:
    if listed.bot:
        return table_pb2.SeatRequest(bot=table_pb2.Bot.Kind.Name(listed.bot), name=listed.name)
    return table_pb2.SeatRequest(player=listed.player, name=listed.name)
