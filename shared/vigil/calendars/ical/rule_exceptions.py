"""Instances that a rule takes out of a series: ``EXRULE``, of RFC 2445. Pure.

RFC 5545 dropped it, and readers of calendars pass it over (`findings`). Rules go by the clocks of
the series, so an instance is compared by what these show.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from dateutil.rrule import rrulestr

_DAY: Final = timedelta(days=1)
"""More than two clocks are apart."""


class RuleExceptions:
    """What the rules of a series take out, in a stretch of time.

    Raises:
        ValueError: a rule is none.
    """

    def __init__(self, events: Sequence[Any], since: date, until: date) -> None:
        """Work it out.

        Args:
            events: all descriptions of one event. Those of its changed instances have no rules.
        """
        self._out: set[datetime] = set()
        first, last = (datetime.combine(day, time.min) for day in (since, until))
        for event in events:
            found = None if "RECURRENCE-ID" in event else event.get("EXRULE")
            for rule in found if isinstance(found, list) else [found] * (found is not None):
                start = event["DTSTART"].dt
                asked = rrulestr(_text(rule, start), dtstart=_wall(start))
                self._out.update(asked.between(first - _DAY, last + _DAY, inc=True))

    def __contains__(self, begins: date) -> bool:
        """Whether an instance that begins then is taken out."""
        return _wall(begins) in self._out


def _wall(at: date) -> datetime:
    """Return what clocks show there; of a day its beginning."""
    if isinstance(at, datetime):
        return at.replace(tzinfo=None)
    return datetime.combine(at, time.min)


def _text(rule: Any, start: date) -> str:
    """Return a rule with its end on the clocks of the series."""
    rule = type(rule)(rule)
    if until := rule.get("UNTIL"):
        (end,) = until if isinstance(until, list) else [until]
        zone = start.tzinfo if isinstance(start, datetime) else None
        if not isinstance(end, datetime):
            end = datetime.combine(end, time.max)
        elif end.tzinfo is not None:
            end = end.astimezone(zone or UTC)
        rule["UNTIL"] = [end.replace(tzinfo=None, microsecond=0)]
    return str(rule.to_ical().decode())
