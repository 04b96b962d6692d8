"""Files of a workspace by a glob, reached from its own descriptor: no symbolic link is followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from vigil.errors import InvalidInput

NAMES_MAX: Final = 50_000
"""Names that are looked at."""
ANY: Final = "**"
"""Stands for any number of folders."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Match(NamedTuple):
    """A file."""

    path: str
    """Relative to the workspace."""
    size: int
    mtime_ns: int


def matches(folder: Path, names: tuple[str, ...]) -> Iterator[Match]:
    """Return the regular files that a glob names; some perhaps more than once. Blocks.

    What begins with a dot is named by what does. What comes or goes meanwhile may be there or not.

    Args:
        names: the glob, name by name.

    Raises:
        InvalidInput: it leads through too many names.
        OSError: the folder itself can't be read.
    """
    with ExitStack() as stack:
        opened = os.open(folder, _FOLDER)
        stack.callback(os.close, opened)
        yield from _Search().found(opened, "", names)


class _Search:
    def __init__(self) -> None:
        self._seen = 0

    def found(self, folder: int, path: str, names: tuple[str, ...]) -> Iterator[Match]:
        name, *rest = names
        if name == ANY and rest:
            yield from self.found(folder, path, tuple(rest))
        for entry in self._entries(folder):
            if not _is_meant(name, entry.name):
                continue
            below = f"{path}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                further = names if name == ANY else tuple(rest)
                if further:
                    yield from self._enter(folder, entry.name, f"{below}/", further)
            elif not rest and (match := _match(entry, below)):
                yield match

    def _entries(self, folder: int) -> list[os.DirEntry[str]]:
        with os.scandir(folder) as there:
            entries = list(there)
        self._seen += len(entries)
        if self._seen > NAMES_MAX:
            raise InvalidInput("glob", f"leads through more than {NAMES_MAX:,} names")
        return entries

    def _enter(self, folder: int, name: str, path: str, names: tuple[str, ...]) -> Iterator[Match]:
        try:
            opened = os.open(name, _FOLDER, dir_fd=folder)
        except OSError:
            return  # gone, exchanged or closed to us
        try:
            yield from self.found(opened, path, names)
        finally:
            os.close(opened)


def _is_meant(pattern: str, name: str) -> bool:
    if name.startswith(".") and not pattern.startswith("."):
        return False
    return pattern == ANY or fnmatchcase(name, pattern)


def _match(entry: os.DirEntry[str], path: str) -> Match | None:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return Match(path, found.st_size, found.st_mtime_ns)
