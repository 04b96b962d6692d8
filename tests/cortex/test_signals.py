"""Signals, the pure part: which record gives which, and what a window shows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.signals.latency import BranchTimes
from services.cortex.signals.patterns import (
    ERRORS_MIN,
    ERRORS_WITHIN,
    FLOOD_MIN,
    FLOOD_WITHIN,
    OWNERS_MAX,
    WINDOW,
    SignalWindow,
)
from vigil.contracts import (
    Cause,
    FollowUp,
    MemoriesAccessed,
    MemoriesAssociated,
    MemoriesMerged,
    MemoriesReplaced,
    MemoriesUndone,
    Memory,
    MemoryForgotten,
    MemoryRecord,
    MemorySaved,
    Note,
    Receipt,
    ReceiptOutcome,
    Row,
    Said,
    ScheduleTimer,
    ScheduleTimerPayload,
    Signal,
    SignalSource,
    State,
    TimerBlock,
    Turn,
    Usage,
    decode_signal,
    encode,
    golden,
)
from vigil.contracts.notes import NOTES
from vigil.contracts.vocabulary import RECEIPTS
from vigil.errors import InvalidInput
from vigil.signals.kinds import KINDS
from vigil.signals.sources import SOURCES, place_of, project
from vigil.subjects import Scope, SessionKey

KEY = SessionKey.parse("ann:vigil:t1")
AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
CAUSE = Cause(id="e1", seq=6, type="user_message")


def turn(ordinal: int = 2, **fields: Any) -> Turn:
    return Turn(**{
        "id": "turn", "session_key": str(KEY), "ordinal": ordinal, "event": CAUSE,
        "outcome": "answered", "state": State(), "created_at": AT, **fields,
    })  # fmt: skip


def signals_of(record: Turn | Said | Receipt) -> list[Signal]:
    if isinstance(record, Turn):
        subject = KEY.turn
    elif isinstance(record, Said):
        subject = KEY.out_said(record.id)
    else:
        subject = KEY.receipt(record.effect_id)
    return project("SESSIONS", 7, subject, encode(record))


def kinds(signals: list[Signal]) -> list[str]:
    return [signal.kind for signal in signals]


def test_a_turn_is_a_signal_with_its_cause() -> None:
    """C-4: who, when, why, and the record that it tells of."""
    usage = Usage(model="m", input_tokens=3, output_tokens=4, cache_read_tokens=5)
    (signal,) = signals_of(turn(usage=(usage,)))
    assert signal == Signal(
        id="SESSIONS-7-turn.committed",
        kind="turn.committed",
        agent="vigil",
        owner="ann",
        at=AT,
        source=SignalSource(stream="SESSIONS", seq=7),
        session_key="ann:vigil:t1",
        caused_by="e1",
        subject="e1",
        text="Turn 2 ended with an answer, because of a message of the person",
        data={
            "turn": 2, "outcome": "answered", "event": "user_message", "model": "m", "tokens": 12,
        },
    )  # fmt: skip


def test_the_first_turn_begins_a_session() -> None:
    assert kinds(signals_of(turn(1))) == ["session.started", "turn.committed"]


def test_timers_that_were_planned_put_off_and_taken_up() -> None:
    """C-4, S-8: subject is the timer; a deadline of the machine's own is no timer of anybody's."""

    def schedule(timer_id: str, kind: Any = "follow_up") -> ScheduleTimer:
        payload = ScheduleTimerPayload(timer_id=timer_id, generation=2, fire_at=AT, kind=kind)
        return ScheduleTimer(id=f"x-{timer_id}", ordinal=1, payload=payload)

    follow_ups = {
        "tea": FollowUp(generation=2, fire_at=AT, keep=True),
        "look": FollowUp(generation=2, fire_at=AT, held_from=AT),
    }
    block = TimerBlock(timer_id="old", follow_up=FollowUp(generation=1, fire_at=AT))
    row = Row(role="user", blocks=(block,), at=AT, source="timer")
    made = signals_of(
        turn(
            state=State(follow_ups=follow_ups),
            effects=(schedule("tea"), schedule("look"), schedule("_retry", "deadline")),
            rows=(row,),
        )
    )
    assert [(s.kind, s.subject, s.text) for s in made[1:]] == [
        ("timer.fired", "old", "A follow-up came due"),
        ("timer.scheduled", "tea", "A reminder is planned for 2026-01-05T09:00:00Z"),
        ("timer.scheduled", "look", "A follow-up was put off to 2026-01-05T09:00:00Z"),
    ]
    assert made[3].id == "SESSIONS-7-timer.scheduled-2"
    assert made[2].data == {"fire_at": AT, "generation": 2, "keep": True}


def test_a_conversation_that_is_summed_up_is_told() -> None:
    """C-4, I-4: and whether a model read what went."""
    (_, summed), (_, dropped) = (
        signals_of(turn(outcome="compacted", summary="CANARY", notes=[Note(code=code, text="x")]))
        for code in ("compacted", "compacted_unread")
    )
    assert (summed.kind, summed.data["has_summary"]) == ("compaction.triggered", True)
    assert (dropped.kind, dropped.data["has_summary"]) == ("compaction.triggered", False)
    assert b"CANARY" not in encode(summed) + encode(dropped)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("void", "timer.voided"),
        ("cancelled", "timer.cancelled"),
        ("blocked_cap", "message.blocked"),
        ("blocked_disabled", "message.blocked"),
        ("budget_exhausted", "budget.exhausted"),
        ("budget_warned", "budget.warned"),
        ("model_failed", "error.model"),
        ("model_retry", "error.retry"),
        ("model_fallback", "model.fallback"),
        ("dead_letter", "error.event"),
        ("gave_up", "error.event"),
        ("queue_full", "error.event"),
        ("stale_timer", None),
    ],
)
def test_notes(code: str, kind: str | None) -> None:
    """C-4: a note's own words, and the timer or else the event that it's about."""
    made = signals_of(turn(notes=(Note(code=code, text="so it is", subject="tea"),)))[1:]
    assert kinds(made) == ([] if kind is None else [kind])
    for signal in made:
        assert signal.subject == "tea"
        assert signal.text.endswith(": so it is")
        assert signal.data["code"] in code


def test_a_note_about_nothing_is_about_its_event() -> None:
    made = signals_of(turn(notes=(Note(code="blocked_cap", text="3"), Note(code="void", text=""))))
    assert [(s.kind, s.subject) for s in made[1:]] == [
        ("message.blocked", "e1"), ("message.dropped", "e1"),
    ]  # fmt: skip


def test_a_void_event_is_no_follow_up() -> None:
    """C-4: the person speaks while an event from outside is thought about, and one waits."""
    notes = tuple(Note(code="void", text="so it is", subject=name) for name in ("tea", "x1", "x2"))
    made = signals_of(turn(notes=notes, ended=("x1", "x2")))[1:]
    assert [(s.kind, s.subject) for s in made] == [
        ("timer.voided", "tea"), ("message.dropped", "x1"), ("message.dropped", "x2"),
    ]  # fmt: skip


def test_what_was_said_is_told_without_the_words() -> None:
    """C-4: a signal is no second transcript."""
    said = Said(
        id="f" * 32, session_key=str(KEY), text="a secret", at=AT, caused_by="e1", turn_seq=6,
        tag="Agent follow-up", is_autonomous=True,
    )  # fmt: skip
    (signal,) = signals_of(said)
    assert (signal.kind, signal.subject, signal.caused_by) == ("message.sent", said.id, "e1")
    assert b"secret" not in encode(signal)
    assert signal.data == {
        "channel": "socket", "tag": "Agent follow-up", "is_autonomous": True, "length": 8,
    }  # fmt: skip


@pytest.mark.parametrize("outcome", get_args(ReceiptOutcome))
def test_receipts(outcome: ReceiptOutcome) -> None:
    """C-4, D-2: each outcome is a signal, but for `said`, which the claim tells."""
    receipt = Receipt(
        effect_id="f" * 32, session_key=str(KEY), outcome=outcome, at=AT, reason="x" * 9000
    )
    made = signals_of(receipt)
    assert kinds(made) == [kind for kind in [RECEIPTS[outcome].signal] if kind]
    assert bool(made) == (outcome != "said")
    assert all(len(signal.text) <= 300 and signal.subject == "f" * 32 for signal in made)


def test_every_kind_has_a_rule_and_every_rule_a_kind() -> None:
    """C-4: what is listed is emitted, and nothing else is."""
    made = {words.signal[0] for words in NOTES.values() if words.signal}
    made |= {words.signal for words in RECEIPTS.values() if words.signal}
    made |= {"session.started", "turn.committed", "message.sent"}
    made |= {"timer.scheduled", "timer.fired", "compaction.triggered"}
    made |= {"memory.saved", "memory.merged", "memory.replaced", "memory.forgotten"}
    elsewhere = (
        "worker.",
        "branch.",
        "reader.",
        "approval.",
        "job.",
        "grant.",
        "task.",
        "goal.",
        "preference.",
        "action.",
        *("cron.", "autonomy."),  # test_signals_slots
        "bulletin.",
        "circuit.",  # test_circuits
        "event.",  # test_signals_letters
        "fact.",
        "mind.",  # test_core_mind
    )  # test_signals_hands
    assert made == {kind for kind in KINDS if not kind.startswith(elsewhere)}


@pytest.mark.parametrize(
    ("subject", "data"),
    [
        (KEY.turn, b"{"),
        (KEY.turn, b'{"v": 99}'),
        (KEY.in_user, b"{}"),
        (KEY.turn.replace("ann", "*"), encode(turn())),
        (f"{KEY.turn}.more", encode(turn())),
    ],
)
def test_what_gives_no_signals(subject: str, data: bytes) -> None:
    """X-6, S-2: unreadable, not ours, or of a session that can't be."""
    with pytest.raises(InvalidInput):
        project("SESSIONS", 7, subject, data)


