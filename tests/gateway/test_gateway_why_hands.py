"""Stories of tool calls, workers, requests and jobs, across sessions (SPEC D-3, X-2, J-1)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import httpx2
import pytest

from tests.support.gateway import Gate, assert_problem
from tests.support.why import START, at
from vigil.contracts import (
    Approval,
    BoardChange,
    BoardChangePayload,
    BoardEntity,
    BoardEntry,
    CallClaim,
    CallTool,
    CallToolPayload,
    CancelCall,
    CancelCallPayload,
    Cause,
    ChildStatus,
    Control,
    ControlPayload,
    Decision,
    Effect,
    Job,
    Plan,
    Row,
    SpawnSession,
    SpawnSessionPayload,
    Start,
    State,
    Step,
    StepRun,
    TellParent,
    TellParentPayload,
    ToolResultBlock,
    ToolResultEvent,
    ToolResultPayload,
    Turn,
    UserMessage,
    UserMessagePayload,
    encode,
)
from vigil.subjects import SessionKey

ANN: Final = SessionKey.parse("ann:vigil:t1")
SPAWN, CALL, REQUEST, JOB = "a" * 32, "b" * 32, "c" * 32, "d" * 32
WORKER: Final = ANN.of_kind("worker", SPAWN)
PLANNER: Final = ANN.of_kind("planner", JOB)


class Writer:
    """Writes records of one session as the services do; each a second after the one before."""

    seconds = 0

    def __init__(self, gate: Gate, key: SessionKey) -> None:
        self._bus = gate.admin
        self.key = key
        self._turns = 0

    def now(self) -> datetime:
        Writer.seconds += 1
        return at(Writer.seconds)

    async def _store(self, subject: str, record: Any) -> int:
        return (await self._bus.publish(subject, encode(record))).seq

    async def says(self, text: str, id_: str = "m1") -> Cause:
        event = UserMessage(id=id_, session_key=str(self.key), created_at=self.now(),
                            payload=UserMessagePayload(text=text))  # fmt: skip
        return Cause(id=id_, seq=await self._store(self.key.in_user, event), type="user_message")

    async def order(self, id_: str, **payload: Any) -> Cause:
        event = Control(id=id_, session_key=str(self.key), created_at=self.now(),
                        payload=ControlPayload(**payload))  # fmt: skip
        seq = await self._store(self.key.in_event("control"), event)
        return Cause(id=id_, seq=seq, type="control")

    async def result(self, call_id: str, content: str, **payload: Any) -> Cause:
        id_ = f"result-{call_id[:2]}"
        event = ToolResultEvent(
            id=id_, session_key=str(self.key), created_at=self.now(),
            payload=ToolResultPayload(call_id=call_id, content=content, **payload),
        )  # fmt: skip
        seq = await self._store(self.key.in_event("tool_result"), event)
        return Cause(id=id_, seq=seq, type="tool_result")

    async def turn(self, event: Cause, outcome: Any, *effects: Effect, **parts: Any) -> int:
        self._turns += 1
        state = parts.pop("state", State(turns=self._turns))
        turn = Turn(
            id=f"turn-{self.key.kind}-{self._turns}", session_key=str(self.key),
            ordinal=self._turns, event=event, outcome=outcome, state=state,
            created_at=self.now(), effects=effects, **parts,
        )  # fmt: skip
        return await self._store(self.key.turn, turn)

    async def claim(self, call_id: str, tool: str) -> None:
        claim = CallClaim(effect_id=call_id, session_key=str(self.key), tool=tool, by="x-1",
                          at=self.now())  # fmt: skip
        await self._store(self.key.call(call_id), claim)

    async def on_board(self, entity: BoardEntity, turn_seq: int) -> int:
        entry = BoardEntry(entity=entity, turn_seq=turn_seq, at=self.now())
        kind = str(entity.__struct_config__.tag)
        return await self._store(self.key.board(kind, entity.id), entry)


def call(id_: str = CALL, tool: str = "shell", **payload: Any) -> CallTool:
    fields: dict[str, Any] = {
        "service": "executor", "tool": tool, "input": {"command": "ls"}, "caused_by": "m1",
        "due_at": START, "risk": "external",
    } | payload  # fmt: skip
    return CallTool(id=id_, ordinal=1, payload=CallToolPayload(**fields))


def spawn() -> SpawnSession:
    payload = SpawnSessionPayload(kind="worker", prompt="count the files", caused_by="m1",
                                  root_id="m1", depth=1)  # fmt: skip
    return SpawnSession(id=SPAWN, ordinal=1, payload=payload)


def tell(state: Any, content: str) -> TellParent:
    payload = TellParentPayload(parent=str(ANN), call_id=SPAWN, state=state, content=content)
    return TellParent(id=f"tell-{state}", ordinal=1, payload=payload)


def change(entity: BoardEntity) -> BoardChange:
    payload = BoardChangePayload(entity=entity)
    return BoardChange(id=f"board-{entity.id[:2]}", ordinal=1, payload=payload)


def approval(state: Any = "open", key: SessionKey = ANN, **fields: Any) -> Approval:
    return Approval(
        id=REQUEST, session_key=str(key), tool="shell", input={"command": "rm x"}, digest="e" * 64,
        risk="destructive", reason="it can't be undone", asked_at=START,
        expires_at=START + timedelta(hours=1), caused_by="m1", state=state, **fields,
    )  # fmt: skip


@pytest.fixture
async def ann(gate: Gate) -> httpx2.AsyncClient:
    Writer.seconds = 0
    return await gate.person("ann")


async def why(person: httpx2.AsyncClient, id_: str, **query: str) -> dict[str, Any]:
    answer = await person.get(f"/api/why/{id_}", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def texts(story: dict[str, Any]) -> list[str]:
    return [step["text"] for step in story["steps"]]


# ---------------------------------------------------------------- calls


async def test_a_call_of_the_executor(gate: Gate, ann: httpx2.AsyncClient) -> None:
    """D-3, S-12: asked for, taken up, answered; found by the id of the call."""
    log = Writer(gate, ANN)
    spoke = await log.says("what is here?")
    await log.turn(spoke, "continued", call())
    await log.claim(CALL, "shell")
    result = await log.result(CALL, "ambiguous: nobody knows whether it ran", is_error=True)
    await log.turn(result, "answered", ended=(spoke.id, result.id))
    story = await why(ann, CALL)
    assert story["session_key"] == str(ANN)
    assert texts(story)[:4] == [
        "You wrote: “what is here?”", "The agent took a step (turn 1).",
        "It asked for shell: “{\"command\":\"ls\"}”", "The call of shell was taken on.",
    ]  # fmt: skip
    back = await why(ann, result.id)
    assert texts(back)[:3] == texts(story)[:3]
    assert "shell failed: “ambiguous: nobody knows whether it ran”" in texts(back)


async def test_a_call_that_was_called_off(gate: Gate, ann: httpx2.AsyncClient) -> None:
    """D-3: by whoever stopped the turn."""
    log = Writer(gate, ANN)
    spoke = await log.says("wait")
    await log.turn(spoke, "continued", call())
    stop = await log.order("stop-1", op="stop")
    payload = CancelCallPayload(call_id=CALL, tool="shell", reason="the turn was stopped")
    await log.turn(stop, "stopped", CancelCall(id="off", ordinal=2, payload=payload),
                   ended=(spoke.id, stop.id))  # fmt: skip
    story = await why(ann, spoke.id)
    assert "It cancelled shell: the turn was stopped." in texts(story)
    assert story["verdict"] == "stopped"


# ---------------------------------------------------------------- workers


async def worked(gate: Gate) -> tuple[Cause, Cause]:
    """Let a conversation start a worker, which asks, goes on and is done -> (message, result)."""
    log, worker = Writer(gate, ANN), Writer(gate, WORKER)
    spoke = await log.says("count my files")
    seq = await log.turn(spoke, "answered", spawn(), ended=(spoke.id,))
    start = Start(prompt="count the files", parent=str(ANN), call_id=SPAWN, parent_turn=seq)
    begun = await worker.order("start-1", op="start", start=start)
    state = State(turns=1, start=start)
    await worker.turn(begun, "continued", call(), state=state)
    await worker.claim(CALL, "shell")
    counted = await worker.result(CALL, "a\nb")
    row = Row(role="user", source="tool", at=START,
              blocks=(ToolResultBlock(tool_use_id="u1", content="a b"),))  # fmt: skip
    await worker.turn(begun, "continued", tell("running", "step 2"), rows=(row,),
                      state=State(turns=2, start=start, position=counted.seq))  # fmt: skip
    heard = await log.order(
        "status-1", op="status", status=ChildStatus(call_id=SPAWN, state="running", text="step 2")
    )
    await log.turn(heard, "ignored", ended=(heard.id,))
    await worker.turn(begun, "answered", tell("done", "There are two."), state=state,
                      ended=(begun.id,))  # fmt: skip
    result = await log.result(SPAWN, "There are two.")
    await log.turn(result, "answered", ended=(result.id,))
    return spoke, result


async def test_a_worker_is_told_in_outline_where_it_was_started(
    gate: Gate, ann: httpx2.AsyncClient
) -> None:
    """D-3, C-1: its task, what it told, its result; in the order of what happened."""
    spoke, result = await worked(gate)
    story = await why(ann, spoke.id)
    assert texts(story) == [
        "You wrote: “count my files”",
        "The agent decided (turn 1).",
        "It started a worker: “count the files”",
        "The session was started for: “count the files”",
        "The agent took a step (turn 2).",
        "It reported its progress: “step 2”",
        "The agent decided (turn 3).",
        "It reported its result to the session that started it: “There are two.”",
        "The worker answered: “There are two.”",
        "The agent decided (turn 3).",
    ]
    assert [step["stream"] for step in story["steps"]] == ["SESSIONS"] * 3 + ["SYSTEM"] * 5 + [
        "SESSIONS"
    ] * 2
    assert texts(await why(ann, result.id)) == texts(story)


async def test_a_worker_is_told_whole_from_within(gate: Gate, ann: httpx2.AsyncClient) -> None:
    """D-3, C-1: by the effect that started it, its session's event or turn, a signal of it; and
    back to what the person wrote."""
    await worked(gate)
    story = await why(ann, SPAWN)
    assert (story["kind"], story["session_key"]) == ("worker", str(WORKER))
    assert (story["verdict"], story["summary"]) == (
        "done", "It is done, and its result was reported to the session that started it.",
    )  # fmt: skip
    told = texts(story)
    assert told[:4] == [
        "You wrote: “count my files”", "The agent decided (turn 1).",
        "It started a worker: “count the files”", "The session was started for: “count the files”",
    ]  # fmt: skip
    assert "The call of shell was taken on." in told
    assert "shell answered: “a b”" in told
    for id_ in ("start-1", "turn-worker-1", "SYSTEM-1-worker.started", CALL):
        other = await why(ann, id_)
        assert other["session_key"] == str(WORKER), id_
        assert texts(other)[:4] == told[:4], id_
    assert (await why(ann, "seq-1", session=str(WORKER)))["session_key"] == str(WORKER)


async def test_nobody_reads_anothers_worker(gate: Gate, ann: httpx2.AsyncClient) -> None:
    """X-4: nor through a parent that is none of theirs."""
    await worked(gate)
    bob = await gate.person("bob")
    for id_ in (SPAWN, CALL, "start-1", "turn-worker-1", "SYSTEM-1-worker.started"):
        assert_problem(await bob.get(f"/api/why/{id_}"), 404)
        assert_problem(await bob.get(f"/api/why/{id_}", params={"session": str(WORKER)}), 404)
    stray = Writer(gate, SessionKey("bob", "vigil", "_worker-1"))
    start = Start(prompt="x", parent=str(ANN), call_id=SPAWN, parent_turn=2)
    await stray.order("stray", op="start", start=start)
    assert texts(await why(bob, "stray")) == ["The session was started for: “x”"]


async def test_a_worker_that_was_never_begun(gate: Gate, ann: httpx2.AsyncClient) -> None:
    """D-3"""
    log = Writer(gate, ANN)
    spoke = await log.says("count")
    await log.turn(spoke, "answered", spawn(), ended=(spoke.id,))
    story = await why(ann, spoke.id)
    assert texts(story)[-1] == "It started a worker: “count the files”"


# ---------------------------------------------------------------- requests to a person


async def asked(gate: Gate) -> tuple[Writer, Cause]:
    log = Writer(gate, ANN)
    spoke = await log.says("remove x")
    seq = await log.turn(spoke, "answered", change(approval()), ended=(spoke.id,))
    await log.on_board(approval(), seq)
    return log, spoke


ASKED: Final = (
    "It asks you for approval to run shell (destructive: it can't be undone): "
    "“{\"command\":\"rm x\"}”, until 2031-03-03 10:00:00 UTC."
)  # fmt: skip


async def test_a_request_that_waits(gate: Gate, ann: httpx2.AsyncClient) -> None:
    """D-3, X-2: found by its id, a signal of it, and what caused it."""
    _, spoke = await asked(gate)
    story = await why(ann, REQUEST)
    assert (story["kind"], story["verdict"]) == ("approval", "pending")
    assert story["summary"] == (
        "It waits for you to decide on shell, until 2031-03-03 10:00:00 UTC."
    )
    assert texts(story) == ["You wrote: “remove x”", "The agent decided (turn 1).", ASKED]
    assert texts(await why(ann, spoke.id)) == texts(story)
    assert texts(await why(ann, "BOARD-1-approval.requested")) == texts(story)
    bob = await gate.person("bob")
    for id_ in (REQUEST, "BOARD-1-approval.requested"):
        assert_problem(await bob.get(f"/api/why/{id_}"), 404)
    other = {"session": "ann:vigil:t2"}
    assert_problem(await ann.get(f"/api/why/{REQUEST}", params=other), 404)


@pytest.mark.parametrize(
    ("state", "decision", "verdict", "said", "deed"),
    [
        ("accepted", {"verdict": "accept"}, "accepted", "You accepted the request.",
         "You had accepted shell, so it may run."),
        ("edited", {"verdict": "edit", "input": {"command": "ls"}}, "accepted",
         "You accepted the request with other arguments: “{\"command\":\"ls\"}”",
         "You had accepted shell with other arguments, so it may run with those: "
         "“{\"command\":\"ls\"}”"),
        ("answered", {"verdict": "answer", "text": "it is gone"}, "answered",
         "You answered the request: “it is gone”",
         "You had answered in place of shell: “it is gone”"),
        ("rejected", {"verdict": "reject", "text": "no"}, "rejected",
         "You rejected the request: “no”", "You had rejected shell, so it doesn't run: “no”"),
    ],
)  # fmt: skip
async def test_every_verdict_of_a_person(
    gate: Gate, ann: httpx2.AsyncClient, state: Any, decision: dict[str, Any], verdict: str,
    said: str, deed: str,
) -> None:  # fmt: skip
    """D-3, X-2: asked for what, decided by whom, and what came of it."""
    log, spoke = await asked(gate)
    told = Decision(approval_id=REQUEST, digest="e" * 64, by="ann", **decision)
    event = await log.order("verdict-1", op="approval", decision=told)
    ended = approval(state, edited=decision.get("input"), text=decision.get("text", ""))
    runs = [call(approval_id=REQUEST)] if verdict == "accepted" else []
    seq = await log.turn(event, "decided", *runs, change(ended), ended=(event.id,))
    await log.on_board(ended, seq)
    if runs:
        await log.claim(CALL, "shell")
        result = await log.result(CALL, "removed")
        await log.turn(result, "answered", ended=(result.id,))
    story = await why(ann, REQUEST)
    assert (story["verdict"], story["kind"]) == (verdict, "approval")
    assert story["summary"].startswith(f"You {verdict} it")
    steps = texts(story)
    assert [one for one in steps if one in (ASKED, said, deed)] == [ASKED, said, deed]
    assert ("The call of shell was taken on." in steps) == bool(runs)
    assert ("shell answered: “removed”" in steps) == bool(runs)
    assert set(texts(await why(ann, spoke.id))) == set(steps)
    assert ASKED in texts(await why(ann, "verdict-1"))


@pytest.mark.parametrize(
    ("state", "verdict", "summary"),
    [
        ("expired", "expired", "Nobody decided in time, and nothing was run."),
        ("superseded", "void", "You wrote what made it needless, and it was not run."),
        ("closed", "cancelled", "What asked for it was ended, and nothing was run."),
    ],
)
async def test_every_other_end_of_a_request(
    gate: Gate, ann: httpx2.AsyncClient, state: Any, verdict: str, summary: str
) -> None:
    """D-3, X-2"""
    log, _ = await asked(gate)
    spoke = await log.says("never mind", "m2")
    await log.turn(spoke, "answered", change(approval(state)), ended=(spoke.id,))
    story = await why(ann, REQUEST)
    assert (story["verdict"], story["summary"]) == (verdict, summary)
    assert "You wrote: “never mind”" in texts(story)


async def test_what_a_worker_asks_leads_back_to_the_person(
    gate: Gate, ann: httpx2.AsyncClient
) -> None:
    """D-3, X-2: through the session that started it."""
    log, worker = Writer(gate, ANN), Writer(gate, WORKER)
    spoke = await log.says("tidy up")
    seq = await log.turn(spoke, "answered", spawn(), ended=(spoke.id,))
    start = Start(prompt="count the files", parent=str(ANN), call_id=SPAWN, parent_turn=seq)
    begun = await worker.order("start-1", op="start", start=start)
    request = approval(key=WORKER)
    turn_seq = await worker.turn(
        begun, "continued", change(request), tell("asking", "may I?"), state=State(start=start)
    )
    await worker.on_board(request, turn_seq)
    story = await why(ann, REQUEST)
    assert texts(story)[0] == "You wrote: “tidy up”"
    assert texts(story)[-2:] == [
        ASKED, "It reported that it waits for a person: “may I?”",
    ]  # fmt: skip
    assert story["verdict"] == "pending"


# ---------------------------------------------------------------- jobs


async def test_a_job_from_the_hand_in_to_its_end(gate: Gate, ann: httpx2.AsyncClient) -> None:
    """D-3, J-1: planned, step by step, with what failed."""
    log = Writer(gate, PLANNER)

    def job(**fields: Any) -> Job:
        return Job(id=JOB, session_key=str(PLANNER), goal="tidy", created_at=START, **fields)

    start = Start(prompt="tidy", job=job(status="queued"), root_id="s1")
    begun = await log.order("start-1", op="start", start=start)
    seq = await log.turn(begun, "continued", change(job(status="running")))
    first = await log.on_board(job(status="running"), seq)
    plan = Plan(steps=(Step(tool="nothing"), Step(tool="shell")), reasoning="first this")
    now = at(Writer.seconds + 1)
    failed = StepRun(tool="nothing", input={}, started_at=now, completed_at=now, error="unknown")
    runs = (failed, StepRun(tool="shell", input={}, started_at=now, call_id=CALL))
    running = job(status="running", plan=plan, step_runs=runs)
    await log.turn(begun, "continued", call(), change(running))
    await log.claim(CALL, "shell")
    result = await log.result(CALL, "done")
    now = at(Writer.seconds + 1)
    ended = (failed, StepRun(tool="shell", input={}, started_at=now - timedelta(seconds=3),
                             completed_at=now, output="done"))  # fmt: skip
    done = job(status="succeeded", plan=plan, step_runs=ended)
    seq = await log.turn(begun, "answered", change(done), ended=(begun.id, result.id),
                         state=State(position=result.seq))  # fmt: skip
    await log.on_board(done, seq)
    story = await why(ann, JOB)
    assert (story["kind"], story["verdict"]) == ("job", "done")
    assert story["summary"] == "The job is done."
    steps = [text for text in texts(story) if not text.startswith("The agent")]
    assert steps == [
        "The job was submitted: “tidy”",
        "The job “tidy” began, and is planned.",
        "It asked for shell: “{\"command\":\"ls\"}”",
        "It planned 2 steps: “first this”. Step 1, nothing, failed: “unknown”. "
        "Step 2, shell, began.",
        "The call of shell was taken on.",
        "Step 2, shell, is done: “done”. The job “tidy” is done: 2 steps; 1 of them failed.",
    ]  # fmt: skip
    assert texts(await why(ann, f"BOARD-{first}-job.started")) == texts(story)
    assert texts(await why(ann, "start-1")) == texts(story)
    assert_problem(await (await gate.person("bob")).get(f"/api/why/{JOB}"), 404)
