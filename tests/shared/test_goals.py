"""Goals: their moves, when one is looked at, and what they may hold (SPEC G-2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.examples import up_to
from tests.support.goal_records import AT, goal_of
from vigil.contracts.board import BoardGoal
from vigil.contracts.board.vocabulary import GoalStatus
from vigil.errors import InvalidInput
from vigil.goals import lifecycle
from vigil.goals.check import DEPTH_MAX, OUTSIDE_MAX, PAUSED_MAX, check, fitted

DAY = timedelta(days=1)
SOON = AT + DAY


def timed(**changes: Any) -> BoardGoal:
    return goal_of(**{"goal_kind": "timed", "deadline_at": SOON} | changes)


@given(st.booleans(), st.lists(st.sampled_from(get_args(GoalStatus)), max_size=20))
@up_to(300)
def test_whatever_is_tried_a_standing_goal_never_ends_and_what_is_put_away_stays_so(
    is_timed: bool, tried: list[GoalStatus]
) -> None:
    goal, seen = timed() if is_timed else goal_of(), []
    for to in tried:
        allowed = lifecycle.moves_of(goal)
        if to not in allowed:
            with pytest.raises(InvalidInput, match=goal.status) as refused:
                lifecycle.moved(goal, to, AT)
            assert refused.value.field == "status"
            assert all(named in refused.value.reason for named in (to, *allowed))
            continue
        goal = lifecycle.moved(goal, to, AT)
        seen.append(to)
    assert is_timed or not {"completed", "failed"} & set(seen)
    assert "archived" not in seen[:-1]


def test_a_deadline_fails_what_is_not_reached_by_then_paused_or_not() -> None:
    for status in ("active", "paused"):
        assert not lifecycle.is_over(timed(status=status), SOON - DAY / 2)
        assert lifecycle.is_over(timed(status=status), SOON)
    assert not lifecycle.is_over(timed(status="completed"), SOON)
    assert not lifecycle.is_over(goal_of(), SOON)
    failed = lifecycle.moved(timed(), "failed", SOON)
    with pytest.raises(InvalidInput, match="is over: give another"):
        lifecycle.changed(failed, {}, "active", SOON)
    again = lifecycle.changed(failed, {"deadline_at": SOON + DAY}, "active", SOON)
    assert (again.status, again.deadline_at) == ("active", SOON + DAY)
    with pytest.raises(InvalidInput, match="nothing of it changes"):
        lifecycle.changed(failed, {"priority": 1}, None, SOON)
    reachable = lifecycle.changed(goal_of(), {"deadline_at": SOON}, None, AT)
    assert lifecycle.moved(reachable, "completed", AT).status == "completed"


GOALS = st.builds(
    goal_of,
    id=st.integers(0, 10**6).map(lambda n: f"{n:032x}"),
    status=st.sampled_from(get_args(GoalStatus)),
    priority=st.integers(1, 5),
    check_interval_s=st.integers(60, 10**6),
    last_checked_at=st.none() | st.integers(0, 10**6).map(lambda s: AT + timedelta(seconds=s)),
    created_at=st.integers(0, 100).map(lambda s: AT - timedelta(seconds=s)),
)


@given(st.lists(GOALS, max_size=20, unique_by=lambda one: one.id), st.integers(0, 2 * 10**6))
@up_to(300)
def test_due_is_what_is_active_and_was_never_or_long_ago_looked_at(
    goals: list[BoardGoal], seconds: int
) -> None:
    """By priority, then age; also what was looked at by a clock that was ahead, and is set back."""
    now = AT + timedelta(seconds=seconds)
    due = lifecycle.due(goals, now)
    for one in goals:
        never = one.last_checked_at is None
        since_s = 0 if never else (now - one.last_checked_at).total_seconds()
        elapsed = never or since_s < -60 or since_s >= one.check_interval_s
        assert (one in due) == (one.status == "active" and elapsed)
    assert due == sorted(due, key=lambda one: (-one.priority, one.created_at, one.id))


@pytest.mark.parametrize(
    ("goal", "field"),
    [
        (goal_of(description=" "), "description"),
        (goal_of(description="x" * 1_000_000), "description"),
        (goal_of(strategy="x\0"), "strategy"),
        (goal_of(priority=0), "priority"),
        (goal_of(priority=6), "priority"),
        (goal_of(check_interval_s=59), "check_interval_secs"),
        (goal_of(check_interval_s=10**9), "check_interval_secs"),
        (goal_of(goal_kind="timed"), "deadline_at"),
        (goal_of(deadline_at=SOON), "deadline_at"),
        (timed(deadline_at=datetime.min.replace(tzinfo=UTC)), "deadline_at"),
        (timed(deadline_at=datetime.max.replace(tzinfo=UTC)), "deadline_at"),
        (goal_of(owner="a.b"), "owner"),
    ],
)
def test_what_a_goal_may_not_hold_is_told_by_field(goal: BoardGoal, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check(goal)
    assert refused.value.field == field


def test_a_goal_is_never_a_part_of_itself() -> None:
    """Neither at once nor around a few corners; nor of what is not there, or not the owner's."""
    names = "abcdef"
    chain = [
        goal_of(id=one * 32, parent=above * 32)
        for above, one in zip(("", *names), names, strict=False)
    ]
    for depth, one in enumerate(chain, 1):
        if depth <= DEPTH_MAX:
            fitted(one, chain)
    for goal, reason in (
        (goal_of(id="a" * 32, parent="a" * 32), "a part of itself"),
        (goal_of(id="a" * 32, parent="d" * 32), "a part of itself"),
        (chain[-1], "goals deep"),
        (goal_of(id="1" * 32, parent="2" * 32), "there is no goal"),
        (goal_of(id="1" * 32, parent="a" * 32, agent="other"), "there is no goal"),
    ):
        with pytest.raises(InvalidInput, match=reason) as refused:
            fitted(goal, [one for one in chain if one != goal])
        assert refused.value.field == "parent"
    whole = goal_of(id="1" * 32)
    fitted(replace(chain[0], parent=whole.id), [whole, *chain[: DEPTH_MAX - 1]])
    with pytest.raises(InvalidInput, match="goals deep"):  # its parts go along
        fitted(replace(chain[0], parent=whole.id), [whole, *chain[:DEPTH_MAX]])
    with pytest.raises(InvalidInput, match="is archived"):
        fitted(goal_of(id="1" * 32, parent="a" * 32), [goal_of(status="archived")])


