"""What an MCP server wants of the person in the middle of a call: a request like any other (SPEC
X-2).

The call's result says it, in a field that no model is shown: it's a stranger's text, and is for the
person to read. They answer it where they are asked, by the form that the server sent, and the call
goes on with that, as a call of its own. Nobody else answers: neither the model, nor a default.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from vigil.contracts import (
    RISKS,
    Approval,
    Cause,
    ChildStatus,
    Decision,
    OpenCall,
    Tool,
    ToolResultEvent,
    canonical,
)
from vigil.contracts.tools import ServerAnswer, ServerQuestion

from ... import speech
from ... import sway as sways
from ...draft import Draft
from ...pending import request_text, requests, tasks
from ...queue import stored_size
from ...sway import Sway
from ...tools import calls
from ...tools.calls import INPUT_BYTES_MAX
from .. import detached, errands
from . import form_answer, sampled

REASON = "its server wants to know something of you before it goes on"
ASKED = (
    "Before it goes on, its server wants something of the person, who was asked just now (request "
    "{id}). Don't call it again and don't wait: end your turn. You will be told what came of the "
    "call as a message that begins with [Result]."
)
NOT_ASKED = (
    "Its server wants something of the person before it goes on, and they can't be asked: {why}."
)


def receive(draft: Draft, cause: Cause, event: ToolResultEvent) -> bool:
    """Fold a result that says what its server wants first; return whether it is one."""
    payload, state = event.payload, draft.state
    if payload.wanted is None:
        return False
    call, task = calls.find(state.loop, payload.call_id), state.tasks.get(payload.call_id)
    if payload.wanted.tokens_max:
        if call is not None:
            draft.ended.append(cause.id)
            sampled.ask(draft, call, event, payload.wanted)
        return call is not None
    if call is not None:
        loop = draft.loop
        approval = _request(
            draft,
            call.tool,
            payload.wanted,
            caused_by=loop.cause.id,
            is_ordered=loop.is_direct or loop.is_ordered,
            is_tainted=sways.of(payload).is_outside,
        )
        draft.ended.append(cause.id)
        _ask(draft, call, approval)
        return True
    is_apart = task is not None and not task.is_awaited and not task.told_seq
    if task is None or not is_apart or not draft.policy.profile.is_conversation:
        return False
    approval = _request(
        draft,
        task.tool,
        payload.wanted,
        caused_by=task.caused_by,
        is_ordered=task.is_ordered,
        is_tainted=sways.of(payload).is_outside,
    )
    if _refusal(draft, approval) is not None:
        return False  # what came says so, too
    tasks.close_task(draft, payload.call_id)
    _open(draft, approval)
    status = ChildStatus(
        call_id=payload.call_id,
        state="asking",
        text=request_text.request(approval),
        is_tainted=approval.is_tainted,
        approval_id=approval.id if request_text.is_whole(approval) else "",
    )
    detached.ask_for(draft, cause, task, status)
    if cause.id not in draft.ended:
        draft.ended.append(cause.id)
    return True


def _ask(draft: Draft, call: OpenCall, approval: Approval) -> None:
    """Ask the person, from the loop that waits for the call."""
    if (why := _refusal(draft, approval)) is not None:
        calls.answer(draft, call, NOT_ASKED.format(why=why), Sway.NONE, is_error=True)
        return
    if requests.is_alone(draft):
        _open(draft, approval)
        told = errands.notify_of_request(draft, approval)
        calls.answer(draft, call, told, Sway.NONE, is_error=True)
        return
    text, is_whole = request_text.request(approval), request_text.is_whole(approval)
    asks = approval.id if is_whole else ""
    if not draft.policy.profile.is_conversation:
        _open(draft, approval)
        tasks.report_status(draft, "asking", text, sways.of(approval), approval_id=asks)
        asked = OpenCall(
            effect_id=approval.id, tool_use_id=call.tool_use_id, tool=call.tool, service="person"
        )
        calls.stand_in(draft, call, asked)
        return
    loop = draft.loop
    blocked = speech.say(
        draft,
        text,
        sways.of(approval) | draft.sway,
        is_autonomous=not loop.is_direct,
        is_ordered=draft.is_ordered and not (draft.sway.is_outside and loop.requests),
        tag=loop.tag,
        fence=loop.fence,
        asks=asks,
    )
    if blocked is not None:
        calls.answer(draft, call, NOT_ASKED.format(why=blocked.text), Sway.NONE, is_error=True)
        return
    draft.update_loop(sends=loop.sends + 1, requests=loop.requests + 1)
    _open(draft, approval)
    if is_whole and speech.is_said_now(draft, is_asked=loop.is_direct):
        requests.note_shown(draft, approval.id)
    calls.answer(draft, call, ASKED.format(id=approval.id), Sway.NONE)


def _request(
    draft: Draft,
    tool: str,
    wanted: ServerQuestion,
    *,
    caused_by: str,
    is_ordered: bool,
    is_tainted: bool,
) -> Approval:
    told = {"server": calls.server_of(tool), "says": wanted.message}
    fields = wanted.form.get("properties")
    shown = (
        told
        | ({"open": wanted.url} if wanted.url else {})
        | ({"fill in": fields} if fields else {})
    )
    digest = requests.digest_of(draft.key, tool, given=shown)
    name = canonical([draft.key, draft.ordinal, draft.state.effects, digest, "wanted"])
    now: datetime = draft.moment.now
    offered = draft.moment.tools.get(tool)
    return Approval(
        id=hashlib.sha256(name).hexdigest()[:32],
        session_key=draft.key,
        tool=tool,
        input=shown,
        digest=digest,
        risk="destructive" if offered is None else offered.risk,
        reason=REASON,
        asked_at=now,
        expires_at=now + timedelta(seconds=draft.policy.approval_expires_s),
        caused_by=caused_by,
        is_tainted=is_tainted,
        is_ordered=is_ordered,
        is_lasting=True,
        wanted=wanted,
    )


def _open(draft: Draft, approval: Approval) -> None:
    requests.open_approval(draft, approval)
    draft.note("approval_asked", f"{approval.tool}: {approval.reason}", approval.id)


def _refusal(draft: Draft, approval: Approval) -> str | None:
    """Return why the person can't be asked this, too."""
    others = draft.state.approvals.values()
    if requests.holds_up(draft):
        return "a conversation waits for you"
    if len(others) >= draft.policy.approvals_max:
        return f"{len(others)} requests are open already"
    size = sum(stored_size(other.input) for other in others)
    if size + stored_size(approval.input) + stored_size(approval.wanted) > INPUT_BYTES_MAX:
        return "what it asks, or what is open, holds too much"
    return None


