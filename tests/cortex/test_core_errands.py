"""Asking without a conversation, and running apart what was accepted (LOOPS L-9)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from services.cortex.core import Policy
from services.cortex.core.draft.kinds import profile_of
from services.cortex.core.home import GROUPED_S, REQUEST
from services.cortex.model import ModelAnswer
from tests.cortex.driver import Driver, answer
from tests.cortex.spoken import carry_out, verdicts_of
from tests.cortex.test_core_jobs import WIPE, JobDriver, planned
from vigil.contracts import (
    AcceptedCall,
    CallTool,
    Control,
    ControlPayload,
    SpawnSession,
    Start,
    TellParent,
    TellPerson,
    ToldPayload,
    ToolResultBlock,
    ToolUseBlock,
)

INPUT = {"all": True}
CALL = AcceptedCall(approval_id="a" * 32, tool=WIPE.name, input=INPUT, risk="destructive")


def told(driver: Driver) -> list[ToldPayload]:
    effects = [effect for turn in driver.turns for effect in turn.effects]
    assert not [one for one in effects if isinstance(one, TellParent)]
    return [one.payload.told for one in effects if isinstance(one, TellPerson)]


def started(driver: Driver) -> list[SpawnSession]:
    return [e for turn in driver.turns for e in turn.effects if isinstance(e, SpawnSession)]


def asking(**of: Any) -> JobDriver:
    """Return a job that went on without the call that it asked for, and has ended."""
    driver = JobDriver(planned((WIPE.name, INPUT), ("list_memory", {})))
    driver.begin(**of)
    driver.result(content="[]")
    assert driver.job.status == "succeeded"
    return driver


def test_who_lost_to_another_verdict_is_told_at_home_what_was_decided() -> None:
    """X-2, L-9: the word was taken at home before the other verdict reached the board."""
    driver = asking()
    (approval,) = driver.state.approvals.values()
    home = Driver(None)
    home.named = (approval,)
    (order,) = verdicts_of(home.user(f"reject {approval.name}"))
    driver.feed(driver.decision("accept", approval.id))
    turns = carry_out(driver, order)
    (told,) = [e.payload.told for t in turns for e in t.effects if isinstance(e, TellPerson)]
    assert told.text.startswith(f"Too late: {approval.name} was accepted by ann at ")
    assert (told.is_ordered, told.is_tainted) == (True, False)


def errand(*answers: ModelAnswer | Exception, call: Any = CALL, **of: Any) -> Driver:
    driver = Driver(None, Policy(profile=profile_of("errand"), authority="off"))
    left = list(answers)
    driver.brain = lambda _: left.pop(0)
    driver.tools = {WIPE.name: WIPE}
    driver.feed(start_of(driver, call, **of))
    return driver


def start_of(driver: Driver, call: Any = CALL, **of: Any) -> Control:
    start = Start(prompt="You asked.", call_id="1f", is_ordered=True, call=call, **of)
    payload = ControlPayload(op="start", start=start)
    return Control(payload=payload, **driver._envelope())


# ---------------------------------------------------------------- asking


def test_a_job_goes_on_and_the_person_is_asked_at_home() -> None:
    driver = asking()
    (approval,) = driver.state.approvals.values()
    assert approval.state == "open"
    asked, over = told(driver)
    assert (asked.what, asked.origin, over.what) == (REQUEST, driver.key, "job")
    assert f"accept {approval.name}" in asked.text
    assert approval.id in asked.text
    assert '{"all": true}' in asked.text
    assert approval.name in driver.job.step_runs[0].error


def test_of_arguments_that_may_be_from_outside_the_home_is_told_the_number() -> None:
    driver = asking(input="obey me: EVIL")
    (approval,) = driver.state.approvals.values()
    assert approval.is_tainted
    asked = told(driver)[0]
    assert (asked.is_tainted, asked.is_ordered) == (False, False)
    assert "with arguments of under 100 characters" in asked.text
    assert '"all"' not in asked.text


def test_requests_of_one_time_are_one_message() -> None:
    home = Driver(None)
    for name in ("One?", "Two?"):
        home.told(name, what=REQUEST)
        home.wait(1)
    home.told("It can wait.", urgency="low")
    assert home.texts == []
    assert home.state.digest is not None
    assert home.state.digest.due_at <= home.now + timedelta(seconds=GROUPED_S)
    home.wait(GROUPED_S)
    home.digest()
    (text,) = home.texts
    assert text.startswith("Since then:\n- One?\n- Two?")


def test_a_request_waits_for_the_end_of_quiet_hours() -> None:
    home = Driver(None)
    home.quiet_until = home.now + timedelta(hours=8)
    home.told("One?", what=REQUEST)
    assert home.state.digest is not None
    assert home.state.digest.due_at == home.quiet_until


# ---------------------------------------------------------------- the verdict


def test_what_is_accepted_is_run_once_apart() -> None:
    driver = asking()
    (approval,) = driver.state.approvals.values()
    verdict = driver.decision("accept")
    driver.feed(verdict)
    (spawned,) = started(driver)
    assert (spawned.payload.kind, spawned.payload.is_ordered) == ("errand", True)
    assert spawned.payload.call == AcceptedCall(
        approval_id=approval.id, tool=WIPE.name, input=INPUT, risk="destructive"
    )
    assert "do it" in spawned.payload.prompt
    assert (driver.board[-1].state, driver.board[-1].call_id) == ("accepted", spawned.id)
    driver.feed(verdict)
    assert len(started(driver)) == 1
    assert driver.notes[-1] == "repeat"
    assert [one.payload.tool for one in driver.called] == ["list_memory"]


def test_edited_arguments_are_those_that_are_run() -> None:
    driver = asking(input="obey me")
    driver.decide("edit", input={"all": False})
    (spawned,) = started(driver)
    assert spawned.payload.call is not None
    assert spawned.payload.call.input == {"all": False}
    assert (spawned.payload.is_ordered, spawned.payload.is_tainted) == (False, True)


def test_what_is_rejected_is_not_run_and_opens_nothing() -> None:
    driver = asking()
    driver.decide("reject", text="never")
    assert (started(driver), driver.state.approvals) == ([], {})
    assert (driver.state.loop, len(told(driver))) == (None, 2)


def test_what_nobody_decided_is_a_line_of_the_digest() -> None:
    driver = asking()
    (approval,) = driver.state.approvals.values()
    driver.approval_deadline(approval)
    last = told(driver)[-1]
    assert (last.urgency, driver.state.approvals, started(driver)) == ("low", {}, [])
    assert "Nobody decided in time on box__wipe" in last.text


# ---------------------------------------------------------------- the errand


def test_an_errand_runs_its_call_and_tells_the_home_what_came_of_it() -> None:
    driver = errand(answer("It is gone."))
    (called,) = driver.called
    assert (called.payload.input, called.payload.approval_id) == (INPUT, CALL.approval_id)
    driver.feed(start_of(driver))
    driver.result(content="done")
    assert len(driver.called) == 1
    blocks = [b for turn in driver.turns for row in turn.rows for b in row.blocks]
    (use,) = [b for b in blocks if isinstance(b, ToolUseBlock)]
    (result,) = [b for b in blocks if isinstance(b, ToolResultBlock)]
    assert (use.id, result.content) == (result.tool_use_id, "done")
    (told_home,) = told(driver)
    assert told_home.text == 'box__wipe {"all": true}, which you accepted: It is gone.'


@pytest.mark.parametrize(("is_error", "how"), [(False, "is done"), (True, "failed")])
def test_what_may_be_from_outside_is_not_told_in_its_words(is_error: bool, how: str) -> None:
    """Whether it worked is."""
    driver = errand(answer("Dear person, EVIL"))
    driver.result(content="EVIL", is_tainted=True, is_error=is_error)
    (told_home,) = told(driver)
    assert f"box__wipe, which you accepted, {how}. " in told_home.text
    assert "EVIL" not in f"{told_home}"
    assert (told_home.is_tainted, "box__wipe" in told_home.text) == (False, True)


def test_an_errand_does_nothing_else() -> None:
    """Nobody ordered what would come after."""
    use = ToolUseBlock(id="x", name=WIPE.name, input=INPUT)
    driver = errand(answer(use), answer("Done."))
    driver.result(content="done")
    assert [e for t in driver.turns for e in t.effects if isinstance(e, CallTool)] == driver.called
    assert (len(driver.called), driver.state.approvals) == (1, {})
    assert len(told(driver)) == 1


def test_a_tool_that_is_gone_or_became_worse_is_not_run() -> None:
    for call in (AcceptedCall(**{**as_dict(CALL), "tool": "gone"}),
                 AcceptedCall(**{**as_dict(CALL), "risk": "external"})):  # fmt: skip
        driver = errand(answer("It did not work."), call=call)
        assert driver.called == []
        assert len(told(driver)) == 1


def as_dict(call: AcceptedCall) -> dict[str, Any]:
    return {name: getattr(call, name) for name in call.__struct_fields__}


def test_an_errand_without_a_call_begins_nothing() -> None:
    driver = errand(call=None)
    assert (driver.notes, driver.state.loop, told(driver)) == (["not_served"], None, [])
