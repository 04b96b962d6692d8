"""A standing grant lets a call run for which a person would be asked, and no other (LOOPS L-8)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from services.cortex.core import Policy
from services.cortex.core.draft.kinds import profile_of
from tests.cortex.driver import Driver, answer, call
from tests.cortex.test_core_approvals import driver_of, run
from tests.support.grants import grant_of
from vigil.contracts import (
    AnyConstraint,
    Control,
    ControlPayload,
    Equal,
    Exact,
    Grant,
    Start,
)
from vigil.grants.rule import Standing

ID = "c" * 32
DF = call("shell", command="df -h")
WIPE = call("box__wipe", command="all")


def granted(driver: Driver, *grants: Grant, uses: int = 0) -> None:
    driver.grants = tuple(Standing(grant=one, revision=7, uses=uses) for one in grants)


def notes(driver: Driver) -> list[str]:
    return [note.code for turn in driver.turns for note in turn.notes]


@pytest.mark.parametrize("holds", [True, False])
def test_outside_content_needs_a_grant_that_says_so(holds: bool) -> None:
    driver = driver_of(answer(DF), answer("Done."))
    granted(driver, grant_of(holds_for_outside=holds))
    driver.outside()
    calls = run(driver)
    assert bool(calls) == holds
    assert ("granted" in notes(driver)) == holds
    assert bool(driver.state.approvals) != holds
    if holds:
        (made,) = calls
        assert (made.payload.grant_id, made.payload.grant_revision) == ("a" * 32, 7)
        assert made.payload.is_tainted


@pytest.mark.parametrize(
    "changes",
    [
        {"owner": "bob"}, {"agent": "other"}, {"session_key": "ann:vigil:another"},
    ],
)  # fmt: skip
def test_another_persons_agents_or_conversations_grant_is_none(changes: dict[str, Any]) -> None:
    driver = driver_of(answer(DF), answer("Asked."))
    granted(driver, grant_of(holds_for_outside=True, **changes))
    driver.outside()
    assert run(driver) == []
    assert len(driver.state.approvals) == 1


@pytest.mark.parametrize("scope", ["row", "goal"])
@pytest.mark.parametrize("of", ["", ID, "d" * 32])
def test_one_for_a_row_or_a_goal_holds_in_what_is_done_for_it_alone(scope: str, of: str) -> None:
    """L-8: the executor is told which it was, to look again."""
    driver = driver_of(
        answer(DF), answer("Done."), policy=Policy(profile=profile_of("worker"), depth_max=9)
    )
    driver.key = "ann:vigil:_worker-1f"
    granted(driver, grant_of(holds_for_outside=True, **{scope: ID}))
    start = replace(Start(prompt="p", root_id="r", is_tainted=True), **{scope: of})
    payload = ControlPayload(op="start", start=start)
    driver.feed(Control(id="s1", session_key=driver.key, created_at=driver.now, payload=payload))
    told = [getattr(one.payload, f"grant_{scope}") for one in run(driver) if one.payload.grant_id]
    assert told == ([ID] if of == ID else [])


def test_one_that_is_used_up_asks_again() -> None:
    driver = driver_of(answer(DF), answer("Asked."))
    granted(driver, grant_of(holds_for_outside=True, uses_max=2), uses=2)
    driver.outside()
    assert run(driver) == []


@pytest.mark.parametrize(
    ("constraint", "runs"),
    [(Exact(input={"command": "all"}), True), (Equal(field="command", value="all"), False)],
)
def test_what_cant_be_undone_needs_its_exact_arguments(
    constraint: AnyConstraint, runs: bool
) -> None:
    """L-10: the person ordered it, too, and yet it asks."""
    driver = driver_of(answer(WIPE), answer("Done."))
    granted(driver, grant_of("box__wipe", constraint))
    driver.user("wipe it")
    assert bool(run(driver)) == runs
    assert bool(driver.state.approvals) != runs


def test_what_runs_anyway_uses_no_grant() -> None:
    driver = driver_of(answer(DF), answer("Done."))
    granted(driver, grant_of(holds_for_outside=True))
    driver.user("how full is the disk?")
    (made,) = run(driver)
    assert made.payload.grant_id == ""
    assert "granted" not in notes(driver)
