"""What a message of the person does (SPEC S-6, S-13).

It voids what the agent planned on its own, ends what it was doing on its own, and is answered:
at once, or after what is being answered (`enqueue`), or instead of it (`interrupt`), or together
with what else the person is about to say (`coalesce`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from vigil.contracts import (
    Block,
    Cause,
    FollowUp,
    Gathering,
    Queued,
    TimerPayload,
    UserMessage,
    UserMessagePayload,
)
from vigil.contracts.events import Replaced
from vigil.words.own import kept

from . import gates, loops, speech
from . import sway as sways
from .allowance import more
from .context import replied
from .context.versions import is_gone, taken_back_by
from .draft import Draft, sight
from .mind import stop
from .pending import requests
from .queue import COALESCE_TIMER, QUEUE_MAX, enqueue, fitting, in_its_place, stored_size
from .tools import callers
from .work import detached, spoken
from .work.loop_end import end_loop

KEYED_MAX: Final = 32
"""Ids of keyed messages that the state remembers; older repeats are the gateway's to catch."""
CHANNELS_MAX: Final = 8
"""Channels that the state remembers the person by."""
WINDOWS_MAX: Final = 10
"""For so many windows at most is a message held back because others follow it."""


def receive(draft: Draft, cause: Cause, event: UserMessage) -> None:
    """Fold a user message."""
    state = draft.state
    if event.payload.is_keyed and event.id in state.keyed:
        _let_pass(draft, cause)
        draft.note("repeat", "an event with this id was folded before", event.id)
        return
    if event.payload.is_keyed:
        draft.update(keyed=(*state.keyed, event.id)[-KEYED_MAX:])
    _come_through(draft, event.payload.channel)
    if event.payload.replaces is None and _decides(draft, cause, event):
        return
    speak_first(draft, cause)
    if event.payload.replaces is not None:
        _take_back(draft, cause, event.payload.replaces)
    spoken.call_off(draft, event.payload.text)
    if draft.policy.double_text == "interrupt":
        _interrupt(draft)
    _leave_caller(draft)
    _await_answer(draft, cause, event)
    draft.cause = cause


def _come_through(draft: Draft, channel: str) -> None:
    """Know by which channel the person is to be found now, and by which before."""
    draft.update(is_locked=False, channel=channel)
    if channel:
        others = [one for one in draft.state.channels if one != channel]
        draft.update(channels=(channel, *others)[:CHANNELS_MAX])


def _let_pass(draft: Draft, cause: Cause) -> None:
    """Go on as if the message had not come: delivery can't tell it from one that counts.

    What is decided from here on knows of it, also by the loop that is open, if that knew of all
    that was said.
    """
    if draft.state.loop is not None and not draft.is_overtaken:
        draft.update_loop(fence=cause.seq)
    draft.update(fence=cause.seq)
    speech.take_back(draft)


def _decides(draft: Draft, cause: Cause, event: UserMessage) -> bool:
    """Take the message for a verdict, the end of a goal or a raise of their limit, if it is that
    and nothing else; return whether it was."""
    text, by = event.payload.text, event.payload.by or draft.key.partition(":")[0]
    words, stopped, is_named = spoken.read(text), stop.read(text), more.read(text)
    if words is None and stopped is None and is_named is None:
        return False
    draft.cause = cause
    is_decided = words is not None and spoken.decide(
        draft, words, by=by, channel=event.payload.channel
    )
    is_decided = is_decided or (stopped is not None and stop.decide(draft, stopped))
    if not is_decided and is_named is not None:
        is_decided = more.decide(draft, is_named=is_named, by=by)
    if not is_decided:
        return False
    _let_pass(draft, cause)
    draft.ended.append(cause.id)
    draft.outcome = "decided"
    return True


