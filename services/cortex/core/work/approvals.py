"""Calls that need a person's leave, and questions to a person (SPEC X-2).

A request holds for one call with exactly these arguments; a verdict names their digest, counts
once, and leaves nothing behind that could be used again. It ends by a verdict, by its deadline,
with what asked, or when what the person says makes it needless (`requests`, `spoken`).

A conversation never waits: the model is told that the person was asked, and what comes of it is an
event of its own (`detached`). Others wait, as for a call; the question is told to the session that
started it, until it comes to one with a person (`children`), or at home (`errands`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from vigil.contracts import (
    Approval,
    Cause,
    Control,
    Decision,
    Event,
    OpenCall,
    Risk,
    TimerFired,
    TimerPayload,
    ToolUseBlock,
    canonical,
)
from vigil.contracts.board import DECIDED
from vigil.contracts.tools import ServerAnswer, ServerQuestion
from vigil.subjects import SessionKey
from vigil.teams import may_act

from .. import gates, speech
from ..draft import Draft
from ..draft.kinds import starters
from ..draft.notifications import REQUEST
from ..pending import request_text, requests, tasks
from ..queue import stored_size
from ..sway import Sway
from ..tools import calls
from ..tools.calls import INPUT_BYTES_MAX
from ..tools.declaration import Answer, OwnCall, declared
from . import accepted, children, detached, errands, spoken
from .asked import elicitation

ASKED: Final = (
    "This needs the person's leave: {reason}. They were asked just now (request {id}). Don't call "
    "it again and don't wait: end your turn. You will be told what they decided as a message that "
    "begins with [Result]. It stays open whatever they write meanwhile; only a verdict on it lets "
    "it run."
)


# ---------------------------------------------------------------- asking


def ask(draft: Draft, use: ToolUseBlock, risk: Risk, reason: str) -> Answer:
    """Ask a person whether a call may be run.

    Returns what the loop waits for, or what to tell the model at once.
    """
    approval = _request(draft, use, risk, reason)
    refusal = _refusal(draft, approval)
    if refusal is not None:
        return f"It was not run, and the person was not asked: {refusal}.", True
    if requests.is_alone(draft):
        _open(draft, approval)
        return errands.notify_of_request(draft, approval), True
    if not draft.policy.profile.is_conversation:
        return _wait(draft, use, approval, request_text.request(approval))
    loop = draft.loop
    # A stranger may make it ask for thing after thing: one of them passes like the reminder does.
    is_ordered = draft.is_ordered and not (draft.sway.is_outside and loop.requests)
    text, is_whole = request_text.request(approval), request_text.is_whole(approval)
    asks = approval.id if is_whole else ""
    blocked = speech.say_for_loop(draft, text, is_ordered=is_ordered, asks=asks)
    if blocked is not None:
        return f"It was not run, and the person can't be asked now: {blocked.text}.", True
    draft.update_loop(sends=loop.sends + 1, requests=loop.requests + 1)
    _open(draft, approval)
    if is_whole and speech.is_said_now(draft, is_asked=loop.is_direct):
        requests.note_shown(draft, approval.id)
    return ASKED.format(reason=reason, id=approval.id), False


def propose(
    draft: Draft, use: ToolUseBlock, risk: Risk, reason: str, write: Callable[[Approval], str]
) -> str | None:
    """Ask at home about a call that no model made, in given words; return why that can't be."""
    approval = _request(draft, use, risk, reason)
    refusal = calls.obstacle(draft, use.name, use.input, risk) or _refusal(draft, approval)
    if refusal is None:
        _open(draft, approval)
        text = write(approval)
        draft.notify_home(REQUEST, text, title=use.name, is_ordered=False, sway=draft.sway)
    return refusal


def question(draft: Draft, use: ToolUseBlock) -> Answer:
    """Put a question of a session that is no conversation to the person; wait, if it is watched."""
    approval = _request(draft, use, "read", "it asks for an answer")
    refusal = calls.refusal(draft, use.input) or _refusal(draft, approval)
    if refusal is not None:
        return f"The person was not asked: {refusal}.", True
    if requests.is_alone(draft):
        _open(draft, approval)
        return errands.notify_of_question(draft, approval), False
    return _wait(draft, use, approval, request_text.question(approval))