# ---------------------------------------------------------------- memories

OF_ANN = Scope("vigil", "ann")


def remembered(kind: Callable[..., MemoryRecord], **fields: Any) -> list[Signal]:
    record = kind(id="r", agent="vigil", owner="ann", at=AT, by="session:ann:vigil:t1", **fields)
    tag = record.__struct_config__.tag
    return project("MEMORIES", 3, OF_ANN.record(str(tag)), encode(record))


NOTED = Memory(
    id="a" * 32, content="CANARY", created_at=AT, type="decision", source="chat:CANARY",
    thread="CANARY",
)  # fmt: skip


def test_what_is_remembered_is_told_without_its_words() -> None:
    """C-4, X-8: ids and types; a signal of a team's memory names nobody."""
    (saved,) = remembered(MemorySaved, memory=NOTED)
    assert saved == Signal(
        id="MEMORIES-3-memory.saved", kind="memory.saved", agent="vigil", owner="ann", at=AT,
        source=SignalSource(stream="MEMORIES", seq=3), subject="a" * 32,
        text="A memory was saved: decision", data={"type": "decision", "source": "chat"},
    )  # fmt: skip
    (tainted,) = remembered(MemorySaved, memory=msgspec.structs.replace(NOTED, is_tainted=True))
    assert tainted.data["is_tainted"] is True
    (merged,) = remembered(MemoriesMerged, memory=NOTED, merged_ids=("b", "c"))
    assert (merged.kind, merged.subject, merged.data) == ("memory.merged", "a" * 32, {"count": 2})
    (replaced,) = remembered(MemoriesReplaced, by_id="a" * 32, memory_ids=("b",), is_same=True)
    assert (replaced.kind, replaced.data) == ("memory.replaced", {"count": 1, "is_same": True})
    (wider,) = remembered(
        MemoriesReplaced, by_id="a" * 32, memory_ids=("b",), is_same=False, is_wider=True
    )
    assert wider.text == "A memory that says that and more took the place of 1 memory"
    for signal in (saved, tainted, merged, replaced):
        assert b"CANARY" not in encode(signal)
        assert b"t1" not in encode(signal)
    assert place_of(saved) == "signal.vigil.ann.memory.saved._memory"


