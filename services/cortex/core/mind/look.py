"""Looks of the mind: what comes in waits, and one look takes it together (SPEC G-1). Pure.

    comes in ──► waits ──► taken ──► one call of the model ──► decided: each decision is an effect
                   ▲                        │ no answer, or none that can be used, twice
                   └──── again, up to three times: a look that failed looked at nothing

A look has what may be trusted in it, or what is from outside, never both: so such content sways
that look alone. Goals that are due are looked at with what may be trusted; a goal that such content
had a part in waits for a look of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeGuard

from msgspec.structs import replace

from vigil.contracts import (
    Block,
    Cause,
    Event,
    External,
    Gathering,
    Queued,
    SlotRun,
    State,
    TellParentPayload,
    Tick,
    TimerFired,
    ToldEvent,
    ToolResultEvent,
)
from vigil.contracts.board import BoardGoal
from vigil.goals import lifecycle
from vigil.minds import LOST_MESSAGE, OWN_TASK
from vigil.subjects import token_of

from ...model import ModelAnswer, ModelError
from .. import conclusion, external, home, loops, speech
from .. import sway as sways
from ..draft import Draft
from ..pending import tasks
from ..queue import COALESCE_TIMER, enqueue, fitting, result_of, stored_size
from ..sway import Sway
from ..tools import formed_answer
from ..tools.declaration import declared
from ..tools.formed_answer import Unusable
from ..work import detached
from ..work.loop_end import end_loop
from . import decisions, deeds, habits, left

TRIES_MAX: Final = 3
"""Looks that are tried for the same; then it is dropped, and says so."""
CHAIN_MAX: Final = 3
"""Looks in a row at nothing but results of the mind's own calls."""
WAIT_MAX: Final = timedelta(hours=1)
"""After looks that failed."""
PAUSE_AGAIN: Final = timedelta(minutes=1)
NOTHING: Final = "nothing came in that is to be decided, and no goal is due"


# ---------------------------------------------------------------- what comes in


def receive(draft: Draft, cause: Cause, event: Event) -> None:
    """Let an event wait for the next look, which may be at once."""
    state = draft.state
    if _is_repeat(state, event):
        draft.note("repeat", "an event with this id was folded before", event.id)
        draft.ended.append(cause.id)
        return
    if not draft.policy.has_mind or len(state.queue) >= draft.policy.queue_max:
        why = "too many events are waiting" if draft.policy.has_mind else "the mind is off"
        draft.note("queue_full", why, event.id)
        draft.ended.append(cause.id)
        return
    if _is_lost_message(event):
        text = f"{LOST_MESSAGE}: {event.payload.text}"
        deeds.log(
            draft,
            token_of("action", draft.key, event.id),
            "respond",
            text,
            "failed",
            sway=sways.of(event.payload),
        )
    if _is_own_end(event) and state.mind.chain >= CHAIN_MAX:
        draft.ended.append(cause.id)
        return
    if isinstance(event, External):
        loops.fold_once(draft, event.id)
    if isinstance(event, Tick) and not _is_by_hand(event):
        draft.update(mind=replace(state.mind, ticked_at=event.payload.slot))
    enqueue(draft, cause)
    plan(draft)


def _is_repeat(state: State, event: Event) -> bool:
    if isinstance(event, Tick) and not _is_by_hand(event):
        before, slot = state.mind.ticked_at, event.payload.slot
        return before is not None and slot is not None and slot <= before
    return isinstance(event, External) and event.id in state.told


def _is_lost_message(event: Event) -> TypeGuard[ToldEvent]:
    return isinstance(event, ToldEvent) and event.payload.what == LOST_MESSAGE


def _is_own_end(event: Event) -> TypeGuard[ToldEvent]:
    """Whether it tells what became of words or a task of the mind's own."""
    return isinstance(event, ToldEvent) and event.payload.what in (LOST_MESSAGE, OWN_TASK)


def _is_by_hand(event: Tick) -> bool:
    return event.payload.run is not None and event.payload.run.is_by_hand


