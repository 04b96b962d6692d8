"""What the source of a file's memories is, and which of them are of files that are gone. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

SOURCE_MAX: Final = 200
"""Characters of a memory's source."""
FILES: Final = "file:"
FEW: Final = 3
"""Files that may be missing whatever else is there."""
_HASH: Final = 32
"""Hexadecimal digits that stand for the end of a path."""
_CUT: Final = re.compile(rf"…[0-9a-f]{{{_HASH}}}$")


def source_of(path: str) -> str:
    """Return the source of what a file says: its whole path; of one that is too long, or no text,
    the beginning, and a hash of the whole.

    >>> source_of("/home/me/house.md")
    'file:/home/me/house.md'
    >>> source_of("/" + "a" * 300)[150:]
    'aaaaaaaaaaaaaaaaa…d7a2578fdb4713875c666382809b26f4'
    """
    source = FILES + shown(path)
    if source == FILES + path and len(source) <= SOURCE_MAX:
        return source
    digest = hashlib.sha256(_raw(path)).hexdigest()[:_HASH]
    return f"{source[: SOURCE_MAX - 1 - _HASH]}…{digest}"


def shown(path: str) -> str:
    """Return a path as text; a name of a file need not be any."""
    return _raw(path).decode("utf-8", "replace")


def _raw(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


class SeenFolder(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a folder."""

    folder: str
    """Its whole path. What is no folder, or isn't there, holds nothing."""
    sources: frozenset[str]
    """Of all files in it, read or not."""
    unread: tuple[str, ...] = ()
    """Folders in it that could not be looked into."""
    empty: tuple[str, ...] = ()
    """Folders in it, itself among them, that hold nothing at all."""


class MissingFiles(msgspec.Struct, frozen=True):
    """What of the memories of a folder is of files that aren't there."""

    forgotten: tuple[str, ...] = ()
    """Sources whose files were removed."""
    kept: tuple[tuple[str, int], ...] = ()
    """Folders that may only be out of reach, and how many files were known in each."""


def gone(known: Iterable[str], seen: SeenFolder, *, is_sure: bool) -> MissingFiles:
    """Return which known sources are of files that were removed from a folder.

    A folder that is empty where files were known may be a disk that isn't mounted, and so may one
    that can't be read: what was in it is kept, unless whoever asks is sure. Where more than half of
    all is missing, and more than a few, it may be the folder of another machine, and all is kept. A
    file whose path is so long that its source doesn't tell whether it was in the folder is, too.

    >>> here = SeenFolder(folder="/a", sources=frozenset({"file:/a/b.md"}), empty=("/a/disk",))
    >>> gone(["file:/a/b.md", "file:/a/c.md", "file:/a/disk/d.md", "file:/ab.md"], here,
    ...      is_sure=False)
    MissingFiles(forgotten=('file:/a/c.md',), kept=(('/a/disk', 1),))
    """
    own = source_of(seen.folder)
    of_it = [one for one in known if one == own or is_within(one, seen.folder)]
    missing = [one for one in of_it if one not in seen.sources]
    if is_sure:
        return MissingFiles(tuple(sorted(missing)))
    if len(missing) > max(FEW, len(of_it) // 2):
        return MissingFiles(kept=((seen.folder, len(missing)),))
    doubtful = {*seen.unread, *seen.empty}
    held = {one: _above(one, doubtful) for one in missing}
    forgotten = sorted(one for one, above in held.items() if not above)
    counts: dict[str, int] = {}
    for above in held.values():
        if above:
            counts[above] = counts.get(above, 0) + 1
    return MissingFiles(tuple(forgotten), tuple(sorted(counts.items())))


def is_within(source: str, folder: str) -> bool:
    """Whether a source is of a file in a folder, however deep."""
    return source.startswith(_inside(folder))


def _above(source: str, folders: Collection[str]) -> str:
    """Return which of the folders a source's file may have been in; empty: in none."""
    cut = _CUT.search(source)
    head = source[: cut.start()] if cut else ""
    for folder in sorted(folders):
        if is_within(source, folder) or (head and _inside(folder).startswith(head)):
            return folder
    return ""


def _inside(folder: str) -> str:
    """Return how the source of a file in a folder begins."""
    return f"{FILES}{shown(folder).rstrip('/')}/"
