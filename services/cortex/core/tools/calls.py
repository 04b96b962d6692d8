"""Tool calls that other services run: asked for as effects, answered by events (SPEC S-12).

A loop waits for all calls of one model answer and asks the model again with the last result. Those
that services run have one deadline together; a session that was started, or a person that is asked,
has a deadline of its own. What comes for a call that isn't open any more changes nothing: a repeat,
a result after the deadline, or after the loop was closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from vigil.contracts import (
    RISKS,
    Approval,
    AttachmentBlock,
    Block,
    BoardChange,
    BoardChangePayload,
    CallTool,
    CallToolPayload,
    Cause,
    Loop,
    OpenCall,
    Risk,
    TimerPayload,
    Tool,
    ToolResultBlock,
    ToolResultEvent,
    ToolResultPayload,
    ToolUseBlock,
    Waiting,
)
from vigil.contracts.board import AskedEntity
from vigil.grants.rule import Standing
from vigil.texts import excerpt
from vigil.words.rule import FIELDS_MAX

from .. import loops
from .. import sway as sways
from ..allowance import lent
from ..draft import CALL_TIMER, SERVICES, Draft, sight
from ..pending import tasks
from ..queue import stored_size
from ..sway import Sway
from . import arguments, authority

INPUT_BYTES_MAX: Final = 64 * 1024
"""Arguments of the calls of one answer together, as stored: a turn holds them twice."""
ATTACH_FILE: Final = "attach_file"
"""The tool whose files go with what is said next."""
ATTACHED_MAX: Final = 10
NOT_ATTACHED: Final = f"not attached: {ATTACHED_MAX} files go with one message at most"
MARGIN_S: Final = 15.0
"""How much longer than its tool a session waits: for the queue before it and the way back."""
LAST_STEP: Final = "This was the last step for this message, so it was not run."
TOO_MUCH: Final = "That is too much for one answer; call again with less, or with the rest."


# ---------------------------------------------------------------- asking


def refusal(draft: Draft, given: dict[str, Any]) -> str | None:
    """Return why no call with these arguments may be asked for now; None: it may."""
    if draft.profile.asks_again and loops.steps_left(draft) < 1:
        return LAST_STEP
    if stored_size(given) > INPUT_BYTES_MAX - _spent(draft):
        return TOO_MUCH
    return None


def obstacle(draft: Draft, name: str, given: dict[str, Any], risk: Risk) -> str | None:
    """Return why a call that was accepted can't be run any more.

    Args:
        risk: what the tool could do when the person was asked.
    """
    tool = draft.moment.tools.get(name)
    if tool is None:
        return f"{name} is not offered any more"
    if RISKS.index(tool.risk) > RISKS.index(risk):
        return f"{name} is {tool.risk} now, and was {risk} when it was asked for"
    problem = arguments.problem(tool, given)
    return None if problem is None else f"the arguments don't fit the schema: {problem}"


def _spent(draft: Draft) -> int:
    """Return how many bytes of arguments this turn's effects hold already."""
    size = 0
    for effect in draft.effects:
        if isinstance(effect, CallTool):
            size += stored_size(effect.payload.input)
        elif isinstance(effect, BoardChange) and isinstance(effect.payload.entity, Approval):
            size += stored_size(effect.payload.entity.input)
        elif isinstance(effect, BoardChange) and isinstance(effect.payload.entity, AskedEntity):
            size += stored_size(effect.payload)
    return size


def may_not_change(draft: Draft) -> str | None:
    """Return why the open loop may change nothing on the board by itself; None: it may."""
    loop = draft.loop
    return authority.reason_to_ask(
        "write",
        Sway.NONE,
        is_ordered=loop.is_direct or loop.is_ordered,
        authority=draft.policy.authority,
    )


def ask_board(draft: Draft, use: ToolUseBlock, payload: BoardChangePayload) -> OpenCall:
    """Have something on the board made or changed, and wait for what comes of it."""
    effect_id = draft.ask_board(payload)
    return OpenCall(effect_id=effect_id, tool_use_id=use.id, tool=use.name, service="board")


def call(
    draft: Draft,
    use: ToolUseBlock,
    sway: Sway,
    tool: Tool | None = None,
    leave: Standing | None = None,
    *,
    is_named: bool = False,
    is_closed: bool = False,
) -> OpenCall:
    """Ask a service to run a call of the open loop: memory, or for `tool` the executor.

    Args:
        sway: what had a part in it.
        leave: the standing grant without which a person would be asked.
        is_named: whether the person named what it is about.
        is_closed: whether memory tells only envelopes of what outside content had a part in.
    """
    loop = draft.loop
    effect_id = loops.call_tool(
        draft,
        CallToolPayload(
            service="memory" if tool is None else "executor",
            tool=use.name,
            input=use.input,
            caused_by=loop.cause.id,
            due_at=due_at(draft, tool),
            is_closed=is_closed,
            is_named=is_named and sway.is_outside,
            risk="read" if tool is None else tool.risk,
            grant_id="" if leave is None else leave.grant.id,
            grant_revision=0 if leave is None else leave.revision,
            grant_row=draft.timetable_row if leave is not None and leave.grant.row else "",
            grant_goal=draft.goal if leave is not None and leave.grant.goal else "",
        ),
        sway,
    )
    return OpenCall(
        effect_id=effect_id,
        tool_use_id=use.id,
        tool=use.name,
        service="memory" if tool is None else "executor",
    )


