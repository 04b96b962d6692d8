"""The queue of a session: what was folded and waits for its turn to be answered (SPEC S-13)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Any, Final

import msgspec

from vigil.contracts import Cause, Queued, State

from .draft import Draft
from .draft.policy import Policy

COALESCE_TIMER: Final = "_coalesce"
"""When what was gathered of a person's messages is answered."""
QUEUE_MAX: Final = 10_000
"""Events that wait, user messages included: a quarter of a megabyte of the turn. The gateway
refuses a person long before; only who publishes on the bus comes here."""
TOGETHER_MAX: Final = 50
"""Queued events that one turn takes."""
TOGETHER_BYTES_MAX: Final = 128 * 1024
"""Text that they may bring into one turn, as it is stored; the first is always taken."""


def enqueue(draft: Draft, cause: Cause, *, is_person_first: bool = False) -> None:
    """Let the event wait.

    `is_person_first`: a user message goes before what else is waiting. Only events from outside
    stay before it: it voids them, so no model is asked, and its answer is to know of them.
    """
    queue, queued = draft.state.queue, Queued(seq=cause.seq, type=cause.type)
    queue = in_its_place(queue, queued) if is_person_first else (*queue, queued)
    draft.update(queue=queue)
    draft.outcome = "queued"


def in_its_place(queue: tuple[Queued, ...], queued: Queued) -> tuple[Queued, ...]:
    """Return the queue with one more entry, which came in before others that wait.

    What was begun and put back keeps its place: timers come in by the order in which they are due.

    >>> timers = Queued(seq=5, type="timer"), Queued(seq=6, type="timer")
    >>> spoken = Queued(seq=7, type="user_message")
    >>> [q.seq for q in in_its_place((*timers, spoken), Queued(seq=4, type="timer"))]
    [7, 4, 5, 6]
    """
    return tuple(sorted((*queue, queued), key=_rank))


def _rank(queued: Queued) -> tuple[int, int]:
    return {"external": 0, "user_message": 1}.get(queued.type, 2), queued.seq


def is_void(state: State, queued: Queued) -> bool:
    """Whether the person has spoken since an event from outside came in.

    >>> is_void(State(fence=9), Queued(seq=7, type="external"))
    True
    """
    return queued.type == "external" and queued.seq < state.fence


def result_of(state: State, seq: int) -> str | None:
    """Return the task that the event `seq` ended, if that waits to be taken up."""
    found = (id_ for id_, task in state.tasks.items() if task.told_seq == seq)
    return next(found, None)


def head(state: State, policy: Policy) -> tuple[Queued, ...]:
    """Return the queued entries that the next turn may take, if no loop is open.

    Void events from outside only become rows, so they go together. User messages do if the agent
    joins what it is told (`coalesce`).
    """
    queue = state.queue
    if not queue:
        return ()
    if policy.profile.take is not None:
        return queue[:TOGETHER_MAX]
    if is_void(state, queue[0]):
        run = takewhile(lambda queued: is_void(state, queued), queue)
    elif queue[0].type == "user_message" and policy.double_text == "coalesce":
        run = takewhile(lambda queued: queued.type == "user_message", queue)
    else:
        return queue[:1]
    return tuple(run)[:TOGETHER_MAX]


def fitting(sizes: Iterable[int]) -> int:
    """Return how many of them fit into one turn; the first always does.

    >>> fitting([200_000, 1]), fitting([60_000, 60_000, 60_000])
    (1, 2)
    """
    count, left = 0, TOGETHER_BYTES_MAX
    for size in sizes:
        left -= size
        if count and left < 0:
            break
        count += 1
    return count


def stored_size(record: Any) -> int:
    """Return how many bytes it takes in a turn: control characters take six each."""
    return len(msgspec.json.encode(record))
