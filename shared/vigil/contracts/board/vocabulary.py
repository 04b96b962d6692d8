"""What is said of the states of tasks, goals, actions and slots: one row for each. Pure data."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

TaskStatus = Literal["pending_approval", "backlog", "ready", "in_progress", "done", "failed"]


class TaskWords(NamedTuple):
    signal: str
    """The kind of the signal that it came to be so."""
    step: str
    """What is said of one that is so."""


TASKS: Final[dict[TaskStatus, TaskWords]] = {
    "pending_approval": TaskWords("task.proposed", "waits for a person to let it begin"),
    "backlog": TaskWords("task.shelved", "is kept for later"),
    "ready": TaskWords("task.ready", "waits for its turn"),
    "in_progress": TaskWords("task.started", "is worked on"),
    "done": TaskWords("task.completed", "is done"),
    "failed": TaskWords("task.failed", "failed"),
}

SLOTS: Final[dict[str, str]] = {
    "running": "a run was begun",
    "ran": "its run ended well",
    "late": "so did one that was begun late",
    "failed": "its run failed, or gave no end in time",
    "coalesced": "it was missed, and a newer one was run for it",
    "skipped": "it was not to be run: a pause, its hours, the run before, a cap",
    "missed": "it was missed, and by its row's policy not run",
}

Trigger = Literal["manual", "scheduled", "chained", "goal"]
"""What had a job or a run begin: a person or a program of theirs, its time, the end of another
row's run, or that a goal was due."""

GoalStatus = Literal["active", "paused", "completed", "failed", "archived"]


class GoalWords(NamedTuple):
    signal: str
    """The kind of the signal that it came to be so."""
    step: str
    """What is said of one that is so."""


GOALS: Final[dict[GoalStatus, GoalWords]] = {
    "active": GoalWords("goal.active", "is pursued"),
    "paused": GoalWords("goal.paused", "is paused"),
    "completed": GoalWords("goal.completed", "is reached"),
    "failed": GoalWords("goal.failed", "failed"),
    "archived": GoalWords("goal.archived", "is put away"),
}
