"""Who gets a pillow at the end of a long line (NK-19): players behind simulated links, at real sockets."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deploy.local import Local
from gloaming.live.v1 import live_pb2
from gloaming.night_knight.v1 import night_knight_pb2 as pb
from services.night_knight.game import GAME as NIGHT_KNIGHT
from tests.e2e.test_live import Hall, hall_of
from tests.harness import all_events, eventually
from tests.live import PROTO, Socket, live

# Round trips, in seconds, of two players who think equally fast.
NEAR, FAR = 0.020, 0.120
THINKS = 0.080
# In turn one of them is slower: where lines are compensated, by more than what a busy machine adds and by less than what their lines
# differ, so that without compensation the near one would win all.
SLOWER = {"COMPENSATED": 0.080, "ARRIVAL": 0.0}
MATCHES, ROUNDS = 4, 40
# Far above both lines, in ms: a grab that a busy machine brings late is waited for.
CAP = 250


@asynccontextmanager
async def link(url: str, round_trip: float) -> AsyncIterator[str]:
    """A way to a socket on which everything takes half a round trip in either direction."""
    target = urlsplit(url)
    tasks: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[tuple[float, bytes]]()

        async def arrive() -> None:
            while True:
                due, data = await queue.get()
                await asyncio.sleep(due - loop.time())
                writer.write(data)

        arriving = asyncio.create_task(arrive())
        try:
            while data := await reader.read(65_536):
                queue.put_nowait((loop.time() + round_trip / 2, data))
        finally:
            arriving.cancel()
            writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to, back = await asyncio.open_connection(target.hostname, target.port)
        for each in (carry(reader, back), carry(to, writer)):
            task = asyncio.create_task(each)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}{target.path}"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def measured(socket: Socket) -> bool:
    """Whether the server has pinged often enough to know the line."""
    return len(socket.pings) >= 3


async def play(socket: Socket, match_id: str, seat: int, slower: float) -> None:
    """Grabs in each round, some time after seeing it revealed, until there were enough."""
    assert (await socket.watch(match_id)).HasField("result")
    revealed = pb.Match.FromString((await socket.next("snapshot")).match).view.round
    while revealed < ROUNDS:
        await asyncio.sleep(THINKS + slower * ((revealed + seat) % 2))
        react = pb.React(round=revealed, action="SHIELD")
        moving = live_pb2.Move(match_id=match_id, move=pb.Move(react=react).SerializeToString())
        await socket.ask(move=moving)
        while True:
            event = pb.Event.FromString((await socket.next("event")).event)
            if event.HasField("match_finished"):
                return
            if event.HasField("own_card_shown") and event.own_card_shown.round > revealed:
                revealed = event.own_card_shown.round
                break


async def grants(hall: Hall, ordering: str) -> list[tuple[int, pb.Reaction]]:
    """The rounds of some matches with the reactions that got their pillows; the first seat is near, the second far, the third idle."""
    options = pb.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=3000, ordering=ordering, max_compensation_ms=CAP)
    async with AsyncExitStack() as stack:
        near, far = [await stack.enter_async_context(link(hall.live_urls[0], length)) for length in (NEAR, FAR)]
        playing, match_ids = [], []
        for n in range(MATCHES):
            names = [f"{who}{ordering.lower()}{n}" for who in ("near", "far", "idle")]
            sockets = [
                await stack.enter_async_context(live(url, hall.token(name), PROTO)) for url, name in zip((near, far), names, strict=False)
            ]
            for socket in sockets:
                await eventually(partial(measured, socket))
            match_ids.append(await hall.create(NIGHT_KNIGHT, names, options))
            playing += [play(socket, match_ids[-1], seat, SLOWER[ordering]) for seat, socket in enumerate(sockets)]
        async with asyncio.timeout(60):
            await asyncio.gather(*playing)
    won = []
    for match_id in match_ids:
        round_ = 0
        for event in [each.event for each in await all_events(hall.player(NIGHT_KNIGHT, "eve"), match_id)]:
            if event.HasField("cards_revealed"):
                round_ = event.cards_revealed.round
            elif event.HasField("reacted") and event.reacted.verdict == pb.Reaction.GRANTED:
                won.append((round_, event.reacted))
    return won


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """A set-up of one's own: lines are measured in it."""
    with Local(Path(tmp_path_factory.mktemp("fair")), env={"REDIS_URL": ""}) as local:
        yield local


@pytest.mark.slow
@pytest.mark.rule("NK-19")
@pytest.mark.scenario(5)
async def test_two_who_are_equally_fast_win_as_often_at_20_and_at_120_ms_when_lines_are_compensated(alone: Local) -> None:
    async with hall_of(alone) as hall:
        won = await grants(hall, "COMPENSATED")
        arrived = await grants(hall, "ARRIVAL")
    shares = {}
    for ordering, pillows in (("compensated", won), ("by arrival", arrived)):
        counted = Counter(reaction.seat for _, reaction in pillows)
        shares[ordering] = counted[0] / len(pillows)
        print(f"{ordering}: {len(pillows)} pillows, {shares[ordering]:.1%} to the player at 20 ms")
        assert len(pillows) > 60
    assert 0.45 <= shares["compensated"] <= 0.55
    assert shares["by arrival"] > 0.95
    # Not by chance: whoever was faster got it.
    faster = [reaction.seat == round_ % 2 for round_, reaction in won]
    assert sum(faster) / len(faster) > 0.9
    for _, reaction in won:
        assert reaction.evidence.compensation_ms == min(reaction.evidence.round_trip_ms, CAP)
        # What is measured is the line, and what both ends take.
        assert reaction.evidence.round_trip_ms >= 1000 * (NEAR, FAR)[reaction.seat] - 5
