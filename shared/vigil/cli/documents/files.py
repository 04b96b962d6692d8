"""Files as text: plain text, Markdown and HTML."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from vigil.errors import InvalidInput
from vigil.net import readable

TEXTS: Final = frozenset({".txt", ".md", ".markdown"})
PAGES: Final = frozenset({".html", ".htm"})
BYTES_MAX: Final = 8 * 1024 * 1024


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
    return asyncio.run(_of_page(path, text)) if kind in PAGES else text


async def _of_page(path: Path, html: str) -> str:
    """Convert a page in a process of its own: some are made to hold a parser up."""
    program = (sys.executable, "-I", "-S", readable.__file__)
    pipe = asyncio.subprocess.PIPE
    converter = await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe, stderr=pipe)
    text, _ = await converter.communicate(f"\n{html}".encode())
    if converter.returncode:  # it has so much time and memory
        raise InvalidInput(path.name, "can't be converted to text")
    return text.decode("utf-8", "replace")
