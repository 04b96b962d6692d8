"""Memories as the outside sees them: over HTTP, from `vigil.Client`, and as results of MCP tools.

Apart from :mod:`.questions`, which only our own services speak: that may change with them, this may
not. What comes in is a view of the operation's struct (:func:`vigil.memory.operation.http_view`) on
top of `Whose`. Four names are camelCase, as the public contract has them (SPEC P-5). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ..contracts import Instant, MemoryType, Relation, Stability
from ..subjects import PartText
from ..teams import DEFAULT_AGENT
from .questions import Ended, Hit, MemoryView, Rebuilding

NAMES: Final = {
    "user_id": "userId",
    "agent_id": "agentId",
    "thread": "threadId",
    "occurred_at": "occurredAt",
    "query": "q",
    "types": "type",
    "key": "idempotency_key",
}
"""What we call a field -> what HTTP calls it."""


class Whose(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=NAMES):
    """Base of what comes in: whose memory it is about."""

    user_id: PartText | None = None
    """Absent: the caller's own. Somebody else's is for admins."""
    agent_id: PartText = DEFAULT_AGENT


class Shown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=NAMES):
    """Base of what goes out."""


# ---------------------------------------------------------------- coming in


class MaintainBody(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=NAMES
):
    """Prune and merge now; an admin who names neither user nor agent means all memories."""

    user_id: PartText | None = None
    agent_id: PartText | None = None


# ---------------------------------------------------------------- going out


class ShownMemory(Shown, frozen=True, kw_only=True):
    """A memory, and what became of it."""

    id: str
    content: str
    type: MemoryType
    source: str
    importance: float
    """As saved."""
    decayed: float
    """Its importance now."""
    stability: Stability
    created_at: Instant
    seq: int
    thread: str = ""
    occurred_at: Instant | None = None
    expires_at: Instant | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    provenance: tuple[str, ...] = ()
    """Ids of the events and memories that it was made of."""
    is_tainted: bool = False
    """Descends from untrusted content."""
    accesses: int = 0
    accessed_at: Instant | None = None
    centrality: float = 0.0
    """The sum of the weights of its associations."""
    ended: Ended | None = None
    """Why it stands no more; absent: it stands."""
    ended_at: Instant | None = None
    superseded_by: str | None = None
    also_from: tuple[str, ...] = ()
    """Sources of those that say the same, which it stands for."""
    score: float | None = None
    """Of a recall."""
    parts: dict[str, float] | None = None
    """Why it was found: what each part gave to the score; those that gave nothing are left out."""


class ShownEdge(Shown, frozen=True, kw_only=True):
    """An association."""

    from_id: str
    to_id: str
    relation: Relation
    weight: float
    """0 to 1."""


class MemoryPage(Shown, frozen=True, kw_only=True):
    """What was recalled, the best first, or a page of a list."""

    user_id: str
    """The owner: a user, or `team`."""
    agent_id: str
    memories: tuple[ShownMemory, ...]
    next_after: str | None
    """Continues a list; null: that was all."""
    degraded: tuple[str, ...]
    """What could not be asked: with `vectors`, text alone was searched; with `newest`, what was
    saved last isn't in the database yet."""
    left_out: int = 0
    """Hits that did not fit into the answer."""
    is_empty: bool = False
    """A recall found nothing because there is nothing at all."""


class MemoryDetail(Shown, frozen=True, kw_only=True):
    """One memory, with its associations."""

    user_id: str
    agent_id: str
    memory: ShownMemory
    edges: tuple[ShownEdge, ...]


class MemoryGraph(Shown, frozen=True, kw_only=True):
    """Memories, and the associations between them."""

    user_id: str
    agent_id: str
    nodes: tuple[ShownMemory, ...]
    edges: tuple[ShownEdge, ...]


class AssociatedMemories(Shown, frozen=True, kw_only=True):
    edge: ShownEdge


class MemoryStats(Shown, frozen=True, kw_only=True):
    """How much there is, and what the indexes are made of."""

    user_id: str
    agent_id: str
    memories: int
    """That stand."""
    ended: int
    edges: int
    by_type: dict[str, int]
    by_source: dict[str, int]
    """The 50 largest."""
    position: int
    """The last record of MEMORIES that is in the answering replica's SQLite."""
    vectors_position: int
    """The same, of its vectors."""
    embedder: str
    index: str
    rebuild: Rebuilding | None
    """How far a rebuild is; null: none runs."""


class MaintenanceDone(Shown, frozen=True, kw_only=True):
    """What a maintenance did. `merged` counts batches."""

    pruned: int
    merged: int
    observed: int
    """Observations of what comes up again and again."""
    message: str


class RebuildStarted(Shown, frozen=True, kw_only=True):
    """How many replicas began; `GET /api/memories/stats` tells how far they are."""

    replicas: int


# ---------------------------------------------------------------- from the answers of the service

_COPIED: Final = tuple(
    field.name
    for field in msgspec.structs.fields(ShownMemory)
    if field.name not in ("score", "parts")
)


def shown(memory: MemoryView, hit: Hit | None = None) -> ShownMemory:
    """Return a memory as the outside sees it; `hit`: how it was recalled."""
    return ShownMemory(
        score=None if hit is None else hit.score,
        parts=None if hit is None else _parts(hit),
        **{name: getattr(memory, name) for name in _COPIED},
    )


def _parts(hit: Hit) -> dict[str, float]:
    return {name: value for name, value in msgspec.structs.asdict(hit.parts).items() if value}


def all_shown(memories: Iterable[MemoryView]) -> tuple[ShownMemory, ...]:
    return tuple(map(shown, memories))
