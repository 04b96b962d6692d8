"""What a memory comes from, so that all of one origin can be found, and undone (LOOPS L-20). Pure.

It follows from the kind of the session that saves it and from what began that, and from nothing
that a model says.
"""

from __future__ import annotations

from vigil.contracts import Start
from vigil.subjects import SessionKey

from .profile import Profile


def of(profile: Profile, key: SessionKey, start: Start | None, goal: str = "") -> str:
    """Return the source of all that a session has memory keep.

    Args:
        start: with which it began; None: it is a conversation, or has not begun.
        goal: that a look of the mind acts for, by its id; empty: none.
    """
    if goal:
        return f"goal:{goal}"
    if profile.source:
        id_ = key.thread.partition("-")[2] if key.is_system else key.thread
        return profile.source.format(id=id_)
    if start is not None and start.goal:
        return f"goal:{start.goal}"
    if start is not None and start.task_id:
        return f"task:{start.task_id}"
    return (start.source if start is not None else "") or profile.name
