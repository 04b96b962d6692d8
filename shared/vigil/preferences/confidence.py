"""How sure the agent is of a preference: what each lesson does, and what time does (SPEC G-3).

Nothing is ever stored because time passed: what is left of a confidence is computed from the last
lesson that confirmed it, so it doesn't matter how often anybody looks. A period that is configured
anew counts for all the time since then; of what a doubt left, which was stored by the period of its
day, too, so by another one it is a little more or less, and never surer than without the doubt.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec.structs import replace

from ..contracts.board import BoardPreference
from ..contracts.board.preference import Lesson
from ..contracts.effects import canonical

FIRST: Final = 0.3
"""Of what was observed once."""
SAID: Final = 0.9
"""Of what the person said themselves, be it how they like it or how they don't."""
GAIN: Final = 0.25
"""Of what is missing to 1, each confirmation adds so much; another value takes as much away."""
MOST: Final = 0.95
LOST: Final = 0.05
"""For each period without a confirmation (`preferences.decay_days`)."""
TENTATIVE: Final = 0.5
"""Below, the agent asks before it relies on it."""
USED: Final = 0.7
"""From here on it is used without a word."""
CONVICTION: Final = 0.9
LESSONS_MAX: Final = 16
Level = Literal["tentative", "likely", "used", "conviction"]


def confidence_at(preference: BoardPreference, now: datetime, period: timedelta) -> float:
    """Return how sure of it the agent is at `now`: 0 to .95. A correction stands.

    Independent of how often it's asked: whole periods since the last confirmation count.
    """
    if preference.is_negative:
        return preference.confidence
    return round(max(0.0, preference.confidence - _lost(preference, now, period)), 6)


def _lost(preference: BoardPreference, now: datetime, period: timedelta) -> float:
    periods = max(0, (now - preference.last_confirmed_at) // period)
    return periods * LOST


def level_of(confidence: float) -> Level:
    """Name a confidence.

    >>> [level_of(c) for c in (0.3, 0.5, 0.7, 0.9)]
    ['tentative', 'likely', 'used', 'conviction']
    """
    if confidence >= CONVICTION:
        return "conviction"
    if confidence >= USED:
        return "used"
    return "likely" if confidence >= TENTATIVE else "tentative"


def is_held(preference: BoardPreference, now: datetime, period: timedelta) -> bool:
    """Whether it counts towards the bound of its owner: what is wholly forgotten doesn't."""
    return not preference.is_removed and confidence_at(preference, now, period) > 0


def is_used(preference: BoardPreference, now: datetime, period: timedelta) -> bool:
    """Whether the agent goes by it without a word."""
    return not preference.is_removed and confidence_at(preference, now, period) >= USED


def confirmed(confidence: float) -> float:
    """Return what a confirmation makes of a confidence: never less than it was.

    >>> confirmed(0.3)
    0.475
    """
    return max(confidence, min(MOST, round(confidence + (1 - confidence) * GAIN, 6)))


def first(lesson: BoardPreference) -> BoardPreference:
    """Return what a lesson alone teaches: of `learned_from` it has its one."""
    how = lesson.learned_from[-1].how
    return replace(
        lesson,
        confidence=FIRST if how == "observed" else SAID,
        is_negative=how == "corrected",
        last_confirmed_at=lesson.learned_from[-1].at,
    )


def taught(
    before: BoardPreference | None, lesson: BoardPreference, period: timedelta
) -> BoardPreference:
    """Return a preference after one more lesson; the same, if the lesson teaches nothing.

    What the person says replaces whatever stood there. What is only observed confirms the same
    value; another one weakens it, and takes its place once it's tentative; and it changes nothing
    of a correction, nor of what this very exchange taught already.

    Args:
        lesson: what is to be learned, with one entry in `learned_from`; see `first`.
        period: without a confirmation, that takes a little of what is known.
    """
    lesson = first(lesson)
    new = lesson.learned_from[-1]
    if before is None:
        return lesson
    lesson = replace(lesson, learned_from=(*before.learned_from, new)[-LESSONS_MAX:])
    if not is_held(before, new.at, period):
        return lesson
    lesson = replace(lesson, created_at=before.created_at)
    if _is_same(before, lesson):
        return _repeated(before, lesson, new, period)
    return lesson if new.how != "observed" else _doubted(before, lesson, new.at, period)


def _repeated(
    before: BoardPreference, lesson: BoardPreference, new: Lesson, period: timedelta
) -> BoardPreference:
    """Return what is known once more, unless this very exchange taught it already."""
    if new.cause and any(one.cause == new.cause for one in before.learned_from):
        return before
    now = confidence_at(before, new.at, period)
    return replace(lesson, confidence=max(lesson.confidence, confirmed(now)))


def _doubted(
    before: BoardPreference, lesson: BoardPreference, now: datetime, period: timedelta
) -> BoardPreference:
    """Return what is left of a preference once something else was observed."""
    if before.is_negative:
        return before
    weakened = confidence_at(before, now, period) * (1 - GAIN)
    if weakened < TENTATIVE:
        return lesson
    return replace(
        before,
        confidence=round(weakened + _lost(before, now, period), 6),
        learned_from=lesson.learned_from,
    )


def _is_same(one: BoardPreference, other: BoardPreference) -> bool:
    is_same_value = canonical(one.value) == canonical(other.value)
    return is_same_value and one.is_negative == other.is_negative
