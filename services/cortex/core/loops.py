"""Loops: how an exchange is opened and closed, and what follows its end."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from vigil.contracts import (
    AGENT_FOLLOW_UP,
    CallTool,
    CallToolPayload,
    Cause,
    FollowUp,
    Loop,
    Pause,
)
from vigil.contracts.calls.caller import CallerTools
from vigil.contracts.turns import RecentExchange

from . import speech
from . import sway as sways
from .context import letters
from .draft import PAUSE_TIMER, Draft
from .sway import Sway

NEWS: Final = ("external", "told")
"""What isn't of the session's own making begins the count of what it plans by itself anew."""
TOLD_MAX: Final = 32
"""Ids of events that the state remembers; the broker drops repeats within two minutes."""


def begin(
    draft: Draft,
    cause: Cause,
    *,
    is_direct: bool,
    timer_id: str | None = None,
    follow_up: FollowUp | None = None,
    is_ordered: bool = False,
    sway: Sway = Sway.NONE,
    joined: tuple[str, ...] = (),
    purpose: str = "",
    task_id: str = "",
    words: tuple[str, ...] = (),
    replies: tuple[int, ...] = (),
    caller: CallerTools | None = None,
) -> None:
    """Open the loop for `cause`: the model will be asked.

    Args:
        sway: of what begins it, beside the follow-up.
        purpose: of a loop that is opened beside the session's own (`profiles`).
        words: what the person said, if they began it.
        replies: turns whose letters they replied to.
        caller: tools of the program through which they said it.
    """
    task = draft.state.tasks.get(task_id)
    draft.cause = cause
    before = _gone_on_from(draft) if is_direct else None
    loop = Loop(
        cause=cause,
        fence=draft.state.fence,
        begun_at=draft.moment.now,
        is_direct=is_direct,
        is_ordered=is_ordered or (follow_up is not None and follow_up.keep),
        tag=None if timer_id is None else AGENT_FOLLOW_UP,
        timer_id=timer_id,
        follow_up=follow_up,
        taint=sways.taint(sway if follow_up is None else sway | sways.of(follow_up)),
        joined=joined,
        purpose=purpose or draft.policy.profile.purpose,
        task_id=task_id,
        spawned=0 if task is None else task.spawned,
        begun_turn=draft.ordinal,
        open_from=draft.ordinal if before is None else before.begun_turn,
        files_from=draft.ordinal if before is None else before.files_from,
        opened=letters.pointed_at(words),
        replies=replies,
        words=words,
        caller=caller,
    )
    if cause.type in NEWS:
        draft.update(counters=replace(draft.state.counters, asked=0))
    draft.update(loop=loop)
    draft.outcome = "begun"


def ask_unasked(
    draft: Draft, cause: Cause, event_id: str, sway: Sway, timer: str, reason: str
) -> None:
    """Ask the model about what nobody asked for, if the gates admit it now.

    Args:
        timer: by which it's asked later, if the person's hours hold it back; all of that name are
            one.
        reason: what the model is told then.
    """
    refusal, until = speech.gate(draft, is_ordered=False), speech.held_until(draft)
    if refusal is not None:
        draft.note(f"blocked_{refusal.code}", refusal.text, event_id)
        draft.outcome = "blocked"
        draft.ended.append(cause.id)
    elif until is not None:
        speech.hold_model(draft, timer, reason, until, sway, event_id=event_id)
        draft.outcome = "held"
        draft.ended.append(cause.id)
    else:
        begin(draft, cause, is_direct=False, sway=sway)


def fold_once(draft: Draft, event_id: str) -> None:
    """Remember that an event was folded, so that a repeat isn't."""
    draft.update(told=(*draft.state.told, event_id)[-TOLD_MAX:])


def _gone_on_from(draft: Draft) -> RecentExchange | None:
    """Return the exchange that a message of the person's goes on from, if that holds letters."""
    before = draft.state.exchange
    open_for = timedelta(seconds=draft.policy.letters_open_s)
    is_near = before is not None and draft.moment.now - before.ended_at <= open_for
    return before if is_near else None


def steps_left(draft: Draft) -> int:
    """Return how many calls of its model the open loop may yet make, or lend."""
    return draft.policy.calls_max - draft.loop.calls - draft.loop.lent


def take_in(draft: Draft, sway: Sway) -> None:
    """Let what a result brings have its part in all that the open loop decides from now on."""
    if sway.is_outside:
        draft.update_loop(taint=sways.taint(sway))


def call_tool(draft: Draft, payload: CallToolPayload, sway: Sway) -> str:
    """Ask a service to run a tool; return the effect's id, which its result names."""
    source = draft.source if payload.service == "memory" else ""
    payload = replace(payload, source=source, is_tainted=sway.is_outside)
    effect, ordinal = draft.next_id("call_tool", payload, payload.service)
    draft.effects.append(CallTool(id=effect, ordinal=ordinal, payload=payload))
    return effect


# ---------------------------------------------------------------- pauses


def next_pause_at(draft: Draft) -> datetime:
    """When the conversation counts as paused, if nothing more is said from now on."""
    return draft.moment.now + timedelta(seconds=draft.policy.pause_s)


def await_pause(draft: Draft, due_at: datetime, hours_at: datetime | None = None) -> None:
    """Set the deadline at which it is looked whether the conversation pauses."""
    draft.set_deadline(PAUSE_TIMER, due_at, hours_at)
    draft.update(pause=Pause(generation=draft.ordinal, due_at=due_at))


def await_pause_after(draft: Draft, loop: Loop) -> None:
    """Remember from where on memory is to be offered what was said."""
    if not draft.policy.pause_s:
        draft.update(is_offered=False)
        return
    if not draft.state.unsaved_from:
        # Its rows are in later turns than the event that it answers.
        start = loop.cause.seq
        if not draft.state.is_offered:
            start = min(draft.state.history_from or start, start)
        draft.update(unsaved_from=start, is_offered=True)
    if draft.state.pause is None:
        await_pause(draft, next_pause_at(draft))
    else:
        draft.update(pause=replace(draft.state.pause, due_at=next_pause_at(draft)))
