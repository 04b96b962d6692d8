"""Which record lies at a subject, by the codec's names. Pure.

The one who writes knows it; who reads all that a home holds goes by this.
"""

from __future__ import annotations

from typing import Final

_AFTER_SESSION: Final = {
    "in": "event",
    "out": "said",
    "receipt": "receipt",
    "send": "dispatch",
    "attempt": "attempt",
    "call": "call_claim",
    "past": "past",
}
_BY_ROOT: Final = {
    "timer": "timer",
    "due": "timer",
    "signal": "signal",
    "memory": "memory",
    "board": "board",
    "slot": "slot",
    "mail": "mail",
}
_BY_BUCKET: Final = {"TOOLS": "shelf", "PINS": "pins"}


def record_at(subject: str) -> str | None:
    """Return the name of the record; None: it's no record with a version.

    >>> record_at("session.vigil.ann.t1.turn-sm"), record_at("dead.ended.vigil.ann.t1")
    ('turn', 'dead_letter_end')
    >>> record_at("upload.ann.0f.0")
    """
    root, *rest = subject.split(".")
    if root in ("session", "system") and len(rest) > 3:
        if len(rest) == 4 and rest[3].partition("-")[0] == "turn":
            return "turn"
        return _AFTER_SESSION.get(rest[3])
    if root == "dead" and rest:
        return "dead_letter_end" if rest[0] == "ended" else "dead_letter"
    if root == "$KV" and rest:
        return _BY_BUCKET.get(rest[0])
    return _BY_ROOT.get(root)