def test_what_is_forgotten_together_is_one_signal() -> None:
    """C-4: a prune of thousands is one line."""
    (many,) = remembered(
        MemoryForgotten, memory_ids=tuple(str(n) for n in range(1000)), reason="decayed"
    )
    assert (many.subject, many.data) == (None, {"reason": "decayed", "count": 1000})
    assert many.text == "No longer recalled: 1000 memories (of no use for long)"
    (one,) = remembered(MemoryForgotten, memory_ids=("b",))
    assert (one.subject, one.text) == ("b", "No longer recalled: 1 memory (as asked)")
    (undone,) = remembered(MemoriesUndone, source="s", memory_ids=("b", "c"), restored_ids=("d",))
    assert undone.kind == "memory.forgotten"
    assert undone.data == {"reason": "undone", "count": 2, "restored": 1}


@pytest.mark.parametrize("kind", [MemoriesAccessed, MemoriesAssociated])
def test_bookkeeping_of_memory_gives_none(kind: Any) -> None:
    fields = {"memory_ids": ("a",)} if kind is MemoriesAccessed else {}
    with pytest.raises(InvalidInput):
        remembered(kind, **fields)


def test_every_kind_has_one_source() -> None:
    """C-4: how far a source is told is found by the kinds that only it gives."""
    filters = [filter_ for source in SOURCES for filter_ in source.signals]
    halves = [filter_.split(".")[3] for filter_ in filters]
    assert sorted(halves) == sorted({kind.partition(".")[0] for kind in KINDS})
    assert {s.stream: len(s.signals) for s in SOURCES}["MEMORIES"] == 1


