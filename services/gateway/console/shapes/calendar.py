"""A week of the timetable: what became of each instant that was due, and what is to come. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from vigil.board.kinds.row import RowView

from ...timetable.slots import SlotView

SHOWN_MAX: Final = 12
"""Entries of one day."""


class CalendarEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An instant of a row."""

    at: datetime
    row: str
    name: str
    owner: str
    agent_id: str
    state: str
    """What became of it; empty: it is to come."""
    reason: str = ""
    count: int = 1


class CalendarDay(msgspec.Struct, frozen=True, kw_only=True):
    """A day in the reader's zone."""

    day: date
    is_today: bool
    entries: tuple[CalendarEntry, ...]
    left_out: int


def monday_of(day: date) -> date:
    """Return the Monday of a day's week.

    >>> monday_of(date(2026, 11, 25))
    datetime.date(2026, 11, 23)
    """
    return day - timedelta(days=day.weekday())


def week_of(
    first: date,
    rows: Collection[RowView],
    slots: Iterable[SlotView],
    now: datetime,
    zone: ZoneInfo,
) -> list[CalendarDay]:
    """Return the seven days from `first` on, each with its entries in their order.

    What the system keeps up by itself, each hour or so, is no part of what is to come; of what was,
    only where it failed.

    Args:
        slots: the newest first: of an instant the first one counts.
    """
    system = {one.id for one in rows if one.made_by == "system"}
    newest: dict[tuple[str, datetime], SlotView] = {}
    for slot in slots:
        newest.setdefault((slot.row, slot.due_at), slot)
    entries = [
        CalendarEntry(
            at=slot.due_at,
            row=slot.row,
            name=slot.name,
            owner=slot.owner,
            agent_id=slot.agent_id,
            state=slot.state,
            reason=slot.reason,
            count=slot.count,
        )
        for slot in newest.values()
        if slot.row not in system or slot.state in ("failed", "missed")
    ]
    entries += [
        CalendarEntry(
            at=at, row=row.id, name=row.name, owner=row.owner, agent_id=row.agent_id, state=""
        )
        for row in rows
        if row.is_enabled and row.made_by != "system"
        for at in row.next_at
    ]
    entries.sort(key=lambda one: one.at)
    today = now.astimezone(zone).date()
    found = []
    for number in range(7):
        day = first + timedelta(days=number)
        of_day = [one for one in entries if one.at.astimezone(zone).date() == day]
        found.append(
            CalendarDay(
                day=day,
                is_today=day == today,
                entries=tuple(of_day[:SHOWN_MAX]),
                left_out=max(len(of_day) - SHOWN_MAX, 0),
            )
        )
    return found
