"""Follow-ups that plan the next: how often a model is asked with nobody about (SPEC S-7)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.core import Policy, gates
from tests.cortex.driver import START, Driver, answer, call
from tests.support.examples import up_to
from vigil.contracts import FollowUp

CALLS_OF_LOOP: Final = 2
A_DAY: Final = 24
ORDERED_A_DAY: Final = 144
DOUBLINGS: Final = 7
"""From a minute to an hour."""


class Planning:
    """A conversation whose agent plans in each exchange what the next is for."""

    def __init__(self, plans: list[list[dict[str, Any]]], said: str = "") -> None:
        self.driver = Driver(self._answer)
        self.asked = 0
        self._plans, self._said = plans, said

    def _answer(self, draft: Any) -> Any:
        self.asked += 1
        loop = draft.loop
        if loop.calls == 0:
            plans = self._plans[self.asked % len(self._plans)]
            return answer(*(call("schedule_followup", reason="once more", **one) for one in plans))
        return answer("Yes.") if loop.is_direct else answer(self._said) if self._said else answer()

    def live(self, days: int) -> None:
        end = self.driver.now + timedelta(days=days)
        while (due := self._next()) is not None and due[1].fire_at <= end:
            self.driver.now = max(self.driver.now, due[1].fire_at)
            self.driver.timer(due[0])

    def _next(self) -> tuple[str, FollowUp] | None:
        open_ = self.driver.state.follow_ups.items()
        return min(open_, key=lambda one: (one[1].fire_at, one[0]), default=None)


PLAN: Final = st.fixed_dictionaries(
    {"delay_seconds": st.sampled_from([0, 1, 30, 3600])},
    optional={"timer_id": st.sampled_from(["a", "b", "c"]), "keep": st.booleans()},
)


@given(st.lists(st.lists(PLAN, min_size=1, max_size=3), min_size=1, max_size=4), st.integers(1, 20))
@up_to(100)
def test_a_model_that_plans_the_next_in_each_is_asked_less_and_less(plans: Any, days: int) -> None:
    """10 as it likes, those that were open by then, and then later and later, at last one an hour,
    or six if the person ordered them; one a second were 86,400 a day."""
    planning = Planning(plans)
    planning.driver.policy = Policy(autonomy_enabled=True, follow_ups_max=5)
    planning.driver.user("Look after it!")
    before = planning.asked
    planning.live(days)
    is_ordered = any(plan.get("keep") for together in plans for plan in together)
    a_day = ORDERED_A_DAY if is_ordered else A_DAY
    loops = gates.ASKED_FREE + 5 + DOUBLINGS + a_day * days
    assert planning.asked - before <= loops * CALLS_OF_LOOP


def test_the_person_and_what_comes_from_outside_begin_the_count_anew() -> None:
    planning = Planning([[{"delay_seconds": 1, "timer_id": "a"}]])
    driver = planning.driver
    driver.user("Look after it!")
    planning.live(1)
    assert driver.state.counters.asked > gates.ASKED_FREE
    assert driver.state.follow_ups["a"].fire_at - driver.now > timedelta(minutes=30)
    driver.outside("red", is_trusted=True)
    assert driver.state.counters.asked == 0
    assert driver.state.follow_ups["a"].fire_at == driver.now + timedelta(seconds=1)
    planning.live(1)
    driver.user("And now?")
    assert driver.state.counters.asked == 0


def test_the_model_is_told_that_it_comes_later() -> None:
    planning = Planning([[{"delay_seconds": 1, "timer_id": "a"}]])
    planning.driver.user("Look after it!")
    planning.live(1)
    rows = [str(row.blocks) for turn in planning.driver.turns for row in turn.rows]
    assert any("later than you wanted: you planned 11 exchanges in a row" in row for row in rows)


@pytest.mark.parametrize("said", ["Drink something.", ""])
def test_what_a_person_ordered_keeps_its_pace(said: str) -> None:
    """Each ten minutes through a night, whether there is anything to say or not."""
    planning = Planning([[{"delay_seconds": 600, "timer_id": "a", "keep": True}]], said)
    planning.driver.policy = Policy(autonomy_enabled=True)
    planning.driver.user("Look each ten minutes!")
    before = planning.asked
    planning.live(1)
    assert (planning.asked - before) / CALLS_OF_LOOP == 144
    assert planning.driver.now - START <= timedelta(days=1)


def test_what_an_agent_plans_by_itself_goes_on_each_hour() -> None:
    """A watch that nobody ordered, and that finds nothing, is kept up all the same."""
    planning = Planning([[{"delay_seconds": 600, "timer_id": "a"}]])
    planning.driver.user("Hm.")
    before = planning.asked
    planning.live(2)
    assert 24 * 2 <= (planning.asked - before) / CALLS_OF_LOOP <= 24 * 2 + 20
