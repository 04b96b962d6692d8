"""How long something takes, in words. Pure."""

from __future__ import annotations

from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3600), ("min", 60))


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
