"""Runs of a row of the timetable that remember: each knows what those before found (SPEC J-3).

What they found is looked up by the core, before the model is asked, as a call of memory whose
result the model is shown. What outside content had a part in is shown as an envelope, so that a run
begins unswayed: who needs such a finding calls memory itself, and is swayed by it (FLOW F-4).
What a run says at its end is kept for those after it (`findings`). The row is in the source, so a
run knows of no other row, and its prompt need not know of any of this.
"""

from __future__ import annotations

from vigil.contracts import (
    Cause,
    Control,
    OpenCall,
    ToolUseBlock,
)
from vigil.memory.operations.list import list_memory

from ..draft import Draft
from ..tools import calls
from . import children


def begin(draft: Draft, cause: Cause, event: Control) -> None:
    """Begin a run; one that remembers looks first at what those before found."""
    children.begin(draft, cause, event)
    given = event.payload.start
    is_ours = draft.is_first and draft.state.loop is not None
    is_ours = is_ours and draft.policy.findings_shown > 0
    if is_ours and given is not None and given.slot is not None and given.slot.is_stateful:
        _look_back(draft, given.source)


def _look_back(draft: Draft, source: str) -> None:
    use = ToolUseBlock(
        id=f"found_{draft.loop.cause.seq}",
        name=list_memory.name,
        input={"source": source, "limit": draft.policy.findings_shown},
    )
    draft.row("assistant", "agent", use)
    asked = calls.call(draft, use, draft.sway, is_closed=True)
    if isinstance(asked, OpenCall):
        calls.wait(draft, (asked,))
    draft.outcome = "continued"