def speak_first(draft: Draft, cause: Cause) -> None:
    """Do what every user message does, whether it can be read or not."""
    draft.update(fence=cause.seq, counters=gates.reset(draft.state.counters))
    speech.take_back(draft)
    more.pass_by(draft)
    void_follow_ups(draft, "the person spoke first")
    requests.pass_by(draft)
    _close_undirected_loop(draft)


def _await_answer(draft: Draft, cause: Cause, event: UserMessage) -> None:
    state = draft.state
    is_gathering = draft.policy.double_text == "coalesce"
    if len(state.queue) >= QUEUE_MAX:
        draft.note("queue_full", "too many events are waiting in this session", event.id)
        draft.ended.append(cause.id)
    elif state.loop is not None:
        enqueue(draft, cause, is_person_first=is_gathering)
        if state.loop.is_stopped and state.loop.retry is not None:
            text = (
                f"I can't answer yet: {state.loop.retry.reason}. I'll take it up after the other."
            )
            speech.say(draft, text, draft.sway, is_autonomous=False)
    elif is_gathering:
        _gather(draft, cause)
    elif state.queue:
        enqueue(draft, cause, is_person_first=True)
    else:
        answer(draft, [(cause, event)])


def answer(draft: Draft, messages: Sequence[tuple[Cause, UserMessage]]) -> None:
    """Open the loop that answers these messages together; the last one is its cause."""
    cause = messages[-1][0]
    joined = tuple(before.id for before, _ in messages[:-1])
    words = kept(event.payload.text for _, event in messages)
    meant = [event.payload.reply_to for _, event in messages]
    closed = tuple(dict.fromkeys(one.turn_seq for one in meant if one and not one.quote))
    # The newest request alone waits for calls: those of the others would go to nobody.
    caller = messages[-1][1].payload.caller
    loops.begin(
        draft, cause, is_direct=True, joined=joined, words=words, replies=closed, caller=caller
    )
    for _, event in messages:
        shown = _shown(draft, event.payload)
        draft.row("user", "person", *shown, by=event.payload.by)
        loops.take_in(draft, sways.of_blocks(shown))
    for event_id in joined:
        draft.note("joined", f"answered together with {cause.id}", event_id)


def _shown(draft: Draft, payload: UserMessagePayload) -> tuple[Block, ...]:
    blocks = sight.blocks_of(payload.text, payload.attachments, draft.policy.sight)
    return blocks if payload.reply_to is None else (replied.block_of(payload.reply_to), *blocks)


def take(draft: Draft, messages: Sequence[tuple[Cause, UserMessage]]) -> int:
    """Answer as many queued messages as fit into one turn; return how many."""
    count = fitting(stored_size(_shown(draft, event.payload)) for _, event in messages)
    answer(draft, messages[:count])
    return count


def void_follow_ups(draft: Draft, why: str) -> None:
    """Void every open follow-up that the person didn't ask to keep (SPEC S-6)."""
    for timer_id, follow_up in draft.state.follow_ups.items():
        if not follow_up.keep:
            draft.close_follow_up(timer_id)
            draft.note("void", why, timer_id)


def _close_undirected_loop(draft: Draft) -> None:
    """Close a loop that no user message began. A kept reminder is taken up again later."""
    loop = draft.state.loop
    if loop is None or loop.is_direct:
        return
    if draft.is_aside:
        draft.make_way("the person spoke")
        return
    task = draft.state.tasks.get(loop.task_id)
    is_unsaid = loop.is_ordered and not draft.has_spoken  # what was said isn't said again
    end_loop(draft, None)
    if is_unsaid and loop.timer_id is not None and loop.follow_up is not None:
        _put_back(draft, loop.cause, loop.timer_id, loop.follow_up)
    elif is_unsaid and task is not None:
        detached.put_back(draft, loop.cause, loop.task_id, task)
    else:
        draft.note("void", "the person spoke first", loop.timer_id or loop.cause.id)


