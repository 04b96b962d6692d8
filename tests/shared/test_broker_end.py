"""A broker that ends is waited for while it gets anywhere (SPEC X-5): an index that it couldn't
write whole costs the next start minutes where much is stored."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from vigil.broker.end import end
from vigil.observe.cpu import cpu_of
from vigil.processes.process import Process, start


async def _started(trap: str) -> Process:
    script = f"trap '{trap}' TERM; echo ready; while :; do sleep 0.05; done"
    process = await start("bash", "-c", script, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


def _working() -> Callable[[int], float]:
    """Tell of a process that takes a second of CPU from look to look."""
    seconds = itertools.count()
    return lambda _: float(next(seconds))


async def test_one_that_works_is_waited_for(tmp_path: Path) -> None:
    """It takes longer than it may rest, and all of what it has to write is there."""
    index = tmp_path / "index"
    process = await _started(f"sleep 1; echo whole > {index}; exit 0")
    await end(process, still_s=0.2, most_s=60.0, cpu=_working())
    assert process.returncode == 0
    assert index.read_text() == "whole\n"


async def test_one_that_does_nothing_is_killed() -> None:
    process = await _started("")
    await end(process, still_s=0.2, most_s=60.0, cpu=lambda _: 1.0)
    assert process.returncode == -signal.SIGKILL


async def test_one_that_works_on_and_on_is_killed_too() -> None:
    process = await _started("while :; do :; done")
    await end(process, most_s=1.0, cpu=_working())
    assert process.returncode == -signal.SIGKILL


def test_what_a_process_takes_is_told() -> None:
    before = cpu_of(os.getpid())
    while cpu_of(os.getpid()) < before + 0.05:
        pass
    assert cpu_of(os.getpid()) > before
