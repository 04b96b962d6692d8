"""What becomes of memories with time: decay, pruning, associating, undoing. Pure.

Nothing here reads a clock or a table: facts come in as arguments, and what comes out is a plan that
the passes write to MEMORIES. All of it depends on stored instants only, never on how often a pass
ran before, and not on the order in which it is told the facts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

import msgspec

from vigil.contracts import MemoryLink, MemoryType, Relation

from .instants import DAY, micros

N = TypeVar("N", bound=Hashable)

DECAY_PER_DAY: Final = 0.05
DECAY_MAX: Final = 0.5
RECENT_ACCESS: Final = timedelta(days=7)
RECENT_GAIN: Final = 1.1
OLD_ACCESS: Final = timedelta(days=30)
OLD_LOSS: Final = 0.9

PRUNE_BELOW: Final = 0.15
PRUNE_AGE: Final = timedelta(days=30)

NEAREST: Final = 10
RELATED_FROM: Final = 0.85
UPDATES_FROM: Final = 0.95
EDGES_PER_PASS: Final = 100


# ---------------------------------------------------------------- decay (SPEC M-7)


def decayed(
    importance: float,
    kind: MemoryType,
    created_at: datetime,
    accessed_at: datetime | None,
    now: datetime,
) -> float:
    """Return what is left of an importance, 0 to 1. What was never accessed counts from its making.

    >>> from datetime import UTC
    >>> made = datetime(2026, 1, 1, tzinfo=UTC)
    >>> decayed(0.3, "observation", made, None, made + timedelta(days=31))
    0.135
    """
    if kind == "identity":
        return importance
    made, moment = micros(created_at), micros(now)
    seen = made if accessed_at is None else micros(accessed_at)
    return decayed_micros(importance, made, seen, moment)


def decayed_micros(importance: float, made: int, seen: int, now: int) -> float:
    """Return the same of microseconds; `views.DECAYED` does these very steps in SQL."""
    days = max(now - made, 0) / float(DAY)
    left = importance * (1.0 - min(days * DECAY_PER_DAY, DECAY_MAX))
    if now - seen < RECENT_ACCESS.days * DAY:
        return min(left * RECENT_GAIN, 1.0)
    if now - seen > OLD_ACCESS.days * DAY:
        return min(left * OLD_LOSS, 1.0)
    return min(left, 1.0)


# ---------------------------------------------------------------- pruning (SPEC M-6, M-7)


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What pruning must know of a memory that stands."""

    id: str
    type: MemoryType
    importance: float
    created_at: datetime
    accessed_at: datetime | None = None
    expires_at: datetime | None = None


class Prunable(msgspec.Struct, frozen=True):
    """Ids, sorted; none is in both."""

    expired: tuple[str, ...] = ()
    decayed: tuple[str, ...] = ()


def is_expired(expires_at: datetime | None, now: datetime) -> bool:
    return expires_at is not None and expires_at <= now


def is_faded(memory: Kept, now: datetime) -> bool:
    """Tell whether so little is left of it, after long enough, that it may go."""
    if memory.type == "identity" or now - memory.created_at <= PRUNE_AGE:
        return False
    left = decayed(memory.importance, memory.type, memory.created_at, memory.accessed_at, now)
    return left < PRUNE_BELOW


def prunable(memories: Iterable[Kept], now: datetime) -> Prunable:
    """Return what has to go."""
    expired: list[str] = []
    faded: list[str] = []
    for memory in memories:
        if is_expired(memory.expires_at, now):
            expired.append(memory.id)
        elif is_faded(memory, now):
            faded.append(memory.id)
    return Prunable(tuple(sorted(expired)), tuple(sorted(faded)))


# ---------------------------------------------------------------- associating (SPEC M-5)


