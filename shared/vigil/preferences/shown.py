"""Which preferences a model is told, and how they read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from ..contracts.board import BoardPreference
from .confidence import confidence_at, is_held, is_used

USED_MAX: Final = 40
"""That are gone by: the surest."""
UNSURE_MAX: Final = 5
"""That are asked about: the surest of those that aren't gone by yet."""


class ShownPreferences(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is told."""

    used: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()


def shown(
    preferences: Iterable[BoardPreference], now: datetime, period: timedelta, *, asks: bool
) -> ShownPreferences:
    """Choose what to tell, the surest first: one line each.

    Args:
        period: without a confirmation, that takes a little of how sure one is.
        asks: whether a person is there, who can be asked about what isn't sure.
    """
    held = [one for one in preferences if is_held(one, now, period)]
    held.sort(key=lambda one: (-confidence_at(one, now, period), one.key))
    used = [one for one in held if is_used(one, now, period)]
    unsure = [one for one in held if not is_used(one, now, period)] if asks else []
    return ShownPreferences(
        used=tuple(map(described, used[:USED_MAX])),
        unsure=tuple(map(described, unsure[:UNSURE_MAX])),
    )


def described(preference: BoardPreference) -> str:
    """Return a preference in a line.

    >>> from datetime import UTC
    >>> at = datetime(2026, 11, 20, tzinfo=UTC)
    >>> described(BoardPreference(id="a", owner="ann", agent="vigil", category="code",
    ...                           key="auto_merge", value=True, is_negative=True, confidence=0.9,
    ...                           last_confirmed_at=at, created_at=at))
    'code, auto_merge: not true'
    """
    value = preference.value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    no = "not " if preference.is_negative else ""
    return f"{preference.category}, {preference.key}: {no}{text}"
