"""Where tests keep their files, and a broker for each test that asks for one (about 0.2 s)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.stack import Stack, running_stack

_MEMORY: Final = Path("/dev/shm")
_MEMORY_FREE_MIN: Final = 4 * 1024**3
"""In bytes; the vectors of one memory service alone are a tenth of a gigabyte."""

# Files of tests live in memory where there is room: brokers and SQLite sync each write, and on a
# disk that is half of what a test waits for. A killed process loses nothing in either; what a full
# disk does is tested on file systems that those tests mount.
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _MEMORY_FREE_MIN:
    tempfile.tempdir = str(_MEMORY)


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Stack]:
    """A provisioned broker with no service running; start what the test is about."""
    async with running_stack(tmp_path, services=()) as stack:
        yield stack
