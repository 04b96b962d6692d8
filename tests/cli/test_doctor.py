"""`vigil doctor`: each check, in the state where it matters."""

from __future__ import annotations

import socket
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli, eventually, running_vigil
from tests.support.stack import settings_of
from vigil.cli.doctor import servers
from vigil.contracts import HeldTool, Shelf
from vigil.doctor import agents, channels, memory, sandbox, search
from vigil.local.mcp_servers import SIGN_IN
from vigil.settings.config import Config, Settings, load
from vigil.settings.sections import SearchSection
from vigil.settings.servers import A2aAgent, McpServer, ToolServer

BARE = {"VIGIL_EXECUTOR__SANDBOX": "off"}
"""For tests of other checks: half of the time is that each sandbox is tried."""


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
        "secrets": "ok", "disk": "ok", "zones": "ok", "model": "warn", "port": "ok",
        "token": "warn", "memory": "ok",
    }  # fmt: skip
    assert "2.15" in found["broker"]["found"]
    assert not cli.home.exists()
    plain = cli("doctor").stdout
    assert "warn  model" in plain
    assert "vigil models key anthropic" in plain


def test_memory_is_as_large_as_what_it_takes_of_the_disk(tmp_path: Path) -> None:
    """Files of the engine of vectors are mostly holes."""
    settings = load({}, home=tmp_path / "home")
    slot = settings.memory / "0"
    (slot / "vectors").mkdir(parents=True)
    (slot / "memory.db").write_bytes(bytes(3 * 1024**2))
    with (slot / "vectors" / "page_0.dat").open("wb") as file:
        file.truncate(100 * 1024**2)
    assert memory.folder(settings).found == "1 database, 3 MiB with the vectors"


def test_an_agent_that_only_sections_name_may_be_a_typo(tmp_path: Path) -> None:
    """P-4: it would begin with the first that the hook brings; one with files there is."""
    hook = f'user = "me"\nthread = "t"\nscheme = "github"\nsecrets = ["{"x" * 16}"]'
    (tmp_path / "vigil.toml").write_text(
        f"""
        [agents.scout]
        [hooks.ci]
        agent = "scuot"
        {hook}
        [hooks.cd]
        agent = "scout"
        {hook}
        [watch.feed]
        source = "feed:https://example.org/feed"
        user = "me"
        agent = "keeper"
        [[grants]]
        name = "look"
        user = "me"
        tool = "wiki__lookup"
        agent = "scuot"
        """
    )
    settings = load({}, home=tmp_path)
    (settings.agents / "keeper").mkdir(parents=True)
    ((name, check),) = agents.checks(settings).items()
    found = check(settings)
    assert name == "agent scuot"
    assert found is not None
    assert (found.state, found.found) == (
        "warn",
        "there is none yet; named by hooks.ci, grants.look",
    )
    assert found.advice == "`vigil agents add scuot`, or scout if you mean that"


def test_what_runs_is_ours(tmp_path: Path) -> None:
    """P-2, M-9: port and token are tried against what runs, and its databases are counted."""
    with running_vigil(tmp_path / "home") as cli:
        found = checks(cli, 0)
        assert "1 database" in found["memory"]["found"]
        assert "ours" in found["port"]["found"]
        assert found["token"]["found"] == "of me, admin"
        team = '[agents.desk]\nkind = "team"\nmembers = ["me", "ben"]\n'
        with (cli.home / "vigil.toml").open("a") as file:
            file.write(team)
        assert checks(cli, 0)["team desk"]["found"] == "me, ben; no token is of ben"
        with (cli.home / "vigil.toml").open("a") as file:
            file.write('[mcp.wiki]\ncommand = "nonesuch"\n')
            for name, tool in {"a": "shel", "b": "wiki__lookup", "c": "wkii__*"}.items():
                file.write(f'[[grants]]\nname = "{name}"\nuser = "me"\ntool = "{tool}"\n')
        eventually(lambda: "not connected: " in cli("mcp", "list").stdout)
        found = checks(cli, 1)
        assert "did you mean shell?" in found["grant a"]["found"]
        assert "grant b" not in found, "nobody knows what a server offers that isn't connected"
        assert "did you mean wiki?" in found["grant c"]["found"]
        wiki = found["server wiki"]
        assert "'nonesuch' is not a program" in wiki["found"]
        assert "correct command and args of [mcp.wiki]" in wiki["advice"]
        (cli.home / "token").write_text("pat_" + "x" * 43)
        assert checks(cli, 1)["token"]["state"] == "fail"


