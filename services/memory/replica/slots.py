"""A place on the disk for each replica: a numbered folder with a lock.

Several replicas may share a home (`vigil up` and a `vigil serve memory` beside it), and each
needs a SQLite file and vectors of its own. The lock is the kernel's, so it is free at once when
its holder ends, however that ends, and the next one finds what was made there already.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from vigil.errors import ConfigError
from vigil.files import locked

LOCK: Final = "lock"


class Slot:
    """A folder that nobody else uses until `release`."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self._lock = lock

    @property
    def number(self) -> int:
        return int(self.folder.name)

    def release(self) -> None:
        os.close(self._lock)


def take(root: Path, *, slots_max: int) -> Slot:
    """Take the first free slot under `root`; make its folder if it isn't there.

    Raises:
        ConfigError: all are taken, or nothing can be written there.
    """
    try:
        for number in range(slots_max):
            folder = root / str(number)
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = locked(folder / LOCK)
            if lock is not None:
                return Slot(folder, lock)
    except OSError as error:
        raise ConfigError(f"memory needs a folder it can write to: {error}") from error
    raise ConfigError(f"{slots_max} memory services use {root} already")


def is_free(folder: Path) -> bool:
    """Whether no replica uses that slot now."""
    if not (folder / LOCK).exists():
        return True
    lock = locked(folder / LOCK)
    if lock is None:
        return False
    os.close(lock)
    return True