class Associable(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that an association pass compares with what is near it."""

    id: str
    seq: int
    """Of the record that saved it: the larger is the newer."""
    near: tuple[tuple[str, int, float], ...]
    """Id, seq and cosine of its nearest that stand, without itself."""
    linked: frozenset[str] = frozenset()
    """Those that it is associated with already, either way, by what a pass makes."""


class Associations(msgspec.Struct, frozen=True):
    """What a pass found."""

    edges: tuple[MemoryLink, ...]
    through: int
    """Everything saved up to here has been looked at completely."""
    is_full: bool = False
    """There is more to look at, for the next pass."""


def edge_of(older: str, newer: str, similarity: float) -> MemoryLink | None:
    """Return the association of two memories of that cosine; None if they are too far apart.

    >>> edge_of("a", "b", 0.85)
    MemoryLink(from_id='b', to_id='a', relation='related_to', weight=0.5)
    >>> edge_of("a", "b", 1.0)
    MemoryLink(from_id='b', to_id='a', relation='updates', weight=1.0)
    """
    if similarity < RELATED_FROM:
        return None
    share = min((similarity - RELATED_FROM) / (1.0 - RELATED_FROM), 1.0)
    relation: Relation = "updates" if similarity >= UPDATES_FROM else "related_to"
    return MemoryLink(
        from_id=newer,
        to_id=older,
        relation=relation,
        weight=round(0.5 + share * 0.5, 6),
    )


def associate(memories: Sequence[Associable], before: int = 0) -> Associations:
    """Return the edges of memories that were looked at, oldest first.

    Never more than `EDGES_PER_PASS`: a memory whose edges don't fit any more is left for the next
    pass with all of them, and so is everything after it.

    Args:
        memories: what was saved after `before`, without a gap.
        before: up to where earlier passes got.
    """
    edges: dict[frozenset[str], MemoryLink] = {}
    through = before
    for memory in sorted(memories, key=lambda each: each.seq):
        found = _edges_of(memory, edges.keys())
        if len(edges) + len(found) > EDGES_PER_PASS:
            return Associations(tuple(edges.values()), through, is_full=True)
        edges |= found
        through = memory.seq
    return Associations(tuple(edges.values()), through, is_full=False)


def _edges_of(
    memory: Associable, known: Iterable[frozenset[str]]
) -> dict[frozenset[str], MemoryLink]:
    """Return the new edges of one memory by the pair that they join: one edge a pair."""
    done = set(known) | {frozenset((memory.id, other)) for other in memory.linked}
    found: dict[frozenset[str], MemoryLink] = {}
    for other, seq, similarity in memory.near:
        pair = frozenset((memory.id, other))
        if len(pair) < 2 or pair in done or pair in found:
            continue
        older, newer = (other, memory.id) if seq <= memory.seq else (memory.id, other)
        edge = edge_of(older, newer, similarity)
        if edge is not None:
            found[pair] = edge
    return found


# ---------------------------------------------------------------- undoing (SPEC M-4)


def closure(roots: Iterable[N], children: Callable[[N], Iterable[N]]) -> set[N]:
    """Return the roots and all that can be reached from them.

    >>> sorted(closure([1], {1: [2], 2: [1, 3], 3: [], 4: []}.__getitem__))
    [1, 2, 3]
    """
    reached: set[N] = set()
    open_ends = list(roots)
    while open_ends:
        node = open_ends.pop()
        if node not in reached:
            reached.add(node)
            open_ends.extend(children(node))
    return reached


class Reverted(msgspec.Struct, frozen=True):
    """What an undo takes away, and what stands again because of it."""

    undone: tuple[str, ...]
    restored: tuple[str, ...] = ()
    families: tuple[tuple[str, ...], ...] = ()
    """All of them, by what they were made of one another."""

    def parts(self, size: int) -> list[Reverted]:
        """Cut it into plans of at most `size` ids of either kind, which together do the same.

        A family stays together unless it is larger: a summary gives back what it took the place of
        as soon as it ends, also what is to end by a later part.
        """
        parts: list[Reverted] = []
        undone: list[str] = []
        restored: list[str] = []
        takes, gives = set(self.undone), set(self.restored)
        for family in self.families:
            taken = [one for one in family if one in takes]
            given = [one for one in family if one in gives]
            if len(undone) + len(taken) > size or len(restored) + len(given) > size:
                parts += _cut(undone, restored, size)
                undone, restored = [], []
            undone += taken
            restored += given
        return parts + _cut(undone, restored, size)


def _cut(undone: Sequence[str], restored: Sequence[str], size: int) -> list[Reverted]:
    starts = range(0, max(len(undone), len(restored)), size)
    return [
        Reverted(tuple(undone[start : start + size]), tuple(restored[start : start + size]))
        for start in starts
    ]


def families(
    ids: Iterable[str], linked: Callable[[str], Iterable[str]]
) -> tuple[tuple[str, ...], ...]:
    """Return ids in groups: what is linked, over however many others, is in one.

    >>> families("abcd", {"a": ["c"], "b": [], "c": [], "d": ["c"]}.__getitem__)
    (('a', 'c', 'd'), ('b',))
    """
    above: dict[str, str] = {}

    def top(one: str) -> str:
        while (higher := above.setdefault(one, one)) != one:
            above[one] = above[higher]
            one = higher
        return one

    for one in ids:
        for other in linked(one):
            above[top(other)] = top(one)
        top(one)
    found: dict[str, list[str]] = {}
    for one in sorted(above):
        found.setdefault(top(one), []).append(one)
    return tuple(map(tuple, found.values()))


def revert(
    roots: Iterable[str],
    derived: Callable[[str], Iterable[str]],
    merged: Callable[[str], Iterable[str]],
) -> Reverted:
    """Return what reverting `roots` means.

    Args:
        roots: what was saved from the source.
        derived: the memories that were made of one, summaries that it was merged into among them.
        merged: the members that a summary still takes the place of.
    """
    links: dict[str, list[str]] = {}
    undone = closure(roots, lambda one: links.setdefault(one, list(derived(one))))
    members: set[str] = set()
    for summary in undone:
        given = list(merged(summary))
        links[summary] += given
        members.update(given)
    return Reverted(
        tuple(sorted(undone)),
        tuple(sorted(members - undone)),
        families(sorted(undone), links.__getitem__),
    )
