"""Memory that a command uses is limited, in whatever form; memory that it only reserves is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.executor.own_tools.shell import ending_of
from services.executor.sandbox.box import CommandLimits
from services.executor.sandbox.commands import Watches
from services.executor.sandbox.memory import SETTING, MemoryWatch
from tests.support.boxes import KINDS, Boxes, boxes_of

LIMIT = 128 * 1024**2


@pytest.fixture(params=KINDS)
async def boxes(request: pytest.FixtureRequest, tmp_path: Path) -> Boxes:
    return await boxes_of(request.param, tmp_path)


async def test_addresses_are_no_memory(boxes: Boxes) -> None:
    """X-1: Node reserves 10 GiB of them for each memory of WebAssembly, and died of it."""
    outcome = await boxes.run(
        "python3 -c 'import mmap; [mmap.mmap(-1, 10 << 30, flags=mmap.MAP_PRIVATE | "
        'mmap.MAP_ANONYMOUS, prot=0) for _ in range(20)]; print("works")\'',
        limits=CommandLimits(memory_bytes=LIMIT),
    )
    assert outcome.output == "works\n"


SHARED = """
import mmap, time
shared = mmap.mmap(-1, 1 << 30)
for _ in range(300):
    shared.write(bytes(1 << 20))
"""
HELD = """
import os, time
held = os.memfd_create("held")
for _ in range(300):
    os.write(held, bytes(1 << 20))
"""


@pytest.mark.parametrize("program", [SHARED, HELD], ids=["shared", "held"])
async def test_memory_that_no_limit_of_a_process_counts_is_looked_at(
    boxes: Boxes, program: str
) -> None:
    """S10: what is shared, and files in memory; the end names the setting."""
    (boxes.workspace / "program.py").write_text(program + "time.sleep(60)\n")
    (boxes.workspace / "program.py").chmod(0o644)
    limits = CommandLimits(memory_bytes=LIMIT, file_bytes=2**40)
    outcome = await boxes.run(
        "python3 program.py", limits=limits, watch=Watches(MemoryWatch(LIMIT, 0.02))
    )
    assert outcome.ended == "stopped", outcome.output
    assert SETTING in ending_of(outcome, 20.0)


async def test_a_command_that_finds_no_memory_is_told_of_the_setting(boxes: Boxes) -> None:
    """X-6: Python says MemoryError, Node "out of memory"; neither knows what limits it."""
    limits = CommandLimits(memory_bytes=LIMIT)
    outcome = await boxes.run("python3 -c 'bytearray(1 << 30)'", limits=limits)
    assert ending_of(outcome, 20.0).endswith(f"is limited by {SETTING}")
    failed = await boxes.run("echo well; exit 1", watch=Watches(MemoryWatch(LIMIT, 0.02)))
    assert ending_of(failed, 20.0) == "exit code 1"
