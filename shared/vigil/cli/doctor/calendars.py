"""What `vigil doctor` says of calendars: by the configuration, and by who keeps them."""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import Any, Final

from vigil import distribution
from vigil.calendars.section import CalendarSection
from vigil.checks import Check, fail, of_secret, ok, warn
from vigil.doctor.channels import Examine
from vigil.errors import VigilError
from vigil.settings.config import Settings
from vigil.words.amounts import count_of

from .. import options

ADVICE: Final = "see docs/calendar.md"
LIBRARIES: Final = ("httpx2", "icalendar", "recurring_ical_events")


def checks(settings: Settings) -> dict[str, Examine]:
    """Return a check for each calendar, by name."""
    return {
        f"calendar {name}": partial(_calendar, name, one)
        for name, one in sorted(settings.config.calendars.items())
    }


def _calendar(name: str, section: CalendarSection, settings: Settings) -> Check:
    missing = [one for one in LIBRARIES if importlib.util.find_spec(one) is None]
    if missing:
        return fail(f"not installed: {', '.join(missing)}", distribution.command_for())
    if (found := of_secret(settings.home, section.password_file)) is not None:
        return found
    try:
        known = {one["name"]: one for one in options.client().calendars()}
    except (VigilError, KeyError):
        known = {}
    return check_of(section.kind, known.get(name))


def check_of(kind: str, state: dict[str, Any] | None) -> Check:
    """Return what a calendar's state means.

    >>> check_of("caldav", {"state": "refused", "problem": "401: no", "remarks": [], "events": 3})
    ... # doctest: +ELLIPSIS
    Check(name='', state='warn', found='caldav, refused: 401: no', advice='see docs/calendar.md')
    """
    if state is None or state["state"] == "not_running":
        return ok(f"{kind}; nothing runs that keeps it")
    if state["problem"]:
        return warn(f"{kind}, {state['state']}: {state['problem']}", ADVICE)
    found = f"{kind}, {state['state']}; {count_of(state['events'], 'event')}"
    if state["remarks"]:
        return warn(f"{found}; {'; '.join(state['remarks'][:3])}", ADVICE)
    return ok(found)
