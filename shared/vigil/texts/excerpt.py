"""The beginning and the end of a text that is too long, and how much is between them. Pure.

What a tool answers is cut twice: to what a record may hold, and to what a model is shown. Both keep
the two ends, where most tools say what matters, and the second counts what the first left out.
"""

from __future__ import annotations

import re
from typing import Final

_MARK: Final = re.compile(r"\n\[\.\.\. (\d{1,15}) bytes left out \.\.\.\]\n")
SHOWN_LENGTH_MAX: Final = 16_000
"""Characters of a result that a model is shown at most; what is read piece by piece, such as a
file, comes in pieces of that."""
FRAME_BYTES: Final = 1024
"""Of what may be said around a text that was cut, such as how a command ended."""


def mark(count: int) -> str:
    """Return what stands in the place of so many bytes."""
    return f"\n[... {count} bytes left out ...]\n"


def in_bytes(text: str, bytes_max: int) -> str:
    """Return a text that can be stored, with at most `bytes_max` bytes of it.

    >>> in_bytes("short", 100), in_bytes("äbcdefgh", 4)
    ('short', 'ä\\n[... 5 bytes left out ...]\\ngh')
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return data.decode()
    first = bytes_max // 2
    head = data[:first].decode("utf-8", "ignore")
    tail = data[len(data) - (bytes_max - first) :].decode("utf-8", "ignore")
    return head + mark(len(data) - len(head.encode()) - len(tail.encode())) + tail


def in_characters(text: str, length_max: int) -> str:
    """Return a text with at most `length_max` characters of it; of one that was cut before, what is
    left out in all.

    >>> in_characters("a" * 10, 4)
    'aa\\n[... 6 bytes left out ...]\\naa'
    >>> in_characters(in_bytes("a" * 1000, 400), 100) == in_characters("a" * 1000, 100)
    True
    """
    if len(text) <= length_max:
        return text
    first = length_max // 2
    last = len(text) - (length_max - first)
    missing = 0
    if (before := _left_out(text)) is not None:
        # What stands for the first cut goes as a whole, or half of it would be left, and not count.
        first, last = min(first, before.start()), max(last, before.end())
        missing = int(before[1]) - len(before[0])
    return text[:first] + mark(_size(text[first:last]) + missing) + text[last:]


def _left_out(text: str) -> re.Match[str] | None:
    """Find where a text was cut before: in the middle. Elsewhere such a line is its own."""
    for found in _MARK.finditer(text):
        if abs(_size(text[: found.start()]) - _size(text[found.end() :])) <= FRAME_BYTES:
            return found
    return None


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
