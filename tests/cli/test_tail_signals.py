"""`vigil tail signals` and `Client.signals`: what they show, and how they come back."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli, eventually, running_vigil
from vigil.cli.commands.signals import cells_of, line_of
from vigil.errors import Unavailable, VigilError
from vigil.sdk.client import ApiError, Client

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with running_vigil(tmp_path_factory.mktemp("signals") / "home") as running:
        yield running


def tail(cli: Cli, *args: str) -> list[dict[str, Any]]:
    done = cli("tail", "signals", "--no-follow", "--json", *args)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_is_kept_is_printed_and_filtered(cli: Cli) -> None:
    """P-2, C-4: JSON lines, each with the cursor that --after takes."""
    cli("send", "remind me in 600 seconds to stretch", "--thread", "s1")
    cli("send", "hello", "--thread", "s2")
    key = "me:vigil:s1"
    eventually(lambda: len(tail(cli, "--kind", "message.sent")) == 2)
    found = tail(cli, "--session", key)
    assert {one["session_key"] for one in found} == {key}
    assert [one["kind"] for one in found][:3] == [
        "session.started", "turn.committed", "timer.scheduled",
    ]  # fmt: skip
    cursors = [one["cursor"] for one in tail(cli)]
    assert cursors == list(range(1, len(cursors) + 1))
    assert [one["cursor"] for one in tail(cli, "--after", "3")] == cursors[3:]
    assert {one["kind"] for one in tail(cli, "--kind", "timer.*")} == {"timer.scheduled"}
    assert tail(cli, "--agent", "nobody") == []
    plain = cli("tail", "signals", "--no-follow", "--session", key).stdout
    assert "A reminder is planned for " in plain
    assert "\x1b" not in plain
    assert cli("tail", "signals", "--kind", "nothing", code=2).stdout == ""
    assert cli("tail", "signals", "--session", "x", code=2).stdout == ""


def test_it_follows_until_ctrl_c(cli: Cli) -> None:
    """P-2: from now on; 130 at the end."""
    process = cli.start("tail", "signals", "--json", "--kind", "message.sent")
    try:
        assert process.stdout is not None
        ready, deadline = False, time.monotonic() + 20
        while not ready:
            assert time.monotonic() < deadline
            cli("send", "hello", "--thread", "f1")
            ready = bool(select.select([process.stdout], [], [], 0.5)[0])
        assert json.loads(process.stdout.readline())["kind"] == "message.sent"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    finally:
        process.kill()
        process.communicate()


def test_a_terminal_shows_a_table(cli: Cli) -> None:
    """C-4: the newest that fit, redrawn in their place; nothing of it is a control code's work."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 110, 0, 0))
    process = cli.start_at(slave, "tail", "signals", "--after", "0")
    seen = ""
    try:
        cli("send", "hello", "--thread", "table")
        deadline = time.monotonic() + 20
        while not ("me:vigil:table" in seen and "Ctrl-C ends it" in seen and "WHAT" in seen):
            assert time.monotonic() < deadline, seen
            if select.select([master], [], [], 0.1)[0]:
                seen += os.read(master, 65536).decode("utf-8", "replace")
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):
            while time.monotonic() < deadline and select.select([master], [], [], 1)[0]:
                os.read(master, 65536)
        assert process.wait(10) == 130
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def test_it_comes_back_to_a_gateway_that_was_restarted(tmp_path: Path) -> None:
    """C-4, X-5: says so once, and misses nothing."""
    with running_vigil(tmp_path / "home", "--processes=6") as cli:
        cli("send", "one", "--thread", "r")
        process = cli.start("tail", "signals", "--after", "0", "--json", "--kind", "message.*")
        try:
            assert process.stdout is not None
            first = json.loads(process.stdout.readline())
            os.kill(cli.run_state.services["gateway"], signal.SIGKILL)
            eventually(lambda: cli("send", "two", "--thread", "r", code=None).returncode == 0)
            second = json.loads(process.stdout.readline())
            assert second["cursor"] > first["cursor"]
            assert first["subject"] != second["subject"]
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=10)
            assert process.returncode == 130
            assert said.count("trying again") == 1
        finally:
            process.kill()
            process.wait()


