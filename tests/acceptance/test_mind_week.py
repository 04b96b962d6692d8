"""A week with a mind: habits learned, goals inferred, reached, missed and stopped; then a quiet one
(SPEC G, seed 003)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.support.mind_week import BEGIN, PAGE, block, costs, live, running_week, told

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
        assert [line[4:9] for line in week.lines if "vigil: " in line and "23:" in line[4:9]] == []
        taken = await costs(week.ann.http)
        assert taken["_mind"][0] > 3, "looks at more than one goal are the mind's own"
        assert taken["Write the report"][0] or taken["Ship the release"][0], taken
        looks, asked = week.looks, len(week.api.requests)
        for day in (5, 8, 12):
            await week.until(day, 12)
        assert (week.looks, len(week.api.requests)) == (looks, asked), "a quiet week is free"
        assert told(PAGE.read_text("utf-8").partition(BEGIN)[2]) == told(block(week.lines))
