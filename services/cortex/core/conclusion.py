"""What a model's answer does to an open loop: tools, the final text, failures (SPEC S-12)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from vigil.backoff import Backoff
from vigil.contracts import (
    Block,
    OpaqueBlock,
    OpenCall,
    Outcome,
    Retry,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)

from ..model import ModelAnswer, ModelError
from . import loops, speech
from .context import plainly
from .draft import INSTANT, RETRY_TIMER, Draft
from .pending import requests, tasks
from .promises import unkept
from .tools import callers, calls
from .tools.declaration import Answer
from .work import children
from .work.loop_end import end_loop
from .work.routing import route

TRUNCATING: Final = ("max_tokens", "model_context_window_exceeded")
REFUSAL: Final = "I can't help with that."
CUT_OFF: Final = "[Cut off here: this answer became too long.]"
THINKING: Final = ("thinking", "redacted_thinking")
"""Types of a provider's own blocks that belong to the call after them, and to nothing else."""
OUT_OF_STEPS: Final = "I stopped here: this took more steps than I may take for one message."
WAIT_MAX: Final = timedelta(days=7)
"""So long may a loop wait for the budget from its beginning on; then it fails."""
UNASKED_MAX: Final = timedelta(minutes=15)
"""So long a loop may be refused by the circuit of its model before that counts as failing."""
PLAIN_WAIT_S: Final = 20.0
"""A loop that can end without its model waits no longer than this for one more try: a reminder is
better plain than late."""
MALFORMED_MAX: Final = 2
"""So often in a row the model is told that its calls can't be read, before the exchange ends."""
MALFORMED: Final = (
    "I could not do that: what my model wrote to use a tool can't be read, although it was told so."
)
NO_WORDS: Final = (
    "I have no answer: my model gave an empty one. Please say it again, or in other words."
)
NO_WORDS_AFTER: Final = (
    "I used my tools, and then my model had no words for an answer. Ask me what came of it."
)
NO_ROOM: Final = "My answer did not fit. Please ask for a smaller piece of it."


def conclude(draft: Draft, answer: ModelAnswer) -> None:
    """Apply the model's answer to the open loop of `draft`."""
    loop = draft.loop
    draft.update_loop(calls=loop.calls + 1, retries=0, is_stopped=False)
    draft.usage.append(answer.usage)
    draft.was_swayed = draft.was_swayed or draft.sway.is_outside
    uses = [block for block in answer.blocks if isinstance(block, ToolUseBlock)]
    is_whole = answer.stop_reason not in (*TRUNCATING, "refusal", "unknown")
    if uses and not is_whole:
        # Half an answer may hold half a call: none of it is run.
        draft.note("incomplete_calls", f"{len(uses)} tool calls were not run", loop.cause.id)
        uses = []
    is_paused = answer.stop_reason == "pause_turn" and not uses
    blocks = _usable(answer.blocks, keep_calls=bool(uses), keep_thinking=bool(uses) or is_paused)
    if answer.stop_reason in TRUNCATING and any(isinstance(b, TextBlock) for b in blocks):
        # In the history, too: the model is to know where it stopped when it is asked to go on.
        blocks.append(TextBlock(text=f"\n\n{CUT_OFF}"))
    draft.row("assistant", "agent", *blocks)
    text = "".join(b.text for b in blocks if isinstance(b, TextBlock)).strip()
    if uses:
        _run_tools(draft, uses, text)
    elif is_paused:
        _go_on(draft, text)
    else:
        _finish(draft, text, answer.stop_reason)
    children.report(draft)


def _usable(blocks: tuple[Block, ...], *, keep_calls: bool, keep_thinking: bool) -> list[Block]:
    """Drop empty text, and calls that won't be run with the thinking that led to them.

    What the provider's own tools did stays: a turn that it paused goes on from there.
    """
    kept: list[Block] = []
    for block in blocks:
        if isinstance(block, TextBlock) and not block.text.strip():
            continue
        if isinstance(block, ToolUseBlock) and not keep_calls:
            continue
        is_thinking = isinstance(block, OpaqueBlock) and block.data.get("type") in THINKING
        if is_thinking and not keep_thinking:
            continue
        kept.append(block)
    return kept