def due_at(draft: Draft, tool: Tool | None) -> datetime:
    """Return when a call that is asked for now counts as lost."""
    return draft.moment.now + timedelta(seconds=_patience_s(draft, tool))


def _patience_s(draft: Draft, tool: Tool | None) -> float:
    return draft.policy.tool_timeout_s if tool is None else tool.timeout_s + MARGIN_S


def _own_due_at(draft: Draft, call: OpenCall) -> datetime:
    return draft.moment.now + timedelta(seconds=_waits_s(draft, call))


def _waits_s(draft: Draft, call: OpenCall) -> float:
    if call.service == "caller":
        return draft.policy.caller_timeout_s
    return _patience_s(draft, draft.moment.tools.get(call.tool))


def wait(draft: Draft, calls: Sequence[OpenCall], until: datetime | None = None) -> None:
    """Let the loop wait for these calls, besides those that it waits for already.

    Args:
        until: the deadline of the services' calls among them; None: the latest of theirs.
    """
    if not calls:
        return
    waiting = draft.loop.waiting
    before = () if waiting is None else waiting.calls
    due = {e.id: e.payload.due_at for e in draft.effects if isinstance(e, CallTool)}
    served = [call for call in calls if call.service in SERVICES]
    ends = [until or due.get(call.effect_id) or _own_due_at(draft, call) for call in served]
    if waiting is not None and waiting.generation:
        ends.append(waiting.due_at)
        if not served:
            draft.update_loop(waiting=replace(waiting, calls=(*before, *calls)))
            return
        draft.cancel_deadline(CALL_TIMER, waiting.generation)
    latest = max(ends, default=draft.moment.now)
    if ends:
        draft.set_deadline(CALL_TIMER, latest)
    generation = draft.ordinal if ends else 0
    draft.update_loop(
        waiting=Waiting(calls=(*before, *calls), generation=generation, due_at=latest)
    )


def stand_in(draft: Draft, call: OpenCall, asked: OpenCall) -> None:
    """Wait for a person, or for a session, in the place of a service's call; its deadline goes if
    it was the last of them."""
    waiting = draft.loop.waiting
    if waiting is None:
        raise AssertionError("nothing is waited for")
    open_ = tuple(asked if other is call else other for other in waiting.calls)
    generation = waiting.generation
    if generation and not any(other.service in SERVICES for other in open_):
        draft.cancel_deadline(CALL_TIMER, generation)
        generation = 0
    draft.update_loop(waiting=replace(waiting, calls=open_, generation=generation))
    go_on(draft)


def exchange(draft: Draft, before: OpenCall, after: OpenCall, until: datetime) -> None:
    """Wait for another call in the place of one: a person let it be run."""
    waiting = draft.loop.waiting
    if waiting is None:
        raise AssertionError("nothing is waited for")
    rest = tuple(call for call in waiting.calls if call is not before)
    draft.update_loop(waiting=replace(waiting, calls=rest))
    wait(draft, (after,), until)


# ---------------------------------------------------------------- answers


def find(loop: Loop | None, call_id: str) -> OpenCall | None:
    """Return the call with that effect id (or approval's id), if the loop waits for it."""
    waiting = None if loop is None else loop.waiting
    if waiting is None:
        return None
    return next((call for call in waiting.calls if call.effect_id == call_id), None)


def receive(draft: Draft, cause: Cause, event: ToolResultEvent) -> None:
    """Fold a result; the first one of a call counts, while its loop waits for it."""
    payload = event.payload
    call = find(draft.state.loop, payload.call_id)
    if call is None:
        text = "no call is open that this result could belong to"
        draft.note("late_result", text, payload.call_id)
        return
    draft.ended.append(cause.id)
    take_back(draft, payload)
    sway = sways.of(payload)
    content = bounded(payload.content, draft.policy.result_length_max)
    files: tuple[AttachmentBlock, ...] = ()
    is_error = payload.is_error
    if call.tool == ATTACH_FILE:  # it's for the person, who asked for it; no model looks at it
        attached = (*draft.loop.attached, *payload.attachments)
        if len(attached) <= ATTACHED_MAX:
            draft.update_loop(attached=attached)
        else:
            content, is_error = NOT_ATTACHED, True
    else:
        content, files = shown(draft, content, payload, sway)
    _keep_fields(draft, call, payload)
    _answer(draft, call, sway, _result(call, content, is_error=is_error), *files)


