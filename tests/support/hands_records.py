"""Samples of the records of tools, approvals, jobs and of sessions that start sessions (S-14)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from vigil import contracts
from vigil.contracts import (
    Approval,
    Argv,
    BoardChange,
    BoardChangePayload,
    BoardEntry,
    BoardTask,
    CallTool,
    CallToolPayload,
    CancelCall,
    CancelCallPayload,
    Cause,
    Change,
    ChildStatus,
    Circuit,
    Control,
    ControlPayload,
    Decision,
    Grant,
    GrantUse,
    HeldTool,
    Job,
    Loop,
    OpenCall,
    Pin,
    Pins,
    Plan,
    Row,
    Shelf,
    SpawnSession,
    SpawnSessionPayload,
    Start,
    State,
    Step,
    StepRun,
    Task,
    TaskBlock,
    TaskResult,
    TellParent,
    TellParentPayload,
    Tool,
    Turn,
    Waiting,
)

AT: Final = datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC)
ENVELOPE: Final[dict[str, Any]] = {"id": "e1", "session_key": "ann:vigil:t1", "created_at": AT}
CALL: Final = "c" * 32
CHILD: Final = "d" * 32

APPROVAL: Final = Approval(
    id="a" * 32,
    session_key="ann:vigil:t1",
    tool="shell",
    input={"command": "rm -r build"},
    digest="0" * 64,
    risk="external",
    reason="outside content had a part in it",
    asked_at=AT,
    expires_at=AT,
    caused_by="e1",
    generation=4,
    is_tainted=True,
    is_ordered=True,
)
DECIDED: Final = Approval(
    id="a" * 32,
    session_key="ann:vigil:t1",
    tool="shell",
    input={"command": "rm -r build"},
    digest="0" * 64,
    risk="external",
    reason="outside content had a part in it",
    asked_at=AT,
    expires_at=AT,
    caused_by="e1",
    state="edited",
    decided_at=AT,
    edited={"command": "rm -r build/cache"},
    text="only the cache",
    call_id=CALL,
)
GRANT: Final = Grant(
    id="f" * 32,
    name="g1",
    owner="ann",
    agent="vigil",
    tool="shell",
    constraints=(Argv(argv=("df", "-h"), more="operands"),),
    session_key="ann:vigil:t1",
    expires_at=AT,
    uses_max=20,
    holds_for_outside=True,
    made_by="approval",
    made_at=AT,
    cause="a" * 32,
    why="she looks at the disk each day",
    revoked_at=AT,
)
TASK: Final = BoardTask(
    id="e" * 32,
    owner="ann",
    agent="vigil",
    title="Compare three backup tools",
    description="Restic, Borg, Kopia: what restores fastest.",
    status="done",
    priority="high",
    created_by="agent",
    session_key="ann:vigil:t1",
    is_ordered=True,
    is_tainted=True,
    tries=2,
    worker=f"ann:vigil:_worker-{'d' * 32}",
    is_stopping=True,
    result=TaskResult(
        text="Restic does.", at=AT, by=f"ann:vigil:_worker-{'d' * 32}", is_tainted=True
    ),
    created_at=AT,
    moved_at=AT,
)
USE: Final = GrantUse(
    id="f" * 32,
    owner="ann",
    agent="vigil",
    uses=3,
    last_used_at=AT,
    tool="shell",
    session_key="ann:vigil:t1",
    calls=(CALL,),
)
CIRCUIT: Final = Circuit(
    id="4" * 32,
    owner="_",
    agent="_",
    component="model:claude",
    state="open",
    reason="(529)",
    failures=3,
    openings=1,
    opened_at=AT,
    changed_at=AT,
    until=AT,
)
JOB: Final = Job(
    id="b" * 32,
    session_key=f"ann:vigil:_planner-{'b' * 32}",
    skill="report",
    goal="what was new this week",
    tools=("http_get",),
    input="https://news.example/",
    status="running",
    created_at=AT,
    started_at=AT,
    runs=1,
    plan=Plan(
        steps=(Step(tool="http_get", input={"url": "https://news.example/"}),),
        reasoning="read it first",
    ),
    step_runs=(
        StepRun(
            tool="http_get",
            input={"url": "https://news.example/"},
            started_at=AT,
            completed_at=AT,
            error="404 Not Found",
            call_id=CALL,
            is_tainted=True,
        ),
    ),
)

WORKING: Final = Turn(
    id="turn-3",
    session_key="ann:vigil:t1",
    ordinal=4,
    event=Cause(id="e1", seq=7, type="user_message"),
    outcome="continued",
    state=State(
        position=7,
        turns=4,
        effects=10,
        fence=7,
        loop=Loop(
            cause=Cause(id="e1", seq=7, type="user_message"),
            fence=7,
            begun_at=AT,
            is_direct=True,
            waiting=Waiting(
                calls=(
                    OpenCall(effect_id=CALL, tool_use_id="c1", tool="shell", service="executor"),
                ),
                generation=3,
                due_at=AT,
            ),
            spawned=1,
            task_id=CHILD,
        ),
        tasks={
            CHILD: Task(
                tool="worker",
                title="Look for the cause",
                due_at=AT,
                generation=2,
                kind="worker",
                child=f"ann:vigil:_worker-{CHILD}",
                is_ordered=True,
                caused_by="e1",
                root_id="e1",
                spawned=1,
                told_seq=6,
            )
        },
        approvals={APPROVAL.id: APPROVAL},
    ),
    created_at=AT,
    rows=(
        Row(
            role="user",
            source="task",
            at=AT,
            blocks=(
                TaskBlock(
                    call_id="e" * 32,
                    tool="worker",
                    title="Read the page",
                    content="It is down",
                    is_error=True,
                    is_tainted=True,
                ),
            ),
        ),
    ),
    effects=(
        CallTool(
            id=CALL,
            ordinal=5,
            payload=CallToolPayload(
                service="executor",
                tool="shell",
                input={"command": "ls"},
                caused_by="e1",
                due_at=AT,
                risk="external",
                approval_id="f" * 32,
            ),
        ),
        SpawnSession(
            id=CHILD,
            ordinal=6,
            payload=SpawnSessionPayload(
                kind="worker",
                prompt="Look for the cause",
                caused_by="e1",
                root_id="e1",
                depth=1,
                allowance=2,
                is_ordered=True,
            ),
        ),
        CancelCall(
            id="1" * 32,
            ordinal=7,
            payload=CancelCallPayload(
                call_id="2" * 32,
                tool="worker",
                child=f"ann:vigil:_worker-{'2' * 32}",
                reason="the person stopped it",
            ),
        ),
        TellParent(
            id="3" * 32,
            ordinal=8,
            payload=TellParentPayload(
                parent="ann:vigil:t0", call_id="4" * 32, state="running", content="halfway"
            ),
        ),
        BoardChange(id="5" * 32, ordinal=9, payload=BoardChangePayload(entity=APPROVAL)),
    ),
)

SHELF: Final = Shelf(
    source="files",
    at=AT,
    tools=(
        Tool(
            name="files__read",
            description="Read a file.",
            input_schema={"type": "object", "properties": {"path": {"type": "string"}}},
            risk="read",
            timeout_s=60.0,
            output_bytes_max=1024,
            is_idempotent=True,
            digest="0" * 64,
        ),
    ),
    held=(HeldTool(name="files__write", digest="1" * 64, pinned="2" * 64),),
    problem="a tool is not what was approved",
    facts={"version": "1.2"},
)

PINS: Final = Pins(
    server="files",
    tools={
        "files__read": Pin(digest="0" * 64, at=AT, by="operator", description="Read a file."),
    },
)

SAMPLES: Final[dict[str, tuple[Callable[[bytes], Any], Any]]] = {
    "event.start": (
        contracts.decode_event,
        Control(
            payload=ControlPayload(
                op="start",
                start=Start(
                    prompt="Look for the cause",
                    parent="ann:vigil:t1",
                    call_id=CHILD,
                    parent_turn=8,
                    root_id="e1",
                    depth=1,
                    allowance=2,
                    is_ordered=True,
                ),
            ),
            **(ENVELOPE | {"session_key": f"ann:vigil:_worker-{CHILD}"}),
        ),
    ),
    "event.cancel": (
        contracts.decode_event,
        Control(
            payload=ControlPayload(op="cancel", reason="the person stopped it"),
            **(ENVELOPE | {"session_key": f"ann:vigil:_worker-{CHILD}"}),
        ),
    ),
    "event.status": (
        contracts.decode_event,
        Control(
            payload=ControlPayload(
                op="status", status=ChildStatus(call_id=CHILD, state="running", text="halfway")
            ),
            **ENVELOPE,
        ),
    ),
    "event.approval": (
        contracts.decode_event,
        Control(
            payload=ControlPayload(
                op="approval",
                decision=Decision(
                    approval_id="a" * 32,
                    verdict="edit",
                    digest="0" * 64,
                    by="ann",
                    input={"command": "rm -r build/cache"},
                    text="only the cache",
                ),
            ),
            **ENVELOPE,
        ),
    ),
    "turn.working": (contracts.decode_turn, WORKING),
    "board.approval": (
        contracts.decode_board,
        BoardEntry(entity=DECIDED, turn_seq=12, at=AT),
    ),
    "board.grant": (
        contracts.decode_board,
        BoardEntry(
            entity=GRANT,
            turn_seq=0,
            at=AT,
            change=Change(by="ann", why="she looks at the disk each day", cause="a" * 32),
        ),
    ),
    "board.use": (
        contracts.decode_board,
        BoardEntry(entity=USE, turn_seq=0, at=AT, change=Change(by="executor", cause=CALL)),
    ),
    "board.circuit": (
        contracts.decode_board,
        BoardEntry(entity=CIRCUIT, turn_seq=0, at=AT, change=Change(by="cortex", why="(529)")),
    ),
    "board.task": (
        contracts.decode_board,
        BoardEntry(entity=TASK, turn_seq=0, at=AT, change=Change(by="executor", cause=CALL)),
    ),
    "board.job": (contracts.decode_board, BoardEntry(entity=JOB, turn_seq=12, at=AT)),
    "shelf": (contracts.decode_shelf, SHELF),
    "pins": (contracts.decode_pins, PINS),
}
"""Name of the golden file -> (what decodes it, what it says)."""