def _run_tools(draft: Draft, uses: list[ToolUseBlock], text: str) -> None:
    results: list[Block] = []
    asked: list[OpenCall] = []
    for index, use in enumerate(uses):
        outcome: Answer
        if index >= draft.policy.tool_calls_max:
            outcome = "Too many tool calls in one answer.", True
        elif not callers.may_ask(draft.loop, use, asked):
            outcome = callers.ONE_BY_ONE, True
        else:
            outcome = route(draft, use)
            is_refused = not isinstance(outcome, OpenCall) and outcome[1]
            if not is_refused and unkept.may_keep(draft, use):
                draft.update_loop(has_acted=True)
        if isinstance(outcome, OpenCall):
            asked.append(outcome)
            continue
        content, is_error = outcome
        results.append(ToolResultBlock(tool_use_id=use.id, content=content, is_error=is_error))
    draft.row("user", "tool", *results)
    calls.wait(draft, asked)
    if _is_lost(draft, uses):
        if text:
            draft.update_loop(unsaid=text)
        _give_up(draft, MALFORMED)
    else:
        _go_on(draft, text)


def _is_lost(draft: Draft, uses: list[ToolUseBlock]) -> bool:
    """Count answers whose calls can't be read; whether the model was told so often enough."""
    wrong = [use for use in uses if use.malformed]
    if wrong:
        text = f"{len(wrong)} of {len(uses)} tool calls can't be read: {wrong[0].malformed}"
        draft.note("malformed_calls", text, draft.loop.cause.id)
    count = draft.loop.malformed + 1 if len(wrong) == len(uses) else 0
    draft.update_loop(malformed=count)
    return count > MALFORMED_MAX


def _go_on(draft: Draft, text: str) -> None:
    """Leave the loop open for another model call, if it may have one."""
    if text:
        draft.update_loop(unsaid=text)
    draft.outcome = "continued"
    if loops.steps_left(draft) < 1:
        draft.note("calls_max", f"{draft.policy.calls_max} model calls for one event are the limit")
        _give_up(draft, OUT_OF_STEPS)


def _give_up(draft: Draft, reason: str) -> None:
    """End the loop with what came with the last call; without any, with what can be said."""
    unsaid = draft.loop.unsaid if draft.loop.sends == 0 else ""
    fallback = reason if draft.loop.is_direct else plainly.of_loop(draft)
    _say_last(draft, unsaid or fallback)


def _finish(draft: Draft, text: str, stop_reason: str) -> None:
    loop = draft.loop
    if stop_reason in TRUNCATING:
        draft.note("truncated", f"the model stopped early: {stop_reason}")
    if stop_reason == "refusal":
        draft.note("refusal", "the model declined to answer")
    if stop_reason == "unknown":
        draft.note("unknown_stop", "the model stopped for a reason that is not known here")
    if not text and loop.sends == 0:
        text = loop.unsaid
    if not text and loop.is_direct and loop.sends == 0:
        if stop_reason == "refusal":
            text = REFUSAL
        elif stop_reason in TRUNCATING:
            text = NO_ROOM
        else:
            draft.note("empty_answer", "the model's answer had neither words nor a call")
            text = NO_WORDS if loop.calls < 2 else NO_WORDS_AFTER
    if not text and stop_reason in (*TRUNCATING, "refusal"):
        text = plainly.of_loop(draft)
    if stop_reason in TRUNCATING or not unkept.asks(draft, text):
        _say_last(draft, text)


def _say_last(draft: Draft, text: str) -> None:
    """Say `text`, if there is any, and end the loop; a profile may go on instead."""
    if draft.profile.wrap_up is not None:
        draft.profile.wrap_up(draft, text)
    else:
        say_last(draft, text)


