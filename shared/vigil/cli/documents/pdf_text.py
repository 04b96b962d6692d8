"""The text of a PDF's pages, as a program: it reads the PDF, and writes JSON, ``{"pages": […]}`` or
``{"why": "…"}``.

Whoever made a file may have made it to hold a parser up, or to fill its memory. So it runs as a
process of its own that has a share of both (``python -I pdf_text.py``), as
:mod:`vigil.net.readable` does for pages of the web. Only it imports the library.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from io import BytesIO
from typing import Final

from pypdf import PageObject, PdfReader
from pypdf.errors import FileNotDecryptedError, PyPdfError

CPU_S: Final = 60
MEMORY_BYTES: Final = 1024 * 1024 * 1024
CHARACTERS_MAX: Final = 8 * 1024 * 1024
DAMAGE: Final = (PyPdfError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What comes of a page that isn't as pages have to be."""


def pages_of(data: bytes) -> dict[str, object]:
    """Return the text of each page, or why there is none.

    A PDF that a password protects is read if the empty one opens it, as in a viewer.
    """
    pages: list[str] = []
    length = 0
    try:
        for page in PdfReader(BytesIO(data)).pages:
            pages.append(_text_of(page))
            length += len(pages[-1])
            if length > CHARACTERS_MAX:
                return {"why": f"says more than {CHARACTERS_MAX} characters"}
    except FileNotDecryptedError:
        return {"why": "is encrypted: save it without its password"}
    return {"pages": pages}


def _text_of(page: PageObject) -> str:
    """Return what a page says; empty: nothing, or its contents are damaged."""
    try:
        return "\n".join((page.extract_text(), *_filled_in(page))).strip("\n")
    except FileNotDecryptedError:
        raise
    except DAMAGE:
        return ""


def _filled_in(page: PageObject) -> Iterator[str]:
    """Yield what stands on a page beside its own text: what was typed into the fields of a form,
    and notes. Every viewer shows both, and no extractor of text has them (`findings/`)."""
    for each in page.annotations or ():
        one = each.get_object()
        if one.get("/Subtype") == "/FreeText":
            yield str(one.get("/Contents", ""))
        elif one.get("/Subtype") == "/Widget":
            field = one if "/FT" in one else one.get("/Parent", one)
            value = field.get("/V")
            texts = [str(part) for part in (value if isinstance(value, list) else [value])]
            if value is not None and field.get("/FT") in ("/Tx", "/Ch"):
                yield f"{field.get('/T', 'a field')}: {', '.join(texts)}"


def main() -> None:
    """Read, convert, write."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    json.dump(pages_of(sys.stdin.buffer.read()), sys.stdout)


if __name__ == "__main__":
    main()
