"""Whether content from outside had a part in what a session decides: the one place that asks.

Such content may say anything, and a model may obey what it reads (SPEC X-3). So what counts is what
a model was *shown*: by the event that began the loop, by a result, or by whatever stands in the
thread, be it a row, a summary, or the text of an open plan. What it decides then is swayed, and
whatever it makes is marked: a message, a plan, a memory, a call, a session, a request.

Rules take a `Sway`, which no bool stands in for; it is made here alone. The marks that it is made
of are a `Taint`, which the type checker lets nobody else test. A mark isn't taken off again, but
for what a person accepted word for word.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from msgspec.structs import replace

from vigil.contracts import (
    AttachmentBlock,
    Block,
    ExternalBlock,
    ExternalPayload,
    Job,
    Loop,
    State,
    Taint,
    TaskBlock,
    TimerBlock,
    Turn,
)


class Sway(enum.Enum):
    """What had a part in a decision, or in a text.

    >>> Sway.NONE | Sway.OUTSIDE
    <Sway.OUTSIDE: 'outside'>
    """

    NONE = "none"
    """The person, the agent, and what they may trust."""
    OUTSIDE = "outside"

    @property
    def is_outside(self) -> bool:
        return self is Sway.OUTSIDE

    def __or__(self, other: Sway) -> Sway:
        return other if self is Sway.NONE else self


class HistorySeen(Protocol):
    """The circumstances of a decision, as far as they tell what a model is shown of before."""

    @property
    def is_history_tainted(self) -> bool: ...


class ThreadSeen(Protocol):
    """Who is asked, as far as that tells what they are shown."""

    @property
    def is_thread_shown(self) -> bool: ...


class Marked(Protocol):
    """A record that tells whether it descends from untrusted content. A `Loop` is none: its mark
    is only a part of what sways it."""

    @property
    def is_tainted(self) -> bool: ...


def of(*records: Marked) -> Sway:
    """Return the sway of what is made of these records, and of nothing else."""
    return _sway(any(record.is_tainted for record in records))


def of_event(event: ExternalPayload) -> Sway:
    """Return the sway of what an event from outside tells."""
    return _sway(not event.is_trusted)


def of_job(job: Job) -> Sway:
    """Return the sway of a job's plan: its input is material, unless who handed it in vouches."""
    return _sway(bool(job.input) and not job.is_vouched)


def of_decision(state: State, moment: HistorySeen, thinking: ThreadSeen) -> Sway:
    """Return the sway of what the open loop decides.

    Of the thread before it a loop is shown closed letters (`context.letters`): they sway nobody
    until they are opened, which marks the loop. A loop that an older version began is shown them
    open; but who plans a job, or looks back at a pause, is shown the job, or the offer, alone.

    Args:
        thinking: who is asked in the open loop.
    """
    loop = state.loop
    if loop is None:
        raise AssertionError("no loop is open")
    if loop.begun_turn or not thinking.is_thread_shown:
        return of_loop(loop)
    return of_loop(loop) | of_thread(state, moment)


def of_loop(loop: Loop | None) -> Sway:
    """Return the sway of what a loop is shown: of its own rows, and of letters that are open."""
    if loop is None:
        return Sway.NONE
    if loop.open_from < loop.begun_turn or loop.opened or loop.replies:
        return Sway.OUTSIDE
    return of_own_rows(loop)


def of_own_rows(loop: Loop | None) -> Sway:
    """Return the sway of what stands in the rows of a loop: what began it, and its results."""
    return _sway(loop is not None and (bool(loop.taint) or bool(loop.caller_taint)))


def beside_caller(loop: Loop) -> Sway:
    """Return the sway of what a loop is shown but for what its program gave it."""
    return of_loop(replace(loop, caller_taint=taint(Sway.NONE)))


def of_thread(state: State, moment: HistorySeen) -> Sway:
    """Return the sway of what a session was ever shown, or would be now: turns of older versions
    have no mark of the thread."""
    return _sway(bool(state.taint) or moment.is_history_tainted)


def recorded(moment: HistorySeen) -> bool:
    """Return what a turn records of the history that its model was shown, to be decided again."""
    return moment.is_history_tainted


def taint(sway: Sway) -> Taint:
    """Return the mark to keep."""
    return Taint(sway.is_outside)


def _sway(is_outside: bool) -> Sway:
    return Sway.OUTSIDE if is_outside else Sway.NONE


def of_blocks(blocks: Iterable[Block]) -> Sway:
    """Return the sway of what a model is shown by rows. Whoever attached a file, what it shows may
    be by anybody."""
    for block in blocks:
        is_outside = _OUTSIDE.get(type(block))
        if is_outside is not None and is_outside(block):
            return Sway.OUTSIDE
    return Sway.NONE


_OUTSIDE: Final[dict[type[Block], Callable[[Any], bool]]] = {
    ExternalBlock: lambda block: not block.event.is_trusted,
    TimerBlock: lambda block: block.follow_up.is_tainted,
    TaskBlock: lambda block: block.is_tainted,
    AttachmentBlock: lambda block: not block.is_trusted,
}
"""The kinds of blocks that may be by anybody, and whether one is."""


# ---------------------------------------------------------------- turns


def of_rows(turn: Turn) -> Sway:
    """Return the sway of what a turn's rows say: untrusted content stands in them, or began the
    loop that they are of."""
    if turn.is_tainted:
        return Sway.OUTSIDE
    for row in turn.rows:
        if of_blocks(row.blocks) is Sway.OUTSIDE:
            return Sway.OUTSIDE
    return of_own_rows(turn.state.loop)


def of_writing(turn: Turn) -> Sway:
    """Return the sway of who wrote a turn's rows: what a model says that was shown untrusted
    content may hand on what it read, wherever that stood."""
    if turn.is_swayed:
        return Sway.OUTSIDE
    for effect in turn.effects:
        if getattr(effect.payload, "is_tainted", False):
            return Sway.OUTSIDE
    return Sway.NONE


def of_what_stays(turn: Turn) -> Sway:
    """Return the sway of what a model may be shown of a turn later: its rows, its summary, and
    the plans, tasks and requests that its state holds."""
    state = turn.state
    rows = of_rows(turn) | of_writing(turn) if turn.rows else Sway.NONE
    plans = of(*state.follow_ups.values(), *state.tasks.values(), *state.approvals.values())
    return rows | plans | _sway(bool(turn.summary) and turn.is_summary_tainted)


__all__ = [
    "Marked",
    "Sway",
    "beside_caller",
    "of",
    "of_blocks",
    "of_decision",
    "of_event",
    "of_job",
    "of_loop",
    "of_own_rows",
    "of_rows",
    "of_thread",
    "of_what_stays",
    "of_writing",
    "taint",
]
