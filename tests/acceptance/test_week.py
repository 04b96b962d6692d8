"""A night and its morning, and a week, with an agent that keeps up by itself: what is asked, and
what stands still (FLOW). `make test` lives the first, `make chaos` the second, too."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from services.executor.sandbox import bubblewrap
from tests.support.examples import repeats
from tests.support.week import BEN, DAY_STEPS, FACTS, MARK, ORDER, WHOLE, Plot, Week, running

MORNING_STEPS: Final = 13 * 2
DAY: Final = Plot(
    failing=(timedelta(hours=1, minutes=10), timedelta(days=1)), hostile=(0,), asking=0, unknown=9
)
EVENING: Final = 19 * 2
"""Step after which she allows for good what she was asked for in the night."""


async def live(week: Week, steps: int) -> None:
    await week.begin(facts={"facts": FACTS})
    for number in range(steps):
        await week.step(number)
        if number == EVENING:
            await week.allow()


def asked_for(requests: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """Return what was asked for, by tool and the value that stands for it."""
    return Counter((one["tool"], next(iter(one["input"].values()))) for one in requests)


async def test_a_night_and_a_morning_ask_for_what_nobody_ordered_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-1 to F-13: 13 checks, 26 cycles, a briefing with an order in it, a task, mail."""
    if bubblewrap.find() is None:
        pytest.skip("needs bubblewrap")
    async with running(tmp_path, monkeypatch, DAY) as week:
        await live(week, MORNING_STEPS)
        assert asked_for(await week.requests()) == {
            ("shell", "date"): 1,
            ("post__send", MARK): 1,
            ("ask_user", "Keep the rest?"): 1,
        }
        assert await week.begun("ci", 14) == 14, "what reads the page each hour asks nobody"
        assert await week.begun("autonomy", 27) == 27, "it is due by the clock"
        for name in ("ci", "autonomy", "briefing"):
            ended = await week.ended(name)
            assert ended["failed"] + ended["missed"] + ended["coalesced"] == 0, name
        (morning,) = week.mornings
        assert "- ci: failing since 02:01, was passing (cron ci, 30 min ago)" in morning
        assert " 01:10 (cron ci, 30 min ago)" in morning, "without a word of the page"
        assert "FAILING" not in morning
        assert ORDER not in morning.partition("Letters that you opened")[0]
        assert [one["to"] for one in week.sent(tmp_path)] == [BEN]


@pytest.mark.repeated
async def test_a_week_asks_once_a_day_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not repeats(1, fast=0):
        pytest.skip("a week takes three minutes: make chaos")
    if bubblewrap.find() is None:
        pytest.skip("needs bubblewrap")
    async with running(tmp_path, monkeypatch, WHOLE) as week:
        await live(week, 7 * DAY_STEPS)
        requests = await week.requests()
        days = Counter(one["asked_at"][:10] for one in requests)
        assert max(days.values()) == 1, asked_for(requests)
        assert await week.begun("ci", 7 * 24 + 1) == 7 * 24 + 1
        looks = 7 * DAY_STEPS + 1
        assert await week.begun("autonomy", looks) == looks
        knowing = [day for day, text in enumerate(week.mornings) if "\n- ci: failing" in text]
        assert knowing == [2, 3]
        assert {one["to"] for one in week.sent(tmp_path)} == {BEN}