def take_back(draft: Draft, payload: ToolResultPayload) -> None:
    """Have what a session was lent and didn't use."""
    task = draft.state.tasks.get(payload.call_id)
    if task is not None and task.lent:
        kept = lent.kept_of(task.lent, payload.steps)
        draft.update_loop(lent=draft.loop.lent - task.lent + kept)


def _keep_fields(draft: Draft, call: OpenCall, payload: ToolResultPayload) -> None:
    """Know which values a server gave as whole fields: a call of its own tools may name them."""
    if not payload.fields:
        return
    server, kept = server_of(call.tool), draft.loop.fields
    fields = tuple(dict.fromkeys((*payload.fields, *kept.get(server, ()))))[:FIELDS_MAX]
    draft.update_loop(fields={server: fields} | {k: v for k, v in kept.items() if k != server})


def server_of(tool: str) -> str:
    """Return the MCP server that a tool is of, by its name; empty: it's one of ours."""
    return tool.partition("__")[0] if "__" in tool else ""


def shown(
    draft: Draft, content: str, payload: ToolResultPayload, sway: Sway
) -> tuple[str, tuple[AttachmentBlock, ...]]:
    """Return a result with the names of files that aren't shown with it, and those that are."""
    lines, files = sight.parted(payload.attachments, draft.policy.sight)
    blocks = (AttachmentBlock(file=file, is_trusted=not sway.is_outside) for file in files)
    return "\n".join((content, *lines)), tuple(blocks)


def answer(
    draft: Draft, call: OpenCall, content: str, sway: Sway, *, is_error: bool = False
) -> None:
    """Give the loop the result of a call that it waits for; with the last one it goes on."""
    content = bounded(content, draft.policy.result_length_max)
    _answer(draft, call, sway, _result(call, content, is_error=is_error))


def _answer(draft: Draft, call: OpenCall, sway: Sway, *blocks: Block) -> None:
    draft.row("user", "tool", *blocks)
    loops.take_in(draft, sway)
    # What a swayed call asked for may stand in what it tells, whoever tells it.
    draft.was_swayed = draft.was_swayed or draft.sway.is_outside
    _forget(draft, (call,))
    go_on(draft)


def _forget(draft: Draft, calls: Sequence[OpenCall]) -> None:
    """Wait for these calls no more; the deadline goes with the last that it is for."""
    waiting = draft.loop.waiting
    if waiting is None:
        raise AssertionError("nothing is waited for")
    for call in calls:
        tasks.close_task(draft, call.effect_id)
    rest = tuple(other for other in waiting.calls if other not in calls)
    generation = waiting.generation
    if generation and not any(other.service in SERVICES for other in rest):
        draft.cancel_deadline(CALL_TIMER, generation)
        generation = 0
    changed = replace(waiting, calls=rest, generation=generation)
    draft.update_loop(waiting=changed if rest else None)


def are_ended_by(loop: Loop | None, payload: TimerPayload) -> bool:
    """Whether that deadline is the one of the calls that the loop waits for."""
    if loop is None or loop.waiting is None or payload.timer_id != CALL_TIMER:
        return False
    return payload.generation == loop.waiting.generation != 0


def expire(draft: Draft, cause: Cause) -> None:
    """Give up the services' calls that are still open; the model is told, and goes on without."""
    waiting = draft.loop.waiting
    if waiting is None:
        raise AssertionError("nothing is waited for")
    lost = [call for call in waiting.calls if call.service in SERVICES]
    waited_s = max(_waits_s(draft, call) for call in lost)
    text = f"no answer within {waited_s:g} s"
    results = [_result(call, f"There was {text}.", is_error=True) for call in lost]
    draft.row("user", "tool", *results)
    tools = ", ".join(dict.fromkeys(call.tool for call in lost))
    draft.note("no_result", f"{tools} gave {text}")
    for call in lost:
        tasks.abandon(draft, call, "there was no answer in time")
    rest = tuple(call for call in waiting.calls if call not in lost)
    changed = replace(waiting, calls=rest, generation=0)
    draft.update_loop(waiting=changed if rest else None)
    draft.ended.append(cause.id)
    go_on(draft)


def bounded(content: str, length_max: int) -> str:
    """Cut a result to what the model is shown: its beginning and its end.

    >>> bounded("a" * 10, 4)
    'aa\\n[... 6 bytes left out ...]\\naa'
    """
    return excerpt.in_characters(content, length_max)


def _result(call: OpenCall, content: str, *, is_error: bool) -> Block:
    return ToolResultBlock(tool_use_id=call.tool_use_id, content=content, is_error=is_error)


def go_on(draft: Draft) -> None:
    """Continue the loop: its turns are about the event that began it."""
    draft.cause = draft.loop.cause
    draft.outcome = "continued"
