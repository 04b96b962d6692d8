"""Memories: what is written to MEMORIES, the truth of what an agent knows (SPEC M).

Each record is one fact that a fold can't misread: it names the memories it is about. Whether it
still applies when it is folded (a merge of what was forgotten meanwhile, say) is decided by the
fold alone, so every replica and every rebuild come to the same.
"""

from __future__ import annotations

from typing import Final, Literal

from .base import VERSION_1, Instant, Record

MemoryType = Literal[
    "identity", "goal", "decision", "todo", "preference", "fact", "summary", "event", "observation"
]
Stability = Literal["stable", "volatile"]
Relation = Literal["related_to", "updates", "contradicts", "caused_by", "result_of", "part_of"]

IMPORTANCE: Final[dict[MemoryType, float]] = {
    "identity": 1.0,
    "goal": 0.9,
    "decision": 0.8,
    "todo": 0.8,
    "preference": 0.7,
    "fact": 0.6,
    "summary": 0.5,
    "event": 0.4,
    "observation": 0.3,
}
"""The importance of a memory whose saver gave none, by type (SPEC M-1)."""
EDGE_WEIGHT: Final = 0.5
"""The weight of an association whose maker gave none (SPEC M-1)."""


class Memory(Record, frozen=True, kw_only=True):
    """What is remembered, as it was saved. What becomes of it later is in other records."""

    id: str
    """32 hex digits."""
    content: str
    created_at: Instant
    type: MemoryType = "fact"
    importance: float = 0.6
    """0 to 1."""
    source: str = ""
    """Who or what it came from: ``api``, ``chat:{thread}``, ``job:{id}``, ``task:{id}``."""
    stability: Stability = "stable"
    thread: str = ""
    """The conversation that it is part of; those said just before and after are its neighbours."""
    occurred_at: Instant | None = None
    """When what it tells of happened; None: when it was saved."""
    expires_at: Instant | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    """From when until when what it says holds in the world; None: open."""
    provenance: tuple[str, ...] = ()
    """Ids of the events and memories that it was made of."""
    is_tainted: bool = False
    """Descends from untrusted content (SPEC X-3)."""


class MemoryLink(Record, frozen=True, kw_only=True):
    """An association. The same (from, to, relation) again replaces the weight."""

    from_id: str
    to_id: str
    relation: Relation = "related_to"
    weight: float = EDGE_WEIGHT
    """0 to 1."""


class MemoryEnvelope(Record, frozen=True, kw_only=True, tag_field="op"):
    """What every record of MEMORIES carries. Its subject tells the operation, too."""

    id: str
    agent: str
    owner: str
    at: Instant
    by: str
    """Who did it: ``user:{name}``, ``session:{key}``, ``maintenance``."""
    v: int = VERSION_1


class MemorySaved(MemoryEnvelope, frozen=True, kw_only=True, tag="save"):
    """A memory; one with an id that exists changes nothing."""

    memory: Memory
    edges: tuple[MemoryLink, ...] = ()
    """Associations that it is saved with."""


class MemoryForgotten(MemoryEnvelope, frozen=True, kw_only=True, tag="forget"):
    """Memories that are recalled no more. What was asked for is never shown again, nor is a summary
    that contains its words, or what a summary that was asked for contains."""

    memory_ids: tuple[str, ...]
    reason: Literal["asked", "expired", "decayed"] = "asked"


class MemoriesMerged(MemoryEnvelope, frozen=True, kw_only=True, tag="merge"):
    """Memories that one summary takes the place of; void unless all of them still stand."""

    memory: Memory
    merged_ids: tuple[str, ...]


class MemoriesReplaced(MemoryEnvelope, frozen=True, kw_only=True, tag="replace"):
    """Memories that another takes the place of, which was saved as well: it says the same, that
    and more, or how that is by now. Void of what doesn't stand, of the person's own if it came from
    outside, and where it says more also of what came from outside if it didn't."""

    by_id: str
    """The memory that stands in their place."""
    memory_ids: tuple[str, ...]
    is_same: bool
    """It says the same, so their sources are its sources; else they say how it was before, unless
    `is_wider`."""
    is_wider: bool = False
    """It says what they say, and more: their sources are its sources; it stands without them."""


class MemoriesAssociated(MemoryEnvelope, frozen=True, kw_only=True, tag="associate"):
    """Associations: those of a pass, with how far it got, or those that somebody made."""

    edges: tuple[MemoryLink, ...] = ()
    through: int = 0
    """The pass looked at every memory that was saved up to this sequence of MEMORIES; 0: none."""


class MemoriesAccessed(MemoryEnvelope, frozen=True, kw_only=True, tag="access"):
    """Memories that recalls showed since the last such record; each counts once for it."""

    memory_ids: tuple[str, ...]


class MemoriesUndone(MemoryEnvelope, frozen=True, kw_only=True, tag="undo"):
    """A source that was reverted, with everything that was made of it (SPEC M-4)."""

    source: str
    memory_ids: tuple[str, ...]
    """What stands no more: of that source, or derived from it, also what was derived since."""
    restored_ids: tuple[str, ...] = ()
    """What a merge had taken the place of, and stands again."""


MemoryRecord = (
    MemorySaved
    | MemoryForgotten
    | MemoriesMerged
    | MemoriesReplaced
    | MemoriesAssociated
    | MemoriesAccessed
    | MemoriesUndone
)
