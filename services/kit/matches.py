"""The life of a match, the same for every game: made, played, watched, ended, recorded.

Every change is judged on a loaded session and committed by version; a commit that lost the race is judged again on the newest state.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from google.protobuf.message import Message

from gloaming.table.v1 import table_pb2
from services.kit import cursor, metrics, requests, sessions
from services.kit.bell import Bells
from services.kit.chance import Chance, new_seed
from services.kit.cursor import Cursor
from services.kit.deadlines import Deadlines, Moment
from services.kit.errors import Forbidden, Raced, Refused, Unreadable
from services.kit.game import Game, Reactions, Refusal, Value, ranks_with_resigned, seating
from services.kit.identity import Caller, Identity
from services.kit.messages import Messages, settings_of
from services.kit.sessions import Answer, Bell, Entry, Meta, Outcome, Placed, Seat, Session, Sessions, Table, Window, answer_for
from services.kit.settings import ServiceSettings
from services.kit.storage import Storage

# A move without an expected version is judged again so often when others keep moving first.
_JUDGED_AT_MOST = 8
# ALL-02: after so many clocks in a row the bot keeps the seat.
_TIMEOUTS_TO_STAND_IN = 3
# So many entries are read at once for a watcher.
_READ_AT_ONCE = 100
# A watcher further behind than this, in versions, gets a snapshot instead of everything it missed.
_REPLAYED_AT_MOST = 500
# A watcher that hears nothing for so long looks at the stream, and at its own token.
_HEARTBEAT_SECONDS = 15.0
# A watcher who may see what others may not is sent nothing on a look at the token that is older than this.
_TRUSTED_SECONDS = 1.0
_DAY = 86_400

By = table_pb2.Played.By
# Among the deadlines of seats, the one of the window.
_NO_SEAT = -1


class Matches:
    """Every match of one game."""

    def __init__(self, game: Game, storage: Storage, identity: Identity, settings: ServiceSettings) -> None:
        self._game = game
        self._identity = identity
        self._settings = settings
        self._sessions = Sessions(game, storage)
        self._deadlines = Deadlines(game.id, storage, settings)
        self._bells = Bells(storage)
        self._messages = Messages(game)
        self._rng = random.SystemRandom()

    async def run(self, stopping: asyncio.Event) -> None:
        """Hears bells and sweeps deadlines until `stopping` is set."""
        async with asyncio.TaskGroup() as tasks:
            hearing = tasks.create_task(self._bells.run())
            await self._deadlines.sweep(self.wake, stopping)
            hearing.cancel()

    def drain(self) -> None:
        """Tells every watcher that this replica is about to stop."""
        self._bells.drain()

    # Verbs, in the order of the service.

    async def create(self, request: Any, caller: Caller) -> Message:
        """Makes a match unless it is there already, and returns it as spectators see it."""
        caller.require("host")
        if not self._sessions.is_match_id(request.match_id):
            raise Unreadable("matchId", f"must be {self._game.id}- and 8 to 40 lower-case letters or digits")
        options = requests.value(self._game.codec.options_from_proto, request.options, "options")
        settings = requests.settings(request.settings)
        listed = requests.listed(self._game.info, request.seats)
        order = requests.order(request.order)

        seed = new_seed()
        chance = Chance(seed)
        step = self._game.rules.setup(options, len(listed), chance)
        seats = tuple(Seat(listed[i].player, listed[i].name, listed[i].bot) for i in seating(order, len(listed), chance))
        table, latest = await self._timed(request.match_id, Table(seats), step.state, settings, acted=None)
        meta = Meta(
            kit_schema=sessions.SCHEMA,
            game_schema=self._game.schema,
            seed=seed,
            order=order,
            options=self._game.codec.options_to_proto(options).SerializeToString(),
            settings=settings.SerializeToString(),
            listed=listed,
        )
        placed = await self._sessions.commit(
            request.match_id,
            judged=0,
            meta=meta,
            table=table,
            state=step.state,
            entries=self._messages.entries(step.events, len(seats)),
            keep_seconds=self._settings.live_ttl_days * _DAY,
            latest=latest,
        )
        if placed:
            metrics.MATCHES.labels("created").inc()
        return self._match(await self._load(request.match_id), None)

    async def get(self, match_id: str, caller: Caller) -> Message:
        """Returns the match as the caller may see it."""
        session = await self._load(match_id)
        return self._match(session, _viewer(session, caller))

    async def moves(self, match_id: str, caller: Caller) -> Message:
        """Lists the caller's legal moves."""
        session = await self._load(match_id)
        seat = _seat(session, caller)
        legal = () if session.table.seats[seat].resigned else self._game.rules.legal(session.state, seat)
        moves = [self._game.codec.move_to_proto(move) for move in legal]
        return self._messages.make("ListMovesResponse", match_id=match_id, version=session.version, moves=moves)

    async def submit(self, request: Any, caller: Caller) -> Message:
        """Plays a move of the caller."""
        move = requests.value(self._game.codec.move_from_proto, request.move, "move")
        request_id = requests.request_id(request.request_id)
        body = request.move.SerializeToString(deterministic=True)
        expected = request.expected_version if request.HasField("expected_version") else None

        async def judge(session: Session, seat: int, answer: Answer | None) -> Sequence[Placed] | None:
            if expected is not None and expected != session.version:
                raise Raced("VERSION_MISMATCH", f"the match is at version {session.version}")
            return await self._play(session, seat, move, By.PLAYER, answer)

        placed, seat = await self._once("SubmitMove", request.match_id, caller, request_id, body, judge)
        return self._messages.accepted("SubmitMoveResponse", request.match_id, placed, seat)

    async def resign(self, request: Any, caller: Caller) -> Message:
        """Resigns the caller's seat (ALL-01)."""
        request_id = requests.request_id(request.request_id)
        placed, seat = await self._once("Resign", request.match_id, caller, request_id, b"", self._resign)
        return self._messages.accepted("ResignResponse", request.match_id, placed, seat)

    async def events(self, request: Any, caller: Caller) -> Message:
        """Lists a page of events."""
        size = requests.page_size(request.page_size)
        after = Cursor.parse(request.after_cursor) if request.after_cursor else cursor.BEGINNING
        session = await self._load(request.match_id)
        viewer = _viewer(session, caller)
        if not await self._sessions.fits(request.match_id, after):
            snapshot = self._match(session, viewer)
            return self._messages.make("ListEventsResponse", snapshot=snapshot, next_cursor=str(session.cursor))
        found = await self._sessions.entries(request.match_id, after, size + 1)
        page = found[:size]
        return self._messages.make(
            "ListEventsResponse",
            events=[self._messages.event(request.match_id, placed, viewer) for placed in page],
            next_cursor=str(page[-1].cursor if page else after),
            more=len(found) > size,
        )

    async def watch(self, request: Any, caller: Caller) -> AsyncGenerator[Message, None]:
        """Streams the match: from a cursor that fits, every event after it; else a snapshot and every event after that."""
        match_id = request.match_id
        after = Cursor.parse(request.after_cursor) if request.after_cursor else None
        viewer = _viewer(await self._load(match_id), caller)
        async with self._bells.listen(self._sessions.bell(match_id)) as listener:
            bell: Bell | None = None
            certain = False
            checked = time.monotonic()
            while True:
                if time.monotonic() - checked > (_HEARTBEAT_SECONDS if viewer is None else _TRUSTED_SECONDS):
                    await self._identity.recheck(caller)
                    checked = time.monotonic()
                if not certain:
                    # At first, and whenever bells may have been lost: with a failover of the storage, so may events that were sent already.
                    session = await self._load(match_id)
                    viewer = _viewer(session, caller)
                    behind = session.version - after.version if after else 0
                    if after is None or behind > _REPLAYED_AT_MOST or not await self._sessions.fits(match_id, after):
                        yield self._messages.make("WatchMatchResponse", snapshot=self._match(session, viewer))
                        after = session.cursor
                assert after is not None
                follows_on = bell is not None and bell.follows == after.entry
                found = bell.placed if bell and follows_on else await self._sessions.entries(match_id, after, _READ_AT_ONCE)
                for placed in found:
                    event = self._messages.event(match_id, placed, viewer)
                    yield self._messages.make("WatchMatchResponse", event=event)
                    after = placed.cursor
                    if viewer is not None and _resigns(event, viewer):
                        viewer = None
                if found[-1].entry.final if found else session.table.outcome:
                    return
                more = not follows_on and len(found) == _READ_AT_ONCE
                bell = None if more else await listener.next(_HEARTBEAT_SECONDS)
                certain = more or bell is not None

    async def record(self, match_id: str, caller: Caller) -> Message:
        """Returns the record of a finished match, its seed included (ALL-03)."""
        session = await self._load(match_id)
        _viewer(session, caller)
        if not session.table.outcome:
            raise Refused("MATCH_NOT_FINISHED", "a match has a record once it is finished")
        placed = await self._sessions.entries(match_id, cursor.BEGINNING)
        return self._messages.record(session, session.table.outcome, placed)

    async def wake(self, match_id: str, moment: Moment) -> int | None:
        """Acts on every deadline of a match that has passed (ALL-02), and returns when the next one is due, ms, or None."""
        while True:
            session = await self._load(match_id)
            credit = moment.credit - session.table.credit
            # In real time a seat may have reacted since the commit that set when it is due.
            to_move = self._game.rules.to_move(session.state)
            dues = {n: seat.due + credit for n, seat in enumerate(session.table.seats) if seat.due is not None and n in to_move}
            if session.table.window:
                dues[_NO_SEAT] = session.table.window.due + credit
            if session.table.outcome or not dues:
                return None
            seat = min(dues, key=dues.__getitem__)
            # Clocks have run until that moment: what came after may yet turn out to be an outage.
            if dues[seat] > moment.now:
                return dues[seat]
            if seat == _NO_SEAT:
                await self._end_window(session)
                continue
            by = By.BOT if session.table.seats[seat].automatic else By.CLOCK
            view, moves = self._game.rules.view(session.state, seat), self._game.rules.legal(session.state, seat)
            if await self._play(session, seat, self._game.bot.choose(view, seat, moves, self._rng), by) and by == By.CLOCK:
                metrics.DEADLINE_LATENESS.observe((session.now - dues[seat]) / 1000)

    # How a change is made.

    async def _once(
        self,
        verb: str,
        match_id: str,
        caller: Caller,
        request_id: str,
        body: bytes,
        judge: Callable[[Session, int, Answer | None], Any],
    ) -> tuple[Sequence[Placed], int]:
        """Makes a change once, however often it is asked for under one request id; returns its entries and seat."""
        answer = answer_for(verb, caller.player, request_id, body)
        for _ in range(_JUDGED_AT_MOST):
            session = await self._load(match_id, answer)
            seat = _seat(session, caller)
            if answer and session.answer:
                if session.answer.fingerprint != answer.fingerprint:
                    raise Refused("REQUEST_ID_REUSED", "this request id came with another body before")
                return await self._sessions.made_by(match_id, session.answer), seat
            if placed := await judge(session, seat, answer):
                return placed, seat
            metrics.RACES.inc()
        raise Raced("RACED", "others kept moving first; try again")

    async def _play(
        self, session: Session, seat: int, move: Value, by: table_pb2.Played.By, answer: Answer | None = None
    ) -> Sequence[Placed] | None:
        """Judges a move on a session and commits it; None if another commit came first."""
        if session.table.seats[seat].resigned and by == By.PLAYER:
            raise Refused("ALREADY_RESIGNED", "the seat has resigned")
        step = self._game.rules.apply(session.state, seat, move, Chance(session.meta.seed))
        if isinstance(step, Refusal):
            raise Refused(str(step.reason), step.detail)
        act = self._messages.make(
            "RecordedMove", played=table_pb2.Played(seat=seat, by=by), move=self._game.codec.move_to_proto(move)
        ).SerializeToString()
        if self._game.real_time and self._game.real_time.reactions.is_reaction(move):
            return await self._react(session, self._game.real_time.reactions, seat, move, act, by, answer)
        before = session.table.seats[seat]
        timeouts = before.timeouts + 1 if by == By.CLOCK else before.timeouts if by == By.BOT else 0
        after = msgspec.structs.replace(before, timeouts=timeouts, stand_in=by != By.PLAYER and timeouts >= _TIMEOUTS_TO_STAND_IN)
        placed = await self._commit(
            session,
            seat,
            after,
            step.state,
            self._messages.entries(step.events, len(session.table.seats)),
            act,
            self._ranks(step.state),
            answer,
        )
        if placed:
            metrics.MOVES.labels(By.Name(by).lower()).inc()
        return placed

    async def _resign(self, session: Session, seat: int, answer: Answer | None) -> Sequence[Placed] | None:
        """ALL-01: in a match of two the other wins; in a larger one a bot takes the seat."""
        if session.table.outcome:
            raise Refused("MATCH_FINISHED", "the match is finished")
        before = session.table.seats[seat]
        if before.resigned:
            raise Refused("ALREADY_RESIGNED", "the seat has resigned")
        of_two = len(session.table.seats) == 2
        act = self._messages.make(
            "RecordedMove", played=table_pb2.Played(seat=seat, by=By.PLAYER), resignation=self._messages.make("Resignation")
        ).SerializeToString()
        return await self._commit(
            session,
            seat,
            msgspec.structs.replace(before, resigned=True, stand_in=False, timeouts=0),
            self._game.rules.end_early(session.state) if of_two else session.state,
            [],
            act,
            (table_pb2.Outcome.RESIGNED, (1, 1)) if of_two else None,
            answer,
        )

    # Real time.

    async def _load(self, match_id: str, answer: Answer | None = None) -> Session:
        """Reads a match, its reactions taken in; where they have closed the round, that is committed first."""
        while True:
            session = await self._sessions.load(match_id, answer)
            if not self._game.real_time or session.table.outcome:
                return session
            session, events = self._taken_in(session, self._game.real_time.reactions)
            if not events:
                return session
            entries = self._messages.entries(events, len(session.table.seats))
            await self._commit(session, None, None, session.state, entries, b"", self._ranks(session.state), None)

    def _taken_in(self, session: Session, reactions: Reactions) -> tuple[Session, list[Value]]:
        """A session whose state holds every reaction that was ordered since its commit, and what they led to beside themselves."""
        state, events = session.state, []
        if session.round.number == reactions.number(state):
            for recorded in session.round.reactions[reactions.known(state) :]:
                done = self._game.message("RecordedMove").FromString(recorded.act)
                move = reactions.received(self._game.codec.move_from_proto(done.move), recorded.received)
                step = self._game.rules.apply(state, done.played.seat, move, Chance(session.meta.seed))
                if isinstance(step, Refusal):
                    break  # The round before it ended the match: there is nothing left to be late for.
                state = step.state
                events += step.events[1:]
        return replace(session, state=state), events

    async def _react(
        self, session: Session, reactions: Reactions, seat: int, move: Value, act: bytes, by: table_pb2.Played.By, answer: Answer | None
    ) -> Sequence[Placed] | None:
        """Has a reaction ordered; None if its round closed, or the seat reacted, meanwhile."""
        number, (action, event) = reactions.number(session.state), reactions.request(seat, move)
        placed = await self._sessions.react(reactions.script, session.match_id, number, seat, action, event, act, answer)
        if placed is None:
            return None
        metrics.MOVES.labels(By.Name(by).lower()).inc()
        # Closes the round, if that was what it waited for.
        await self._load(session.match_id)
        return [placed]

    async def _end_window(self, session: Session) -> None:
        """Commits what the end of the present window gives; or nothing, if a commit or a reaction came first."""
        assert self._game.real_time
        step = self._game.real_time.on_timeout(session.state, Chance(session.meta.seed))
        act = self._messages.make("RecordedMove", played=table_pb2.Played(by=By.CLOCK), window_ended=self._messages.make("WindowEnded"))
        entries = self._messages.entries(step.events, len(session.table.seats))
        await self._commit(session, None, None, step.state, entries, act.SerializeToString(), self._ranks(step.state), None)

    def _round(self, before: Value, after: Value) -> str:
        """What a commit does to the round: opens one, seals it for those who come too late, ends that too, or leaves it."""
        if not self._game.real_time:
            return ""
        reactions = self._game.real_time.reactions
        was, opens = reactions.open(before), reactions.open(after)
        if opens and not was:
            return " ".join(map(str, opens))
        if reactions.number(before) != reactions.number(after):
            return "end"
        return "seal" if was and not opens else ""

    async def _commit(
        self,
        session: Session,
        seat: int | None,
        after: Seat | None,
        state: Value,
        entries: list[Entry],
        act: bytes,
        ended: tuple[int, Sequence[int]] | None,
        answer: Answer | None,
    ) -> Sequence[Placed] | None:
        """Commits what a seat, or the clock, did: its events, then what changed at the table, then the end."""
        seats = session.table.seats
        entries = [*entries]
        if seat is not None and after is not None:
            before = seats[seat]
            seats = (*seats[:seat], after, *seats[seat + 1 :])
            if (before.resigned, before.stand_in) != (after.resigned, after.stand_in):
                entries.append(self._messages.seat_changed(seat, after))
        table = msgspec.structs.replace(session.table, seats=seats)
        if ended:
            ending, ranks = ended
            outcome = Outcome(ending, tuple(ranks_with_resigned(ranks, [there.resigned for there in seats])))
            table = msgspec.structs.replace(table, outcome=outcome)
            entries.append(self._messages.match_finished(outcome))
        entries[0] = msgspec.structs.replace(entries[0], act=act)
        settings = settings_of(session)
        table, latest = await self._timed(session.match_id, table, state, settings, acted=seat)
        days = self._settings.finished_ttl_days if ended else self._settings.live_ttl_days
        placed = await self._sessions.commit(
            session.match_id,
            judged=session.version,
            table=table,
            state=state,
            entries=entries,
            keep_seconds=days * _DAY,
            latest=latest,
            reactions=len(session.round.reactions),
            round_="end" if ended else self._round(session.stored, state),
            answer=answer,
        )
        if placed and ended:
            metrics.MATCHES.labels(table_pb2.Outcome.Ending.Name(ended[0]).lower()).inc()
        return placed

    async def _timed(
        self, match_id: str, table: Table, state: Value, settings: table_pb2.Settings, acted: int | None
    ) -> tuple[Table, int | None]:
        """Sets when each seat's wake-up is due, and schedules the match for the new ones, before the commit that needs them.

        Returns:
            The table, and the last moment for that commit, if it needs one.
        """
        delays = {} if table.outcome else {n: self._delay_ms(state, n, seat, settings) for n, seat in enumerate(table.seats)}
        timed = {n: delay for n, delay in delays.items() if delay is not None}
        fresh = {n: delay for n, delay in timed.items() if n == acted or table.seats[n].due is None}
        window = self._game.real_time.window(state) if self._game.real_time and not table.outcome else None
        if window and (table.window is None or table.window.number != window.number):
            fresh[_NO_SEAT] = window.ms
        kept = [seat.due for n, seat in enumerate(table.seats) if n in timed and n not in fresh and seat.due is not None]
        if window and table.window and _NO_SEAT not in fresh:
            kept.append(table.window.due)
        moment = Moment(0, table.credit)
        if fresh:
            moment = await self._deadlines.schedule(match_id, min(fresh.values()), min(kept, default=None))

        def due(n: int, before: int | None) -> int | None:
            if n in fresh:
                return moment.now + fresh[n]
            return before + moment.credit - table.credit if before is not None else None

        seats = tuple(msgspec.structs.replace(seat, due=due(n, seat.due) if n in timed else None) for n, seat in enumerate(table.seats))
        ends = due(_NO_SEAT, table.window.due if table.window else None)
        table = msgspec.structs.replace(
            table, seats=seats, credit=moment.credit, window=Window(window.number, ends) if window and ends is not None else None
        )
        return table, self._deadlines.latest(moment) if fresh else None

    def _delay_ms(self, state: Value, n: int, seat: Seat, settings: table_pb2.Settings) -> int | None:
        """How long a seat has, or its bot takes, for a move now; None where no clock runs."""
        if n not in self._game.rules.to_move(state):
            return None
        if self._game.real_time:
            # Windows of time are everybody's clock.
            return self._game.real_time.think_ms(self._game.rules.view(state, n), n, self._rng) if seat.automatic else None
        if seat.automatic:
            return self._settings.bot_delay_ms
        return settings.move_seconds * 1000 or None

    def _match(self, session: Session, viewer: int | None) -> Message:
        return self._messages.match(session, viewer, self._deadlines.credit(session.match_id))

    def _ranks(self, state: Value) -> tuple[int, tuple[int, ...]] | None:
        ranks = self._game.rules.outcome(state)
        return None if ranks is None else (table_pb2.Outcome.COMPLETED, ranks)


def _viewer(session: Session, caller: Caller) -> int | None:
    """The caller's seat, or None for one who only watches: a spectator, or a player who resigned (whose hand is the bot's now)."""
    for n, seat in enumerate(session.table.seats):
        if seat.player and seat.player == caller.player:
            return None if seat.resigned else n
    if not settings_of(session).spectators:
        raise Forbidden("NOT_A_PLAYER", "only its players may see this match")
    return None


def _resigns(event: Any, seat: int) -> bool:
    """Whether with this event the seat's player resigned, and from now on only watches."""
    changed = event.event.seat_changed.seat
    return event.event.WhichOneof("kind") == "seat_changed" and changed.seat == seat and bool(changed.resigned)


def _seat(session: Session, caller: Caller) -> int:
    for n, seat in enumerate(session.table.seats):
        if seat.player and seat.player == caller.player:
            return n
    raise Forbidden("NOT_YOUR_SEAT", "you have no seat in this match")
