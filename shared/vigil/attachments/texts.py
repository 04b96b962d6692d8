"""Files that are text: which bytes are one, whatever a name says, and what it says. Pure."""

from __future__ import annotations

import codecs
import re
from typing import Final

_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]")
"""All control characters but tab, newline, form feed and return."""
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def text_in(data: bytes) -> str | None:
    """Return the text that bytes are: UTF-8, or UTF-16 that begins with its mark, without control
    characters; None: they're none.

    >>> text_in("a,ß\\n".encode("utf-8-sig")), text_in("ß".encode("utf-16")), text_in(b"\\xdf")
    ('a,ß\\n', 'ß', None)
    """
    try:
        text = data.decode("utf-16" if data.startswith(_WIDE) else "utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if _CONTROLS.search(text) else text


def data_of(text: str) -> bytes:
    """Return a text as a file that is one: without what no text file has.

    >>> data_of("a\\0\\x1bb\\n")
    b'ab\\n'
    """
    return _CONTROLS.sub("", text).encode("utf-8", "replace")
