"""`vigil doctor`: each check, in the state where it matters."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.cli import Cli, running_vigil


def checks(cli: Cli, code: int) -> dict[str, dict[str, str]]:
    found = cli.json("doctor", code=code)
    assert found["ok"] is (code == 0)
    return {check["name"]: check for check in found["checks"]}


def test_a_new_machine_is_fine_but_for_a_model(tmp_path: Path) -> None:
    """P-2: nothing has run yet; nothing is made by looking."""
    cli = Cli(tmp_path / "home")
    found = checks(cli, 0)
    assert {name: c["state"] for name, c in found.items()} == {
        "python": "ok", "services": "ok", "config": "ok", "broker": "ok", "home": "ok",
        "secrets": "ok", "disk": "ok", "model": "warn", "port": "ok", "token": "warn",
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
    ("environ", "name", "state"),
    [
        ({"ANTHROPIC_API_KEY": "sk-ant-secret"}, "model", "ok"),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, "model", "ok"),
        ({"VIGIL_MODEL": "claude-opus-5-5"}, "model", "fail"),
        ({"VIGIL_MODEL": "rehearsal", "ANTHROPIC_API_KEY": "sk-ant-secret"}, "model", "warn"),
        ({"VIGIL_GATEWAY__RATE_PER_S": "-1"}, "config", "fail"),
        ({"TIMER_POLL_INTERVAL_MS": "5"}, "config", "warn"),
        ({"NATS_URL": "nats://127.0.0.1:9"}, "broker", "fail"),
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