def _request(draft: Draft, use: ToolUseBlock, risk: Risk, reason: str) -> Approval:
    digest = requests.digest_of(draft.key, use.name, given=use.input)
    # The effects of a session are counted through its life, so no other request has this id.
    name = canonical([draft.key, draft.ordinal, draft.state.effects, digest])
    loop, now = draft.loop, draft.moment.now
    return Approval(
        id=hashlib.sha256(name).hexdigest()[:32],
        session_key=draft.key,
        tool=use.name,
        input=use.input,
        digest=digest,
        risk=risk,
        reason=reason,
        asked_at=now,
        expires_at=now + timedelta(seconds=draft.policy.approval_expires_s),
        caused_by=loop.cause.id,
        is_tainted=draft.sway.is_outside,
        is_ordered=loop.is_direct or loop.is_ordered,
        is_lasting=True,
    )


def _refusal(draft: Draft, approval: Approval) -> str | None:
    """Return why the person can't be asked this, too."""
    if requests.holds_up(draft):
        return "a conversation waits for you; end with what you know and what you would call"
    others = draft.state.approvals.values()
    if any(other.digest == approval.digest for other in others):
        return "the same request is open already; end your turn and wait for the verdict"
    if requests.was_asked(draft, approval):
        return "they were asked for the same less than a day ago; go on without it, and say so"
    if len(others) >= draft.policy.approvals_max:
        return f"{len(others)} requests are open already"
    size = sum(stored_size(other.input) for other in others)
    if size + stored_size(approval.input) > INPUT_BYTES_MAX:
        return "the open requests hold too much already"
    return None


def _open(draft: Draft, approval: Approval) -> None:
    requests.open_approval(draft, approval)
    draft.note("approval_asked", f"{approval.tool}: {approval.reason}", approval.id)


def _wait(draft: Draft, use: ToolUseBlock, approval: Approval, text: str) -> OpenCall:
    _open(draft, approval)
    told = approval.id if request_text.is_whole(approval) else ""
    tasks.report_status(draft, "asking", text, draft.sway, approval_id=told)
    return OpenCall(effect_id=approval.id, tool_use_id=use.id, tool=use.name, service="person")


# ---------------------------------------------------------------- verdicts


def decide(draft: Draft, cause: Cause, event: Control) -> None:
    """Take in a person's verdict, if it fits an open request; else it changes nothing."""
    decision = event.payload.decision
    draft.cause = cause
    draft.ended.append(cause.id)
    if decision is None:
        draft.note("not_served", "an approval event without a decision")
        return
    approval = draft.state.approvals.get(decision.approval_id)
    claimed = requests.settled(draft.state, decision.approval_id)
    is_claimed = claimed is not None and claimed.order in (event.id, event.caused_by)
    if approval is None or (claimed is not None and not is_claimed):
        if is_claimed:
            draft.note("repeat", "an event with this id was folded before", event.id)
        else:
            spoken.notify_too_late(draft, decision.approval_id, decision.said_in)
        return
    if draft.moment.now >= approval.expires_at:
        _expire(draft, cause, event, approval, has_fired=False)
        if decision.said_in:
            spoken.notify_too_late(draft, approval.id, decision.said_in)
        return
    if (problem := _problem(draft, approval, decision)) is not None:
        draft.note("verdict_refused", problem, approval.id)
        requests.unclaim(draft, approval.id)
        if is_claimed or approval.wanted is not None or decision.said_in:
            spoken.tell_refused(draft, approval, problem, decision.said_in)
        return
    # A verdict is a word of the person's: cap and cooldown start anew.
    draft.update(counters=gates.reset(draft.state.counters))
    if not is_claimed:
        requests.claim(draft, decision, event.id)
    draft.note("approval_decided", f"{approval.tool}: {decision.verdict}", approval.id)
    draft.outcome = "decided"
    if approval.wanted is not None:
        _go_on(draft, approval, approval.wanted, decision)
    else:
        _settle(draft, cause, event, approval, decision)


