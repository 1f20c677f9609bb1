"""Chance that can be checked afterwards (ALL-03).

Everything random in a match derives from one secret seed of 32 bytes:

1. The commitment, public from the start, is SHA-256(seed).
2. Each purpose has a stream, named by a label (`seating`, `deck/0`). Its bytes are the blocks HMAC-SHA-256(key=seed, message=label ‖ 0x00
   ‖ counter), the label in UTF-8, the counter 0, 1, 2, … as four bytes, big-endian.
3. A stream is read as 32-bit words, big-endian. A number below n is the first word w with w < 2³² - (2³² mod n), taken mod n; other words
   are skipped.
4. A list is shuffled from the top: for i from its last index down to 1, swap items i and j, j being a number below i + 1.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

SEED_BYTES = 32


def new_seed() -> bytes:
    """A seed from the system's secure source."""
    return secrets.token_bytes(SEED_BYTES)


def commitment(seed: bytes) -> str:
    """What is published of a seed before the end: its SHA-256, in hexadecimal."""
    return hashlib.sha256(seed).hexdigest()


class Chance:
    """The streams of one seed. Streams are independent, and each call begins its stream anew: a label is used for one purpose once."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed

    def shuffle(self, label: str, items: Sequence[T]) -> tuple[T, ...]:
        """Returns the items in the order that the stream of that label gives."""
        words = self._words(label)
        shuffled = list(items)
        for i in range(len(shuffled) - 1, 0, -1):
            j = _below(i + 1, words)
            shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
        return tuple(shuffled)

    def _words(self, label: str) -> Iterator[int]:
        counter = 0
        while True:
            block = hmac.digest(self._seed, label.encode() + b"\0" + counter.to_bytes(4, "big"), "sha256")
            for at in range(0, len(block), 4):
                yield int.from_bytes(block[at : at + 4], "big")
            counter += 1


def _below(n: int, words: Iterator[int]) -> int:
    limit = 2**32 - 2**32 % n
    return next(word for word in words if word < limit) % n
