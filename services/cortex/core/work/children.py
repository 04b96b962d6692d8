"""Sessions that start other sessions: a forked thought, or a worker with a task (SPEC C-1).

A branch is waited for, and so is a worker that no conversation started. A worker of a conversation
isn't: its result comes back as an event of its own (`detached`). Whoever has children under way has
a deadline for each, and a child tells its end once, however it ends; so nobody waits for ever.

The bounds need no coordination. Depth is counted down the tree; the width is what is under way in
one session; and how many sessions may descend from one event is an allowance that is handed down:
what a child is given is taken from what its parent has left. A worker has none, and lends steps of
its own (`allowance.lent`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, NamedTuple

import msgspec

from vigil.contracts import (
    Approval,
    Cause,
    ChildStatus,
    Control,
    OpenCall,
    SpawnSessionPayload,
    Start,
    Task,
    TimerFired,
    TimerPayload,
    ToolUseBlock,
)
from vigil.contracts.tools import AskedOfModel
from vigil.subjects import SessionKey

from .. import loops
from .. import sway as sways
from ..draft import INSTANT, Draft
from ..draft.kinds import profile_of, starters
from ..draft.policy import limited
from ..draft.profile import Profile, Starter
from ..pending import requests, tasks
from ..pending.tasks import CHILD_TIMER, lost, shortened
from ..sway import Sway
from ..tools import calls
from ..tools.declaration import Answer
from . import detached, handed, jobs
from .handed import under_way
from .loop_end import end_loop

TITLE_LENGTH_MAX: Final = 100
SAMPLER: Final = "sampler"
"""The kind of sessions that answer MCP servers."""
STARTED: Final = (
    "It has begun, beside this conversation. Its result comes to you by itself, as a "
    "message that begins with [Result]. Don't wait for it: tell the person that you are at it."
)


# ---------------------------------------------------------------- starting one


def spawn(draft: Draft, call: ToolUseBlock, sway: Sway) -> Answer:
    """Start what the model asks for, if there may be one more.

    Args:
        sway: what had a part in its task.

    Returns what the loop waits for, or what to tell the model at once.
    """
    kind, starter = _kind_of(call.name)
    problem = obstacle(draft, call.name, call.input)
    is_awaited = starter.is_awaited or not draft.policy.profile.hears_ends
    if problem is None and is_awaited and draft.profile.asks_again and loops.steps_left(draft) < 1:
        problem = calls.LAST_STEP
    if problem is not None:
        return problem, True
    origin = _origin(draft, sway)
    effect_id = _begin(
        draft, kind, call.name, _prompt(starter, call.input), origin, is_awaited=is_awaited
    )
    if not is_awaited:
        return STARTED, False
    return OpenCall(effect_id=effect_id, tool_use_id=call.id, tool=call.name, service="session")


def spawn_accepted(draft: Draft, approval: Approval, given: dict[str, Any]) -> None:
    """Start what the person let the model start; who waited for the verdict waits for the end."""
    kind, starter = _kind_of(approval.tool)
    waiting = calls.find(draft.state.loop, approval.id)
    origin = Origin(
        caused_by=approval.caused_by,
        root_id=approval.caused_by if waiting is None else _root_id(draft),
        is_ordered=approval.is_ordered and not approval.is_tainted,
        sway=sways.of(approval),
    )
    is_waiting = waiting is not None
    effect_id = _begin(
        draft,
        kind,
        approval.tool,
        _prompt(starter, given),
        origin,
        is_awaited=is_waiting,
        is_counted=is_waiting,
    )
    if waiting is not None:
        started = OpenCall(
            effect_id=effect_id,
            tool_use_id=waiting.tool_use_id,
            tool=approval.tool,
            service="session",
        )
        calls.exchange(draft, waiting, started, draft.moment.now)


def answer_server(draft: Draft, tool: str, asked: AskedOfModel, sway: Sway) -> str:
    """Have a model answer what the server of a call wants; return the effect's id."""
    text, origin = asked.question.message, _origin(draft, sway)
    return _begin(draft, profile_of(SAMPLER), tool, text, origin, is_awaited=True, asked=asked)


def wanted(tool: str, given: dict[str, Any]) -> tuple[str, str]:
    """Return the kind of session that such a call starts, and with which task."""
    kind, starter = _kind_of(tool)
    return kind.name, _prompt(starter, given)


def _kind_of(tool: str) -> tuple[Profile, Starter]:
    kind = starters()[tool]
    if kind.starter is None:
        raise AssertionError(f"{tool} starts nothing")
    return kind, kind.starter


def _prompt(starter: Starter, given: dict[str, Any]) -> str:
    arguments: Any = msgspec.convert(given, starter.arguments)
    prompt: str = getattr(arguments, arguments.__struct_fields__[0])
    return prompt


