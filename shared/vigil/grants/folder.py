"""Paths that a standing grant may cover: those of one folder, told by their segments alone.

No file is looked at: what a name leads to is decided where it is opened, which follows no link out
of the workspace.
"""

from __future__ import annotations

from ..contracts.board.grant import Folder
from ..errors import InvalidInput


def parse(path: str) -> tuple[str, ...]:
    """Return the segments of a path; an absolute one begins with ``""``.

    >>> parse("reports/2026/may.md"), parse("/srv/notes")
    (('reports', '2026', 'may.md'), ('', 'srv', 'notes'))

    Raises:
        InvalidInput: it could be read in two ways.
    """
    if not path.isprintable() or set("\\%~") & set(path):
        raise InvalidInput("path", "has a character that no grant covers")
    segments = tuple(path.split("/"))
    inner = segments[1:] if path.startswith("/") else segments
    if {"", ".", ".."} & set(inner):
        raise InvalidInput("path", "has an empty segment, '.' or '..'")
    return segments


def obstacle(rule: Folder, path: object) -> str | None:
    """Return why a path isn't what the rule allows; None: it is."""
    if not isinstance(path, str):
        return f"{rule.field} is no text"
    try:
        found, folder = parse(path), parse(rule.folder)
    except InvalidInput as error:
        return f"the path {error.reason}"
    is_inside = len(found) > len(folder) and found[: len(folder)] == folder
    return None if is_inside else "it's in another folder"


def check(rule: Folder) -> Folder:
    """Return a rule that may be granted. Raises: InvalidInput, field and reason."""
    try:
        parse(rule.folder)
    except InvalidInput as error:
        raise InvalidInput("folder", error.reason) from error
    return rule
