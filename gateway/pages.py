"""Documents that are the same for everybody: /openapi.json, the page that shows it, and the public keys.

/docs is Swagger UI, served from this machine (from the package fastapi-offline) under a policy that lets nothing else in.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from gateway.exchange import JSON

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gloaming API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="docs"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
_START = b"""SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  persistAuthorization: false,
  presets: [SwaggerUIBundle.presets.apis],
});
"""
_ASSETS = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}


class Pages:
    """The documents.

    Args:
        describe: makes /openapi.json; called once, when it is first asked for.
        jwks_file: the public keys of access tokens (JWKS, RFC 7517).
    """

    def __init__(self, describe: Callable[[], object], jwks_file: Path) -> None:
        self._describe = describe
        self._document: bytes | None = None
        self._jwks = jwks_file.read_bytes()
        self._assets = _assets()

    async def openapi(self, request: Request) -> Response:
        """/openapi.json"""
        if self._document is None:
            self._document = msgspec.json.encode(self._describe())
        return Response(self._document, media_type=JSON)

    async def docs(self, request: Request) -> Response:
        """/docs"""
        return Response(_PAGE, headers={"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer"}, media_type="text/html")

    async def start(self, request: Request) -> Response:
        """/docs/start.js"""
        return Response(_START, media_type="text/javascript")

    async def asset(self, request: Request) -> Response:
        """/docs/swagger-ui…"""
        name = request.url.path.rsplit("/", 1)[1]
        return FileResponse(self._assets / name, media_type=_ASSETS[name], headers={"Cache-Control": "max-age=86400"})

    async def jwks(self, request: Request) -> Response:
        """/.well-known/jwks.json"""
        return Response(self._jwks, headers={"Cache-Control": "max-age=300"}, media_type=JSON)


def _assets() -> Path:
    spec = importlib.util.find_spec("fastapi_offline")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("fastapi-offline is not installed: it holds the files of /docs")
    return Path(spec.origin).parent / "static"
