"""How often something may be, counted in this process: buckets of tokens, of which each call takes one, and which come back one by one."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from dataclasses import dataclass

# So many players' buckets a process keeps; whoever has not been there for longest begins with a full one again.
_REMEMBERED = 65_536


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something may be: `burst` times at once, and once more each `interval` seconds."""

    interval: float
    burst: int


def rate(text: str) -> Rate | None:
    """Reads a limit, so many a minute after so many at once; None is no limit.

    Raises:
        ValueError: it is neither.
    """
    if text == "0":
        return None
    if not re.fullmatch(r"[1-9]\d{0,6}:[1-9]\d{0,6}", text, re.ASCII):
        raise ValueError("give how many a minute and how many at once, as in 60:120, or 0 for no limit")
    a_minute, burst = text.split(":")
    return Rate(60 / int(a_minute), int(burst))


class Buckets:
    """Buckets of the same rate, by whose they are.

    Args:
        rate: None where everything goes.
    """

    def __init__(self, rate: Rate | None, most: int = _REMEMBERED) -> None:
        self._rate = rate
        self._most = most
        # When each is full again, by the monotonic clock; in the order of use.
        self._full: OrderedDict[str, float] = OrderedDict()

    def take(self, whose: str) -> float:
        """Takes a token. Returns 0, or in how many seconds there is one."""
        if self._rate is None:
            return 0.0
        now = time.monotonic()
        full = max(now, self._full.get(whose, now)) + self._rate.interval
        early = full - self._rate.interval * self._rate.burst - now
        # Sums of floats are a little off: a whole burst must fit.
        if early > 1e-6:
            return early
        self._full[whose] = full
        self._full.move_to_end(whose)
        if len(self._full) > self._most:
            self._full.popitem(last=False)
        return 0.0
