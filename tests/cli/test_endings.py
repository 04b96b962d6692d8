"""Work that a signal ends takes away what it made for the while."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.cli import ColdCli, eventually


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_stories_that_are_ended_leave_no_home_and_no_broker(
    tmp_path: Path, number: signal.Signals
) -> None:
    """As `timeout vigil eval` and a terminal that is closed end them."""
    (tmp_path / "drafts").mkdir()
    cli = ColdCli(tmp_path / "home", TMPDIR=str(tmp_path / "drafts"))
    playing = cli.start("eval", "--starter", "--only", "nights")
    eventually(lambda: bool(list(tmp_path.glob("drafts/vigil-eval-*/nats/nats.log"))))
    playing.send_signal(number)
    playing.communicate(timeout=60)
    assert playing.returncode == -number
    assert list((tmp_path / "drafts").glob("vigil-eval-*")) == []
