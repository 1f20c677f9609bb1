"""/openapi.json, made of the operations themselves (OpenAPI 3.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from gateway import frames, problems
from gateway.exchange import JSON
from gateway.limits import LIMITED
from gateway.matches import MOST_A_PAGE, PAGE
from gateway.operations import Operation, Says
from gateway.protocol import SOCKET_PATH
from gateway.registry import GAMES, descriptor_of
from gateway.schemas import Schemas
from gloaming.gateway.v1 import gateway_pb2
from gloaming.live.v1 import live_pb2
from gloaming.table.v1 import table_pb2

_DESCRIPTION = """\
Every body is a protobuf message in canonical proto3 JSON: lowerCamelCase names, enums as their names; whoever has generated protobuf types
can read it with their own library. What is sent may leave out fields that have their default. What is received may hold fields and enum
values that are newer than this document: skip them.

Sign in with `POST /v1/players`, then send `Authorization: Bearer <accessToken>`. Errors are `application/problem+json` (RFC 9457); `reason`
is the word that gRPC's ErrorInfo has.
"""

_SOCKET = """\
Offer one of the subprotocols and, where no header can be set, the token beside it as `bearer.<accessToken>`. Each message of a client's is
a `client` frame, each of the server's a `server` frame; in `gloaming.v1.proto` these are binary, of the package gloaming.live.v1.
"""

_TAGS = {
    "players": "Who plays: guest sign-in, tokens, profiles.",
    "games": "What can be played, with JSON Schemas.",
    "matches": "Plays of a game: making, watching, moving, resigning, records.",
    "rooms": "Private tables: whoever has the code may join.",
    "tickets": "Wishes for a match with others.",
    "operators": "For who runs the server.",
}

_KEY = "Names this request. A retry under the same key gets the first answer; another body under it is 422 (REQUEST_ID_REUSED)."


def _page_size(usual: int, most: int) -> dict[str, Any]:
    return {
        "name": "pageSize",
        "in": "query",
        "schema": {"type": "integer", "format": "int32", "minimum": 0, "default": usual},
        "description": f"At most so many; 0 means {usual}, more than {most} means {most}.",
    }


_PARAMETERS: Mapping[str, dict[str, Any]] = {
    "player_id": {"in": "path", "schema": {"type": "string"}, "description": "The player's id."},
    "game_id": {"in": "path", "schema": {"type": "string", "enum": list(GAMES)}, "description": "The game's id."},
    "match_id": {"in": "path", "schema": {"type": "string"}, "description": "The match's id."},
    "code": {"in": "path", "schema": {"type": "string"}, "description": "The room's code, in capitals or not."},
    "ticket_id": {"in": "path", "schema": {"type": "string"}, "description": "The ticket's id."},
    "Idempotency-Key": {"in": "header", "schema": {"type": "string", "pattern": "^[ -~]{1,128}$"}, "description": _KEY},
    "Idempotency-Key-Long": {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "pattern": "^[ -~]{16,128}$"},
        "description": f"{_KEY} At least 16 characters here, which nobody could guess: a UUID.",
    },
    "If-Match": {
        "in": "header",
        "schema": {"type": "string", "pattern": r'^("\d{1,10}"|\*)$', "examples": ['"7"']},
        "description": "The version of the match, in quotes, for which the move is meant; any by `*`.",
    },
    "If-None-Match": {"in": "header", "schema": {"type": "string"}, "description": "An ETag from before: 304 where nothing has changed."},
    "Last-Event-ID": {
        "in": "header",
        "schema": {"type": "string", "pattern": "^([A-Za-z0-9_-]{16})?$"},
        "description": "The cursor after which to go on; it wins over `after`.",
    },
    "after": {
        "in": "query",
        "schema": {"type": "string", "pattern": "^([A-Za-z0-9_-]{16})?$"},
        "description": "The cursor after which to go on; without one, from the beginning.",
    },
    "pageSize": _page_size(PAGE, MOST_A_PAGE),
    # The services decide this; their protos say the same.
    "pageSize-Events": _page_size(100, 500),
    "wait": {
        "in": "query",
        "schema": {"type": "string", "pattern": r"^(([0-2]?\d(\.\d{1,3})?|30(\.0{1,3})?)s)?$", "examples": ["25s"]},
        "description": "How long to wait for a change, in seconds: at most `30s`.",
    },
    "pageToken": {"in": "query", "schema": {"type": "string"}, "description": "`nextPageToken` of the page before."},
}

_HEADERS: Mapping[str, dict[str, Any]] = {
    "ETag": {"schema": {"type": "string"}, "description": "Names what the caller sees of the match now."},
    "Location": {"schema": {"type": "string"}, "description": "Where it is."},
    "Retry-After": {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds to wait."},
    "WWW-Authenticate": {"schema": {"type": "string"}, "description": "Bearer."},
    "Allow": {"schema": {"type": "string"}, "description": "The methods that this path has."},
}

_PROBLEM_MEANS = {
    400: "It cannot be parsed, or is out of range",
    401: "No good token",
    403: "A good token, but not for this",
    404: "There is no such thing",
    409: "Others were first",
    408: "The body took too long",
    412: "The match is at another version",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "Well-formed, but against the rules now; `reason` says which",
    429: "Too many; try again later",
    503: "Not now; try again",
}
_PROBLEM_HEADERS = {401: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After"}


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """Returns the document."""
    schemas = Schemas(_inputs())
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(re.sub(r":identifier}", "}", each.path), {})[each.method.lower()] = _operation(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Gloaming",
            "version": version("gloaming"),
            "summary": "A game server for tabletop games.",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": paths,
        "webhooks": {"notice": {"post": _notice(schemas)}},
        # OpenAPI has no words for sockets. Standing here, their frames are among the types that generators make.
        "x-websockets": {
            SOCKET_PATH: {
                "summary": "Every match, room and ticket of the caller over one connection",
                "description": _SOCKET,
                "subprotocols": [frames.JSON, frames.PROTO],
                "client": schemas.ref(descriptor_of(live_pb2.ClientFrame)),
                "server": schemas.ref(descriptor_of(live_pb2.ServerFrame)),
                "security": [{"bearer": []}],
            }
        },
        "components": {
            "schemas": dict(sorted(schemas.named.items())),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "An access token from `POST /v1/players`.",
                }
            },
        },
    }


def _notice(schemas: Schemas) -> dict[str, Any]:
    """What a player's webhook gets."""
    headers = {
        "webhook-id": "Names the notice; the same each time that it is sent.",
        "webhook-timestamp": "When it is sent, in seconds since 1970.",
        "webhook-signature": "`v1,` and the HMAC-SHA-256 of `id.timestamp.body` in base64, its key what follows `whsec_` in the secret.",
    }
    return {
        "operationId": "notice",
        "tags": ["players"],
        "summary": "What is told to a webhook",
        "parameters": [
            {"name": name, "in": "header", "required": True, "schema": {"type": "string"}, "description": text}
            for name, text in headers.items()
        ],
        "requestBody": {"required": True, "content": {JSON: {"schema": schemas.ref(descriptor_of(gateway_pb2.WebhookNotice))}}},
        "responses": {
            "2XX": {"description": "It is taken"},
            "410": {"description": "Nothing more is wanted here"},
            "default": {"description": "It is sent again later"},
        },
    }


