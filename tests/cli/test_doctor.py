"""`vigil doctor`: each check, in the state where it matters."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli, running_vigil
from tests.support.stack import settings_of
from vigil.cli.doctor import channels, sandbox


def checks(cli: Cli, code: int) -> dict[str, dict[str, str]]:
    found = cli.json("doctor", code=code)
    assert found["ok"] is (code == 0)
    return {check["name"]: check for check in found["checks"]}


def test_a_new_machine_is_fine_but_for_a_model(tmp_path: Path) -> None:
    """P-2: nothing has run yet; nothing is made by looking."""
    cli = Cli(tmp_path / "home")
    found = checks(cli, 0)
    assert found.pop("sandbox")["state"] in ("ok", "warn")  # by what this machine can
    assert {name: c["state"] for name, c in found.items()} == {
        "python": "ok", "services": "ok", "config": "ok", "broker": "ok", "home": "ok",
        "secrets": "ok", "disk": "ok", "model": "warn", "port": "ok", "token": "warn",
        "memory": "ok",
    }  # fmt: skip
    assert "2.15" in found["broker"]["found"]
    assert not cli.home.exists()
    plain = cli("doctor").stdout
    assert "warn  model" in plain
    assert "set ANTHROPIC_API_KEY" in plain


def test_what_runs_is_ours(tmp_path: Path) -> None:
    """P-2: port and token are tried against what runs."""
    with running_vigil(tmp_path / "home") as cli:
        found = checks(cli, 0)
        assert "ours" in found["port"]["found"]
        assert found["token"]["found"] == "of me, admin"
        (cli.home / "token").write_text("pat_" + "x" * 43)
        assert checks(cli, 1)["token"]["state"] == "fail"


@pytest.mark.parametrize(
    ("kind", "reasons", "is_offered", "asked", "state", "said"),
    [
        ("bubblewrap", (), True, "auto", "ok", "bubblewrap"),
        ("landlock", (), True, "landlock", "ok", "landlock"),
        ("landlock", ("bubblewrap: no",), True, "auto", "warn", "landlock; bubblewrap: no"),
        ("off", ("bubblewrap: no", "landlock: old"), False, "auto", "warn", "not offered: bubblew"),
        ("off", ("bubblewrap: no",), False, "bubblewrap", "fail", "not offered: bubblewrap: no"),
        ("off", ("executor.sandbox is off",), False, "off", "ok", "by executor.sandbox"),
        ("off", ("executor.sandbox is off",), True, "off", "warn", "by executor.allow_unsafe"),
    ],
)
def test_the_sandbox(
    kind: Any, reasons: tuple[str, ...], is_offered: bool, asked: str, state: str, said: str
) -> None:
    """Issue 5: which one works, and why not a better one."""
    probed = sandbox._Found(kind=kind, reasons=reasons, is_offered=is_offered)
    found = sandbox.check_of(probed, asked)
    assert found.state == state
    assert said in found.found


def test_the_sandbox_is_tried(tmp_path: Path) -> None:
    """Issue 5: by a process of its own, with the settings of this home."""
    cli = Cli(tmp_path / "home", VIGIL_EXECUTOR__SANDBOX="off")
    found = checks(cli, 0)["sandbox"]
    assert found["found"] == "none, so the tool shell is not offered, by executor.sandbox"


@pytest.mark.parametrize(
    ("environ", "name", "state"),
    [
        ({"ANTHROPIC_API_KEY": "sk-ant-secret"}, "model", "ok"),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, "model", "ok"),
        ({"VIGIL_MODEL": "claude-opus-5-5"}, "model", "fail"),
        ({"VIGIL_MODEL": "rehearsal", "ANTHROPIC_API_KEY": "sk-ant-secret"}, "model", "warn"),
        ({"VIGIL_GATEWAY__RATE_PER_S": "-1"}, "config", "fail"),
        ({"TIMER_POLL_INTERVAL_MS": "5"}, "config", "warn"),
        ({"NATS_URL": "nats://127.0.0.1:9"}, "broker", "fail"),
        ({"VIGIL_MEMORY__EMBEDDER": "openai"}, "embedder", "fail"),
        ({"VIGIL_MEMORY__EMBEDDER": "onnx"}, "embedder", "fail"),
        (
            {"VIGIL_MEMORY__EMBEDDER": "onnx", "VIGIL_MEMORY__EMBEDDER_MODEL": "/no/folder"},
            "embedder",
            "warn",
        ),
        ({"QDRANT_URL": "http://127.0.0.1:9"}, "qdrant", "warn"),
        ({"QDRANT_URL": "ftp://127.0.0.1"}, "qdrant", "fail"),
        ({"VIGIL_GATEWAY__DISK_FREE_BYTES_MIN": str(2**60)}, "disk", "fail"),
    ],
)
def test_settings(tmp_path: Path, environ: dict[str, str], name: str, state: str) -> None:
    """P-2, P-3: each names the setting and what to do; keys are never shown."""
    cli = Cli(tmp_path / "home", **environ)
    found = checks(cli, 1 if state == "fail" else 0)
    assert found[name]["state"] == state
    assert (found[name]["advice"] == "") is (state == "ok")
    assert "sk-ant-secret" not in str(found)


def test_a_taken_port(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        cli = Cli(tmp_path / "home", VIGIL_PORT=str(taken.getsockname()[1]))
        assert checks(cli, 1)["port"]["state"] == "fail"


def test_secrets_that_others_can_read(tmp_path: Path) -> None:
    """X-4."""
    cli = Cli(tmp_path / "home")
    cli.home.mkdir(mode=0o755)
    (cli.home / "token").write_text("pat_x")
    (cli.home / "token").chmod(0o644)
    found = checks(cli, 1)
    assert found["home"]["state"] == "warn"
    assert found["secrets"]["state"] == "fail"
    assert str(cli.home / "token") in found["secrets"]["found"]


def test_a_token_that_nobody_can_try(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "home", VIGIL_TOKEN="pat_" + "x" * 43)
    assert checks(cli, 0)["token"]["state"] == "ok"
    elsewhere = Cli(tmp_path / "home", VIGIL_TOKEN="pat_x", VIGIL_URL="http://127.0.0.1:9")
    assert checks(elsewhere, 1)["token"]["state"] == "fail"


SECRET = f"whsec_{'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'}"


def set_up(tmp_path: Path, toml: str) -> Cli:
    cli = Cli(tmp_path / "home")
    cli.home.mkdir(mode=0o700)
    (cli.home / "vigil.toml").write_text(toml)
    (cli.home / "ops.secret").write_text(f"{SECRET}\n")
    (cli.home / "ops.secret").chmod(0o600)
    return cli


@pytest.mark.parametrize(
    ("toml", "state", "said"),
    [
        (f'url = "https://a.example/x"\nsecret = "{SECRET}"', "ok", "https://a.example:443"),
        (f'url = "http://a.example/x"\nsecret = "{SECRET}"', "warn", "not encrypted"),
        (f'url = "http://127.0.0.1/x"\nsecret = "{SECRET}"', "fail", "url: "),
        (f'url = "https://a.example:8443/"\nsecret = "{SECRET}"', "fail", "url: "),
        (f'url = "ftp://a.example/"\nsecret = "{SECRET}"', "fail", "url: "),
        ('url = "https://a.example/"', "fail", "secret: is missing"),
        ('url = "https://a.example/"\nsecret = "hunter2"', "fail", "must be whsec_"),
        ('url = "https://a.example/"\nsecret_file = "/no/such"', "fail", "No such file"),
        ('url = "https://a.example/"\nsecret_file = "ops.secret"', "ok", "https://a.example"),
        (
            f'url = "http://127.0.0.1:9/"\nsecret = "{SECRET}"\nallow_private = true\nports = [9]',
            "ok",
            "http://127.0.0.1:9",
        ),
    ],
)
def test_channels(tmp_path: Path, toml: str, state: str, said: str) -> None:
    """P-2, S9: is the URL allowed, is there a secret? Nobody is called, no secret is shown."""
    cli = set_up(tmp_path, f"[channels.ops]\n{toml}\n")
    found = checks(cli, 1 if state == "fail" else 0)["channel ops"]
    assert (found["state"], found["advice"] == "") == (state, state == "ok")
    assert said in found["found"]
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    ("secrets", "mode", "state"),
    [
        ("s3cr3t\nb\n", 0o600, "ok"),
        ("s3cr3t", 0o644, "warn"),
        ("\n", 0o600, "fail"),
        (None, 0, "fail"),
    ],
)
def test_hooks(tmp_path: Path, secrets: str | None, mode: int, state: str) -> None:
    """P-2, S7: can its secrets be read, and by nobody else?"""
    cli = set_up(
        tmp_path, '[hooks.git]\nuser = "me"\nthread = "t1"\nsecrets_file = "git.secrets"\n'
    )
    if secrets is not None:
        (cli.home / "git.secrets").write_text(secrets)
        (cli.home / "git.secrets").chmod(mode)
    found = checks(cli, 1 if state == "fail" else 0)["hook git"]
    assert found["state"] == state
    assert "s3cr3t" not in found["found"].replace(str(tmp_path), "")


def test_a_channel_that_nobody_has_set_up(tmp_path: Path) -> None:
    """P-2: what is missing is named."""
    cli = set_up(tmp_path, '[people.ann]\nchannel = "ops"\n')
    found = checks(cli, 1)["config"]
    assert found["state"] == "fail"
    assert "ops" in found["found"]


@pytest.mark.parametrize(
    ("environ", "state"),
    [
        ({}, "ok"),
        ({"VIGIL_METRICS__HOST": "0.0.0.0"}, "warn"),  # noqa: S104 - a setting
    ],
)
def test_the_port_for_metrics(tmp_path: Path, environ: dict[str, str], state: str) -> None:
    """X-7."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        cli = Cli(tmp_path / "home", VIGIL_METRICS__PORT=port, **environ)
        taken.listen()
        assert checks(cli, 0)["metrics"]["state"] == "warn"
    assert checks(cli, 0)["metrics"]["state"] == state


