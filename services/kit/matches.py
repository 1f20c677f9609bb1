"""The life of a match, the same for every game: made, played, watched, ended, recorded.

Every change is judged on a loaded session and committed by version; a commit that lost the race is judged again on the newest state.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from google.protobuf.message import Message

from gloaming.table.v1 import table_pb2
from services.kit import cursor, metrics, requests, sessions
from services.kit.bell import Bells
from services.kit.chance import Chance, new_seed
from services.kit.cursor import Cursor
from services.kit.deadlines import Deadlines, Moment
from services.kit.errors import Forbidden, Raced, Refused, Unreadable
from services.kit.feeds import Feeds, ViewerOf
from services.kit.game import NOBODY_WINS, Game, Value, is_refusal, ranks_with_resigned, seating
from services.kit.identity import Caller, Identity
from services.kit.messages import Messages, settings_of
from services.kit.presence import Presence
from services.kit.reactions import Reaction, Reactions
from services.kit.results import Results
from services.kit.sessions import (
    Answer,
    Entry,
    Meta,
    Outcome,
    Placed,
    Present,
    Round,
    Seat,
    Session,
    Sessions,
    Table,
    Window,
    answer_for,
)
from services.kit.settings import ServiceSettings
from services.kit.storage import Storage
from services.kit.turns import Turns

# A move without an expected version is judged again so often when others keep moving first.
_JUDGED_AT_MOST = 8
# ALL-02: after so many clocks in a row the bot keeps the seat.
_TIMEOUTS_TO_STAND_IN = 3
# No line is measured at more than this; what is given back of it has a cap of its own (NK-19).
_LONGEST_MS = 60_000
# A watcher's token is looked at so often.
_HEARTBEAT_SECONDS = 15.0
# A watcher who may see what others may not is sent nothing on a look at the token that is older than this.
_TRUSTED_SECONDS = 1.0
_DAY = 86_400

By = table_pb2.Played.By
# Among the deadlines of seats, the one of the window, that of a pending reaction, when the match is given up, that it has ended, and that a
# player is to move.
_NO_SEAT, _PENDING, _GIVEN_UP, _ENDED, _TURN = -1, -2, -3, -4, -5
# A match that has ended is woken so much later: its result is to be handed out, and its other wake-ups to be settled. So is one in which it
# has come to be a player's turn, where that is to be told.
_ENDED_MS = _TURN_MS = 100
# A match is given up after the time that the operator sets and that of so many moves.
_MOVES_TO_ABANDON = 3


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
        self.feeds = Feeds(self._sessions, self._bells, self._load, self._messages.seat_given_up, self._attended)
        self._presence = Presence(settings, self.feeds.seats, self._attend)
        self.results = Results(game, storage, self._sessions, self._messages, settings)
        self.turns = Turns(game, storage, self._sessions, self._messages, settings, self._deadlines.credit)
        self._rng = random.SystemRandom()
        self._reactions = (
            Reactions(
                game,
                game.real_time.reactions,
                self._sessions,
                self._deadlines,
                load=self._load,
                close=self._close_round,
                feeds=self.feeds,
            )
            if game.real_time
            else None
        )

    async def run(self, stopping: asyncio.Event) -> None:
        """Hears bells and sweeps deadlines until `stopping` is set."""
        async with asyncio.TaskGroup() as tasks:
            hearing = tasks.create_task(self._bells.run())
            await self._deadlines.sweep(self.wake, stopping)
            if self._reactions:
                await self._reactions.close()
            await self._presence.close()
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
        table, state, entries = Table(seats), step.state, self._messages.entries(step.events, len(seats))
        window = self._game.real_time.window(state) if self._game.real_time else None
        if window and settings.start_seconds and _humans(table):
            table = msgspec.structs.replace(table, window=Window(~window.number, 0))
        else:
            state, entries = self._run_through(state, entries, len(seats), chance)
        timed = await self._timed(request.match_id, table, state, settings, acted=None)
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
            table=timed.table,
            state=state,
            entries=entries,
            keep_seconds=self._settings.live_ttl_days * _DAY,
            latest=timed.latest,
            round_=self._round(Round(), None, state)[0],
            acted=timed.moment.now - timed.moment.credit,
        )
        if placed:
            metrics.MATCHES.labels("created").inc()
            self.feeds.told(request.match_id, placed)
        return self.shown(await self._load(request.match_id), None)

    async def get(self, match_id: str, caller: Caller) -> Message:
        """Returns the match as the caller may see it."""
        session = await self._load(match_id)
        return self.shown(session, _viewer(session, caller))

    async def moves(self, match_id: str, caller: Caller) -> Message:
        """Lists the caller's legal moves."""
        session = await self._load(match_id)
        seat = _seat(session, caller)
        idle = session.table.seats[seat].resigned or seat in session.round.pending
        legal = () if idle else self._game.rules.legal(session.state, seat)
        moves = [self._game.codec.move_to_proto(move) for move in legal]
        return self._messages.make("ListMovesResponse", match_id=match_id, version=session.version, moves=moves)

    async def submit(self, request: Any, caller: Caller) -> Message:
        """Plays a move of the caller."""
        move = requests.value(self._game.codec.move_from_proto, request.move, "move")
        request_id = requests.request_id(request.request_id)
        body = request.move.SerializeToString(deterministic=True)
        expected = request.expected_version if request.HasField("expected_version") else None
        if self.is_reaction(move):
            reaction = self._react(request.match_id, caller, move, request_id, body, expected, 0)
            await reaction.done
            assert reaction.place
            return self._messages.accepted("SubmitMoveResponse", request.match_id, reaction.place, reaction.placed, reaction.seat)

        async def judge(session: Session, seat: int, answer: Answer | None) -> Sequence[Placed] | None:
            if expected is not None and expected != session.version:
                raise Raced("VERSION_MISMATCH", f"the match is at version {session.version}")
            return await self._play(session, seat, move, By.PLAYER, answer)

        placed, seat = await self._once("SubmitMove", request.match_id, caller, request_id, body, judge)
        return self._messages.accepted("SubmitMoveResponse", request.match_id, placed[-1].cursor, placed, seat)

    def is_reaction(self, move: Value) -> bool:
        """Whether a move is one that races others for its place, in real time."""
        return self._game.real_time is not None and self._game.real_time.reactions.is_reaction(move)

    def react(
        self,
        match_id: str,
        caller: Caller,
        move: Value,
        *,
        request_id: str,
        body: bytes,
        expected_version: int | None = None,
        round_trip_ms: int = 0,
    ) -> asyncio.Future[int]:
        """Makes a reaction of the caller, and tells the match's version once it is ordered, or pending (NK-19).

        Args:
            body: the move as it was sent, by which a retry of the same request is known.
            round_trip_ms: the round trip of the caller's line as the server measured it.

        Raises:
            Refused, Raced, Forbidden, NotFound, Unavailable: in the future; as `submit`.
        """
        return self._react(match_id, caller, move, request_id, body, expected_version, round_trip_ms).done

    async def resign(self, request: Any, caller: Caller) -> Message:
        """Resigns the caller's seat (ALL-01)."""
        request_id = requests.request_id(request.request_id)
        placed, seat = await self._once("Resign", request.match_id, caller, request_id, b"", self._resign)
        return self._messages.accepted("ResignResponse", request.match_id, placed[-1].cursor, placed, seat)

    async def events(self, request: Any, caller: Caller) -> Message:
        """Lists a page of events."""
        size = requests.page_size(request.page_size)
        after = Cursor.parse(request.after_cursor) if request.after_cursor else cursor.BEGINNING
        session = await self._load(request.match_id)
        viewer = _viewer(session, caller)
        if not await self._sessions.fits(request.match_id, after):
            snapshot = self.shown(session, viewer)
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
        checked = time.monotonic()
        async with aclosing(self.feeds.read(match_id, after, self.viewer_of(caller))) as tellings:
            async for told in tellings:
                what, viewer = told or (None, None)
                if time.monotonic() - checked > (_HEARTBEAT_SECONDS if viewer is None else _TRUSTED_SECONDS):
                    await self._identity.recheck(caller)
                    checked = time.monotonic()
                if isinstance(what, Session):
                    yield self._messages.make("WatchMatchResponse", snapshot=self.shown(what, viewer))
                elif what:
                    yield self._messages.make("WatchMatchResponse", event=self._messages.event(match_id, what, viewer))

    def viewer_of(self, caller: Caller) -> ViewerOf:
        """As which seat the caller may see a session, or None for a spectator; raises Forbidden where it may not."""
        return lambda session: _viewer(session, caller)

    async def record(self, match_id: str, caller: Caller) -> Message:
        """Returns the record of a finished match, its seed included (ALL-03)."""
        session = await self._load(match_id)
        _viewer(session, caller)
        if not session.table.outcome:
            raise Refused("MATCH_NOT_FINISHED", "a match has a record once it is finished")
        placed = await self._sessions.entries(match_id, cursor.BEGINNING)
        return self._messages.record(session, session.table.outcome, placed)

    async def load(self, match_id: str) -> Session:
        """Reads a match as it is now. Raises as `Sessions.load`."""
        return await self._load(match_id)

    async def wake(self, match_id: str, moment: Moment) -> int | None:
        """Acts on every deadline of a match that has passed (ALL-02), and returns when the next one is due, ms, or None."""
        while True:
            session = await self._load(match_id)
            credit = moment.credit - session.table.credit
            # In real time a seat may have reacted since the commit that set when it is due.
            to_move = [n for n in self._game.rules.to_move(session.state) if n not in session.round.pending]
            dues = {n: seat.due + credit for n, seat in enumerate(session.table.seats) if seat.due is not None and n in to_move}
            if session.table.window:
                # While a reaction is pending its window does not end. Loading has decided all that were due.
                dues[_NO_SEAT] = max(session.table.window.due + credit, session.round.due or 0)
            if session.round.due is not None:
                dues[_PENDING] = session.round.due
            if (given_up := self._given_up(session, moment)) is not None:
                dues[_GIVEN_UP] = max(given_up, session.round.due or 0)
            if session.table.outcome:
                if _is_rated(session):
                    await self.results.put(match_id)
                await self.turns.put(session)
                return None
            if not dues:
                await self.turns.put(session)
                return None
            seat = min(dues, key=dues.__getitem__)
            # Clocks have run until that moment: what came after may yet turn out to be an outage.
            if dues[seat] > moment.now or seat == _PENDING:
                await self.turns.put(session)
                return dues[seat]
            late = (session.now - dues[seat]) / 1000
            if seat == _NO_SEAT:
                if await self._end_window(session):
                    metrics.DEADLINE_LATENESS.observe(late)
                continue
            if seat == _GIVEN_UP:
                await self._give_up(session)
                continue
            by = By.BOT if session.table.seats[seat].automatic else By.CLOCK
            view, moves = self._game.rules.view(session.state, seat), self._game.rules.legal(session.state, seat)
            move = self._game.bot.choose(view, seat, moves, self._rng)
            if self.is_reaction(move):
                await self._bot_reacts(match_id, seat, move)
            elif await self._play(session, seat, move, by) and by == By.CLOCK:
                metrics.DEADLINE_LATENESS.observe(late)

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
        if is_refusal(step):
            raise Refused(str(step.reason), step.detail)
        act = self._messages.make(
            "RecordedMove", played=table_pb2.Played(seat=seat, by=by), move=self._game.codec.move_to_proto(move)
        ).SerializeToString()
        before = session.table.seats[seat]
        timeouts = before.timeouts + 1 if by == By.CLOCK else before.timeouts if by == By.BOT else 0
        after = msgspec.structs.replace(before, timeouts=timeouts, stand_in=by != By.PLAYER and timeouts >= _TIMEOUTS_TO_STAND_IN)
        entries = self._messages.entries(step.events, len(session.table.seats))
        by_player = by == By.PLAYER
        placed = await self._commit(session, step.state, entries, act, seat=seat, after=after, answer=answer, by_player=by_player)
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
            self._game.rules.end_early(session.state) if of_two else session.state,
            [],
            act,
            seat=seat,
            after=msgspec.structs.replace(before, resigned=True, stand_in=False, timeouts=0),
            ended=(table_pb2.Outcome.RESIGNED, (1, 1)) if of_two else None,
            answer=answer,
            by_player=True,
        )

    async def _give_up(self, session: Session) -> Sequence[Placed] | None:
        """Ends a match in which no player did anything for too long; nobody wins it."""
        state, ranks = self._game.rules.end_early(session.state), NOBODY_WINS * len(session.table.seats)
        # Unless somebody has come meanwhile.
        return await self._commit(session, state, [], ended=(table_pb2.Outcome.ABANDONED, ranks), connected=session.connected)

    async def end(self, match_id: str) -> tuple[Session, bool]:
        """Gives a match up now, for an operator, unless it has ended; returns it as it is then, and whether this call ended it.

        Raises:
            NotFound: MATCH_NOT_FOUND.
            Raced: RACED; others kept moving first.
        """
        for _ in range(_JUDGED_AT_MOST):
            session = await self._load(match_id)
            if session.table.outcome:
                return session, False
            if session.round.due is not None:
                # While a reaction is pending its round is not closed.
                await asyncio.sleep(max(0, session.round.due - session.now) / 1000)
            elif await self._give_up(session):
                return await self._load(match_id), True
            metrics.RACES.inc()
        raise Raced("RACED", "others kept moving first; try again")

    def _given_up(self, session: Session, moment: Moment) -> int | None:
        """When a match is given up unless a player does something, ms, credit of the moment included; None if never."""
        if not self._settings.abandon_seconds or session.acted is None or not _humans(session.table):
            return None
        span = self._abandon_ms(settings_of(session))
        if session.connected:
            return session.now + span
        return max(session.acted + moment.credit, session.watched + max(0, moment.credit - session.table.credit)) + span

    def _abandon_ms(self, settings: table_pb2.Settings) -> int:
        return (self._settings.abandon_seconds + _MOVES_TO_ABANDON * settings.move_seconds) * 1000

    # Who is there.

    def _attended(self, match_id: str, over: bool) -> None:
        if over:
            self._presence.forget(match_id)
        else:
            self._presence.look(match_id)

    async def _attend(self, match_id: str, leases: list[tuple[str, int]]) -> None:
        """Stores who watches a match here, and has it told if others are connected than was told; the last begins a match that waits."""
        there = await self._sessions.attend(match_id, leases)
        for _ in range(_JUDGED_AT_MOST):
            if there is None or there.connected == there.present:
                return
            session = await self._load(match_id)
            seats = session.table.seats
            connected = there.present & _humans(session.table)
            changed = sorted(connected ^ session.connected)
            credited = max(0, self._deadlines.credit(match_id) - session.table.credit)
            if session.table.outcome or not changed:
                return
            entries = [self._messages.seat_changed(n, seats[n], connected=n in connected, credited=credited) for n in changed]
            if await self._tell_presence(session, there, connected, entries):
                return
            there = await self._sessions.attend(match_id, [])

    async def _tell_presence(self, session: Session, there: Present, connected: frozenset[int], entries: list[Entry]) -> bool:
        if _waits(session.table) and connected >= _humans(session.table):
            return bool(await self._commit(session, session.state, entries, connected=connected))
        bell = await self._sessions.tell_presence(session, there._replace(connected=session.connected), connected, entries)
        if bell and bell.placed:
            self.feeds.told(session.match_id, bell)
        return bell is not None

    # Real time.

    async def _load(self, match_id: str, answer: Answer | None = None) -> Session:
        """Reads a match, its reactions taken in; those that are due are decided before, and a round that they have closed is committed."""
        while True:
            session = await self._sessions.load(match_id, answer)
            if session.present != session.connected:
                self._presence.look(match_id)  # a replica is gone that nobody heard of since
            if not self._reactions or session.table.outcome:
                return session
            assert self._game.real_time
            reactions = self._game.real_time.reactions
            if session.round.number != reactions.number(session.state):
                self._reactions.keep(session)
                return session
            if session.round.due is not None and session.round.due <= session.now:
                await self._reactions.decide(session)
                continue
            session, events = self._reactions.taken_in(session, session.round.acts[reactions.known(session.state) :])
            if not events:
                self._reactions.keep(session)
                return session
            await self._close_round(session, events)

    def _react(
        self, match_id: str, caller: Caller, move: Value, request_id: str, body: bytes, expected: int | None, round_trip_ms: int
    ) -> Reaction:
        assert self._reactions, "only a game in real time has reactions"
        answer = answer_for("SubmitMove", caller.player, request_id, body)
        reaction = Reaction(move, caller.player, answer=answer, expected=expected, round_trip_ms=max(0, min(round_trip_ms, _LONGEST_MS)))
        self._reactions.submit(match_id, reaction)
        return reaction

    async def _bot_reacts(self, match_id: str, seat: int, move: Value) -> None:
        assert self._reactions
        reaction = Reaction(move, None, seat, By.BOT)
        self._reactions.submit(match_id, reaction)
        with suppress(Refused, Raced):  # its round is over
            await reaction.done

    async def _close_round(self, session: Session, events: list[Value]) -> bool:
        """Commits what a round's reactions have led to; or nothing, if another replica has, or one more reaction came first."""
        entries = self._messages.entries(events, len(session.table.seats))
        return bool(await self._commit(session, session.state, entries, by_player=session.round.by_players))

    async def _end_window(self, session: Session) -> Sequence[Placed] | None:
        """Commits what the end of the present window gives; or nothing, if a commit or a reaction came first."""
        assert self._game.real_time
        step = self._game.real_time.on_timeout(session.state, Chance(session.meta.seed))
        entries = self._messages.entries(step.events, len(session.table.seats))
        return await self._commit(session, step.state, entries, self._window_ended, by_player=session.round.by_players)

    def _run_through(self, state: Value, entries: list[Entry], seats: int, chance: Chance) -> tuple[Value, list[Entry]]:
        """Where windows of no length follow, what is after them, each with the entries that its end gives."""
        real_time = self._game.real_time
        while real_time and (window := real_time.window(state)) and not window.ms:
            step = real_time.on_timeout(state, chance)
            state, entries = step.state, [*entries, *_made_by(self._window_ended, self._messages.entries(step.events, seats))]
        return state, entries

    @cached_property
    def _window_ended(self) -> bytes:
        act = self._messages.make("RecordedMove", played=table_pb2.Played(by=By.CLOCK), window_ended=self._messages.make("WindowEnded"))
        return act.SerializeToString()

    def _round(self, there: Round, before: Value | None, after: Value) -> tuple[str, Round]:
        """What a commit does to the round, as commit.lua has it: opens one, seals it for those who come too late, ends that too, or leaves
        it; and the round after it.
        """
        if not self._game.real_time:
            return "", there
        reactions = self._game.real_time.reactions
        was, opens = reactions.open(before) if before is not None else None, reactions.open(after)
        if opens and (not was or was.number != opens.number):
            return " ".join("-" if each is None else str(each) for each in opens), Round(opens.number)
        if before is not None and reactions.number(before) != reactions.number(after):
            return "end", Round()
        return ("seal" if was and not opens else ""), there

    async def _commit(
        self,
        session: Session,
        state: Value,
        entries: list[Entry],
        act: bytes = b"",
        *,
        seat: int | None = None,
        after: Seat | None = None,
        ended: tuple[int, Sequence[int]] | None = None,
        answer: Answer | None = None,
        by_player: bool = False,
        connected: frozenset[int] | None = None,
    ) -> Sequence[Placed] | None:
        """Commits what a seat, or the clock, did: its events, then what changed at the table, then what follows at once, then the end.

        Args:
            by_player: whether a player did it.
            connected: the seats that are connected from now on, if that has changed.
        """
        seats, settings = session.table.seats, settings_of(session)
        entries, changed = [*entries], -1
        if seat is not None and after is not None:
            before = seats[seat]
            seats = (*seats[:seat], after, *seats[seat + 1 :])
            if (before.resigned, before.stand_in) != (after.resigned, after.stand_in):
                connected = session.connected - {seat} if after.resigned else session.connected
                # Told of below, when its clock is known.
                changed = len(entries)
                entries.append(Entry(b""))
        table = msgspec.structs.replace(session.table, seats=seats)
        entries = _made_by(act, entries)
        there = session.connected if connected is None else connected
        waits = _waits(table) and act != self._window_ended and not there >= _humans(table)
        if not waits:
            state, entries = self._run_through(state, entries, len(seats), Chance(session.meta.seed))
        if ended := ended or self._ranks(state):
            ending, ranks = ended
            outcome = Outcome(ending, tuple(ranks_with_resigned(ranks, [there.resigned for there in seats])))
            table = msgspec.structs.replace(table, outcome=outcome)
            entries.append(self._messages.match_finished(outcome))
        round_, round_after = ("end", Round()) if ended else self._round(session.round, session.stored, state)
        opens = round_after.number not in (0, session.round.number)
        timed = await self._timed(session.match_id, table, state, settings, acted=seat, now=session.now, opens=opens, waits=waits)
        table = timed.table
        if seat is not None and changed >= 0:
            told = self._messages.seat_changed(seat, table.seats[seat], connected=seat in (connected or ()) and not ended)
            entries[changed] = msgspec.structs.replace(told, act=entries[changed].act)
        days = self._settings.finished_ttl_days if ended else self._settings.live_ttl_days
        bell = await self._sessions.commit(
            session.match_id,
            judged=session.version,
            meta=self._sessions.raised(session.meta),
            table=table,
            state=state,
            entries=entries,
            keep_seconds=days * _DAY,
            latest=timed.latest,
            reactions=session.round.decided,
            round_=round_,
            answer=answer,
            connected=None if connected is None else (session.connected, connected),
            acted=timed.moment.now - timed.moment.credit if by_player else None,
        )
        if not bell:
            return None
        placed = bell.placed
        if ended:
            metrics.MATCHES.labels(table_pb2.Outcome.Ending.Name(ended[0]).lower()).inc()
        self.feeds.told(session.match_id, bell)
        if self._reactions:
            now, last = placed[-1].time, placed[-1].cursor
            after_it = replace(
                session,
                now=now,
                answer=None,
                version=last.version,
                cursor=last,
                table=table,
                state=state,
                stored=state,
                round=round_after._replace(by_players=False),
                connected=session.connected if connected is None else connected,
            )
            self._reactions.keep(after_it)
        return placed

    async def _timed(
        self,
        match_id: str,
        table: Table,
        state: Value,
        settings: table_pb2.Settings,
        *,
        acted: int | None,
        now: int | None = None,
        opens: bool = False,
        waits: bool = True,
    ) -> _Timed:
        """Sets when each seat's wake-up is due, and schedules the match for the new ones, before the commit that needs them.

        Args:
            acted: the seat that moved.
            now: the storage's time, ms, at which the match stood as it was judged; None for a match that is not there yet.
            opens: whether a round opens with it, in which every bot thinks anew.
            waits: whether a match whose first window has not begun waits on.
        """
        to_move = () if table.outcome else self._game.rules.to_move(state)
        delays = {n: self._delay_ms(state, n, table.seats[n], settings) for n in to_move}
        timed = {n: delay for n, delay in delays.items() if delay is not None}
        fresh = {n: delay for n, delay in timed.items() if n == acted or opens or table.seats[n].due is None}
        window = self._game.real_time.window(state) if self._game.real_time and not table.outcome else None
        waits = waits and window is not None and _waits(table)
        if window and (table.window is None or table.window.number != (~window.number if waits else window.number)):
            fresh[_NO_SEAT] = window.ms
        if now is None:
            if window and waits:
                fresh[_NO_SEAT] = settings.start_seconds * 1000 + window.ms
            if self._settings.abandon_seconds and _humans(table):
                fresh[_GIVEN_UP] = self._abandon_ms(settings)
        if table.outcome and (settings.rated or _humans(table)):
            fresh[_ENDED] = _ENDED_MS
        if self.turns.noted and self.turns.to_move(table, state):
            fresh[_TURN] = _TURN_MS
        kept = [seat.due for n, seat in enumerate(table.seats) if n in timed and n not in fresh and seat.due is not None]
        if window and table.window and _NO_SEAT not in fresh:
            kept.append(table.window.due)
        moment, scheduled = Moment(now or 0, table.credit), False
        if fresh:
            soonest = min(fresh.values())
            known = None if now is None else self._known_moment(match_id, table, now, soonest)
            scheduled = known is None
            moment = known or await self._deadlines.schedule(match_id, soonest, min(kept, default=None))

        def due(n: int, before: int | None) -> int | None:
            if n in fresh:
                return moment.now + fresh[n]
            return before + moment.credit - table.credit if before is not None else None

        dues = [due(n, seat.due) if n in timed else None for n, seat in enumerate(table.seats)]
        if dues == [seat.due for seat in table.seats]:
            seats = table.seats
        else:
            seats = tuple(msgspec.structs.replace(seat, due=each) for seat, each in zip(table.seats, dues, strict=True))
        ends = due(_NO_SEAT, table.window.due if table.window else None)
        after = Window(~window.number if waits else window.number, ends) if window and ends is not None else None
        table = msgspec.structs.replace(table, seats=seats, credit=moment.credit, window=after)
        return _Timed(table, moment, self._deadlines.latest(moment) if scheduled else None)

    def _known_moment(self, match_id: str, table: Table, now: int, delay_ms: int) -> Moment | None:
        """The moment `now`, if the match has a wake-up that is early enough for what is due in `delay_ms`; else one must be scheduled."""
        # In real time a seat may have reacted since its due was set: then that wakes nobody any more.
        stored = [seat.due for seat in table.seats if seat.due is not None] if not self._game.real_time else []
        if table.window:
            stored.append(table.window.due)
        moment = self._deadlines.moment(match_id, now)
        if not stored or moment is None:
            return None
        kept = self._deadlines.is_kept(now, min(stored) + moment.credit - table.credit, now + delay_ms)
        return moment if kept else None

    def _delay_ms(self, state: Value, n: int, seat: Seat, settings: table_pb2.Settings) -> int | None:
        """How long a seat that is to move has, or its bot takes; None where no clock runs."""
        if self._game.real_time:
            # Windows of time are everybody's clock.
            return self._game.real_time.think_ms(self._game.rules.view(state, n), n, self._rng) if seat.automatic else None
        if seat.automatic:
            return self._settings.bot_delay_ms
        return settings.move_seconds * 1000 or None

    def shown(self, session: Session, viewer: int | None) -> Message:
        """A match as a viewer may see it."""
        return self._messages.match(session, viewer, self._deadlines.credit(session.match_id))

    def _ranks(self, state: Value) -> tuple[int, tuple[int, ...]] | None:
        ranks = self._game.rules.outcome(state)
        return None if ranks is None else (table_pb2.Outcome.COMPLETED, ranks)


