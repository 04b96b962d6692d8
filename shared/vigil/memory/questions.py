"""What the memory service is asked, what it answers, and who asks it (SPEC M). Pure.

Questions are NATS requests to ``rpc.memory.{op}.{agent}.{owner}`` (:class:`vigil.subjects.Scope`),
so whose memory it is stands in the subject and never in what a person or a model wrote. One replica
answers each, but those of `EVERY_REPLICA`. An error comes in the headers of the micro-service API
(``Nats-Service-Error-Code``, as of HTTP) with a :class:`Refused` as the body.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ..contracts import Edge, Instant, Memory, MemoryType, Relation, Stability

SERVICE: Final = "memory"
CONTENT_BYTES_MAX: Final = 16 * 1024
"""Of one memory, in UTF-8. More is a document, not a memory: some 4,000 tokens of a prompt."""
ANSWER_BYTES_MAX: Final = 768 * 1024
"""Of one answer; what doesn't fit is left out, and counted. The broker takes 1 MiB."""
LIMIT_MAX: Final = 200
IDS_MAX: Final = 1000
UNDONE_SHOWN_MAX: Final = 10_000
"""Ids of either kind in the answer to an undo; the others are counted."""
DEGRADED_VECTORS: Final = "vectors"
"""In `degraded`: the vector index did not answer, and text alone was searched."""

Unit = Annotated[float, msgspec.Meta(ge=0, le=1)]
Name = Annotated[str, msgspec.Meta(max_length=200)]
Id = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
Ids = Annotated[tuple[Id, ...], msgspec.Meta(min_length=1, max_length=IDS_MAX)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX)]
Content = Annotated[str, msgspec.Meta(min_length=1, max_length=CONTENT_BYTES_MAX)]
Query = Annotated[str, msgspec.Meta(max_length=CONTENT_BYTES_MAX)]
Mode = Literal["hybrid", "text", "vector"]
Sort = Literal["recent", "importance", "accessed"]
Ended = Literal["forgotten", "expired", "decayed", "merged", "undone"]


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what is asked."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what is answered."""


class Refused(Reply, frozen=True, kw_only=True):
    """Why a question was refused. `status` is as of HTTP: 404, 409, 422, 503."""

    status: int
    reason: str
    field: str = ""


# ---------------------------------------------------------------- writing


class Link(Question, frozen=True, kw_only=True):
    """An association to make with a memory that is saved."""

    to_id: Id
    relation: Relation = "related_to"
    weight: Unit = 0.5


class Save(Question, frozen=True, kw_only=True):
    """Remember something. With a `key`, a repeat is the same memory."""

    content: Content
    by: str
    """Stamped by the service that asks: ``user:{name}``, ``session:{key}``."""
    type: MemoryType = "fact"
    importance: Unit | None = None
    """None: the type's default."""
    source: Name = "api"
    stability: Stability = "stable"
    thread: Name = ""
    occurred_at: Instant | None = None
    expires_at: Instant | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    provenance: Annotated[tuple[Name, ...], msgspec.Meta(max_length=100)] = ()
    is_tainted: bool = False
    links: Annotated[tuple[Link, ...], msgspec.Meta(max_length=100)] = ()
    key: Name = ""


class Saved(Reply, frozen=True, kw_only=True):
    """It's in the log, and recallable at once from the replica that answered."""

    id: str
    seq: int
    """Of MEMORIES."""
    is_repeat: bool = False


class Forget(Question, frozen=True, kw_only=True):
    """Never recall these again. Those that aren't there are counted, not refused."""

    ids: Ids
    by: str


class Forgotten(Reply, frozen=True, kw_only=True):
    forgotten: int
    missing: int = 0


class Associate(Question, frozen=True, kw_only=True):
    """Associate two memories of one scope; again: replace the weight."""

    from_id: Id
    to_id: Id
    by: str
    relation: Relation = "related_to"
    weight: Unit = 0.5


class Associated(Reply, frozen=True, kw_only=True):
    edge: Edge


class Undo(Question, frozen=True, kw_only=True):
    """Revert a source and everything that was derived from it (SPEC M-4)."""

    source: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    by: str


class Undone(Reply, frozen=True, kw_only=True):
    undone: tuple[str, ...]
    restored: tuple[str, ...] = ()
    undone_left_out: int = 0
    """How many did not fit into the answer."""
    restored_left_out: int = 0


# ---------------------------------------------------------------- reading


class Filters(Question, frozen=True, kw_only=True):
    """What both recall and list can be narrowed to; applied inside the indexes."""

    source: Name = ""
    types: tuple[MemoryType, ...] = ()
    since: Instant | None = None
    until: Instant | None = None
    """By when it occurred (saved, if that isn't known); both ends included."""
    importance_min: Unit = 0.0
    """Of the importance after decay (SPEC M-7)."""
    as_of: Instant | None = None
    """What was believed then: memories saved by then that stood then. What somebody asked to forget
    is in no answer."""
    thread: Name = ""


class Recall(Filters, frozen=True, kw_only=True):
    """Find what fits `query` best."""

    query: Query
    limit: Limit = 10
    mode: Mode = "hybrid"
    only_trusted: bool = False
    """Leave out what descends from untrusted content."""
    counts: bool = True
    """Whether what is shown counts as accessed."""


