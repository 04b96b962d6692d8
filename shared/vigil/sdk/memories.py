"""What `vigil.Client` can do with memories: one method for each operation, and one for them all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from msgspec import structs

from ..errors import InvalidInput
from ..memory.operation import Operation, http_view, operations

PATH: Final = "/api/memories"
_ID: Final = re.compile("[0-9a-f]{32}")
WORK_TIMEOUT_S: Final = 75.0
"""Of a maintenance; the gateway waits for a minute."""


class MemoryCalls:
    """Base of `vigil.Client`: whose memory is the token's user's, or `user`'s for an admin."""

    def _object(
        self, method: str, path: str, body: Any = None, *, timeout_s: float | None = None
    ) -> dict[str, Any]:
        raise NotImplementedError  # pragma: no cover - `vigil.Client` defines it

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
        sent |= _given({"userId": user, "agentId": agent})
        if found.route.has_body:
            return self._object(found.route.method, path, sent)
        return self._object(found.route.method, path + _query(sent))

    def save_memory(
        self,
        content: str,
        *,
        type: str = "fact",  # noqa: A002 - the name it has everywhere
        source: str | None = None,
        importance: float | None = None,
        thread: str | None = None,
        occurred_at: datetime | None = None,
        stability: str | None = None,
        expires_at: datetime | None = None,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        links: Sequence[Mapping[str, Any]] = (),
        idempotency_key: str | None = None,
        user: str | None = None,
        agent: str | None = None,
    ) -> dict[str, Any]:
        """Remember something; return ``{id, seq}``. With the same key it's remembered once.

        Args:
            importance: 0..1; None: the type's default.
            thread: the conversation that it is part of.
            occurred_at: aware; when what it tells of happened.
            links: associations, ``{"to_id", "relation", "weight"}``.
        """
        fields = {
            "content": content,
            "type": type,
            "source": source,
            "importance": importance,
            "thread": thread,
            "occurred_at": occurred_at,
            "stability": stability,
            "expires_at": expires_at,
            "valid_from": valid_from,
            "valid_to": valid_to,
            "links": links,
            "key": idempotency_key,
        }
        return self.ask_memory("save", fields, user=user, agent=agent)

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        types: Sequence[str] = (),
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        importance_min: float | None = None,
        as_of: datetime | None = None,
        thread: str | None = None,
        mode: str | None = None,
        user: str | None = None,
        agent: str | None = None,
    ) -> dict[str, Any]:
        """Find what fits `query`: ``{memories, degraded, …}``, the best first, each with its score.

        Raises: ValueError, `query` is blank: `memories` lists without one.
        """
        if not query.strip():
            raise ValueError("a recall needs a query; memories() lists")
        filters = _filters(types, source, since, until, importance_min, as_of, thread)
        fields = {"query": query, "limit": limit, "mode": mode} | filters
        return self.ask_memory("recall", fields, user=user, agent=agent)

    def memories(
        self,
        *,
        sort: str | None = None,
        types: Sequence[str] = (),
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        importance_min: float | None = None,
        as_of: datetime | None = None,
        thread: str | None = None,
        with_ended: bool = False,
        page_size: int | None = None,
        user: str | None = None,
        agent: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield memories, page after page.

        Args:
            sort: ``recent`` (default), ``importance`` or ``accessed``.
            with_ended: those that stand no more, too.
        """
        filters = _filters(types, source, since, until, importance_min, as_of, thread)
        fields = {"sort": sort, "limit": page_size, "with_ended": with_ended or None} | filters
        while True:
            page = self.ask_memory("list", fields, user=user, agent=agent)
            yield from page["memories"]
            fields["after"] = page.get("next_after")
            if fields["after"] is None:
                return

    def memory(
        self, id_: str, *, user: str | None = None, agent: str | None = None
    ) -> dict[str, Any]:
        """Return one memory with its associations: ``{memory, edges}``."""
        return self.ask_memory("get", {"id": id_}, user=user, agent=agent)

    def forget(
        self, id_: str, *, user: str | None = None, agent: str | None = None
    ) -> dict[str, Any]:
        """Forget a memory for good. Raises: ApiError with status 404, it isn't there."""
        return self.ask_memory("forget", {"id": id_}, user=user, agent=agent)

    def associate(
        self,
        from_id: str,
        to_id: str,
        *,
        relation: str | None = None,
        weight: float | None = None,
        user: str | None = None,
        agent: str | None = None,
    ) -> dict[str, Any]:
        """Associate two memories; again: replace the weight."""
        fields = {"from_id": from_id, "to_id": to_id, "relation": relation, "weight": weight}
        return self.ask_memory("associate", fields, user=user, agent=agent)

    def memory_graph(
        self,
        id_: str | None = None,
        *,
        depth: int = 1,
        limit: int = 100,
        user: str | None = None,
        agent: str | None = None,
    ) -> dict[str, Any]:
        """Return ``{nodes, edges}`` around one memory, or of the best connected ones."""
        fields = {"id": id_, "depth": depth, "limit": limit}
        return self.ask_memory("graph", fields, user=user, agent=agent)

    def undo_memories(
        self, source: str, *, user: str | None = None, agent: str | None = None
    ) -> dict[str, Any]:
        """Revert a source and what was derived from it: ``{undone, restored}``, ids."""
        return self.ask_memory("undo", {"source": source}, user=user, agent=agent)

    def memory_stats(self, *, user: str | None = None, agent: str | None = None) -> dict[str, Any]:
        """Return how much there is, and how far a rebuild is."""
        return self.ask_memory("stats", {}, user=user, agent=agent)

    def rebuild_memories(self, *, what: str = "all") -> dict[str, Any]:
        """Have every replica make its indexes anew (`all`, or `vectors`). Needs an admin token."""
        return self._object("POST", f"{PATH}/rebuild", {"what": what})

    def maintain(self, *, user: str | None = None, agent: str | None = None) -> dict[str, Any]:
        """Prune and merge now: ``{pruned, merged, message}``. An admin who names none: all."""
        body = _given({"userId": user, "agentId": agent})
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
            sent[names[name]] = _plain(value)
    return path, sent


def _checked(name: str, id_: str) -> str:
    """Return an id; what isn't one could be the place of something else. Raises: InvalidInput."""
    if not _ID.fullmatch(id_):
        raise InvalidInput(name, "must be 32 hex digits")
    return id_


def _filters(
    types: Sequence[str],
    source: str | None,
    since: datetime | None,
    until: datetime | None,
    importance_min: float | None,
    as_of: datetime | None,
    thread: str | None,
) -> dict[str, Any]:
    return {
        "types": tuple(types),
        "source": source,
        "since": since,
        "until": until,
        "importance_min": importance_min,
        "as_of": as_of,
        "thread": thread,
    }


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _query(values: Mapping[str, Any]) -> str:
    """Return what is given as a query string, with its question mark.

    >>> _query({"q": "a b", "limit": None, "with_ended": True})
    '?q=a+b&with_ended=true'
    """
    given = {name: _parameter(value) for name, value in _given(values).items()}
    return f"?{urlencode(given)}" if given else ""


def _parameter(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return ",".join(value)
    return "true" if value is True else value
