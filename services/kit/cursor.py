"""A place in a match's events, opaque to clients and the same on every transport.

It names an event, `version-n`, and the history that the event belongs to: each commit draws a random mark, so that after a failover which
lost events a cursor of the lost history fits nothing in the new one.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import NamedTuple

from services.kit.errors import Unreadable

_LAYOUT = struct.Struct(">IH6s")
MARK_BYTES = 6


class Cursor(NamedTuple):
    """A place right after one event.

    Args:
        version: the match's version that the event belongs to.
        n: the event's number in that version, from 0.
        mark: the random mark of the commit that made it.
    """

    version: int
    n: int
    mark: bytes

    def __str__(self) -> str:
        """The cursor as clients see it: 16 characters of base64url."""
        return base64.urlsafe_b64encode(_LAYOUT.pack(*self)).decode()

    @property
    def entry(self) -> str:
        """The id of the event in the match's stream."""
        return f"{self.version}-{self.n}"

    @classmethod
    def parse(cls, text: str, field: str = "afterCursor") -> Cursor:
        """Reads a cursor that a client sends back.

        Raises:
            Unreadable: it is none of ours.
        """
        try:
            return cls(*_LAYOUT.unpack(base64.b64decode(text.encode(), altchars=b"-_", validate=True)))
        except (binascii.Error, struct.error, UnicodeEncodeError) as fault:
            raise Unreadable(field, "not a cursor") from fault


# The place before the first event: it fits every history.
BEGINNING = Cursor(0, 0, bytes(MARK_BYTES))
START = str(BEGINNING)
