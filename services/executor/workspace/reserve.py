"""A file that holds a part of the disk, so that it can be given back when all else is full.

However fast others fill the disk, the kernel gives them nothing of what is set aside. Removing the
file takes no room, and leaves enough for messages to go on and for somebody to clean up.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Final

import structlog

log = structlog.get_logger("vigil.executor")

CHUNK: Final = bytes(1024 * 1024)


class Reserve:
    """The file. Its methods block, but for the disk only.

    Args:
        size: in bytes; 0: nothing is set aside.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self.size = size

    def keep(self) -> None:
        """Set the room aside, if it isn't; replicas of one home share it."""
        try:
            if not self.size or self._path.stat().st_blocks * 512 >= self.size:
                return
        except FileNotFoundError:
            pass
        opened = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._fill(opened)
        except OSError as error:
            log.warning("no reserve", action="executor.reserve", error=error.strerror)
            self._path.unlink(missing_ok=True)
        finally:
            os.close(opened)

    def _fill(self, opened: int) -> None:
        try:
            os.posix_fallocate(opened, 0, self.size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
            for _ in range(0, self.size, len(CHUNK)):
                os.write(opened, CHUNK)

    def spend(self) -> None:
        """Give the room back."""
        with contextlib.suppress(FileNotFoundError, PermissionError):
            self._path.unlink()
            log.error("the disk is full", action="executor.reserve_spent", bytes=self.size)
