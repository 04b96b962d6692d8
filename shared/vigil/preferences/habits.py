"""Habits: a preference that is sure and was seen again and again becomes a goal (SPEC G-3).

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from ..contracts.board import BoardPreference
from ..subjects import token_of
from .confidence import is_used

TIMES: Final = 3
"""So often within `WITHIN` is a habit (SPEC G-3)."""
WITHIN: Final = timedelta(days=7)
CATEGORIES: Final = ("schedule", "workflow")
"""Of what recurs; how the person writes, or likes code, is nothing to pursue."""
READ_MAX: Final = 50


def recent(preferences: Iterable[BoardPreference], now: datetime) -> tuple[BoardPreference, ...]:
    """Return those that may be habits once they're taught once more, the newest last."""
    found = [one for one in preferences if _times(one, now) >= TIMES - 1 and not one.is_removed]
    return tuple(sorted(found, key=lambda one: (one.last_confirmed_at, one.id))[-READ_MAX:])


def is_habit(preference: BoardPreference, now: datetime, period: timedelta) -> bool:
    """Whether that is to be pursued from now on."""
    is_sure = is_used(preference, now, period) and not preference.is_negative
    return is_sure and preference.category in CATEGORIES and _times(preference, now) >= TIMES


def goal_id(preference: BoardPreference) -> str:
    """Return the id of the goal that a habit becomes: one for each, so one that was put away isn't
    made again."""
    return token_of("goal", "habit", preference.agent, preference.owner, preference.key)


def _times(preference: BoardPreference, now: datetime) -> int:
    return sum(now - lesson.at <= WITHIN for lesson in preference.learned_from)
