"""Reactions on their way: those of a match are ordered together, as many as have come meanwhile.

Each match has at most one worker on a replica. It takes whatever waits, judges it by the session that it knows, has it ordered by one call
of the game's script, and goes on until nothing waits. So an unhurried reaction waits for nothing, and a hurried one for one round trip.

The session is the one that was loaded or committed last, and is never trusted: the script refuses where the match has gone on from it, and
nobody is refused by it before a loaded one says the same.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import structlog

from gloaming.table.v1 import table_pb2
from services.kit import metrics
from services.kit.chance import Chance
from services.kit.cursor import Cursor
from services.kit.deadlines import Deadlines
from services.kit.errors import Error, Forbidden, Raced, Refused, Throttled
from services.kit.feeds import Feeds
from services.kit.game import Game, ReactionRules, Value, is_refusal
from services.kit.sessions import Answer, Asked, Bell, Ordered, Place, Placed, Session, Sessions

# So many reactions go along in one call at most.
_AT_ONCE = 64
# So many of a match wait at most. Its players, a handful, wait for their answers as a rule.
_WAITING_AT_MOST = 256
# A reaction is judged again so often when the match keeps going on meanwhile.
_JUDGED_AT_MOST = 8
# So many matches' sessions are remembered.
_REMEMBERED = 4096
# A pending reaction is decided by the replica that took it; should that be gone, by whichever sweeps the deadlines, so much later.
_FALLBACK_MS = 250

By = table_pb2.Played.By
# Looked up once: this is the path that is to be fast.
_ORDER, _RESOLVE = (metrics.PILLOW_SECONDS.labels(stage) for stage in ("order", "resolve"))
_MOVES = {by: metrics.MOVES.labels(name.lower()) for name, by in By.items()}

log = structlog.get_logger(__name__)


@dataclass(eq=False, slots=True)
class Reaction:
    """A reaction on its way.

    Args:
        move: what is done.
        player: who asks; or None for a bot, and then its `seat`.
        seat: the seat, once it is known.
        by: who decides it.
        answer: what a retry of its request gets.
        expected: the version that the match is to be at, if it matters.
        round_trip_ms: the round trip of the player's line as it was measured.
        done: the match's version, or why not.
        place: where the match was with it.
        placed: its event; nothing while it is pending.
    """

    move: Value
    player: str | None
    seat: int = -1
    by: table_pb2.Played.By = By.PLAYER
    answer: Answer | None = None
    expected: int | None = None
    round_trip_ms: int = 0
    done: asyncio.Future[int] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    place: Cursor | None = None
    placed: Sequence[Placed] = ()
    tries: int = 0
    began: float = field(default_factory=time.perf_counter)

    def succeed(self, place: Cursor, placed: Sequence[Placed]) -> None:
        """Answers whoever waits."""
        self.place, self.placed = place, placed
        if not self.done.done():
            self.done.set_result(place.version)

    def fail(self, fault: Exception) -> None:
        """Tells whoever waits why not."""
        if not self.done.done():
            self.done.set_exception(fault)
            self.done.exception()  # nobody need wait for it


@dataclass(eq=False, slots=True)
class _Table:
    """What this replica knows of a match in real time.

    Args:
        session: the match as loaded or committed last, all its reactions taken in.
        waiting: the reactions that wait.
        working: whether somebody is at work on them.
        ticked: whether pending reactions are due.
        timer: when they will be, ms by the storage's clock, and what wakes this replica then.
        fallback: when any replica is going to look after them, by the clock of the event loop.
    """

    session: Session | None = None
    waiting: deque[Reaction] = field(default_factory=deque)
    working: bool = False
    ticked: bool = False
    timer: tuple[int, asyncio.TimerHandle] | None = None
    fallback: float = 0.0


class Reactions:
    """The reactions of one game's matches on this replica.

    Args:
        rules: how the game's reactions are ordered.
        load: loads a match, whatever is due in it decided, and a round that is over closed.
        close: commits what a round's reactions have led to, if nothing came between.
        feeds: are told of what was stored.
    """

    def __init__(
        self,
        game: Game,
        rules: ReactionRules,
        sessions: Sessions,
        deadlines: Deadlines,
        *,
        load: Callable[[str, Answer | None], Awaitable[Session]],
        close: Callable[[Session, list[Value]], Awaitable[bool]],
        feeds: Feeds,
    ) -> None:
        self._game = game
        self._rules = rules
        self._sessions = sessions
        self._deadlines = deadlines
        self._load, self._close, self._feeds = load, close, feeds
        self._tables: OrderedDict[str, _Table] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._recorded = game.message("RecordedMove")
        self._verdicts = game.message("Reaction").DESCRIPTOR.fields_by_name["verdict"].enum_type.values_by_number
        # There are few: a round's number, an action, a target, a seat.
        self._words = lru_cache(16_384)(self._make_words)

    def submit(self, match_id: str, reaction: Reaction) -> None:
        """Puts a reaction in line; its `done` tells what came of it."""
        table = self._table(match_id)
        if len(table.waiting) >= _WAITING_AT_MOST:
            reaction.fail(Throttled("TOO_MANY_REACTIONS", "too many reactions to this match are on their way; try again"))
            return
        table.waiting.append(reaction)
        self._start(match_id, table)

    def keep(self, session: Session) -> None:
        """Remembers a session that was loaded or committed, its reactions taken in, unless a newer one is known."""
        if session.table.outcome:
            if finished := self._tables.get(session.match_id):
                finished.session = None
            return
        table = self._table(session.match_id)
        if table.session is None or table.session.cursor[:2] <= session.cursor[:2]:
            table.session = session
        if session.round.due is not None:
            self._watch(session.match_id, table, session, session.round.due)

    def taken_in(self, session: Session, acts: Sequence[bytes], counted: int | None = None) -> tuple[Session, list[Value]]:
        """The session whose state holds these reactions too, and what they led to beside themselves.

        Args:
            counted: from which on they were ordered by this replica just now; the others have been counted elsewhere, or before.
        """
        state, events, by_players = session.state, [], session.round.by_players
        for n, act in enumerate(acts):
            done = self._recorded.FromString(act)
            if counted is not None and n >= counted:
                self._count(done.reaction)
            move = self._rules.decided(self._game.codec.move_from_proto(done.move), done.reaction)
            step = self._game.rules.apply(state, done.played.seat, move, Chance(session.meta.seed))
            if is_refusal(step):
                break  # The one before it ended the match: there is nothing left to be late for.
            state = step.state
            by_players = by_players or done.played.by == By.PLAYER
            events += step.events[1:]
        return replace(session, state=state, round=session.round._replace(acts=(), by_players=by_players)), events

    async def decide(self, session: Session) -> None:
        """Has the pending reactions decided that are due in a loaded session."""
        ordered = await self._sessions.react(self._rules.script, session, self._rules.number(session.state), ())
        if ordered is not None:
            self._tell(session, ordered)

    async def close(self) -> None:
        """Lets what has begun finish; pending reactions are left to other replicas."""
        for table in self._tables.values():
            if table.timer:
                table.timer[1].cancel()
        self._closed = True
        await asyncio.gather(*self._tasks)

    # The work.

    async def _work(self, match_id: str, table: _Table) -> None:
        try:
            while table.waiting or table.ticked:
                batch = [table.waiting.popleft() for _ in range(min(len(table.waiting), _AT_ONCE))]
                table.ticked = False
                try:
                    await self._order(match_id, table, batch)
                except Exception as fault:
                    if not isinstance(fault, Error):
                        log.exception("reactions_failed", match=match_id)
                    table.session = None
                    for reaction in batch:
                        reaction.fail(fault)
        finally:
            table.working = False
            # Nothing is remembered of a match that is over or was never there.
            if table.session is None and self._tables.get(match_id) is table:
                del self._tables[match_id]

    async def _order(self, match_id: str, table: _Table, batch: list[Reaction]) -> None:
        """Judges reactions, has those ordered that the rules allow, and closes the round if that was what it waited for."""
        session = table.session
        known = session is not None
        if session is None:
            session = await self._load(match_id, None)
        allowed = []
        for reaction in batch:
            fault = self._judge(session, reaction)
            if fault is None:
                allowed.append(reaction)
            elif known or reaction.answer:
                self._spawn(self._look(match_id, reaction))
            else:
                reaction.fail(fault)
        if batch and not allowed:
            return
        number = self._rules.number(session.state)
        if allowed:
            self._fall_back(match_id, table, session)  # It goes along in the same round trip.
        ordered = await self._sessions.react(self._rules.script, session, number, [self._asked(reaction) for reaction in allowed])
        if ordered is None:
            metrics.RACES.inc()
            if table.session is session:
                table.session = None
            if not batch:
                await self._load(match_id, None)  # It decides what is due.
            for reaction in reversed(allowed):
                self._again(match_id, reaction)
            return
        now = time.perf_counter()
        by_number = {there.cursor.n: there for there in ordered.placed}
        latest = ordered.placed[-1].cursor if ordered.placed else session.cursor
        for reaction, place in zip(allowed, ordered.places, strict=True):
            if place in (Place.ANSWERED, Place.REACTED):
                self._spawn(self._look(match_id, reaction))
                continue
            placed = () if place == Place.PENDING else (by_number[place],)
            reaction.succeed(placed[0].cursor if placed else latest, placed)
            _MOVES[reaction.by].inc()
            _ORDER.observe(now - reaction.began)
        self._tell(session, ordered)
        # All of that is written before what follows from it is worked out here.
        await asyncio.sleep(0)
        session, events = self._gone_on(session, ordered)
        self.keep(session)
        if events:
            with _RESOLVE.time():
                closed = await self._close(session, events)
            if not closed:
                # Another replica has closed it, or had one more that came too late for it: loading sees to either.
                await self._load(match_id, None)

    def _gone_on(self, session: Session, ordered: Ordered) -> tuple[Session, list[Value]]:
        """The session after what was ordered, and what that led to."""
        # Somebody may have come or gone meanwhile: such an event has no act.
        acts = [there.entry.act for there in ordered.placed if there.entry.act]
        mine = sum(there.cursor.mark == ordered.mark for there in ordered.placed)
        session, events = self.taken_in(session, acts, len(acts) - mine)
        decided = session.round.decided + len(acts)
        place = ordered.placed[-1].cursor if ordered.placed else session.cursor
        round_ = session.round._replace(decided=decided, due=ordered.due)
        return replace(session, now=ordered.now, answer=None, cursor=place, round=round_), events

    def _count(self, reaction: Any) -> None:
        metrics.REACTIONS.labels(self._verdicts[reaction.verdict].name).inc()
        if reaction.evidence.cap_ms:
            metrics.COMPENSATION.observe(reaction.evidence.compensation_ms / 1000)

    def _judge(self, session: Session, reaction: Reaction) -> Error | None:
        """Why a reaction is refused in a session; its seat is known then, unless there is none."""
        seats = session.table.seats
        if reaction.player is not None:
            reaction.seat = next((n for n, seat in enumerate(seats) if seat.player == reaction.player), -1)
            if reaction.seat < 0:
                return Forbidden("NOT_YOUR_SEAT", "you have no seat in this match")
            if reaction.expected is not None and reaction.expected != session.version:
                return Raced("VERSION_MISMATCH", f"the match is at version {session.version}")
            if seats[reaction.seat].resigned:
                return Refused("ALREADY_RESIGNED", "the seat has resigned")
        refusal = self._rules.refusal(session.state, reaction.seat, reaction.move)
        if refusal is None and reaction.seat in session.round.pending:
            refusal = self._rules.already_reacted
        return Refused(str(refusal.reason), refusal.detail) if refusal else None

    async def _look(self, match_id: str, reaction: Reaction) -> None:
        """Judges a reaction on a loaded session; it may be a retry, too."""
        try:
            session = await self._load(match_id, reaction.answer)
            if reaction.answer and session.answer:
                if session.answer.fingerprint != reaction.answer.fingerprint:
                    raise Refused("REQUEST_ID_REUSED", "this request id came with another body before")
                placed = await self._sessions.made_by(match_id, session.answer)
                there = session.answer
                reaction.succeed(await self._sessions.cursor_at(match_id, there.version, there.last), placed)
            elif fault := self._judge(session, reaction):
                reaction.fail(fault)
            else:
                self._again(match_id, reaction)
        except Error as fault:
            reaction.fail(fault)
        except Exception as fault:
            log.exception("reactions_failed", match=match_id)
            reaction.fail(fault)

    def _again(self, match_id: str, reaction: Reaction) -> None:
        reaction.tries += 1
        if reaction.tries < _JUDGED_AT_MOST:
            table = self._table(match_id)
            table.waiting.appendleft(reaction)
            self._start(match_id, table)
        else:
            reaction.fail(Raced("RACED", "others kept moving first; try again"))

    def _asked(self, reaction: Reaction) -> Asked:
        action, words, act = self._words(reaction.seat, reaction.move, reaction.by)
        return Asked(reaction.seat, action, reaction.round_trip_ms, words, act, reaction.answer)

    def _make_words(self, seat: int, move: Value, by: table_pb2.Played.By) -> tuple[int, bytes, bytes]:
        action, words = self._rules.request(seat, move)
        played = table_pb2.Played(seat=seat, by=by)
        return action, words, self._recorded(played=played, move=self._game.codec.move_to_proto(move)).SerializeToString(deterministic=True)

    def _tell(self, session: Session, ordered: Ordered) -> None:
        mine = [there for there in ordered.placed if there.cursor.mark == ordered.mark]
        if mine:
            self._feeds.told(session.match_id, Bell(f"{session.version}-{mine[0].cursor.n - 1}", tuple(mine)))

    # Pending reactions (compensated lines): decided by a timer here, or by whoever sweeps the deadlines if this replica is gone by then.

    def _watch(self, match_id: str, table: _Table, session: Session, due: int) -> None:
        if self._closed or (table.timer and table.timer[0] <= due and table.timer[1].when() > asyncio.get_running_loop().time()):
            return
        if table.timer:
            table.timer[1].cancel()
        wait_ms = max(0, due - session.now)
        # A millisecond later, lest the storage's clock have not got there.
        table.timer = due, asyncio.get_running_loop().call_later((wait_ms + 1) / 1000, self._tick, match_id)

    def _fall_back(self, match_id: str, table: _Table, session: Session) -> None:
        """Sees to it that another replica decides what is about to be pending, should this one be gone."""
        open_ = self._rules.open(session.state)
        now = asyncio.get_running_loop().time()
        if not open_ or not open_.cap_ms or table.fallback - _FALLBACK_MS / 1000 > now:
            return
        # A match that is woken sees to whatever is pending by then: one wake-up is enough at a time.
        delay_ms = open_.cap_ms + _FALLBACK_MS
        table.fallback = now + delay_ms / 1000
        self._spawn(self._schedule(match_id, delay_ms))

    async def _schedule(self, match_id: str, delay_ms: int) -> None:
        try:
            await self._deadlines.schedule(match_id, delay_ms)
        except Error as fault:
            # The end of the window is scheduled as well.
            log.warning("schedule_failed", match=match_id, reason=fault.reason)

    def _tick(self, match_id: str) -> None:
        table = self._table(match_id)
        table.timer, table.ticked = None, True
        self._start(match_id, table)

    # Tables and tasks.

    def _table(self, match_id: str) -> _Table:
        table = self._tables.get(match_id)
        if table is None:
            table = self._tables[match_id] = _Table()
            oldest = next(iter(self._tables))
            if len(self._tables) > _REMEMBERED and not self._tables[oldest].working:
                del self._tables[oldest]
        else:
            self._tables.move_to_end(match_id)
        return table

    def _start(self, match_id: str, table: _Table) -> None:
        if not table.working:
            table.working = True
            self._spawn(self._work(match_id, table))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
