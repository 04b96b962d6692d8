"""How soon a goal begins a look of the mind (SPEC G-1). Pure.

A goal says when it is due. That alone would have a model asked without an end wherever a look can't
take its own part down: refused by the board, it's as due as before. So what such looks cost is
bounded here, whatever the cause:

    a look left it as due as before    the next waits twice as long, up to `LATER_MAX`
    the mind made it itself            it begins no look within `OWN_APART` of the look before

Whoever is looked at anyway, since another goal is due or something came in, is looked at with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from ..backoff import doubled
from ..contracts.base import SET_BACK_MIN
from ..contracts.board import BoardGoal
from ..minds import mind_of
from ..subjects import Scope
from . import lifecycle
from .check import OWN_INTERVAL_S_MIN

LATER_MAX: Final = timedelta(hours=6)
"""The longest wait for the next look at what looks leave as due as before."""
OWN_APART: Final = timedelta(seconds=OWN_INTERVAL_S_MIN)
"""A mind that makes goals, or sets how often they're checked, isn't begun oftener by that."""


def is_own(goal: BoardGoal) -> bool:
    """Whether the mind itself made it, as a goal, a habit or a part of one."""
    return goal.session_key == str(mind_of(Scope(goal.agent, goal.owner)))


def begins_at(
    goal: BoardGoal,
    looks: Iterable[datetime],
    last_at: datetime | None,
    tick: timedelta,
    now: datetime,
) -> datetime | None:
    """Return from when on a goal begins a look; None: it isn't pursued now.

    Args:
        looks: when those at it began, the oldest first; none of before a person changed it.
        last_at: when the last look at whatever ended, or was skipped; None: there was none.
        tick: the shortest time from one look to the next.
    """
    at = lifecycle.next_check_at(goal, now)
    if at is None:
        return None
    if is_own(goal) and last_at is not None:
        at = max(at, min(last_at, now) + OWN_APART)
    return max(at, _left(at, looks, tick, now))


def _left(due_at: datetime, looks: Iterable[datetime], tick: timedelta, now: datetime) -> datetime:
    """Return until when a goal waits that looks since it was due left as it was."""
    left = [one for one in looks if due_at <= one and one - now <= SET_BACK_MIN]
    if not left:
        return due_at
    return left[-1] + later(tick, len(left))


def later(tick: timedelta, looks: int) -> timedelta:
    """Return how long the next look waits after so many that changed nothing.

    >>> [later(timedelta(seconds=30), looks).total_seconds() for looks in (1, 2, 3, 99)]
    [30.0, 60.0, 120.0, 21600.0]
    """
    return doubled(tick, max(LATER_MAX, tick), max(looks, 1))


def taken(due: Sequence[BoardGoal]) -> Sequence[BoardGoal]:
    """Return which of the goals that are due one look is at: those that content from outside had a
    part in have looks of their own, once no other is due."""
    return [one for one in due if not one.is_tainted] or due
