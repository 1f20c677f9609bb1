"""The page to play on, `/`: the files of `gateway/web`, as they are, under a policy that lets nothing else in.

They are plain HTML, CSS and ES modules; nothing is built. A browser asks again whether a file has changed (`ETag`), so that a new version
of the page is never half the old one.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parent / "web"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {"Cache-Control": "no-cache", "Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer", "Vary": "Accept-Encoding"}
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class _File:
    media_type: str
    plain: bytes
    zipped: bytes
    tag: str


class Site:
    """The page's files, read once."""

    def __init__(self) -> None:
        self._files = {path.relative_to(FOLDER).as_posix(): _read(path) for path in FOLDER.rglob("*") if path.suffix in _TYPES}

    async def index(self, request: Request) -> Response:
        """/"""
        return self._answer("index.html", request)

    async def file(self, request: Request) -> Response:
        """/web/…"""
        return self._answer(request.path_params["path"], request)

    def _answer(self, name: str, request: Request) -> Response:
        if (file := self._files.get(name)) is None:
            raise HTTPException(404)
        zipped = "gzip" in request.headers.get("accept-encoding", "")
        # Another encoding is another representation (RFC 9110, 8.8.3), and so has another tag.
        tag = f'"{file.tag}{"-gzip" if zipped else ""}"'
        headers = {**_HEADERS, "ETag": tag}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if zipped:
            headers["Content-Encoding"] = "gzip"
        return Response(file.zipped if zipped else file.plain, headers=headers, media_type=file.media_type)


def _read(path: Path) -> _File:
    data = path.read_bytes()
    return _File(_TYPES[path.suffix], data, gzip.compress(data, mtime=0), hashlib.sha256(data).hexdigest()[:16])
