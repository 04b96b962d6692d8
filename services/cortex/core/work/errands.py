"""Calls that a person lets run after who asked has gone on: each is a session of its own (LOOPS
L-9).

Nobody waits in a session that belongs to no conversation: its model is told that the person was
asked, at home, and what they accept is run by an errand. That is given why it was asked for, the
call, and its result, and what it makes of it is told at home.
"""

from __future__ import annotations

from typing import Any, Final

from vigil.contracts import (
    AcceptedCall,
    Approval,
    CallToolPayload,
    Cause,
    Control,
    OpenCall,
    SpawnSessionPayload,
    Start,
    ToolResultBlock,
    ToolUseBlock,
)
from vigil.glyphs import visible

from .. import loops
from .. import sway as sways
from ..draft import Draft
from ..told import REQUEST
from ..tools import calls
from . import children, job_record, request_text, tasks

KIND: Final = "errand"
REASON_MAX: Final = 500
ASKED_AT_HOME: Final = (
    "It was not run: it needs the person's leave, since {reason}. They were asked just now "
    "(request {name}). Go on without it: if they accept it, it is run apart, and they are told."
)


def is_alone(draft: Draft) -> bool:
    """Whether nobody watches this session: no conversation started it."""
    start = draft.state.start
    return not draft.policy.profile.is_conversation and (start is None or not start.parent)


def tell_request(draft: Draft, approval: Approval) -> str:
    """Ask where the person is; return what the model is told, which doesn't wait."""
    text = request_text.at_home(approval, is_quotable=_is_quotable(draft, approval))
    is_ordered = approval.is_ordered and not approval.is_tainted
    draft.tell_home(REQUEST, text, title=approval.tool, is_ordered=is_ordered)
    return ASKED_AT_HOME.format(reason=approval.reason, name=approval.name)


def tell_expired(draft: Draft, approval: Approval) -> None:
    """Let the next digest say that nobody decided in time."""
    text = request_text.expired(approval, is_quotable=_is_quotable(draft, approval))
    draft.tell_home("expired", text, urgency="low")


def _is_quotable(draft: Draft, approval: Approval) -> bool:
    return draft.is_for_one and not approval.is_tainted


def start(draft: Draft, approval: Approval, given: dict[str, Any]) -> str:
    """Have an accepted call run apart; return the effect's id, of which the thread is made.

    Args:
        given: the arguments that the person saw or wrote.
    """
    begun = draft.state.start
    return tasks.spawn_session(
        draft,
        SpawnSessionPayload(
            kind=KIND,
            prompt=_why(draft, approval),
            caused_by=approval.caused_by,
            root_id=(begun.root_id if begun is not None else "") or approval.caused_by,
            depth=1 if begun is None else begun.depth + 1,
            is_ordered=approval.is_ordered and not approval.is_tainted,
            call=AcceptedCall(
                approval_id=approval.id, tool=approval.tool, input=given, risk=approval.risk
            ),
        ),
        sways.of(approval),
    )


def _why(draft: Draft, approval: Approval) -> str:
    job = draft.state.job
    whose = "" if job is None else f" for the job {job_record.line(job.skill or job.goal)!r}"
    return (
        f"You asked for approval to call {visible(approval.tool)}{whose}; the reason: "
        f"{visible(approval.reason)[:REASON_MAX]}. The person accepted it."
    )


def begin(draft: Draft, cause: Cause, event: Control) -> None:
    """Begin with the accepted call; the model is asked when its result is there."""
    given = event.payload.start
    if given is not None and given.call is None:
        draft.note("not_served", "an errand without a call")
        draft.ended.append(cause.id)
        return
    children.begin(draft, cause, event)
    if draft.is_first and given is not None and given.call is not None:
        _run(draft, given, given.call)


def _run(draft: Draft, given: Start, call: AcceptedCall) -> None:
    use = ToolUseBlock(id=call.approval_id, name=call.tool, input=call.input)
    draft.row("assistant", "agent", use)
    problem = calls.obstacle(draft, call.tool, call.input, call.risk)
    if problem is not None:
        draft.row(
            "user",
            "tool",
            ToolResultBlock(
                tool_use_id=use.id, content=f"It was not run: {problem}.", is_error=True
            ),
        )
        return
    due_at = calls.due_at(draft, draft.moment.tools[call.tool])
    effect_id = loops.call_tool(
        draft,
        CallToolPayload(
            service="executor",
            tool=call.tool,
            input=call.input,
            caused_by=draft.loop.cause.id,
            due_at=due_at,
            risk=call.risk,
            approval_id=call.approval_id,
        ),
        sways.of(given),
    )
    open_call = OpenCall(
        effect_id=effect_id, tool_use_id=use.id, tool=call.tool, service="executor"
    )
    calls.wait(draft, (open_call,), due_at)
    draft.outcome = "continued"


__all__ = ["KIND", "begin", "is_alone", "start", "tell_expired", "tell_request"]
