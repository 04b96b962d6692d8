"""Signals of workers, branches, approvals and jobs, the pure part (SPEC C-4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from services.cortex.signals.patterns import SignalWindow
from tests.support import goal_records, timetable_records
from vigil.contracts import (
    Approval,
    ApprovalState,
    BoardEntity,
    BoardEntry,
    BoardTask,
    Cause,
    Change,
    GrantUse,
    Job,
    JobStatus,
    Plan,
    Signal,
    Start,
    State,
    StepRun,
    TaskStatus,
    TellParent,
    TellParentPayload,
    Turn,
    encode,
)
from vigil.contracts.board.vocabulary import GOALS, TASKS, GoalStatus
from vigil.contracts.session_kinds import child_kinds
from vigil.errors import InvalidInput
from vigil.preferences.confidence import first
from vigil.signals.kinds import KINDS
from vigil.signals.sources import SOURCES, project
from vigil.subjects import SessionKey

ANN = SessionKey.parse("ann:vigil:t1")
CALL = "c" * 32
AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
START = Start(prompt="CANARY", parent=str(ANN), call_id=CALL, depth=1)


def told(state: Any) -> TellParent:
    payload = TellParentPayload(parent=str(ANN), call_id=CALL, state=state, content="CANARY")
    return TellParent(id=f"tell-{state}", ordinal=1, payload=payload)


def turn(kind: str = "worker", ordinal: int = 2, **fields: Any) -> tuple[str, bytes]:
    key = ANN.of_kind(kind, CALL)
    record = Turn(**{
        "id": "turn", "session_key": str(key), "ordinal": ordinal,
        "event": Cause(id="e1", seq=6, type="control"), "outcome": "continued",
        "state": State(start=START), "created_at": AT, **fields,
    })  # fmt: skip
    return key.turn, encode(record)


def of_turn(kind: str = "worker", ordinal: int = 2, **fields: Any) -> list[Signal]:
    return project("SYSTEM", 7, *turn(kind, ordinal, **fields))


# ---------------------------------------------------------------- workers and branches


@pytest.mark.parametrize("kind", ["branch", "worker", "reader"])
def test_a_child_begins_and_ends(kind: str) -> None:
    """C-4: told by the first turn and by what its parent is told; the subject leads to both."""
    (begun,) = of_turn(kind, 1)
    assert (begun.id, begun.kind) == (f"SYSTEM-7-{kind}.started", f"{kind}.started")
    assert (begun.session_key, begun.subject) == (f"ann:vigil:_{kind}-{CALL}", CALL)
    assert begun.data == {"parent": str(ANN), "depth": 1}
    (done,) = of_turn(kind, effects=(told("done"),), outcome="answered")
    assert (done.kind, done.caused_by, done.text) == (
        f"{kind}.completed",
        "e1",
        f"A {kind} is done",
    )
    (failed,) = of_turn(kind, effects=(told("failed"),), outcome="failed")
    assert failed.kind == f"{kind}.failed"
    assert all(b"CANARY" not in encode(one) for one in (begun, done, failed))


def test_a_worker_tells_how_it_goes_and_a_branch_does_not() -> None:
    """C-4, C-5: what keeps a worker from counting as stuck."""
    made = [of_turn(effects=(told(state),))[0] for state in ("running", "asking")]
    assert [one.kind for one in made] == ["worker.status"] * 2
    assert [one.data["state"] for one in made] == ["running", "asking"]
    assert of_turn("branch", effects=(told("running"),)) == []


def test_a_cancelled_child_failed_once() -> None:
    """C-5: whether its parent is told or not, and also if it was cancelled before it began."""
    for ordinal, effects in ((1, ()), (5, ()), (5, (told("failed"),))):
        (only,) = of_turn(ordinal=ordinal, outcome="cancelled", effects=effects)
        assert only.kind == "worker.failed"


def test_a_planner_is_told_by_its_job() -> None:
    """J-1: and a session that nobody started has nobody to tell."""
    assert of_turn("planner", 1) == []
    assert of_turn("worker", 1, state=State()) == []


@pytest.mark.parametrize(
    ("subject", "data"),
    [
        (ANN.of_kind("worker", CALL).turn, b"{"),
        (ANN.of_kind("worker", CALL).in_event("control"), turn()[1]),
        (ANN.turn, turn()[1]),
        ("system.vigil.*._worker-1.turn", turn()[1]),
    ],
)
def test_what_gives_no_signals_of_children(subject: str, data: bytes) -> None:
    """X-6, S-2"""
    with pytest.raises(InvalidInput):
        project("SYSTEM", 7, subject, data)


# ---------------------------------------------------------------- the board


def approval(state: ApprovalState = "open") -> Approval:
    return Approval(
        id="a" * 32, session_key=str(ANN), tool="shell", input={"command": "CANARY"},
        digest="d" * 64, risk="external", reason="CANARY", asked_at=AT, expires_at=AT,
        caused_by="e1", is_tainted=True, state=state,
    )  # fmt: skip


def job(status: JobStatus, **fields: Any) -> Job:
    key = ANN.of_kind("planner", "b" * 32)
    return Job(
        id="b" * 32, session_key=str(key), goal="CANARY", status=status, created_at=AT, **fields
    )


def of_entry(entity: BoardEntity, subject: str = "") -> list[Signal]:
    entry = BoardEntry(entity=entity, turn_seq=3, at=AT)
    kind = str(entity.__struct_config__.tag)
    where = subject or SessionKey.parse(entity.session_key).board(kind, entity.id)
    made = project("BOARD", 9, where, encode(entry))
    assert all(b"CANARY" not in encode(one) for one in made)
    return made


def test_who_is_asked_is_told_what_tool_and_what_risk() -> None:
    """C-4, X-2: but not the arguments."""
    (asked,) = of_entry(approval())
    assert (asked.id, asked.kind) == ("BOARD-9-approval.requested", "approval.requested")
    assert (asked.subject, asked.caused_by, asked.session_key) == ("a" * 32, "e1", str(ANN))
    assert asked.data == {
        "tool": "shell", "risk": "external", "is_tainted": True, "expires_at": AT,
    }  # fmt: skip


@pytest.mark.parametrize("state", [one for one in get_args(ApprovalState) if one != "open"])
def test_every_end_of_an_approval(state: ApprovalState) -> None:
    """C-4, X-2"""
    (decided,) = of_entry(approval(state))
    assert (decided.kind, decided.data["state"]) == ("approval.decided", state)
    assert decided.text.startswith("A request ")


def test_a_job_begins_once_and_ends_once() -> None:
    """C-4, J-1: its steps are entries of the board, too, and no signals."""
    run = StepRun(tool="shell", input={}, started_at=AT, error="no")
    plan = Plan(steps=())
    states: list[tuple[Job, str]] = [
        (job("queued"), ""),
        (job("running"), "job.started"),
        (job("running", plan=plan), ""),
        (job("running", plan=plan, step_runs=(run,)), ""),
        (job("succeeded", plan=plan, step_runs=(run, run)), "job.completed"),
        (job("failed", error="no plan"), "job.failed"),
        (job("cancelled"), "job.cancelled"),
    ]
    assert [[one.kind for one in of_entry(state)] for state, _ in states] == [
        [kind] if kind else [] for _, kind in states
    ]
    (done,) = of_entry(states[4][0])
    assert (done.subject, done.data) == ("b" * 32, {"steps": 2, "failed_steps": 2})


def test_a_grant_that_was_used_is_told_with_the_call_that_it_let_run() -> None:
    """L-8: but not what is granted, nor what was called."""
    use = GrantUse(
        id="f" * 32, owner="ann", agent="vigil", uses=3, last_used_at=AT, tool="shell",
        session_key=str(ANN), calls=("d" * 32, CALL),
    )  # fmt: skip
    data = encode(BoardEntry(entity=use, turn_seq=0, at=AT))
    (used,) = project("BOARD", 9, ANN.board("use", use.id), data)
    assert (used.kind, used.subject, used.caused_by) == ("grant.used", "f" * 32, CALL)
    assert used.data == {"tool": "shell", "uses": 3}
    with pytest.raises(InvalidInput):
        project("BOARD", 9, "board.vigil.bob.use." + use.id, data)


def task(status: TaskStatus = "ready", **fields: Any) -> BoardTask:
    return BoardTask(**{
        "id": "f" * 32, "owner": "ann", "agent": "vigil", "title": "CANARY", "status": status,
        "description": "CANARY", "created_at": AT, "moved_at": AT, **fields,
    })  # fmt: skip


def of_task(entity: BoardTask, change: Change | None = None) -> list[Signal]:
    data = encode(BoardEntry(entity=entity, turn_seq=0, at=AT, change=change))
    return project("BOARD", 9, ANN.board("task", entity.id), data)


@pytest.mark.parametrize("status", get_args(TaskStatus))
def test_each_move_of_a_task_is_told_and_nothing_else_of_it(status: TaskStatus) -> None:
    """C-8: who moved it, never what it says."""
    (moved,) = of_task(task(status), Change(by="ann", cause=CALL))
    assert moved.kind == TASKS[status].signal
    assert (moved.subject, moved.caused_by, moved.session_key) == ("f" * 32, CALL, None)
    assert moved.data == {"priority": "medium", "by": "ann"}
    assert "CANARY" not in str(moved)
    before = task(status, moved_at=AT - timedelta(seconds=1))
    assert of_task(before) == []
    (worked,) = of_task(task(status, worker=str(ANN.of_kind("worker", "1f"))))
    assert worked.session_key == "ann:vigil:_worker-1f"
    with pytest.raises(InvalidInput):
        of_task(task(owner="bob"))


def of_kept(entity: Any, place: str = "") -> list[Signal]:
    kind = str(entity.__struct_config__.tag)
    change = Change(by="ann", cause=CALL)
    data = encode(BoardEntry(entity=entity, turn_seq=0, at=goal_records.AT, change=change))
    return project("BOARD", 9, ANN.board(kind, place or entity.id), data)


@pytest.mark.parametrize("status", get_args(GoalStatus))
def test_each_move_of_a_goal_is_told_and_nothing_else_of_it(status: GoalStatus) -> None:
    """G-2: who moved it, never what it says."""
    goal = goal_records.goal_of(description="CANARY", status=status)
    (moved,) = of_kept(goal)
    assert (moved.kind, moved.subject, moved.data["by"]) == (GOALS[status].signal, goal.id, "ann")
    assert "CANARY" not in str(moved)
    assert of_kept(replace(goal, moved_at=goal.moved_at - timedelta(seconds=1))) == []
    with pytest.raises(InvalidInput):
        of_kept(replace(goal, owner="bob"))


def test_what_is_learned_and_done_is_told_without_its_words() -> None:
    """G-3, G-5"""
    lesson = first(goal_records.lesson_of("CANARY", "said"))
    changes = ({}, {"is_negative": True}, {"is_removed": True})
    told = [of_kept(replace(lesson, **change))[0] for change in changes]
    assert [one.kind for one in told] == [
        f"preference.{how}" for how in ("learned", "corrected", "removed")
    ]
    action = goal_records.action_of(number=1003, description="CANARY")
    ended = replace(action, outcome="failed")
    judged = replace(ended, feedback=goal_records.ACTION.feedback)
    done = [of_kept(one, "3")[0] for one in (action, ended, judged)]
    assert [one.kind for one in done] == ["action.taken", "action.ended", "action.judged"]
    (fresh,) = of_kept(goal_records.WORDED)
    assert (fresh.kind, fresh.data["made_by"]) == ("bulletin.refreshed", "model")
    assert "CANARY" not in str((told, done))
    assert "ask first" not in str(done)
    with pytest.raises(InvalidInput):
        of_kept(action)


def test_a_fact_is_told_of_by_its_value_and_only_if_that_is_news() -> None:
    """F-10: never by a word that its shape hasn't."""
    newest = timetable_records.KNOWN.newest
    assert newest is not None
    known = replace(timetable_records.KNOWN, newest=replace(newest, news=("ci",)))
    (changed,) = of_kept(known)
    assert (changed.kind, changed.subject) == ("fact.changed", known.id)
    assert changed.text.startswith("Fact ci: failing since ")
    assert changed.text.endswith(", was passing")
    assert changed.data == {"name": "ci", "value": "failing", "was": "passing"}
    assert of_kept(timetable_records.KNOWN) == []
    hostile = replace(known, facts=(replace(known.facts[0], value="CANARY"),))
    assert of_kept(hostile) == []


