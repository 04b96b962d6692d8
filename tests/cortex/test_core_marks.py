"""No loop that may be trusted is shown what a marked record says (SPEC X-3).

A look, a cycle or a conversation that took in content from outside may write whatever it was told
to. So each record with a mark is filled with canaries, by its contract, and shown in all ways in
which the next, clean loop is shown such a record: none of the canaries may be there, unless who is
shown it counts as swayed. The control is the same record without the mark, which is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from services.cortex.core import sway as sways
from services.cortex.core.draft import job_record
from services.cortex.core.pending import tasks
from services.cortex.core.work import detached, errands
from services.delivery import orders
from services.executor import work
from services.executor.board import slots
from services.executor.board import tasks as task_ends
from services.executor.board.verdicts import judged_by, proposal_of
from services.scheduler import tasks as workers
from services.scheduler.bulletins.report import BulletinInput, report
from services.scheduler.timetable import cycle
from services.scheduler.timetable.kinds import cron, maintenance
from services.scheduler.timetable.new_signals import NewSignals
from tests.cortex.shown import (
    Mind,
    Shown,
    Watched,
    begun,
    child_asks,
    digested,
    fired,
    in_state,
    listed,
    look_at_board,
    look_at_due,
    of_row,
    outside,
    result,
    told_to,
)
from tests.support.filled import AT, MARKS, canaries_in, filled, marked_records
from vigil.contracts import (
    Approval,
    AttachmentBlock,
    BoardTask,
    ChildStatus,
    Control,
    ExternalPayload,
    FollowUp,
    Job,
    Memory,
    SlotRun,
    SpawnSession,
    SpawnSessionPayload,
    Start,
    State,
    Task,
    TaskBlock,
    TellParent,
    TellParentPayload,
    ToldPayload,
    ToolResultPayload,
    Unsaid,
)
from vigil.contracts.board import (
    AnInstant,
    BoardAction,
    BoardGoal,
    CronSchedule,
    CronWork,
    CycleLedger,
    CycleReport,
    KnownFact,
    Ledger,
    OneOf,
    OpenRun,
    Recheck,
    SlotEntry,
    SourceFacts,
    StepRun,
    TaskResult,
    TimetableRow,
    VersionNumber,
    YesNo,
)
from vigil.contracts.events import AcceptedCall
from vigil.contracts.outcomes import Said
from vigil.facts import shown
from vigil.goals.lifecycle import ReadGoal
from vigil.memory.questions import MemoryView
from vigil.memory.summaries import merged_id
from vigil.settings.config import Config
from vigil.subjects import SessionKey
from vigil.tasks.lifecycle import ReadTask
from vigil.timetable import cycles

KEY: Final = SessionKey("ann", "vigil", "_mind")
ID: Final = "a" * 32
OWNED: Final = {"owner": "ann", "agent": "vigil", "session_key": str(KEY)}
SLOT: Final = SlotRun(row=ID, name="look", due_at=AT, timeout_s=120)
ROW: Final = TimetableRow(
    id=ID,
    owner="ann",
    agent="vigil",
    name="look",
    work=CronWork(prompt="Look."),
    schedule=CronSchedule(expression="0 9 * * *", zone="UTC"),
    made_at=AT,
    scheduled_at=AT,
)


# ---------------------------------------------------------------- what others make of it


def _home(told: ToldPayload | None) -> list[Shown]:
    assert told is not None
    return [Shown((told.text, told.title, told.what), told.is_tainted)]


def _bulletin(**known: Any) -> list[Shown]:
    found = report(BulletinInput(**known), AT + timedelta(hours=1))
    return [Shown((found.whole, found.short, found.material), is_marked=False)]


def _next_cycle(told: CycleReport) -> list[Shown]:
    run = OpenRun(due_at=AT, at=AT, session=str(KEY))
    entry = SlotEntry(row=ID, due_at=AT, state="ran", at=AT, report=told)
    ledger = cycles.ended(CycleLedger(), run, entry)
    later = AT + timedelta(days=1)
    shown = cycle.described(ledger, NewSignals(7), later)
    return [Shown(shown, is_marked=False), *_bulletin(cycles=ledger)]


def _rechecked(one: Recheck) -> list[Shown]:
    return _next_cycle(CycleReport(rechecks=(one,)))


def _run_of(run: OpenRun) -> list[Shown]:
    start = cron.start_of(ROW, run, None, Config())
    return [Shown(start.prompt, start.is_tainted)]


def _looked(entry: SlotEntry) -> list[Shown]:
    """What a watcher's slot has its run begin with."""
    run = OpenRun(
        due_at=AT, at=AT, session=str(KEY), change=entry.change, is_trusted=entry.is_trusted
    )
    return _run_of(run)


