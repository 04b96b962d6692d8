"""When memory is to be looked after. Pure: seconds that never jump come in as an argument.

A round that could not be asked for comes again soon; those that were missed are not made up for,
because a pass does whatever there is to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

FIRST_S: Final = 5.0
"""After becoming active (SPEC M-6)."""
AGAIN_S: Final = 60.0
"""After a round that nobody answered, unless it comes sooner anyway."""
REST: Final = 9.0
"""While there is a backlog: so it takes a tenth of a core at most."""
REST_S_MIN: Final = 1.0


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """A pass that is asked for again and again."""

    what: Literal["maintenance", "association"]
    every_s: float
    next_s: float


def begin(
    now_s: float, *, maintenance_s: float, association_s: float, first_s: float = FIRST_S
) -> tuple[Round, ...]:
    """Return the rounds of somebody who just became active."""
    return (
        Round(what="maintenance", every_s=maintenance_s, next_s=now_s + first_s),
        Round(what="association", every_s=association_s, next_s=now_s + association_s),
    )


def due(rounds: Sequence[Round], now_s: float) -> Round | None:
    """Return the round that has been due for the longest; None: none is.

    >>> rounds = begin(0.0, maintenance_s=100.0, association_s=10.0)
    >>> due(rounds, 4.9), due(rounds, 11.0).what
    (None, 'maintenance')
    """
    first = min(rounds, key=lambda one: one.next_s)
    return first if first.next_s <= now_s else None


def wait_s(rounds: Sequence[Round], now_s: float) -> float:
    """Return the seconds until a round is due."""
    return max(min(one.next_s for one in rounds) - now_s, 0.0)


def after(
    rounds: Sequence[Round],
    done: Round,
    now_s: float,
    *,
    was_answered: bool,
    more_after_s: float | None = None,
) -> tuple[Round, ...]:
    """Return the rounds after one of them was tried.

    Args:
        more_after_s: how long it took, if there is more to do than it did: then it comes again
            after `REST` times as long.

    >>> rounds = begin(0.0, maintenance_s=1000.0, association_s=10.0)
    >>> [one.next_s for one in after(rounds, rounds[0], 7.0, was_answered=True)]
    [1007.0, 10.0]
    >>> [one.next_s for one in after(rounds, rounds[0], 7.0, was_answered=False)]
    [67.0, 10.0]
    >>> [one.next_s for one in after(rounds, rounds[1], 7.0, was_answered=True, more_after_s=0.5)]
    [5.0, 11.5]
    """
    pause_s = done.every_s if was_answered else min(done.every_s, AGAIN_S)
    if more_after_s is not None:
        pause_s = min(done.every_s, max(REST * more_after_s, REST_S_MIN))
    return tuple(
        msgspec.structs.replace(one, next_s=now_s + pause_s) if one.what == done.what else one
        for one in rounds
    )
