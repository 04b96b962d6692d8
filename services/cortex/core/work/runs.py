"""What a session that comes again is shown of those before it: runs of a row of the timetable that
remember (SPEC J-3), and cycles (FLOW F-13).

What they found is looked up by the core, before the model is asked, as calls of memory whose
results the model is shown; a cycle is shown the memories of since the one before, too. What outside
content had a part in is shown as an envelope, so that a run begins unswayed: who needs such a
finding calls memory itself, and is swayed by it (FLOW F-4). What a run says at its end is kept for
those after it (`findings`), and what else it came across (`cycles.extraction`). The row is in the
source, so a run knows of no other row, and its prompt need not know of any of this.
"""

from __future__ import annotations

from typing import Any

from vigil.contracts import (
    Cause,
    Control,
    OpenCall,
    ToolUseBlock,
)
from vigil.contracts.memories import IMPORTANCE
from vigil.memory.operations.list import list_memory

from ..draft import Draft
from ..tools import calls
from . import children


def begin(draft: Draft, cause: Cause, event: Control) -> None:
    """Begin a run; one that remembers looks first at what those before found."""
    children.begin(draft, cause, event)
    given = event.payload.start
    is_ours = draft.is_first and draft.state.loop is not None
    if is_ours and given is not None and given.slot is not None and given.slot.is_stateful:
        said = {"source": given.source, "types": [one for one in IMPORTANCE if one != "fact"]}
        kept = {"source": given.source, "types": ["fact"]}  # so many that no result had room else
        _look_back(draft, draft.policy.findings_shown, said, kept)


def begin_cycle(draft: Draft, cause: Cause, event: Control) -> None:
    """Begin a cycle; all but the first look at what those before found, and what was kept since."""
    children.begin(draft, cause, event)
    given = event.payload.start
    if draft.is_first and draft.state.loop is not None and given is not None and given.since:
        since = {"since": given.since.isoformat()}
        _look_back(draft, draft.policy.recalled_max, {"source": draft.policy.profile.source}, since)


def _look_back(draft: Draft, limit: int, *filters: dict[str, Any]) -> None:
    """Have the model begin with what memory has, once for each filter.

    Args:
        limit: memories of each; 0: it begins without.
    """
    if limit == 0:
        return
    uses = [
        ToolUseBlock(
            id=f"found_{draft.loop.cause.seq}" + (f"_{number}" if number else ""),
            name=list_memory.name,
            input={**filter_, "limit": limit},
        )
        for number, filter_ in enumerate(filters)
    ]
    draft.row("assistant", "agent", *uses)
    asked = (calls.call(draft, use, draft.sway, is_closed=True) for use in uses)
    waited = tuple(one for one in asked if isinstance(one, OpenCall))
    if waited:
        calls.wait(draft, waited)
    draft.outcome = "continued"
