"""From a turn of a branch or a worker to the signals that it gives. Pure, and the same each time.

What they think and say isn't copied, and their single turns aren't told: how they begin, go on and
end is. `subject` is the effect that started them, which leads to both ends of the story.
"""

from __future__ import annotations

from typing import Final

from vigil.contracts import Signal, SignalSource, Start, TellParent, Turn, decode_turn
from vigil.errors import InvalidInput
from vigil.subjects import Scope, SessionKey

from .making import Signals

KINDS_TOLD: Final = ("branch", "worker")
"""Kinds of sessions; a planner is told by the job that it is at."""
_TOLD: Final = {
    "running": ("status", "tells how it goes"),
    "asking": ("status", "waits for a person"),
    "done": ("completed", "is done"),
    "failed": ("failed", "failed"),
}
"""State that a parent is told -> (the second half of the kind, how the sentence ends)."""


def project(stream: str, seq: int, subject: str, data: bytes) -> list[Signal]:
    """Return the signals of a stored turn, in order; their ids are the same each time.

    Raises:
        InvalidInput: it's no turn of a session of the cortex, or can't be read.
    """
    named = SessionKey.of_subject(subject)
    key = SessionKey.of(named.user, named.agent, named.thread)
    if subject != key.turn or not key.is_system:
        raise InvalidInput("subject", f"{subject!r} gives no signals")
    signals = Signals(Scope(key.agent, key.user), SignalSource(stream=stream, seq=seq), str(key))
    turn = decode_turn(data)
    if key.kind in KINDS_TOLD and turn.state.start is not None:
        _turn(signals, key.kind, turn, turn.state.start)
    return signals.made


def _turn(signals: Signals, kind: str, turn: Turn, start: Start) -> None:
    name = f"A {kind}"
    if turn.ordinal == 1 and turn.outcome != "cancelled":
        _add(signals, f"{kind}.started", turn, start, f"{name} begins")
    told = [effect.payload for effect in turn.effects if isinstance(effect, TellParent)]
    for payload in told:
        half, words = _TOLD[payload.state]
        if half == "status" and kind != "worker":
            continue  # a branch has to end within a minute
        state = payload.state if half == "status" else None
        _add(signals, f"{kind}.{half}", turn, start, f"{name} {words}", state=state)
    is_told = any(payload.state in ("done", "failed") for payload in told)
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
