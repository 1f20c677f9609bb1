"""Webhooks from end to end: the processes as they are run, and somebody's push server."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import httpx

from deploy.local import Local
from tests import unlimited

Notice = tuple[dict[str, str], bytes]


@contextmanager
def push_server() -> Iterator[tuple[str, Queue[Notice]]]:
    """Takes what it is sent; gives its URL, and that."""
    taken: Queue[Notice] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.put(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/push", taken
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def test_a_player_who_is_away_is_told_each_turn(tmp_path: Path) -> None:
    env = {
        "REDIS_URL": "",
        "GLOAMING_BOT_DELAY_MS": "0",
        "GLOAMING_WEBHOOKS": "true",
        "GLOAMING_WEBHOOK_NETWORKS": "127.0.0.0/8",
        **unlimited.ENVIRONMENT,
    }
    with Local(tmp_path, env=env) as local, push_server() as (url, taken), httpx.Client(base_url=local.urls[0]) as http:
        session = http.post("/v1/players", json={"name": "Ann"}).json()
        http.headers["Authorization"] = f"Bearer {session['accessToken']}"
        set_ = http.put("/v1/players/me/webhook", json={"url": url})
        assert set_.status_code == 200, set_.text
        key = base64.b64decode(set_.json()["secret"].removeprefix("whsec_"))
        made = http.post("/v1/matches", json={"game": "clans_and_glory", "seats": [{"player": "me"}, {"bot": "STANDARD"}]})
        match_id, versions = made.json()["id"], []
        for turn in range(2):
            headers, body = taken.get(timeout=20)
            signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
            assert headers["webhook-signature"] == f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"
            notice = json.loads(body)
            assert (notice["type"], notice["data"]["matchId"]) == ("turn", match_id)
            versions.append(notice["data"]["version"])
            if turn == 0:
                moves = http.get(f"/v1/matches/{match_id}/moves").json()["moves"]
                assert http.post(f"/v1/matches/{match_id}/moves", json={"move": moves[0]}).status_code == 200
        assert versions[0] < versions[1]
        assert "lastSuccessTime" in http.get("/v1/players/me/webhook").json()
