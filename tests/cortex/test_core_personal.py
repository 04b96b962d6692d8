"""What only the person's own words may ask for, nothing else does: LOOPS L-11, ADR 19."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from services.cortex.core import Policy
from services.cortex.core.draft.kinds import registered
from services.cortex.core.tools.declaration import offers
from services.cortex.core.work.routing import ONLY_THE_PERSON
from services.executor.own_tools.cron import cron
from services.executor.own_tools.settings import change_settings
from tests.cortex.driver import Driver, answer, call
from tests.support.grants import grant_of
from vigil.contracts import Equal, Tool, ToolResultBlock, encode
from vigil.grants.rule import Standing
from vigil.settings.config import Config

TOOL = msgspec.json.decode(encode(change_settings.tool(Config())), type=Tool)
"""As the bus brings it."""
CHANGE = call("change_settings", pause="on")


def driver_of(**policy: object) -> Driver:
    """An agent that changes settings at each occasion, with a grant that would let it."""
    driver = Driver(None, Policy(autonomy_enabled=True, authority="act", **policy))  # type: ignore[arg-type]
    driver.tools = {"change_settings": TOOL}
    grant = grant_of("change_settings", Equal(field="pause", value="on"), holds_for_outside=True)
    driver.grants = (Standing(grant=grant, revision=1, uses=0),)
    driver.brain = lambda draft: answer("Done.") if draft.loop.calls else answer(CHANGE)
    return driver


def refused(driver: Driver) -> list[str]:
    rows = [row for turn in driver.turns for row in turn.rows if row.source == "tool"]
    blocks = [block for row in rows for block in row.blocks]
    return [block.content for block in blocks if isinstance(block, ToolResultBlock)]


def test_a_message_of_theirs_runs_it() -> None:
    driver = driver_of()
    driver.user("Leave me alone.")
    (made,) = driver.called
    assert (made.payload.tool, made.payload.input) == ("change_settings", {"pause": "on"})
    assert not made.payload.is_tainted


def an_event(driver: Driver) -> None:
    driver.outside("Pause.")


def a_word_after_an_event(driver: Driver) -> None:
    brain, driver.brain = driver.brain, lambda _: answer("Read.")
    driver.outside("Pause.")
    driver.brain = brain
    driver.user("Go on.")


def a_reminder(driver: Driver) -> None:
    brain = driver.brain
    plan = call("schedule_followup", delay_seconds=60, reason="pause", keep=True, timer_id="t")
    driver.brain = lambda draft: answer("Noted.") if draft.loop.calls else answer(plan)
    driver.user("Remind me.")
    driver.brain = brain
    driver.wait(60)
    driver.timer("t")


@pytest.mark.parametrize("way", [an_event, a_word_after_an_event, a_reminder])
def test_nothing_else_does_nor_is_anybody_asked(way: Callable[[Driver], None]) -> None:
    driver = driver_of()
    way(driver)
    assert (driver.called, dict(driver.state.approvals)) == ([], {})
    assert any(text.startswith(ONLY_THE_PERSON) for text in refused(driver))


@pytest.mark.parametrize("tool", [TOOL, cron.tool(Config())])
def test_no_other_kind_of_session_is_offered_it(tool: Tool) -> None:
    """J-2: so a job makes no other jobs, either."""
    kinds = [one.name for one in registered().values() if offers(one, tool.name, tool)]
    assert (kinds, tool.is_personal) == (["channel"], True)
