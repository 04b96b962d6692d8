"""What an agent wrote in Markdown, as markup. Pure.

The text is anybody's: a model writes what it read. So a library finds the structure, and this
module writes the tags: those of its table, with no attribute but what it makes itself. HTML in the
text is text. Links lead to the web or to a mail address, and say where if their words don't;
pictures are links, since loading one would tell its server what an agent put into the address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from markupsafe import Markup, escape

from vigil.words import formulas, markdown

from ..text import clip, visible
from .code import highlighted, language_of
from .formula import Formula, drawn

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

INFO_MAX: Final = 40
"""Characters of what a fence says of its code."""
_GROWTH: Final = 12
"""Times as long as the text, at most, is its markup without formulas, above `_GROWTH_FREE`
characters."""
_GROWTH_FREE: Final = 4_000
_WEB: Final = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?(?=[/?#]|$)", re.I)
"""An address of the web, without a name before the host that could pass for one."""
_MAIL: Final = re.compile(r"mailto:([^\s@?&/\\:]+@[a-z0-9.-]+)(?=\?|$)", re.I)
_SAME: Final = ("blockquote", "em", "strong", "tbody", "thead", "tr")
_TAGS: Final = {name: name for name in _SAME} | {
    "paragraph": "p",
    "bullet_list": "ul",
    "list_item": "li",
    "s": "del",
}
_TURNED: Final = frozenset({"paragraph", "blockquote", "list_item"})
"""What finds its own direction."""
_START: Final = Markup("<{}{}>")
_END: Final = Markup("</{0}>")
_TURN: Final = Markup(' dir="auto"')
_NOTHING: Final = Markup("")
_CODE: Final = Markup(
    '<div class="code"><div class="top"><bdi>{}</bdi>'
    '<button type="button" class="copy">Copy</button></div>'
    '<pre tabindex="0" dir="ltr"><code>{}</code></pre></div>'
)
_OWN: Final = Markup(
    '<div class="scroll formula" tabindex="0" role="group" aria-label="Formula">{}</div>'
)
_BESIDE: Final = Markup(
    '<span class="formula" tabindex="0" role="group" aria-label="Formula">{}</span>'
)
_WIDE: Final = 20
"""Signs of a formula; one with more may be wider than a phone, so it can be scrolled."""
_PLAIN: Final = Markup('<p class="text" dir="auto">{}</p>')


def prose(text: str) -> Markup:
    """Return a text as markup; one that is too much for it as text.

    >>> str(prose("*now* <b>"))
    '<p dir="auto"><em>now</em> &lt;b&gt;</p>'
    >>> str(prose("[pay](javascript:x)"))
    '<p dir="auto">[pay](javascript:x)</p>'
    """
    seen = visible(text)
    tokens = markdown.structure_of(seen, _parser)
    if tokens is None:
        return _PLAIN.format(seen)
    writer = _Writer(tokens)
    made = writer.written()
    length = len(made) - writer.drawn_length
    is_long = length > _GROWTH_FREE and length > _GROWTH * len(text)
    return _PLAIN.format(seen) if is_long else made


def leads_to(href: str) -> str:
    """Return the host or the mail address that a link leads to, empty: it's none to follow.

    >>> leads_to("https://a.example:8/x"), leads_to("mailto:b@a.example?subject=x")
    ('a.example:8', 'b@a.example')
    >>> [leads_to(one) for one in ("javascript:x", "/console", "//a", "https://bank@a", "data:,")]
    ['', '', '', '', '']
    """
    if found := _WEB.match(href):
        return (found[1] + (found[2] or "")).lower()
    found = _MAIL.match(href)
    return unquote(found[1]) if found else ""


def says_where(words: str, target: str) -> bool:
    """Return whether a link's own words say where it leads.

    >>> says_where("https://a.example/x", "a.example"), says_where("a.org", "a.org.evil.example")
    (True, False)
    """
    said = re.sub(r"^(https?://|mailto:)", "", words.strip().lower())
    return re.split(r"[/?#]", said)[0] == target.lower()


@cache
def _parser(**may_have: bool) -> MarkdownIt:
    made = markdown.made_parser(**may_have, finds_addresses=True, shows_formulas=True)
    made.validateLink = lambda url: bool(leads_to(url))  # type: ignore[method-assign]
    return made


class _Writer:
    """Writes the tags of one text."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._made: list[Markup] = []
        self._links: list[tuple[str, int]] = []
        """Where each open link leads, and where its words begin."""
        self.drawn_length = 0
        """Characters of the markup of all formulas."""

    def written(self) -> Markup:
        """Return all of it."""
        self._write(self._tokens)
        return Markup("").join(self._made).strip()

    def _write(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            kind, _, edge = token.type.rpartition("_")
            write = _WRITERS.get(token.type)
            if write is not None:
                write(self, token)
            elif edge in ("open", "close") and kind in _TAGS:
                if not token.hidden:  # a paragraph of a list whose items stand close together
                    self._tag(_TAGS[kind], token, _TURN if kind in _TURNED else _NOTHING)
            else:
                self._text(token)

    def _tag(self, tag: str, token: Token, attributes: Markup) -> None:
        form = _START if token.nesting == 1 else _END
        self._made.append(form.format(tag, attributes))

    def _text(self, token: Token) -> None:
        self._made.append(escape(visible(token.content)))

    def _inline(self, token: Token) -> None:
        self._write(token.children or ())

    def _line(self, token: Token) -> None:
        self._made.append(Markup("<br>"))

    def _rule(self, token: Token) -> None:
        self._made.append(Markup("<hr>"))

    def _heading(self, token: Token) -> None:
        # The page has headings of its own, in an order; these are a message's.
        start = Markup('<p class="head" dir="auto"><strong>')
        self._made.append(start if token.nesting == 1 else Markup("</strong></p>"))

    def _numbers(self, token: Token) -> None:
        start = token.attrGet("start")
        is_set = isinstance(start, int)
        self._tag("ol", token, Markup(' start="{}"').format(start) if is_set else _NOTHING)

    def _table(self, token: Token) -> None:
        start = Markup('<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>')
        self._made.append(start if token.nesting == 1 else Markup("</table></div>"))

    def _cell(self, token: Token) -> None:
        is_right = token.attrGet("style") == "text-align:right"
        tag = "td" if token.type.startswith("td") else "th"
        self._tag(tag, token, _TURN + Markup(' class="number"') if is_right else _TURN)

    def _word(self, token: Token) -> None:
        self._made.append(Markup('<code dir="auto">{}</code>').format(visible(token.content)))

    def _code(self, token: Token) -> None:
        inside = highlighted(token.content, language_of(token.info))
        self._made.append(_CODE.format(visible(clip(token.info.strip(), INFO_MAX)), inside))

    def _formula(self, token: Token) -> None:
        """Write a formula; within a link as it was written, so that it says nothing else."""
        is_own = token.type == formulas.BLOCK
        is_wide = token.type != "math_inline"
        found = None if self._links else self._drawn(token.content, is_wide=is_wide)
        source = formulas.source_of(token)
        if found is None and is_own:
            self._made.append(_CODE.format("", visible(source)))
        elif found is None:
            self._made.append(Markup('<code dir="auto">{}</code>').format(visible(source)))
        elif is_own:
            self._made.append(_OWN.format(found.markup))
        elif is_wide or found.width > _WIDE:
            self._made.append(_BESIDE.format(found.markup))
        else:
            self._made.append(found.markup)

    def _drawn(self, source: str, *, is_wide: bool) -> Formula | None:
        found = drawn(source, is_wide=is_wide)
        if found is not None:
            self.drawn_length += len(found.markup)
        return found

    def _link(self, token: Token) -> None:
        if token.nesting == 1:
            href = str(token.attrGet("href") or "")
            self._made.append(_start_of(href))
            self._links.append((leads_to(href), len(self._made)))
            return
        target, begins = self._links.pop()
        words = Markup("").join(self._made[begins:]).striptags()
        self._end(target, words)

    def _end(self, target: str, words: str) -> None:
        self._made.append(Markup("</a>"))
        if not says_where(words, target):
            self._made.append(Markup(' <bdi class="dim">({})</bdi>').format(visible(target)))

    def _picture(self, token: Token) -> None:
        name = visible(_words_of(token.children or ()).strip() or "without a name")
        words = f"picture: {name}"
        if self._links:  # a picture that is a link leads where that leads
            self._made.append(escape(words))
            return
        href = str(token.attrGet("src") or "")
        self._made += [_start_of(href), escape(words)]
        self._end(leads_to(href), words)


def _start_of(href: str) -> Markup:
    start = Markup('<a href="{}" target="_blank" rel="noopener noreferrer nofollow">')
    return start.format(href)


def _words_of(tokens: Sequence[Token]) -> str:
    """Return the words among tokens, without what they are marked with."""
    return "".join(
        _words_of(one.children)
        if one.children
        else formulas.source_of(one)
        if one.type in formulas.INLINE
        else one.content
        for one in tokens
    )


_WRITERS: Final[dict[str, Callable[[_Writer, Any], None]]] = {
    "inline": _Writer._inline,
    "softbreak": _Writer._line,
    "hardbreak": _Writer._line,
    "hr": _Writer._rule,
    "heading_open": _Writer._heading,
    "heading_close": _Writer._heading,
    "ordered_list_open": _Writer._numbers,
    "ordered_list_close": _Writer._numbers,
    "table_open": _Writer._table,
    "table_close": _Writer._table,
    "td_open": _Writer._cell,
    "td_close": _Writer._cell,
    "th_open": _Writer._cell,
    "th_close": _Writer._cell,
    "code_inline": _Writer._word,
    "code_block": _Writer._code,
    "fence": _Writer._code,
    "math_inline": _Writer._formula,
    "math_inline_double": _Writer._formula,
    formulas.BLOCK: _Writer._formula,
    "link_open": _Writer._link,
    "link_close": _Writer._link,
    "image": _Writer._picture,
}
