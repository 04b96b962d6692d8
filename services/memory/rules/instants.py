"""Instants as SQLite keeps them: whole microseconds since 1970, UTC. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
DAY: Final = 86_400_000_000
"""Microseconds."""


def micros(instant: datetime) -> int:
    """Return an aware instant as microseconds, exactly.

    >>> micros(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    return (instant - EPOCH) // _MICROSECOND


def micros_or_none(instant: datetime | None) -> int | None:
    return None if instant is None else micros(instant)


def instant(value: int) -> datetime:
    """Return the instant of so many microseconds; the inverse of :func:`micros`."""
    return EPOCH + timedelta(microseconds=value)


def instant_or_none(value: int | None) -> datetime | None:
    return None if value is None else instant(value)


def seconds(value: int) -> float:
    """Return microseconds as epoch seconds, as the vector indexes keep them."""
    return value / 1_000_000