def test_servers_without_anything_that_runs(tmp_path: Path) -> None:
    """P-2: a program that isn't there can't be started; of all others nobody knows."""
    cli = Cli(tmp_path / "home", **BARE)
    cli.home.mkdir(mode=0o700)
    (cli.home / "vigil.toml").write_text(
        '[mcp.wiki]\ncommand = "nonesuch"\n[mcp.off]\ncommand = "nonesuch"\nis_enabled = false\n'
        '[mcp.shell]\ncommand = "sh"\n[a2a.writer]\nurl = "https://b.example/a"\n'
    )
    found = checks(cli, 1)
    assert "server off" not in found
    assert found["server wiki"]["found"] == "command: 'nonesuch' is not a program"
    assert found["server shell"]["found"] == "nothing runs that asks it"
    assert found["server writer"]["state"] == "ok"


@pytest.mark.parametrize(
    ("server", "fields", "state", "found", "advice"),
    [
        (McpServer(command="x"), {"facts": {"state": "connected"}}, "ok", "0 tools", ""),
        (
            McpServer(command="x"),
            {"facts": {"state": "connected"}, "problem": "1 held back until a person approves",
             "held": (HeldTool(name="w__a", digest="b" * 64, pinned=""),)},
            "warn", "0 tools; 1 held back until a person approves", "vigil mcp approve w",
        ),
        (McpServer(command="x"), {"problem": "not connected: gone"}, "fail", "gone", "[mcp.w]"),
        (McpServer(command="/bin/npx"), {"problem": "not connected: gone"}, "fail", "gone",
         "network = true in [mcp.w]"),
        (McpServer(url="https://b.example"), {"problem": "not connected: 500"}, "warn", "500",
         "its url right in [mcp.w]"),
        (McpServer(url="https://b.example"), {"problem": f"not connected: {SIGN_IN} w`"}, "warn",
         "sign-in", "`vigil mcp sign-in w`"),
        (A2aAgent(url="https://b.example"), {"problem": "not connected: 500"}, "warn", "500",
         "[a2a.w]"),
    ],
)  # fmt: skip
def test_servers_as_the_executor_tells_them(
    server: ToolServer, fields: dict[str, Any], state: str, found: str, advice: str
) -> None:
    """P-2: why one offers nothing, or less than it could, and what to do."""
    shelf = Shelf(source="w", at=datetime.now(UTC), **fields)
    check = servers.check_of("w", server, shelf)
    assert check.state == state
    assert found in check.found
    assert advice in check.advice


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
    cli = Cli(tmp_path / "home", **BARE)
    found = checks(cli, 0)["sandbox"]
    assert found["found"] == "none, so the tool shell is not offered, by executor.sandbox"


