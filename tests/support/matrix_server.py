"""A real Synapse on loopback and a free port, in a folder of its own, ended by id.

It's installed apart, into .venv/synapse (see the Makefile), since it pins what Vigil has newer.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2
import pytest

from tests.support.pauses import pauses
from tests.support.ports import _free_port

PYTHON: Final = Path(sys.prefix) / "synapse/bin/python"
HOST: Final = "a.example"
START_S: Final = 120.0
"""Where ten times as much runs as there are cores, 40 s were too few."""
SECRET: Final = b"secret"
CONFIG: Final = """
server_name: a.example
pid_file: {root}/pid
listeners:
- port: {port}
  bind_addresses: ['127.0.0.1']
  type: http
  tls: false
  resources: [{{names: [client, media]}}]
database: {{name: sqlite3, args: {{database: {root}/synapse.db}}}}
signing_key_path: {root}/key
media_store_path: {root}/media
macaroon_secret_key: m
form_secret: f
registration_shared_secret: secret
rc_message: {{per_second: 1000, burst_count: 1000}}
report_stats: false
trusted_key_servers: []
suppress_key_server_warning: true
enable_registration: true
enable_registration_without_verification: true
presence: {{enabled: false}}
bcrypt_rounds: 4
rc_registration: {{per_second: 1000, burst_count: 1000}}
rc_joins: {{local: {{per_second: 1000, burst_count: 1000}}}}
rc_login: {{address: {{per_second: 1000, burst_count: 1000}}}}
rc_invites:
  per_room: {{per_second: 1000, burst_count: 1000}}
  per_user: {{per_second: 1000, burst_count: 1000}}
  per_issuer: {{per_second: 1000, burst_count: 1000}}
"""


def missing() -> str:
    """Return why it can't be started here; empty: it can."""
    return "" if PYTHON.exists() else "Synapse isn't installed (make .venv/.installed-synapse)"


class MatrixServer:
    """The server, and requests to it as programs of people make them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._running: subprocess.Popen[bytes] | None = None
        self._accounts = 0

    def prepare(self) -> None:
        text = CONFIG.format(root=self.root, port=self.port)
        (self.root / "synapse.yaml").write_text(text)
        # As it would be made, by a start of its own.
        key = base64.b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()
        (self.root / "key").write_text(f"ed25519 a_test {key}\n")

    def _run(self) -> subprocess.Popen[bytes]:
        with (self.root / "log").open("ab") as log:
            return subprocess.Popen(
                [str(PYTHON), "-m", "synapse.app.homeserver", "-c", "synapse.yaml"],
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._running = self._run()
        until = time.monotonic() + START_S
        pause_s = pauses()
        while True:
            with contextlib.suppress(httpx2.HTTPError):
                self.ask("GET", "/versions", version="/_matrix/client")
                return
            if time.monotonic() > until or self._running.poll() is not None:
                raise AssertionError(f"Synapse doesn't start: {self.log()}")
            time.sleep(next(pause_s))

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()
            self._running = None

    def log(self) -> str:
        return (self.root / "log").read_text()[-3000:]

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str = "",
        version: str = "/_matrix/client/v3",
    ) -> dict[str, Any]:
        """Ask as a program of a person. Raises: httpx2.HTTPError."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"{self.url}{version}{path}"
        answer = httpx2.request(method, url, json=body, headers=headers, timeout=20)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def account(self, name: str) -> Correspondent:
        """Register somebody whom nobody has had yet."""
        self._accounts += 1
        local = f"{name}{self._accounts}"
        made = self.ask(
            "POST",
            "/register",
            {"username": local, "password": "correct-horse", "auth": {"type": "m.login.dummy"}},
        )
        return Correspondent(self, made["user_id"], made["access_token"])

    def limit(self, user: str) -> None:
        """Have somebody send one message a second from now on, as an administrator may."""
        place = {"version": "/_synapse/admin/v1"}
        who = {"nonce": self.ask("GET", "/register", **place)["nonce"]} | {
            "username": "admin", "password": "correct-horse", "admin": True,
        }  # fmt: skip
        said = "\0".join((who["nonce"], who["username"], who["password"], "admin"))
        who["mac"] = hmac.new(SECRET, said.encode(), "sha1").hexdigest()
        token = self.ask("POST", "/register", who, **place)["access_token"]
        bounds = {"messages_per_second": 1, "burst_count": 1}
        path = f"/users/{quote(user)}/override_ratelimit"
        self.ask("POST", path, bounds, token=token, **place)


