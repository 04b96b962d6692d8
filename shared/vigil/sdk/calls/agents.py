"""What `vigil.Client` can do with who an agent is."""

from __future__ import annotations

from typing import Any

from .method_group import MethodGroup, segment


class AgentCalls(MethodGroup):
    """Base of `vigil.Client`: agents, and the files that say who one is (SPEC P-4)."""

    def agents(self) -> list[dict[str, Any]]:
        """Return the agents of that home. Needs an admin token."""
        found: list[dict[str, Any]] = self._object("GET", "/api/agents")["agents"]
        return found

    def agent_names(self) -> list[str]:
        """Return the names of the agents of that home that one may talk with."""
        return [one["id"] for one in self._object("GET", "/v1/models")["data"]]

    def make_agent(self, name: str, **given: Any) -> dict[str, Any]:
        """Make an agent (`authority`, `model`, `looks`, `role`); return it. Needs an admin token.

        Raises: ApiError with status 409, there is one of that name.
        """
        return self._object("POST", "/api/agents", {"name": name, **given})

    def change_agent(self, name: str, **changes: Any) -> dict[str, Any]:
        """Change an agent (`authority`, `model`, `looks`); return it. Needs an admin token."""
        return self._object("PATCH", f"/api/agents/{segment(name)}", changes)

    def agent_files(self, agent: str = "vigil") -> list[dict[str, Any]]:
        """Return the files, each with its `text` and `digest`. Needs an admin token."""
        found: list[dict[str, Any]]
        found = self._object("GET", f"/api/agents/{segment(agent)}/files")["files"]
        return found

    def write_agent_file(self, agent: str, name: str, text: str, *, digest: str) -> dict[str, Any]:
        """Write a file; return it. Needs an admin token.

        Raises: ApiError with status 409, it was changed since it was read.

        Args:
            digest: as it was read.
        """
        path = f"/api/agents/{segment(agent)}/files/{segment(name)}"
        return self._object("PUT", path, {"text": text, "digest": digest})
