"""What a message is for Telegram: parts, as HTML and as they are written. Pure.

Telegram knows few tags and no lists or headings, and refuses a text whose tags it can't read: then
it's sent as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

import msgspec

from ...contracts import Said
from ...words import markdown
from ..chats.lists import OpenLists
from ..chats.parts import parts_of, units

if TYPE_CHECKING:
    from markdown_it.token import Token

UNITS_MAX: Final = 4_000
"""Of a part's text, in UTF-16; Telegram takes 4,096 of what is shown."""
_TAGS: Final = {"strong": "b", "em": "i", "s": "s"}
_WEB: Final = re.compile(r"https?://[^\s\"<>]+")


class TelegramPart(msgspec.Struct, frozen=True, kw_only=True):
    """One message to send."""

    text: str
    html: str = ""
    """Empty: it's nothing but text."""


def composed(said: Said, console_url: str) -> tuple[list[TelegramPart], str]:
    """Return a message in parts, in order, and the request that is decided on below them."""
    parts = parts_of(said, console_url, UNITS_MAX, units)
    return [TelegramPart(text=one, html=html_of(one)) for one in parts.texts], parts.asks


def html_of(text: str) -> str:
    """Return a text in Markdown as the HTML that Telegram knows; empty: it's nothing but text.

    >>> html_of("**now** <b>\\n\\n- a\\n- b"), html_of("just text")
    ('<b>now</b> &lt;b&gt;\\n\\n• a\\n• b', '')
    """
    tokens = markdown.structure_of(text, markdown.parser)
    if tokens is None or markdown.is_plain(tokens):
        return ""
    return re.sub(r"\n{3,}", "\n\n", _blocks(tokens)).strip()


_MARKS: Final = {
    "hr": "———\n\n",
    "heading_open": "<b>",
    "heading_close": "</b>\n\n",
    "blockquote_open": "<blockquote>",
}


def _blocks(tokens: Sequence[Token]) -> str:
    out: list[str] = []
    lists = OpenLists()
    for token in tokens:
        match token.type:
            case "inline":
                out.append(_inline(token.children or ()))
            case "fence" | "code_block":
                out.append(f"<pre>{escape(token.content.rstrip(), quote=False)}</pre>\n\n")
            case "blockquote_close":
                _end_quote(out)
            case other:
                mark = lists.mark_of(token)
                out.append(_MARKS.get(other, "") if mark is None else mark)
    return "".join(out)


def _end_quote(out: list[str]) -> None:
    while out and not out[-1].strip("\n"):
        out.pop()
    out[-1] = out[-1].rstrip("\n")
    out.append("</blockquote>\n\n")


def _inline(tokens: Sequence[Token]) -> str:
    out: list[str] = []
    open_links: list[bool] = []
    for token in tokens:
        match token.type:
            case "text":
                out.append(escape(token.content, quote=False))
            case "softbreak" | "hardbreak":
                out.append("\n")
            case "code_inline":
                out.append(f"<code>{escape(token.content, quote=False)}</code>")
            case "link_open":
                target = str(token.attrGet("href") or "")
                open_links.append(_WEB.fullmatch(target) is not None)
                if open_links[-1]:
                    out.append(f'<a href="{escape(target)}">')
            case "link_close":
                out.append("</a>" if open_links.pop() else "")
            case "image":
                out.append(escape(token.content, quote=False))
            case _:
                name = token.type.removesuffix("_open").removesuffix("_close")
                if name in _TAGS:
                    out.append(f"<{'/' if token.nesting < 0 else ''}{_TAGS[name]}>")
    return "".join(out)
