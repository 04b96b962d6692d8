"""What a run of the timetable found, kept for those after it (SPEC J-3).

It is what the run said, marked if outside content had a part in it; no model is asked for it. What
else it came across a model is asked afterwards (`cycles.extraction`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from vigil.contracts import MemoryType, SaveMemoryPayload, SlotRun

from ..context.offers import cut
from ..draft import Draft
from ..sway import Sway

KEPT_BYTES_MAX: Final = 4 * 1024
KEPT: Final = timedelta(days=90)


def keep(draft: Draft, slot: SlotRun, text: str, sway: Sway) -> None:
    """Have memory keep what a run found, for those after it."""
    if slot.is_stateful:
        save(draft, text, sway)


def save(
    draft: Draft,
    text: str,
    sway: Sway,
    *,
    type_: MemoryType = "observation",
    importance: float | None = None,
) -> None:
    """Have memory keep a finding for a while."""
    found = cut(text.replace("\0", ""), KEPT_BYTES_MAX).strip()
    if not found:
        return
    payload = SaveMemoryPayload(
        content=found,
        type=type_,
        importance=importance,
        stability="volatile",
        expires_at=draft.moment.now + KEPT,
        thread=draft.key.rpartition(":")[2],
        occurred_at=draft.moment.now,
    )
    draft.save_memory(payload, sway)
