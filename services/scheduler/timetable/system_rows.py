"""Rows that nobody makes: they follow from the configuration and from who talks with whom. Pure.

Each agent has one of each kind (`kinds`) for each person whom it has talked with. It's made once
they talk, and changed when the configuration is; what a row is for is in its id, so it's made once,
whoever makes it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from vigil.contracts import TimetableRow
from vigil.contracts.board import EverySchedule, Work, kind_of
from vigil.subjects import Scope, token_of

FIELDS: Final = ("schedule", "work", "is_enabled", "zone", "has_owners_zone")
"""What of a row follows from the configuration."""


def made(
    whose: Scope,
    work: Work,
    schedule: EverySchedule,
    *,
    zone: str,
    is_enabled: bool,
    first_at: datetime,
    now: datetime,
    grace_s: int | None = None,
    of: str = "",
) -> TimetableRow:
    """Return a row of a kind, which is called like that.

    Args:
        first_at: when it's due for the first time.
        of: what it's about, of a kind of which there are several.
    """
    kind = kind_of(work)
    return TimetableRow(
        id=token_of("row", kind, whose.agent, whose.owner, *([of] if of else [])),
        owner=whose.owner,
        agent=whose.agent,
        name=f"{kind}-{of}" if of else kind,
        work=work,
        schedule=schedule,
        zone=zone,
        has_owners_zone=True,
        is_enabled=is_enabled,
        made_by="system",
        made_at=now,
        scheduled_at=first_at - timedelta(seconds=schedule.interval_s),
        grace_s=grace_s,
    )


def interval_of(row: TimetableRow) -> timedelta:
    """Return how often such a row is due."""
    if not isinstance(row.schedule, EverySchedule):
        raise AssertionError(f"{row.id} has another schedule than it was made with")
    return timedelta(seconds=row.schedule.interval_s)


def as_wanted(row: TimetableRow, wanted: TimetableRow, now: datetime) -> TimetableRow | None:
    """Return a row as it is to be; None: it is so. A new schedule holds from now on."""
    if all(getattr(row, name) == getattr(wanted, name) for name in FIELDS):
        return None
    changed = {name: getattr(wanted, name) for name in FIELDS}
    is_same = row.schedule == wanted.schedule and row.is_enabled == wanted.is_enabled
    since = row.scheduled_at if is_same else now
    return replace(row, **changed, scheduled_at=since)