def _worker_of(task: BoardTask) -> list[Shown]:
    start = workers.start_of(task, AT).payload.start
    assert start is not None
    return [Shown(start.prompt, start.is_tainted)]


def _tell_parent(payload: TellParentPayload) -> list[Shown]:
    effect = TellParent(id="e1", ordinal=1, payload=payload)
    told = work.report_of(KEY, effect, now=AT)
    assert not isinstance(told, Control)
    return [Shown(told.payload.content, told.payload.is_tainted)]


def _run_ended(key: SessionKey, problem: str, payload: TellParentPayload) -> list[Shown]:
    effect = TellParent(id="e1", ordinal=1, payload=payload)
    problem = problem and payload.content
    return _home(slots.report_of(key, effect, SLOT, problem, Ledger(), is_for_one=True))


def _spawned(payload: SpawnSessionPayload) -> list[Shown]:
    start = work.start_of(
        SessionKey("ann", "vigil", "t1"),
        SpawnSession(id="1f", ordinal=1, payload=payload),
        1,
        now=AT,
    ).payload.start
    assert start is not None
    return [Shown(start.prompt, start.is_tainted)]


def _asked_at_home(approval: Approval) -> list[Shown]:
    driver = Watched("cron")

    def ask(draft: Any) -> None:
        errands.notify_of_request(draft, approval)
        errands.notify_of_expiry(draft, approval)

    driver.change(ask)
    return driver.said()


def _judged(approval: Approval) -> list[Shown]:
    """What the log of actions has of a verdict: clean looks are shown it."""
    action = BoardAction(id=ID, type="shell", description="d", created_at=AT, **OWNED)
    decided = replace(approval, state="edited", decided_by="ann", text="", edited=approval.input)
    judged = judged_by(action, decided, AT)
    return look_at_board(actions=(judged,))


def _job_ended(job: Job) -> list[Shown]:
    driver = Watched("planner")
    driver.key = f"ann:vigil:_planner-{ID}"
    driver.state = State(job=replace(job, status="running", completed_at=None))
    over = job_record.ended(job, "succeeded", AT)
    driver.change(lambda draft: draft.update(job=over))
    return driver.said()


def _of_errand(start: Start) -> list[Shown]:
    """How an errand's end is told: its result, and the call that was accepted."""
    driver = Watched("errand")

    def end(draft: Any) -> None:
        tasks.report_end(draft, "done", "canary.result", sways.of(start), start=start)

    driver.change(end)
    return driver.said()


def _over(task: Task) -> list[Shown]:
    driver = Watched()
    driver.change(lambda draft: detached.open(draft, "c1", task))
    driver.result("c1", content="canary.content")
    return driver.asked()


def _summaries(memory: Memory) -> list[Shown]:
    merged = replace(memory, type="summary", id=merged_id(memory.provenance))
    found = maintenance.chosen([merged])
    return [Shown(found.summaries, found.is_tainted)]


