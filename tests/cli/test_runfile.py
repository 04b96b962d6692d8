"""The lock and the run file: who is there, told by the system and not by a pid."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from vigil.local import runfile
from vigil.local.runfile import AlreadyRunning, Lock, RunFile


def run_of(pid: int) -> RunFile:
    return RunFile(
        pid=pid,
        url="http://127.0.0.1:1",
        nats_url="nats://127.0.0.1:2",
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        processes=2,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "up.json"


def test_one_holder(path: Path) -> None:
    lock = Lock(path)
    lock.acquire()
    runfile.write(path, run_of(os.getpid()))
    assert runfile.running(path) == run_of(os.getpid())
    with pytest.raises(AlreadyRunning, match=f"pid {os.getpid()}"):
        Lock(path).acquire()
    lock.release()
    assert runfile.running(path) is None
    assert runfile.read(path) is None
    Lock(path).acquire()


def test_a_file_left_behind_means_nothing(path: Path) -> None:
    """A pid in a stale file may belong to anybody by now."""
    runfile.write(path, run_of(os.getpid()))
    assert runfile.running(path) is None


def test_the_lock_ends_with_its_process(path: Path) -> None:
    """X-5: after SIGKILL the next start isn't refused."""
    code = (
        "import sys, pathlib; from vigil.local.runfile import Lock; "
        "Lock(pathlib.Path(sys.argv[1])).acquire(); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert not runfile.wait_ended(path, timeout_s=0.1)
        holder.kill()
        assert runfile.wait_ended(path, timeout_s=10)
        Lock(path).acquire()
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}'])
def test_a_damaged_file_is_no_file(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    assert runfile.read(path) is None
