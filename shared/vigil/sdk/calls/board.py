"""What `vigil.Client` can do with what the board is the truth of."""

from __future__ import annotations

from typing import Any

from .goals import ActionCalls, GoalCalls, PreferenceCalls
from .method_group import query
from .tasks import TaskCalls


class BoardCalls(TaskCalls, GoalCalls, PreferenceCalls, ActionCalls):
    """Base of `vigil.Client`: tasks, goals, preferences and actions, and what they come to."""

    def bulletins(self, *, user: str | None = None, history: int = 0) -> list[dict[str, Any]]:
        """Return what conversations are told of a person, for each agent: `text`, `made_at`,
        `from_outside`.

        Args:
            user: whose; an admin may name anybody.
            history: how many of the ones before, too, with what changed; at most 64.
        """
        wanted = {"user": user, "history": history or None}
        answer = self._object("GET", "/api/bulletin" + query(wanted))
        found: list[dict[str, Any]] = answer["bulletins"]
        return found
