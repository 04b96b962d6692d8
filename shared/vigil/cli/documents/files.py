"""Files as text: plain text, Markdown, HTML and PDF."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from vigil.distribution import command_for, is_importable
from vigil.errors import InvalidInput
from vigil.net.conversion import converted
from vigil.net.page_text import text_of_page
from vigil.net.readable import UNSHAPED

from .sources import SeenFolder, source_of

TEXTS: Final = frozenset({".txt", ".md", ".markdown"})
PAGES: Final = frozenset({".html", ".htm"})
PRINTED: Final = frozenset({".pdf"})
KINDS: Final = TEXTS | PAGES | PRINTED
BYTES_MAX: Final = 8 * 1024 * 1024
PRINTED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of a PDF, whose pictures aren't read."""
READ_S: Final = 60.0
"""For a page; some are made to hold a parser up."""
PRINTED_READ_S: Final = 180.0
"""For a PDF: some hundreds of pages take a minute."""
SCANNED: Final = "holds no text: scanned, it needs text recognition first"


class FileText(msgspec.Struct, frozen=True):
    """What a file says."""

    text: str
    note: str = ""
    """What of it couldn't be read."""


class _Printed(msgspec.Struct, frozen=True):
    """What the reader of PDFs answers."""

    pages: tuple[str, ...] = ()
    why: str = ""


class FilesThere(msgspec.Struct, frozen=True):
    """What is at a path."""

    files: tuple[Path, ...]
    """Of the kinds that are read, in the order of their names."""
    seen: SeenFolder


def files_at(path: Path) -> FilesThere:
    """Find a file, or what a folder holds.

    What begins with a dot isn't read, nor are links, which may lead anywhere.
    """
    whole = path.resolve()
    if not path.is_dir():
        files = (path,) if path.exists() else ()
        sources = frozenset(source_of(str(whole)) for _ in files)
        return FilesThere(files, SeenFolder(folder=str(whole), sources=sources))
    read: list[Path] = []
    there: set[str] = set()
    unread: list[str] = []
    empty: list[str] = []

    def passed_over(error: OSError) -> None:
        unread.append(str(error.filename))

    for folder, folders, names in os.walk(whole, onerror=passed_over):
        inside = Path(folder).relative_to(whole)
        if not folders and not names:
            empty.append(folder)
        for name in names:
            there.add(source_of(str(Path(folder, name))))
            parts = (*inside.parts, name)
            one = path.joinpath(*parts)
            is_hidden = any(part.startswith(".") for part in parts)
            if one.suffix.lower() in KINDS and not (is_hidden or one.is_symlink()):
                read.append(one)
    if not read:
        empty.append(str(whole))
    seen = SeenFolder(
        folder=str(whole),
        sources=frozenset(there),
        unread=tuple(unread),
        empty=tuple(empty),
    )
    return FilesThere(tuple(sorted(read)), seen)


def text_of(path: Path, data: bytes) -> FileText:
    """Return what a file says. Raises: InvalidInput: it can't be read as text."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        known = ", ".join(sorted(KINDS))
        raise InvalidInput(path.name, f"is none of the kinds that are read: {known}")
    bytes_max = PRINTED_BYTES_MAX if kind in PRINTED else BYTES_MAX
    if len(data) > bytes_max:
        raise InvalidInput(path.name, f"has {len(data)} bytes, {bytes_max} are read at most")
    if kind in PRINTED:
        return _text_of_printed(path, data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(path.name, "is no text in UTF-8") from error
    if kind not in PAGES:
        return FileText(text)
    page = asyncio.run(text_of_page(text, "", sys.executable, READ_S))
    if page is None:
        raise InvalidInput(path.name, "can't be converted to text")
    return FileText(page)


def _text_of_printed(path: Path, data: bytes) -> FileText:
    """Return what a PDF says, each page below a heading with its number."""
    if not is_importable("pypdf"):
        raise InvalidInput(path.name, f"is a PDF, which needs pypdf: {command_for()}")
    program = str(Path(__file__).with_name("pdf_text.py"))
    told = asyncio.run(converted(sys.executable, program, data=data, within_s=PRINTED_READ_S))
    if told is None:
        raise InvalidInput(path.name, "is no whole PDF, or takes too long to read")
    found = msgspec.json.decode(told, type=_Printed)
    if found.why:
        raise InvalidInput(path.name, found.why)
    return paged(path.name, found.pages)


def paged(name: str, pages: tuple[str, ...]) -> FileText:
    r"""Return pages as one text. Raises: InvalidInput: none of them holds any.

    >>> paged("tea.pdf", ("Boil.", " ", "Pour."))
    FileText(text='# page 1\n\nBoil.\n\n# page 3\n\nPour.', note='1 of 3 pages holds no text: 2')
    """
    texts = [UNSHAPED.sub("", page).strip() for page in pages]
    empty = [str(number) for number, text in enumerate(texts, 1) if not text]
    if len(empty) == len(texts):
        raise InvalidInput(name, SCANNED)
    named = ", ".join(empty[:10]) + (", …" if len(empty) > 10 else "")
    verb = "holds" if len(empty) == 1 else "hold"
    note = f"{len(empty)} of {len(texts)} pages {verb} no text: {named}" if empty else ""
    held = (f"# page {number}\n\n{text}" for number, text in enumerate(texts, 1) if text)
    return FileText("\n\n".join(held), note)
