"""How much memory each process of a command uses, looked at while it runs.

The kernel bounds by itself what a process makes writable for itself alone (RLIMIT_DATA). What it
shares, and files that live in memory without a name, no limit of a process bounds but that of its
addresses (RLIMIT_AS); and addresses are what runtimes reserve by the gigabyte and never use: Node
10 GiB for each memory of WebAssembly, a Java machine its whole heap. So addresses are free, and
what is used is looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import stat
from pathlib import Path
from typing import Final

from .launch.tree import below_of

COMMAND_S: Final = 0.25
"""How often a command is looked at..."""
SERVER_S: Final = 1.0
"""...and how often a server, which mostly waits."""
SHARE_OF_TIME: Final = 20
"""They are looked at for a 20th of the time at most."""
BLOCK_BYTES: Final = 512
"""Of `st_blocks`, whatever the file system."""
SETTING: Final = "executor.memory_bytes_max"
TOO_MUCH: Final = "a process of it used {used} bytes of memory; {setting} allows {limit}"
HINT: Final = f"the memory of each process is limited by {SETTING}"

_USED: Final = re.compile(r"^(RssAnon|RssShmem|VmSwap):\s+(\d+) kB$", re.MULTILINE)
_STARVED: Final = re.compile(
    r"out of memory|cannot allocate memory|allocation failed|not enough space for object heap"
    r"|\b(MemoryError|ENOMEM|bad_alloc|OutOfMemoryError)\b",
    re.IGNORECASE,
)


class MemoryWatch:
    """Looks after one command. :meth:`watch` may be awaited once.

    Args:
        bytes_max: of each process.
        every_s: how often it is looked at.
    """

    def __init__(self, bytes_max: int, every_s: float = COMMAND_S) -> None:
        self._bytes_max = bytes_max
        self._every_s = every_s
        self._device = _memory_device()
        self.why = ""
        """Why it had to end; empty: it had not."""

    async def watch(self, pid: int) -> str:
        """Wait until a process below `pid` uses too much, and return why the command ends."""
        loop = asyncio.get_running_loop()
        pause_s = self._every_s
        while True:
            await asyncio.sleep(pause_s)
            begun_s = loop.time()
            used = await asyncio.to_thread(self._most, pid)
            if used > self._bytes_max:
                self.why = TOO_MUCH.format(used=used, setting=SETTING, limit=self._bytes_max)
                return self.why
            pause_s = max(self._every_s, SHARE_OF_TIME * (loop.time() - begun_s))

    def _most(self, pid: int) -> int:
        """Return what the process uses that uses most. Blocks."""
        return max((used_by(one, self._device) for one in below_of(pid)), default=0)


def used_by(pid: int, device: int) -> int:
    """Return the bytes of memory that a process uses, whether it has them for itself or shares
    them; 0 if it has ended. Its program and libraries, which are files, don't count.

    Args:
        device: of files that live in memory and have no name.
    """
    own = shared = held = 0
    with contextlib.suppress(OSError):
        for name, size in _USED.findall(Path(f"/proc/{pid}/status").read_text(errors="replace")):
            if name == "RssShmem":
                shared = int(size) * 1024
            else:
                own += int(size) * 1024
    with contextlib.suppress(OSError):
        held = _held_by(Path(f"/proc/{pid}/fd"), device)
    # What is held and mapped is in both.
    return own + max(shared, held)


def _held_by(folder: Path, device: int) -> int:
    """Return the size of the nameless files of a device that are open."""
    blocks: dict[int, int] = {}
    for opened in folder.iterdir():
        with contextlib.suppress(OSError):
            one = opened.stat()
            if one.st_dev == device and stat.S_ISREG(one.st_mode):
                blocks[one.st_ino] = one.st_blocks
    return sum(blocks.values()) * BLOCK_BYTES


def _memory_device() -> int:
    opened = os.memfd_create("device")
    try:
        return os.fstat(opened).st_dev
    finally:
        os.close(opened)


def hint_of(text: str) -> str:
    """Return which setting to look at, if somebody says that memory ran out; empty: nobody does.

    >>> hint_of("RangeError: WebAssembly.instantiate(): Out of memory")
    'the memory of each process is limited by executor.memory_bytes_max'
    >>> hint_of("no memory of you")
    ''
    """
    return HINT if _STARVED.search(text) else ""
