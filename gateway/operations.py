"""What an operation of the API is: a handler together with all that /openapi.json says of it.

@operation("GET", "/v1/players/me", answers={200: says(gateway_pb2.Player)}, tag="players")
async def get_me(self, request: Request) -> Response:
    \"\"\"Own profile.\"\"\"
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast

from google.protobuf.message import Message
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

from gateway.exchange import JSON
from gateway.registry import descriptor_of
from gateway.schemas import Schema, Schemas

Handler: TypeAlias = Callable[[Any, Request], Awaitable[Response]]
Makes: TypeAlias = Callable[[Schemas], Schema]
H = TypeVar("H", bound=Handler)

_OPERATION = "_operation"


class _Identifier(Convertor[str]):
    """A path segment without a colon, which begins a verb: `{match_id:identifier}:resign`."""

    regex = "[^/:]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("identifier", _Identifier())


@dataclass(frozen=True, slots=True)
class Says:
    """What an answer holds.

    Args:
        content: schemas by media type; none for an answer without a body.
        headers: names of headers, described in `gateway.openapi`.
        means: in a word, what it means.
    """

    content: Mapping[str, Makes]
    headers: Sequence[str] = ()
    means: str = ""


def says(message: type[Message] | Makes, *headers: str, means: str = "") -> Says:
    """An answer of one message in JSON."""
    return Says({JSON: makes(message)}, headers, means)


def makes(message: type[Message] | Makes) -> Makes:
    """Returns how a message's schema is made."""
    if isinstance(message, type):
        descriptor = descriptor_of(cast(type[Message], message))
        return lambda schemas: schemas.ref(descriptor)
    return message


def each(name: str) -> Makes:
    """The messages of this name of every game."""
    return lambda schemas: schemas.each(name)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, as /openapi.json describes it; its summary and description are its handler's docstring."""

    method: str
    path: str
    tag: str
    answers: Mapping[int, Says]
    body: Makes | None
    body_required: bool
    parameters: Sequence[str]
    problems: Sequence[int]
    authorized: bool
    id: str
    summary: str
    description: str


def operation(
    method: str,
    path: str,
    *,
    tag: str,
    answers: Mapping[int, Says],
    body: type[Message] | Makes | None = None,
    body_required: bool = True,
    parameters: Sequence[str] = (),
    problems: Sequence[int] = (),
    authorized: bool = True,
) -> Callable[[H], H]:
    """Declares a handler.

    Args:
        path: its parameters are given in `gateway.openapi`.
        answers: by status.
        body: what it takes; every operation that takes a body may also refuse it with 400, 408, 413, 415.
        parameters: of the query and the headers, named as in `gateway.openapi`.
        problems: statuses of refusals that say something of the operation.
        authorized: whether it needs a token.
    """

    def declare(handler: H) -> H:
        summary, _, description = (inspect.getdoc(handler) or "").partition("\n")
        setattr(
            handler,
            _OPERATION,
            Operation(
                method=method,
                path=path,
                tag=tag,
                answers=answers,
                body=None if body is None else makes(body),
                body_required=body_required,
                parameters=parameters,
                problems=problems,
                authorized=authorized,
                id=_camel(handler.__name__),
                summary=summary.rstrip("."),
                description=description.strip(),
            ),
        )
        return handler

    return declare


def declared(kind: type) -> list[Operation]:
    """Returns what a class declares, in the order in which it is written."""
    return [getattr(handler, _OPERATION) for handler in vars(kind).values() if hasattr(handler, _OPERATION)]


def operations_of(resource: object) -> list[tuple[Operation, Callable[[Request], Awaitable[Response]]]]:
    """Returns the operations of a resource, in the order in which they are written."""
    names = (name for kind in type(resource).__mro__ for name in vars(kind))
    handlers = (getattr(resource, name) for name in names)
    return [(getattr(handler, _OPERATION), handler) for handler in handlers if hasattr(handler, _OPERATION)]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