# ---------------------------------------------------------------- verdicts


def obstacle(
    draft: Draft, approval: Approval, wanted: ServerQuestion, decision: Decision
) -> str | None:
    """Return why a verdict can't be handed to the server."""
    if (decision.verdict == "edit") != (decision.input is not None):
        return "what is filled in goes with the verdict 'edit', and with no other"
    tool = draft.moment.tools.get(approval.tool)
    if tool is None:
        return f"{approval.tool} is not offered any more"
    if RISKS.index(tool.risk) > RISKS.index(approval.risk):
        return f"{approval.tool} is {tool.risk} now, and was {approval.risk} when it was asked for"
    return None if decision.verdict == "reject" else _misfit(wanted, decision, tool)


def _misfit(wanted: ServerQuestion, decision: Decision, tool: Tool) -> str | None:
    """Return why what the person filled in isn't what is wanted."""
    given = form_answer.filled(wanted, decision)
    if isinstance(given, str):
        return given
    if stored_size(given) > INPUT_BYTES_MAX:
        return "that is too large"
    problem = form_answer.problem(wanted, tool, given)
    return None if problem is None else f"that doesn't fit what is wanted: {problem}"


def answer_of(wanted: ServerQuestion, decision: Decision) -> ServerAnswer:
    """Return what the server is told of a verdict that nothing is in the way of."""
    given = {} if decision.verdict == "reject" else form_answer.filled(wanted, decision)
    return ServerAnswer(
        action="decline" if decision.verdict == "reject" else "accept",
        name=wanted.name,
        content=given if isinstance(given, dict) else {},
        state=wanted.state,
        answered=wanted.answered + 1,
    )