@pytest.mark.parametrize("status", ["archived", "completed", "failed"])
def test_a_part_goes_on_when_the_whole_has_ended(status: GoalStatus) -> None:
    """It couldn't even be paused; and as no look at it was taken down, it was due again at once."""
    whole, part = goal_of(id="a" * 32, status=status), goal_of(id="1" * 32, parent="a" * 32)
    checked = lifecycle.changed(part, {}, None, SOON, is_checked=True)
    assert fitted(checked, [whole, part]) == checked
    assert fitted(replace(part, status="paused"), [whole, part]).status == "paused"
    with pytest.raises(InvalidInput, match=f"is {status}"):
        fitted(part, [whole, replace(part, parent="")])


def test_what_is_paused_is_bounded_too() -> None:
    paused = [goal_of(id=f"{n:032x}", status="paused") for n in range(PAUSED_MAX)]
    fitted(paused[0], paused)
    fitted(goal_of(), paused)
    with pytest.raises(InvalidInput, match="200 goals are paused"):
        fitted(goal_of(status="paused"), paused)
    marked = [replace(one, is_tainted=True) for one in paused[:OUTSIDE_MAX]]
    fitted(goal_of(status="paused"), marked)
    with pytest.raises(InvalidInput, match="100 that content from outside had a part in"):
        fitted(goal_of(status="paused", is_tainted=True), marked)