class ListMemories(Filters, frozen=True, kw_only=True):
    """List memories that stand, sorted."""

    sort: Sort = "recent"
    limit: Limit = 50
    after: Name = ""
    """The `next_after` of the page before."""
    with_ended: bool = False
    """Also those that stand no more, but for what somebody asked to forget."""


class MemoryView(Memory, frozen=True, kw_only=True):
    """A memory with what became of it. `importance` is as saved."""

    seq: int
    """Of MEMORIES: the record that saved it."""
    decayed: float
    """Its importance now (SPEC M-7)."""
    accessed_at: Instant | None = None
    accesses: int = 0
    centrality: float = 0.0
    """The sum of the weights of its associations with what stands; 0 once it has ended."""
    ended_at: Instant | None = None
    """When it ceased to stand; None: it stands."""
    ended: Ended | None = None
    superseded_by: str | None = None


class Parts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why it was found: what each part gave to the score, after its weight."""

    text: float = 0.0
    vector: float = 0.0
    words: float = 0.0
    """Question words whose nearest word stands in it."""
    gist: float = 0.0
    """Likeness of the rare words of both, taken together."""
    speaker: float = 0.0
    """It was said by somebody whom the question names."""
    neighbours: float = 0.0
    graph: float = 0.0
    recency: float = 0.0
    importance: float = 0.0
    taint: float = 0.0
    """Negative: what it lost for descending from untrusted content."""


class Hit(Reply, frozen=True, kw_only=True):
    memory: MemoryView
    score: float
    parts: Parts


class Recalled(Reply, frozen=True, kw_only=True):
    """The best first."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    """What could not be asked: `DEGRADED_VECTORS`. The hits are those of the rest."""
    left_out: int = 0
    """Hits that did not fit into the answer."""
    is_empty: bool = False
    """There is nothing in this memory at all."""


class Listed(Reply, frozen=True, kw_only=True):
    memories: tuple[MemoryView, ...]
    next_after: str | None = None
    """Continues the list; None: that was all."""


class Get(Question, frozen=True, kw_only=True):
    id: Id


class Got(Reply, frozen=True, kw_only=True):
    memory: MemoryView
    edges: tuple[Edge, ...] = ()


class GetGraph(Question, frozen=True, kw_only=True):
    """The memories around one, or the best connected ones."""

    id: Id | None = None
    depth: Annotated[int, msgspec.Meta(ge=1, le=3)] = 1
    limit: Limit = 100


class Graph(Reply, frozen=True, kw_only=True):
    nodes: tuple[MemoryView, ...]
    edges: tuple[Edge, ...]


class GetStats(Question, frozen=True, kw_only=True):
    """How much there is, and what the indexes are made of."""


class Stats(Reply, frozen=True, kw_only=True):
    memories: int
    """That stand."""
    ended: int
    """But for those that somebody asked to forget."""
    edges: int
    by_type: dict[str, int]
    by_source: dict[str, int]
    """The 50 largest."""
    position: int
    """The last record of MEMORIES that is in SQLite, of all scopes."""
    vectors_position: int
    """The same, of the vector index."""
    embedder: str
    """Model and dimension: ``wordllama-l2-256``."""
    index: str
    """Which vector index: ``edge`` or ``qdrant``."""
    rebuild: Rebuilding | None = None


# ---------------------------------------------------------------- of the whole service


class Rebuilding(Reply, frozen=True, kw_only=True):
    """How far a rebuild of a replica's index is."""

    what: Literal["all", "vectors"]
    done: int
    total: int
    """Records of MEMORIES, or memories to embed."""


class Rebuild(Question, frozen=True, kw_only=True):
    """Make SQLite and the vectors anew from the log; returns at once."""

    what: Literal["all", "vectors"] = "all"


class Maintain(Question, frozen=True, kw_only=True):
    """Run a pass now: over one scope, or over all if the subject names none."""

    what: Literal["maintenance", "association"] = "maintenance"


class Maintained(Reply, frozen=True, kw_only=True):
    pruned: int = 0
    merged: int = 0
    """Batches."""
    associated: int = 0
    message: str = ""


class Erased(Reply, frozen=True, kw_only=True):
    """Whether a replica holds nothing any more of a person whose records are gone from the log."""

    instance: str
    is_done: bool
    """It found nothing. Else it is at it: ask again."""
    left: str = ""
    """What it is at."""


EVERY_REPLICA: Final = ("rebuild", "erase")
"""Questions that each replica answers: ``rpc.memory.rebuild``, ``rpc.memory.erase.{hash}``."""
MAINTAIN_ALL: Final = "rpc.memory.maintain"
"""One replica runs the pass over every scope: asked by the scheduler's ticks and by admins."""
REBUILD: Final = "rpc.memory.rebuild"
ERASE: Final = "rpc.memory.erase"
"""With the hash of a name behind it (:func:`vigil.erasure.mark.hash_of`); no body."""

QUESTIONS: Final[dict[str, tuple[type[Question], type[Reply]]]] = {
    "save": (Save, Saved),
    "recall": (Recall, Recalled),
    "list": (ListMemories, Listed),
    "get": (Get, Got),
    "forget": (Forget, Forgotten),
    "associate": (Associate, Associated),
    "graph": (GetGraph, Graph),
    "undo": (Undo, Undone),
    "stats": (GetStats, Stats),
    "maintain": (Maintain, Maintained),
}
"""Operation of a scope -> what is asked, what is answered."""
