"""How many there are, and how long something takes, in words. Pure."""

from __future__ import annotations

from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3600), ("min", 60))


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


def span_of(seconds: float) -> str:
    """Say a duration exactly, in its largest whole unit.

    >>> span_of(86_400), span_of(90), span_of(2.5)
    ('1 d', '90 s', '2.5 s')
    """
    unit, size = next((one for one in _UNITS if seconds and seconds % one[1] == 0), ("s", 1))
    return f"{seconds / size:.15g} {unit}"


def about(seconds: float) -> str:
    """Say a duration that was measured: in its largest unit of which it has two, rounded.

    >>> about(0.4), about(119), about(437.2), about(93_600), about(400_000)
    ('0 s', '119 s', '7 min', '26 h', '5 d')
    """
    unit, size = next((one for one in _UNITS if seconds >= 2 * one[1]), ("s", 1))
    return f"{seconds / size:.0f} {unit}"
