"""`vigil dead`, and a channel through the whole of Vigil: from the model's wish to the receiver."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from standardwebhooks import Webhook

from tests.support.cli import Cli, eventually, running_vigil
from tests.support.receiver import SECRET


class Handler(BaseHTTPRequestHandler):
    """Answers what the test says; keeps what came."""

    status: ClassVar[int] = 410
    came: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        Webhook(SECRET).verify(body, dict(self.headers))
        self.came.append(msgspec.json.decode(body))
        self.send_response(self.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[ThreadingHTTPServer]:
    Handler.came, Handler.status = [], 410
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def settings(port: int) -> str:
    return f"""
[autonomy]
enabled = true
cooldown_ms = 0

[person]
channel = "ops"

[channels.ops]
url = "http://127.0.0.1:{port}/in"
secret = "{SECRET}"
ports = [{port}]
allow_private = true
"""


def test_a_follow_up_goes_over_the_channel_and_a_person_requeues_it(
    tmp_path: Path, receiver: ThreadingHTTPServer
) -> None:
    """D-1, S-10, P-2: listed, shown, requeued once, delivered; another is discarded."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "vigil.toml").write_text(settings(receiver.server_address[1]))
    with running_vigil(home) as cli:
        assert cli.json("dead") == {"letters": []}
        cli("send", "--thread", "t1", "check back in 1 seconds")
        eventually(lambda: len(cli.json("dead")["letters"]) == 1)
        (letter,) = cli.json("dead", "list", "--service", "delivery")["letters"]
        assert letter["cause"].startswith("failed: 410 Gone")
        (came,) = Handler.came
        assert (came["tag"], came["is_autonomous"]) == ("Agent follow-up", True)
        assert letter["effect_id"] == came["id"]
        shown = cli("dead", "show", letter["id"]).stdout
        assert came["text"] in shown
        assert "410 Gone" in cli("dead").stdout
        Handler.status = 204
        assert "Requeued" in cli("dead", "requeue", letter["id"]).stderr
        eventually(lambda: len(Handler.came) == 2)
        assert Handler.came[0] == Handler.came[1]
        cli("dead", "requeue", letter["id"], code=5)
        assert cli.json("dead")["letters"] == []
        (ended,) = cli.json("dead", "--all")["letters"]
        assert ended["ended"]["action"] == "requeued"
        _discard_another(cli)
        cli("dead", "show", "nothing", code=3)
        log = (home / "logs" / "up.log").read_text()
        assert SECRET not in log
        assert "/in" not in log


def _discard_another(cli: Cli) -> None:
    Handler.status = 410
    cli("send", "--thread", "t2", "check back in 1 seconds")
    eventually(lambda: len(cli.json("dead")["letters"]) == 1)
    (letter,) = cli.json("dead")["letters"]
    assert "Discarded" in cli("dead", "discard", letter["id"]).stderr
    cli("dead", "discard", letter["id"], code=5)
    assert len(cli.json("dead", "--all")["letters"]) == 2


def test_a_channel_that_cannot_work_stops_the_start(tmp_path: Path) -> None:
    """X-6: with field and reason, and without the secret."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    text = settings(9).replace(SECRET, "whsec_short").replace("allow_private = true", "")
    (home / "vigil.toml").write_text(text)
    cli = Cli(home)
    try:
        done = cli("up", "--detach", code=None)
    finally:
        cli.end()
    assert done.returncode not in (0, 137)
    assert "channels.ops.url: leads to 127.0.0.1" in done.stderr
    assert "whsec_short" not in done.stderr
