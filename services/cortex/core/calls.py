"""Tool calls that other services run: asked for as effects, answered by events (SPEC S-12).

A loop waits for all calls of one model answer, under one deadline, and asks the model again with
the last result. What comes for a call that isn't open any more changes nothing: a repeat, a result
after the deadline, or after the loop was closed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

from vigil.contracts import (
    Block,
    Cause,
    Loop,
    OpenCall,
    TimerPayload,
    ToolResultBlock,
    ToolResultEvent,
    ToolUseBlock,
    Waiting,
)

from ..tools import ARGUMENTS, SERVED
from .collecting import replace
from .draft import CALL_TIMER, Draft
from .waiting import stored_size

INPUT_BYTES_MAX: Final = 64 * 1024
"""Arguments of the calls of one answer together, as stored: a turn holds them twice."""


class Served:
    """The calls of one model answer that other services are asked to run."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._calls: list[ToolUseBlock] = []
        self._left = INPUT_BYTES_MAX

    def take(self, call: ToolUseBlock) -> str | None:
        """Take a call if it can be asked for; return what to tell the model if it can't."""
        if self._draft.loop.calls >= self._draft.policy.calls_max:
            return "This was the last step for this message, so it was not run."
        try:
            msgspec.convert(call.input, ARGUMENTS[call.name])
        except msgspec.ValidationError as error:
            return f"The arguments don't fit the schema: {error}"
        size = stored_size(call.input)
        if size > self._left:
            return "That is too much for one answer; call again with less, or with the rest."
        self._left -= size
        self._calls.append(call)
        return None

    def ask(self) -> None:
        """Ask for what was taken, and let the loop wait for it."""
        if not self._calls:
            return
        draft = self._draft
        due_at = draft.moment.now + timedelta(seconds=draft.policy.tool_timeout_s)
        calls = tuple(draft.call_tool(SERVED[call.name], call, due_at) for call in self._calls)
        draft.set_deadline(CALL_TIMER, due_at)
        waiting = Waiting(calls=calls, generation=draft.ordinal, due_at=due_at)
        draft.update_loop(waiting=waiting)


def receive(draft: Draft, cause: Cause, event: ToolResultEvent) -> None:
    """Fold a result; the first one of a call counts, while its loop waits for it."""
    payload = event.payload
    waiting = None if draft.state.loop is None else draft.state.loop.waiting
    call = None if waiting is None else _find(waiting, payload.call_id)
    if waiting is None or call is None:
        text = "no call is open that this result could belong to"
        draft.note("late_result", text, payload.call_id)
        return
    content = bounded(payload.content, draft.policy.result_length_max)
    draft.row("user", "tool", _result(call, content, is_error=payload.is_error))
    if payload.is_tainted:
        draft.update_loop(is_tainted=True)
    rest = tuple(other for other in waiting.calls if other is not call)
    if rest:
        draft.update_loop(waiting=replace(waiting, calls=rest))
    else:
        draft.cancel_deadline(CALL_TIMER, waiting.generation)
        draft.update_loop(waiting=None)
    draft.ended.append(cause.id)
    _go_on(draft)


def are_ended_by(loop: Loop | None, payload: TimerPayload) -> bool:
    """Whether that deadline is the one of the calls that the loop waits for."""
    if loop is None or loop.waiting is None or payload.timer_id != CALL_TIMER:
        return False
    return payload.generation == loop.waiting.generation


def expire(draft: Draft, cause: Cause) -> None:
    """Give up the calls that are still open; the model is told, and goes on without them."""
    waiting = draft.loop.waiting
    if waiting is None:
        raise AssertionError("nothing is waited for")
    text = f"no answer within {draft.policy.tool_timeout_s:g} s"
    results = [_result(call, f"There was {text}.", is_error=True) for call in waiting.calls]
    draft.row("user", "tool", *results)
    tools = ", ".join(dict.fromkeys(call.tool for call in waiting.calls))
    draft.note("no_result", f"{tools} gave {text}")
    draft.update_loop(waiting=None)
    draft.ended.append(cause.id)
    _go_on(draft)


def bounded(content: str, length_max: int) -> str:
    """Cut a result to what the model is shown, and say so.

    >>> bounded("a" * 10, 3)
    'aaa… (7 more characters are cut off)'
    """
    more = len(content) - length_max
    if more <= 0:
        return content
    return f"{content[:length_max]}… ({more} more characters are cut off)"


def _find(waiting: Waiting, effect_id: str) -> OpenCall | None:
    return next((call for call in waiting.calls if call.effect_id == effect_id), None)


def _result(call: OpenCall, content: str, *, is_error: bool) -> Block:
    return ToolResultBlock(tool_use_id=call.tool_use_id, content=content, is_error=is_error)


def _go_on(draft: Draft) -> None:
    """Continue the loop: its turns are about the event that began it."""
    draft.cause = draft.loop.cause
    draft.outcome = "continued"
