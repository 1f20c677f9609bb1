"""How long a socket's line takes, there and back, as the server measures it: the client's own numbers are never asked for (NK-19)."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterator
from statistics import median

# A spike is one of so many.
_SAMPLES = 9
_OUTSTANDING = 16


def pauses() -> Iterator[float]:
    """Yields pauses between pings, in seconds: a few soon, so that the first round is fair already."""
    yield from (0.0, 0.2, 0.3)
    while True:
        yield 5.0


class Line:
    """The pings of one socket. A pong counts if it answers a ping that is out, once."""

    def __init__(self) -> None:
        self._out: dict[str, float] = {}
        self._took: deque[float] = deque(maxlen=_SAMPLES)

    def ask(self, now: float) -> str:
        """Returns the nonce of a ping that is sent now."""
        if len(self._out) >= _OUTSTANDING:
            del self._out[next(iter(self._out))]
        nonce = secrets.token_urlsafe(12)
        self._out[nonce] = now
        return nonce

    def answered(self, nonce: str, now: float) -> bool:
        """Takes a pong, and returns whether it counts."""
        asked = self._out.pop(nonce, None)
        if asked is None:
            return False
        self._took.append(max(0.0, now - asked))
        return True

    @property
    def milliseconds(self) -> float | None:
        """The median of the last round trips; None before the first."""
        return median(self._took) * 1000 if self._took else None
