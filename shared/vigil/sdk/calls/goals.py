"""What `vigil.Client` can do with goals, preferences and actions: a method for each endpoint."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from .kind import KindCalls
from .method_group import MethodGroup


class GoalCalls(MethodGroup):
    """Base of `vigil.Client`: what an agent pursues (SPEC G-2)."""

    def goals(
        self, *, status: str | None = None, user: str | None = None, limit: int = 200
    ) -> list[dict[str, Any]]:
        """Return goals, the more important first: one's own, or with an admin token everybody's.

        Args:
            status: only those. None: all that haven't ended.
            limit: 1..500.
        """
        return KindCalls(self, "goals").listed(status=status, user=user, limit=limit)

    def goal(self, id_: str) -> dict[str, Any]:
        """Return a goal with its `history`, its `moves` and its `revision`."""
        return KindCalls(self, "goals").get(id_)

    def make_goal(
        self,
        description: str,
        *,
        check_interval_secs: int | None = None,
        deadline_at: datetime | str | None = None,
        agent: str = "vigil",
        **fields: Any,
    ) -> dict[str, Any]:
        """Make a goal; return it. Raises: ApiError with status 422, if 50 are active.

        Args:
            check_interval_secs: how often it's looked at; None: once a day.
            deadline_at: aware; None: it stands until it's put away.
            fields: `priority`, `success_criteria`, `strategy`, `parent`, `why`.
        """
        return KindCalls(self, "goals").make(
            description=description,
            check_interval_secs=check_interval_secs,
            deadline_at=deadline_at,
            agent=agent,
            **fields,
        )

    def change_goal(
        self, id_: str, *, revision: int | None = None, **changes: Any
    ) -> dict[str, Any]:
        """Move a goal, or change what it says; return it.

        Raises: ApiError with status 412, if it isn't `revision` now; 422: there is no such move.

        Args:
            revision: as it was read. None: whatever is there.
            changes: `status`, `why`, and what `make_goal` takes.
        """
        return KindCalls(self, "goals").change(id_, revision=revision, **changes)

    def split_goal(
        self, id_: str, parts: Iterable[str], *, why: str = "", revision: int | None = None
    ) -> list[dict[str, Any]]:
        """Split a goal into parts, by their descriptions; return them. Raises: as `make_goal`."""
        wanted = [{"description": part} for part in parts]
        return KindCalls(self, "goals").split(id_, parts=wanted, why=why, revision=revision)

    def archive_goal(self, id_: str, *, revision: int | None = None) -> dict[str, Any]:
        """Put a goal away; return it as it is kept. Raises: as `change_goal`."""
        return KindCalls(self, "goals").end(id_, revision=revision)


class PreferenceCalls(MethodGroup):
    """Base of `vigil.Client`: how a person likes things (SPEC G-3)."""

    def preferences(
        self, *, category: str | None = None, user: str | None = None, limit: int = 200
    ) -> list[dict[str, Any]]:
        """Return preferences, the surer first. `limit`: 1..500."""
        return KindCalls(self, "preferences").listed(category=category, user=user, limit=limit)

    def preference(self, id_: str) -> dict[str, Any]:
        """Return a preference with its `history` and its `revision`."""
        return KindCalls(self, "preferences").get(id_)

    def make_preference(
        self,
        category: str,
        key: str,
        value: Any,
        *,
        is_negative: bool = False,
        learned_from: str = "",
        agent: str = "vigil",
        why: str = "",
    ) -> dict[str, Any]:
        """Say how one likes something; what stood under that key is replaced. Return it.

        Args:
            category: ``communication``, ``schedule``, ``code``, ``workflow``.
            value: JSON.
            is_negative: the value is what one doesn't want.
        """
        return KindCalls(self, "preferences").make(
            category=category,
            key=key,
            value=value,
            is_negative=is_negative,
            learned_from=learned_from,
            agent=agent,
            why=why,
        )

    def confirm_preference(self, id_: str, *, revision: int | None = None) -> dict[str, Any]:
        """Say that a preference holds; return it. Raises: ApiError with status 412."""
        calls = KindCalls(self, "preferences")
        return calls.change(id_, is_confirmed=True, revision=revision)

    def remove_preference(self, id_: str, *, revision: int | None = None) -> dict[str, Any]:
        """Remove a preference; return it as it is kept. Raises: ApiError with status 412."""
        return KindCalls(self, "preferences").end(id_, revision=revision)


class ActionCalls(MethodGroup):
    """Base of `vigil.Client`: what agents did without being asked (SPEC G-5)."""

    def actions(
        self, *, outcome: str | None = None, user: str | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """Return actions, the newest first. `limit`: 1..500."""
        return KindCalls(self, "actions").listed(outcome=outcome, user=user, limit=limit)

    def action(self, id_: str) -> dict[str, Any]:
        """Return an action with its `revision`."""
        return KindCalls(self, "actions").get(id_)

    def judge_action(
        self, id_: str, *, is_good: bool, text: str = "", revision: int | None = None
    ) -> dict[str, Any]:
        """Say what one thinks of an action; return it. Raises: ApiError with status 412."""
        calls = KindCalls(self, "actions")
        return calls.change(id_, is_good=is_good, text=text, revision=revision)
