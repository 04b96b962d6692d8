"""What `vigil.Client` can do with standing grants: one method for each endpoint of /api/grants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .kind import KindCalls
from .method_group import MethodGroup, query, segment

TRUST: Final = "/api/trust"


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
        return KindCalls(self, "grants").listed(state=state, user=user, limit=limit)

    def grant(self, id_: str) -> dict[str, Any]:
        """Return a grant, how it was used, and its `revision`."""
        return KindCalls(self, "grants").get(id_)

    def give_grant(
        self,
        tool: str,
        constraints: Sequence[Mapping[str, Any]] = (),
        *,
        agent: str = "vigil",
        **fields: Any,
    ) -> dict[str, Any]:
        """Allow calls beforehand; return the grant.

        Raises: ApiError with status 422, if it would allow everything or there are 200.

        Args:
            constraints: each with its `kind`: ``argv``, ``url``, ``folder``, ``equal``, ``exact``.
            fields: `name`, `session_key`, `row`, `goal`, `expires_at`, `uses_max`,
                `holds_for_outside`, `approval_id`, `why`, as `POST /api/grants` takes them.
        """
        wanted = [dict(one) for one in constraints]
        return KindCalls(self, "grants").make(tool=tool, constraints=wanted, agent=agent, **fields)

    def revoke_grant(self, id_: str, *, revision: int | None = None) -> dict[str, Any]:
        """End a grant; return it. Raises: ApiError with status 412, if it isn't `revision` now.

        Args:
            revision: as it was read. None: whatever is there.
        """
        return KindCalls(self, "grants").end(id_, revision=revision)

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
