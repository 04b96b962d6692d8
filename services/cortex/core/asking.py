"""Turns that ask a person, and close what they asked (SPEC X-2).

Open requests are in `State.approvals`, each with a deadline of its own: the timer
``_approval-{id}``. A request leaves the state with its end, whatever that is; so no verdict can
count twice. Every change of it is put onto the board, which people read.
"""

from __future__ import annotations

from typing import Any, Final

from vigil.contracts import Approval, ApprovalState

from .collecting import Collecting, replace

APPROVAL_TIMER: Final = "_approval-"
"""Begins the id of a request's deadline; the request's id follows."""


class Asking(Collecting):
    """One turn in the making, by the rules of requests to a person."""

    def open_approval(self, approval: Approval) -> None:
        """Put a request to the person, until its deadline."""
        approval = replace(approval, generation=self.ordinal)
        self.set_deadline(f"{APPROVAL_TIMER}{approval.id}", approval.expires_at)
        self.update(approvals={**self.state.approvals, approval.id: approval})
        self.change_board(approval)

    def close_approval(
        self, approval_id: str, state: ApprovalState, *, has_fired: bool = False, **changes: Any
    ) -> Approval | None:
        """End a request; unless its deadline fired, that is taken back."""
        approval = self.state.approvals.get(approval_id)
        if approval is None:
            return None
        rest = {id_: other for id_, other in self.state.approvals.items() if id_ != approval_id}
        self.update(approvals=rest)
        if not has_fired:
            self.cancel_deadline(f"{APPROVAL_TIMER}{approval_id}", approval.generation)
        closed = replace(approval, state=state, decided_at=self.moment.now, **changes)
        self.change_board(closed)
        return closed
