"""What stands in a message for what isn't its author's own word, or isn't taken. Pure."""

from __future__ import annotations

from typing import Final

FORWARDED: Final = "[forwarded, not read: it isn't your word]"
MADE: Final = "[made by another bot, not read: it isn't your word]"
OTHER: Final = "[something that isn't text]"


def with_attached(text: str, kind: str) -> str:
    """Return a text with the remark that something was attached, of what kind: it isn't taken.

    Its name isn't told: whoever made the file chose it.

    >>> with_attached("", "a file"), with_attached("a", "")
    ('[attached, not taken: a file]', 'a')
    """
    if not kind:
        return text
    remark = f"[attached, not taken: {kind}]"
    return f"{text}\n\n{remark}" if text else remark
