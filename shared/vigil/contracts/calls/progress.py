"""How far a call of a tool is, as whoever runs it tells whoever watches."""

from __future__ import annotations

import math

import msgspec


class CallProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The newest state of one call, on `doing.>`; never stored, and shown to no model."""

    call_id: str
    """The effect's."""
    tool: str
    done: float
    """How much is done, out of `total`, or of nobody knows how much."""
    total: float | None = None
    text: str = ""
    """What its server says it is at: outside content."""
    is_over: bool = False
    """The call ended; nothing is to be shown of it any more."""


def amount_of(progress: CallProgress) -> str:
    """Return how far it is, in a word; empty: nobody knows.

    >>> amount_of(CallProgress(call_id="c", tool="t", done=3, total=8))
    '37 %'
    >>> amount_of(CallProgress(call_id="c", tool="t", done=3)), is_known(float("inf"), None)
    ('3', False)
    """
    if not progress.done and progress.total is None:
        return ""
    if progress.total is None or progress.total <= 0:
        return f"{progress.done:g}"
    return f"{math.floor(100 * min(max(progress.done / progress.total, 0.0), 1.0))} %"


def is_known(done: float, total: float | None) -> bool:
    """Whether these are numbers that say anything."""
    return math.isfinite(done) and (total is None or math.isfinite(total))
