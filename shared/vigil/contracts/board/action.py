"""Actions: what an agent did without being asked, and how the person liked it (SPEC G-5)."""

from __future__ import annotations

from typing import Literal

from ..base import Instant, Record

ActionOutcome = Literal["pending", "success", "failed", "unknown"]


class ActionFeedback(Record, frozen=True, kw_only=True):
    """What the person says of it."""

    is_good: bool
    text: str = ""
    by: str
    at: Instant


class BoardAction(Record, frozen=True, kw_only=True, tag_field="kind", tag="action"):
    """One thing that an agent did by itself."""

    id: str
    """32 hex digits."""
    number: int = 0
    """Counted for the person and agent; the newest take the places of the oldest."""
    owner: str
    agent: str
    type: str
    """The tool that was called; ``unknown``: one that isn't offered."""
    description: str
    goal: str = ""
    """The goal that it was done for."""
    outcome: ActionOutcome = "pending"
    session_key: str = ""
    is_tainted: bool = False
    """Whether content from outside had a part in it."""
    feedback: ActionFeedback | None = None
    created_at: Instant
    ended_at: Instant | None = None
