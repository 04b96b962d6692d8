"""What tells the versions of the configuration's files apart."""

from __future__ import annotations

from pathlib import Path

from ..fields.secrets import PROVIDERS, file_of_provider

Stamp = tuple[int, int, int]
"""By which a changed file is known: time, size, inode."""
Stamps = tuple[Stamp | None, ...]
"""Of the file, and of those with keys of providers."""


def stamps_of(home: Path) -> Stamps:
    """Return the stamps of a home's files as they are now."""
    files = (home / "vigil.toml", *(file_of_provider(home, name) for name in PROVIDERS))
    return tuple(map(stamp_of, files))


def stamp_of(file: Path) -> Stamp | None:
    """Return the stamp of a file; None: there is none just now."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