def _settle(
    draft: Draft, cause: Cause, event: Control, approval: Approval, decision: Decision
) -> None:
    """Do what a verdict says."""
    if decision.verdict in ("accept", "edit") and approval.tool in declared():
        _carry_out(draft, cause, event, approval, decision)
    elif decision.verdict in ("accept", "edit") and approval.tool in starters():
        given = approval.input if decision.input is None else decision.input
        if _went_on(draft, approval):
            kind, prompt = children.wanted(approval.tool, given)
            errands.start(draft, approval, given, kind=kind, prompt=prompt)
        else:
            children.spawn_accepted(draft, approval, given)
        _close(draft, approval, decision, edited=decision.input)
    elif decision.verdict in ("accept", "edit") and _went_on(draft, approval):
        given = approval.input if decision.input is None else decision.input
        call_id = errands.start(draft, approval, given)
        _close(draft, approval, decision, edited=decision.input, call_id=call_id)
    elif decision.verdict in ("accept", "edit"):
        _run(draft, approval, decision)
    else:
        text = request_text.bounded(decision.text)
        is_taken_up = decision.verdict == "answer" and approval.is_question
        if is_taken_up and _went_on(draft, approval):
            errands.go_on(draft, approval, text)
        _close(draft, approval, decision, text=text)
        _report(draft, cause, event, approval)


def _go_on(draft: Draft, approval: Approval, wanted: ServerQuestion, decision: Decision) -> None:
    """Have a call go on with what the person said to its server."""
    answered = elicitation.answer_of(wanted, decision)
    if not _went_on(draft, approval):
        _run(draft, approval, decision, answered)
    elif decision.verdict == "reject":  # nobody waits to hear of it
        _close(draft, approval, decision, text=request_text.bounded(decision.text))
    else:
        call_id = errands.start(draft, approval, wanted.input, answered=answered)
        _close(draft, approval, decision, edited=decision.input, call_id=call_id)


def _went_on(draft: Draft, approval: Approval) -> bool:
    """Whether who asked has gone on without it, and has nobody to tell what comes of it."""
    waiting = calls.find(draft.state.loop, approval.id)
    return waiting is None and not draft.policy.profile.is_conversation


def _close(draft: Draft, approval: Approval, decision: Decision, **changes: Any) -> None:
    changes |= {"decided_by": decision.by, "decided_channel": decision.channel}
    requests.close_approval(draft, approval.id, DECIDED[decision.verdict], **changes)


def _problem(draft: Draft, approval: Approval, decision: Decision) -> str | None:
    """Return why the verdict doesn't count."""
    key = SessionKey.parse(draft.key)
    if not may_act(decision.by, key.user, key.agent, draft.policy.teams):
        return f"{decision.by!r} is not the person who was asked"
    if decision.digest != approval.digest:
        return "it is about other arguments"
    if approval.wanted is not None:
        return elicitation.obstacle(draft, approval, approval.wanted, decision)
    if decision.verdict in ("accept", "edit"):
        return _obstacle(draft, approval, decision)
    if decision.verdict == "answer" and not decision.text.strip():
        return "an answer needs a text"
    return None


def _obstacle(draft: Draft, approval: Approval, decision: Decision) -> str | None:
    """Return why the call can't be run, although it was accepted."""
    own = declared().get(approval.tool)
    if own is not None and own.leave is None:
        return "a question is answered or rejected"
    if (decision.verdict == "edit") != (decision.input is not None):
        return "arguments go with the verdict 'edit', and with no other"
    given = approval.input if decision.input is None else decision.input
    if stored_size(given) > INPUT_BYTES_MAX:
        return "the arguments are too large"
    if own is not None:
        return _own_obstacle(draft, approval, given)
    if approval.tool in starters():
        return children.obstacle(draft, approval.tool, given)
    return calls.obstacle(draft, approval.tool, given, approval.risk)


