"""What is said of the states of tasks, goals, actions and slots: one row for each. Pure data."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

TaskStatus = Literal["pending_approval", "backlog", "ready", "in_progress", "done", "failed"]


class StatusWords(NamedTuple):
    """What is said of a status."""

    signal: str
    """The kind of the signal that it came to be so."""
    step: str
    """What is said of one that is so."""


TASKS: Final[dict[TaskStatus, StatusWords]] = {
    "pending_approval": StatusWords("task.proposed", "waits for a person to let it begin"),
    "backlog": StatusWords("task.shelved", "is kept for later"),
    "ready": StatusWords("task.ready", "waits for its turn"),
    "in_progress": StatusWords("task.started", "is worked on"),
    "done": StatusWords("task.completed", "is done"),
    "failed": StatusWords("task.failed", "failed"),
}

SLOTS: Final[dict[str, str]] = {
    "running": "a run was begun",
    "waiting": "no model answered it, and it is begun again later",
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


GOALS: Final[dict[GoalStatus, StatusWords]] = {
    "active": StatusWords("goal.active", "is pursued"),
    "paused": StatusWords("goal.paused", "is paused"),
    "completed": StatusWords("goal.completed", "is reached"),
    "failed": StatusWords("goal.failed", "failed"),
    "archived": StatusWords("goal.archived", "is put away"),
}
