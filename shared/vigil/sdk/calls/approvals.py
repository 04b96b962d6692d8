"""What `vigil.Client` can do with approvals: one method for each endpoint of /api/approvals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .kind import KindCalls
from .method_group import MethodGroup


class DecidingCalls(MethodGroup):
    """Base of `vigil.Client`: what waits for a person, and their verdict (SPEC X-2)."""

    def approvals(
        self, *, state: str = "open", user: str | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """Return requests, the newest first: one's own, or with an admin token everybody's.

        Args:
            state: ``open``, what became of them (``accepted``, ``expired``, ...), or ``all``.
            user: whose; an admin may name anybody.
            limit: 1..500.
        """
        return KindCalls(self, "approvals").listed(state=state, limit=limit, user=user)

    def approval(self, id_: str) -> dict[str, Any]:
        """Return a request with the exact arguments, and their `digest`."""
        return KindCalls(self, "approvals").get(id_)

    def accept(self, id_: str, *, digest: str | None = None) -> dict[str, Any]:
        """Let it run as it is; return ``{event_id, seq}``.

        Each verdict is for one's own requests only, counts once, and is the same event if it is
        repeated. Raises: ApiError with status 409, if it was decided or isn't what `digest` names.

        Args:
            digest: of the arguments that were read. None: of those that are listed now.
        """
        return self._decide(id_, digest, verdict="accept")

    def edit(
        self, id_: str, arguments: Mapping[str, Any], *, digest: str | None = None
    ) -> dict[str, Any]:
        """Let it run with other arguments."""
        return self._decide(id_, digest, verdict="edit", input=dict(arguments))

    def answer(self, id_: str, text: str, *, digest: str | None = None) -> dict[str, Any]:
        """Answer a question; of a call, say what the agent is to take for its result."""
        return self._decide(id_, digest, verdict="answer", text=text)

    def reject(self, id_: str, text: str = "", *, digest: str | None = None) -> dict[str, Any]:
        """Refuse it, and say why if you like: the agent is told."""
        return self._decide(id_, digest, verdict="reject", text=text or None)

    def _decide(self, id_: str, digest: str | None, **said: Any) -> dict[str, Any]:
        return KindCalls(self, "approvals").change(id_, digest=digest, **said)
