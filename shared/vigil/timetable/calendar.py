"""What is to come, as a calendar that other programs read. Pure. Source: RFC 5545.

Each instant is an event of its own, in UTC: what a cron expression means on the days that clocks
change is decided here, and not by who reads it.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice, takewhile
from types import MappingProxyType
from typing import Final

from ..contracts import TimetableRow
from ..contracts.board import ChosenSchedule, CronWork, Ledger
from .schedule import upcoming

EVENTS_MAX: Final = 2_000
EVENTS_OF_A_ROW_MAX: Final = 400
"""A year of days, and some."""
DESCRIPTION_LENGTH_MAX: Final = 1_000
LINE_BYTES_MAX: Final = 75
"""Octets of a line without its end (section 3.1)."""
_HEAD: Final = ("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Vigil//Timetable//EN")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BREAKS: Final = str.maketrans({"\\": r"\\", ";": r"\;", ",": r"\,", "\n": r"\n"})


def calendar_of(
    rows: Iterable[TimetableRow],
    now: datetime,
    until: datetime,
    ledgers: Mapping[str, Ledger] = MappingProxyType({}),
) -> str:
    """Return the instants at which rows are due, the soonest first, at most `EVENTS_MAX`.

    Args:
        ledgers: by row, of those whose runs choose when the next is: of them the next is told.

    Raises:
        InvalidInput: a schedule is none.
    """
    on = [row for row in rows if not (row.is_of_system or row.is_removed) and row.is_enabled]
    instants = (_instants(row, ledgers.get(row.id, Ledger()), now, until) for row in on)
    merged = heapq.merge(*instants, key=lambda one: one[0])
    lines = [*_HEAD]
    for at, row in islice(merged, EVENTS_MAX):
        lines += _event(row, at, now)
    return "".join(f"{fold(line)}\r\n" for line in [*lines, "END:VCALENDAR"])


def _instants(
    row: TimetableRow, ledger: Ledger, now: datetime, until: datetime
) -> Iterator[tuple[datetime, TimetableRow]]:
    is_one = row.runs_once or isinstance(row.schedule, ChosenSchedule)
    count = 1 if is_one else EVENTS_OF_A_ROW_MAX
    within = takewhile(lambda at: at <= until, upcoming(row, now, ledger))
    return ((at, row) for at in islice(within, count))


def _event(row: TimetableRow, at: datetime, now: datetime) -> list[str]:
    prompt = row.work.prompt if isinstance(row.work, CronWork) else ""
    return [
        "BEGIN:VEVENT",
        f"UID:{row.id}-{_instant(at)}",
        f"DTSTAMP:{_instant(now)}",
        f"DTSTART:{_instant(at)}",
        f"DURATION:PT{row.work.timeout_s}S",
        f"SUMMARY:{escaped(row.name)}",
        f"DESCRIPTION:{escaped(prompt[:DESCRIPTION_LENGTH_MAX])}",
        "TRANSP:TRANSPARENT",
        "END:VEVENT",
    ]


def _instant(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def escaped(text: str) -> str:
    r"""Return a text as a value (section 3.3.11); control characters are left out.

    >>> escaped("a;b,c\\d\r\ne")
    'a\\;b\\,c\\\\d\\ne'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", text).translate(_BREAKS)


def fold(line: str) -> str:
    r"""Break a long line into some of at most 75 octets, and never a character.

    >>> fold("x" * 80).split("\r\n ")
    ['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', 'xxxxx']
    """
    parts, size = [""], 0
    for character in line:
        more = len(character.encode("utf-8", "replace"))
        if size + more > LINE_BYTES_MAX:
            parts.append("")
            size = 1
        parts[-1] += character
        size += more
    return "\r\n ".join(parts)
