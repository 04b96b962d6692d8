"""Turns that start other sessions, wait for them, end them, and tell the one that started them.

What is under way is in `State.tasks`, by the id of the effect that asked for it, each with a
deadline of its own: the timer ``_child-{id}``. A word of a child pushes the deadline back; the
timer is only set anew when it fires too early, so a child that talks costs no timers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal

from msgspec.structs import replace

from vigil.contracts import (
    AcceptedCall,
    BoardChangePayload,
    CancelCall,
    CancelCallPayload,
    Note,
    OpenCall,
    Outcome,
    Retry,
    SpawnSession,
    SpawnSessionPayload,
    Start,
    Task,
    TellParent,
    TellParentPayload,
    ToolResultBlock,
)
from vigil.contracts.board import BoardAction
from vigil.minds import mind_of
from vigil.subjects import SessionKey
from vigil.timetable.reasons import UNANSWERED

from ..draft import Draft
from ..sway import Sway
from . import request_text, requests

CHILD_TIMER: Final = "_child-"
"""Begins the id of a task's deadline; the effect's id follows."""
TOLD_LENGTH_MAX: Final = 16_000
"""Characters of a result that the parent is told."""
STATUS_LENGTH_MAX: Final = 300
ASKING_LENGTH_MAX: Final = 8_000
"""Characters of a request to a person: its arguments, and how to answer."""
ENDS: Final[dict[Outcome | None, str]] = {
    "answered": "It ended without a word.",
    "silent": "It had nothing to say.",
    "stopped": "It was stopped.",
    "cancelled": "It was cancelled.",
}
"""What a parent is told of a session that ended so and said nothing."""
OUT_OF_STEPS: Final = "It took more steps than it may."


def open_task(draft: Draft, task_id: str, task: Task) -> None:
    """Note what is under way, and set its deadline."""
    draft.set_deadline(f"{CHILD_TIMER}{task_id}", task.due_at)
    _put_task(draft, task_id, replace(task, generation=draft.ordinal))


def close_task(draft: Draft, task_id: str) -> Task | None:
    """Forget what was under way, and take its deadline back."""
    task = draft.state.tasks.get(task_id)
    if task is None:
        return None
    rest = {id_: other for id_, other in draft.state.tasks.items() if id_ != task_id}
    draft.update(tasks=rest)
    if not task.told_seq:
        draft.cancel_deadline(f"{CHILD_TIMER}{task_id}", task.generation)
    return task


def expect_by(draft: Draft, task_id: str, due_at: datetime) -> None:
    """Put a task's deadline off, or bring it forward."""
    task = draft.state.tasks[task_id]
    if due_at < task.due_at:
        draft.cancel_deadline(f"{CHILD_TIMER}{task_id}", task.generation)
        open_task(draft, task_id, replace(task, due_at=due_at))
    else:
        _put_task(draft, task_id, replace(task, due_at=due_at))


def end_task(draft: Draft, task_id: str, seq: int) -> None:
    """Note that the event `seq` told its end, which waits for its turn."""
    task = draft.state.tasks[task_id]
    draft.cancel_deadline(f"{CHILD_TIMER}{task_id}", task.generation)
    _put_task(draft, task_id, replace(task, told_seq=seq))


def _put_task(draft: Draft, task_id: str, task: Task) -> None:
    draft.update(tasks={**draft.state.tasks, task_id: task})


def count_spawned(draft: Draft, root_id: str, spawned: int) -> None:
    """Let every task of the same origin know how many sessions descend from that."""
    draft.update(
        tasks={
            id_: replace(task, spawned=spawned) if task.root_id == root_id else task
            for id_, task in draft.state.tasks.items()
        }
    )


def spawn_session(draft: Draft, payload: SpawnSessionPayload, sway: Sway) -> str:
    """Have a session started; return the effect's id, of which its thread is made."""
    start = draft.state.start
    payload = replace(
        payload,
        source=draft.source,
        is_tainted=sway.is_outside,
        root=(start.root if start else "") or SessionKey.parse(draft.key).thread,
        row=draft.timetable_row,
        row_tokens=0 if start is None else start.row_tokens,
        goal=draft.goal,
    )
    effect, ordinal = draft.next_id("spawn_session", payload, "executor")
    draft.effects.append(SpawnSession(id=effect, ordinal=ordinal, payload=payload))
    return effect


def cancel_call(draft: Draft, call_id: str, tool: str, reason: str, child: str = "") -> None:
    """Have a call ended, or a session, or see that it never begins."""
    payload = CancelCallPayload(call_id=call_id, tool=tool, child=child, reason=reason)
    effect, ordinal = draft.next_id("cancel_call", payload, "executor")
    draft.effects.append(CancelCall(id=effect, ordinal=ordinal, payload=payload))


def report(draft: Draft, payload: TellParentPayload, sway: Sway) -> None:
    """Tell the session that started this one, or the task or slot that it works on, if there is
    one."""
    slot = payload.slot.row if payload.slot is not None else ""
    whom = payload.parent or payload.task_id or slot
    if not whom:
        return
    payload = replace(payload, is_tainted=sway.is_outside)
    effect, ordinal = draft.next_id("tell_parent", payload, whom)
    draft.effects.append(TellParent(id=effect, ordinal=ordinal, payload=payload))


def report_status(
    draft: Draft,
    state: Literal["running", "asking"],
    text: str,
    sway: Sway,
    *,
    until: datetime | None = None,
    approval_id: str = "",
) -> None:
    """Tell the parent how it goes; a conversation and a job have none.

    Args:
        approval_id: of the request that the text is, with all of its arguments.
    """
    given = draft.state.start
    if given is None or not given.parent:
        return
    draft.update(told_ms=draft.moment.now_ms)
    report(
        draft,
        TellParentPayload(
            parent=given.parent,
            call_id=given.call_id,
            state=state,
            content=shortened(text, ASKING_LENGTH_MAX if state == "asking" else STATUS_LENGTH_MAX),
            until=until,
            approval_id=approval_id,
        ),
        sway,
    )


