"""What a session may hand down to one that it starts: sessions, steps and time. Pure.

A conversation, a branch, a run and a cycle hand down *sessions*: how many may descend from one
event is counted, and what a child may start is taken from what its parent has left. A worker has
none to give, or each worker would take up the room of several. It lends of its own *steps* instead:
a reader that it starts makes calls of a model that the worker then doesn't make itself. So who
starts a worker sets aside one session for it, whatever that starts, and all of them together make
no more calls than one worker may.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

STEPS_MIN: Final = 3
"""The fewest steps that are lent: to look, to look once more, and to say what was found."""
STEPS_KEPT: Final = 2
"""Steps that who lends keeps: to go on with what comes back, and to say what came of it."""
MARGIN_SHARE: Final = 0.1
"""The share of the time until a session counts as lost itself by which what it starts is given up
earlier, so that it can still say what it has."""


def sessions_for(left: int, most: int) -> int:
    """Return how many sessions may descend from one that is started.

    Args:
        left: that may be started yet, this one included.
        most: that its kind has at once.

    >>> sessions_for(7, 3), sessions_for(3, 3), sessions_for(7, 0)
    (3, 2, 0)
    """
    return min(left - 1, most) if most else 0


def steps_for(left: int, most: int, free: int) -> int:
    """Return how many of its steps a session lends to one that it starts; 0: too few are left.

    As many as it keeps, if it starts as many more as it may: so those that it starts in one answer
    get alike much.

    Args:
        left: steps that it has yet.
        most: that the other's kind is given.
        free: how many more it may start beside each other, this one included.

    >>> steps_for(49, 20, 3), steps_for(37, 20, 2), steps_for(25, 20, 1)
    (12, 12, 12)
    >>> steps_for(5, 20, 3), steps_for(4, 20, 3)
    (3, 0)
    """
    lent = min(most, max(left // (free + 1), STEPS_MIN))
    return lent if left - lent >= STEPS_KEPT else 0


def kept_of(lent: int, used: int) -> int:
    """Return how many steps stay taken of those that were lent, now that it's known how many were
    made; what tells nothing of that has used them all.

    >>> kept_of(12, 4), kept_of(12, 0), kept_of(12, 20)
    (4, 12, 12)
    """
    return min(used, lent) or lent


def due_within(at: datetime, now: datetime, own_end: datetime | None) -> datetime:
    """Return when what a session starts counts as lost: before that does itself.

    Args:
        at: when it would, by its kind.
        own_end: when the session itself counts as lost; None: never.
    """
    if own_end is None:
        return at
    return min(at, own_end - max(own_end - now, timedelta(0)) * MARGIN_SHARE)