class _Timed(NamedTuple):
    """A table with its dues, the moment at which they were set, and the last one, ms, for the commit that needs them, if there is one."""

    table: Table
    moment: Moment
    latest: int | None


def _humans(table: Table) -> frozenset[int]:
    """The seats that are players'."""
    return frozenset(n for n, seat in enumerate(table.seats) if seat.player and not seat.resigned)


def _waits(table: Table) -> bool:
    """Whether a match in real time waits for its players."""
    return table.window is not None and table.window.number < 0


def _is_rated(session: Session) -> bool:
    outcome = session.table.outcome
    return bool(settings_of(session).rated and outcome and outcome.ending != table_pb2.Outcome.ABANDONED)


def _made_by(act: bytes, entries: list[Entry]) -> list[Entry]:
    """Entries of which the first carries the move that made them."""
    return [msgspec.structs.replace(entries[0], act=act), *entries[1:]] if act else entries


def _viewer(session: Session, caller: Caller) -> int | None:
    """The caller's seat, or None for one who only watches: a spectator, or a player who resigned (whose hand is the bot's now)."""
    for n, seat in enumerate(session.table.seats):
        if seat.player and seat.player == caller.player:
            return None if seat.resigned else n
    if not settings_of(session).spectators:
        raise Forbidden("NOT_A_PLAYER", "only its players may see this match")
    return None


def _seat(session: Session, caller: Caller) -> int:
    for n, seat in enumerate(session.table.seats):
        if seat.player and seat.player == caller.player:
            return n
    raise Forbidden("NOT_YOUR_SEAT", "you have no seat in this match")
