"""What a form holds, it sends back: so it's written exactly as it is. Pure.

What a template writes for people names characters that can't be seen, and is cut where it goes on
for pages. In a field that would change what is stored as soon as somebody presses a button.
"""

from __future__ import annotations

import re
from typing import Any, Final

from jinja2.ext import Extension
from markupsafe import escape

from vigil.texts import glyphs

from .text import UNSEEN

_EXPRESSION: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_VALUE: Final = re.compile(r'\bvalue="(?:\{\{.*?\}\}|\{%.*?%\}|[^"{])*"', re.DOTALL)
_AREA: Final = re.compile(r"(<textarea\b(?:\{\{.*?\}\}|[^>{])*>)(.*?)(</textarea>)", re.DOTALL)


class SentBack(Extension):
    """Has each `value` and each text area of a template hold what it's given, unchanged."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return exactly(source)


def exactly(source: str) -> str:
    """Return a template whose fields are filled by `as_it_is`.

    >>> exactly('<b>{{ a }}</b><input value="{{ b }}">')
    '<b>{{ a }}</b><input value="{{ ( b ) | as_it_is }}">'
    >>> exactly("<textarea>{{ a }}</textarea>")
    '<textarea>\\n{{ ( a ) | as_it_is }}</textarea>'
    """
    source = _VALUE.sub(lambda found: _filtered(found[0]), source)
    # A browser leaves out the line feed that a text area begins with: ours, and not the text's.
    return _AREA.sub(lambda found: f"{found[1]}\n{_filtered(found[2])}{found[3]}", source)


def _filtered(part: str) -> str:
    return _EXPRESSION.sub(r"{{ (\1) | as_it_is }}", part)


def as_it_is(value: Any) -> str:
    """Return what a field holds for a value. What can't be seen is written by its number, which a
    browser reads as the character.

    >>> str(as_it_is('"\u202e<')), str(as_it_is(None)), str(as_it_is(escape("<")))
    ('&#34;&#x202E;&lt;', '', '&lt;')
    """
    text = escape("" if value is None else value)
    return text if text.isascii() and text.isprintable() else text.translate(_NUMBERED)


def _numbered(char: str) -> str:
    if not UNSEEN.match(char):
        return char
    is_none = char == "\0" or "\ud800" <= char <= "\udfff"  # a browser has none of them
    return f"&#x{0xFFFD if is_none else ord(char):X};"


_NUMBERED: Final = glyphs.Spelling(_numbered)