CALL: Final = {
    "approval_id": ID, "tool": "shell", "input": {"command": "canary.command"}, "risk": "external",
}  # fmt: skip
FACTS: Final = (
    KnownFact(
        name="ci",
        shape=OneOf(values=("passing", "failing")),
        value="canary.value",
        was="canary.was",
        since=AT,
        at=AT,
    ),
    KnownFact(name="since", shape=AnInstant(), value="canary.instant", since=AT, at=AT),
    KnownFact(name="release", shape=VersionNumber(), value="canary.version", since=AT, at=AT),
    KnownFact(name="up", shape=YesNo(), value="yes", was="canary.was", since=AT, at=AT),
)
"""Of which an outsider wrote each value: what doesn't fit isn't shown, whoever let it in."""
ALONE: Final = {
    "job": None, "slot": None, "call": None, "limits": None, "bulletin": None, "summaries": (),
}  # fmt: skip
STAMPED: Final[dict[type, dict[str, Any]]] = {
    BoardAction: {"id": ID, "outcome": "failed", "feedback": None, **OWNED},
    BoardGoal: {"id": ID, "parent": "", "last_checked_at": None, **OWNED},
    BoardTask: {"id": ID, "row": "", "goal": "", "worker": str(KEY), "status": "ready", **OWNED},
    TaskResult: {"by": str(KEY)},
    Approval: {
        "id": ID, "session_key": str(KEY), "tool": "shell", "risk": "external",
    },
    Start: {"parent": "", "call_id": "1f", "root_id": "m1", "root": "", "source": "", **ALONE},
    ExternalPayload: {"source": "hook:ci"},
    TellParentPayload: {
        "parent": str(KEY), "state": "done", "slot": None, "report": None, "bulletin": None,
    },
    SpawnSessionPayload: {"kind": "worker", "call": None},
    Said: {"session_key": "ann:vigil:t1", "id": "e1"},
    SlotEntry: {"session": str(KEY), "report": None, "ledger": Ledger()},
    TaskBlock: {"facts": FACTS},
    OpenRun: {"session": str(KEY), "follows": ""},
    Job: {"id": ID, "session_key": str(KEY), "skill": "", "step_runs": ()},
    StepRun: {"tool": "shell", "completed_at": AT, "error": ""},
    Task: {"tool": "shell", "kind": "call", "child": "", "is_awaited": False, "told_seq": 0},
    FollowUp: {"channel": None, "keep": True, "held_from": None},
    ToldPayload: {
        "facts": FACTS,
        "origin": str(KEY), "channel": "", "row": "", "urgency": "normal", "is_ordered": True,
    },
    Unsaid: {"recurs": True},
}  # fmt: skip
"""What no model writes: the core or a person does, or it names what is there."""

Way = Callable[[Any], list[Shown]]
WAYS: Final[dict[type, dict[str, Way]]] = {
    BoardAction: {"look": lambda one: look_at_board(actions=(one,))},
    BoardGoal: {
        "look": lambda one: look_at_board(goals=(one,)),
        "due": look_at_due,
        "ended": lambda one: look_at_board(goals=(replace(one, status="completed"),)),
        "list": lambda one: listed("goal_list", goals=(ReadGoal(goal=one, revision=1),)),
        "bulletin": lambda one: _bulletin(goals=(replace(one, status="active"),)),
    },
    BoardTask: {
        "list": lambda one: listed("task_list", tasks=(ReadTask(task=one, revision=1),)),
        "bulletin": lambda one: _bulletin(tasks=(one,)),
        "worker": _worker_of,
        "home": lambda one: _home(task_ends.report_of(KEY, replace(one, status="done"))),
    },
    Approval: {
        "home": _asked_at_home,
        "judged": _judged,
        "proposal": lambda one: _home(proposal_of(KEY, replace(one, state="accepted"))),
    },
    Recheck: {"cycle": _rechecked},
    CycleReport: {"cycle": _next_cycle},
    OpenRun: {"run": _run_of},
    SlotEntry: {"run": _looked},
    ToolResultPayload: {"conversation": lambda one: result(_of_person(one))},
    ExternalPayload: {
        "conversation": lambda one: outside(Watched(), one),
        "look": lambda one: outside(Mind(), one),
    },
    Start: {
        "worker": lambda one: begun("worker", one),
        "branch": lambda one: begun("branch", one),
        "errand": lambda one: _of_errand(_with_call(one)),
    },
    ChildStatus: {"conversation": child_asks},
    ToldPayload: {
        "conversation": lambda one: told_to(Watched(), one),
        "look": lambda one: told_to(Mind(), one),
    },
    Memory: {
        "bulletin": lambda one: _bulletin(recent=(_viewed(one),), important=(_viewed(one),)),
        "summaries": _summaries,
    },
    Said: {"look": lambda one: told_to(Mind(), orders.lost(KEY, one, now=AT).payload)},
    SpawnSessionPayload: {"start": _spawned},
    TellParentPayload: {
        "parent": _tell_parent,
        "home": lambda one: _run_ended(SessionKey("ann", "vigil", "_cron-1f"), "", one),
        "failed": lambda one: _run_ended(SessionKey("ann", "vigil", "_cron-1f"), "x", one),
    },
    FollowUp: {
        "state": lambda one: in_state(lambda draft: draft.open_follow_up("f", one)),
        "fired": fired,
        "model": lambda one: fired(replace(one, message=None)),
    },
    TaskBlock: {"row": of_row},
    AttachmentBlock: {"row": of_row},
    Task: {"over": _over},
    Unsaid: {"digest": digested},
}  # fmt: skip
WAYS[TaskResult] = {
    name: lambda one, way=WAYS[BoardTask][name]: way(_task_with(one)) for name in ("list", "home")
}
WAYS[StepRun] = {"home": lambda one: _job_ended(replace(_job(), step_runs=(one,)))}
OTHERS: Final = {
    "CallToolPayload": "a call is run; what comes of it is a `ToolResultPayload`",
    "SaveMemoryPayload": "memory keeps it as a `Memory`",
    "SendPayload": "delivery keeps it as a `Said`",
    "PastWords": "the history shows it as an event from outside, or as an answer that is closed",
    "Loop": "what stands in its rows: each block has its mark",
    "State": "its parts have their marks",
    "Turn": "its rows and effects have their marks",
}
"""Marked, and shown to nobody as they are: why."""