def _put_back(draft: Draft, cause: Cause, timer_id: str, follow_up: FollowUp) -> None:
    """Take up a reminder again after the message."""
    if timer_id in draft.state.follow_ups:
        # It has planned its next time under its own name; that one stays, and this one comes, too.
        speech.bring_again(draft, follow_up)
    else:
        draft.ended.remove(cause.id)
        queue = in_its_place(draft.state.queue, Queued(seq=cause.seq, type="timer"))
        draft.update(follow_ups={**draft.state.follow_ups, timer_id: follow_up}, queue=queue)
    draft.note("put_back", "the person spoke first; the reminder follows", timer_id)


def _take_back(draft: Draft, cause: Cause, replaced: Replaced) -> None:
    """Go back to before a message: what was said, planned and asked for since counts no more."""
    if is_gone(draft.state.taken_back, replaced):
        return  # two were sent at once, and the other came first
    _interrupt(draft)
    state = draft.state
    for timer_id in state.follow_ups.keys() - set(replaced.follow_ups):
        draft.close_follow_up(timer_id)
        draft.note("void", "the message that it came from was taken back", timer_id)
    requests.take_back(draft, replaced.turn)
    gone = [q for q in state.queue if q.type == "user_message" and q.seq >= replaced.seq]
    if gone and state.gathering is not None:
        draft.cancel_deadline(COALESCE_TIMER, state.gathering.generation)
        draft.update(gathering=None)
    draft.ended += [f"seq-{one.seq}" for one in gone]
    draft.history_from = replaced.history_from
    draft.update(
        queue=tuple(one for one in draft.state.queue if one not in gone),
        summary_seq=replaced.summary_seq,
        exchange=None,
        taken_back=taken_back_by(state.taken_back, replaced, by=cause.seq, last=state.turns),
    )


def _interrupt(draft: Draft) -> None:
    """Close the loop that answers an earlier message; what it said stays."""
    loop = draft.state.loop
    if loop is None:
        return
    for event_id in (*loop.joined, loop.cause.id):
        draft.note("interrupted", "the person wrote again before it was answered", event_id)
    end_loop(draft, None)


def _leave_caller(draft: Draft) -> None:
    """Close the loop that waits for the program of the caller: it went on, or is gone."""
    loop = draft.state.loop
    left = callers.open_calls(loop)
    if loop is not None and left:
        tools = ", ".join(dict.fromkeys(call.tool for call in left))
        draft.note("interrupted", callers.LEFT.format(tools=tools), loop.cause.id)
        end_loop(draft, None)


# ---------------------------------------------------------------- waiting for more


def _gather(draft: Draft, cause: Cause) -> None:
    """Let the message wait for others.

    The deadline that is set with the first one stays; when it comes, it is set anew if others
    followed. So a burst costs two timers or three, not one for each message.
    """
    enqueue(draft, cause, is_person_first=True)
    window = timedelta(milliseconds=draft.policy.coalesce_ms)
    due_at = draft.moment.now + window
    waiting = draft.state.gathering
    if waiting is None:
        latest_at = draft.moment.now + WINDOWS_MAX * window
        draft.set_deadline(COALESCE_TIMER, due_at)
        waiting = Gathering(generation=draft.ordinal, due_at=due_at, latest_at=latest_at)
    draft.update(gathering=replace(waiting, due_at=min(due_at, waiting.latest_at)))


def is_ended_by(waiting: Gathering, payload: TimerPayload) -> bool:
    """Whether that deadline is the one of this wait."""
    return payload.timer_id == COALESCE_TIMER and payload.generation == waiting.generation


def end_wait(draft: Draft, waiting: Gathering, due_at: datetime) -> None:
    """End the wait with its deadline, unless more was said since that was set for `due_at`."""
    if due_at < waiting.due_at:
        draft.set_deadline(COALESCE_TIMER, waiting.due_at)
        draft.update(gathering=replace(waiting, generation=draft.ordinal))
        draft.outcome = "queued"
    else:
        draft.update(gathering=None)
        draft.outcome = "begun"