@pytest.mark.parametrize(
    ("nodes", "replicas", "state"), [(0, 3, "fail"), (3, 1, "warn"), (3, 2, "warn"), (3, 3, "ok")]
)
def test_replicas_and_nodes(tmp_path: Path, nodes: int, replicas: int, state: str) -> None:
    """X-5: what the two settings are together, whether or not the cluster can be reached."""
    url = ",".join(["nats://127.0.0.1:9"] * nodes)
    found = channels.replicas(settings_of(tmp_path, nats={"url": url, "replicas": replicas}))
    assert found is not None
    assert found.state == state
    assert (found.advice == "") is (state == "ok")


class _Qdrant(BaseHTTPRequestHandler):
    """Answers as a Qdrant server with a key does."""

    def do_GET(self) -> None:
        is_known = self.headers.get("api-key") == "secret-key"
        self.send_response(200 if is_known else 401)
        self.end_headers()

    def log_message(self, *args: object) -> None: ...


@pytest.mark.parametrize(("key", "state"), [("secret-key", "ok"), ("", "fail")])
def test_a_qdrant_server_is_asked(tmp_path: Path, key: str, state: str) -> None:
    """P-2: whether it answers and takes the key, which is not shown."""
    server = HTTPServer(("127.0.0.1", 0), _Qdrant)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        environ = {"QDRANT_URL": f"http://127.0.0.1:{server.server_port}"}
        cli = Cli(tmp_path / "home", **environ, **({"QDRANT_API_KEY": key} if key else {}))
        found = checks(cli, 0 if state == "ok" else 1)["qdrant"]
        assert found["state"] == state
        assert "secret-key" not in cli("doctor", code=None).stdout
    finally:
        server.shutdown()
        server.server_close()


def test_what_memory_has_made(tmp_path: Path) -> None:
    """P-2, M-9: how many databases there are, and how large."""
    with running_vigil(tmp_path / "home") as cli:
        assert "1 database" in checks(cli, 0)["memory"]["found"]
