"""What came from outside lately, for a person to read: no prompt is shown it (LOOPS L-18). Pure.

It's what others wrote, so each line of it stands behind a bar, and is short.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from vigil.memory.questions import MemoryView

SHOWN_FOR: Final = timedelta(hours=24)
SHOWN_MAX: Final = 30
LENGTH_MAX: Final = 240
"""Characters of one."""


def block(memories: Sequence[MemoryView]) -> str:
    """Return what is shown; empty: there is nothing.

    Args:
        memories: the newest first; those that may be trusted are left out.
    """
    there = [one for one in memories if one.is_tainted]
    lines = [f"| {_line(one)}" for one in there[:SHOWN_MAX]]
    if len(there) > SHOWN_MAX:
        lines.append(f"| … and {len(there) - SHOWN_MAX} more")
    return "\n".join(lines)


def _line(memory: MemoryView) -> str:
    at = memory.occurred_at or memory.created_at
    text = " ".join(f"{memory.source}: {memory.content}".split())
    cut = text if len(text) <= LENGTH_MAX else text[: LENGTH_MAX - 1] + "…"
    return f"{at:%Y-%m-%d %H:%M} UTC, {cut}"
