"""Names of files that others chose, made such as a file may have. Pure."""

from __future__ import annotations

from ..mail.heads import plain
from .examine import NAME_LENGTH_MAX


def file_name(name: str) -> str:
    """Return a name that a file may have.

    >>> file_name("../a\\\\b.pdf")
    '.._a_b.pdf'
    """
    found = plain(name).replace("/", "_").replace("\\", "_")[:NAME_LENGTH_MAX].strip()
    return found if found not in ("", ".", "..") else "attachment"
