"""A reminder at an end of the calendar, where the clocks of some zones show nothing any more."""

from __future__ import annotations

from datetime import time
from typing import Any, Final

import pytest

from services.cortex.core.draft.policy import Hours
from services.cortex.own_tools.follow_ups import BEYOND
from tests.cortex.driver import Driver, answer, call
from vigil.contracts import ToolResultBlock
from vigil.zones.database import zone_named

ZONES: Final = ("Pacific/Kiritimati", "America/New_York", "UTC")
"""The farthest ahead, one that is behind, and neither."""


def scheduled(zone: str, fire_at: str) -> tuple[Driver, ToolResultBlock]:
    """Have the agent make a reminder for a person with quiet hours; return what it was told."""
    asked: dict[str, Any] = {"timer_id": "far", "reason": "r", "message": "m", "keep": True}
    script = [answer(call("schedule_followup", fire_at=fire_at, **asked)), answer("ok")]
    driver = Driver(lambda _: script.pop(0))
    driver.hours = Hours(zone=zone_named(zone), quiet=(time(8), time(12)))
    driver.user()
    blocks = [block for turn in driver.turns for row in turn.rows for block in row.blocks]
    (result,) = [block for block in blocks if isinstance(block, ToolResultBlock)]
    return driver, result


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "fire_at",
    [
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-12:00",
        "9990-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
    ],
)
def test_one_beyond_the_calendar_is_refused_and_the_message_answered(
    zone: str, fire_at: str
) -> None:
    """S-8: the exchange was given up after five attempts, as no clock of that zone shows it."""
    driver, result = scheduled(zone, fire_at)
    assert (result.content, result.is_error) == (BEYOND, True)
    assert driver.texts == ["ok"]
    assert driver.state.follow_ups == {}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("fire_at", ["0001-01-01T00:00:00Z", "9989-12-31T23:59:59Z"])
def test_one_within_it_is_made(zone: str, fire_at: str) -> None:
    """S-8: whatever is past is due at once."""
    driver, result = scheduled(zone, fire_at)
    assert "Scheduled reminder" in result.content
    assert driver.texts == ["ok"]
    assert "far" in driver.state.follow_ups
