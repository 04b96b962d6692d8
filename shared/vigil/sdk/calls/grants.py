"""What `vigil.Client` can do with standing grants: one method for each endpoint of /api/grants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from .method_group import MethodGroup, given, match, query, segment

TRUST: Final = "/api/trust"
PATH: Final = "/api/grants"


class GrantingCalls(MethodGroup):
    """Base of `vigil.Client`: what is allowed beforehand (LOOPS L-8)."""

    def grants(
        self, *, state: str = "standing", user: str | None = None, limit: int = 200
    ) -> list[dict[str, Any]]:
        """Return standing grants, the newest first: one's own, or with an admin token everybody's.

        Args:
            state: ``standing``, ``ended``, or ``all``.
            user: whose; an admin may name anybody.
            limit: 1..500.
        """
        wanted = query({"state": state, "limit": limit, "user": user})
        found: list[dict[str, Any]] = self._object("GET", PATH + wanted)["grants"]
        return found

    def grant(self, id_: str) -> dict[str, Any]:
        """Return a grant, how it was used, and its `revision`."""
        return self._object("GET", f"{PATH}/{segment(id_)}")

    def give_grant(
        self,
        tool: str,
        constraints: Sequence[Mapping[str, Any]] = (),
        *,
        agent: str = "vigil",
        name: str | None = None,
        session_key: str | None = None,
        row: str | None = None,
        goal: str | None = None,
        expires_at: datetime | None = None,
        uses_max: int = 0,
        holds_for_outside: bool = False,
        approval_id: str | None = None,
        why: str = "",
    ) -> dict[str, Any]:
        """Allow calls beforehand; return the grant.

        Raises: ApiError with status 422, if it would allow everything or there are 200.

        Args:
            constraints: each with its `kind`: ``argv``, ``url``, ``folder``, ``equal``, ``exact``.
            session_key: the one conversation that it holds in. None: all of the agent's.
            row: the one row of the timetable whose runs it holds in, by its id.
            goal: the one goal that it holds for, by its id.
            uses_max: 0: no limit.
            holds_for_outside: also once content from outside had a part in the decision.
            approval_id: the request that it is made of.
        """
        return self._object(
            "POST",
            PATH,
            given(
                tool=tool,
                constraints=[dict(one) for one in constraints],
                agentId=agent,
                name=name,
                session_key=session_key,
                row=row,
                goal=goal,
                expires_at=expires_at,
                uses_max=uses_max,
                holds_for_outside=holds_for_outside,
                approval_id=approval_id,
                why=why,
            ),
        )

    def revoke_grant(self, id_: str, *, revision: int | None = None) -> dict[str, Any]:
        """End a grant; return it. Raises: ApiError with status 412, if it isn't `revision` now.

        Args:
            revision: as it was read. None: whatever is there.
        """
        headers = match(revision)
        return self._object("DELETE", f"{PATH}/{segment(id_)}", headers=headers)

    def trusted(self, *, agent: str = "vigil") -> list[dict[str, Any]]:
        """Return the sources that you trust with an agent: what comes from exactly them is no
        content from outside."""
        found: list[dict[str, Any]]
        found = self._object("GET", TRUST + query({"agentId": agent}))["sources"]
        return found

    def trust(self, source: str, *, agent: str = "vigil") -> dict[str, Any]:
        """Trust a source from now on, named as a letter names it; return it with what that means.

        Raises: ApiError with status 422, it can't be trusted so.
        """
        return self._object("POST", TRUST, {"source": source, "agentId": agent})

    def distrust(self, id_: str, *, agent: str = "vigil") -> dict[str, Any]:
        """Trust a source no more, by its id; return it."""
        wanted = query({"agentId": agent})
        return self._object("DELETE", f"{TRUST}/{segment(id_)}{wanted}")