def cancel_task(draft: Draft, task_id: str, reason: str) -> None:
    """Close what is under way, and have it ended: nobody waits for it any more."""
    task = close_task(draft, task_id)
    if task is not None and not task.told_seq:
        cancel_call(draft, task_id, task.tool, reason, task.child)


def abandon(draft: Draft, call: OpenCall, reason: str) -> None:
    """Have a call ended that the loop waited for until now."""
    if call.service == "executor":
        cancel_call(draft, call.effect_id, call.tool, reason)
    elif call.service == "person":
        requests.close_approval(draft, call.effect_id, "closed")
    cancel_task(draft, call.effect_id, reason)


def report_end(
    draft: Draft,
    state: Literal["done", "failed"],
    content: str,
    sway: Sway,
    *,
    start: Start | None = None,
    next_s: int = 0,
    facts: Mapping[str, str] = MappingProxyType({}),
    steps: int = 0,
    is_over_budget: bool = False,
    is_interrupted: bool = False,
    is_unanswered: bool = False,
) -> None:
    """Tell the parent how this session ended, and of an errand the person.

    Args:
        start: which it would have begun with; None: which it began with.
        next_s: of a run of the timetable: after how long it wants the next; 0: it said nothing.
        facts: that a run of the timetable told.
        steps: of one that was lent some: how many it made, if none of them may go on.
        is_over_budget: whether no model was asked, since a cap was reached.
        is_interrupted: whether it was given up for having been begun again too often.
        is_unanswered: whether it did nothing since no model answered, and one may later.
    """
    start = start or draft.state.start
    if start is None:
        return
    if start.call is not None:
        is_quotable = draft.is_for_one and not sway.is_outside
        text = request_text.errand(
            start.call,
            content,
            draft.key,
            is_quotable=is_quotable,
            is_error=_has_failed(draft, start.call),
        )
        draft.notify_home("errand", text, title=start.call.tool)
        _note_end(draft, start, start.call, is_done=state == "done")
    payload = TellParentPayload(
        parent=start.parent,
        task_id=start.task_id,
        slot=start.slot,
        call_id=start.call_id,
        state=state,
        content=shortened(content, TOLD_LENGTH_MAX),
        report=draft.report,
        next_s=next_s,
        facts=dict(facts),
        steps=steps,
        is_over_budget=is_over_budget and start.slot is not None and state == "failed",
        is_interrupted=is_interrupted and start.slot is not None,
        is_unanswered=is_unanswered and start.slot is not None and state == "failed",
        bulletin=draft.bulletin,
    )
    report(draft, payload, sway)


def _has_failed(draft: Draft, call: AcceptedCall) -> bool | None:
    """Return what the result of an errand's call says of itself, if the turn holds it."""
    results = (block for row in draft.rows for block in row.blocks)
    return next(
        (
            block.is_error
            for block in results
            if isinstance(block, ToolResultBlock) and block.tool_use_id == call.approval_id
        ),
        None,
    )


def _note_end(draft: Draft, start: Start, call: AcceptedCall, *, is_done: bool) -> None:
    """Note how an action of the mind ended that the person let run."""
    key, now = SessionKey.parse(draft.key), draft.moment.now
    if start.root != mind_of(key.scope).thread:
        return
    action = BoardAction(
        id=call.approval_id,
        owner=key.user,
        agent=key.agent,
        type=call.tool,
        description=call.tool,
        outcome="success" if is_done else "failed",
        session_key=draft.key,
        created_at=now,
        ended_at=now,
    )
    draft.ask_board(BoardChangePayload(entity=action, is_silent=True))


def ending(
    outcome: Outcome | None,
    notes: Iterable[Note],
    last_words: str,
    unsaid: str,
    retry: Retry | None = None,
) -> tuple[Literal["done", "failed"], str]:
    """Return what a parent is told of a session that ended: how, and with which words.

    Args:
        notes: those of the turn that ends it.
        unsaid: text that came with its last tool calls, if it said nothing after them.
        retry: the call of a model that it waited for.

    >>> ending("answered", [], "There are 4.", "Let me look.")
    ('done', 'There are 4.')
    >>> ending("cancelled", [], "", "Let me look.")
    ('failed', 'It was cancelled.\\n\\nLet me look.')
    """
    told = {note.code: note.text for note in notes}
    is_done = outcome in ("answered", "silent") and not {"calls_max", "refusal"} & set(told)
    if "calls_max" in told:
        why = OUT_OF_STEPS
    elif is_done:
        why = "" if last_words else ENDS[outcome]
    else:
        waited = f"{UNANSWERED}{retry.reason.rstrip('.')}." if retry else ""
        why = told.get("model_failed") or told.get("refusal") or waited
        why = why or ENDS.get(outcome, "It failed.")
    words = "\n\n".join(part for part in (why, last_words or unsaid) if part)
    return ("done" if is_done else "failed"), words


def lost(task: Task) -> str:
    """Say what became of a task that told nothing in time."""
    if task.kind == "call":
        return "There was no result in time. It may have been run or not."
    return "There was no word of it in time, so it was ended."


def shortened(text: str, length_max: int) -> str:
    """Cut a text to so many characters, and show that it was cut.

    >>> shortened("abcd", 3), shortened("abc", 3)
    ('ab…', 'abc')
    """
    return text if len(text) <= length_max else text[: length_max - 1] + "…"
