"""What a cycle says of itself at its end: read from the model's answer, written down for memory.

Pure. A report is short, because the next cycle is shown it: what is longer is cut, and instants
that can't be meant are put right.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from vigil.contracts.board import CycleReport, Recheck
from vigil.errors import InvalidInput

from ..pending.tasks import shortened
from ..sway import Sway
from ..tools import json_answer

POINTS_MAX: Final = 30
"""The most points of each kind."""
POINT_LENGTH_MAX: Final = 300
"""Characters."""
RECHECKS_MAX: Final = 10
SOONEST: Final = timedelta(minutes=5)
LATEST: Final = timedelta(days=30)
KINDS: Final = {"checked": "Checked", "found": "Found", "deferred": "Put off"}

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        **{name: {"type": "array", "items": {"type": "string"}} for name in KINDS},
        "recheck": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "what": {"type": "string"},
                    "at": {"type": "string", "description": "RFC 3339, with its offset"},
                },
                "required": ["what", "at"],
                "additionalProperties": False,
            },
        },
    },
    "required": [*KINDS, "recheck"],
    "additionalProperties": False,
}
"""The schema of an answer."""


def read(text: str, now: datetime, sway: Sway) -> CycleReport:
    """Read a report.

    Args:
        sway: of who wrote it.

    Raises:
        InvalidInput: it is none; the reason is for the model to read.

    >>> from datetime import UTC
    >>> now = datetime(2026, 11, 20, 1, 30, tzinfo=UTC)
    >>> text = '{"checked": ["CI"], "recheck": [{"what": "CI", "at": "2026-11-20T02:00:00Z"}]}'
    >>> read(text, now, Sway.NONE).rechecks[0].what
    'CI'
    """
    found = json_answer.object_in(text, "report")
    points = {name: _points(name, found.get(name, [])) for name in KINDS}
    rechecks = found.get("recheck", [])
    if not isinstance(rechecks, list):
        raise InvalidInput("report", "'recheck' must be a list")
    return CycleReport(
        **points,
        rechecks=tuple(_recheck(one, now, sway) for one in rechecks[:RECHECKS_MAX]),
        is_tainted=sway.is_outside,
    )


def _points(name: str, given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise InvalidInput("report", f"{name!r} must be a list of strings")
    return short(given)


def short(points: Iterable[str]) -> tuple[str, ...]:
    """Return points as a report may have them, each on a line."""
    lines = (" ".join(one.replace("\0", "").split()) for one in points)
    return tuple(shortened(one, POINT_LENGTH_MAX) for one in lines if one)[:POINTS_MAX]


def _recheck(given: object, now: datetime, sway: Sway) -> Recheck:
    if not isinstance(given, dict) or not isinstance(given.get("what"), str):
        raise InvalidInput("report", "each of 'recheck' must be an object with 'what' and 'at'")
    try:
        at = datetime.fromisoformat(str(given.get("at")))
        wait = at - now if at.tzinfo is not None else None
    except (ValueError, OverflowError):
        wait = None
    if wait is None:
        reason = f"{str(given.get('at'))[:50]!r} is no instant: write it as 2026-11-20T02:30:00Z"
        raise InvalidInput("report", reason)
    what = short([given["what"]])
    if not what:
        raise InvalidInput("report", "'what' of 'recheck' must say something")
    return Recheck(
        what=what[0], at=now + min(max(wait, SOONEST), LATEST), is_tainted=sway.is_outside
    )


def words_of(report: CycleReport) -> str:
    """Write a report down.

    >>> print(words_of(CycleReport(checked=("CI", "mail"), found=("CI is green",))))
    Checked: CI; mail
    Found: CI is green
    """
    lines = [
        f"{said}: {'; '.join(getattr(report, name))}"
        for name, said in KINDS.items()
        if getattr(report, name)
    ]
    if report.rechecks:
        again = "; ".join(f"{one.what} ({one.at:%Y-%m-%d %H:%M} UTC)" for one in report.rechecks)
        lines.append(f"To look at again: {again}")
    return "\n".join(lines)
