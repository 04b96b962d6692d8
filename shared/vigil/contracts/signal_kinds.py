"""What a signal may be called, and how signals are selected. Pure.

A signal tells a record of the log at the level of what happened. It decides nothing: whoever
wants to be sure reads the record that `source` names.
"""

from __future__ import annotations

from typing import Final

from ..errors import InvalidInput
from ..subjects import SessionKey

KINDS: Final[dict[str, str]] = {
    "session.started": "a session committed its first turn",
    "turn.committed": "a turn is in the log",
    "timer.scheduled": "a follow-up or a reminder was planned, or put off",
    "timer.fired": "a follow-up or a reminder came due and was taken up",
    "timer.voided": "a follow-up was dropped because the person spoke, or was cleared",
    "timer.cancelled": "a person or the agent cancelled it",
    "message.sent": "something is in the transcript",
    "message.delivered": "a channel took a message",
    "message.blocked": "the gates refused an autonomous message",
    "message.dropped": "what was decided, or in the making, is not said: void, or no longer wanted",
    "message.failed": "a message could not be said or delivered, and was given up",
    "message.ambiguous": "whether a channel took a message is not known, and it isn't sent again",
    "budget.exhausted": "a model call was refused because the day's tokens are used up",
    "compaction.triggered": "the oldest part of a conversation was summed up or dropped",
    "memory.saved": "something is remembered",
    "memory.merged": "a summary took the place of several memories",
    "memory.forgotten": "memories are recalled no more: asked for, undone, expired or decayed",
    "worker.started": "a worker began its task",
    "worker.status": "a worker told how it goes, or that it waits for a person",
    "worker.completed": "a worker is done, and told its result",
    "worker.failed": "a worker failed, ran out of time or was cancelled",
    "branch.started": "a conversation began to think about something apart",
    "branch.completed": "a branch is done, and told what it came to",
    "branch.failed": "a branch failed, ran out of time or was cancelled",
    "approval.requested": "a call, or a question, waits for a person",
    "approval.decided": "a person decided on it, or it expired, was superseded or isn't needed",
    "job.started": "a job began to run",
    "job.completed": "a job ran all of its steps; some may have failed",
    "job.failed": "a job was given up: it could not be planned",
    "job.cancelled": "a person cancelled a job",
    "error.model": "a model gave no answer, and the exchange was given up",
    "error.retry": "a model gave no answer, and will be asked again",
    "error.event": "an event could not be used, or was given up",
}
"""Kind -> what it means. The kinds of SPEC C-4 whose causes exist."""


KINDS_WANTED: Final = (*KINDS, *dict.fromkeys(f"{kind.partition('.')[0]}.*" for kind in KINDS))
"""What a reader may ask for: a kind, or a half of one."""


def check_kind(pattern: str) -> str:
    """Return a kind, or one of its halves with a wildcard (``message.*``), if there is such.

    Raises:
        InvalidInput: no signal has that kind.
    """
    if pattern in KINDS_WANTED:
        return pattern
    valid = ", ".join(KINDS)
    raise InvalidInput("kind", f"is {pattern!r}, and no signal is of that kind; there is: {valid}")


def id_of(stream: str, seq: int, kind: str, count: int = 1) -> str:
    """Return the id of the `count`-th signal of that kind that one record gives.

    >>> id_of("SESSIONS", 7, "timer.voided"), id_of("SESSIONS", 7, "timer.voided", 2)
    ('SESSIONS-7-timer.voided', 'SESSIONS-7-timer.voided-2')
    """
    suffix = "" if count == 1 else f"-{count}"
    return f"{stream}-{seq}-{kind}{suffix}"


def key_of(subject: str) -> tuple[SessionKey, str]:
    """Split a signal's subject -> (the session, the kind).

    >>> key, kind = key_of("signal.vigil.ann.message.sent.t1")
    >>> str(key), kind
    ('ann:vigil:t1', 'message.sent')
    """
    _, agent, user, first, second, thread = subject.split(".")
    return SessionKey(user, agent, thread), f"{first}.{second}"
