"""How long, often and much a row of the timetable may be, and what documents say of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..fields.schema import HOURS, NO_NUL, SAID, SAID_LINE, ZONE, Schema, given, length, within
from ..skills import form as skills

INTERVAL_S_MIN: Final = 1
INTERVAL_S_MAX: Final = 366 * 86_400
NAME_LENGTH_MAX: Final = 100
PROMPT_LENGTH_MAX: Final = 8_000
GRACE_S_MAX: Final = 7 * 86_400
JITTER_S_MAX: Final = 3600
TIMEOUT_S_MIN: Final = 10
TIMEOUT_S_MAX: Final = 3600
TOKENS_MAX: Final = 10**9
SOONEST_S_MIN: Final = 60
"""Of runs that choose themselves when the next is."""
BEFORE_S_MAX: Final = 30 * 86_400
"""Before an event."""

FORM: Final[Mapping[str, Schema]] = {
    "name": length(NAME_LENGTH_MAX, SAID_LINE),
    "prompt": length(PROMPT_LENGTH_MAX, NO_NUL),
    "skill": skills.SCHEMA | {"pattern": f"^$|{skills.SCHEMA['pattern']}"},
    "cron": {"format": "cron"},
    "interval_s": within(INTERVAL_S_MIN, INTERVAL_S_MAX),
    "soonest_s": within(SOONEST_S_MIN, INTERVAL_S_MAX),
    "latest_s": within(SOONEST_S_MIN, INTERVAL_S_MAX),
    "at": {"format": "instant-or-local-time"},
    "after": {"pattern": "^[0-9a-f]{32}$"},
    "event": {"pattern": "^([0-9a-f]{8})?$"},
    "before_s": within(0, BEFORE_S_MAX),
    "zone": ZONE,
    "grace_s": within(0, GRACE_S_MAX),
    "active_hours": HOURS,
    "jitter_s": within(0, JITTER_S_MAX),
    "timeout_s": within(TIMEOUT_S_MIN, TIMEOUT_S_MAX),
    "daily_tokens": within(0, TOKENS_MAX),
}
"""Of a field of what is asked for."""
TOGETHER: Final[Schema] = {
    "oneOf": [given(name) for name in ("cron", "interval_s", "at", "after", "on_fact", "calendar")],
    "dependentRequired": {
        "soonest_s": ["interval_s", "latest_s"],
        "latest_s": ["interval_s", "soonest_s"],
        "after_on": ["after"],
        "event": ["calendar"],
        "before_s": ["calendar"],
    },
    "anyOf": [given("skill"), {"required": ["prompt"], "properties": {"prompt": SAID}}],
}
"""Of the fields of a new one together."""
