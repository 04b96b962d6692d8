"""A text in Markdown as plain words, for where nothing is drawn: a title, a notification. Pure.

Only marks are left out. What isn't Markdown stays as it was written, `2*3*4` and `snake_case`, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from .markdown import structure_of

if TYPE_CHECKING:
    from markdown_it.token import Token

_MARKS: Final = re.compile(r"[*_`~\[\]#>|\\<&]|^\s*(?:[-+]|\d+[.)])\s|^\s*[-=]+\s*$", re.MULTILINE)
"""Without one of these a text has nothing to be left out."""
_ENDED: Final = tuple(".,:;!?…")
_ITEM: Final = "• "


def plain_lines(text: str, *, has_addresses: bool = False) -> str:
    r"""Return the words of a text, each of its parts in a line of its own, lists with dots.

    Args:
        has_addresses: where a link leads stands behind its words, for where nobody can follow it.

    >>> plain_lines("## Today\n\n* **basil**: [water](https://a.example)\n* `mint`")
    'Today\n• basil: water\n• mint'
    >>> plain_lines("[Water](https://a.example) <https://b.example>", has_addresses=True)
    'Water (https://a.example) https://b.example'
    """
    tokens = _tokens(text)
    if tokens is None:
        return text
    found = [
        f"{head or _ITEM if is_item else ''}{words}"
        for words, is_item, head in _parts(tokens, has_addresses)
    ]
    return "\n".join(found) or text


def one_line(text: str) -> str:
    r"""Return the words of a text in one line.

    >>> one_line("**Plan** for the garden\n\n- basil\n- `mint`")
    'Plan for the garden: basil, mint'
    >>> one_line("# Trip to _Graz_\nWhat do I need?")
    'Trip to Graz: What do I need?'
    >>> one_line("2*3*4 of snake_case,\nplease"), one_line("1. *first*\n2. second")
    ('2*3*4 of snake_case, please', '1. first, 2. second')
    """
    tokens = _tokens(text)
    line, had_item, was_head = "", False, False
    for words, is_item, head in () if tokens is None else _parts(tokens):
        if line.endswith(_ENDED):
            line += " "
        elif line:
            line += ", " if is_item and had_item else ": " if is_item or was_head else " "
        line += f"{head if is_item else ''}{words}"
        had_item, was_head = had_item or is_item, bool(head) and not is_item
    return " ".join((line or text).split())


def _tokens(text: str) -> Sequence[Token] | None:
    return structure_of(text) if _MARKS.search(text) else None


_Part = tuple[str, bool, str]


def _parts(tokens: Iterable[Token], has_addresses: bool = False) -> Iterator[_Part]:
    """Yield what stands in lines of its own: its words, whether an item of a list begins with it,
    and what it begins with: an item its number, if it has one; a heading its marks."""
    head, is_item, is_cell, cells = "", False, False, list[str]()
    for one in tokens:
        if one.type == "list_item_open":
            is_item, head = True, f"{one.info}{one.markup} " if one.info else ""
        elif one.type == "heading_open":
            head = head or one.markup
        elif one.type in ("th_open", "td_open"):
            is_cell = True
        elif one.type == "tr_close":
            yield "  ".join(cells), False, ""
            cells.clear()
        elif is_cell and one.type == "inline":
            cells.append(_words(one.children or (), has_addresses))
            is_cell = False
        elif one.type in ("inline", "fence", "code_block"):
            inner = one.children
            words = one.content.strip("\n") if inner is None else _words(inner, has_addresses)
            if words.strip():
                yield words.strip(), is_item, head
            is_item, head = False, ""


def _words(tokens: Iterable[Token], has_addresses: bool) -> str:
    """Return what a line says, without its marks; but those within a word are none."""
    words, address, begun = "", "", 0
    kept: list[bool] = []
    for one in tokens:
        if one.type == "link_open":
            address, begun = str(one.attrs.get("href", "")), len(words)
        elif one.type == "link_close":
            if has_addresses and address not in words[begun:]:
                words += f" ({address})"
        elif one.type.endswith("_open") and one.markup:
            kept.append(words[-1:].isalnum())
            words += one.markup if kept[-1] else ""
        elif one.type.endswith("_close") and one.markup:
            words += one.markup if kept.pop() else ""
        elif one.type == "image":
            words += one.content or "picture"
            words += f" ({one.attrs.get('src', '')})" if has_addresses else ""
        elif one.type in ("softbreak", "hardbreak"):
            words += "\n"
        else:
            words += one.content
    return words
