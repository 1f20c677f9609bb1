"""Matches come and go by the thousand, and afterwards nothing of them is left but what is kept on purpose, for a time."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from redis import Redis

from deploy.processes import Child
from gloaming.client import ProblemError
from gloaming.night_knight.v1 import night_knight_pb2
from gloaming.table.v1 import table_pb2
from tests.chaos.ledger import Ledger
from tests.chaos.people import Person, module_of
from tests.chaos.stack import Stack, metrics
from tests.harness import EVERY_GAME

# So many come and go at once.
_AT_ONCE = 16
# A finished match is kept for so long here, and a match that is left alone not much longer.
_KEPT_SECONDS = 15.0
ENV = {"GLOAMING_FINISHED_TTL_DAYS": str(_KEPT_SECONDS / 86_400), "GLOAMING_BOT_DELAY_MS": "0", "GLOAMING_LOG_LEVEL": "WARNING"}
# In real time bots play a match to its end, which costs as much as many of the others.
_IN_REAL_TIME = 0.04
# What is left after the last match may take so long to go.
_SETTLE_SECONDS = 60.0
_SETTLED = ("gloaming_watchers", "gloaming_event_streams", "gloaming_sockets", "gloaming_http_in_flight")
_PROGRESS_SECONDS = 5.0


@dataclass
class Size:
    """How much there is of everything.

    Attributes:
        rss_mb: resident memory of each process, MB.
        files: open files, sockets among them, of each process.
        threads: of each process.
        keys: in Redis, but for the answers that are kept a day for whoever repeats a request.
        answers: those.
        channels: that somebody listens to.
        series: samples on each metrics page.
        gauges: what says how much goes on now, all pages together.
    """

    rss_mb: dict[str, float]
    files: dict[str, int]
    threads: dict[str, int]
    keys: int
    answers: int
    channels: int
    series: dict[str, int]
    gauges: float


async def churn(stack: Stack, matches: int, say: Callable[[str], None]) -> tuple[Size, Size, dict[str, Any]]:
    """Lets so many matches come and go, the first fifth of them to warm up, and returns what there was before and after the rest."""
    ledger, began = Ledger(), time.monotonic()
    people = [Person(stack.urls, ledger, f"P{n}", 0) for n in range(_AT_ONCE)]
    done, told = 0, began

    async def go_on(person: Person, rng: random.Random, until: int) -> None:
        nonlocal done, told
        while done < until:
            done += 1
            await _come_and_go(person, rng)
            if time.monotonic() - told > _PROGRESS_SECONDS:
                told = time.monotonic()
                say(f"{told - began:4.0f} s: {done:,} of {matches:,} matches")

    async def all_go_on(until: int) -> Size:
        await asyncio.gather(*(go_on(person, random.Random(n), until) for n, person in enumerate(people)))
        say(f"{time.monotonic() - began:4.0f} s: {done:,} matches are over; waiting until they are forgotten")
        return await _settled(stack)

    try:
        for person in people:
            await person.client.sign_in(person.name)
        before = await all_go_on(matches // 5)
        after = await all_go_on(matches)
    finally:
        for person in people:
            await person.close()
    seconds = time.monotonic() - began
    return before, after, {"matches": done, "seconds": round(seconds, 1), "attempts_failed": dict(ledger.failures), "breaks": ledger.breaks}


async def _come_and_go(person: Person, rng: random.Random) -> None:
    """A match is made, watched, left, and seen to end."""
    real_time = rng.random() < _IN_REAL_TIME
    game = rng.choice([game for game in EVERY_GAME if bool(game.real_time) is real_time])
    table: Any = person.client.game(module_of(game))
    seats = [table_pb2.SeatRequest(player="me")] + [table_pb2.SeatRequest(bot="STANDARD")] * (game.info.min_seats - 1)
    options = night_knight_pb2.Options(countdown_ms=0, own_card_delay_ms=0, action_ms=500) if real_time else None
    match = await table.create_match(seats, options=options, settings=table_pb2.Settings(start_seconds=0))
    resigned = False
    async with aclosing(table.watch(match.id)) as told:
        async for news in told:
            if news.event.event.HasField("match_finished"):
                return
            if not resigned:
                resigned = True
                try:
                    await table.resign(match.id)
                except ProblemError as problem:
                    if problem.reason != "MATCH_FINISHED":
                        raise


async def _settled(stack: Stack) -> Size:
    """What there is when matches that are over have been forgotten."""
    await asyncio.sleep(_KEPT_SECONDS + 1)
    deadline = time.monotonic() + _SETTLE_SECONDS
    while True:
        size = await asyncio.to_thread(measure, stack)
        if (not size.channels and not size.gauges) or time.monotonic() > deadline:
            return size
        await asyncio.sleep(1)


def measure(stack: Stack) -> Size:
    """How much there is now."""
    processes = {name: child for name, child in stack.children.items() if child.running}
    pages = dict(zip(stack.names("gateway"), (f"{url}/metrics" for url in stack.urls), strict=True))
    for game, addresses in stack.local.metrics.items():
        pages |= dict(zip(stack.names(game), (f"http://{address}/metrics" for address in addresses), strict=True))
    samples = {name: metrics(page) for name, page in pages.items()}
    with Redis.from_url(stack.redis[0].url) as client:
        answers = sum(1 for _ in client.scan_iter(match="gateway:answer:*", count=1_000))
        keys, channels = int(client.dbsize()) - answers, len(client.execute_command("PUBSUB", "SHARDCHANNELS"))
    going_on = sum(value for page in samples.values() for name, value in page.items() if name.partition("{")[0] in _SETTLED)
    return Size(
        rss_mb={name: _rss_mb(child) for name, child in processes.items()},
        files={name: len(os.listdir(f"/proc/{child.pid}/fd")) for name, child in processes.items()},
        threads={name: len(os.listdir(f"/proc/{child.pid}/task")) for name, child in processes.items()},
        keys=keys,
        answers=answers,
        channels=channels,
        series={name: len(page) for name, page in samples.items()},
        # The request that asks for a gateway's page is being served.
        gauges=going_on - len(stack.urls),
    )


def _rss_mb(child: Child) -> float:
    pages = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def grown(before: Size, after: Size, matches: int) -> list[str]:
    """What has grown as nothing may that only comes and goes.

    Args:
        before: what there was.
        after: what there was after so many more matches.
        matches: how many.
    """
    found = []
    for name in before.rss_mb:
        more = after.rss_mb[name] - before.rss_mb[name]
        # Arenas are filled for a while; a kilobyte a match would be a leak.
        if more > 12 + matches / 1000:
            found.append(f"{name} has {more:.1f} MB more")
    for what, old, new in (("files", before.files, after.files), ("threads", before.threads, after.threads)):
        found += [f"{name} has {new[name] - old[name]} {what} more" for name in old if new[name] - old[name] > _slack(old[name])]
    found += [
        f"{name} has {after.series[name] - count} metric series more"
        for name, count in before.series.items()
        if after.series[name] > 1.1 * count + 10
    ]
    if after.keys > 1.1 * before.keys + 20:
        found.append(f"{after.keys - before.keys} keys more")
    found += [f"{name} are {value:g}" for name, value in (("channels", after.channels), ("gauges", after.gauges)) if value]
    return found


def _slack(count: int) -> int:
    return max(12, count // 4)


def table(before: Size, after: Size) -> Sequence[str]:
    """Both, for people."""
    lines = [f"{'process':<22} {'rss MB':>15} {'files':>11} {'threads':>11} {'series':>11}"]
    for name in before.rss_mb:
        cells = [_pair(size.get(name), other.get(name)) for size, other in _pairs(before, after)]
        lines.append(f"{name:<22} {cells[0]:>15} {cells[1]:>11} {cells[2]:>11} {cells[3]:>11}")
    lines.append(f"keys {before.keys} → {after.keys}, and answers kept for those who repeat a request {before.answers} → {after.answers}")
    lines.append(f"channels {before.channels} → {after.channels}, streams open {after.gauges:g}")
    return lines


def _pairs(before: Size, after: Size) -> list[tuple[Mapping[str, float], Mapping[str, float]]]:
    return [
        (before.rss_mb, after.rss_mb),
        (before.files, after.files),
        (before.threads, after.threads),
        (before.series, after.series),
    ]


def _pair(before: float | None, after: float | None) -> str:
    return "" if before is None or after is None else f"{before:g} → {after:g}"


async def main(directory: Path, matches: int, say: Callable[[str], None]) -> int:
    """Lets matches come and go, prints what is left of them, and returns the exit status."""
    say("starting …")
    async with Stack(directory, "everysec", replicas=1, env=ENV) as stack:
        before, after, found = await churn(stack, matches, say)
        found["breaks"] += grown(before, after, matches - matches // 5) + list(stack.complaints())
    say("\n".join(["", *table(before, after), ""]))
    say(f"{found['matches']:,} matches came and went in {found['seconds']:.0f} s; {len(found['breaks'])} breaks")
    for line in found["breaks"]:
        say(f"BREAK {line}")
    print(json.dumps({**found, "before": asdict(before), "after": asdict(after)}, indent=2))
    return 1 if found["breaks"] else 0
