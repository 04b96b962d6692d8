"""What a folder that commands write to takes of the disk: counted, as the kernel counts blocks.

Sparse files count what they hold, hard links count once, folders count, too. What was written to a
file that has lost its name counts for the command that has it open: it is in no folder.

Whoever wrote there may mean no good, and may be at work: nothing is opened but folders, from the
one above, and what was hidden by its rights is opened all the same.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

import msgspec

BLOCK_BYTES: Final = 512
"""Of `st_blocks`, on every file system."""
DEPTH_MAX: Final = 64
"""Folders in each other; what is deeper counts as too many files."""
FILES_FREE_SHARE: Final = 0.02
"""Of the files that a disk can hold: with fewer left, it counts as full."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder holds."""

    bytes_used: int = 0
    files: int = 0
    """Whatever has a name in it."""


def free_bytes(folder: Path) -> int:
    """Return what the disk of a folder has left for us; that is nothing if it soon can't hold a
    file more, however small."""
    found = os.statvfs(folder)
    if found.f_favail < found.f_files * FILES_FREE_SHARE:  # some count no files: 0 of 0
        return 0
    return found.f_bavail * found.f_frsize


def usage_of(folder: Path, *, files_max: int) -> FolderUsage:
    """Count what a folder holds, up to one more than `files_max` files. Blocks.

    What comes or goes meanwhile may be counted or not.

    Raises: OSError, the folder itself can't be read.
    """
    count = _Count(files_max)
    opened = os.open(folder, _FOLDER)
    try:
        count.folder(opened, 0)
    finally:
        os.close(opened)
    return FolderUsage(bytes_used=count.blocks * BLOCK_BYTES, files=count.files)


class _Count:
    def __init__(self, files_max: int) -> None:
        self._files_max = files_max
        self._linked: set[int] = set()
        self.blocks = 0
        self.files = 0

    def folder(self, opened: int, depth: int) -> None:
        """Count all in a folder. Raises: OSError, it can't be listed."""
        with os.scandir(opened) as entries:
            for entry in entries:
                if self.files > self._files_max:
                    return
                with contextlib.suppress(OSError):  # it is gone, or is another one meanwhile
                    self._entry(opened, entry, depth)

    def _entry(self, parent: int, entry: os.DirEntry[str], depth: int) -> None:
        found = entry.stat(follow_symlinks=False)
        self.files += 1
        is_folder = stat.S_ISDIR(found.st_mode)
        if found.st_nlink > 1 and not is_folder:
            if found.st_ino in self._linked:
                return
            self._linked.add(found.st_ino)
        self.blocks += found.st_blocks
        if not is_folder:
            return
        if depth >= DEPTH_MAX:
            self.files = self._files_max + 1
            return
        opened = _entered(parent, entry.name)
        try:
            self.folder(opened, depth + 1)
        finally:
            os.close(opened)


def _entered(parent: int, name: str) -> int:
    """Open a folder; one that its owner closed to everybody is opened to its owner again."""
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        place = os.open(
            name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent
        )
        try:
            Path(f"/proc/self/fd/{place}").chmod(0o700)
        finally:
            os.close(place)
        return os.open(name, _FOLDER, dir_fd=parent)


# ---------------------------------------------------------------- files without a name


def nameless_bytes(pids: set[int], folder: Path) -> int:
    """Return what processes hold in files of a folder's disk that have lost their names.

    What is only mapped counts as much as is mapped of it; it may hold less.
    """
    device = folder.stat().st_dev
    blocks: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            blocks |= _open_blocks(Path(f"/proc/{pid}/fd"), device)
    found = sum(blocks.values()) * BLOCK_BYTES
    mapped: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for inode, size in _mapped(
                Path(f"/proc/{pid}/maps").read_text(errors="replace"), device
            ):
                mapped[inode] = max(mapped.get(inode, 0), size)
    return found + sum(size for inode, size in mapped.items() if inode not in blocks)


def _open_blocks(folder: Path, device: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for opened in folder.iterdir():
        with contextlib.suppress(OSError):
            one = opened.stat()
            if one.st_nlink == 0 and one.st_dev == device and stat.S_ISREG(one.st_mode):
                found[one.st_ino] = one.st_blocks
    return found


def _mapped(maps: str, device: int) -> list[tuple[int, int]]:
    """Return (inode, bytes) of what is mapped from nameless files of a device.

    >>> line = "7f00-8f00 rw-s 00000000 fe:01 42   /w/big (deleted)"
    >>> _mapped(line, os.makedev(0xFE, 1))
    [(42, 4096)]
    """
    found: list[tuple[int, int]] = []
    for line in maps.splitlines():
        if not line.endswith(" (deleted)"):
            continue
        span, _, _, place, inode, *_ = line.split()
        major, _, minor = place.partition(":")
        if os.makedev(int(major, 16), int(minor, 16)) == device:
            first, _, end = span.partition("-")
            found.append((int(inode), int(end, 16) - int(first, 16)))
    return found