def say_last(draft: Draft, text: str) -> None:
    """Say `text`, if there is any, and end the loop."""
    end_loop(draft, said_last(draft, text))


def said_last(draft: Draft, text: str) -> Outcome:
    """Say the last words of a loop, if there are any; return how it ends by that."""
    if not text:
        draft.note("silent", "there was nothing to say")
        return "answered" if draft.loop.sends else "silent"
    blocked = speech.say_for_loop(draft, text)
    return "answered" if blocked is None else "blocked"


def fail(
    draft: Draft,
    reason: str,
    *,
    is_retryable: bool,
    retry_after_s: float | None = None,
    budget_at: datetime | None = None,
    is_of_model: bool = False,
    is_unasked: bool = False,
    is_crowded: bool = False,
) -> None:
    """Record that the model gave no answer: ask the fallback, try again at a deadline, or give up
    and say so.

    Args:
        budget_at: when the budget may have room, if it had none; None: it had.
        is_of_model: whether another model may do better.
        is_unasked: whether it failed others and was not asked at all: no attempt of this loop's,
            until it has waited for `UNASKED_MAX`. What can be said without a model isn't held up
            by that.
        is_crowded: whether the request was too long, and room is made in the history for another.
    """
    if is_crowded:
        draft.note("model_overlong", f"{reason}; room is made in the history, and it's asked again")
        draft.outcome = "continued"
        children.report(draft)
        return
    if budget_at is not None and _may_wait(draft, budget_at):
        _wait(draft, reason, budget_at)
        return
    loop, policy = draft.loop, draft.policy
    is_plain = bool(plainly.of_loop(draft))
    is_young = draft.moment.now - loop.begun_at < UNASKED_MAX
    is_unasked = is_unasked and is_young and not is_plain
    attempt = loop.retries + (not is_unasked)
    if is_of_model and _falls_back(draft, attempt, is_retryable=is_retryable and not is_unasked):
        _fall_back(draft, attempt, reason)
        return
    backoff_s = Backoff(policy.retry_base_s, policy.retry_cap_s).after(max(attempt, 1))
    delay_s = min(max(backoff_s, retry_after_s or 0.0), policy.retry_cap_s)
    is_worth_it = delay_s <= PLAIN_WAIT_S or not is_plain
    if is_retryable and is_worth_it and attempt <= policy.retries_max:
        due_at = draft.moment.now + timedelta(seconds=delay_s)
        draft.update_loop(
            retry=Retry(attempt=attempt, generation=draft.ordinal, due_at=due_at, reason=reason)
        )
        draft.set_deadline(RETRY_TIMER, due_at)
        again = f"again in {delay_s:g} s"
        if is_unasked:
            draft.note("model_unasked", f"{reason}; {again}")
            if loop.is_direct:
                _put_off(draft, reason, "as soon as it is asked again")
        else:
            draft.note("model_retry", f"attempt {attempt} failed ({reason}); {again}")
        draft.outcome = "waiting"
        children.report(draft)
        return
    if budget_at is not None:
        draft.note("budget_exhausted", reason)
    _end_unanswered(draft, reason, may_later=is_retryable and budget_at is None)


def _end_unanswered(draft: Draft, reason: str, *, may_later: bool) -> None:
    """Give up, and say so.

    Args:
        may_later: whether a model may answer the same later.
    """
    loop = draft.loop
    draft.note("model_failed", reason)
    if loop.is_direct:
        text = f"I could not answer: {reason}"
        speech.say(draft, text, draft.sway, is_autonomous=False, fence=loop.fence)
        draft.row_text("assistant", "agent", text)
    else:
        plainly.say_of_loop(draft)
    end_loop(draft, "failed", is_unanswered=may_later)


