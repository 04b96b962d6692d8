"""`make bench` starts, and says what it measures; the figures themselves are nobody's test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.numbers import report_rounds
from bench.peers import comparison


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_help_names_every_part() -> None:
    """Whoever wants to check finds what there is to measure."""
    shown = bench("--help")
    assert shown.returncode == 0
    for part in ("turns", "peers", "tracing", "timers", "resting", "--rounds"):
        assert part in shown.stdout


def test_a_part_that_is_not_there_is_named() -> None:
    refused = bench("turn")
    assert refused.returncode == 2
    assert "no such part: turn" in refused.stderr


def test_rounds_are_told_with_their_spread(capsys: pytest.CaptureFixture[str]) -> None:
    report_rounds("turns_vs_floor", [0.5, 0.25, 0.3], "ratio", aim=">= 0.5")
    assert json.loads(capsys.readouterr().out) == {
        "name": "turns_vs_floor", "value": 0.3, "unit": "ratio",
        "least": 0.25, "most": 0.5, "rounds": 3, "aim": ">= 0.5",
    }  # fmt: skip


def test_peers_are_told_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without their virtual environment it's said how to get it."""
    monkeypatch.setattr(comparison, "PYTHON", Path("/nowhere/python"))
    with pytest.raises(SystemExit, match="make bench ARGS=peers"):
        comparison.check_installed()
