"""Of `pytest --forks`: all that is collected is told, also of a process that dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.warm import ROOT

CONFTEST = """
from tests.support.forks import Forks

def pytest_configure(config):
    config.pluginmanager.register(Forks(2))
"""
TESTS = """
import os, signal

def test_before(): pass
def test_dies(): os.kill(os.getpid(), signal.SIGKILL)
def test_fails(tmp_path):
    print("told by", tmp_path.parent.name)
    assert 1 == 2
"""


def test_who_dies_fails_its_test_and_another_goes_on(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_one.py").write_text(TESTS)
    (tmp_path / "test_two.py").write_text("def test_other(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "2 failed, 2 passed" in done.stdout
    assert "the process that ran it ended with exit code -9" in done.stdout
    assert "told by forks-" in done.stdout
