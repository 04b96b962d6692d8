"""Stored records: their versions, their golden files, what is refused (SPEC S-5, S-14)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support import goal_records, hands_records, session_records, timetable_records
from vigil import contracts
from vigil.contracts import (
    Attachment,
    AttachmentBlock,
    Attempt,
    CallClaim,
    CallTool,
    CallToolPayload,
    Cause,
    Control,
    ControlPayload,
    DeadLetter,
    DeadLetterEnd,
    Dispatch,
    External,
    ExternalPayload,
    FollowUp,
    Loop,
    MemoriesAccessed,
    MemoriesAssociated,
    MemoriesMerged,
    MemoriesReplaced,
    MemoriesUndone,
    Memory,
    MemoryForgotten,
    MemoryLink,
    MemorySaved,
    Note,
    OpaqueBlock,
    OpenCall,
    Pause,
    Queued,
    Receipt,
    Retry,
    Row,
    Said,
    SaveMemory,
    SaveMemoryPayload,
    ScheduleTimer,
    ScheduleTimerPayload,
    SendMessage,
    SendPayload,
    Signal,
    SignalSource,
    SlotRun,
    State,
    TextBlock,
    Tick,
    TickPayload,
    TimerFired,
    TimerPayload,
    TimerRecord,
    ToldEvent,
    ToldPayload,
    Tool,
    ToolResultBlock,
    ToolResultEvent,
    ToolResultPayload,
    ToolUseBlock,
    Turn,
    Usage,
    UserMessage,
    UserMessagePayload,
    Waiting,
    effect_id,
    encode,
    golden,
)
from vigil.contracts.costs import RaiseOffer
from vigil.contracts.effects import (
    RaiseBudget,
    RaiseBudgetPayload,
    TellPerson,
    TellPersonPayload,
)
from vigil.contracts.made import (
    Made,
    SeenAnswer,
    SeenCut,
    SeenFailure,
    SeenHours,
    SeenMoment,
    SeenNotice,
    SeenTask,
)
from vigil.errors import InvalidInput

AT = datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC)
ENVELOPE: dict[str, Any] = {"id": "e1", "session_key": "ann:vigil:t1", "created_at": AT}
OFFER = RaiseOffer(day="2026-11-22", times=1, most="20000000 tokens")
CAUSE = Cause(id="e1", seq=7, type="user_message")
FOLLOW_UP = FollowUp(generation=2, fire_at=AT, reason="look", message="Hey", keep=True)

TURN = Turn(
    id="turn-1",
    session_key="ann:vigil:t1",
    ordinal=2,
    event=CAUSE,
    outcome="continued",
    state=State(
        position=7,
        turns=2,
        effects=3,
        fence=7,
        last_send="f" * 32,
        follow_ups={"tea": FOLLOW_UP},
        loop=Loop(
            cause=CAUSE,
            fence=7,
            begun_at=AT,
            is_direct=True,
            calls=1,
            retry=Retry(attempt=1, generation=2, due_at=AT, reason="529"),
        ),
        queue=(Queued(seq=9, type="timer"),),
        history_from=5,
    ),
    created_at=AT,
    rows=(
        Row(role="user", source="person", at=AT, blocks=(TextBlock(text="Привет 👋"),)),
        Row(
            role="assistant",
            source="agent",
            at=AT,
            blocks=(
                OpaqueBlock(data={"type": "thinking", "signature": "s"}),
                ToolUseBlock(id="c1", name="schedule_followup", input={"delay_seconds": 20}),
            ),
        ),
        Row(
            role="user",
            source="tool",
            at=AT,
            blocks=(ToolResultBlock(tool_use_id="c1", content="ok"),),
        ),
    ),
    effects=(
        SendMessage(
            id="f" * 32,
            ordinal=2,
            payload=SendPayload(text="Hi", caused_by="e1", fence=7, tag="Agent follow-up"),
        ),
        ScheduleTimer(
            id="a" * 32,
            ordinal=3,
            payload=ScheduleTimerPayload(timer_id="tea", generation=2, fire_at=AT),
        ),
    ),
    notes=(Note(code="void", text="the person spoke first", subject="tea"),),
    usage=(Usage(model="rehearsal", input_tokens=3, output_tokens=4),),
    ended=("e0",),
)

MADE = Turn(
    id="turn-5",
    session_key="ann:vigil:t1",
    ordinal=5,
    event=CAUSE,
    outcome="answered",
    state=State(position=7, turns=5),
    created_at=AT,
    rows=(Row(role="assistant", source="agent", at=AT, blocks=(TextBlock(text="Hi"),)),),
    usage=(Usage(model="rehearsal"),),
    made=Made(
        step="fold",
        moment=SeenMoment(now=AT),
        after=SeenMoment(
            now=AT,
            hours=SeenHours(
                zone="Europe/Vienna", quiet=(time(22), time(7)), digest=time(8), pause=AT
            ),
            hours_at=AT,
            is_paused=True,
            is_history_swayed=True,
            unsaid=("f" * 32,),
            tasks=(SeenTask(task=hands_records.TASK, revision=3),),
        ),
        route="phone",
        tools=(Tool(name="shell", description="", input_schema={"type": "object"}),),
        answer=SeenAnswer(stop_reason="end_turn", row=0),
        failure=SeenFailure(reason="529", is_retryable=True, kind="529"),
        cut=SeenCut(
            kind="drop", count=2, fill=0.9, context_tokens=1000, fixed_tokens=10, ratio=1.5
        ),
        notices=(SeenNotice(id="n", text="80 % of today's budget"),),
    ),
)

RAISED = Turn(
    id="turn-5",
    session_key="ann:vigil:t1",
    ordinal=6,
    event=CAUSE,
    outcome="decided",
    state=State(position=9, turns=6, offer=replace(OFFER, is_newest=False, is_taken=True)),
    created_at=AT,
    effects=(
        RaiseBudget(
            id="5" * 32,
            ordinal=3,
            payload=RaiseBudgetPayload(day="2026-11-22", times=1, by="ann"),
        ),
        TellPerson(
            id="6" * 32,
            ordinal=4,
            payload=TellPersonPayload(
                home="ann:vigil:main",
                told=ToldPayload(origin="ann:vigil:t1", text="80 %", what="budget", offer=OFFER),
            ),
        ),
    ),
    made=Made(step="fold", notices=(SeenNotice(id="n", text="80 %", offer=OFFER),)),
)

PAID = Turn(
    id="turn-3",
    session_key="ann:vigil:t1",
    ordinal=4,
    event=CAUSE,
    outcome="silent",
    state=State(position=7, turns=4),
    created_at=AT,
    usage=(
        Usage(
            model="claude-haiku-5-5",
            input_tokens=100,
            output_tokens=20,
            cache_read_tokens=8_000,
            cache_write_tokens=1_900,
            tier="cheap",
            tier_reason="phase save",
        ),
    ),
)

FALLEN_BACK = Turn(
    id="turn-4",
    session_key="ann:vigil:t1",
    ordinal=5,
    event=CAUSE,
    outcome="continued",
    state=State(position=7, turns=5, fallback_until=AT),
    created_at=AT,
    notes=(Note(code="model_fallback", text="small until noon, since attempt 2 failed (529)"),),
)

ATTACHED = Turn(
    id="turn-5",
    session_key="ann:vigil:t1",
    ordinal=6,
    event=CAUSE,
    outcome="begun",
    state=State(position=7, turns=6),
    created_at=AT,
    rows=(
        Row(
            role="user",
            source="person",
            at=AT,
            blocks=(
                TextBlock(text="fits?"),
                AttachmentBlock(
                    file=Attachment(
                        hash="0f" * 32, name="a.png", type="image/png", size=9, width=3, height=5
                    )
                ),
            ),
        ),
    ),
)

REMEMBERING = Turn(
    id="turn-2",
    session_key="ann:vigil:t1",
    ordinal=3,
    event=CAUSE,
    outcome="continued",
    state=State(
        position=7,
        turns=3,
        effects=5,
        fence=7,
        loop=Loop(
            cause=CAUSE,
            fence=7,
            begun_at=AT,
            is_direct=True,
            waiting=Waiting(
                calls=(OpenCall(effect_id="c" * 32, tool_use_id="c1", tool="memory_save"),),
                generation=3,
                due_at=AT,
            ),
        ),
        pause=Pause(generation=3, due_at=AT),
        unsaved_from=8,
        summary_seq=12,
    ),
    created_at=AT,
    effects=(
        CallTool(
            id="c" * 32,
            ordinal=4,
            payload=CallToolPayload(
                service="memory",
                tool="memory_save",
                input={"content": "Ann likes tea"},
                caused_by="e1",
                due_at=AT,
            ),
        ),
        SaveMemory(
            id="d" * 32,
            ordinal=5,
            payload=SaveMemoryPayload(
                content="Ann lives in Lisbon",
                type="identity",
                source="chat:t1",
                importance=0.9,
                thread="t1",
                occurred_at=AT,
                provenance=("e1",),
                is_tainted=True,
            ),
        ),
    ),
    summary="They spoke of tea.",
)

ABOUT: dict[str, Any] = {"id": "r1", "agent": "vigil", "owner": "ann", "at": AT, "by": "user:ann"}
MEMORY = Memory(
    id="a" * 32,
    content="Ann lives in Lisbon",
    created_at=AT,
    type="identity",
    importance=1.0,
    source="chat:t1",
    stability="volatile",
    thread="t1",
    occurred_at=AT,
    expires_at=AT,
    valid_from=AT,
    valid_to=AT,
    provenance=("e1",),
    is_tainted=True,
)
EDGE = MemoryLink(from_id="a" * 32, to_id="b" * 32, relation="updates", weight=0.75)

SAMPLES: dict[str, tuple[Callable[[bytes], Any], Any]] = {
    "event.user_message": (
        contracts.decode_event,
        UserMessage(payload=UserMessagePayload(text="hi", is_keyed=True), **ENVELOPE),
    ),
    "event.timer": (
        contracts.decode_event,
        TimerFired(payload=TimerPayload(timer_id="tea", generation=2, fire_at=AT), **ENVELOPE),
    ),
    "event.control": (
        contracts.decode_event,
        Control(payload=ControlPayload(op="stop", reason="enough"), **ENVELOPE),
    ),
    "turn": (contracts.decode_turn, TURN),
    "said": (
        contracts.decode_said,
        Said(
            id="f" * 32,
            session_key="ann:vigil:t1",
            text="Hi",
            at=AT,
            caused_by="e1",
            turn_seq=8,
            tag="Agent follow-up",
            is_autonomous=True,
        ),
    ),
    "receipt": (
        contracts.decode_receipt,
        Receipt(
            effect_id="f" * 32,
            session_key="ann:vigil:t1",
            outcome="void",
            at=AT,
            reason="the person spoke first",
        ),
    ),
    "timer": (
        contracts.decode_timer,
        TimerRecord(
            session_key="ann:vigil:t1",
            timer_id="tea",
            generation=2,
            fire_at=AT,
            kind="follow_up",
            caused_by="e1",
        ),
    ),
    "dead_letter": (
        contracts.decode_dead_letter,
        DeadLetter(
            id="SESSIONS-9",
            service="cortex",
            stream="SESSIONS",
            subject="session.vigil.ann.t1.in.external",
            seq=9,
            cause="not JSON",
            data=b"\xff\x00",
            at=AT,
        ),
    ),
    "event.external": (
        contracts.decode_event,
        External(
            payload=ExternalPayload(
                source="hook:ci",
                content='{"status":"red"}',
                kind="build.failed",
                origin="https://ci.example/7",
                origin_id="42",
                occurred_at=AT,
            ),
            **ENVELOPE,
        ),
    ),
    "event.tool_result": (
        contracts.decode_event,
        ToolResultEvent(
            payload=ToolResultPayload(
                call_id="c" * 32, content="Remembered", is_error=True, is_tainted=True
            ),
            **ENVELOPE,
        ),
    ),
    "event.tick": (
        contracts.decode_event,
        Tick(
            payload=TickPayload(
                slot=AT,
                run=SlotRun(row="1" * 32, name="mind", due_at=AT, is_by_hand=True, timeout_s=600),
            ),
            **ENVELOPE,
        ),
    ),
    "event.told": (
        contracts.decode_event,
        ToldEvent(
            payload=ToldPayload(
                origin="ann:vigil:_planner-1f",
                text="The disk is full.",
                what="job",
                title="watch the disk",
                row="disk",
                urgency="high",
                is_ordered=True,
                is_tainted=True,
            ),
            **ENVELOPE,
        ),
    ),
    "turn.remembering": (contracts.decode_turn, REMEMBERING),
    "turn.made": (contracts.decode_turn, MADE),
    "turn.paid": (contracts.decode_turn, PAID),
    "turn.raised": (contracts.decode_turn, RAISED),
    "turn.fallback": (contracts.decode_turn, FALLEN_BACK),
    "turn.attached": (contracts.decode_turn, ATTACHED),
    "call_claim": (
        contracts.decode_call_claim,
        CallClaim(
            effect_id="c" * 32,
            session_key="ann:vigil:t1",
            tool="memory_save",
            by="instance",
            at=AT,
        ),
    ),
    "memory.save": (
        contracts.decode_memory,
        MemorySaved(memory=MEMORY, edges=(EDGE,), **ABOUT),
    ),
    "memory.forget": (
        contracts.decode_memory,
        MemoryForgotten(memory_ids=("a" * 32,), reason="expired", **ABOUT),
    ),
    "memory.merge": (
        contracts.decode_memory,
        MemoriesMerged(memory=MEMORY, merged_ids=("b" * 32, "c" * 32), **ABOUT),
    ),
    "memory.replace": (
        contracts.decode_memory,
        MemoriesReplaced(by_id="a" * 32, memory_ids=("b" * 32,), is_same=False, **ABOUT),
    ),
    "memory.associate": (
        contracts.decode_memory,
        MemoriesAssociated(edges=(EDGE,), through=7, **ABOUT),
    ),
    "memory.access": (
        contracts.decode_memory,
        MemoriesAccessed(memory_ids=("a" * 32,), **ABOUT),
    ),
    "memory.undo": (
        contracts.decode_memory,
        MemoriesUndone(source="chat:t1", memory_ids=("a" * 32,), restored_ids=("b" * 32,), **ABOUT),
    ),
    "dispatch": (
        contracts.decode_dispatch,
        Dispatch(
            effect_id="f" * 32,
            session_key="ann:vigil:t1",
            channel="ops",
            said_seq=9,
            at=AT,
            requeued_by="ann",
        ),
    ),
    "attempt": (
        contracts.decode_attempt,
        Attempt(
            effect_id="f" * 32,
            session_key="ann:vigil:t1",
            channel="ops",
            number=2,
            state="refused",
            at=AT,
            reason="503 Service Unavailable",
            status=503,
            next_at=AT,
        ),
    ),
    "dead_letter_end": (
        contracts.decode_dead_letter_end,
        DeadLetterEnd(letter_id="SESSIONS-9", action="requeued", by="ann", at=AT),
    ),
    "signal": (
        contracts.decode_signal,
        Signal(
            id="SESSIONS-8-message.blocked",
            kind="message.blocked",
            agent="vigil",
            owner="ann",
            at=AT,
            source=SignalSource(stream="SESSIONS", seq=8),
            session_key="ann:vigil:t1",
            caused_by="e1",
            subject="tea",
            text="3 messages in a row without an answer",
            data={"code": "cap"},
        ),
    ),
    **hands_records.SAMPLES,
    **goal_records.SAMPLES,
    **session_records.SAMPLES,
    **timetable_records.SAMPLES,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_version_ever_written_is_still_read(name: str) -> None:
    """S-14. A new version adds a file `{name}.v2.json` and a lift; no file is ever changed."""
    decode, sample = SAMPLES[name]
    stored = golden.versions(name)
    assert f"{name}.v{contracts.VERSIONS[name.partition('.')[0]]}" in golden.records()
    for data in stored:
        assert decode(data) == sample
    assert json.loads(encode(sample)) == json.loads(stored[-1])


def test_an_older_version_is_lifted_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """S-14: small functions, one version each."""
    monkeypatch.setitem(contracts.VERSIONS, "said", 3)
    monkeypatch.setitem(contracts.LIFTS, ("said", 1), lambda raw: raw | {"text": raw["text"] + "2"})
    monkeypatch.setitem(contracts.LIFTS, ("said", 2), lambda raw: raw | {"text": raw["text"] + "3"})
    said = contracts.decode_said(golden.versions("said")[0])
    assert (said.text, said.v) == ("Hi23", 3)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff\xfe", b"null", b"[]", b"{}", b'{"v":1}', b'{"v":99,"type":"user_message"}',
        b'{"v":"1"}', b'{"v":0}', b'{"type":"unheard_of","v":1}', b"[" * 100_000,
        b'{"type":"user_message","id":1,"session_key":"a:b:c","v":1}',
        b'{"type":"user_message","id":"1","session_key":"a:b:c","v":1,'
        b'"created_at":"2026-01-01T00:00:00","payload":{"text":"no zone"}}',
    ],
)  # fmt: skip
def test_what_is_no_record_is_refused_with_a_reason(data: bytes) -> None:
    """X-6."""
    with pytest.raises(InvalidInput) as caught:
        contracts.decode_event(data)
    assert caught.value.field == "event"
    assert caught.value.reason


@given(st.binary(max_size=200))
def test_no_bytes_crash_a_decoder(data: bytes) -> None:
    for decode in (contracts.decode_event, contracts.decode_turn, contracts.decode_timer):
        with pytest.raises(InvalidInput):
            decode(data)


@given(
    st.text(max_size=5), st.integers(0, 9), st.integers(0, 9),
    st.text(max_size=5), st.integers(0, 9), st.integers(0, 9),
)  # fmt: skip
def test_equal_effects_have_equal_keys_and_others_have_not(
    text: str, seq: int, ordinal: int, text2: str, seq2: int, ordinal2: int
) -> None:
    """S-5: a hash of what it is, never of a clock."""

    def key(text: str, seq: int, ordinal: int) -> str:
        payload = SendPayload(text=text, caused_by="e", fence=0)
        return effect_id("a:b:c", seq, ordinal, "send_message", payload, "socket")

    same = (text, seq, ordinal) == (text2, seq2, ordinal2)
    assert (key(text, seq, ordinal) == key(text2, seq2, ordinal2)) is same
