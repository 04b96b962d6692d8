"""A call that a person let run, or go on, from where it was asked for (SPEC X-2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from vigil.contracts import Approval, CallToolPayload, OpenCall, Task
from vigil.contracts.tools import ServerAnswer

from .. import loops
from .. import sway as sways
from ..draft import Draft
from ..pending import request_text
from ..tools import calls
from . import detached


def run(
    draft: Draft,
    approval: Approval,
    given: dict[str, Any],
    close: Callable[[str], None],
    answered: ServerAnswer | None = None,
) -> None:
    """Ask for the call; who asked waits for it, or is told what comes of it.

    Args:
        close: closes the request, with the effect's id.
    """
    due_at = calls.due_at(draft, draft.moment.tools[approval.tool])
    call_id = loops.call_tool(
        draft,
        CallToolPayload(
            service="executor",
            tool=approval.tool,
            input=given,
            caused_by=approval.caused_by,
            due_at=due_at,
            risk=approval.risk,
            approval_id=approval.id,
            answered=answered,
        ),
        sways.of(approval),
    )
    close(call_id)
    waiting = calls.find(draft.state.loop, approval.id)
    if waiting is not None:
        running = OpenCall(
            effect_id=call_id,
            tool_use_id=waiting.tool_use_id,
            tool=approval.tool,
            service="executor",
        )
        calls.exchange(draft, waiting, running, due_at)
    else:
        task = task_of(draft, approval, title=request_text.title(approval.tool, given))
        detached.open(draft, call_id, replace(task, due_at=due_at))


def task_of(draft: Draft, approval: Approval, title: str) -> Task:
    """Return the task of what comes of a request that no loop waits for."""
    return Task(
        tool=approval.tool,
        title=title,
        due_at=draft.moment.now,
        generation=draft.ordinal,
        is_ordered=approval.is_ordered,
        is_tainted=sways.of(approval).is_outside,
        caused_by=approval.caused_by,
    )
