"""What a run of the timetable tells that no model answered: whether it may be begun again (J-2)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import pytest

from services.cortex.core import Policy
from services.cortex.core.draft.kinds import profile_of
from services.cortex.model import ModelError
from tests.cortex.driver import START, Driver, answer, call
from vigil.contracts import Control, ControlPayload, SlotRun, Start, TellParent
from vigil.contracts.effects import TellParentPayload

AWAY: Final = TimeoutError("overloaded")
KEY_IS_WRONG: Final = ModelError("401", is_retryable=False)


def begun(*answers: Any) -> Driver:
    """A run whose model answers so, one call after the other."""
    left = list(answers)
    driver = Driver(lambda _: left.pop(0), Policy(profile=profile_of("cron"), retries_max=1))
    driver.key = "ann:vigil:_cron-1f"
    slot = SlotRun(
        row="r1", name="ci", due_at=START, timeout_s=60, again_until=START + timedelta(hours=2)
    )
    start = Start(prompt="Look", slot=slot, source="cron:r1", allowance=3)
    driver.feed(control(driver, op="start", start=start))
    return driver


def control(driver: Driver, **payload: Any) -> Control:
    fields = {"id": f"c{len(driver.turns)}", "session_key": driver.key, "created_at": driver.now}
    return Control(payload=ControlPayload(**payload), **fields)


def told(driver: Driver) -> TellParentPayload:
    made = [e for turn in driver.turns for e in turn.effects if isinstance(e, TellParent)]
    (one,) = made
    return one.payload


def test_one_that_did_nothing_may_be_begun_again() -> None:
    """It gave up, or had had its time while it waited for the model."""
    driver = begun(AWAY, AWAY)
    driver.deadline()
    assert (told(driver).state, told(driver).is_unanswered) == ("failed", True)
    driver = begun(AWAY)
    driver.feed(control(driver, op="cancel", reason="it has had its time"))
    assert (told(driver).state, told(driver).is_unanswered) == ("failed", True)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_one_that_has_done_something_is_not(*, is_cancelled: bool) -> None:
    """What its tools did would be done twice."""
    driver = begun(answer(call("spawn_worker", task="Pay the bill")), AWAY, AWAY)
    driver.result(content="Paid.")
    if is_cancelled:
        driver.feed(control(driver, op="cancel", reason="it has had its time"))
    else:
        driver.deadline()
    assert (told(driver).state, told(driver).is_unanswered) == ("failed", False)


def test_what_nobody_but_a_person_can_mend_is_told_at_once() -> None:
    assert not told(begun(KEY_IS_WRONG)).is_unanswered


def test_who_stops_a_run_has_stopped_it() -> None:
    driver = begun(AWAY)
    driver.feed(control(driver, op="stop"))
    assert not told(driver).is_unanswered