def test_an_entry_on_anothers_subject_gives_nothing() -> None:
    """X-4"""
    for subject in ("board.vigil.bob.approval." + "a" * 32, ANN.board("job", "a" * 32)):
        with pytest.raises(InvalidInput):
            of_entry(approval(), subject)
    with pytest.raises(InvalidInput):
        project("BOARD", 9, ANN.board("approval", "a"), b"{}")


# ---------------------------------------------------------------- sources


def test_every_new_kind_is_given_by_one_of_them() -> None:
    """C-4: what is listed is emitted, and nothing else is."""
    turns = [of_turn(k, 1) + of_turn(k, effects=(told(s),))
             for k in child_kinds() for s in ("running", "done", "failed")]  # fmt: skip
    entries = [of_entry(approval(state)) for state in get_args(ApprovalState)]
    entries += [of_entry(job(status)) for status in get_args(JobStatus)]
    made = {one.kind for signals in (*turns, *entries) for one in signals}
    halves = {"worker", "branch", "reader", "approval", "job"}
    assert made == {kind for kind in KINDS if kind.partition(".")[0] in halves}


def test_no_two_sources_give_a_kind() -> None:
    """C-4: the last signal of a kind tells how far its source is told, and only that."""
    filters = [filter_ for source in SOURCES for filter_ in source.signals]
    assert len(filters) == len(set(filters))
    assert {f.split(".")[3] for f in filters} == {kind.partition(".")[0] for kind in KINDS}


def test_the_window_finds_no_flood_in_a_worker_that_works() -> None:
    """C-4: fifty model calls give three signals."""
    window = SignalWindow()
    made = of_turn(ordinal=1)
    for _ in range(48):
        made += of_turn()
    made += of_turn(effects=(told("running"),)) + of_turn(effects=(told("done"),))
    assert window.add(made) == []
    assert len(made) == 3
