"""What signals there are: each kind, what it means, and which function derives it. Pure.

A signal describes a record of the log in general terms. It decides nothing: the record that
`source` names is the truth. A new kind is a row here; the projector, the
filters of readers, the documents of the API and docs/reference/signals.md follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..contracts import (
    BoardEntry,
    DeadLetter,
    MemoriesMerged,
    MemoriesReplaced,
    MemoriesUndone,
    MemoryForgotten,
    MemorySaved,
    Receipt,
    Said,
    SlotEntry,
    Turn,
)
from ..errors import InvalidInput
from ..subjects import SessionKey
from . import board, children, conversations, letters, memories, slots
from .draft import Signals


class Giver(NamedTuple):
    """Records of a stream, and the function that turns them into signals."""

    stream: str
    record: type | tuple[type, ...]
    derive: Callable[[Signals, Any], None]


class Kind(NamedTuple):
    meaning: str
    givers: tuple[Giver, ...]
    """Several kinds may share one: it tells each record once. All are of one stream."""


_STARTED: Final = Giver("SESSIONS", Turn, conversations.started)
_COMMITTED: Final = Giver("SESSIONS", Turn, conversations.committed)
_COMPACTED: Final = Giver("SESSIONS", Turn, conversations.compacted)
_FIRED: Final = Giver("SESSIONS", Turn, conversations.fired)
_SCHEDULED: Final = Giver("SESSIONS", Turn, conversations.scheduled)
_NOTED: Final = Giver("SESSIONS", Turn, conversations.noted)
_SAID: Final = Giver("SESSIONS", Said, conversations.said)
_DELIVERED: Final = Giver("SESSIONS", Receipt, conversations.delivered)
_SAVED: Final = Giver("MEMORIES", MemorySaved, memories.saved)
_MERGED: Final = Giver("MEMORIES", MemoriesMerged, memories.merged)
_REPLACED: Final = Giver("MEMORIES", MemoriesReplaced, memories.replaced)
_FORGOTTEN: Final = Giver("MEMORIES", (MemoryForgotten, MemoriesUndone), memories.forgotten)
_CHILD: Final = Giver("SYSTEM", Turn, children.emit)
_LOOKED: Final = Giver("SYSTEM", Turn, children.looked)
_ASKED: Final = Giver("BOARD", BoardEntry, board.asked)
_WORKED: Final = Giver("BOARD", BoardEntry, board.worked)
_USED: Final = Giver("BOARD", BoardEntry, board.used)
_MOVED: Final = Giver("BOARD", BoardEntry, board.moved)
_DUE: Final = Giver("SLOTS", SlotEntry, slots.emit)
_PURSUED: Final = Giver("BOARD", BoardEntry, board.pursued)
_LEARNED: Final = Giver("BOARD", BoardEntry, board.learned)
_FACTS_CHANGED: Final = Giver("BOARD", BoardEntry, board.facts_changed)
_ACTED: Final = Giver("BOARD", BoardEntry, board.acted)
_REFRESHED: Final = Giver("BOARD", BoardEntry, board.refreshed)
_REFUSED: Final = Giver("DEAD", DeadLetter, letters.refused)
_TRIPPED: Final = Giver("BOARD", BoardEntry, board.tripped)

KINDS: Final[dict[str, Kind]] = {
    "session.started": Kind("a session committed its first turn", (_STARTED,)),
    "turn.committed": Kind("a turn was committed", (_COMMITTED,)),
    "compaction.triggered": Kind(
        "the oldest part of a conversation was summarized or dropped", (_COMPACTED,)
    ),
    "timer.fired": Kind("a follow-up or reminder came due", (_FIRED,)),
    "timer.scheduled": Kind("a follow-up or reminder was planned or delayed", (_SCHEDULED,)),
    "timer.voided": Kind("a follow-up ended because the person wrote or cleared it", (_NOTED,)),
    "timer.cancelled": Kind("a person or the agent cancelled a timer", (_NOTED,)),
    "message.sent": Kind("a message is in the transcript", (_SAID,)),
    "message.delivered": Kind("a channel took a message", (_DELIVERED,)),
    "message.blocked": Kind("the gates refused an autonomous message", (_NOTED,)),
    "message.dropped": Kind(
        "a decided or unfinished message is not said: void, or no longer wanted",
        (_NOTED, _DELIVERED),
    ),
    "message.failed": Kind("a message could not be said or delivered", (_DELIVERED,)),
    "message.ambiguous": Kind(
        "it is unknown whether a channel took a message; it isn't sent again", (_DELIVERED,)
    ),
    "budget.exhausted": Kind("a model call was refused: a limit of the day is reached", (_NOTED,)),
    "budget.warned": Kind(
        "a person is told that a limit of the day is nearly reached, or reached", (_NOTED,)
    ),
    "model.fallback": Kind(
        "the model gave no answer, and another one is asked for a while", (_NOTED,)
    ),
    "memory.saved": Kind("a memory was saved", (_SAVED,)),
    "memory.merged": Kind("a summary replaced several memories", (_MERGED,)),
    "memory.replaced": Kind(
        "a memory that says the same, more, or how it is by now, stands for others", (_REPLACED,)
    ),
    "memory.forgotten": Kind(
        "memories ended: on request, undone, expired or decayed", (_FORGOTTEN,)
    ),
    "reader.started": Kind("a reader began to look something up", (_CHILD,)),
    "reader.completed": Kind("a reader reported what it found", (_CHILD,)),
    "reader.failed": Kind("a reader failed, ran out of time or was cancelled", (_CHILD,)),
    "worker.started": Kind("a worker began its task", (_CHILD,)),
    "worker.status": Kind("a worker reported progress, or waits for a person", (_CHILD,)),
    "worker.completed": Kind("a worker reported its result", (_CHILD,)),
    "worker.failed": Kind("a worker failed, ran out of time or was cancelled", (_CHILD,)),
    "branch.started": Kind("a conversation started a branch", (_CHILD,)),
    "branch.completed": Kind("a branch reported its result", (_CHILD,)),
    "branch.failed": Kind("a branch failed, ran out of time or was cancelled", (_CHILD,)),
    "mind.decided": Kind("a look of the mind decided something", (_LOOKED,)),
    "mind.failed": Kind("a look of the mind failed: nothing counts as looked at", (_LOOKED,)),
    "approval.requested": Kind("a call, or a question, waits for a person", (_ASKED,)),
    "approval.decided": Kind(
        "a person decided on a request, or it expired, was superseded or isn't needed", (_ASKED,)
    ),
    "grant.used": Kind("a standing grant let a call run without asking", (_USED,)),
    "task.proposed": Kind("the agent made a task, which waits for a person", (_MOVED,)),
    "task.ready": Kind(
        "a task waits for its turn: made so, approved, or to be tried again", (_MOVED,)
    ),
    "task.shelved": Kind("a task is kept for later, or was cancelled", (_MOVED,)),
    "task.started": Kind("a worker began a task", (_MOVED,)),
    "task.completed": Kind("a task is done", (_MOVED,)),
    "task.failed": Kind("a task failed for good", (_MOVED,)),
    "goal.active": Kind("a goal was made or resumed, and is pursued", (_PURSUED,)),
    "goal.paused": Kind("a goal is paused, or waits for a person", (_PURSUED,)),
    "goal.completed": Kind("a goal is reached", (_PURSUED,)),
    "goal.failed": Kind("a goal was given up, or its deadline passed", (_PURSUED,)),
    "goal.archived": Kind("a goal was put away", (_PURSUED,)),
    "preference.learned": Kind("a preference was taught, confirmed or doubted", (_LEARNED,)),
    "preference.corrected": Kind("a person said how something is not to be", (_LEARNED,)),
    "preference.removed": Kind("a person removed a preference", (_LEARNED,)),
    "fact.changed": Kind("a fact that a row names is another than before", (_FACTS_CHANGED,)),
    "action.taken": Kind("the agent did something that nobody ordered", (_ACTED,)),
    "action.ended": Kind("what the agent did by itself ended", (_ACTED,)),
    "action.judged": Kind("a person said how they liked what the agent did", (_ACTED,)),
    "job.started": Kind("a job began to run", (_WORKED,)),
    "job.completed": Kind("a job ran all its steps; some may have failed", (_WORKED,)),
    "job.failed": Kind("a job could not be planned", (_WORKED,)),
    "job.cancelled": Kind("a person cancelled a job", (_WORKED,)),
    "cron.started": Kind("a job of the timetable began", (_DUE,)),
    "cron.completed": Kind("a job of the timetable ran", (_DUE,)),
    "cron.failed": Kind("a job of the timetable failed, or gave no end", (_DUE,)),
    "cron.missed": Kind("a job of the timetable was missed, and isn't made up for", (_DUE,)),
    "autonomy.started": Kind("the agent began a cycle", (_DUE,)),
    "autonomy.finished": Kind("a cycle of the agent's ended, or failed", (_DUE,)),
    "autonomy.skipped": Kind("there was nothing for a cycle to do, and why", (_DUE,)),
    "bulletin.refreshed": Kind("a bulletin says something new, and who put it so", (_REFRESHED,)),
    "event.refused": Kind("an event of a program on the bus could not be used", (_REFUSED,)),
    "circuit.opened": Kind(
        "a model, server or channel failed again and again, and isn't asked for a while",
        (_TRIPPED,),
    ),
    "circuit.closed": Kind("it answered again, or a person reset it", (_TRIPPED,)),
    "error.model": Kind("the model gave no answer, and the exchange was given up", (_NOTED,)),
    "error.retry": Kind("the model gave no answer, and will be asked again", (_NOTED,)),
    "error.event": Kind("an event was unusable, or given up", (_NOTED,)),
}
"""The kinds of SPEC C-4 whose causes exist. What one record gives comes in the order of its givers
here. The first half of a kind is of one stream alone: the last signal tells how far it is told."""


def wanted() -> tuple[str, ...]:
    """Return what a reader may ask for: a kind, or a half of one (``message.*``)."""
    return (*KINDS, *dict.fromkeys(f"{kind.partition('.')[0]}.*" for kind in KINDS))


def check_kind(pattern: str) -> str:
    """Return a kind, or one of its halves with a wildcard (``message.*``), if there is such.

    Raises:
        InvalidInput: no signal has that kind.
    """
    if pattern in wanted():
        return pattern
    valid = ", ".join(KINDS)
    raise InvalidInput("kind", f"is {pattern!r}, which is no kind of signal; kinds: {valid}")


def key_of(subject: str) -> tuple[SessionKey, str]:
    """Split a signal's subject -> (the session, the kind).

    >>> key, kind = key_of("signal.vigil.ann.message.sent.t1")
    >>> str(key), kind
    ('ann:vigil:t1', 'message.sent')
    """
    _, agent, user, first, second, thread = subject.split(".")
    return SessionKey(user, agent, thread), f"{first}.{second}"
