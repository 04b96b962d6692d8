"""What `vigil.Client` can do with any kind of the board; its methods with names are made of it."""

from __future__ import annotations

from typing import Any, Final

from .method_group import MethodGroup, given, match, query, segment

PAGE_MAX: Final = 500
"""More aren't listed at once."""


class KindCalls:
    """One kind of the board, as HTTP has it: ``KindCalls(client, "goals").listed(user="ann")``."""

    def __init__(self, client: MethodGroup, plural: str, path: str = "") -> None:
        """Args: path: empty: as of most kinds."""
        self._client: Final = client
        self._plural: Final = plural
        self._path: Final = path or f"/api/{plural}"

    def listed(self, **wanted: Any) -> list[dict[str, Any]]:
        """Return those that are there; `wanted` is what chooses among them, `user` and `limit`.

        A `limit` of more than 500 is read by pages; `after` an id, only those that follow it.
        """
        limit = wanted.get("limit") or 0
        found: list[dict[str, Any]] = []
        while True:
            if limit > PAGE_MAX:
                wanted["limit"] = min(limit - len(found), PAGE_MAX)
            answer = self._client._object("GET", self._path + query(wanted))
            found += answer[self._plural]
            wanted["after"] = answer.get("next_after")
            if wanted["after"] is None or len(found) >= limit:
                return found

    def get(self, id_: str) -> dict[str, Any]:
        """Return one with its `revision`, and its `history` if it has one."""
        return self._client._object("GET", self._of(id_))

    def make(self, *, agent: str | None = "vigil", **fields: Any) -> dict[str, Any]:
        """Make one; return it. What is None is left out."""
        return self._client._object("POST", self._path, given(agentId=agent, **fields))

    def change(self, id_: str, *, revision: int | None = None, **changes: Any) -> dict[str, Any]:
        """Change one; return it. Raises: ApiError with status 412, if it isn't `revision` now."""
        headers = match(revision)
        return self._client._object("PATCH", self._of(id_), given(**changes), headers=headers)

    def split(
        self, id_: str, *, revision: int | None = None, **fields: Any
    ) -> list[dict[str, Any]]:
        """Split one into parts; return these. Raises: as `change`."""
        path, headers = f"{self._of(id_)}/parts", match(revision)
        answer = self._client._object("POST", path, given(**fields), headers=headers)
        made: list[dict[str, Any]] = answer[self._plural]
        return made

    def end(self, id_: str, *, revision: int | None = None) -> dict[str, Any]:
        """End one; return it as it is kept. Raises: as `change`."""
        return self._client._object("DELETE", self._of(id_), headers=match(revision))

    def _of(self, id_: str) -> str:
        return f"{self._path}/{segment(id_)}"
