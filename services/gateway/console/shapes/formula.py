"""A formula in LaTeX, as MathML. Pure.

A library makes it, of text that anybody may have written. What it made is read again, and written
anew with the tags, attributes and values of the tables here; if there is anything else in it, or
too much, it isn't drawn, and whoever shows it shows the source. So a formula holds no link, no
style and no name, hides nothing, and covers nothing that stands beside it.
"""

from __future__ import annotations

import html.parser
import re
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec
from markupsafe import Markup, escape

from ..text import visible

if TYPE_CHECKING:
    from math_core import LatexToMathML

LENGTH_MAX: Final = 1_000
"""Characters of a source: with what can stand in each other in so many, the library needs an eighth
of the stack, and a millisecond."""
NESTED_MAX: Final = 16
"""Braces and brackets within each other in a source; of tags in what it becomes, twice as many."""
GROWTH_MAX: Final = 40
"""Times as long as a source, at most, is its markup."""
_LENGTH: Final = re.compile(r"0|[0-2]?(\.\d{1,8})?em")
_FLAG: Final = re.compile("true|false")
_VALUES: Final = {
    "accent": _FLAG,
    "accentunder": _FLAG,
    "display": re.compile("block"),
    "displaystyle": _FLAG,
    "form": re.compile("prefix|infix|postfix"),
    "linethickness": re.compile("0"),
    "lspace": _LENGTH,
    "mathvariant": re.compile("normal"),
    "maxsize": _LENGTH,
    "minsize": _LENGTH,
    "movablelimits": _FLAG,
    "rspace": _LENGTH,
    "scriptlevel": re.compile("[0-2]"),
    "stretchy": _FLAG,
    "symmetric": _FLAG,
    "width": _LENGTH,
}
"""What each attribute may say, whole."""
_LEVELS: Final = frozenset({"displaystyle", "scriptlevel"})
_TAGS: Final = {
    "b": frozenset[str](),
    "i": frozenset[str](),
    "math": frozenset({"display"}),
    "mfrac": _LEVELS | {"linethickness"},
    "mi": frozenset({"mathvariant"}),
    "mn": frozenset[str](),
    "mo": frozenset(
        {"form", "lspace", "maxsize", "minsize", "movablelimits", "rspace", "stretchy", "symmetric"}
    ),
    "mover": frozenset({"accent"}),
    "mpadded": frozenset[str](),
    "mroot": frozenset[str](),
    "mrow": _LEVELS,
    "mspace": frozenset({"width"}),
    "msqrt": frozenset[str](),
    "mstyle": _LEVELS,
    "msub": frozenset[str](),
    "msubsup": frozenset[str](),
    "msup": frozenset[str](),
    "mtable": _LEVELS,
    "mtd": frozenset[str](),
    "mtext": frozenset[str](),
    "mtr": frozenset[str](),
    "munder": frozenset({"accentunder"}),
    "munderover": frozenset({"accent", "accentunder"}),
}
_BOX: Final = [("notation", "box")]
"""Of a `menclose`, which browsers don't know: a class here, too."""
_WORDS: Final = frozenset({"b", "i"})
"""Tags within an `mtext`."""
_ENDS: Final = frozenset({"mi", "mn", "mo", "mtext", "mspace"}) | _WORDS
"""Tags that hold text, or nothing."""
_SIDES: Final = (("text-align: right", "right"), ("text-align: left", "left"))
"""What a cell's style says, which is a class here."""
_UNSAID: Final = str.maketrans(dict.fromkeys(map(chr, (*range(0x2061, 0x2065), 0xFE00, 0xFE01))))
"""Characters by which a library says that something is applied, or multiplied, or how a letter is
drawn; nobody sees them."""
_REFUSALS: Final = frozenset({"LatexError", "PanicException"})
_DEFINES: Final = re.compile(r"\\(re|provide)?(new|DeclareMath|def|let|[gex]def|futurelet|command)")


class Formula(msgspec.Struct, frozen=True, kw_only=True):
    """A formula as it's shown."""

    markup: Markup
    width: int
    """Of how many signs, about."""