def _task_with(result: TaskResult) -> BoardTask:
    return BoardTask(title="t", result=result, created_at=AT, moved_at=AT, **STAMPED[BoardTask])


def _of_person(told: ToolResultPayload) -> ToolResultPayload:
    """Return a result whose server wants something of the person: what answers one that wants it of
    a model begins with a `Start`."""
    assert told.wanted is not None
    return replace(told, wanted=replace(told.wanted, tokens_max=0))


def _job(**of: Any) -> Job:
    return Job(session_key=str(KEY), id=ID, created_at=AT, **of)


def _with_call(start: Start) -> Start:
    return replace(start, call=AcceptedCall(**CALL))


def _viewed(memory: Memory) -> MemoryView:
    fields = {name: getattr(memory, name) for name in memory.__struct_fields__}
    return MemoryView(seq=1, decayed=1.0, **fields)


def marked(of: type[Any], *, is_marked: bool) -> Any:
    """A record full of canaries, that content from outside had a part in, or not."""
    record = filled(of, **STAMPED.get(of, {}))
    name = next(name for name in MARKS if name in of.__struct_fields__)
    return replace(record, **{name: is_marked is not (name == "is_trusted")})


def leaks(found: list[Shown]) -> list[str]:
    """Return the canaries that are shown to whoever counts as clean."""
    return [name for one in found if not one.is_marked for name in canaries_in(str(one.text))]


CASES: Final = [(of, name) for of, ways in WAYS.items() for name in ways]
NAMED: Final = [f"{of.__name__}-{name}" for of, name in CASES]


@pytest.mark.parametrize(("of", "name"), CASES, ids=NAMED)
def test_no_clean_loop_is_shown_a_word_of_a_marked_record(of: type[Any], name: str) -> None:
    """X-3."""
    found = WAYS[of][name](marked(of, is_marked=True))
    assert found
    assert leaks(found) == []


@pytest.mark.parametrize(("of", "name"), CASES, ids=NAMED)
def test_the_same_record_without_its_mark_is_shown(of: type[Any], name: str) -> None:
    """The control: what is looked at above does show words, and nobody is swayed by them."""
    found = WAYS[of][name](marked(of, is_marked=False))
    assert leaks(found)


def test_every_record_with_a_mark_is_looked_at() -> None:
    """A struct that somebody adds tomorrow has to be shown here, or it is said why it isn't."""
    shown = {one.__name__ for one in WAYS}
    assert {one.__name__ for one in marked_records()} == shown | set(OTHERS)


def test_a_jobs_input_that_nobody_vouches_for_is_a_mark() -> None:
    """ADR 23: its goal and results aren't told at home then."""
    for is_vouched in (False, True):
        job = replace(filled(Job, **STAMPED[Job]), is_vouched=is_vouched, error="")
        assert bool(leaks(_job_ended(job))) == is_vouched


def test_a_fact_shows_no_word_that_its_shape_has_not() -> None:
    """F-9, F-11: in a prompt's lines, on an envelope, in news and in the run of a row that follows;
    the control is a value that fits."""
    row = replace(ROW, work=replace(ROW.work, facts={one.name: one.shape for one in FACTS}))
    known = SourceFacts(id=ID, owner="ann", agent="vigil", facts=FACTS)
    told = replace(marked(ToldPayload, is_marked=True), facts=FACTS)
    shown_to = [one for one in told_to(Watched(), told) if not one.is_marked]
    envelopes = "\n".join(str(one.text) for one in shown_to)
    found = [
        *shown.lines([row], (), [known], UTC, AT),
        shown.text_of(FACTS, "UTC", AT),
        envelopes,
    ]
    assert canaries_in("\n".join(found)) == []
    assert all("up: yes since 08:30" in one for one in found)
