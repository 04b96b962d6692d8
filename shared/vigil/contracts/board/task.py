"""Tasks: work that is to be done some day, by a worker of the agent's (SPEC C-8, LOOPS L-15)."""

from __future__ import annotations

from typing import Literal

from ..base import Instant, Record
from .vocabulary import TaskStatus

TaskPriority = Literal["critical", "high", "medium", "low"]
"""The first first."""
TaskMaker = Literal["person", "agent", "system"]


class TaskResult(Record, frozen=True, kw_only=True):
    """What came of the newest try."""

    text: str
    at: Instant
    by: str = ""
    """The session that said so."""
    is_tainted: bool = False
    """Whether content from outside had a part in the text, whatever the task is made of."""


class BoardTask(Record, frozen=True, kw_only=True, tag_field="kind", tag="task"):
    """A task of one person and agent. What a session has under way is another thing (`Task`)."""

    id: str
    """32 hex digits."""
    owner: str
    agent: str
    title: str
    """One line."""
    description: str = ""
    """All that the worker is to know: it knows nothing else."""
    status: TaskStatus
    priority: TaskPriority = "medium"
    created_by: TaskMaker = "person"
    session_key: str = ""
    """The session that made it; empty: a person did, by themselves."""
    is_ordered: bool = False
    """Whether a person made it, ordered it, or let it begin: then they are behind what comes of
    it. Never with `is_tainted`."""
    is_tainted: bool = False
    """Whether content from outside had a part in title or description, by the core's judgement."""
    row: str = ""
    """The row of the timetable of which a run made it: its workers count there, as what the run
    itself starts does. Empty: none."""
    row_tokens: int = 0
    """What that row may take a day, as the run had it; 0: as configured."""
    goal: str = ""
    """The goal that it was made for, by its id: its workers act for that one. Empty: none."""
    tries: int = 0
    """Workers that were started since it was made ready."""
    worker: str = ""
    """The session of the newest of them."""
    is_stopping: bool = False
    """Whether that one is still to end, although the task was taken from it."""
    result: TaskResult | None = None
    created_at: Instant
    moved_at: Instant
    """When it came into its status."""
    is_removed: bool = False
    """It is kept for its history alone."""
