"""From a turn of a branch, a worker or a mind to the signals that it gives. Pure, and the same each
time.

What they think and say isn't copied, and their single turns aren't told: how they begin, go on and
end is. `subject` is the effect that started them, which leads to both ends of the story.
"""

from __future__ import annotations

from typing import Final

from ..contracts import SignalSource, Start, TellParent, TellPerson, Turn, decode_turn
from ..contracts.session_kinds import SESSION_KINDS
from ..errors import InvalidInput
from ..minds import KIND as MIND
from ..subjects import SessionKey
from .draft import Signals

_TOLD: Final = {
    "running": ("status", "reports progress"),
    "asking": ("status", "waits for a person"),
    "done": ("completed", "is done"),
    "failed": ("failed", "failed"),
}
"""State that a parent is told -> (the second half of the kind, how the sentence ends)."""


def read(source: SignalSource, subject: str, data: bytes) -> tuple[Signals, Turn]:
    """Decode a turn of a session of the cortex.

    Raises:
        InvalidInput: it's none, or can't be read.
    """
    named = SessionKey.of_subject(subject)
    key = SessionKey.of(named.user, named.agent, named.thread)
    if not key.is_turn(subject) or not key.is_system:
        raise InvalidInput("subject", f"{subject!r} gives no signals")
    return Signals(key.scope, source, str(key)), decode_turn(data)


def emit(signals: Signals, turn: Turn) -> None:
    """Tell how a branch or a worker begins, goes on and ends."""
    kind, start = SessionKey.parse(turn.session_key).kind, turn.state.start
    halves = SESSION_KINDS[kind].signals if kind in SESSION_KINDS else ()
    if not halves or start is None:
        return
    name = f"A {kind}"
    if turn.ordinal == 1 and turn.outcome != "cancelled":
        _add(signals, f"{kind}.started", turn, start, f"{name} begins")
    reports = [effect.payload for effect in turn.effects if isinstance(effect, TellParent)]
    for payload in reports:
        half, words = _TOLD[payload.state]
        if half not in halves:
            continue
        state = payload.state if half == "status" else None
        _add(signals, f"{kind}.{half}", turn, start, f"{name} {words}", state=state)
    is_told = any(payload.state in ("done", "failed") for payload in reports)
    if start.call is not None and not is_told and turn.state.loop is None:
        half = "completed" if turn.outcome in ("answered", "silent") else "failed"
        if any(isinstance(effect, TellPerson) for effect in turn.effects):
            _add(signals, f"{kind}.{half}", turn, start, f"{name} told the person its result")
            return
    if turn.outcome == "cancelled" and not is_told:
        _add(signals, f"{kind}.failed", turn, start, f"{name} was cancelled", state="cancelled")


def _add(
    signals: Signals, kind: str, turn: Turn, start: Start, text: str, *, state: str | None = None
) -> None:
    signals.add(
        kind,
        turn.created_at,
        text,
        caused_by=None if turn.event is None else turn.event.id,
        subject=start.call_id or None,
        parent=start.parent or None,
        depth=start.depth or None,
        state=state,
        is_tainted=start.is_tainted or None,
    )


_LOOKS: Final = {
    "look_decided": ("mind.decided", "A look decided"),
    "look_failed": ("mind.failed", "A look failed"),
}
"""Code of a note -> its signal, and how the sentence begins."""


def looked(signals: Signals, turn: Turn) -> None:
    """Tell what a look of the mind came to. What a model said isn't copied."""
    if SessionKey.parse(turn.session_key).kind != MIND:
        return
    codes = [note.code for note in turn.notes]
    for code, (kind, text) in _LOOKS.items():
        if code in codes:
            signals.add(
                kind,
                turn.created_at,
                text,
                caused_by=None if turn.event is None else turn.event.id,
                subject=None,
                decisions=codes.count(code) if code == "look_decided" else None,
                is_tainted=turn.is_swayed or None,
            )
