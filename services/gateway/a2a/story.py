"""What a task of A2A is here: a message, by its place, and how far its answer is. Pure."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from vigil.contracts import Said, Turn
from vigil.errors import InvalidInput
from vigil.subjects import token_of

from ..http.decide import Exchange

THREAD: Final = "a2a-"
"""Begins the names of conversations that begin here."""
_THREAD: Final = re.compile(rf"{THREAD}[0-9a-f]{{16}}")
_TASK: Final = re.compile(rf"({THREAD}[0-9a-f]{{16}})-([1-9][0-9]{{0,15}})")
CONTEXT_LENGTH_MAX: Final = 256

State = Literal["working", "completed", "failed", "canceled"]


class TaskName(NamedTuple):
    """Where a task's message stands: its id says it, so nothing has to be kept."""

    thread: str
    seq: int

    def __str__(self) -> str:
        return f"{self.thread}-{self.seq}"

    @classmethod
    def parse(cls, text: str) -> TaskName | None:
        """Return what an id stands for; None: nobody gave it.

        >>> TaskName.parse("a2a-00112233aabbccdd-17")
        TaskName(thread='a2a-00112233aabbccdd', seq=17)
        >>> TaskName.parse("main-17")
        """
        found = _TASK.fullmatch(text)
        return None if found is None else cls(found[1], int(found[2]))


def thread_of(user: str, agent: str, context_id: str, message_id: str) -> str:
    """Return the conversation that a message is of: that of its context, of whatever name; without
    one a new one, the same for the same message.

    Raises:
        InvalidInput: the context has too long a name.
    """
    if _THREAD.fullmatch(context_id):
        return context_id
    if len(context_id) > CONTEXT_LENGTH_MAX:
        raise InvalidInput("contextId", f"must have at most {CONTEXT_LENGTH_MAX} characters")
    named = ("context", context_id) if context_id else ("message", message_id)
    return f"{THREAD}{token_of('a2a', user, agent, *named)[:16]}"


class TaskStory:
    """How far a task is, record by record."""

    def __init__(self, event_id: str, exchange: Exchange) -> None:
        self._event_id = event_id
        self._exchange = exchange
        self._end: State = "working"

    def take(self, record: Turn | Said | None) -> None:
        """Take in a record that the exchange took."""
        if not isinstance(record, Turn) or self._event_id not in record.ended:
            return
        codes = {note.code for note in record.notes if note.subject in (None, self._event_id)}
        if record.outcome == "stopped" or "interrupted" in codes:
            self._end = "canceled"
        elif record.outcome == "failed" or "queue_full" in codes:
            self._end = "failed"
        else:
            self._end = "completed"

    @property
    def state(self) -> State:
        """Return how it is: put off, as there is no room in a budget, it is at work yet."""
        return self._end if self._exchange.is_over else "working"

    @property
    def text(self) -> str:
        """Return what was said so far."""
        return "\n\n".join(one.text for one in self._exchange.said)
