"""The README's scene with the real SDK against an endpoint that speaks the Messages API."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.cli import eventually, running_vigil
from tests.support.listening import is_listening
from vigil.broker.ports import free_port

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def endpoint() -> Iterator[str]:
    """The tests' own Messages API, as a process beside Vigil."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.messages_api", "--port", str(port)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: is_listening(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def test_a_reminder_through_a_model(tmp_path: Path) -> None:
    """P-1, P-3, S-9: `up` names the model in use; the answer and the follow-up come from it."""
    with (
        endpoint() as url,
        running_vigil(
            tmp_path / "home", ANTHROPIC_API_KEY="sk-ant-test-key", ANTHROPIC_BASE_URL=url
        ) as cli,
    ):
        assert cli.run_state.model == "claude-sonnet-5-5"
        said = "remind me in 2 seconds to stretch\n"
        done = cli("chat", "--thread", "m1", "--wait", "6", stdin=said)
        lines = done.stdout.splitlines()
        assert lines[0].startswith("vigil> ")
        (follow_up,) = [line for line in lines if line.startswith("vigil (Agent follow-up)> ")]
        assert "stretch" in follow_up
        log = (cli.home / "logs" / "up.log").read_text()
        assert "sk-ant-test-key" not in log
