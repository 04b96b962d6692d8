"""What `vigil.Client` can do with tasks: one method for each endpoint of /api/tasks."""

from __future__ import annotations

from typing import Any

from .kind import KindCalls
from .method_group import MethodGroup


class TaskCalls(MethodGroup):
    """Base of `vigil.Client`: what an agent is to work on by itself (SPEC C-8)."""

    def tasks(
        self, *, status: str | None = None, user: str | None = None, limit: int = 200
    ) -> list[dict[str, Any]]:
        """Return tasks, those that moved last first: one's own, or with an admin token everybody's.

        Args:
            status: only those. None: all that haven't ended.
            user: whose; an admin may name anybody.
            limit: 1..500.
        """
        return KindCalls(self, "tasks").listed(status=status, user=user, limit=limit)

    def task(self, id_: str) -> dict[str, Any]:
        """Return a task with its `history`, its `moves` and its `revision`."""
        return KindCalls(self, "tasks").get(id_)

    def make_task(
        self,
        title: str,
        description: str = "",
        *,
        priority: str = "medium",
        status: str = "ready",
        goal: str | None = None,
        agent: str = "vigil",
        why: str = "",
    ) -> dict[str, Any]:
        """Make a task; return it. Raises: ApiError with status 422, if there are 200.

        Args:
            title: at most 200 characters.
            description: all that the worker is to know; at most 8,000 characters.
            priority: ``critical``, ``high``, ``medium``, ``low``.
            status: ``ready``, or ``backlog``.
            goal: id of the goal that it serves, whose budget it has a part in.
        """
        return KindCalls(self, "tasks").make(
            title=title,
            description=description,
            priority=priority,
            status=status,
            goal=goal,
            agent=agent,
            why=why,
        )

    def change_task(
        self,
        id_: str,
        *,
        status: str | None = None,
        title: str | None = None,
        description: str | None = None,
        priority: str | None = None,
        why: str | None = None,
        revision: int | None = None,
    ) -> dict[str, Any]:
        """Move a task, or change what it says; return it.

        Raises: ApiError with status 412, if it isn't `revision` now; 422: there is no such move.

        Args:
            revision: as it was read. None: whatever is there.
        """
        return KindCalls(self, "tasks").change(
            id_,
            status=status,
            title=title,
            description=description,
            priority=priority,
            why=why,
            revision=revision,
        )

    def remove_task(self, id_: str, *, revision: int | None = None) -> dict[str, Any]:
        """Remove a task that is neither ready nor worked on; return it as it is kept.

        Raises: ApiError with status 412, if it isn't `revision` now; 422: a worker has it, or may.
        """
        return KindCalls(self, "tasks").end(id_, revision=revision)
