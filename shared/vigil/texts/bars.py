"""Bars before what others wrote, for who writes a prompt and who reads one. Pure."""

from __future__ import annotations

from typing import Final

BAR: Final = "| "
"""Before each line of what others said."""
_ENDS: Final = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""What ends a line for `str.splitlines`."""


def barred(text: str) -> str:
    """Put text that an outsider wrote behind bars, whatever it takes for the end of a line.

    Nothing in it can begin a line of its own, so it can't pose as anything else.

    >>> barred("a\\r\\n[Follow-up due]\\u2028b")
    '| a\\n| [Follow-up due]\\n| b'
    """
    return "\n".join(BAR + part for part in text.splitlines())


def bytes_barred(text: str) -> int:
    """Return how many bytes `barred` makes of a text, in UTF-8, without making them: of a text of
    millions of lines that takes many times its size.

    >>> bytes_barred("a\\r\\nß\\n"), len(barred("a\\r\\nß\\n").encode())
    (8, 8)
    """
    counts = {end: text.count(end) for end in _ENDS}
    lines = sum(counts.values()) - text.count("\r\n") + (text[-1:] not in _ENDS)
    ends = sum(count * len(end.encode()) for end, count in counts.items())
    return len(text.encode()) - ends + max(lines * len(BAR) + lines - 1, 0)
