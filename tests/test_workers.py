"""Of `pytest --forks`: all that is collected is told, also of a process that dies or waits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.warm import ROOT

CONFTEST = """
from tests.support.forks import Forks

def pytest_configure(config):
    config.pluginmanager.register(Forks(2, {config.rootpath / "test_waits.py"}, test_max_s=5.0))
"""
TESTS = """
import os, signal

def test_before(): pass
def test_dies(): os.kill(os.getpid(), signal.SIGKILL)
def test_fails(tmp_path):
    print("told by", tmp_path.parent.name)
    assert 1 == 2
"""


WAITS = """
import asyncio

async def never_told():
    await asyncio.get_running_loop().create_future()

def test_before(): pass
def test_waits(): asyncio.run(never_told())
def test_after(): pass
"""

WAITS_BEHIND = """
import pytest, threading

@pytest.fixture(scope="session", autouse=True)
def for_ever():
    yield
    threading.Event().wait()

def test_passes(): pass
"""


HOLD = """
from pathlib import Path
import time

HERE = Path(__file__)

def test_all_run_at_once():
    HERE.with_suffix(".on").touch()
    while len(list(HERE.parent.glob("*.on"))) < 3:
        time.sleep(0.01)
"""


def test_who_dies_fails_its_test_and_another_goes_on(tmp_path: Path) -> None:
    files = {"test_one.py": TESTS, "test_two.py": "def test_other(): pass\n"}
    done = _run(tmp_path, files)
    assert done.returncode == 1
    assert "2 failed, 2 passed" in done.stdout
    assert "the process that ran it ended with exit code -9" in done.stdout
    assert "told by forks-" in done.stdout


def test_who_waits_for_ever_is_ended_and_tells_where(tmp_path: Path) -> None:
    files = {"test_one.py": WAITS, "test_two.py": "def test_other(): pass\n"}
    done = _run(tmp_path, files)
    assert done.returncode == 1
    assert "1 failed, 3 passed" in done.stdout
    assert "didn't end within 5 s" in done.stdout
    assert "in never_told" in done.stdout


def test_who_waits_behind_its_tests_fails_them(tmp_path: Path) -> None:
    done = _run(tmp_path, {"test_one.py": WAITS_BEHIND})
    assert done.returncode == 1
    assert "1 passed, 1 error" in done.stdout
    assert "in for_ever" in done.stdout


def test_what_waits_is_run_beside_the_others(tmp_path: Path) -> None:
    """Each of three waits for the two others, and two processes were asked for."""
    done = _run(tmp_path, dict.fromkeys(("test_one.py", "test_two.py", "test_waits.py"), HOLD))
    assert "3 passed" in done.stdout


def _run(folder: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run files of tests in two processes."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, text in files.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest", str(folder)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
