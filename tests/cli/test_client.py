"""The HTTP client: what becomes of answers that are none, and which exit code they get."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from vigil.cli import exits
from vigil.errors import ConfigError, OutcomeUnknown, Unavailable
from vigil.sdk.client import ApiError, Client, connect
from vigil.settings.config import Config, Settings


@contextlib.contextmanager
def answering(status: int, kind: str, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """A server that always answers the same; yields its URL and the paths it was asked for."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", paths
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, 4), (403, 4), (404, 3), (409, 5), (413, 2), (422, 2), (429, 1), (500, 1), (503, 3)],
)
def test_problems_become_errors_with_an_exit_code(status: int, code: int) -> None:
    """X-6, P-2: the sentence for the person is the problem's detail."""
    body = b'{"title":"No","status":%d,"detail":"because"}' % status
    with answering(status, "application/problem+json", body) as (url, _):
        with pytest.raises(ApiError, match=r"^because$") as caught:
            Client(url, "pat_x").me()
        assert caught.value.status == status
        assert exits.code_of(caught.value) == code


@pytest.mark.parametrize("body", [b"<html>", b"", b"[]", b'"x"'])
def test_something_else_than_vigil(body: bytes) -> None:
    """X-6: a router's page on that port is not an answer."""
    with answering(200, "text/html", body) as (url, _), pytest.raises(Unavailable):
        Client(url, "pat_x").me()


def test_an_error_page_is_an_error() -> None:
    with (
        answering(502, "text/html", b"<html>Bad Gateway") as (url, _),
        pytest.raises(ApiError, match="Bad Gateway"),
    ):
        Client(url, None).me()


def test_no_answer_in_time_is_an_unknown_outcome() -> None:
    """P-2: exit code 124."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(OutcomeUnknown) as caught:
            Client(url, "pat_x", timeout_s=0.1).me()
        assert exits.code_of(caught.value) == exits.TIMEOUT


def test_nobody_there_is_not_ready() -> None:
    with pytest.raises(Unavailable) as caught:
        Client("http://127.0.0.1:9", "pat_x").me()
    assert exits.code_of(caught.value) == exits.NOT_READY


def test_keys_and_paths_are_escaped() -> None:
    """S-2: nothing that a person types becomes another path."""
    with answering(200, "application/json", b"{}") as (url, paths):
        client = Client(url + "/base/", "pat_x")
        client.session("me:vigil:a/../b?c")
        assert paths == ["/base/api/sessions/me:vigil:a%2F..%2Fb%3Fc"]
        assert client.socket_url("a:b:c", client="cli").startswith("ws://127.0.0.1")
        assert "/base/api/ws?session=a%3Ab%3Ac" in client.socket_url("a:b:c", client="cli")


@pytest.mark.parametrize("url", ["", "ftp://x", "127.0.0.1:8420", "http://"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="VIGIL_URL"):
        Client(url)


def test_what_runs_nowhere_is_asked_for_where_it_would_listen(tmp_path: Path) -> None:
    """Else another's Vigil, on the usual port, is asked, and given the token."""
    settings = Settings(config=Config(), home=tmp_path)
    assert connect(settings, {}).url == "http://127.0.0.1:8420"
    (tmp_path / "vigil.toml").write_text("[gateway]\nport = 8777\n")
    assert connect(settings, {}).url == "http://127.0.0.1:8777"
    assert connect(settings, {"VIGIL_GATEWAY__PORT": "8888"}).url == "http://127.0.0.1:8888"
    assert connect(settings, {"VIGIL_PORT": "0"}).url == "http://127.0.0.1:0"  # any free one
    assert connect(settings, {"VIGIL_URL": "http://a.example"}).url == "http://a.example"
    # Whatever else is wrong in the file, the port that it says, or VIGIL_PORT, is where it listens.
    (tmp_path / "vigil.toml").write_text("[gatway]\n[gateway]\nport = 8777\n")
    assert connect(settings, {}).url == "http://127.0.0.1:8777"
    assert connect(settings, {"VIGIL_PORT": "8999"}).url == "http://127.0.0.1:8999"
    (tmp_path / "vigil.toml").write_text("[gateway\n")
    assert connect(settings, {"VIGIL_PORT": "8999"}).url == "http://127.0.0.1:8999"
    for wrong in ("[gateway\n", "gateway = 1\n", "[gateway]\nport = 'x'\n"):
        (tmp_path / "vigil.toml").write_text(wrong)
        assert connect(settings, {}).url == "http://127.0.0.1:8420"


def test_another_vigil_at_the_same_place_is_called_so(tmp_path: Path) -> None:
    """P-4: its token isn't wrong, it's another home's Vigil that is asked."""
    settings = Settings(config=Config(), home=tmp_path)
    refusal = b'{"title": "Unauthorized", "detail": "the token is unknown"}'
    with answering(401, "application/problem+json", refusal) as (url, _):
        port = url.rpartition(":")[2]
        with pytest.raises(ApiError) as known:
            connect(settings, {"VIGIL_URL": url}).me()
        assert str(known.value) == "the token is unknown"
        with pytest.raises(ApiError) as guessed:
            connect(settings, {"VIGIL_PORT": port}).me()
        assert str(guessed.value) == (
            f"the token is unknown: the Vigil of {tmp_path} doesn't run, and another one answers "
            f"at {url}"
        )


def test_the_token_is_never_shown() -> None:
    assert "pat_secret" not in repr(Client("http://127.0.0.1:9", "pat_secret"))