def tries_again(draft: Draft, error: ModelError, *, is_unasked: bool = False) -> bool:
    """Have a question tried again as any step, if it may be; whether it is.

    Args:
        is_unasked: as of `fail`.
    """
    if not error.is_retryable or draft.loop.retries >= draft.policy.retries_max:
        return False
    fail(
        draft,
        error.reason,
        is_retryable=True,
        retry_after_s=error.retry_after_s,
        is_of_model=error.is_of_model,
        is_unasked=is_unasked,
    )
    return True


def _may_wait(draft: Draft, until: datetime) -> bool:
    """Whether the loop goes on by itself when the budget has room: a person's message, or what was
    started, but for what a conversation, or what nobody watches, waits for, and a run of the
    timetable whose time is over by then: its next one comes anyway."""
    start = draft.state.start
    if start is not None and start.slot is not None:
        has_time = until <= draft.loop.begun_at + timedelta(seconds=start.slot.timeout_s)
        if not has_time:
            return False
    is_asked_for = draft.loop.is_direct or draft.state.start is not None
    is_young = draft.moment.now - draft.loop.begun_at < WAIT_MAX
    is_waited_for = start is not None and bool(start.parent) and requests.is_alone(draft)
    holds_up = is_waited_for or requests.holds_up(draft)
    return is_asked_for and is_young and not (draft.is_aside or holds_up)


def _wait(draft: Draft, reason: str, until: datetime) -> None:
    """Let the loop wait for the budget; a changed cap brings the deadline forward."""
    loop = draft.loop
    if not loop.is_stopped:
        draft.note("budget_exhausted", reason)
    _put_off(draft, reason, "as soon as there is room")
    draft.note("budget_waits", f"it goes on at {until:{INSTANT}}, or when a limit is changed")
    wait = Retry(attempt=loop.retries, generation=draft.ordinal, due_at=until, reason=reason)
    draft.update_loop(retry=wait)
    draft.set_deadline(RETRY_TIMER, until, draft.moment.hours_at)
    draft.outcome = "waiting"
    tasks.report_status(draft, "running", f"waits: {reason}", draft.sway, until=until)


def _put_off(draft: Draft, reason: str, until: str) -> None:
    """Tell who wrote, once, that no model is asked for now: whoever waits for an answer has one."""
    loop = draft.loop
    if loop.is_direct and not loop.is_stopped:
        text = f"I can't answer yet: {reason}. I will {until}."
        speech.say(draft, text, draft.sway, is_autonomous=False, fence=loop.fence)
    draft.update_loop(is_stopped=True)


def _falls_back(draft: Draft, attempt: int, *, is_retryable: bool) -> bool:
    """Whether the fallback is asked from now on.

    All attempts at a step count, whoever failed: two models that are both away are given up, too.
    """
    policy, until = draft.policy, draft.state.fallback_until
    if not policy.fallback or attempt > policy.retries_max + 1:
        return False
    if until is not None:
        return until <= draft.moment.now
    return not is_retryable or attempt >= min(policy.fallback_after, policy.retries_max + 1)


def _fall_back(draft: Draft, attempt: int, reason: str) -> None:
    policy = draft.policy
    until = draft.moment.now + timedelta(seconds=policy.fallback_pause_s)
    draft.update(fallback_until=until)
    draft.update_loop(retries=attempt)
    why = f"attempt {attempt} failed ({reason})" if attempt else reason
    draft.note("model_fallback", f"{policy.fallback} until {until:{INSTANT}}, since {why}")
    draft.outcome = "continued"
    children.report(draft)


def answered(draft: Draft, *, is_fallback: bool) -> None:
    """Note who answered a step, while that is to be told."""
    if is_fallback:
        draft.note("model_away", f"{draft.policy.fallback} answered, the fallback")
    elif draft.state.fallback_until is not None:
        draft.update(fallback_until=None)
        draft.note("model_back", "the fallback is not asked any more")


__all__ = ["answered", "conclude", "fail", "said_last", "say_last", "tries_again"]
