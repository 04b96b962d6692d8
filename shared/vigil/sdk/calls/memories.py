"""What `vigil.Client` can do with memories: one method for each operation, and one for them all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack

from msgspec import structs

from ...errors import InvalidInput
from ...memory.operation import Operation, http_view, operations
from .method_group import MethodGroup, given, plain, query

PATH: Final = "/api/memories"
_ID: Final = re.compile("[0-9a-f]{32}")
WORK_TIMEOUT_S: Final = 75.0
"""Of a maintenance; the gateway waits for a minute."""


class MemoryOwner(TypedDict, total=False):
    """Whose memory: what every method takes."""

    user: str | None
    """None: the token's own. Somebody else's is for admins."""
    agent: str | None
    """None: ``vigil``."""


class MemoryFields(MemoryOwner, total=False):
    """What a memory is saved with (:class:`vigil.memory.operations.save.Save`)."""

    type: str
    source: str | None
    importance: float | None
    """0..1; None: the type's default."""
    thread: str | None
    """The conversation that it is part of."""
    is_tainted: bool
    """Whether somebody else wrote it: then it is content from outside."""
    occurred_at: datetime | None
    """Aware; when what it tells of happened."""
    stability: str | None
    expires_at: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    links: Sequence[Mapping[str, Any]]
    """Associations, ``{"to_id", "relation", "weight"}``."""


class MemoryFilters(MemoryOwner, total=False):
    """What a recall and a list can be narrowed to (:class:`vigil.memory.questions.Filters`)."""

    types: Sequence[str] | None
    source: str | None
    since: datetime | None
    until: datetime | None
    importance_min: float | None
    as_of: datetime | None
    thread: str | None


class MemoryCalls(MethodGroup):
    """Base of `vigil.Client`: whose memory is the token's user's, or `user`'s for an admin."""

    def ask_memory(
        self,
        operation: str,
        fields: Mapping[str, Any],
        *,
        user: str | None = None,
        agent: str | None = None,
    ) -> dict[str, Any]:
        """Ask for any operation of :mod:`vigil.memory.operations`; the methods below ask by this.

        Args:
            fields: of the operation's struct; what is None or empty is left out.

        Raises:
            InvalidInput: HTTP has no such operation, or that takes no such field.
        """
        found = operations().get(operation)
        if found is None or found.route is None:
            raise InvalidInput("operation", f"there is none named {operation!r}")
        path, sent = _request(found, found.route.path, fields)
        sent |= given(userId=user, agentId=agent)
        if found.route.has_body:
            return self._object(found.route.method, path, sent)
        return self._object(found.route.method, path + query(sent))

    def save_memory(
        self,
        content: str,
        *,
        idempotency_key: str | None = None,
        **fields: Unpack[MemoryFields],
    ) -> dict[str, Any]:
        """Remember something; return ``{id, seq}``. With the same key it's remembered once."""
        return self._ask("save", content=content, key=idempotency_key, **fields)

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str | None = None,
        with_pruned: bool = False,
        **filters: Unpack[MemoryFilters],
    ) -> dict[str, Any]:
        """Find what fits `query`: ``{memories, degraded, …}``, the best first, each with its score.

        Args:
            with_pruned: what has expired or faded, too.

        Raises: ValueError, `query` is blank: `memories` lists without one.
        """
        if not query.strip():
            raise ValueError("a recall needs a query; memories() lists")
        more = {"mode": mode, "with_pruned": with_pruned or None}
        return self._ask("recall", query=query, limit=limit, **more, **filters)

    def memories(
        self,
        *,
        sort: str | None = None,
        with_ended: bool = False,
        page_size: int | None = None,
        **filters: Unpack[MemoryFilters],
    ) -> Iterator[dict[str, Any]]:
        """Yield memories, page after page.

        Args:
            sort: ``recent`` (default), ``importance`` or ``accessed``.
            with_ended: those that stand no more, too.
        """
        after = None
        while True:
            page = self._ask(
                "list",
                sort=sort,
                limit=page_size,
                with_ended=with_ended or None,
                after=after,
                **filters,
            )
            yield from page["memories"]
            after = page.get("next_after")
            if after is None:
                return

    def memory(self, id_: str, **of: Unpack[MemoryOwner]) -> dict[str, Any]:
        """Return one memory with its associations: ``{memory, edges}``."""
        return self._ask("get", id=id_, **of)

    def forget(self, id_: str, **of: Unpack[MemoryOwner]) -> dict[str, Any]:
        """Forget a memory for good. Raises: ApiError with status 404, it isn't there."""
        return self._ask("forget", id=id_, **of)

    def associate(
        self,
        from_id: str,
        to_id: str,
        *,
        relation: str | None = None,
        weight: float | None = None,
        **of: Unpack[MemoryOwner],
    ) -> dict[str, Any]:
        """Associate two memories; again: replace the weight."""
        given = {"from_id": from_id, "to_id": to_id, "relation": relation, "weight": weight}
        return self._ask("associate", **given, **of)

    def memory_graph(
        self,
        id_: str | None = None,
        *,
        depth: int = 1,
        limit: int = 100,
        **of: Unpack[MemoryOwner],
    ) -> dict[str, Any]:
        """Return ``{nodes, edges}`` around one memory, or of the best connected ones."""
        return self._ask("graph", id=id_, depth=depth, limit=limit, **of)

    def undo_memories(self, source: str, **of: Unpack[MemoryOwner]) -> dict[str, Any]:
        """Revert a source and what was derived from it: ``{undone, restored}``, ids."""
        return self._ask("undo", source=source, **of)

    def memory_stats(self, **of: Unpack[MemoryOwner]) -> dict[str, Any]:
        """Return how much there is, and how far a rebuild is."""
        return self._ask("stats", **of)

    def _ask(
        self, operation: str, *, user: str | None = None, agent: str | None = None, **fields: Any
    ) -> dict[str, Any]:
        return self.ask_memory(operation, fields, user=user, agent=agent)

    def rebuild_memories(self, *, what: str = "all") -> dict[str, Any]:
        """Have every replica make its indexes anew (`all`, or `vectors`). Needs an admin token."""
        return self._object("POST", f"{PATH}/rebuild", {"what": what})

    def maintain(self, *, user: str | None = None, agent: str | None = None) -> dict[str, Any]:
        """Prune and merge now: ``{pruned, merged, message}``. An admin who names none: all."""
        body = given(userId=user, agentId=agent)
        return self._object("POST", "/api/maintenance", body, timeout_s=WORK_TIMEOUT_S)


def _request(
    operation: Operation, path: str, fields: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the filled path, and what it is sent, by the names that HTTP has.

    >>> _request(operations()["forget"], "/api/memories/{id}", {"id": "stats"})
    Traceback (most recent call last):
        ...
    vigil.errors.InvalidInput: id: must be 32 hex digits
    """
    names = {one.name: one.encode_name for one in structs.fields(http_view(operation).kind)}
    sent: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in names:
            raise InvalidInput(name, f"is no field of {operation.name}")
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", _checked(name, value))
        elif value is not None and value not in ((), []):
            sent[names[name]] = plain(value)
    return path, sent


def _checked(name: str, id_: str) -> str:
    """Return an id; what isn't one could be the place of something else. Raises: InvalidInput."""
    if not _ID.fullmatch(id_):
        raise InvalidInput(name, "must be 32 hex digits")
    return id_
