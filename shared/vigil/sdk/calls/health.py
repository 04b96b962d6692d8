"""What `vigil.Client` can do about what runs: /api/health and /api/pause."""

from __future__ import annotations

from typing import Any, Final

from .method_group import MethodGroup, query

PATH: Final = "/api/health"


class HealthCalls(MethodGroup):
    """Base of `vigil.Client`: what isn't asked for a while because it failed, and the pause."""

    def health(self) -> dict[str, Any]:
        """Return `circuits`, each part that failed again and again with its state; `sessions`
        that hang or nearly fill their window; `branches`, how long they take."""
        return self._object("GET", PATH)

    def reset_circuit(self, name: str) -> dict[str, Any]:
        """Have a part asked again at once, ``model:claude`` say; return its circuit.

        Raises: ApiError with status 404, it never failed so; 403, an admin may.
        """
        return self._object("POST", f"{PATH}/reset", {"name": name})

    def streams(self) -> list[dict[str, Any]]:
        """Return the broker's streams: how large each is, and what waits for its `readers`.

        Needs an admin token.
        """
        found: list[dict[str, Any]] = self._object("GET", "/api/streams")["streams"]
        return found

    def doctor(self) -> list[dict[str, Any]]:
        """Return what the gateway finds on its machine: checks as of ``vigil doctor``.

        Needs an admin token.
        """
        found: list[dict[str, Any]] = self._object("GET", "/api/doctor")["checks"]
        return found

    def pause(self, *, agent: str | None = None, mine: bool = False) -> None:
        """Pause everything proactive, of all agents or of one. For everybody it needs an admin
        token, or of a team's agent that of a member.

        Args:
            mine: with `agent`: for oneself alone.
        """
        self.request("PUT", _pause(agent, is_mine=mine))

    def resume(self, *, agent: str | None = None, mine: bool = False) -> None:
        """End a pause, named as for `pause`."""
        self.request("DELETE", _pause(agent, is_mine=mine))


def _pause(agent: str | None, *, is_mine: bool) -> str:
    return "/api/pause" + query({"agent": agent, "mine": "true" if is_mine else None})
