"""Feeds: everybody on this replica who watches a match, told of it together.

A feed follows its match's stream: by bells where they can be trusted, by reading it where they cannot. A newcomer reads for itself what it
has missed, and then hears with the others. So what is told of a match costs one reading, however many watch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

from services.kit import metrics
from services.kit.bell import Bells
from services.kit.cursor import Cursor
from services.kit.errors import Throttled, Unavailable
from services.kit.sessions import Bell, Placed, Session, Sessions, place_of, read_bell

# So many entries are read at once.
_READ_AT_ONCE = 100
# A newcomer further behind than this, in versions, gets a snapshot instead of everything it missed.
_REPLAYED_AT_MOST = 500
# A newcomer that has more than so much to hear of by the time it has read what it missed, reads on instead.
_MISSED_AT_MOST = 200
# So much may wait for a reader.
_WAITING_AT_MOST = 512
# A feed that hears nothing for so long looks at the stream: its ear may have been cut off without anybody noticing.
_SILENCE_SECONDS = 15.0
# So many events back it knows what it has told: its own replica's news comes twice, by itself and by the bell.
_REMEMBERED = 256

Load = Callable[[str], Awaitable[Session]]
# The seat as which a session may be seen, or None for a spectator; raises Forbidden.
ViewerOf = Callable[[Session], int | None]


class Telling:
    """Entries that are told to many at once: what is made of them for some serves the others too.

    Attributes:
        match_id: the match's id.
        placed: the entries at their places, in order; at least one.
        cursor: the place of the last, as clients see it.
        made: what was made of them, by the viewer for whom it was; None stands for all who know no more than spectators.
    """

    __slots__ = ("_privy", "cursor", "made", "match_id", "placed")

    def __init__(self, match_id: str, placed: Sequence[Placed]) -> None:
        self.match_id = match_id
        self.placed = placed
        self.cursor = str(placed[-1].cursor)
        self.made: dict[int | None, bytes] = {}
        self._privy = {seat for each in placed for seat in each.entry.private}

    def seen_as(self, viewer: int | None) -> int | None:
        """The viewer, or None if it is told what spectators are."""
        return viewer if viewer in self._privy else None


class Watcher(Protocol):
    """One who watches a match. Only `room` may wait."""

    def snapshot(self, session: Session, viewer: int | None) -> None:
        """The match as it is; events follow from there on."""

    def events(self, telling: Telling, viewer: int | None) -> None:
        """The next events, as a viewer may know them."""

    async def room(self) -> None:
        """Returns when it can take more of what it has missed."""


class Feeds:
    """Every match that is watched on this replica.

    Args:
        load: reads a match as it stands.
        seat_given_up: whether an entry says that the seat's player has resigned, and from now on only watches.
        attended: hears of a match that somebody with a seat began or ceased to watch, and whether it is over.
    """

    def __init__(
        self,
        sessions: Sessions,
        bells: Bells,
        load: Load,
        seat_given_up: Callable[[Placed, int], bool],
        attended: Callable[[str, bool], None],
    ) -> None:
        self.sessions = sessions
        self.bells = bells
        self.load = load
        self.seat_given_up = seat_given_up
        self.attended = attended
        self._feeds: dict[str, _Feed] = {}

    async def watch(self, match_id: str, after: Cursor | None, viewer_of: ViewerOf, watcher: Watcher) -> None:
        """Tells a watcher of a match until it is over: every event after a cursor that fits; else a snapshot, and every event after that.

        Raises:
            NotFound, Forbidden: there is no such match, or not for this watcher.
            Unavailable: the storage does not answer, or this replica is about to stop (DRAINING): go on elsewhere from the last place.
        """
        feed = self._feeds.get(match_id)
        if feed is None:
            feed = self._feeds[match_id] = _Feed(self, match_id)
        watch = _Watch(self, watcher, viewer_of, after)
        feed.watches[watch] = None
        over = False
        try:
            if await feed.bring(watch):
                if watch.viewer is not None:
                    self.attended(match_id, over)
                await watch.over
            over = True
        finally:
            del feed.watches[watch]
            if watch.was_seated:
                self.attended(match_id, over)
            if not feed.watches:
                await feed.close()

    def seats(self, match_id: str) -> frozenset[int]:
        """The seats whose players watch a match on this replica."""
        feed = self._feeds.get(match_id)
        watches = feed.watches if feed else ()
        return frozenset(watch.viewer for watch in watches if watch.viewer is not None and not watch.reading)

    def told(self, match_id: str, bell: Bell) -> None:
        """Rings for what this replica itself has just stored, without waiting for Redis to say so."""
        if feed := self._feeds.get(match_id):
            feed.ring(bell)

    async def read(
        self, match_id: str, after: Cursor | None, viewer_of: ViewerOf
    ) -> AsyncGenerator[tuple[Session | Placed, int | None] | None]:
        """Yields what `watch` tells, with the viewer for whom it is meant, at the reader's pace; None after some seconds of silence.

        Raises:
            Throttled: SLOW_READER: more waited for the reader than may.
            Error: as `watch`.
        """
        reader = _Reader()
        watching = asyncio.create_task(self.watch(match_id, after, viewer_of, reader))
        watching.add_done_callback(lambda _: reader.news.set())
        try:
            while True:
                while reader.told and not reader.is_slow:
                    yield reader.told.popleft()
                    reader.taken.set()
                if reader.is_slow:
                    raise Throttled("SLOW_READER", "this reads slower than things happen; go on from the last cursor")
                if watching.done():
                    watching.result()
                    return
                reader.news.clear()
                try:
                    async with asyncio.timeout(_SILENCE_SECONDS):
                        await reader.news.wait()
                except TimeoutError:
                    yield None
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def forget(self, match_id: str, feed: _Feed) -> None:
        """Leaves out a feed that tells nothing any more."""
        if self._feeds.get(match_id) is feed:
            del self._feeds[match_id]


class _Reader:
    """A watcher for whom a bounded number of tellings may wait."""

    def __init__(self) -> None:
        self.told: deque[tuple[Session | Placed, int | None]] = deque()
        self.news = asyncio.Event()
        self.taken = asyncio.Event()
        self.is_slow = False

    def snapshot(self, session: Session, viewer: int | None) -> None:
        self._put(session, viewer)

    def events(self, telling: Telling, viewer: int | None) -> None:
        for placed in telling.placed:
            self._put(placed, viewer)

    async def room(self) -> None:
        while len(self.told) > _WAITING_AT_MOST // 2:
            self.taken.clear()
            await self.taken.wait()

    def _put(self, what: Session | Placed, viewer: int | None) -> None:
        self.is_slow = self.is_slow or len(self.told) >= _WAITING_AT_MOST
        if not self.is_slow:
            self.told.append((what, viewer))
        self.news.set()


class _Watch:
    """One watcher's place in a feed. While it reads for itself what it missed, `missed` holds what the feed told meanwhile.

    Where that was too much, or history has changed under it, that is None, and it reads again.
    """

    def __init__(self, feeds: Feeds, watcher: Watcher, viewer_of: ViewerOf, after: Cursor | None) -> None:
        self.watcher = watcher
        self.viewer_of = viewer_of
        self.after = after
        self.viewer: int | None = None
        self.was_seated = False
        self.reading = True
        self.missed: list[Telling] | None = []
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._seat_given_up = feeds.seat_given_up

    def tell(self, telling: Telling) -> None:
        if not self.reading:
            self.deliver(telling)
        elif self.missed is not None:
            self.missed.append(telling)
            if len(self.missed) > _MISSED_AT_MOST:
                self.missed = None

    def reset(self, session: Session) -> None:
        """Takes in that what was told already may not be true any more."""
        if self.reading:
            self.missed = None
        else:
            self.show(session)

    def deliver(self, telling: Telling) -> None:
        first, last = telling.placed[0].cursor, telling.placed[-1].cursor
        if self.after is None or last[:2] <= self.after[:2]:
            return  # it has read that itself
        if first[:2] <= self.after[:2]:
            telling = Telling(telling.match_id, [placed for placed in telling.placed if placed.cursor[:2] > self.after[:2]])
        for n, placed in enumerate(telling.placed, start=1):
            if self.viewer is not None and self._seat_given_up(placed, self.viewer):
                before, rest = telling.placed[:n], telling.placed[n:]
                self.watcher.events(Telling(telling.match_id, before), self.viewer)
                self.viewer = None
                if not rest:
                    self.after = last
                    return
                telling = Telling(telling.match_id, rest)
                break
        self.watcher.events(telling, self.viewer)
        self.after = last

    def show(self, session: Session) -> None:
        self.viewer = self.viewer_of(session)
        self.watcher.snapshot(session, self.viewer)
        self.after = session.cursor


class _Feed:
    """What is told of one match. It satisfies `bell.Ear`."""

    def __init__(self, feeds: Feeds, match_id: str) -> None:
        self.watches: dict[_Watch, None] = {}
        self._feeds = feeds
        self._match_id = match_id
        self._cursor: Cursor | None = None
        self._at = ""
        self._told: dict[Cursor, None] = {}
        # Whether bells say all there is since the cursor.
        self._trusted = False
        self._look = asyncio.Event()
        # Set once it has a place: from then on, whatever a newcomer does not find in the stream it will be told.
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run())

    def hear(self, message: bytes) -> None:
        if place_of(message) not in self._told:  # what this replica stored itself comes twice
            self.ring(read_bell(message))

    def ring(self, bell: Bell) -> None:
        if bell.placed[0].cursor in self._told:
            return
        if self._trusted and bell.follows == self._at:
            self._tell(bell.placed)
        else:
            self.doubt()

    def doubt(self) -> None:
        self._trusted = False
        self._look.set()

    async def bring(self, watch: _Watch) -> bool:
        """Tells a newcomer what it missed, until it hears with the others; False if the match is over."""
        await asyncio.shield(self._ready)
        while True:
            watch.missed = []
            session = await self._feeds.load(self._match_id)
            watch.viewer = watch.viewer_of(session)
            if not await self._can_go_on(session, watch.after):
                watch.show(session)
            if await self._read(watch):
                return False
            if watch.missed is not None:
                watch.reading, watch.was_seated = False, watch.viewer is not None
                for telling in watch.missed:
                    watch.deliver(telling)
                return not session.table.outcome

    async def close(self) -> None:
        """Ends it: nobody watches any more."""
        self._feeds.forget(self._match_id, self)
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def _can_go_on(self, session: Session, after: Cursor | None) -> bool:
        if after is None:
            return False
        is_near = session.version - after.version <= _REPLAYED_AT_MOST
        if is_near and await self._feeds.sessions.fits(self._match_id, after):
            return True
        metrics.RESUME_MISSES.inc()
        return False

    async def _read(self, watch: _Watch) -> bool:
        """Tells a newcomer what the stream has after its place; whether that is the end of the match."""
        while True:
            assert watch.after is not None
            found = await self._feeds.sessions.entries(self._match_id, watch.after, _READ_AT_ONCE)
            if found:
                watch.deliver(Telling(self._match_id, found))
            if found and found[-1].entry.final:
                return True
            if len(found) < _READ_AT_ONCE:
                return False
            await watch.watcher.room()

    async def _run(self) -> None:
        fault: Exception | None = None
        try:
            async with self._feeds.bells.listen(self._feeds.sessions.bell(self._match_id), self):
                while not await self._catch_up():
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_SILENCE_SECONDS):
                            await self._look.wait()
                        continue
                    self._trusted = False
        except Exception as error:
            fault = error  # each watcher's to deal with
        finally:
            self._feeds.forget(self._match_id, self)
            _end(self._ready, fault)
            for watch in self.watches:
                _end(watch.over, fault)

    async def _catch_up(self) -> bool:
        """Tells what the stream has after the cursor, and from then on what bells say; whether the match is over."""
        self._look.clear()
        if self._feeds.bells.draining:
            raise Unavailable("DRAINING", "this replica is about to stop; go on elsewhere with the last cursor", retry_after=0)
        if self._trusted:
            return False
        sessions = self._feeds.sessions
        session = await self._feeds.load(self._match_id)
        if self._cursor is None:
            self._move(session.cursor)
            self._ready.set_result(None)
        elif not await sessions.fits(self._match_id, self._cursor):
            # A failover of the storage has lost what was told already.
            self._move(session.cursor)
            for watch in self.watches:
                watch.reset(session)
        assert self._cursor is not None
        while found := await sessions.entries(self._match_id, self._cursor, _READ_AT_ONCE):
            self._tell(found)
        # Whatever rang meanwhile may be newer than what was read.
        self._trusted = not self._look.is_set()
        return session.table.outcome is not None

    def _tell(self, entries: Sequence[Placed]) -> None:
        telling = Telling(self._match_id, entries)
        for watch in self.watches:
            watch.tell(telling)
        if entries[-1].entry.final:
            for watch in self.watches:
                if not watch.reading:
                    _end(watch.over, None)
        # A bell is known by its first entry; whatever was read from the stream may have begun one.
        self._told.update(dict.fromkeys([placed.cursor for placed in entries]))
        while len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
        self._move(entries[-1].cursor)

    def _move(self, cursor: Cursor) -> None:
        self._cursor, self._at = cursor, cursor.entry


def _end(over: asyncio.Future[None], fault: Exception | None) -> None:
    if over.done():
        return
    if fault is None:
        over.set_result(None)
    else:
        over.set_exception(fault)
        over.exception()  # whoever waits for it is told; nobody needs to