def _own_obstacle(draft: Draft, approval: Approval, given: dict[str, Any]) -> str | None:
    own = declared()[approval.tool]
    read = own.read(given)
    if isinstance(read, str):
        return f"the arguments don't fit the schema: {read}"
    return own.obstacle(read, _accepted(approval, given), draft)


def _accepted(approval: Approval, given: dict[str, Any]) -> OwnCall:
    """Return the call as the person's own word, whatever had a part in asking for it."""
    return OwnCall(
        use=ToolUseBlock(id=approval.id, name=approval.tool, input=given),
        sway=Sway.NONE,
        asked_at=approval.asked_at,
        is_accepted=True,
    )


def _carry_out(
    draft: Draft, cause: Cause, event: Control, approval: Approval, decision: Decision
) -> None:
    """Do at once what is the core's own, with exactly the arguments that the person saw or
    wrote."""
    given = approval.input if decision.input is None else decision.input
    own = declared()[approval.tool]
    own.function(own.read(given), _accepted(approval, given), draft)
    _close(draft, approval, decision, edited=decision.input)
    _report(draft, cause, event, approval)


def _run(
    draft: Draft, approval: Approval, decision: Decision, answered: ServerAnswer | None = None
) -> None:
    """Ask for the call, with exactly the arguments that the person saw or wrote; or for one that
    began to go on, with what they said to its server."""
    given = approval.input if decision.input is None else decision.input
    if approval.wanted is not None:
        given = approval.wanted.input

    def close(call_id: str) -> None:
        _close(draft, approval, decision, edited=decision.input, call_id=call_id)

    accepted.run(draft, approval, given, close, answered)


# ---------------------------------------------------------------- other ends


def is_ended_by(draft: Draft, payload: TimerPayload) -> Approval | None:
    """Return the request whose deadline this is, if it is open."""
    approval = draft.state.approvals.get(payload.timer_id.removeprefix(requests.APPROVAL_TIMER))
    if approval is None or not payload.timer_id.startswith(requests.APPROVAL_TIMER):
        return None
    return approval if payload.generation == approval.generation else None


def expire(draft: Draft, cause: Cause, event: TimerFired, approval: Approval) -> None:
    """End a request that nobody decided in time."""
    draft.ended.append(cause.id)
    _expire(draft, cause, event, approval, has_fired=True)


def _expire(
    draft: Draft, cause: Cause, event: Event, approval: Approval, *, has_fired: bool
) -> None:
    requests.close_approval(draft, approval.id, "expired", has_fired=has_fired)
    draft.note("approval_expired", f"{approval.tool}: nobody decided in time", approval.id)
    draft.outcome = "decided"
    _report(draft, cause, event, approval, is_late=True)


def drop(draft: Draft, payload: TimerPayload) -> bool:
    """Close the request of a deadline that is passed over; whether the open loop waited for it."""
    approval = is_ended_by(draft, payload)
    if approval is None:
        return False
    requests.close_approval(draft, approval.id, "expired", has_fired=True)
    return calls.find(draft.state.loop, approval.id) is not None


# ---------------------------------------------------------------- telling what came of it


def _report(
    draft: Draft, cause: Cause, event: Event, approval: Approval, *, is_late: bool = False
) -> None:
    """Tell the model how a request ended without a call."""
    waiting = calls.find(draft.state.loop, approval.id)
    if waiting is not None:
        content, is_error = request_text.outcome(event, is_late=is_late)
        calls.answer(draft, waiting, content, Sway.NONE, is_error=is_error)
        return
    if _went_on(draft, approval):
        if is_late:
            errands.notify_of_expiry(draft, approval)
        return
    title = request_text.title(approval.tool, approval.input)
    draft.ended.remove(cause.id)
    task = accepted.task_of(draft, approval, title)
    if is_late:
        # The person gave no word, and outside content orders nothing (SPEC S-7).
        is_ordered = approval.is_ordered and not approval.is_tainted
        task = msgspec.structs.replace(task, is_late=True, is_ordered=is_ordered)
    detached.settle(draft, cause, event, approval.id, task)
