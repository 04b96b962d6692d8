"""What an agent wrote in Markdown, as rows of a terminal.

Rich draws it. What stands in the text may be anybody's, so what Rich made is looked at piece by
piece: its text without control characters, and no escape code but those of our own styles.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

from vigil.words import markdown

from .. import output

if TYPE_CHECKING:
    from markdown_it.token import Token

THEME: Final = "ansi_dark"
"""Of code: the terminal's own colours, on its own ground."""


def drawn(text: str, width: int, *, has_colours: bool) -> str | None:
    """Return a text as rows of at most `width` columns; None: it has nothing to be drawn.

    >>> drawn("so it is", 40, has_colours=False) is None
    True
    >>> drawn("- *one*\\n- two", 40, has_colours=False)
    ' • one\\n • two'
    """
    tokens = markdown.structure_of(text)
    if tokens is None or markdown.is_plain(tokens):
        return None
    from rich.console import Console
    from rich.markdown import Markdown

    made = Markdown("", code_theme=THEME, hyperlinks=False)
    made.parsed = [_in_words(token) for token in tokens]
    console = Console(file=io.StringIO(), width=width, legacy_windows=False, force_terminal=True)
    pieces = (_shown(segment, has_colours) for segment in console.render(made))
    rows = "".join(pieces).split("\n")
    return "\n".join(row.rstrip() for row in rows).strip("\n")


def _in_words(token: Token) -> Token:
    """Return a token with its pictures as words where they stand, and their address: Rich draws a
    sign for each before all else of its paragraph."""
    for one in token.children or ():
        if one.type == "image":
            one.type, one.content = "text", f"picture: {one.content} ({one.attrGet('src')})"
            one.children = None
    return token


def _shown(segment: Any, has_colours: bool) -> str:
    if segment.control:
        return ""
    text = output.printable(segment.text)
    if not has_colours or segment.style is None or not text.strip():
        return text
    return str(segment.style.render(text))
