"""Calls and workers that no loop waits for: their result opens a loop of its own.

It is gated like an event from outside is, unless the person ordered it: then it is said like a
reminder that is kept. Whatever becomes of it, what it told is a row of the history, so that the
next exchange knows of it.

Its task stays in the state until that loop has ended, so that a result which the person's message
pushes aside can be taken up again, and what descends from it counts as one with what it came from.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from vigil.contracts import (
    AttachmentBlock,
    Cause,
    ChildStatus,
    Control,
    Event,
    Queued,
    Task,
    TaskBlock,
    TimerFired,
    ToolResultEvent,
)

from .. import loops, speech
from .. import sway as sways
from ..draft import OUTSIDE, Draft
from ..pending import request_text, requests, tasks
from ..pending.requests import APPROVAL_TIMER
from ..pending.tasks import lost
from ..queue import enqueue, in_its_place, result_of
from ..tools import calls
from .loop_end import end_loop

CONTENT_MAX: Final = 16_000
"""Characters of a result that a row holds."""
RESULTS: Final = f"{OUTSIDE}-results"
"""The follow-up that takes up results which quiet hours or a pause held back."""
HELD_REASON: Final = "Results came in meanwhile; they stand above."


def open(draft: Draft, effect_id: str, task: Task) -> None:  # noqa: A001 - the counterpart of close
    """Note that the result of an effect will come as an event of its own."""
    root_id = task.root_id or task.caused_by
    spawned = 0 if draft.state.loop is None else draft.state.loop.spawned
    tasks.open_task(draft, effect_id, replace(task, root_id=root_id, spawned=spawned))


def receive(draft: Draft, cause: Cause, event: ToolResultEvent) -> bool:
    """Fold a result that no loop waits for; return whether it is one."""
    task = draft.state.tasks.get(event.payload.call_id)
    if task is None or task.is_awaited or task.told_seq:
        return False
    about = f"{task.tool}: {task.title}"
    if task.kind != "call" and event.payload.is_error:
        draft.note("child_failed", about, event.payload.call_id)
    elif task.kind != "call":
        draft.note("child_done", about, event.payload.call_id)
    _take_in(draft, cause, event, event.payload.call_id)
    return True


def expire(draft: Draft, cause: Cause, event: TimerFired, task_id: str) -> None:
    """Take a task that told nothing in time for lost; what is left of it is ended."""
    task = draft.state.tasks[task_id]
    tasks.cancel_call(draft, task_id, task.tool, "no word of it in time", task.child)
    _take_in(draft, cause, event, task_id)


def _take_in(draft: Draft, cause: Cause, event: ToolResultEvent | TimerFired, task_id: str) -> None:
    """Let the end of a task open a loop, at once or after what is open."""
    tasks.end_task(draft, task_id, cause.seq)
    _take_up(draft, cause, event, task_id)


def settle(draft: Draft, cause: Cause, event: Event, task_id: str, task: Task) -> None:
    """Let the end of a request to the person, which no loop waits for, open a loop."""
    task = replace(task, root_id=task.root_id or task.caused_by, told_seq=cause.seq)
    draft.update(tasks={**draft.state.tasks, task_id: task})
    _take_up(draft, cause, event, task_id)


def _take_up(draft: Draft, cause: Cause, event: Event, task_id: str) -> None:
    if draft.policy.profile.hear_end is not None:
        draft.policy.profile.hear_end(draft, cause, event, task_id)
        return
    task = draft.state.tasks[task_id]
    if speech.gate(draft, is_ordered=task.is_ordered) is None and speech.held_until(draft) is None:
        draft.make_way("a result came in")
    is_aside = draft.is_aside
    if (draft.state.loop is not None and not is_aside) or draft.state.queue:
        enqueue(draft, cause)
    else:
        take(draft, cause, event)


def take(draft: Draft, cause: Cause, event: Event) -> None:
    """Write down what became of the task that `event` ended; ask the model about it, or say why
    not."""
    task_id = result_of(draft.state, cause.seq)
    if task_id is None:
        draft.note("late_result", "what it belongs to is over", event.id)
        draft.ended.append(cause.id)
        return
    task = draft.state.tasks[task_id]
    block, files = block_of(draft, task_id, event)
    draft.row("user", "task", block, *files)
    is_void = not task.is_ordered and cause.seq < draft.state.fence
    refusal, until = speech.gate(draft, is_ordered=task.is_ordered), speech.held_until(draft)
    if not is_void and refusal is None and until is None:
        loops.begin(
            draft,
            cause,
            is_direct=False,
            is_ordered=task.is_ordered,
            sway=sways.of(block),
            task_id=task_id,
        )
        return
    tasks.close_task(draft, task_id)
    draft.ended.append(cause.id)
    if is_void:
        draft.note("void", "the person spoke first", event.id)
    elif refusal is not None:
        draft.note(f"blocked_{refusal.code}", refusal.text, event.id)
        draft.outcome = "blocked"
    elif until is not None:
        speech.hold_model(
            draft,
            RESULTS,
            HELD_REASON,
            until,
            sways.of(block),
            event_id=event.id,
            keep=task.is_ordered,
        )
        draft.outcome = "held"


def block_of(
    draft: Draft, task_id: str, event: Event
) -> tuple[TaskBlock, tuple[AttachmentBlock, ...]]:
    """Return what became of a task, and the files that are shown with it."""
    task, files = draft.state.tasks[task_id], tuple[AttachmentBlock, ...]()
    content, is_error, sway = lost(task), True, sways.of(task)
    if is_of_request(event):
        content, is_error = request_text.outcome(event, is_late=task.is_late)
    elif isinstance(event, ToolResultEvent):
        payload = event.payload
        content, is_error, sway = payload.content, payload.is_error, sways.of(task, payload)
        content, files = calls.shown(draft, calls.bounded(content, CONTENT_MAX), payload, sway)
    block = TaskBlock(
        call_id=task_id,
        tool=task.tool,
        title=task.title,
        content=content,
        is_error=is_error,
        is_tainted=sway.is_outside,
    )
    return block, files


def is_of_request(event: Event) -> bool:
    """Whether the event ended a request to the person."""
    is_deadline = isinstance(event, TimerFired) and event.payload.timer_id.startswith(
        APPROVAL_TIMER
    )
    return is_deadline or isinstance(event, Control)


def put_back(draft: Draft, cause: Cause, task_id: str, task: Task) -> None:
    """Take up later a result that the person ordered and whose loop their message closed."""
    draft.ended.remove(cause.id)
    draft.update(
        tasks={**draft.state.tasks, task_id: replace(task, told_seq=cause.seq)},
        queue=in_its_place(draft.state.queue, Queued(seq=cause.seq, type=cause.type)),
    )
    draft.note("put_back", "the person spoke first; the result follows", task_id)


def forget(draft: Draft, seq: int) -> Task | None:
    """Close the task whose end is in an event that is given up, and return it."""
    task_id = result_of(draft.state, seq)
    if task_id is None:
        return None
    task = draft.state.tasks[task_id]
    tasks.close_task(draft, task_id)
    return task


def ask_for(draft: Draft, cause: Cause, task: Task, status: ChildStatus) -> None:
    """Say to the person, once, that something which was started for them waits for their word.

    Beside an open loop it is said in that; otherwise it is a message of its own.
    """
    if cause.id in draft.state.told:
        draft.note("repeat", "an event with this id was folded before", cause.id)
        return
    loops.fold_once(draft, cause.id)
    text, sway = status.text, sways.of(task, status)
    draft.note("child_asks", text, cause.id)
    if draft.state.loop is not None and not draft.is_aside:
        loop = draft.loop
        is_of_exchange = loop.is_direct and task.caused_by == loop.cause.id
        blocked = speech.say(
            draft, text, sway, is_autonomous=not is_of_exchange, is_ordered=task.is_ordered
        )
        if blocked is None and speech.is_said_now(draft, is_asked=is_of_exchange):
            _note_shown(draft, status)
        return
    draft.make_way("a question came in")
    before = draft.cause
    loops.begin(draft, cause, is_direct=False, is_ordered=task.is_ordered, sway=sway)
    blocked = speech.say(draft, text, sway, is_autonomous=True, is_ordered=task.is_ordered)
    if blocked is None:
        draft.row_text("assistant", "agent", text)
    if blocked is None and speech.is_said_now(draft, is_asked=False):
        _note_shown(draft, status)
    end_loop(draft, "answered" if blocked is None else "blocked")
    draft.ended.remove(cause.id)
    draft.cause = before


def _note_shown(draft: Draft, status: ChildStatus) -> None:
    if status.approval_id:
        requests.note_shown(draft, status.approval_id)


__all__ = [
    "HELD_REASON",
    "ask_for",
    "expire",
    "forget",
    "open",
    "put_back",
    "receive",
    "settle",
    "take",
]
