"""What `vigil.Client` can do with what the board is the truth of."""

from __future__ import annotations

from .goals import ActionCalls, GoalCalls, PreferenceCalls
from .tasks import TaskCalls


class BoardCalls(TaskCalls, GoalCalls, PreferenceCalls, ActionCalls):
    """Base of `vigil.Client`: tasks, goals, preferences and actions."""