def test_the_same_record_gives_the_same_signals() -> None:
    """C-4: projecting again tells the same, byte by byte, and what is stored can be read."""
    record = turn(1, notes=tuple(Note(code="void", text="", subject=str(n)) for n in range(30)))
    first, again = signals_of(record), signals_of(record)
    assert list(map(encode, first)) == list(map(encode, again))
    assert [decode_signal(encode(signal)) for signal in first] == first
    assert len({signal.id for signal in first}) == len(first) == 32


def test_the_golden_turn_gives_signals() -> None:
    """S-14: records of every version are projected for good."""
    for name in ("turn", "turn.remembering", "turn.working", "turn.paid", "turn.fallback"):
        for data in golden.versions(name):
            assert project("SESSIONS", 7, KEY.turn, data)


# ---------------------------------------------------------------- patterns


def at(seconds: float, kind: str = "turn.committed", thread: str = "t1", **data: object) -> Signal:
    return Signal(
        id="", kind=kind, agent="vigil", owner="ann", at=AT + timedelta(seconds=seconds), data=data,
        source=SignalSource(stream="SESSIONS", seq=1), session_key=f"ann:vigil:{thread}",
    )  # fmt: skip


def test_an_error_loop_is_three_errors_of_one_session_within_ten_minutes() -> None:
    """C-4: told once when it begins; over when the errors stop."""
    window = SignalWindow()
    step = ERRORS_WITHIN.total_seconds() / (ERRORS_MIN - 1)
    assert window.add(at(n * step, "error.event") for n in range(ERRORS_MIN - 1)) == []
    last = (ERRORS_MIN - 1) * step
    (found,) = window.add([at(last, "error.model")])
    assert (found.kind, found.session_key, found.count) == ("error_loop", "ann:vigil:t1", 3)
    assert found.until - found.since == ERRORS_WITHIN
    assert window.add([at(last + 1, "error.model")]) == []
    end = AT + timedelta(seconds=last + 1) + ERRORS_WITHIN
    (shown,) = window.patterns(end)
    assert shown.since == found.since
    assert window.patterns(end + timedelta(microseconds=1)) == []


def test_what_is_no_error_loop() -> None:
    """C-4: too slow, of several sessions, or no errors."""
    step = ERRORS_WITHIN.total_seconds() / (ERRORS_MIN - 1) + 0.001
    for signals in (
        [at(n * step, "error.model") for n in range(20)],
        [at(n, "error.model", f"t{n % 5}") for n in range(2 * (ERRORS_MIN + 2))],
        [at(n, "error.retry") for n in range(20)],
        [at(n, "message.blocked") for n in range(20)],
    ):
        assert SignalWindow().add(signals) == []


def test_a_flood_is_a_signal_a_second_for_a_minute() -> None:
    """C-4: of one session, among those of others."""
    window = SignalWindow()
    step = FLOOD_WITHIN.total_seconds() / (FLOOD_MIN - 1)
    others = [at(n, thread="other") for n in range(30)]
    assert window.add([*others, *(at(n * step) for n in range(FLOOD_MIN - 1))]) == []
    (found,) = window.add([at((FLOOD_MIN - 1) * step)])
    assert (found.kind, found.session_key, found.count) == ("flood", "ann:vigil:t1", FLOOD_MIN)
    slow = step + 0.001
    assert SignalWindow().add(at(n * slow) for n in range(200)) == []


