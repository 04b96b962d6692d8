"""Goals: what an agent pursues for a person, looked at again and again (SPEC G-2, LOOPS L-15)."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..base import Instant, Record
from .fact import FactShape
from .vocabulary import GoalStatus

GoalKind = Literal["standing", "timed"]
"""A standing one never ends by itself; a timed one is reached, or fails at its deadline."""
GoalOrigin = Literal["explicit", "inferred", "self"]
"""A person's word; a habit of theirs; the agent's own idea."""


class BoardGoal(Record, frozen=True, kw_only=True, tag_field="kind", tag="goal"):
    """A goal of one person and agent."""

    id: str
    """32 hex digits."""
    owner: str
    agent: str
    description: str
    goal_kind: GoalKind = "standing"
    deadline_at: Instant | None = None
    """When a timed goal has to be reached; None: it isn't timed."""
    status: GoalStatus = "active"
    priority: int = 3
    """1..5; 5 is critical."""
    success_criteria: str = ""
    strategy: str = ""
    """How it's pursued at present."""
    check_interval_s: int
    last_checked_at: Instant | None = None
    source_channel: str = ""
    """Where the person set it."""
    origin: GoalOrigin = "explicit"
    parent: str = ""
    """The goal that it's a part of."""
    session_key: str = ""
    """The session that made it; empty: a person did, by themselves."""
    is_tainted: bool = False
    """Whether content from outside had a part in it, by the core's judgement."""
    created_at: Instant
    moved_at: Instant
    """When it came into its status."""
    facts: dict[str, FactShape] = msgspec.field(default_factory=dict)
    """What is told of it in a closed form, by name: a person's to say (FLOW F-9)."""
    news: dict[str, str] = msgspec.field(default_factory=dict)
    """Which changes of facts are news, by the fact's name, as `vigil.facts.news` says; others: as
    usual."""


class LookedGoal(Record, frozen=True, kw_only=True):
    """A goal as a mind looked at it last."""

    due_at: Instant
    """When it was due."""
    looks: int = 1
    """How many were concluded while it was; more than one: it can't be taken down."""
