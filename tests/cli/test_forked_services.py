"""Services that `vigil up` forks before it begins itself."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from tests.support.cli import Cli, ColdCli, eventually, is_alive
from vigil.local.forks import may_fork


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each has an interpreter of its own")
def test_a_forked_service_is_as_one_that_was_started(tmp_path: Path) -> None:
    """It serves in a process of its own, comes back when it's killed, as another program then, and
    ends with who forked it, whatever ended that."""
    cli = Cli(tmp_path / "home")
    ColdCli(cli.home)("up", "--detach")
    try:
        first = cli.run_state.services["cortex"]
        assert first != cli.run_state.pid
        assert b"services.cortex" not in Path(f"/proc/{first}/cmdline").read_bytes()
        assert cli("send", "hello").stdout
        os.kill(first, signal.SIGKILL)
        eventually(lambda: cli.run_state.services["cortex"] != first)
        second = cli.run_state.services["cortex"]
        assert b"services.cortex" in Path(f"/proc/{second}/cmdline").read_bytes()
        assert cli("send", "hello again").stdout
        os.kill(cli.run_state.pid, signal.SIGKILL)
        eventually(lambda: not is_alive(second))
    finally:
        cli.end()


def test_nothing_is_forked_beside_other_threads() -> None:
    """What they hold would be held for ever in a copy."""
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    try:
        assert not may_fork()
    finally:
        ended.set()
        other.join()