def obstacle(draft: Draft, tool: str, given: dict[str, Any]) -> str | None:
    """Return why nothing more can be started as things are, whoever asks; None: it can."""
    try:
        msgspec.convert(given, _kind_of(tool)[1].arguments)
    except msgspec.ValidationError as error:
        return f"The arguments don't fit the schema: {error}"
    return handed.obstacle(draft, _kind_of(tool)[0])


class Origin(NamedTuple):
    """What a session descends from."""

    caused_by: str
    root_id: str
    is_ordered: bool
    sway: Sway


def _origin(draft: Draft, sway: Sway) -> Origin:
    loop = draft.loop
    is_ordered = (loop.is_direct or loop.is_ordered) and not sway.is_outside
    return Origin(loop.cause.id, _root_id(draft), is_ordered, sway)


def _begin(
    draft: Draft,
    kind: Profile,
    tool: str,
    prompt: str,
    origin: Origin,
    *,
    is_awaited: bool,
    is_counted: bool = True,
    asked: AskedOfModel | None = None,
) -> str:
    """Have the session started, and note that it is under way; return the effect's id.

    Args:
        asked: what of an MCP server it answers.
        is_counted: whether it descends from what the open loop is about.
    """
    if draft.policy.profile.lends_steps and is_counted:
        report(draft)  # so that its parent waits for it as long as it waits itself
    given = handed.share(draft, kind)
    effect_id = tasks.spawn_session(
        draft,
        SpawnSessionPayload(
            kind=kind.name,
            prompt=prompt,
            caused_by=origin.caused_by,
            root_id=origin.root_id,
            depth=handed.depth(draft) + 1,
            allowance=given.sessions,
            steps=given.steps,
            tokens_max=0 if asked is None else asked.question.tokens_max,
            is_ordered=origin.is_ordered,
        ),
        origin.sway,
    )
    task = Task(
        tool=tool,
        title=shortened(" ".join(prompt.split()), TITLE_LENGTH_MAX),
        due_at=handed.due_at(draft, kind.name),
        generation=draft.ordinal,
        kind=kind.name,
        child=str(SessionKey.parse(draft.key).of_kind(kind.name, effect_id)),
        is_awaited=is_awaited,
        is_ordered=origin.is_ordered,
        is_tainted=origin.sway.is_outside,
        caused_by=origin.caused_by,
        root_id=origin.root_id,
        lent=given.steps,
        asked=asked,
    )
    tasks.open_task(draft, effect_id, task)
    if is_counted:
        handed.count(draft, origin.root_id, given)
    return effect_id


def _root_id(draft: Draft) -> str:
    loop, start = draft.loop, draft.state.start
    task = draft.state.tasks.get(loop.task_id)
    inherited = "" if start is None else start.root_id
    return inherited or ("" if task is None else task.root_id) or loop.cause.id


# ---------------------------------------------------------------- being one


def begin(draft: Draft, cause: Cause, event: Control) -> None:
    """Begin with what this session was started for.

    A child that heard something else first was cancelled before it began, or is none of ours: it
    begins nothing.
    """
    given = event.payload.start
    if given is None:
        draft.note("not_served", "a start without a task")
    elif draft.is_first:
        _begin_with(draft, cause, given)
        return
    elif draft.state.start is not None:
        draft.note("repeat", "it was started before", event.id)
    else:
        draft.note("not_begun", "it was cancelled before it began", event.id)
        tasks.report_end(
            draft, "failed", "It was cancelled before it began.", Sway.NONE, start=given
        )
    draft.ended.append(cause.id)


def _begin_with(draft: Draft, cause: Cause, given: Start) -> None:
    draft.update(start=given, told_ms=draft.moment.now_ms)
    draft.policy = limited(draft.policy, given)
    draft.row_text("user", "task", given.prompt)
    loops.begin(draft, cause, is_direct=False, is_ordered=given.is_ordered, sway=sways.of(given))


def take(draft: Draft, cause: Cause, event: Control) -> None:
    """Take in what a session that was started is told, or tells who started it."""
    if event.payload.op == "cancel":
        _cancel(draft, event)
    else:
        _hear(draft, cause, event)


def _cancel(draft: Draft, event: Control) -> None:
    """End this session and what it started; if it has not begun, it never will."""
    why = event.payload.reason or "nobody waits for it any more"
    if draft.policy.profile.is_conversation:
        draft.note("not_served", "no profile of this session takes cancel events")
    elif draft.state.loop is not None:
        draft.note("session_cancelled", why)
        is_unanswered = draft.loop.retry is not None or draft.loop.retries > 0
        end_loop(draft, "cancelled", is_unanswered=is_unanswered)
        for approval_id in draft.state.approvals:  # what it went on without
            requests.close_approval(draft, approval_id, "closed")
    elif draft.state.start is None:
        draft.note("session_cancelled", f"{why}: it will not begin")
        draft.outcome = "cancelled"
    else:
        draft.note("nothing_to_stop", "it has ended")