def hear_end(draft: Draft, cause: Cause, event: Event, task_id: str) -> None:
    """Note how an action ended. A result of a tool, and what went wrong, are for the next look."""
    task = draft.state.tasks[task_id]
    is_known = isinstance(event, ToolResultEvent)
    is_failed = isinstance(event, ToolResultEvent) and event.payload.is_error
    outcome: Any = ("failed" if is_failed else "success") if is_known else "unknown"
    deeds.log(draft, task_id, task.tool, task.title, outcome, sway=sways.of(task))
    is_over = task.tool in declared() and outcome == "success"
    if is_over and task.tool == "goal_create" and isinstance(event, ToolResultEvent):
        habits.notify_of_goal(draft, task, event.payload.content)
    if is_over or draft.state.mind.chain >= CHAIN_MAX:
        tasks.close_task(draft, task_id)
        draft.ended.append(cause.id)
        return
    enqueue(draft, cause)
    plan(draft)


def plan(draft: Draft) -> None:
    """See that what waits is looked at, and not too soon after the look before."""
    if draft.state.loop is not None or not draft.state.queue:
        return
    at = _earliest(draft)
    waiting = draft.state.gathering
    if at <= draft.moment.now:
        draft.update(gathering=None)
    elif waiting is None:
        draft.set_deadline(COALESCE_TIMER, at)
        draft.update(gathering=Gathering(generation=draft.ordinal, due_at=at, latest_at=at))
    else:
        draft.update(gathering=replace(waiting, due_at=at, latest_at=at))


def _earliest(draft: Draft) -> datetime:
    """Return when the next look may be."""
    mind, now = draft.state.mind, draft.moment.now
    found = [now]
    if mind.looked_at is not None:
        tick = timedelta(seconds=draft.policy.mind_tick_s)
        found.append(mind.looked_at + min(tick * 2 ** min(mind.failures, 10), max(WAIT_MAX, tick)))
    if mind.wait_until is not None:
        found.append(mind.wait_until)
    if draft.moment.is_paused:
        found.append(now + PAUSE_AGAIN)
    if (until := speech.paused_until(draft)) is not None:
        found.append(until)
    return max(found)


# ---------------------------------------------------------------- taking it


class _Input(NamedTuple):
    """One thing that a look takes."""

    cause: Cause
    blocks: tuple[Block, ...]
    """Empty: it only says that it's time."""
    sway: Sway
    slot: SlotRun | None = None
    is_own: bool = False
    """Whether it is the result of a call of its own, or what became of its words."""


def take(draft: Draft, causes: Sequence[Cause], events: Sequence[Event]) -> int:
    """Take together what is waiting, as much as one look may have; return how many that are."""
    if _earliest(draft) > draft.moment.now:
        plan(draft)
        draft.outcome = "held"
        return 0
    found = [_input(draft, *one) for one in zip(causes, events, strict=True)]
    alike = list(takewhile(lambda one: one.sway is found[0].sway, found))
    taken = alike[: fitting(stored_size(one.blocks) for one in alike)]
    _begin(draft, taken)
    return len(taken)


def _input(draft: Draft, cause: Cause, event: Event) -> _Input:
    match event:
        case External():
            block = external.block_of(event)
            return _Input(cause, (block,), sways.of_event(event.payload))
        case ToldEvent():
            blocks = (home.block_of(event.payload, event.id),)
            return _Input(cause, blocks, sways.of(event.payload), is_own=_is_own_end(event))
        case Tick():
            return _Input(cause, (), Sway.NONE, event.payload.run)
        case ToolResultEvent() | TimerFired():
            task_id = result_of(draft.state, cause.seq)
            if task_id is None:
                return _Input(cause, (), Sway.NONE)
            result, _ = detached.block_of(draft, task_id, event)
            return _Input(cause, (result,), sways.of(result), is_own=True)
        case _:
            raise AssertionError(f"{cause.type} events are never queued here")


