"""The mind of an agent for a person: where it is (SPEC G-1). Pure.

It is one session, whose input queues on its log: whoever has something for it stores an event.
"""

from __future__ import annotations

from typing import Final

from .subjects import Scope, SessionKey

KIND: Final = "mind"
"""Of its session; as a target of a row of the timetable, that it is told the result."""
LOST_MESSAGE: Final = "lost message"
"""What it is told of a message that no channel took."""
OWN_TASK: Final = "own task"
"""What it is told of a task that it made itself and that ended."""
DIGEST: Final = "digest"
"""What it is told of a conversation that pauses: what the person wrote."""


def mind_of(whose: Scope) -> SessionKey:
    """Return the session of a mind.

    >>> str(mind_of(Scope("vigil", "ann"))), mind_of(Scope("vigil", "ann")).kind
    ('ann:vigil:_mind', 'mind')
    """
    return SessionKey(whose.owner, whose.agent, f"_{KIND}")


def is_mind(key: SessionKey) -> bool:
    """Whether that session is a mind, and not only of its kind."""
    return key == mind_of(key.scope)
