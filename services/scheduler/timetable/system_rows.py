"""Rows that nobody makes: they follow from the configuration and from who talks with whom.

Each agent keeps up with the world for each person whom it has talked with (SPEC C-7), by a row of
theirs. It's made once they talk, and changed when the configuration is; what a row is for is in its
id, so it's made once, whoever makes it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from vigil.contracts import TimetableRow
from vigil.contracts.board import AutonomyWork, EverySchedule
from vigil.settings.config import Config
from vigil.subjects import Scope, token_of
from vigil.timetable.cycles import KIND

FIRST_AFTER: Final = timedelta(seconds=90)
"""A person who just began is not to pay for a cycle before the first answers are there."""
FIELDS: Final = ("schedule", "work", "is_enabled", "zone")
"""What of a row follows from the configuration."""


def cycle_row(config: Config, whose: Scope, zone: str, now: datetime) -> TimetableRow:
    """Return the row by which an agent keeps up for a person."""
    interval_s = config.cortex.autonomy_interval_secs
    return TimetableRow(
        id=token_of("row", KIND, whose.agent, whose.owner),
        owner=whose.owner,
        agent=whose.agent,
        name=KIND,
        work=AutonomyWork(timeout_s=config.cortex.autonomy_timeout_s),
        schedule=EverySchedule(interval_s=interval_s),
        zone=zone,
        is_enabled=is_on(config, whose.agent),
        made_by="system",
        made_at=now,
        scheduled_at=now + FIRST_AFTER - timedelta(seconds=interval_s),
    )


def is_on(config: Config, agent: str) -> bool:
    """Whether an agent keeps up by itself, as configured."""
    may = "off" not in (config.agent_of(agent).authority, config.autonomy.authority_max)
    return config.autonomy.enabled and config.cortex.autonomy_enabled and may


def as_wanted(row: TimetableRow, wanted: TimetableRow, now: datetime) -> TimetableRow | None:
    """Return a row as it is to be; None: it is so. A new schedule holds from now on."""
    if all(getattr(row, name) == getattr(wanted, name) for name in FIELDS):
        return None
    changed = {name: getattr(wanted, name) for name in FIELDS}
    is_same = row.schedule == wanted.schedule and row.is_enabled == wanted.is_enabled
    since = row.scheduled_at if is_same else now
    return replace(row, **changed, scheduled_at=since)