def _begin(draft: Draft, taken: Sequence[_Input]) -> None:
    """Begin a look, if there is anything to look at."""
    now, before = draft.moment.now, draft.state.mind
    goals, sway = _goals_for(draft, taken)
    if not sway.is_outside:
        habits.pursue(draft, taken[0].cause, draft.moment.habits)
    has_content = any(one.blocks for one in taken)
    slots = tuple(one.slot for one in taken if one.slot is not None)
    since, there = before.looked_at, draft.moment.goals
    if not (has_content or goals or any(lifecycle.is_missed(one.goal, since) for one in there)):
        draft.note("silent", NOTHING, taken[0].cause.id)
        draft.ended += [one.cause.id for one in taken]
        _report_slots(draft, slots, "")
        draft.outcome = "silent"
        return
    joined = tuple(one.cause.id for one in taken[1:])
    loops.begin(draft, taken[0].cause, is_direct=False, sway=sway, joined=joined)
    for one in taken:
        if one.blocks:
            source: Any = "external" if one.cause.type == "external" else "task"
            draft.row("user", source, *one.blocks)
    # Goals that are looked at beside results are none to begin anew by: one may be due for good.
    is_due = bool(slots and goals)
    is_own = has_content and all(one.is_own for one in taken if one.blocks) and not is_due
    draft.update(
        mind=replace(
            before,
            looked_at=now,
            wait_until=None,
            chain=before.chain + 1 if is_own else 0,
            taken=tuple(Queued(seq=one.cause.seq, type=one.cause.type) for one in taken),
            goals=tuple(goal.id for goal in goals),
            slots=slots,
        )
    )
    count = f"{len(taken)} came in, {len(goals)} goals are due"
    draft.note("look_begun", count, taken[0].cause.id)


def _goals_for(draft: Draft, taken: Sequence[_Input]) -> tuple[list[BoardGoal], Sway]:
    """Return the goals that a look is at, and what sways it."""
    sway = taken[0].sway
    if sway.is_outside:
        return [], sway
    due = lifecycle.due([one.goal for one in draft.moment.goals], draft.moment.now)
    trusted = [goal for goal in due if not sways.of(goal).is_outside]
    is_alone = not any(one.blocks for one in taken)
    if due and not trusted and is_alone:
        return due, Sway.OUTSIDE
    return trusted, sway


# ---------------------------------------------------------------- its end


def conclude(draft: Draft, answer: ModelAnswer) -> None:
    """Do what the answer decides and end the look, or ask once more."""
    decided = formed_answer.take(draft, answer, "decisions", decisions.read)
    if isinstance(decided, Unusable):
        draft.note("look_refused", decided.reason)
        if decided.is_last:
            give_up(draft, f"the model's answer could not be used: {decided.reason}")
        return
    deeds.carry_out(draft, decided)
    if not draft.sway.is_outside:
        habits.pursue(draft, draft.loop.cause, habits.after(draft, decided))
    mind = draft.state.mind
    deeds.mark_checked(draft, mind.goals)
    draft.update(mind=replace(mind, failures=0, looked=left.looked(draft)))
    _end(draft, "")


def fail(draft: Draft, error: ModelError) -> None:
    """Have it tried again, as any step; at last the look has failed."""
    if conclusion.tries_again(draft, error, is_unasked=error.is_unasked):
        return
    if error.budget_at is not None:
        draft.note("budget_exhausted", error.reason)
    give_up(draft, error.reason, until=error.budget_at)


def give_up(draft: Draft, reason: str, *, until: datetime | None = None) -> None:
    """End a look that failed: what it took is taken again, and no goal counts as looked at.

    Args:
        until: when the budget has room; None: it isn't that.
    """
    mind = draft.state.mind
    failures = mind.failures if until is not None else mind.failures + 1
    draft.update(mind=replace(mind, failures=failures, wait_until=until))
    again = [one for one in mind.taken if one.type != "tick"] if failures < TRIES_MAX else []
    loop = draft.loop
    _end(draft, reason, again=tuple(again))
    if again:
        draft.ended = [id_ for id_ in draft.ended if id_ not in (*loop.joined, loop.cause.id)]
    draft.note("look_failed", f"{reason}; {len(again)} that came in are looked at again")


def _end(draft: Draft, problem: str, *, again: tuple[Queued, ...] = ()) -> None:
    """End the look; without a problem, and at last with one, what it took is over."""
    mind = draft.state.mind
    kept = {one.seq for one in again}
    for one in mind.taken:
        task_id = result_of(draft.state, one.seq)
        if task_id is not None and one.seq not in kept:
            tasks.close_task(draft, task_id)
    end_loop(draft, "failed" if problem else "silent")
    _report_slots(draft, mind.slots, problem)
    draft.update(
        queue=(*again, *draft.state.queue),
        mind=replace(draft.state.mind, taken=(), goals=(), slots=()),
    )
    plan(draft)


def _report_slots(draft: Draft, slots: Sequence[SlotRun], problem: str) -> None:
    for slot in slots:
        payload = TellParentPayload(
            parent="", call_id="", slot=slot, state="failed" if problem else "done", content=problem
        )
        tasks.report(draft, payload, Sway.NONE)
