"""Files of a workspace that are watched: known by time and size, and if these differ by content."""

from __future__ import annotations

import hashlib
from typing import Final

from vigil.contracts.board import LastSeen, WatchedFiles
from vigil.errors import InvalidInput, NotFound, Unavailable
from vigil.facts.observed import Observation
from vigil.texts.glyphs import is_printable
from vigil.timetable.probe import TEXT_LENGTH_MAX
from vigil.watching.watched import names_of, what_of

from ..workspace.marks import Marks
from ..workspace.matches import Match, matches
from ..workspace.workspace import Workspace
from .result import ProbeResult, digest_of, shortened

FILES_MAX: Final = 200
PARTS_LENGTH_MAX: Final = 24_000
"""Characters of all names, and of what the files are known by."""
HASHED_BYTES_MAX: Final = 32 * 1024 * 1024
"""Of all files that are read in one look; further ones are known by time and size alone."""
CHUNK_BYTES: Final = 1024 * 1024


def probe(workspace: Workspace, watch: WatchedFiles, before: LastSeen | None) -> ProbeResult:
    """Look at the files. Blocks.

    Raises:
        InvalidInput: they are too many.
        Unavailable: the workspace can't be read now.
    """
    known = {} if before is None else before.parts
    with Marks(workspace).reading(()) as marked:
        parts = _parts(workspace, watch, known)
    text = "\n".join(f"{path}, {part.split(':')[1]} bytes" for path, part in parts.items())
    seen = LastSeen(
        what=what_of(watch),
        digest=digest_of("\n".join(f"{path} {_content(part)}" for path, part in parts.items())),
        text=text[:TEXT_LENGTH_MAX],
        parts=parts,
    )
    found = [] if before is None else changes(known, parts)
    observation = Observation(changed=bool(found), new=len(found))
    return ProbeResult(seen, shortened("\n".join(found)), marked.is_any, observation=observation)


def _parts(workspace: Workspace, watch: WatchedFiles, known: dict[str, str]) -> dict[str, str]:
    """Return what each file is known by, in the order of their names."""
    found: dict[str, Match] = {}
    for match in matches(workspace.folder, names_of(watch.glob)):
        found[match.path] = match
        if len(found) > FILES_MAX:
            raise InvalidInput("glob", f"names more than {FILES_MAX} files")
    reader, parts = _Reader(workspace), dict[str, str]()
    for path, match in sorted(found.items()):
        stamp, name = f"{match.mtime_ns}:{match.size}:", _shown(path)
        before = known.get(name, "")
        is_same = before.startswith(stamp)
        parts[name] = before if is_same else stamp + reader.digest(match)
    if sum(len(name) + len(part) for name, part in parts.items()) > PARTS_LENGTH_MAX:
        raise InvalidInput("glob", "names files whose names are too long together")
    return parts


class _Reader:
    """Reads files, up to a limit for all together."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._left = HASHED_BYTES_MAX

    def digest(self, match: Match) -> str:
        """Return what tells the content of a file from another; empty: nobody read it."""
        if match.size > self._left:
            return ""
        self._left -= match.size
        hashed, names = hashlib.sha256(), tuple(match.path.split("/"))
        try:
            for offset in range(0, match.size, CHUNK_BYTES):
                piece = self._workspace.read(names, offset, CHUNK_BYTES)
                if isinstance(piece, list):
                    return ""
                hashed.update(piece.data)
        except (NotFound, InvalidInput, Unavailable):
            return ""  # it is being exchanged: it differs, and what by is known at the next look
        return hashed.hexdigest()[:16]


def _content(part: str) -> str:
    """Return what tells a file's content: its digest, or of one that wasn't read time and size."""
    return part.rpartition(":")[2] or part


def _shown(path: str) -> str:
    """Return a path as a line of text, whatever bytes it has."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(one if is_printable(one) else "?" for one in text)


def changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return what became of files, a line each, by what they were and are known by.

    >>> old = {"a.md": "1:5:aa", "b.md": "1:5:bb", "c.md": "1:5:cc"}
    >>> changes(old, {"a.md": "2:5:aa", "b.md": "2:7:dd", "d.md": "2:9:ee"})
    ['changed: b.md, 7 bytes', 'removed: c.md', 'added: d.md, 9 bytes']
    """
    found: list[str] = []
    for path in sorted({*before, *after}):
        old, new = before.get(path, ""), after.get(path, "")
        if not new:
            found.append(f"removed: {path}")
        elif not old or _content(old) != _content(new):
            found.append(f"{'changed' if old else 'added'}: {path}, {new.split(':')[1]} bytes")
    return found