def test_ordinary_chat_is_no_flood() -> None:
    """C-4: neither a person who types fast, nor an answer of many turns; what an agent does by
    itself is one, also beside a chat."""
    turns = [at(n / 4, event="user_message") for n in range(200)]
    answers = [at(n / 4, "message.sent", is_autonomous=False) for n in range(200)]
    assert SignalWindow().add([*turns, *answers]) == []
    alone = [at(n / 2, event="timer") for n in range(FLOOD_MIN)]
    mixed = sorted([*alone, *(at(n, event="user_message") for n in range(30))], key=lambda s: s.at)
    (found,) = SignalWindow().add(mixed)
    assert (found.kind, found.count) == ("flood", FLOOD_MIN)


def closed(seconds: float, component: str) -> Signal:
    one = at(seconds, "circuit.closed", component=component)
    return msgspec.structs.replace(one, session_key=None)


def test_what_was_before_a_circuit_closed_counts_no_more() -> None:
    """C-4: three errors open it, and once it closed, three more do; a flood of events from outside
    opens another."""
    window = SignalWindow()
    (found,) = window.add(at(n, "error.model") for n in range(4))
    assert found.circuit == "session:ann:vigil:t1"
    assert found.reason == "3 exchanges given up within 2 s"
    window.add([closed(5, found.circuit)])
    assert window.patterns(AT + timedelta(seconds=5)) == []
    assert window.add(at(n, "error.model") for n in (6, 7)) == []
    assert len(window.add([at(8, "error.event")])) == 1

    (own,) = SignalWindow().add(at(n / 2, event="timer") for n in range(FLOOD_MIN))
    assert own.circuit == ""
    (outside,) = SignalWindow().add(at(n / 2, event="external") for n in range(FLOOD_MIN))
    assert outside.circuit == "outside:ann:vigil:t1"


def test_windows_are_bounded_and_of_one_owner() -> None:
    """C-4: a hundred signals each; who was quiet the longest is forgotten."""
    window = SignalWindow()
    errors = [at(n, "error.model") for n in range(ERRORS_MIN - 1)]
    window.add(errors)
    window.add(at(5, thread="other") for _ in range(WINDOW))
    assert "error_loop" not in [one.kind for one in window.add([at(6, "error.model")])]
    window = SignalWindow()
    window.add(errors)
    for number in range(OWNERS_MAX):
        stranger = at(5)
        window.add([Signal(**{f: getattr(stranger, f) for f in stranger.__struct_fields__}
                           | {"owner": f"u{number}"})])  # fmt: skip
    assert window.add([at(6, "error.model")]) == []


@given(st.lists(st.tuples(st.integers(0, 2000), st.booleans(), st.integers(0, 2)), max_size=150))
def test_a_pattern_is_what_it_says(drawn: list[tuple[int, bool, int]]) -> None:
    """C-4: whatever comes in whatever order, what is found is in the window."""
    window, signals = SignalWindow(), []
    for seconds, is_error, thread in drawn:
        signals.append(at(seconds, "error.event" if is_error else "turn.committed", f"t{thread}"))
        for found in window.add(signals[-1:]):
            counted = [
                s
                for s in signals[-WINDOW:]
                if s.session_key == found.session_key
                and s.at >= found.since
                and (found.kind == "flood" or s.kind == "error.event")
            ]
            assert len(counted) >= found.count
            assert found.count >= (FLOOD_MIN if found.kind == "flood" else ERRORS_MIN)


def test_how_long_branches_take_is_told_and_whether_that_changes() -> None:
    """C-5: of those that ended; one that is still at it counts when it ends."""
    latency = BranchTimes()
    assert latency.latency() is None
    for number in range(20):
        thread, took = f"_branch-{number}", 1.0 if number < 10 else 3.0
        latency.add([at(100.0 * number, "branch.started", thread)])
        latency.add([at(100.0 * number + took, "branch.completed", thread)])
    latency.add([at(5000, "branch.started", "_branch-x"), at(5000, "branch.failed", "_branch-y")])
    told = latency.latency()
    assert told is not None
    assert (told.count, told.p50_s, told.earlier_p50_s, told.trend) == (20, 3.0, 1.0, "slower")
