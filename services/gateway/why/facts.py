"""What a story keeps of a record. Pure.

A turn carries a session's whole state and every text in full; a story holds dozens of turns at
once. So a record is reduced as soon as it is decoded, and its bytes are let go.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from vigil.addressees import is_turn
from vigil.contracts import (
    Attempt,
    CallClaim,
    CallTool,
    CancelTimer,
    Cause,
    Control,
    ControlPayload,
    DeadLetter,
    DeadLetterEnd,
    Dispatch,
    Event,
    External,
    FollowUp,
    Instant,
    Note,
    Outcome,
    Receipt,
    Said,
    SaveMemory,
    ScheduleTimer,
    ScheduleTimerPayload,
    SendMessage,
    SendPayload,
    ToolResultBlock,
    ToolResultEvent,
    ToolUseBlock,
    Turn,
    UserMessage,
    decode_attempt,
    decode_call_claim,
    decode_dead_letter,
    decode_dead_letter_end,
    decode_dispatch,
    decode_event,
    decode_receipt,
    decode_said,
    decode_turn,
)
from vigil.contracts.codec import decode_past
from vigil.errors import InvalidInput
from vigil.layout import name_of
from vigil.subjects import ENDED

from .deeds import Deed, deeds_of
from .entries import KeptFact, of_past
from .text import clip

replace = msgspec.structs.replace
SESSION_STREAMS: Final = ("SESSIONS", "SYSTEM")
"""Where sessions are: conversations, and those of the cortex itself."""
PARTS_MAX: Final = 20
"""Notes, plans, sends and tool calls of one turn that a story tells, of each."""


class FollowUpPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A follow-up that a turn scheduled; `follow_up` None: its state isn't in that turn."""

    timer_id: str
    generation: int
    fire_at: datetime
    follow_up: FollowUp | None = None


class Send(msgspec.Struct, frozen=True, kw_only=True):
    """A message that a turn decided."""

    id: str
    payload: SendPayload


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model called, and what it was told if that was refused."""

    name: str
    refusal: str | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn asked another service to do: run a tool, or save something."""

    id: str
    tool: str
    """Empty: something to save, which no tool asked for."""
    text: str
    """The arguments, or what is to be saved."""
    is_accepted: bool = False
    """Whether a person had to accept it."""