def drawn(source: str, *, is_wide: bool) -> Formula | None:
    r"""Return a formula as MathML; None: it's to be shown as it was written.

    >>> drawn(r"\frac12", is_wide=False).markup
    Markup('<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>')
    >>> drawn(r"\href{https://a.example}{x}", is_wide=False) is None
    True

    Args:
        is_wide: whether it has lines of its own.
    """
    if len(source) > LENGTH_MAX or _depth(source) > NESTED_MAX or _DEFINES.search(source):
        return None
    made = _converted(source, is_wide=is_wide)
    reader = _MarkupReader()
    try:
        reader.feed(made)
        reader.close()
    except _Unlisted:
        return None
    if not reader.is_whole or not reader.width:
        return None
    markup = Markup("").join(reader.made)
    is_long = len(markup) > 200 + GROWTH_MAX * len(source)
    return None if is_long else Formula(markup=markup, width=reader.width)


def _depth(source: str) -> int:
    """Return how deep braces, environments and brackets stand in each other, at most."""
    depth = deepest = 0
    for found in re.finditer(r"[{}]|\\(begin|end|left|right)(?![a-zA-Z])", source):
        depth += 1 if found.group() in ("{", "\\begin", "\\left") else -1
        deepest = max(deepest, depth)
    return deepest


@cache
def _converter() -> LatexToMathML:
    from math_core import LatexToMathML

    return LatexToMathML(fancy_error=False, max_expansions=0)


def _converted(source: str, *, is_wide: bool) -> str:
    """Return what the library makes of it; empty: it isn't one that it knows."""
    with _Refusals():
        return _converter().convert_with_local_state(source, displaystyle=is_wide)
    return ""


class _Refusals:
    """What the library raises of a text, and what Rust panics with, ends here."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and kind.__name__ in _REFUSALS


class _Unlisted(Exception):
    """There is something in it that may not be there."""


class _MarkupReader(html.parser.HTMLParser):
    """Reads what the library made, and writes it anew."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Markup] = []
        self.width = 0
        self._open: list[str] = []

    @property
    def is_whole(self) -> bool:
        """Whether all that was opened is closed."""
        return not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        above = self._open[-1] if self._open else ""
        if tag in _WORDS:
            may_be = above == "mtext" and not attrs
        elif tag == "menclose":
            may_be = above not in _ENDS and attrs == _BOX
        else:
            may_be = tag in _TAGS and above not in _ENDS and bool(above) != (tag == "math")
        if not may_be or len(self._open) > 2 * NESTED_MAX:
            raise _Unlisted(tag)
        if tag == "menclose":
            self.made.append(Markup('<mrow class="boxed">'))
        else:
            self.made.append(Markup("<{}{}>").format(tag, _attributes(tag, attrs)))
        self.width += tag == "mspace"
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            raise _Unlisted(tag)
        self.made.append(Markup("</{}>").format("mrow" if tag == "menclose" else tag))

    def handle_data(self, data: str) -> None:
        text = data.translate(_UNSAID)
        above = self._open[-1] if self._open else ""
        if above not in _ENDS - {"mspace"}:
            if text.strip():
                raise _Unlisted(data)
            return
        self.width += len(text)
        self.made.append(escape(visible(text)))

    def _unlisted(self, data: str, /) -> None:
        raise _Unlisted(data)

    handle_comment = handle_decl = handle_pi = unknown_decl = _unlisted  # type: ignore[assignment]


def _attributes(tag: str, attrs: list[tuple[str, str | None]]) -> Markup:
    made = [Markup("")]
    for name, value in attrs:
        if name == "style":
            found = [kind for says, kind in _SIDES if says in str(value)] if tag == "mtd" else []
            made += [Markup(' class="{}"').format(kind) for kind in found[:1]]
        elif name not in _TAGS[tag] or not _VALUES[name].fullmatch(value or ""):
            raise _Unlisted(name)
        else:
            made.append(Markup(' {}="{}"').format(name, value))
    return Markup("").join(made)
