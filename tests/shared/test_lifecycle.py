"""The lifecycle of a task: the moves that there are, and no others (SPEC C-8)."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any, Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.examples import up_to
from vigil.contracts import BoardTask, TaskPriority, TaskResult, TaskStatus
from vigil.errors import InvalidInput
from vigil.tasks import lifecycle
from vigil.tasks.check import DESCRIPTION_LENGTH_MAX, TITLE_LENGTH_MAX, check
from vigil.tasks.lifecycle import ReadTask, next_of

AT: Final = datetime(2026, 11, 23, 9, tzinfo=UTC)
STATUSES: Final = get_args(TaskStatus)
SPEC: Final = {
    ("pending_approval", "ready"), ("backlog", "ready"), ("ready", "in_progress"),
    ("in_progress", "done"), ("in_progress", "failed"), ("in_progress", "ready"),
    ("done", "ready"), ("failed", "ready"),
} | {(status, "backlog") for status in STATUSES if status != "backlog"}  # fmt: skip


def task(status: TaskStatus = "ready", **changes: Any) -> BoardTask:
    return BoardTask(**{
        "id": "a" * 32, "owner": "ann", "agent": "vigil", "title": "Tidy up", "status": status,
        "created_at": AT, "moved_at": AT, **changes,
    })  # fmt: skip


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
def test_the_moves_are_those_of_the_specification(before: TaskStatus, after: TaskStatus) -> None:
    """C-8: an illegal one is refused, naming both and what is allowed."""
    if (before, after) in SPEC:
        lifecycle.check_move(before, after)
        return
    with pytest.raises(InvalidInput) as refused:
        lifecycle.check_move(before, after)
    assert refused.value.field == "status"
    for named in (before, after, *lifecycle.MOVES[before]):
        assert named in refused.value.reason


STEPS = st.one_of(
    st.tuples(st.just("move"), st.sampled_from(STATUSES)),
    st.tuples(st.just("begin"), st.integers(0, 3).map(str)),
    st.tuples(st.just("end"), st.booleans()),
)


@given(st.lists(STEPS, max_size=30), st.sampled_from(("pending_approval", "backlog", "ready")))
@up_to(500)
def test_whatever_is_tried_it_goes_by_those_moves_alone(
    steps: list[tuple[str, Any]], status: TaskStatus
) -> None:
    """C-8: at most three tries; a worker is behind each that is in progress, and one that it was
    taken from is stopping until it has ended."""
    one, now = task(status), AT
    for step, value in steps:
        before, now = one, now + timedelta(seconds=1)
        try:
            if step == "move":
                one = lifecycle.moved(one, value, now)
            elif step == "begin":
                one = lifecycle.begun(one, f"ann:vigil:_worker-{value}", now)
            elif step == "end" and (one.status == "in_progress" or one.is_stopping):
                one = lifecycle.ended(one, TaskResult(text="x" * 5000, at=now), is_done=value)
        except InvalidInput:
            assert one is before
            continue
        if one.status != before.status:
            assert (before.status, one.status) in SPEC
            assert one.moved_at == now
        assert one.tries <= lifecycle.TRIES_MAX
        assert one.status != "in_progress" or (one.worker and one.tries and not one.is_stopping)
        assert one.result is None or len(one.result.text) <= lifecycle.RESULT_LENGTH_MAX
        if before.status == "in_progress" and step == "move":
            assert one.is_stopping
        if step == "end":
            assert not one.is_stopping


def test_a_worker_that_fails_has_two_more_tries_and_a_person_gives_three_again() -> None:
    one, ends = task(), []
    for number in range(lifecycle.TRIES_MAX):
        one = lifecycle.begun(one, f"ann:vigil:_worker-{number}", AT)
        one = lifecycle.ended(one, TaskResult(text="no", at=AT), is_done=False)
        ends.append(one.status)
    assert ends == ["ready", "ready", "failed"]
    assert lifecycle.moved(one, "ready", AT).tries == 0
    with pytest.raises(InvalidInput, match="only a worker"):
        lifecycle.moved(task(), "in_progress", AT)


BOARDS = st.lists(
    st.builds(
        task, st.sampled_from(STATUSES), agent=st.sampled_from(("a", "b")),
        owner=st.sampled_from(("ann", "bob")), is_stopping=st.booleans(),
        priority=st.sampled_from(get_args(TaskPriority)), id=st.text("abc", min_size=1, max_size=3),
        created_at=st.integers(0, 5).map(lambda minutes: AT + timedelta(minutes=minutes)),
    ),
    max_size=12,
)  # fmt: skip


@given(BOARDS, st.sampled_from((0, 11)))
@up_to(500)
def test_of_each_person_and_agent_the_most_urgent_is_next_if_none_is_held(
    tasks: list[BoardTask], minutes: int
) -> None:
    """C-8: then the oldest; a worker that doesn't end holds the others up for ten minutes."""
    now = AT + timedelta(minutes=minutes)
    there = [ReadTask(task=one, revision=n) for n, one in enumerate(tasks)]
    found = {(one.task.agent, one.task.owner): one.task for one in next_of(there, now)}
    for agent, owner in itertools.product(("a", "b"), ("ann", "bob")):
        theirs = [one for one in tasks if (one.agent, one.owner) == (agent, owner)]
        is_busy = any(
            one.status == "in_progress" or (one.is_stopping and minutes < 10) for one in theirs
        )
        ready = [one for one in theirs if one.status == "ready"]
        wanted = None if is_busy or not ready else min(ready, key=lifecycle.rank)
        assert found.get((agent, owner)) == wanted


@pytest.mark.parametrize("days", [1, 7])
def test_workers_that_make_the_next_task_come_less_and_less(days: int) -> None:
    """20 as they come, then one an hour: each may make a task, and nobody looks."""
    now, end, begun = AT, AT + timedelta(days=days), list[datetime]()
    while now < end:
        maker = {"created_by": "agent", "session_key": "ann:vigil:_worker-1f", "is_ordered": True}
        there = [ReadTask(task=task("ready", **maker), revision=1, by="vigil")]
        if next_of(there, now, {("vigil", "ann"): begun}):
            begun.append(now)
        let_begin = [replace(there[0], by="ann")]
        assert next_of(let_begin, now, {("vigil", "ann"): begun})
        now += timedelta(minutes=5)
    assert lifecycle.UNASKED_MAX < len(begun) <= lifecycle.UNASKED_MAX + 24 * days


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", ""), ("title", "  "), ("title", "two\nlines"), ("title", "\u202eevil"),
        ("title", "x" * (TITLE_LENGTH_MAX + 1)), ("title", "x" * 1_000_000),
        ("description", "x" * (DESCRIPTION_LENGTH_MAX + 1)), ("description", "x" * 1_000_000),
        ("description", "\0"), ("owner", "a.b"), ("agent", ""),
    ],
)  # fmt: skip
def test_what_a_task_may_not_hold_is_named_with_its_limit(field: str, value: str) -> None:
    """X-6: also one of 1 MB."""
    with pytest.raises(InvalidInput) as refused:
        check(task(**{field: value}))
    assert (refused.value.field, len(str(refused.value)) < 200) == (field, True)
    if len(value) > TITLE_LENGTH_MAX:
        assert f"at most {TITLE_LENGTH_MAX if field == 'title' else DESCRIPTION_LENGTH_MAX}" in str(
            refused.value
        )


def test_the_largest_that_it_may_hold_is_taken() -> None:
    check(task(title="x" * TITLE_LENGTH_MAX, description="ж\n" * (DESCRIPTION_LENGTH_MAX // 2)))