def refuse(draft: Draft, given: Start | None) -> None:
    """Tell the parent of a start that was passed over; nobody else would."""
    if given is not None and draft.state.start is None:
        tasks.report_end(draft, "failed", "It could not be started.", Sway.NONE, start=given)
    if given is not None:
        jobs.refuse(draft, given)


def report(draft: Draft) -> None:
    """Tell the parent what this session is at, unless it was told a moment ago."""
    loop, given = draft.state.loop, draft.state.start
    if loop is None or given is None:
        return
    quiet_ms = draft.moment.now_ms - draft.state.told_ms
    if quiet_ms >= draft.policy.status_every_s * 1000:
        tasks.report_status(draft, "running", _present(draft), draft.sway)


def _present(draft: Draft) -> str:
    loop = draft.loop
    calls = () if loop.waiting is None else loop.waiting.calls
    tools = ", ".join(dict.fromkeys(call.tool for call in calls))
    at = f"step {loop.calls}, {tools}" if tools else f"step {loop.calls}"
    return f"{at}: {' '.join(loop.unsaid.split())}" if loop.unsaid else at


# ---------------------------------------------------------------- having one


def _hear(draft: Draft, cause: Cause, event: Control) -> None:
    """Take in what a child tells of how it goes: it is alive, so it may take longer."""
    status = event.payload.status
    task = None if status is None else draft.state.tasks.get(status.call_id)
    if status is None or task is None or task.kind == "call" or task.told_seq:
        draft.note("late_status", "nothing is under way that this could be of", event.id)
    else:
        if not requests.is_waited_for(task.kind):  # it has the time that it was given, and no more
            _put_off(draft, task.kind, status)
        _pass_on(draft, cause, task, status)


def _put_off(draft: Draft, kind: str, status: ChildStatus) -> None:
    due_at = handed.due_at(draft, kind)
    if status.state == "asking":
        due_at += timedelta(seconds=draft.policy.approval_expires_s)
    elif status.until is not None:
        due_at += max(status.until - draft.moment.now, timedelta(0))
    tasks.expect_by(draft, status.call_id, due_at)


def _pass_on(draft: Draft, cause: Cause, task: Task, status: ChildStatus) -> None:
    """Let who is behind this session know; of a question the person, as a message."""
    if status.state == "asking" and draft.policy.profile.is_conversation:
        detached.ask_for(draft, cause, task, status)
    elif status.state == "asking" and draft.state.loop is not None:
        sway = draft.sway | sways.of(status)
        tasks.report_status(draft, "asking", status.text, sway, approval_id=status.approval_id)
    elif status.until is not None and draft.state.loop is not None:
        sway = draft.sway | sways.of(status)
        tasks.report_status(draft, "running", status.text, sway, until=status.until)
    else:
        report(draft)


def awaited_by(draft: Draft, payload: TimerPayload) -> str | None:
    """Return the task whose deadline this is, if it is the one that counts."""
    task_id = payload.timer_id.removeprefix(CHILD_TIMER)
    task = draft.state.tasks.get(task_id)
    if task is None or payload.timer_id == task_id or payload.generation != task.generation:
        return None
    return None if task.told_seq else task_id


def check_alive(draft: Draft, cause: Cause, event: TimerFired, task_id: str) -> None:
    """See whether a task is lost, now that its deadline fired; it may have been put off since."""
    task = draft.state.tasks[task_id]
    if event.payload.fire_at < task.due_at:
        tasks.open_task(draft, task_id, task)
        draft.note("child_alive", f"looked at again at {task.due_at:{INSTANT}}", task_id)
        draft.ended.append(cause.id)
        return
    draft.note("child_lost", f"{task.tool} told nothing in time", task_id)
    if not task.is_awaited:
        detached.expire(draft, cause, event, task_id)
        return
    tasks.cancel_task(draft, task_id, "no word of it in time")
    draft.ended.append(cause.id)
    call = calls.find(draft.state.loop, task_id)
    if call is not None:
        calls.answer(draft, call, lost(task), Sway.NONE, is_error=True)


def drop(draft: Draft, payload: TimerPayload) -> bool:
    """Close the task of a deadline that is passed over; whether the open loop waited for it."""
    task_id = awaited_by(draft, payload)
    if task_id is None:
        return False
    task = draft.state.tasks[task_id]
    tasks.cancel_task(draft, task_id, "its deadline could not be used")
    return task.is_awaited


__all__ = [
    "awaited_by",
    "begin",
    "check_alive",
    "drop",
    "refuse",
    "report",
    "spawn",
    "take",
    "under_way",
    "wanted",
]
