"""Turns that ask a person, and close what they asked (SPEC X-2).

Open requests are in `State.approvals`, each with a deadline of its own: the timer
``_approval-{id}``. A request leaves the state with its end, whatever that is; so no verdict can
count twice. Every change of it is put onto the board, which people read.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from vigil.contracts import Approval, ApprovalState

from ..draft import Draft

SHOWN_MAX: Final = 20
"""Requests that a conversation remembers to have told of."""
APPROVAL_TIMER: Final = "_approval-"
"""Begins the id of a request's deadline; the request's id follows."""


def open_approval(draft: Draft, approval: Approval) -> None:
    """Put a request to the person, until its deadline."""
    approval = replace(approval, generation=draft.ordinal)
    draft.set_deadline(f"{APPROVAL_TIMER}{approval.id}", approval.expires_at)
    draft.update(approvals={**draft.state.approvals, approval.id: approval})
    draft.change_board(approval)


def note_shown(draft: Draft, approval_id: str) -> None:
    """Note that the person was told here of a request with all of its arguments."""
    draft.update(shown=(*draft.state.shown, approval_id)[-SHOWN_MAX:])


def close_approval(
    draft: Draft, approval_id: str, state: ApprovalState, *, has_fired: bool = False, **changes: Any
) -> Approval | None:
    """End a request; unless its deadline fired, that is taken back."""
    approval = draft.state.approvals.get(approval_id)
    if approval is None:
        return None
    rest = {id_: other for id_, other in draft.state.approvals.items() if id_ != approval_id}
    draft.update(approvals=rest)
    if not has_fired:
        draft.cancel_deadline(f"{APPROVAL_TIMER}{approval_id}", approval.generation)
    closed = replace(approval, state=state, decided_at=draft.moment.now, **changes)
    draft.change_board(closed)
    return closed