class Correspondent:
    """Somebody with an account, and a program for it."""

    def __init__(self, server: MatrixServer, user: str, token: str) -> None:
        self.server = server
        self.user = user
        self.token = token
        self._sent = 0

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return self.server.ask(method, path, body, token=self.token)

    def rename(self, name: str) -> None:
        """Be shown by another name."""
        self.ask("PUT", f"/profile/{quote(self.user)}/displayname", {"displayname": name})

    def create(self, *invited: str, **more: Any) -> str:
        """Make a room and invite; returns its id."""
        wanted = {"preset": "private_chat", "invite": list(invited)} | more
        room: str = self.ask("POST", "/createRoom", wanted)["room_id"]
        return room

    def seal(self, room: str) -> None:
        """Encrypt a room, for good."""
        sealing = {"algorithm": "m.megolm.v1.aes-sha2"}
        self.ask("PUT", f"/rooms/{quote(room)}/state/m.room.encryption/", sealing)

    def invite(self, room: str, user: str) -> None:
        self.ask("POST", f"/rooms/{quote(room)}/invite", {"user_id": user})

    def join(self, room: str) -> None:
        self.ask("POST", f"/join/{quote(room)}", {})

    def say(self, room: str, text: str, **more: Any) -> str:
        """Send a message; returns its event's id."""
        return self.put(room, "m.room.message", {"msgtype": "m.text", "body": text} | more)

    def upload(self, data: bytes) -> str:
        """Have the server keep a file; returns where."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "text/plain"}
        url = f"{self.server.url}/_matrix/media/v3/upload"
        answer = httpx2.post(url, content=data, headers=headers, timeout=20)
        answer.raise_for_status()
        return str(answer.json()["content_uri"])

    def put(self, room: str, type_: str, content: dict[str, Any]) -> str:
        self._sent += 1
        return self.transact(room, type_, content, f"{self._sent}")

    def transact(self, room: str, type_: str, content: dict[str, Any], id_: str) -> str:
        """Send something that is the same when it's sent once more under its id."""
        path = f"/rooms/{quote(room)}/send/{type_}/{id_}"
        event: str = self.ask("PUT", path, content)["event_id"]
        return event

    def messages(self, room: str) -> list[dict[str, Any]]:
        """Return the messages in a room, in order."""
        found: list[dict[str, Any]] = []
        start = ""
        while True:
            more = f"&from={quote(start)}" if start else ""
            page = self.ask("GET", f"/rooms/{quote(room)}/messages?dir=f&limit=100{more}")
            found += [one for one in page["chunk"] if one["type"] == "m.room.message"]
            if "end" not in page:
                return found
            start = page["end"]

    def members(self, room: str) -> set[str]:
        return set(self.ask("GET", f"/rooms/{quote(room)}/joined_members")["joined"])

    def membership(self, room: str, user: str) -> dict[str, Any]:
        """Return what the room says of somebody."""
        return self.ask("GET", f"/rooms/{quote(room)}/state/m.room.member/{quote(user)}")


@contextlib.contextmanager
def running_matrix_server() -> Iterator[MatrixServer]:
    """Synapse, started; the test is skipped where it can't be."""
    if why := missing():
        pytest.skip(why)
    root = Path(tempfile.mkdtemp(prefix="vigil-synapse-"))
    server = MatrixServer(root)
    try:
        server.prepare()
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(root, ignore_errors=True)
