"""Turns that ask a person, and close what they asked (SPEC X-2).

Open requests are in `State.approvals`, each with a deadline of its own: the timer
``_approval-{id}``. A request leaves the state with its end, whatever that is; so no verdict can
count twice. Every change of it is put onto the board, which people read. What a person writes
beside it leaves it open: an answer to something else is no verdict.

What descends from a conversation may ask the person and wait: they see its question there. All
else (a job, a task's worker, a run, a cycle, the mind, and whatever those start, at any depth) is
told at once that they were asked, and goes on (ADR 26).
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any, Final

from msgspec.structs import replace

from vigil.contracts import (
    Approval,
    ApprovalState,
    Decision,
    Start,
    State,
    canonical,
)
from vigil.contracts.board import DECIDED, Settled
from vigil.subjects import SessionKey

from ..draft import Draft
from ..draft.kinds import profile_of
from ..draft.profile import Profile

SAME_AGAIN: Final = timedelta(hours=23)
"""For so long nobody is asked for the same call again by sessions that nobody watches, so that
what comes each half hour asks once a day."""
SETTLED_MAX: Final = 8
"""Ends of requests that a session remembers; older ones are on the board."""
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
    _settle(draft, closed)
    draft.change_board(closed)
    return closed


# ---------------------------------------------------------------- which verdict counts


def settled(state: State, approval_id: str) -> Settled | None:
    """Return what became of a request that was open here, or the verdict on it that is on its way;
    None: nothing is known of it any more, or nobody decided yet."""
    return next((one for one in state.settled if one.id == approval_id), None)


def claim(draft: Draft, decision: Decision, order: str) -> None:
    """Have that verdict be the one that counts, from this turn on: any other comes too late.

    Args:
        order: the event that holds it, or the effect that is to bring it.
    """
    one = Settled(
        id=decision.approval_id,
        state=DECIDED[decision.verdict],
        at=draft.moment.now,
        by=decision.by,
        channel=decision.channel,
        order=order,
    )
    _remember(draft, one)


def unclaim(draft: Draft, approval_id: str) -> None:
    """Let the next verdict count: the one that was to doesn't fit."""
    draft.update(settled=tuple(one for one in draft.state.settled if one.id != approval_id))


def _settle(draft: Draft, closed: Approval) -> None:
    claimed = settled(draft.state, closed.id)
    one = Settled(
        id=closed.id,
        state=closed.state,
        at=draft.moment.now,
        by=closed.decided_by,
        channel=closed.decided_channel,
        order="" if claimed is None else claimed.order,
    )
    _remember(draft, one)


def _remember(draft: Draft, one: Settled) -> None:
    """Keep it among the newest; those whose verdict is on its way aren't pushed out by others."""
    rest = [other for other in draft.state.settled if other.id != one.id]
    held = [other for other in rest if other.id in draft.state.approvals]
    ends = [other for other in rest if other.id not in draft.state.approvals]
    draft.update(settled=(*held, *ends[1 - SETTLED_MAX :], one))


def withdraw(draft: Draft, approval: Approval, why: str) -> None:
    """End a request that is needless by now."""
    close_approval(draft, approval.id, "superseded")
    draft.note("approval_superseded", f"{approval.tool}: {why}", approval.id)


def pass_by(draft: Draft) -> None:
    """End what was asked by older versions, which told the model that a message ends it."""
    for approval in draft.state.approvals.values():
        if not approval.is_lasting:
            withdraw(draft, approval, "the person wrote")


def take_back(draft: Draft, turn: int) -> None:
    """End what was asked after that turn: the message that it came of is taken back."""
    for approval in draft.state.approvals.values():
        if approval.generation > turn:
            withdraw(draft, approval, "the message that it came of was taken back")


def of_call(draft: Draft, tool: str, given: dict[str, Any]) -> Approval | None:
    """Return the open request for exactly this call."""
    digest = digest_of(draft.key, tool, given=given)
    return next((one for one in draft.state.approvals.values() if one.digest == digest), None)


def digest_of(*named: str, given: dict[str, Any]) -> str:
    """Return what tells one call from another: SHA-256 over what it is named by (its tool; before
    it the session, if only that session's is meant) and canonical arguments.

    >>> digest_of("k", "t", given={"a": 1, "b": 2}) == digest_of("k", "t", given={"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(canonical([*named, given])).hexdigest()


def was_asked(draft: Draft, approval: Approval) -> bool:
    """Whether the person was asked for the same lately, and isn't to be asked again: who asks is
    watched by nobody, or it is still open where they were asked."""
    was = digest_of(approval.tool, given=approval.input) in draft.moment.asked
    return was and (draft.policy.profile.is_conversation or is_alone(draft))


# ---------------------------------------------------------------- who is there to be asked


def is_alone(draft: Draft) -> bool:
    """Whether nobody watches this session: no conversation started it, or what it is below of."""
    return nobody_watches(SessionKey.parse(draft.key), draft.state.start, draft.policy.profile)


def nobody_watches(key: SessionKey, start: Start | None, profile: Profile) -> bool:
    """Whether nobody watches a session of that kind, by what it began with."""
    if profile.is_conversation:
        return False
    if start is None or not start.parent:
        return True
    first = start.root or SessionKey.parse(start.parent).thread
    return not profile_of(SessionKey(key.user, key.agent, first).kind).is_conversation


def holds_up(draft: Draft) -> bool:
    """Whether a conversation waits for this session: for a branch, or a worker of one. Nobody
    can be asked there: the person could say nothing else for as long as they don't decide."""
    start = draft.state.start
    waited_for = (draft.key, "" if start is None else start.parent)
    is_of_branch = any(key and is_waited_for(SessionKey.parse(key).kind) for key in waited_for)
    return is_of_branch and not is_alone(draft)


def is_waited_for(kind: str) -> bool:
    """Whether a conversation waits for sessions of that kind."""
    starter = profile_of(kind).starter
    return starter is not None and starter.is_awaited
