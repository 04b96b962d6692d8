"""Files as text: plain text, Markdown and HTML."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from vigil.errors import InvalidInput
from vigil.net.page_text import text_of_page

TEXTS: Final = frozenset({".txt", ".md", ".markdown"})
PAGES: Final = frozenset({".html", ".htm"})
BYTES_MAX: Final = 8 * 1024 * 1024
READ_S: Final = 60.0
"""For a page; some are made to hold a parser up."""


def files_in(path: Path) -> Iterator[Path]:
    """Yield a file, or those of a folder that are text, in the order of their names.

    What begins with a dot is left out, and so are links, which may lead anywhere.
    """
    if path.is_file():
        yield path
        return
    for one in sorted(path.rglob("*")):
        is_hidden = any(part.startswith(".") for part in one.relative_to(path).parts)
        if one.suffix.lower() in TEXTS | PAGES and not (is_hidden or one.is_symlink()):
            yield one


def text_of(path: Path, data: bytes) -> str:
    """Return what a file says. Raises: InvalidInput: it can't be read as text."""
    kind = path.suffix.lower()
    if kind not in TEXTS | PAGES:
        known = ", ".join(sorted(TEXTS | PAGES))
        raise InvalidInput(path.name, f"is none of the kinds that are read: {known}")
    if len(data) > BYTES_MAX:
        raise InvalidInput(path.name, f"has {len(data)} bytes, {BYTES_MAX} are read at most")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(path.name, "is no text in UTF-8") from error
    if kind not in PAGES:
        return text
    shown = asyncio.run(text_of_page(text, "", sys.executable, READ_S))
    if shown is None:
        raise InvalidInput(path.name, "can't be converted to text")
    return shown
