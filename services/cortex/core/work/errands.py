"""Calls that a person lets run after who asked has gone on: each is a session of its own (LOOPS
L-9).

Nobody waits in a session that belongs to no conversation: its model is told that the person was
asked, at home, and what they accept is run by an errand. That is given why it was asked for, the
call, and its result, and what it makes of it is told at home. A question that they answer is taken
up by a session of the kind that asked it, with what it was at and the answer.
"""

from __future__ import annotations

from collections.abc import Callable
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
from vigil.contracts.tools import ServerAnswer
from vigil.texts.glyphs import visible

from .. import loops
from .. import sway as sways
from ..draft import Draft, job_record
from ..draft.notifications import REQUEST
from ..pending import request_text, tasks
from ..tools import calls
from . import children

KIND: Final = "errand"
REASON_MAX: Final = 500
ASKED_AT_HOME: Final = (
    "It was not run: it needs the person's leave, since {reason}. They were asked just now "
    "(request {name}). Go on without it: if they accept it, it is run apart, and they are told."
)
QUESTION_AT_HOME: Final = (
    "Nobody watches this session, so nobody answers in it. The person was asked just now, where "
    "they are (request {name}). Go on without the answer as far as you can, and end with what you "
    "have and what is open. If they answer, a session like this one takes it up from there."
)
ANSWERED: Final = (
    "{prompt}\n\nThis was worked on before, without a person there, and one thing was asked:\n"
    "{question}\nThe person answered:\n{text}\nGo on from there. What needs no answer may be done "
    "already: look first, and do nothing twice."
)


def notify_of_request(draft: Draft, approval: Approval) -> str:
    """Ask where the person is; return what the model is told, which doesn't wait."""
    _ask_at_home(draft, approval, request_text.at_home)
    return ASKED_AT_HOME.format(reason=approval.reason, name=approval.name)


def notify_of_question(draft: Draft, approval: Approval) -> str:
    """Put a question where the person is; return what the model is told, which doesn't wait."""
    _ask_at_home(draft, approval, request_text.question_at_home)
    return QUESTION_AT_HOME.format(name=approval.name)


def _ask_at_home(draft: Draft, approval: Approval, write: Callable[..., str]) -> None:
    text = write(approval, is_quotable=_is_quotable(draft, approval))
    is_ordered = approval.is_ordered and not approval.is_tainted
    draft.notify_home(REQUEST, text, title=approval.tool, is_ordered=is_ordered)


def notify_of_expiry(draft: Draft, approval: Approval) -> None:
    """Let the next digest say that nobody decided in time."""
    text = request_text.expired(approval, is_quotable=_is_quotable(draft, approval))
    draft.notify_home("expired", text, urgency="low")


def _is_quotable(draft: Draft, approval: Approval) -> bool:
    return draft.is_for_one and not approval.is_tainted


def go_on(draft: Draft, approval: Approval, text: str) -> None:
    """Have what a session was at taken up again, now that the person answered what it asked."""
    begun = draft.state.start
    prompt = ANSWERED.format(
        prompt="" if begun is None else begun.prompt,
        question=visible(str(approval.input.get("question", ""))),
        text=text,
    )
    start(draft, approval, approval.input, kind=draft.policy.profile.name, prompt=prompt.strip())


def start(
    draft: Draft,
    approval: Approval,
    given: dict[str, Any],
    *,
    kind: str = KIND,
    prompt: str = "",
    answered: ServerAnswer | None = None,
) -> str:
    """Have an accepted call run apart; return the effect's id, of which the thread is made.

    Args:
        given: the arguments that the person saw or wrote.
        kind: of the session that runs it, or that the call starts.
        prompt: its task; empty: why the call was asked for.
        answered: what the person said to what the call's server wanted of them.
    """
    begun = draft.state.start
    return tasks.spawn_session(
        draft,
        SpawnSessionPayload(
            kind=kind,
            prompt=prompt or _why(draft, approval),
            caused_by=approval.caused_by,
            root_id=(begun.root_id if begun is not None else "") or approval.caused_by,
            depth=1 if begun is None else begun.depth + 1,
            is_ordered=approval.is_ordered and not approval.is_tainted,
            call=AcceptedCall(
                approval_id=approval.id,
                tool=approval.tool,
                input=given,
                risk=approval.risk,
                answered=answered,
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
            answered=call.answered,
        ),
        sways.of(given),
    )
    open_call = OpenCall(
        effect_id=effect_id, tool_use_id=use.id, tool=call.tool, service="executor"
    )
    calls.wait(draft, (open_call,), due_at)
    draft.outcome = "continued"


__all__ = [
    "KIND",
    "begin",
    "go_on",
    "notify_of_expiry",
    "notify_of_question",
    "notify_of_request",
    "start",
]
