"""How long to wait before what failed is tried again: a pause that doubles up to a limit. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

DOUBLINGS_MAX: Final = 32
"""A failure that goes on for good must not grow the number that is cut off anyway."""


class Backoff(msgspec.Struct, frozen=True):
    """The pause after the first failure in a row, and the longest one; both in seconds.

    Two equal numbers make a pause that stays the same.
    """

    first_s: float
    max_s: float

    def after(self, failures: int) -> float:
        """Return the pause after so many failures in a row, 1 or more.

        >>> [Backoff(0.5, 3.0).after(n) for n in (1, 2, 3, 4, 1000)]
        [0.5, 1.0, 2.0, 3.0, 3.0]
        """
        return min(self.first_s * 2.0 ** min(failures - 1, DOUBLINGS_MAX), self.max_s)


def doubled(first: timedelta, longest: timedelta, failures: int) -> timedelta:
    """Return the pause after so many failures in a row, 1 or more: the first, doubled up to the
    longest.

    >>> [str(doubled(timedelta(minutes=1), timedelta(hours=6), n)) for n in (1, 2, 3, 99)]
    ['0:01:00', '0:02:00', '0:04:00', '6:00:00']
    """
    pause = Backoff(first.total_seconds(), longest.total_seconds())
    return timedelta(seconds=pause.after(failures))
