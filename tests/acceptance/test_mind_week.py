"""A week with a mind: habits learned, goals inferred, reached, missed and stopped; then a quiet one
(SPEC G, seed 003)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.support.mind_week import BEGIN, PAGE, block, costs, live, running_week, told
from vigil.contracts.session_kinds import SESSION_KINDS
from vigil.minds import KIND

HABIT: Final = "workflow, calendar.summary: each morning"


async def test_a_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The five steps of seed 003 by the real SDK, and the transcript that the page shows."""
    async with running_week(tmp_path, monkeypatch) as week:
        await live(week)
        assert await week.goals("completed", "failed", "archived") == {
            "Ship the release": "completed",
            "Write the report": "failed",
            f"Do what you are used to without being asked: {HABIT}": "archived",
        }
        assert any("memory_save, success" in line for line in week.lines), "it acts for a goal"
        said = [line for line in week.lines if line[11:].startswith("vigil: ")]
        assert all("07:00" <= line[4:9] < "22:00" for line in said), "nothing in quiet hours"
        (held,) = [line for line in said if "The build on main failed." in line]
        assert held[:8] == "Wed 07:0", "what they held comes at their end, once"
        taken = await costs(week.ann.http)
        assert taken[SESSION_KINDS[KIND].meaning][0] > 3, (
            "looks at more than one goal are the mind's own"
        )
        assert taken["Write the report"][0] or taken["Ship the release"][0], taken
        looks, asked = week.looks, len(week.api.requests)
        for day in (5, 8, 12):
            await week.until(day, 12)
        assert (week.looks, len(week.api.requests)) == (looks, asked), "a quiet week is free"
        assert told(PAGE.read_text("utf-8").partition(BEGIN)[2]) == told(block(week.lines))
