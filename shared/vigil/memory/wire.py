"""Memories as the outside sees them: over HTTP, from `vigil.Client`, and as results of MCP tools.

Apart from :mod:`.questions`, which only our own services speak: that may change with them, this may
not. What comes in refuses unknown fields, so that a typing mistake is an error and not a silence.
Four names are camelCase, as the public contract has them (SPEC P-5). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal

import msgspec

from ..contracts import Edge, Instant, MemoryType, Relation, Stability
from ..subjects import PartText
from .questions import (
    LIMIT_MAX,
    Ended,
    Hit,
    Link,
    MemoryView,
    Mode,
    Query,
    Rebuilding,
    Sort,
    Unit,
)

NAMES: Final = {
    "user_id": "userId",
    "agent_id": "agentId",
    "thread_id": "threadId",
    "occurred_at": "occurredAt",
}
DEFAULT_AGENT: Final = "vigil"
MCP_SOURCE: Final = "mcp"
"""The source of what an MCP client saves, unless it names one."""

MemoryId = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
IdempotencyKey = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Filter = Annotated[str, msgspec.Meta(max_length=200)]
PageSize = Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX)]


class Whose(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=NAMES
):  # fmt: skip
    """Base of what comes in: whose memory it is about."""

    user_id: PartText | None = None
    """Absent: the caller's own. Somebody else's is for admins."""
    agent_id: PartText = DEFAULT_AGENT


class Shown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=NAMES):
    """Base of what goes out."""


# ---------------------------------------------------------------- coming in


class SaveBody(Whose, frozen=True, kw_only=True):
    """Remember something."""

    content: str
    """At most 16 KiB in UTF-8."""
    type: MemoryType = "fact"
    source: Name = "api"
    """Who or what it came from, for filters and for undo."""
    importance: Unit | None = None
    """0 to 1; absent: the type's default."""
    thread_id: Name | None = None
    """The conversation that it's part of: those with the same, in the order of `occurredAt`, are
    neighbours, and help to find one another."""
    occurred_at: Instant | None = None
    """When what it tells of happened; absent: now."""
    stability: Stability = "stable"
    """`volatile`: a note that maintenance may merge into a summary after a week."""
    expires_at: Instant | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    links: Annotated[tuple[Link, ...], msgspec.Meta(max_length=100)] = ()
    """Associations to make with it."""
    idempotency_key: IdempotencyKey | None = None
    """A name of yours for it: repeating it saves nothing new."""


class AssociateBody(Whose, frozen=True, kw_only=True):
    """Associate two memories; again: replace the weight."""

    from_id: MemoryId
    to_id: MemoryId
    relation: Relation = "related_to"
    weight: Unit = 0.5


class UndoBody(Whose, frozen=True, kw_only=True):
    """Revert a source and everything that was derived from it."""

    source: Name


class MaintainBody(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=NAMES
):
    """Prune and merge now; an admin who names neither user nor agent means all memories."""

    user_id: PartText | None = None
    agent_id: PartText | None = None


class RebuildBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make every replica's indexes anew: all of them, or the vectors only."""

    what: Literal["all", "vectors"] = "all"


class Look(Whose, frozen=True, kw_only=True):
    """The query of ``GET /api/memories``: with `q` a recall, without it a sorted list."""

    q: Query = ""
    source: Filter = ""
    type: tuple[MemoryType, ...] = ()
    """One, several with commas, or repeated."""
    limit: PageSize | None = None
    """Absent: 10 of a recall, 50 of a list."""
    since: Instant | None = None
    until: Instant | None = None
    """By when it occurred; both ends included."""
    importance_min: Unit = 0.0
    """Of the importance after decay."""
    as_of: Instant | None = None
    """What was believed then."""
    thread_id: Filter = ""
    mode: Mode | None = None
    """Of a recall: `hybrid` (default), `text` or `vector`."""
    sort: Sort | None = None
    """Of a list: `recent` (default), `importance` or `accessed`."""
    after: Filter = ""
    """Of a list: continue after this, the `next_after` of the page before."""
    with_ended: bool = False
    """Of a list: those that stand no more, too."""


class LookAround(Whose, frozen=True, kw_only=True):
    """The query of ``GET /api/memories/graph``."""

    id: MemoryId | None = None
    """Absent: the best connected ones."""
    depth: Annotated[int, msgspec.Meta(ge=1, le=3)] = 1
    limit: PageSize = 100


# ---------------------------------------------------------------- going out


class SavedMemory(Shown, frozen=True, kw_only=True):
    """It's stored, and the next recall finds it. `seq` is its place in MEMORIES."""

    id: str
    seq: int
    is_repeat: bool = False
    """That `idempotency_key` was used before: this is the memory that it made."""


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
    thread_id: str = ""
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
    """What could not be asked: with `vectors`, text alone was searched."""
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


class ForgottenMemories(Shown, frozen=True, kw_only=True):
    """How many are never recalled again."""

    forgotten: int


class AssociatedMemories(Shown, frozen=True, kw_only=True):
    edge: ShownEdge


class UndoneSource(Shown, frozen=True, kw_only=True):
    """Ids of what stands no more, and of what stands again since its summary is gone."""

    undone: tuple[str, ...]
    restored: tuple[str, ...]
    undone_left_out: int = 0
    """Done, too, and too many for the answer."""
    restored_left_out: int = 0


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
    message: str


class RebuildStarted(Shown, frozen=True, kw_only=True):
    """How many replicas began; `GET /api/memories/stats` tells how far they are."""

    replicas: int


# ---------------------------------------------------------------- from the answers of the service

_COPIED: Final = tuple(
    field.name
    for field in msgspec.structs.fields(ShownMemory)
    if field.name not in ("thread_id", "score", "parts")
)


def shown(memory: MemoryView, hit: Hit | None = None) -> ShownMemory:
    """Return a memory as the outside sees it; `hit`: how it was recalled."""
    return ShownMemory(
        thread_id=memory.thread,
        score=None if hit is None else hit.score,
        parts=None if hit is None else _parts(hit),
        **{name: getattr(memory, name) for name in _COPIED},
    )


def _parts(hit: Hit) -> dict[str, float]:
    return {name: value for name, value in msgspec.structs.asdict(hit.parts).items() if value}


def all_shown(memories: Iterable[MemoryView]) -> tuple[ShownMemory, ...]:
    return tuple(map(shown, memories))


def edge_shown(edge: Edge) -> ShownEdge:
    """Return an association as the outside sees it."""
    return ShownEdge(
        from_id=edge.from_id, to_id=edge.to_id, relation=edge.relation, weight=edge.weight
    )


def edges_shown(edges: Iterable[Edge]) -> tuple[ShownEdge, ...]:
    return tuple(map(edge_shown, edges))