class TurnFact(msgspec.Struct, frozen=True, kw_only=True):
    """A turn without its state and rows."""

    id: str
    ordinal: int
    event: Cause | None
    outcome: Outcome
    at: Instant
    ended: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    plans: tuple[FollowUpPlan, ...] = ()
    cancels: tuple[tuple[str, int], ...] = ()
    sends: tuple[Send, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    asked: tuple[Asked, ...] = ()
    deeds: tuple[Deed, ...] = ()
    folded: int = 0
    """Where the result is, or the deadline, that the turn took; 0: it took none."""
    model: str | None = None
    """The model that was asked, if one was."""
    tier: str = ""
    tier_reason: str = ""
    input_tokens: int = 0
    """What its calls took, the cached among them."""
    cached_tokens: int = 0
    output_tokens: int = 0
    last_send: str | None = None
    """The newest message that the session had decided by then."""
    retry_at: datetime | None = None
    """When a failed model call is tried again."""
    more: int = 0
    """How many parts are left out."""


class LetterFact(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter without the bytes that died."""

    id: str
    service: str
    seq: int
    cause: str
    at: Instant
    effect_id: str | None = None


class MissingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that is missing or can't be read. `what` says which, and why if that's known."""

    what: str


Body = (
    Event | TurnFact | Said | Receipt | Dispatch | Attempt | CallClaim | LetterFact | DeadLetterEnd
    | KeptFact | MissingRecord
)  # fmt: skip


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A record, and where it is in the log."""

    seq: int
    stream: str
    body: Body
    subject: str = ""
    traceparent: str | None = None


# ---------------------------------------------------------------- from bytes


def fact_of(
    stream: str, seq: int, subject: str, data: bytes, traceparent: str | None = None
) -> Fact:
    """Decode a record of a session, or of DEAD, by its subject.

    What can't be read is a `MissingRecord`.
    """
    try:
        body = _body(subject.split("."), data)
    except InvalidInput as error:
        body = MissingRecord(what=f"a record that can't be read: {clip(str(error))}")
    return Fact(seq=seq, stream=stream, subject=subject, body=body, traceparent=traceparent)


def _body(tokens: list[str], data: bytes) -> Body:
    if tokens[0] == "dead":
        return decode_dead_letter_end(data) if tokens[1] == ENDED else _letter(data)
    match tokens[4:6]:
        case ["in", _]:
            return _clipped(decode_event(data))
        case [kind] if is_turn(kind):
            return reduced(decode_turn(data))
        case ["out", "said"]:
            said = decode_said(data)
            return replace(said, text=clip(said.text))
        case [kind, _] if kind in _OTHERS:
            return _OTHERS[kind](data)
        case _:
            return MissingRecord(
                what=f"a record of a kind that isn't known here: {'.'.join(tokens[4:])}"
            )


_OTHERS: Final[dict[str, Callable[[bytes], Body]]] = {
    "receipt": decode_receipt,
    "send": decode_dispatch,
    "attempt": decode_attempt,
    "call": decode_call_claim,
    "past": lambda data: of_past(decode_past(data)),
}
_NOT_TOLD: Final = ("_call", "_pause", "_child", "_approval")
"""Names of deadlines that end no wait for a model: nobody asks when they are."""


def _letter(data: bytes) -> LetterFact:
    letter: DeadLetter = decode_dead_letter(data)
    return LetterFact(
        id=letter.id,
        service=letter.service,
        seq=letter.seq if name_of(letter.stream) in SESSION_STREAMS else 0,
        cause=clip(letter.cause),
        at=letter.at,
        effect_id=letter.effect_id,
    )


def _clipped(event: Event) -> Event:
    match event:
        case UserMessage():
            return replace(event, payload=replace(event.payload, text=clip(event.payload.text)))
        case External() | ToolResultEvent():
            text = clip(event.payload.content)
            return replace(event, payload=replace(event.payload, content=text))
        case Control(payload=payload):
            return replace(event, payload=_order(payload))
        case _:
            return event


def _order(payload: ControlPayload) -> ControlPayload:
    start, decision, status = payload.start, payload.decision, payload.status
    if start is not None:
        start = replace(start, prompt=clip(start.prompt), job=None)
    if decision is not None:
        decision = replace(decision, text=clip(decision.text))
    if status is not None:
        status = replace(status, text=clip(status.text))
    return replace(payload, start=start, decision=decision, status=status)


# ---------------------------------------------------------------- turns


def is_open(turn: Turn, timer_id: str, generation: int) -> bool:
    """Tell whether a follow-up of that generation is open after the turn."""
    follow_up = turn.state.follow_ups.get(timer_id)
    return follow_up is not None and follow_up.generation == generation


def reduced(turn: Turn) -> TurnFact:
    """Return what a story needs of a turn."""
    timers = [e.payload for e in turn.effects if isinstance(e, ScheduleTimer)]
    plans = [
        FollowUpPlan(
            timer_id=timer.timer_id,
            generation=timer.generation,
            fire_at=timer.fire_at,
            follow_up=_follow_up(turn, timer.timer_id, timer.generation),
        )
        for timer in timers
        if timer.kind == "follow_up"
    ]
    sends = [_send(e) for e in turn.effects if isinstance(e, SendMessage)]
    cancels = [e.payload for e in turn.effects if isinstance(e, CancelTimer)]
    calls, asked, deeds = _calls(turn), _asked(turn), deeds_of(turn)
    parts = (turn.notes, plans, sends, calls, asked, deeds, cancels)
    return TurnFact(
        id=turn.id,
        ordinal=turn.ordinal,
        event=turn.event,
        outcome=turn.outcome,
        at=turn.created_at,
        ended=turn.ended,
        notes=tuple(replace(n, text=clip(n.text)) for n in turn.notes[:PARTS_MAX]),
        plans=tuple(plans[:PARTS_MAX]),
        cancels=tuple((c.timer_id, c.generation) for c in cancels[:PARTS_MAX]),
        sends=tuple(sends[:PARTS_MAX]),
        calls=tuple(calls[:PARTS_MAX]),
        asked=tuple(asked[:PARTS_MAX]),
        deeds=tuple(deeds[:PARTS_MAX]),
        folded=turn.state.position if _takes_result(turn) else 0,
        **_spent(turn),
        last_send=turn.state.last_send,
        retry_at=next((t.fire_at for t in timers if _is_retry(t)), None),
        more=sum(max(len(part) - PARTS_MAX, 0) for part in parts),
    )


def _spent(turn: Turn) -> dict[str, Any]:
    if not turn.usage:
        return {}
    last, used = turn.usage[-1], turn.usage
    cached = sum(one.cache_read_tokens for one in used)
    return {
        "model": last.model,
        "tier": last.tier,
        "tier_reason": last.tier_reason,
        "input_tokens": cached + sum(one.input_tokens + one.cache_write_tokens for one in used),
        "cached_tokens": cached,
        "output_tokens": sum(one.output_tokens for one in used),
    }


def _is_retry(timer: ScheduleTimerPayload) -> bool:
    return timer.kind == "deadline" and timer.timer_id.partition("-")[0] not in _NOT_TOLD


def _follow_up(turn: Turn, timer_id: str, generation: int) -> FollowUp | None:
    if not is_open(turn, timer_id, generation):
        return None
    follow_up = turn.state.follow_ups[timer_id]
    message = None if follow_up.message is None else clip(follow_up.message)
    return replace(follow_up, reason=clip(follow_up.reason), message=message)


def _send(send: SendMessage) -> Send:
    return Send(id=send.id, payload=replace(send.payload, text=clip(send.payload.text)))


def _calls(turn: Turn) -> list[ToolCall]:
    blocks = [block for row in turn.rows for block in row.blocks]
    refusals = {
        block.tool_use_id: clip(block.content)
        for block in blocks
        if isinstance(block, ToolResultBlock) and block.is_error
    }
    return [
        ToolCall(name=clip(block.name, 64), refusal=refusals.get(block.id))
        for block in blocks
        if isinstance(block, ToolUseBlock)
    ]


def _asked(turn: Turn) -> list[Asked]:
    asked: list[Asked] = []
    for effect in turn.effects:
        if isinstance(effect, CallTool):
            text = clip(msgspec.json.encode(effect.payload.input).decode())
            tool, is_accepted = clip(effect.payload.tool, 64), bool(effect.payload.approval_id)
            asked.append(Asked(id=effect.id, tool=tool, text=text, is_accepted=is_accepted))
        elif isinstance(effect, SaveMemory):
            asked.append(Asked(id=effect.id, tool="", text=clip(effect.payload.content)))
    return asked


def _takes_result(turn: Turn) -> bool:
    """Tell whether a turn has the result of a call that an earlier one asked for."""
    blocks = [block for row in turn.rows for block in row.blocks]
    own = {block.id for block in blocks if isinstance(block, ToolUseBlock)}
    return any(isinstance(b, ToolResultBlock) and b.tool_use_id not in own for b in blocks)
