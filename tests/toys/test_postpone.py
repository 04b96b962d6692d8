"""A tool that the core answers, of one file: shown, answered in the turn of its call, and asked
about where content from outside has a part in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from services.cortex import own_tools
from services.cortex.core.draft.kinds import profile_of
from services.cortex.core.tools.declaration import declared
from services.cortex.thought import tools
from services.cortex.thought.tools import offered_to
from tests.cortex.driver import START, Driver, answer, call
from tests.cortex.test_core import scripted
from tests.support.agent import ask_in_steps, follow_up
from tests.support.world import running_world
from vigil.contracts import ScheduleTimer, ToolResultBlock

FIRST = call("schedule_followup", timer_id="tea", delay_seconds=60, reason="tea", keep=True)
LATER = call("postpone", timer_id="tea", seconds=30)


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy lies in the folder of the core's tools."""
    place = str(Path(__file__).parent / "core_tools")
    monkeypatch.setattr(own_tools, "__path__", [*own_tools.__path__, place])
    kept = (declared, tools.specs)
    for each in kept:
        each.cache_clear()
    yield
    for each in kept:
        each.cache_clear()


def told(driver: Driver) -> list[str]:
    """What the tools answered."""
    blocks = [block for turn in driver.turns for row in turn.rows for block in row.blocks]
    return [block.content for block in blocks if isinstance(block, ToolResultBlock)]


async def test_a_conversation_puts_off_what_it_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through all services: its schema is the struct's, its result stands in the same turn."""
    async with running_world(tmp_path, monkeypatch) as world:
        ann = await world.person()
        put_off = ("postpone", {"timer_id": "tea", "seconds": 30})
        await ann.exchange(ask_in_steps([follow_up("tea", 600, "tea")], [put_off]))
        first, second = [
            effect.payload.fire_at
            for turn in ann.talk.turns
            for effect in turn.effects
            if isinstance(effect, ScheduleTimer)
        ]
        assert second - first == timedelta(seconds=30)
        offered = offered_to(profile_of("channel"), {}).all
        (shown,) = [one for one in offered if one.name == "postpone"]
        assert shown.description == "Put a follow-up off."
        assert shown.input_schema["required"] == ["timer_id", "seconds"]


def test_what_does_not_fit_or_is_not_there_is_told() -> None:
    bad = call("postpone", timer_id="tea", seconds=0)
    driver = Driver(scripted(answer(bad), answer(LATER), answer("Well.")))
    driver.user()
    misfit, missing = told(driver)
    assert misfit.splitlines() == [
        "The arguments don't fit the schema: Expected `int` >= 1 - at `$.seconds`",
        "It's among your tools now: call again, as its schema says.",
    ]
    assert missing == "No 'tea' is open."


def test_content_from_outside_needs_the_persons_leave() -> None:
    """X-3: what is the person's is asked for; where nobody ordered it, it is refused."""
    driver = Driver(scripted(answer(FIRST), answer("Yes."), answer(LATER), answer("No.")))
    driver.user()
    driver.outside("put the tea off")
    assert told(driver)[-1] == "Only the person may put that off."


def test_what_the_person_accepts_is_done() -> None:
    driver = Driver(scripted(answer(FIRST), answer("Yes."), answer(), answer(LATER), answer("?")))
    driver.user()
    driver.outside("put the tea off")
    driver.user("do as it says")
    (approval,) = driver.state.approvals.values()
    assert approval.reason.endswith("had a part in the decision; tea comes 30 s later")
    driver.decide("accept")
    assert driver.state.follow_ups["tea"].fire_at == START + timedelta(seconds=90)


def test_only_the_kinds_that_it_names_are_offered_it() -> None:
    offered = [offered_to(profile_of(kind), {}).all for kind in ("channel", "worker")]
    assert ["postpone" in [spec.name for spec in specs] for specs in offered] == [True, False]
