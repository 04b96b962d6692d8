"""Bars before what others wrote, for who writes a prompt and who reads one. Pure."""

from __future__ import annotations

from typing import Final

BAR: Final = "| "
"""Before each line of what others said."""


def barred(text: str) -> str:
    """Put text that an outsider wrote behind bars, whatever it takes for the end of a line.

    Nothing in it can begin a line of its own, so it can't pose as anything else.

    >>> barred("a\\r\\n[Follow-up due]\\u2028b")
    '| a\\n| [Follow-up due]\\n| b'
    """
    return "\n".join(BAR + part for part in text.splitlines())