@pytest.mark.parametrize(
    ("environ", "states"),
    [
        (
            {
                "ANTHROPIC_API_KEY": "sk-ant-secret",
                "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
                "TIMER_POLL_INTERVAL_MS": "5",
                "NATS_URL": "nats://127.0.0.1:9",
                "VIGIL_MEMORY__EMBEDDER": "openai",
                "QDRANT_URL": "http://127.0.0.1:9",
                "VIGIL_GATEWAY__DISK_FREE_BYTES_MIN": str(2**60),
            },
            {"model": "fail", "config": "warn", "broker": "fail", "embedder": "fail",
             "qdrant": "warn", "disk": "fail"},
        ),
        (
            {
                "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
                "VIGIL_MEMORY__EMBEDDER": "onnx",
                "QDRANT_URL": "ftp://127.0.0.1",
            },
            {"model": "fail", "embedder": "fail", "qdrant": "fail"},
        ),
        (
            {
                "VIGIL_MODEL": "claude-opus-5-5",
                "VIGIL_MEMORY__EMBEDDER": "onnx",
                "VIGIL_MEMORY__EMBEDDER_MODEL": "/no/folder",
            },
            {"model": "fail", "embedder": "warn"},
        ),
        ({"VIGIL_MODEL": "rehearsal", "ANTHROPIC_API_KEY": "sk-ant-secret"}, {"model": "warn"}),
        ({"VIGIL_GATEWAY__RATE_PER_S": "-1"}, {"config": "fail"}),
    ],
)  # fmt: skip
def test_settings(tmp_path: Path, environ: dict[str, str], states: dict[str, str]) -> None:
    """P-2, P-3: each names the setting and what to do; keys are never shown."""
    cli = Cli(tmp_path / "home", **BARE, **environ)
    found = checks(cli, 1 if "fail" in states.values() else 0)
    assert {name: found[name]["state"] for name in states} == states
    assert {name for name in states if found[name]["advice"] == ""} == {
        name for name, state in states.items() if state == "ok"
    }
    assert "sk-ant-secret" not in str(found)


