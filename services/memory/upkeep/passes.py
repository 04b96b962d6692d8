"""The two passes over what is remembered, without a model: association and maintenance.

A pass reads what stands, has :mod:`.decide` plan, and writes the plan to MEMORIES. It
changes nothing itself: the fold does, in every replica, and decides again whether a record still
applies. So a pass that runs twice, or in two replicas at once, or is ended in the middle, does no
harm; its records' ids are made of what they say, so the broker drops most repeats. A scope in which
there is nothing to do gets no record.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from vigil.clock import Clock
from vigil.contracts import (
    MemoriesAssociated,
    MemoriesMerged,
    MemoriesReplaced,
    Memory,
    MemoryForgotten,
    MemoryLink,
    MemoryRecord,
    MemorySaved,
)
from vigil.memory.operations.maintain import Maintained
from vigil.memory.questions import IDS_MAX
from vigil.subjects import Scope, token_of

from ..rules import decide, recurrence
from ..rules.decide import Associable, Associations, Prunable
from ..rules.merge import Merge, merges
from ..rules.sameness import Supersession
from ..store import likeness, places, work
from ..store.places import Place
from ..store.store import Store
from ..store.work import Unassociated
from ..vectors import VectorIndex, Where

BY: Final = "maintenance"
"""Who did it, in every record of a pass."""
VISITED_AT_ONCE: Final = 64
SEARCHED: Final = 3 * decide.NEAREST
"""That the index is asked for; members of merges are among them, which get no associations."""
VISITED_PER_PASS: Final = 5000
"""Memories of one scope that one association pass looks at; each is a search, which takes 1 ms
among 10,000 and 30 among 300,000."""
ASSOCIATION_S: Final = 30.0
"""How long one pass over all scopes goes on; those left come first in the next one."""

Append = Callable[[Scope, MemoryRecord], Awaitable[int]]
"""Stores a record and returns its sequence. Raises: Unavailable."""


class Passes:
    """The passes of one replica; one at a time."""

    def __init__(self, store: Store, index: VectorIndex, append: Append, clock: Clock) -> None:
        self._store = store
        self._index = index
        self._append = append
        self._clock = clock
        self._next: Scope | None = None
        """With which scope the next association pass begins."""
        self._joined: dict[Scope, int] = {}
        """Up to where what was saved has been compared, by this replica since it started."""

    # ------------------------------------------------------------ maintenance (SPEC M-6)

    async def maintain(self, scopes: Sequence[Scope]) -> Maintained:
        """Delete what has expired or faded, merge old volatile notes, and observe what comes up
        again and again.

        Raises:
            Unavailable: the log can't be written now; what was written by then stands.
        """
        pruned = merged = observed = replaced = 0
        for scope in scopes:
            pruned += await self._prune(scope)
            replaced += await self._join(scope)
            merged += await self._merge(scope)
            observed += await self._observe(scope)
        message = _maintained(pruned, merged, observed, replaced)
        return Maintained(
            pruned=pruned, merged=merged, observed=observed, replaced=replaced, message=message
        )

    async def _prune(self, scope: Scope) -> int:
        now = self._clock.now()

        def plan(db: sqlite3.Connection) -> Prunable:
            place = places.find(db, scope)
            return decide.prunable(work.fading(db, place, now) if place else (), now)

        found = await self._store.read(plan)
        await self._forget(scope, found.expired, "expired")
        await self._forget(scope, found.decayed, "decayed")
        return len(found.expired) + len(found.decayed)

    async def _forget(
        self, scope: Scope, ids: Sequence[str], reason: Literal["expired", "decayed"]
    ) -> None:
        for part in _parts(ids, IDS_MAX):
            about = self._about(scope, "forget", reason, *part)
            record = MemoryForgotten(**about, memory_ids=tuple(part), reason=reason)
            await self._append(scope, record)

    async def _join(self, scope: Scope) -> int:
        """Have one memory stand for those that say the same, and for how it was before."""
        place = await self._store.place(scope)
        if place is None:
            return 0
        now, after = self._clock.now(), self._joined.get(scope, 0)
        joined = await self._store.read(lambda db: likeness.of_all(db, place, after, now))
        for one in joined.found:
            await self._append(scope, record_of(scope, one, BY, now))
        self._joined[scope] = joined.through
        return sum(not one.is_beside for one in joined.found)

    async def _merge(self, scope: Scope) -> int:
        now = self._clock.now()

        def plan(db: sqlite3.Connection) -> list[Merge]:
            place = places.find(db, scope)
            if place is None:
                return []
            gone = decide.prunable(work.fading(db, place, now), now)
            notes = work.notes(db, place, (*gone.expired, *gone.decayed), now)
            found = merges(notes, now)
            # One that was undone isn't made again.
            known = work.existing(db, place, [merge.memory.id for merge in found])
            return [merge for merge in found if merge.memory.id not in known]

        planned = await self._store.read(plan)
        for merge in planned:
            about = self._about(scope, "merge", merge.memory.id)
            record = MemoriesMerged(**about, memory=merge.memory, merged_ids=merge.merged_ids)
            await self._append(scope, record)
        return len(planned)

    async def _observe(self, scope: Scope) -> int:
        now = self._clock.now()

        def plan(db: sqlite3.Connection) -> list[Memory]:
            place = places.find(db, scope)
            if place is None:
                return []
            said = work.recent(db, place, now)
            if len(said) < recurrence.OCCASIONS_MIN:
                return []
            near, known = work.near(db, place, said), work.observed(db, place)
            return recurrence.observations(said, near, known, now)

        made = await self._store.read(plan)
        for memory in made:
            about = self._about(scope, "observe", memory.id)
            await self._append(scope, MemorySaved(**about, memory=memory))
        return len(made)

    # ------------------------------------------------------------ association (SPEC M-5)

    async def associate(self, scopes: Sequence[Scope]) -> Maintained:
        """Associate what is new with what is near, as far as the index knows it.

        Raises:
            Unavailable: the index can't be searched or the log can't be written now; what was
                written by then stands.
        """
        deadline = self._clock.monotonic() + ASSOCIATION_S
        associated, has_more = 0, False
        for scope in self._in_turn(scopes):
            self._next = scope
            if self._clock.monotonic() >= deadline:
                has_more = True
                break
            found = await self._associate(scope, deadline)
            associated += len(found.edges)
            has_more |= found.is_full
        else:
            self._next = None
        message = f"{_counted(associated, 'association', 'associations')} made."
        return Maintained(associated=associated, has_more=has_more, message=message)

    def _in_turn(self, scopes: Sequence[Scope]) -> list[Scope]:
        """Return all scopes, beginning where the last pass had no time left."""
        ordered = sorted(scopes)
        first = ordered.index(self._next) if self._next in ordered else 0
        return ordered[first:] + ordered[:first]

    async def _associate(self, scope: Scope, deadline: float) -> Associations:
        place = await self._store.place(scope)
        if place is None:
            return Associations((), 0)
        before = await self._store.read(lambda db: work.associated_through(db, place))
        found = await self._associations(scope, place, before, deadline)
        if found.through > before:
            edges = sorted(f"{edge.from_id} {edge.to_id} {edge.relation}" for edge in found.edges)
            about = self._about(scope, "associate", str(found.through), *edges)
            record = MemoriesAssociated(**about, edges=found.edges, through=found.through)
            await self._append(scope, record)
        return found

    async def _associations(
        self, scope: Scope, place: Place, before: int, deadline: float
    ) -> Associations:
        """Compare memories until there are edges enough, or nothing more to compare."""
        visited: list[Associable] = []
        found = Associations((), before)
        while not found.is_full:
            batch = await self._unassociated(place, max(before, found.through))
            if not batch:
                break
            edges = len(found.edges)
            for memory in batch:
                visited.append(await self._associable(scope, place, memory))
                edges += len(visited[-1].near)
                if edges >= decide.EDGES_PER_PASS:
                    break  # each is a search; those whose edges don't fit would be for nothing
            found = decide.associate(visited, before)
            if len(visited) >= VISITED_PER_PASS or self._clock.monotonic() >= deadline:
                found = msgspec.structs.replace(found, is_full=True)
        return found

    async def _unassociated(self, place: Place, after: int) -> list[Unassociated]:
        now, until = self._clock.now(), self._store.vectors_position
        return await self._store.read(
            lambda db: work.unassociated(db, place, after, until, VISITED_AT_ONCE, now)
        )

    async def _associable(self, scope: Scope, place: Place, memory: Unassociated) -> Associable:
        """Return a memory with what is near it; of what has ended or says nothing, that is none."""
        nothing = Associable(id=memory.id, seq=memory.num, near=())
        vector = memory.vector
        if not memory.is_standing or vector is None or not any(vector):
            return nothing
        hits = await self._index.search(vector, SEARCHED, Where(scope=scope))
        others = {hit.num: hit.similarity for hit in hits if hit.num != memory.num}
        near = [num for num, similarity in others.items() if similarity >= decide.RELATED_FROM]
        if not near:
            return nothing
        now = self._clock.now()
        known = await self._store.read(lambda db: work.known(db, place, memory.num, near, now))
        return Associable(
            id=memory.id,
            seq=memory.num,
            near=tuple(
                (known.ids[num], num, others[num])
                for num in [num for num in near if num in known.ids][: decide.NEAREST]
            ),
            linked=known.linked,
        )

    def _about(self, scope: Scope, *parts: str) -> dict[str, Any]:
        """Return what every record carries; its id is made of what it says."""
        return {
            "id": token_of(scope.agent, scope.owner, *parts),
            "agent": scope.agent,
            "owner": scope.owner,
            "at": self._clock.now(),
            "by": BY,
        }


def record_of(
    scope: Scope, one: Supersession, by: str, now: datetime
) -> MemoriesReplaced | MemoriesAssociated:
    """Return the record of a replacement; its id is made of what it says."""
    about: dict[str, Any] = {"agent": scope.agent, "owner": scope.owner, "at": now, "by": by}
    if one.is_beside:
        edges = (
            MemoryLink(from_id=one.by_id, to_id=to, relation="updates", weight=1.0)
            for to in one.memory_ids
        )
        return MemoriesAssociated(
            id=token_of(scope.agent, scope.owner, "update", one.by_id, *one.memory_ids),
            **about,
            edges=tuple(edges),
        )
    return MemoriesReplaced(
        id=token_of(scope.agent, scope.owner, "replace", one.by_id, *one.memory_ids),
        **about,
        by_id=one.by_id,
        memory_ids=one.memory_ids,
        is_same=one.is_same,
        is_wider=one.is_wider,
    )


def _parts(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _maintained(pruned: int, merged: int, observed: int, replaced: int = 0) -> str:
    """Return a sentence about a pass.

    >>> _maintained(2, 1, 0)
    '2 memories pruned, 1 batch of notes merged into a summary.'
    >>> _maintained(0, 0, 0)
    'There was nothing to prune or to merge.'
    """
    suffix = f" {_counted(replaced, 'memory', 'memories')} replaced." if replaced else ""
    suffix += f" {_counted(observed, 'observation', 'observations')} made." if observed else ""
    if not pruned and not merged:
        return suffix.strip() or "There was nothing to prune or to merge."
    memories = _counted(pruned, "memory", "memories")
    batches = _counted(merged, "batch", "batches")
    summaries = "a summary" if merged == 1 else "summaries"
    return f"{memories} pruned, {batches} of notes merged into {summaries}.{suffix}"
