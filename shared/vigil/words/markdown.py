"""The structure of a text in Markdown, as far as it is worth one. Pure.

A library finds it, in text that anybody may have written: HTML in it is text, and what is too long,
too deep or too wide has none, since the library would leave out a part of it, or make very much of
it. Whoever shows it writes the marks: the console tags, a terminal what it knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from . import formulas

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LENGTH_MAX: Final = 20_000
"""Characters; a longer text is shown as it was written."""
CELLS_MAX: Final = 4_000
"""Cells of tables, about: rows are filled up, so a short text could make very many."""
NESTED_MAX: Final = 24
"""Levels of what stands within each other; the library leaves out what is deeper, so a text that
gets there is shown as it was written."""
_RULE: Final = re.compile(r"^[\s>|:*+-]*\|[\s|:-]*-[\s|:-]*$|^[\s>|:*+-]*-[\s:-]*\|[\s|:-]*$", re.M)
"""The line below the head of a table."""
_PLAIN: Final = frozenset({"paragraph_open", "paragraph_close", "inline", "text", "softbreak"})


def cells_of(text: str) -> int:
    r"""Return how many cells the tables of a text may have, at most about.

    >>> cells_of("|a|b|\n|-|-|\n|1|2|\n"), cells_of("a - b")
    (12, 0)
    """
    widest = max((found.group().count("|") for found in _RULE.finditer(text)), default=0)
    return widest * (text.count("\n") + 1)


def made_parser(
    *,
    may_have_tables: bool,
    may_have_formulas: bool,
    finds_addresses: bool = False,
    shows_formulas: bool = False,
) -> MarkdownIt:
    """Make what finds the structure of a text.

    Args:
        shows_formulas: whether formulas are tokens of their own; else they are text as it was
            written.
        finds_addresses: whether an address of the web is a link without marks, too.
    """
    from markdown_it import MarkdownIt

    options = {"html": False, "maxNesting": NESTED_MAX, "linkify": finds_addresses}
    made = MarkdownIt("commonmark", options)
    made.enable("strikethrough")
    if may_have_tables:
        made.enable("table")
    if may_have_formulas:
        formulas.find_formulas(made, as_text=not shows_formulas)
    if finds_addresses and made.linkify is not None:
        made.enable("linkify")
        made.linkify.set({"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False})
    return made


@cache
def parser(*, may_have_tables: bool, may_have_formulas: bool) -> MarkdownIt:
    """Return what finds the structure of a text."""
    return made_parser(may_have_tables=may_have_tables, may_have_formulas=may_have_formulas)


def structure_of(
    text: str, parser_of: Callable[..., MarkdownIt] = parser
) -> Sequence[Token] | None:
    """Return what a text is made of; None: it's to be shown as it was written.

    Args:
        parser_of: as :func:`parser`, with what else is to be found.
    """
    if len(text) > LENGTH_MAX:
        return None
    marks = formulas.marks_of(text)
    found = parser_of(
        may_have_tables=cells_of(text) <= CELLS_MAX,
        may_have_formulas=0 < marks <= formulas.MARKS_MAX,
    )
    tokens = found.parse(text)
    deepest = max((one.level for one in tokens), default=0)
    return None if deepest >= NESTED_MAX - 1 else tokens


def is_plain(tokens: Sequence[Token]) -> bool:
    """Return whether there is nothing but paragraphs, without a mark.

    >>> [is_plain(structure_of(one) or ()) for one in ("a b", "*a* b", "- a")]
    [True, False, False]
    """
    return all(one.type in _PLAIN and is_plain(one.children or ()) for one in tokens)
