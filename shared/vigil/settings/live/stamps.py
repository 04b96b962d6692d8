"""What tells the versions of the configuration's files apart."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ...fields.secrets import PROVIDERS, file_of_provider

Stamp = tuple[int, int, int]
"""By which a changed file is known: time, size, inode."""


class Stamps(NamedTuple):
    """Of the files of a home."""

    home: Path
    config: Stamp | None = None
    keys: tuple[Stamp | None, ...] = ()
    """Of the providers of models."""


def stamps_of(home: Path) -> Stamps:
    """Return the stamps of a home's files as they are now."""
    keys = (file_of_provider(home, name) for name in PROVIDERS)
    return Stamps(home, stamp_of(home / "vigil.toml"), tuple(map(stamp_of, keys)))


def stamp_of(file: Path) -> Stamp | None:
    """Return the stamp of a file; None: there is none just now."""
    try:
        found = file.stat()
    except (OSError, ValueError):  # also a name that no file can have
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
