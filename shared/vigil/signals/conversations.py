"""From a record of SESSIONS to the signals that it gives. Pure, and the same each time.

What people and agents say isn't copied: a signal tells that something was said, and `subject`
leads to it. So signals may be watched, kept and counted without being a second transcript.
"""

from __future__ import annotations

from ..addressees import is_turn
from ..contracts import (
    Note,
    Receipt,
    Said,
    SaveMemory,
    ScheduleTimer,
    SignalSource,
    TimerBlock,
    Turn,
    decode_receipt,
    decode_said,
    decode_turn,
)
from ..contracts.notes import note_words
from ..contracts.vocabulary import EVENTS, OUTCOMES, RECEIPTS
from ..errors import InvalidInput
from ..subjects import SessionKey
from .draft import Signals


def read(source: SignalSource, subject: str, data: bytes) -> tuple[Signals, Turn | Said | Receipt]:
    """Decode a record of a conversation, for the functions below to tell.

    Raises:
        InvalidInput: it's no turn, claim or receipt of a conversation, or can't be read.
    """
    _, agent, user, thread, *kind = subject.split(".")
    key = f"{user}:{agent}:{thread}"
    signals = Signals(SessionKey.parse(key).scope, source, key)
    match kind:
        case [one] if is_turn(one):
            return signals, decode_turn(data)
        case ["out", "said", _]:
            return signals, decode_said(data)
        case ["receipt", _]:
            return signals, decode_receipt(data)
        case _:
            raise InvalidInput("subject", f"{subject!r} gives no signals")


# ---------------------------------------------------------------- turns


def _event(turn: Turn) -> str | None:
    return None if turn.event is None else turn.event.id


def started(signals: Signals, turn: Turn) -> None:
    """Tell the first turn of a session."""
    if turn.ordinal == 1:
        event, text = _event(turn), "The session begins"
        signals.add("session.started", turn.created_at, text, caused_by=event, subject=event)


def compacted(signals: Signals, turn: Turn) -> None:
    """Tell that the oldest part gave way."""
    if turn.outcome != "compacted":
        return
    event = _event(turn)
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


def committed(signals: Signals, turn: Turn) -> None:
    """Tell every turn."""
    event = _event(turn)
    kind = None if turn.event is None else turn.event.type
    because = "" if kind is None else f", because of {EVENTS[kind]}"
    tokens = sum(
        used.input_tokens + used.output_tokens + used.cache_read_tokens + used.cache_write_tokens
        for used in turn.usage
    )
    signals.add(
        "turn.committed",
        turn.created_at,
        f"Turn {turn.ordinal} {OUTCOMES[turn.outcome].signal}{because}",
        caused_by=event,
        subject=event,
        turn=turn.ordinal,
        outcome=turn.outcome,
        event=kind,
        model=turn.usage[-1].model if turn.usage else None,
        tokens=tokens if turn.usage else None,
    )


def fired(signals: Signals, turn: Turn) -> None:
    """Tell the follow-ups and reminders that were taken up."""
    for row in turn.rows:
        for block in row.blocks:
            if row.source == "timer" and isinstance(block, TimerBlock):
                _fired(signals, block, turn)


def _fired(signals: Signals, block: TimerBlock, turn: Turn) -> None:
    follow_up = block.follow_up
    signals.add(
        "timer.fired",
        turn.created_at,
        f"{_timer_name(keep=follow_up.keep)} came due",
        caused_by=_event(turn),
        subject=block.timer_id,
        generation=follow_up.generation,
        keep=follow_up.keep,
    )


def scheduled(signals: Signals, turn: Turn) -> None:
    """Tell the follow-ups and reminders that were planned, or put off."""
    for effect in turn.effects:
        if isinstance(effect, ScheduleTimer) and effect.payload.kind == "follow_up":
            _scheduled(signals, effect, turn)


def _scheduled(signals: Signals, effect: ScheduleTimer, turn: Turn) -> None:
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
        caused_by=_event(turn),
        subject=payload.timer_id,
        fire_at=payload.fire_at,
        generation=payload.generation,
        keep=keep,
    )


def _timer_name(*, keep: bool) -> str:
    return "A reminder" if keep else "A follow-up"


def noted(signals: Signals, turn: Turn) -> None:
    """Tell the notes that give signals of their own."""
    for note in turn.notes:
        _note(signals, note, turn)


def _note(signals: Signals, note: Note, turn: Turn) -> None:
    event = _event(turn)
    subject, at = note.subject or event, turn.created_at
    if note.code == "void" and (note.subject is None or note.subject in turn.ended):
        # It is about an event, and not about a plan of that name.
        text = f"What would have been said was dropped: {note.text}"
        signals.add("message.dropped", at, text, caused_by=event, subject=subject, outcome="void")
    elif (signal := note_words(note.code).signal) is not None:
        kind, begin = signal
        code = note.code.removeprefix("blocked_")
        signals.add(kind, at, f"{begin}: {note.text}", caused_by=event, subject=subject, code=code)


# ---------------------------------------------------------------- what was said, and became of it


def said(signals: Signals, said: Said) -> None:
    """Tell a message that is in the transcript."""
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


def delivered(signals: Signals, receipt: Receipt) -> None:
    """Tell how a message ended that its claim does not."""
    words = RECEIPTS[receipt.outcome]
    if not words.signal:
        return
    begin = words.signal_text
    signals.add(
        words.signal,
        receipt.at,
        f"{begin}: {receipt.reason}" if receipt.reason else begin,
        caused_by=None,
        subject=receipt.effect_id,
        outcome=receipt.outcome,
    )
