"""From a record of SESSIONS to the signals that it gives. Pure, and the same each time.

What people and agents say isn't copied: a signal tells that something was said, and `subject`
leads to it. So signals may be watched, kept and counted without being a second transcript.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vigil.contracts import (
    Note,
    Outcome,
    Receipt,
    ReceiptOutcome,
    Said,
    SaveMemory,
    ScheduleTimer,
    Signal,
    SignalSource,
    TimerBlock,
    Turn,
    decode_receipt,
    decode_said,
    decode_turn,
)
from vigil.errors import InvalidInput
from vigil.subjects import Scope, SessionKey

from .making import Signals

OUTCOMES: Final[dict[Outcome, str]] = {
    "answered": "ended with an answer",
    "silent": "had nothing to say",
    "continued": "used tools and goes on",
    "queued": "noted what came in, to be taken up later",
    "begun": "began to think",
    "waiting": "waits to ask the model again",
    "blocked": "was refused by the gates",
    "held": "put a message off",
    "stopped": "was stopped",
    "failed": "was given up",
    "ignored": "had nothing to do",
    "cleared": "closed follow-ups",
    "taken_over": "is tried again after a crash",
    "saved": "decided what to remember",
    "compacted": "made room for what is to come",
    "cancelled": "was cancelled",
    "decided": "took in a person's verdict",
}
_EVENTS: Final = {
    "user_message": "a message of the person",
    "timer": "a timer",
    "tool_result": "a tool's result",
    "tick": "a tick",
    "external": "an outside event",
    "control": "an order",
}
_NOTES: Final = {
    "void": ("timer.voided", "A follow-up was dropped"),
    "cancelled": ("timer.cancelled", "A timer was cancelled"),
    "budget_exhausted": ("budget.exhausted", "No model was asked"),
    "model_failed": ("error.model", "No answer from a model"),
    "model_retry": ("error.retry", "No answer from a model yet"),
    "dead_letter": ("error.event", "An event could not be used"),
    "gave_up": ("error.event", "A step was given up"),
    "queue_full": ("error.event", "An event was dropped"),
}
"""Code of a note -> (kind, how its sentence begins). Codes that begin with ``blocked_`` are
`message.blocked`; the others give no signal of their own."""
_RECEIPTS: Final[dict[ReceiptOutcome, tuple[str, str]]] = {
    "sent": ("message.delivered", "A channel took the message"),
    "delivered": ("message.delivered", "A channel took the message"),
    "void": ("message.dropped", "The message was not said"),
    "dropped": ("message.dropped", "The message was not said"),
    "failed": ("message.failed", "The message was given up"),
    "ambiguous": ("message.ambiguous", "Nobody knows whether the message arrived"),
}
"""`said` gives none: the claim itself tells it."""


def project(stream: str, seq: int, subject: str, data: bytes) -> list[Signal]:
    """Return the signals of a stored record, in order; their ids are the same each time.

    Raises:
        InvalidInput: it's no turn, claim or receipt of a conversation, or can't be read.
    """
    named = SessionKey.of_subject(subject)
    key = SessionKey.of(named.user, named.agent, named.thread)
    tokens = subject.split(".")
    source = SignalSource(stream=stream, seq=seq)
    signals = Signals(Scope(key.agent, key.user), source, str(key))
    match tokens[4:]:
        case ["turn"]:
            _turn(signals, decode_turn(data))
        case ["out", "said", _]:
            _said(signals, decode_said(data))
        case ["receipt", _]:
            _receipt(signals, decode_receipt(data))
        case _:
            raise InvalidInput("subject", f"{subject!r} gives no signals")
    return signals.made


# ---------------------------------------------------------------- turns


def _turn(signals: Signals, turn: Turn) -> None:
    event = None if turn.event is None else turn.event.id
    at = turn.created_at
    if turn.ordinal == 1:
        text = "The session begins"
        signals.add("session.started", at, text, caused_by=event, subject=event)
    _committed(signals, turn, event)
    if turn.outcome == "compacted":
        _compacted(signals, turn, event)
    for row in turn.rows:
        for block in row.blocks:
            if row.source == "timer" and isinstance(block, TimerBlock):
                _fired(signals, block, at, event)
    for effect in turn.effects:
        if isinstance(effect, ScheduleTimer) and effect.payload.kind == "follow_up":
            _scheduled(signals, effect, turn, event)
    for note in turn.notes:
        _note(signals, note, turn, event)


def _compacted(signals: Signals, turn: Turn, event: str | None) -> None:
    is_read = any(note.code == "compacted" for note in turn.notes)
    signals.add(
        "compaction.triggered",
        turn.created_at,
        f"What was said long ago gave way{' to a summary' if is_read else ', unread'}",
        caused_by=event,
        subject=event,
        has_summary=is_read,
        saved=sum(isinstance(effect, SaveMemory) for effect in turn.effects),
    )


def _committed(signals: Signals, turn: Turn, event: str | None) -> None:
    kind = None if turn.event is None else turn.event.type
    because = "" if kind is None else f", because of {_EVENTS[kind]}"
    phrase = OUTCOMES.get(turn.outcome, turn.outcome)
    tokens = sum(
        used.input_tokens + used.output_tokens + used.cache_read_tokens + used.cache_write_tokens
        for used in turn.usage
    )
    signals.add(
        "turn.committed",
        turn.created_at,
        f"Turn {turn.ordinal} {phrase}{because}",
        caused_by=event,
        subject=event,
        turn=turn.ordinal,
        outcome=turn.outcome,
        event=kind,
        model=turn.usage[-1].model if turn.usage else None,
        tokens=tokens if turn.usage else None,
    )


def _fired(signals: Signals, block: TimerBlock, at: datetime, event: str | None) -> None:
    follow_up = block.follow_up
    signals.add(
        "timer.fired",
        at,
        f"{_timer_name(keep=follow_up.keep)} came due and was taken up",
        caused_by=event,
        subject=block.timer_id,
        generation=follow_up.generation,
        keep=follow_up.keep,
    )


def _scheduled(signals: Signals, effect: ScheduleTimer, turn: Turn, event: str | None) -> None:
    payload = effect.payload
    follow_up = turn.state.follow_ups.get(payload.timer_id)
    keep = follow_up is not None and follow_up.keep
    is_held = follow_up is not None and follow_up.held_from is not None
    when = payload.fire_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    verb = "was put off to" if is_held else "is planned for"
    signals.add(
        "timer.scheduled",
        turn.created_at,
        f"{_timer_name(keep=keep)} {verb} {when}",
        caused_by=event,
        subject=payload.timer_id,
        fire_at=payload.fire_at,
        generation=payload.generation,
        keep=keep,
    )


def _timer_name(*, keep: bool) -> str:
    return "A reminder" if keep else "A follow-up"


def _note(signals: Signals, note: Note, turn: Turn, event: str | None) -> None:
    subject, at = note.subject or event, turn.created_at
    code = note.code.removeprefix("blocked_")
    if code != note.code:
        text = f"The gates refused a message: {note.text}"
        signals.add("message.blocked", at, text, caused_by=event, subject=subject, code=code)
    elif note.code == "void" and (note.subject is None or note.subject in turn.ended):
        # It is about an event, and not about a plan of that name.
        text = f"What would have been said was dropped: {note.text}"
        signals.add("message.dropped", at, text, caused_by=event, subject=subject, outcome="void")
    elif note.code in _NOTES:
        kind, begin = _NOTES[note.code]
        text = f"{begin}: {note.text}"
        signals.add(kind, at, text, caused_by=event, subject=subject, code=note.code)


# ---------------------------------------------------------------- what was said, and became of it


def _said(signals: Signals, said: Said) -> None:
    signals.add(
        "message.sent",
        said.at,
        "The agent wrote by itself" if said.is_autonomous else "The agent answered",
        caused_by=said.caused_by or None,
        subject=said.id,
        channel=said.channel,
        tag=said.tag,
        is_autonomous=said.is_autonomous,
        is_tainted=said.is_tainted or None,
        length=len(said.text),
    )


def _receipt(signals: Signals, receipt: Receipt) -> None:
    if receipt.outcome not in _RECEIPTS:
        return
    kind, begin = _RECEIPTS[receipt.outcome]
    signals.add(
        kind,
        receipt.at,
        f"{begin}: {receipt.reason}" if receipt.reason else begin,
        caused_by=None,
        subject=receipt.effect_id,
        outcome=receipt.outcome,
    )
