"""How many there are, in words. Pure."""

from __future__ import annotations


def count_of(count: int, one: str, many: str = "") -> str:
    """Say how many there are, the thing in its number.

    Args:
        many: of several; empty: with an s.

    >>> count_of(1, "token"), count_of(2, "memory", "memories"), count_of(0, "time")
    ('1 token', '2 memories', '0 times')
    """
    return f"{count} {number_of(count, one, many)}"


def number_of(count: int, one: str, many: str = "") -> str:
    """Return the word for so many things.

    >>> f"{1:,} {number_of(1, 'token')}, {1500:,} {number_of(1500, 'token')}"
    '1 token, 1,500 tokens'
    """
    return one if count == 1 else many or f"{one}s"
