"""Code with its words told apart, as markup. Pure.

A highlighter gets text that anybody may have written: only a few languages are known here, only so
much is looked at, and what comes of it are words in spans of eight classes, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

from markupsafe import Markup, escape

from ..text import visible

LENGTH_MAX: Final = 8_000
"""Characters of a piece of code; a longer one is shown plain."""
_NAMES: Final = """
bash sh shell zsh | c | cpp c++ cc hpp | css | diff patch | docker dockerfile | go | html | ini
java | javascript js jsx | json jsonc | kotlin kt | make makefile | php | python py python3
ruby rb | rust rs | shell-session console | sql | swift | toml | typescript ts tsx | xml | yaml yml
"""
"""What people write for each language that is known, its own name first."""
_KNOWN: Final = {
    name: names.split()[0]
    for names in _NAMES.strip().replace("\n", "|").split("|")
    for name in names.split()
}
_CLASSES: Final = (
    ("Comment", "c-note"),
    ("Keyword", "c-key"),
    ("Literal.String", "c-text"),
    ("Literal.Number", "c-count"),
    ("Name.Function", "c-name"),
    ("Name.Class", "c-name"),
    ("Name.Tag", "c-key"),
    ("Name.Builtin", "c-name"),
    ("Name.Attribute", "c-name"),
    ("Generic.Deleted", "c-out"),
    ("Generic.Inserted", "c-in"),
    ("Generic.Prompt", "c-note"),
)


def language_of(info: str) -> str:
    """Return the language that a fence names, empty: none that is known.

    >>> language_of("py title=x"), language_of("cobol"), language_of("")
    ('python', '', '')
    """
    return _KNOWN.get(info.strip().lower().partition(" ")[0], "")


def highlighted(code: str, language: str) -> Markup:
    """Return a piece of code, with a line feed at its end, as markup.

    Args:
        language: of :func:`language_of`; empty has nothing told apart.

    >>> str(highlighted("x = 1", "python")).strip()
    'x = <span class="c-count">1</span>'
    """
    if not language or len(code) > LENGTH_MAX:
        return escape(visible(code))
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language, stripnl=False)
    pieces = (_piece(name, text) for name, text in _runs(lexer.get_tokens(code)))
    return Markup("").join(pieces)


def _runs(tokens: Iterable[tuple[Any, str]]) -> Iterator[tuple[str, str]]:
    """Yield what stands in a row with one class as one piece."""
    named = ((_class_of(str(kind)), text) for kind, text in tokens)
    for name, run in groupby(named, key=lambda one: one[0]):
        yield name, "".join(text for _, text in run)


def _class_of(kind: str) -> str:
    kind = kind.removeprefix("Token.")
    return next((name for start, name in _CLASSES if kind.startswith(start)), "")


def _piece(name: str, text: str) -> Markup:
    shown = escape(visible(text))
    return Markup('<span class="{}">{}</span>').format(name, shown) if name else shown