# ---------------------------------------------------------------- the client


class Server:
    """Answers each connection with the next script, and remembers what was asked."""

    def __init__(self, *scripts: bytes) -> None:
        self._scripts = list(scripts)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked: list[str] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for script in self._scripts:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self.asked.append(connection.recv(65536).decode())
                connection.sendall(script)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@contextlib.contextmanager
def serving(*scripts: bytes) -> Iterator[Server]:
    server = Server(*scripts)
    try:
        yield server
    finally:
        with contextlib.suppress(OSError):
            server.close()


def event(number: int) -> bytes:
    return b'id: %d\nevent: turn.committed\ndata: {"kind":"turn.committed"}\n\n' % number


def test_the_client_goes_on_after_the_last_event_it_got() -> None:
    """C-4: cut off in the middle of an event, before any, and by a 503."""
    unavailable = b"HTTP/1.1 503 Not Now\r\ncontent-length: 0\r\n\r\n"
    away: list[VigilError] = []
    with serving(
        HEAD + b"retry: 1000\nid: 4\n\n",
        HEAD + b":\n\n" + event(5) + b'id: 6\nevent: turn.committed\ndata: {"ki',
        unavailable,
        HEAD + event(6) + event(7),
    ) as server:
        signals = Client(server.url, "pat_x").signals(kind="turn.*", on_away=away.append)
        assert [next(signals)["cursor"] for _ in range(3)] == [5, 6, 7]
        signals.close()
    assert [_last_event_id(asked) for asked in server.asked] == ["", "4", "5", "5"]
    assert all("GET /api/signals?kind=turn.%2A " in asked for asked in server.asked)
    assert [getattr(error, "status", None) for error in away] == [503]


def _last_event_id(request: str) -> str:
    lines = [line for line in request.split("\r\n") if line.lower().startswith("last-event-id:")]
    return lines[0].partition(": ")[2] if lines else ""


def test_the_client_gives_up_when_it_is_told_to() -> None:
    """X-6: nobody there at first, a refusal at any time, and the end of what is stored."""
    with pytest.raises(Unavailable):
        next(Client("http://127.0.0.1:9", "pat_x").signals(after=0))
    refusal = b'HTTP/1.1 401 No\r\ncontent-length: 13\r\n\r\n{"title":"x"}'
    with serving(HEAD + event(1), refusal) as server:
        signals = Client(server.url, "pat_x").signals(after=0)
        assert next(signals)["cursor"] == 1
        with pytest.raises(ApiError, match="x"):
            next(signals)
    with serving(HEAD + event(1) + event(2)) as server:
        stored = list(Client(server.url, "pat_x").signals(follow=False))
        assert [one["cursor"] for one in stored] == [1, 2]
    assert "follow=false" in server.asked[0]


def test_the_client_waits_for_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """X-5: a gateway that is away for long is no reason to break down."""
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1500:
            raise KeyboardInterrupt

    monkeypatch.setattr("vigil.sdk.client.time.sleep", sleep)
    with serving(HEAD + event(1)) as server:
        signals = Client(server.url, "pat_x").signals(after=0)
        assert next(signals)["cursor"] == 1
    with pytest.raises(KeyboardInterrupt):
        next(signals)
    assert max(waits) == waits[-1] == 2.0


def test_what_is_shown_is_harmless() -> None:
    """X-6: what a model or a stranger wrote is one line without control characters."""
    told = {
        "cursor": 3, "at": "2026-01-05T09:00:00Z", "kind": "error.event", "owner": "ann",
        "agent": "vigil", "text": "a\x1b[2J\nb\u202ec", "subject": "x\ty",
    }  # fmt: skip
    assert cells_of(told)[2:] == ("ann:vigil", "a[2J bc", "x y")
    assert line_of(told).count("\n") == 0
