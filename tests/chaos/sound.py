"""A small sound log, written by hand, for the tests of the checker to break."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.chaos.checker import Rules
from tests.chaos.history import Histories
from vigil.bus.bus import Message
from vigil.contracts import (
    Approval,
    ApprovalState,
    BoardChange,
    BoardChangePayload,
    CancelTimer,
    CancelTimerPayload,
    Dispatch,
    External,
    ExternalBlock,
    ExternalPayload,
    FollowUp,
    Receipt,
    ReceiptOutcome,
    Row,
    Said,
    ScheduleTimer,
    ScheduleTimerPayload,
    SendMessage,
    SendPayload,
    State,
    TimerFired,
    TimerPayload,
    Turn,
    UserMessage,
    UserMessagePayload,
    encode,
)
from vigil.subjects import SessionKey

KEY: Final = SessionKey.parse("ann:vigil:t1")
AT: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
RULES: Final = Rules(
    max_consecutive=2, cooldown_ms=1000, ordered_per_hour=1, ended_at=AT + timedelta(hours=1)
)
Script = dict[int, tuple[str, Any]]
"""Sequence -> (subject, record)."""


def at(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def person(event_id: str) -> tuple[str, UserMessage]:
    payload = UserMessagePayload(text=event_id, is_keyed=True)
    return KEY.in_user, UserMessage(
        id=event_id, session_key=str(KEY), created_at=AT, payload=payload
    )


def outside(event_id: str) -> tuple[str, External]:
    payload = ExternalPayload(source="hook:ci", content="red")
    return KEY.in_event("external"), External(
        id=event_id, session_key=str(KEY), created_at=AT, payload=payload
    )


def row_of(event_id: str) -> Row:
    block = ExternalBlock(event_id=event_id, event=ExternalPayload(source="hook:ci", content="red"))
    return Row(role="user", blocks=(block,), at=AT, source="external")


def timer(timer_id: str, generation: int, due_s: float) -> tuple[str, TimerFired]:
    payload = TimerPayload(timer_id=timer_id, generation=generation, fire_at=at(due_s))
    event = TimerFired(
        id=f"{timer_id}-{generation}", session_key=str(KEY), created_at=at(due_s), payload=payload
    )
    return KEY.in_event("timer"), event


def send(
    effect_id: str, cause: str, fence: int, previous: str | None, *, is_autonomous: bool = False
) -> SendMessage:
    payload = SendPayload(
        text=effect_id,
        caused_by=cause,
        fence=fence,
        previous=previous,
        is_autonomous=is_autonomous,
        is_voidable=is_autonomous,
    )
    return SendMessage(id=effect_id, ordinal=0, payload=payload)


def schedule(timer_id: str, generation: int, due_s: float) -> ScheduleTimer:
    payload = ScheduleTimerPayload(timer_id=timer_id, generation=generation, fire_at=at(due_s))
    return ScheduleTimer(id=f"s-{timer_id}-{generation}", ordinal=0, payload=payload)


def cancel(timer_id: str, generation: int) -> CancelTimer:
    payload = CancelTimerPayload(timer_id=timer_id, generation=generation)
    return CancelTimer(id=f"c-{timer_id}-{generation}", ordinal=0, payload=payload)


def asks(approval_id: str, cause: str, state: ApprovalState = "open") -> BoardChange:
    """The board's copy of a request for the person's leave."""
    approval = Approval(
        id=approval_id, session_key=str(KEY), tool="schedule_followup", input={}, digest="",
        risk="write", reason="outside", asked_at=AT, expires_at=at(600), caused_by=cause,
        state=state,
    )  # fmt: skip
    return BoardChange(
        id=f"b-{approval_id}-{state}", ordinal=0, payload=BoardChangePayload(entity=approval)
    )


def turn(
    ordinal: int,
    position: int,
    *effects: SendMessage | ScheduleTimer | CancelTimer | BoardChange,
    at_s: float,
    ended: tuple[str, ...] = (),
    **state: Any,
) -> tuple[str, Turn]:
    open_ = {n: FollowUp(generation=g, fire_at=at(s)) for n, g, s in state.pop("open", ())}
    record = Turn(
        id=f"t{ordinal}",
        session_key=str(KEY),
        ordinal=ordinal,
        event=None,
        outcome="answered",
        state=State(position=position, turns=ordinal, follow_ups=open_, **state),
        created_at=at(at_s),
        effects=effects,
        ended=ended,
    )
    return KEY.turn, record


def said(effect_id: str, text: str = "") -> tuple[str, Said]:
    record = Said(
        id=effect_id, session_key=str(KEY), text=text or effect_id, at=AT, caused_by="",
        turn_seq=0,
    )  # fmt: skip
    return KEY.out_said(effect_id), record


def receipt(effect_id: str, outcome: ReceiptOutcome = "void") -> tuple[str, Receipt]:
    record = Receipt(effect_id=effect_id, session_key=str(KEY), outcome=outcome, at=AT)
    return KEY.receipt(effect_id), record


def order(effect_id: str) -> tuple[str, Dispatch]:
    record = Dispatch(effect_id=effect_id, session_key=str(KEY), channel="ops", said_seq=150, at=AT)
    return KEY.send(effect_id), record


def sound() -> Script:
    """A person asks twice; one follow-up is said, one is void, one is cancelled by the fold."""
    return {
        10: person("m1"),
        20: turn(
            1, 10, schedule("a", 1, 5), schedule("b", 1, 9), send("e1", "m1", 10, None),
            at_s=0, ended=("m1",), open=[("a", 1, 5), ("b", 1, 9)],
        ),
        30: said("e1"),
        40: timer("a", 1, 5),
        50: turn(
            2, 40, send("e2", "a-1", 10, "e1", is_autonomous=True),
            at_s=5, ended=("a-1",), open=[("b", 1, 9)],
        ),
        60: said("e2"),
        70: timer("b", 1, 9),
        80: turn(
            3, 70, send("e3", "b-1", 10, "e2", is_autonomous=True), at_s=9, ended=("b-1",)
        ),
        90: person("m2"),
        100: receipt("e3"),
        110: turn(
            4, 90, schedule("c", 4, 60), send("e4", "m2", 90, "e3"),
            at_s=10, ended=("m2",), open=[("c", 4, 60)],
        ),
        120: said("e4"),
        130: person("m3"),
        140: turn(5, 130, cancel("c", 4), send("e5", "m3", 130, "e4"), at_s=11, ended=("m3",)),
        150: said("e5"),
    }  # fmt: skip


def histories(script: Script) -> Histories:
    return Histories(
        Message(subject, record if isinstance(record, bytes) else encode(record), {}, seq)
        for seq, (subject, record) in sorted(script.items())
    )