def test_a_taken_port(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        cli = Cli(tmp_path / "home", **BARE, VIGIL_PORT=str(taken.getsockname()[1]))
        assert checks(cli, 1)["port"]["state"] == "fail"


def test_secrets_that_others_can_read(tmp_path: Path) -> None:
    """X-4."""
    cli = Cli(tmp_path / "home", **BARE)
    cli.home.mkdir(mode=0o755)
    (cli.home / "token").write_text("pat_x")
    (cli.home / "token").chmod(0o644)
    found = checks(cli, 1)
    assert found["home"]["state"] == "warn"
    assert found["secrets"]["state"] == "fail"
    assert str(cli.home / "token") in found["secrets"]["found"]


def test_a_token_that_nobody_can_try(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "home", **BARE, VIGIL_TOKEN="pat_" + "x" * 43)
    assert checks(cli, 0)["token"]["state"] == "ok"
    elsewhere = Cli(tmp_path / "home", **BARE, VIGIL_TOKEN="pat_x", VIGIL_URL="http://127.0.0.1:9")
    assert checks(elsewhere, 1)["token"]["state"] == "fail"


SECRET = f"whsec_{'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'}"


def set_up(tmp_path: Path, toml: str) -> Cli:
    cli = Cli(tmp_path / "home", **BARE)
    cli.home.mkdir(mode=0o700)
    (cli.home / "vigil.toml").write_text(toml)
    (cli.home / "ops.secret").write_text(f"{SECRET}\n")
    (cli.home / "ops.secret").chmod(0o600)
    return cli


CHANNELS = (
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
)
"""Sections, the state that each is in, and a part of what is said of it."""


def test_channels(tmp_path: Path) -> None:
    """P-2, S9: is the URL allowed, is there a secret? Nobody is called, no secret is shown."""
    sections = (f"[channels.c{n}]\n{toml}\n" for n, (toml, _, _) in enumerate(CHANNELS))
    found = checks(set_up(tmp_path, "".join(sections)), 1)
    for n, (toml, state, said) in enumerate(CHANNELS):
        check = found[f"channel c{n}"]
        assert (check["state"], check["advice"] == "") == (state, state == "ok"), toml
        assert said in check["found"], toml
    assert "hunter2" not in str(found)


@pytest.mark.parametrize("name", ["a.example", "a.example:8443"])
def test_the_exit_code_is_of_the_worst_channel(tmp_path: Path, name: str) -> None:
    """P-2: one that works is no failure; one that can't is."""
    toml = f'[channels.ops]\nurl = "https://{name}/"\nsecret = "{SECRET}"\n'
    found = checks(set_up(tmp_path, toml), 1 if ":" in name else 0)["channel ops"]
    assert found["state"] == ("fail" if ":" in name else "ok")


HOOKS = (
    ("s3cr3t\nb\n", 0o600, "ok"),
    ("s3cr3t", 0o644, "warn"),
    ("\n", 0o600, "fail"),
    (None, 0, "fail"),
)
"""What is in a file of secrets, its mode, and what is said of it."""


def test_hooks(tmp_path: Path) -> None:
    """P-2, S7: can its secrets be read, and by nobody else?"""
    sections = (
        f'[hooks.h{n}]\nuser = "me"\nthread = "t1"\nsecrets_file = "h{n}.secrets"\n'
        for n in range(len(HOOKS))
    )
    cli = set_up(tmp_path, "".join(sections))
    for n, (secrets, mode, _) in enumerate(HOOKS):
        if secrets is not None:
            (cli.home / f"h{n}.secrets").write_text(secrets)
            (cli.home / f"h{n}.secrets").chmod(mode)
    found = checks(cli, 1)
    for n, (_, _, state) in enumerate(HOOKS):
        check = found[f"hook h{n}"]
        assert check["state"] == state
        assert "s3cr3t" not in check["found"].replace(str(tmp_path), "")


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
        cli = Cli(tmp_path / "home", **BARE, VIGIL_METRICS__PORT=port, **environ)
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
        cli = Cli(tmp_path / "home", **BARE, **environ, **({"QDRANT_API_KEY": key} if key else {}))
        found = checks(cli, 0 if state == "ok" else 1)
        assert found["qdrant"]["state"] == state
        assert "secret-key" not in str(found)
    finally:
        server.shutdown()
        server.server_close()


class _Search(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, _, body = self.path.split("/")[1].partition("-")
        self.send_response(int(status))
        self.send_header("location", "/200-json/")
        self.end_headers()
        self.wfile.write({"json": b'{"results": []}', "list": b"[]"}.get(body, b"<html>"))

    def log_message(self, *_: object) -> None:
        pass


def test_a_search_endpoint_is_asked(tmp_path: Path) -> None:
    """L-6: whether it answers in JSON, at the very place that is named."""
    server = HTTPServer(("127.0.0.1", 0), _Search)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"
    wanted = {
        f"{origin}/200-json": "ok", f"{origin}/200-html": "fail", f"{origin}/200-list": "fail",
        f"{origin}/403-html": "fail", f"{origin}/302-html": "fail", "ftp://x": "fail",
        "http://127.0.0.1:9": "warn", "": None,
    }  # fmt: skip
    try:
        for url, state in wanted.items():
            given = Settings(config=Config(search=SearchSection(url=url)), home=tmp_path)
            found = search.search(given)
            assert (found and found.state) == state, url
            assert found is None or bool(found.advice) == (state != "ok")
    finally:
        server.shutdown()
        server.server_close()


def test_a_secret_that_is_not_there_or_not_kept_is_told_of_whatever_names_it(
    tmp_path: Path,
) -> None:
    """A calendar or a list of contacts whose file was missing ended the whole look."""
    place = 'url = "https://dav.example.org/a/"\nuser = "me"\nlogin = "ann"\n'
    sections = {"calendars.work": 'kind = "caldav"\n', "contacts.mine": ""}
    text = "".join(
        f'[{name}]\n{kind}{place}password_file = "dav.secret"\n' for name, kind in sections.items()
    )
    (tmp_path / "vigil.toml").write_text(text)
    secret = tmp_path / "dav.secret"
    for mode, said in ((None, "isn't there"), (0o644, "others can read")):
        if mode is not None:
            secret.write_text("x")
            secret.chmod(mode)
        found = Cli(tmp_path).json("doctor", code=None)["checks"]
        told = {one["name"]: one["found"] for one in found}
        for name in ("calendar work", "contacts mine"):
            assert said in told[name], told[name]
            assert str(secret) in told[name]
