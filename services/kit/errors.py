"""Everything that can be wrong with a call, each kind one type with one gRPC code.

Error:
    ├── Unreadable        INVALID_ARGUMENT     it cannot be parsed, or is out of range
    ├── Unauthenticated   UNAUTHENTICATED      no good token
    ├── Forbidden         PERMISSION_DENIED    a good token, but not for this
    ├── NotFound          NOT_FOUND
    ├── Refused           FAILED_PRECONDITION  well-formed, but against the rules now
    ├── Raced             ABORTED              others moved first
    ├── Throttled         RESOURCE_EXHAUSTED   too much, come back later
    └── Unavailable       UNAVAILABLE          not now, come back soon

Rules never raise these: to them a refusal is a value. `reason` is a stable UPPER_SNAKE word, the same on every transport
(google.rpc.ErrorInfo); `detail` is a sentence for people and never depends on what the caller may not know.
"""

from __future__ import annotations

from typing import ClassVar

import grpc

DOMAIN = "gloaming"


class Error(Exception):
    """A call that cannot be served as asked."""

    code: ClassVar[grpc.StatusCode]

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Unreadable(Error):
    """A field that cannot be parsed or is out of range.

    Args:
        field: its path in proto3 JSON names, `move.play.location`; empty for the whole body.
        description: what is wrong with it.
    """

    code = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self, field: str, description: str) -> None:
        super().__init__("INVALID_ARGUMENT", f"{field}: {description}" if field else description)
        self.field = field
        self.description = description

    def within(self, outer: str) -> Unreadable:
        """The same, its field seen from the message that holds it as `outer`."""
        return Unreadable(f"{outer}.{self.field}" if self.field else outer, self.description)


class Unauthenticated(Error):
    """No token, or one that is malformed, foreign, expired or revoked."""

    code = grpc.StatusCode.UNAUTHENTICATED


class Forbidden(Error):
    """A good token that does not reach this far."""

    code = grpc.StatusCode.PERMISSION_DENIED


class NotFound(Error):
    """Nothing by that name."""

    code = grpc.StatusCode.NOT_FOUND


class Refused(Error):
    """Well-formed, but against the rules as things stand."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class Raced(Error):
    """Somebody else moved first."""

    code = grpc.StatusCode.ABORTED


class RetryLater(Error):
    """May go through when tried again after `retry_after` seconds."""

    def __init__(self, reason: str, detail: str, retry_after: float = 1.0) -> None:
        super().__init__(reason, detail)
        self.retry_after = retry_after


class Throttled(RetryLater):
    """More than is allowed."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class Unavailable(RetryLater):
    """Storage or a service cannot be reached, or this replica is about to stop."""

    code = grpc.StatusCode.UNAVAILABLE