def _inputs() -> list[Descriptor]:
    """The messages that a client may send."""
    own: list[type[Message]] = [
        gateway_pb2.CreatePlayerRequest,
        gateway_pb2.UpdatePlayerRequest,
        gateway_pb2.RefreshRequest,
        gateway_pb2.Empty,
        gateway_pb2.CreateRoomRequest,
        gateway_pb2.KickRequest,
        gateway_pb2.ReadyRequest,
        gateway_pb2.SetWebhookRequest,
        live_pb2.ClientFrame,
    ]
    games = [game.messages[name] for game in GAMES.values() for name in ("Options", "Move")]
    return [descriptor_of(message) for message in (*own, table_pb2.Settings, *games)]


def _operation(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    described: dict[str, Any] = {"operationId": operation.id, "tags": [operation.tag], "summary": operation.summary}
    if operation.description:
        described["description"] = operation.description
    named = [*re.findall(r"{(\w+):identifier}", operation.path), *operation.parameters]
    if named:
        described["parameters"] = [_parameter(name) for name in named]
    refusals = {*operation.problems}
    if operation.body is not None:
        content = {JSON: {"schema": operation.body(schemas)}}
        described["requestBody"] = {"required": operation.body_required, "content": content}
        refusals |= {400, 408, 413, 415}
    if any(_PARAMETERS[name]["in"] != "path" for name in named if name != "If-None-Match"):
        refusals.add(400)
    if operation.id in LIMITED:
        refusals.add(429)
    described["responses"] = {str(status): _answer(status, says, schemas) for status, says in sorted(operation.answers.items())}
    for status in sorted(refusals):
        described["responses"][str(status)] = _problem(_PROBLEM_MEANS[status], _PROBLEM_HEADERS.get(status), schemas)
    if operation.tag != "operators":
        described["responses"].setdefault("503", _problem(_PROBLEM_MEANS[503], "Retry-After", schemas))
        described["responses"]["default"] = _problem("Any other problem", None, schemas)
    described["security"] = [{"bearer": []}] if operation.authorized else []
    return described


def _parameter(name: str) -> dict[str, Any]:
    described = _PARAMETERS[name]
    return {"name": name, "required": described["in"] == "path", **described}


def _answer(status: int, says: Says, schemas: Schemas) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": says.means or HTTPStatus(status).phrase}
    if says.headers:
        answer["headers"] = {name: _HEADERS[name] for name in says.headers}
    if says.content:
        answer["content"] = {kind: {"schema": make(schemas)} for kind, make in says.content.items()}
    return answer


def _problem(means: str, header: str | None, schemas: Schemas) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": means}
    if header is not None:
        answer["headers"] = {header: _HEADERS[header]}
    answer["content"] = {problems.MEDIA_TYPE: {"schema": schemas.ref(descriptor_of(gateway_pb2.Problem))}}
    return answer
