"""What the records of MEMORIES do to the database: the fold, and nothing but the fold (SPEC M-9).

Each record is applied in the order of the log to what the ones before it left, without a clock,
so a rebuild comes to the same rows as living through it, however the log is cut into batches.

* A save with an id that exists in its scope changes nothing.
* A merge is void unless every memory that it names stands, and if its summary's id exists.
* What somebody asked to forget is hidden for good, whatever else became of it: its content, text
  and vector go, and no question about the past finds it. A summary contains its members, word for
  word or in a model's words, so forgetting one forgets them, and forgetting a member forgets the
  summary; the other members stand again.
* A memory that takes another's place ends it, if both stand and it didn't come from outside, unless
  the other did, too. Forgetting one forgets those that say the same, and has those that say
  less stand again; undoing it has all that it replaced stand again.
* An observation quotes a member: it is void unless all of them stand, and forgetting one of them
  forgets it.
* An end other than that applies only to what stands.
* An undo ends what it names and all that was derived from it by now, also if that happened after
  the undo was planned; members of a merge that is undone stand again, but for those that are
  undone themselves. What had ended before keeps its time, and won't stand again.
* An edge needs two memories of the scope, which exist and differ. Those of ended memories are
  kept and not shown.
* An access counts for what wasn't forgotten.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final, Literal, assert_never

import msgspec

from vigil.contracts import (
    MemoriesAccessed,
    MemoriesAssociated,
    MemoriesMerged,
    MemoriesReplaced,
    MemoriesUndone,
    Memory,
    MemoryForgotten,
    MemoryLink,
    MemoryRecord,
    MemorySaved,
    Relation,
)
from vigil.subjects import Scope

from ..rules import decide, facets
from ..rules.instants import micros
from ..rules.recurrence import SOURCE as OBSERVED
from . import counts, places, rows, successors
from .places import Place

_LINK: Final = """
    INSERT INTO edges (scope, from_num, to_num, relation, weight)
    VALUES (:scope, :from_num, :to_num, :relation, :weight)
    ON CONFLICT (from_num, to_num, relation) DO UPDATE SET weight = excluded.weight
"""
_ACCESS: Final = """
    UPDATE memories SET accesses = accesses + 1, accessed_at = max(coalesce(accessed_at, ?3), ?3)
    WHERE scope = ?1 AND id = ?2 AND ended IS NOT 'forgotten'
"""
# Rounded, so that no order of adding up shows.
_CENTRALITY: Final = """
    UPDATE memories SET centrality = round((
        SELECT coalesce(sum(weight), 0) FROM (
            SELECT e.weight FROM edges e JOIN memories o ON o.num = e.to_num
            WHERE e.from_num = ?1 AND o.ended IS NULL
            UNION ALL
            SELECT e.weight FROM edges e JOIN memories o ON o.num = e.from_num
            WHERE e.to_num = ?1 AND o.ended IS NULL
        )
    ) * (ended IS NULL), 6)
    WHERE num = ?1
"""
_NEIGHBOURS: Final = (
    "SELECT to_num FROM edges WHERE from_num = ?1"
    " UNION SELECT from_num FROM edges WHERE to_num = ?1"
)

OBSERVER: Final = "maintenance"
"""Who writes observations down."""
Reason = Literal["asked", "expired", "decayed"]


class Entry(msgspec.Struct, frozen=True):
    """A record of MEMORIES, with what its text was made into (for saves and merges)."""

    seq: int
    record: MemoryRecord
    terms: str = ""
    """For full text: what :func:`services.memory.recall.terms.index_terms` returned."""
    words: bytes = b""
    """uint32[], little endian: the distinct tokens of the word model."""


class Fold:
    """Applies records inside one transaction; :meth:`finish` ends it."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._places: dict[Scope, Place] = {}
        self._uncounted: dict[Place, int] = {}
        """Memories saved since a scope's words were counted."""
        self._stale: set[int] = set()
        """Whose centrality has to be computed again."""

    def apply(self, entry: Entry) -> None:
        """Apply one record."""
        record = entry.record
        scope = Scope(record.agent, record.owner)
        if isinstance(record, MemorySaved):
            self._save(self._made(scope), entry, record)
            return
        place = self._found(scope)
        if place is not None:
            self._change(place, entry, record)

    def finish(self) -> None:
        """Compute what many records may have changed, once."""
        self._db.executemany(_CENTRALITY, [(num,) for num in sorted(self._stale)])
        self._stale.clear()
        for place, number in self._uncounted.items():
            counts.set_uncounted(self._db, place, number)
        self._uncounted.clear()

    def _found(self, scope: Scope) -> Place | None:
        place = self._places.get(scope) or places.find(self._db, scope)
        if place is not None:
            self._places[scope] = place
        return place

    def _made(self, scope: Scope) -> Place:
        place = self._found(scope) or places.make(self._db, scope)
        self._places[scope] = place
        return place

    def _change(self, place: Place, entry: Entry, record: MemoryRecord) -> None:
        match record:
            case MemorySaved():
                raise AssertionError("saves were handled before")
            case MemoryForgotten():
                self._forget(place, entry.seq, record)
            case MemoriesMerged():
                self._merge(place, entry, record)
            case MemoriesReplaced():
                self._replace(place, entry.seq, record)
            case MemoriesAssociated():
                self._associate(place, record)
            case MemoriesAccessed():
                self._access(place, record)
            case MemoriesUndone():
                self._undo(place, entry.seq, record)
            case _:
                assert_never(record)

    # ------------------------------------------------------------ beginnings

    def _save(self, place: Place, entry: Entry, record: MemorySaved) -> None:
        memory = record.memory
        if memory.source == OBSERVED and record.by == OBSERVER:
            standing = self._numbers(place, memory.provenance, is_standing=True)
            if len(standing) < len(memory.provenance):
                return
        if self._insert(place, entry, memory, memory.provenance):
            self._link(place, record.edges)

    def _merge(self, place: Place, entry: Entry, record: MemoriesMerged) -> None:
        members = self._numbers(place, dict.fromkeys(record.merged_ids), is_standing=True)
        if not members or len(members) < len(set(record.merged_ids)):
            return
        origins = (*record.memory.provenance, *record.merged_ids)
        if self._insert(place, entry, record.memory, origins):
            at = micros(record.at)
            for num in members:
                self._end(num, entry.seq, "merged", at, superseded_by=record.memory.id)
            self._db.executemany(
                "INSERT INTO merges (scope, summary, member) VALUES (?, ?, ?)",
                [(place.number, entry.seq, num) for num in members],
            )

    def _replace(self, place: Place, seq: int, record: MemoriesReplaced) -> None:
        for new in self._numbers(place, (record.by_id,), is_standing=True):
            for old in self._numbers(place, dict.fromkeys(record.memory_ids), is_standing=True):
                if not successors.may_replace(self._db, new, old, is_wider=record.is_wider):
                    continue
                self._end(old, seq, "replaced", micros(record.at), superseded_by=record.by_id)
                successors.note(self._db, place, new, old, record)
                if not (record.is_same or record.is_wider):
                    self._put(place, new, old, "updates", 1.0)

    def _insert(self, place: Place, entry: Entry, memory: Memory, origins: Sequence[str]) -> bool:
        """Insert a memory; return whether its id is new."""
        number, num = place.number, entry.seq
        if not rows.insert(self._db, number, num, memory):
            return False
        self._db.execute(
            "INSERT INTO features (num, words, terms) VALUES (?, ?, ?)",
            (num, entry.words, entry.terms),
        )
        if entry.terms:
            self._db.execute(
                places.INTO_TEXT.format(text=place.text),
                (num, entry.terms, facets.of_memory(memory)),
            )
        self._db.executemany(
            "INSERT INTO provenance (scope, of_id, num) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [(number, of_id, num) for of_id in origins],
        )
        successors.note_said(self._db, place, entry.record.owner, num, memory)
        self._count(place)
        return True

    def _count(self, place: Place) -> None:
        if place not in self._uncounted:
            self._uncounted[place] = counts.uncounted(self._db, place)
        self._uncounted[place] += 1
        if self._uncounted[place] >= counts.COUNTED_FROM:
            counted = counts.count(self._db, place)
            is_all = counted < counts.COUNTED_MAX
            self._uncounted[place] = 0 if is_all else self._uncounted[place] - counted

    # ------------------------------------------------------------ ends

    def _forget(self, place: Place, seq: int, record: MemoryForgotten) -> None:
        at = micros(record.at)
        if record.reason == "asked":
            self._forget_for_good(place, seq, record.memory_ids)
            return
        for num in self._numbers(place, record.memory_ids, is_standing=True):
            self._end(num, seq, record.reason, at)

    def _forget_for_good(self, place: Place, seq: int, ids: Sequence[str]) -> None:
        asked = self._numbers(place, ids)
        gone = decide.closure(asked, self._members)
        gone = decide.closure(gone, lambda num: successors.same(self._db, num))
        gone = decide.closure(gone, self._summaries)
        gone = decide.closure(gone, lambda num: self._observations(place, num))
        said = [(num, self._blank(place, seq, num)) for num in sorted(gone)]
        counts.forget(self._db, place, said)
        self._restore_members(seq, gone)
        for num in successors.given_back(self._db, seq, gone, is_forgotten=True):
            self._touch(num)

    def _blank(self, place: Place, seq: int, num: int) -> bytes:
        """Hide a memory for good, and take what it said out of everything that can be searched.

        Return its tokens, for the counts.
        """
        found = rows.found_by(self._db, num)
        if found.ended == "forgotten":
            return b""
        if found.terms:
            self._db.execute(
                f"INSERT INTO {place.text} ({place.text}, rowid, terms, facets)"  # noqa: S608
                " VALUES ('delete', ?, ?, ?)",
                (num, found.terms, found.facets),
            )
        self._db.execute("DELETE FROM features WHERE num = ?", (num,))
        self._db.execute("DELETE FROM said WHERE num = ?", (num,))
        self._db.execute("UPDATE memories SET content = '' WHERE num = ?", (num,))
        self._end(num, seq, "forgotten", 0)
        return found.words

    def _undo(self, place: Place, seq: int, record: MemoriesUndone) -> None:
        named = self._numbers(place, record.memory_ids)
        undone = decide.closure(named, lambda num: self._derived(place, num))
        at = micros(record.at)
        for num in sorted(undone):
            self._end(num, seq, "undone", at)
        self._restore_members(seq, undone)
        for num in successors.given_back(self._db, seq, undone):
            self._touch(num)

    def _end(
        self, num: int, seq: int, ended: str, at: int, *, superseded_by: str | None = None
    ) -> None:
        """End a memory; what had ended keeps its time, unless it is to be hidden altogether.

        What is forgotten stays so.
        """
        self._db.execute(
            """UPDATE memories SET
                ended = :ended, changed_seq = :seq,
                ended_at = CASE :ended
                    WHEN 'forgotten' THEN 0
                    WHEN 'expired' THEN min(coalesce(expires_at, :at), :at)
                    ELSE coalesce(ended_at, :at) END,
                superseded_by = coalesce(:by, superseded_by)
            WHERE num = :num AND ended IS NOT 'forgotten' AND ended IS NOT :ended""",
            {"num": num, "ended": ended, "seq": seq, "at": at, "by": superseded_by},
        )
        self._touch(num)

    def _restore_members(self, seq: int, ended: Iterable[int]) -> None:
        """Let members of summaries that ended stand again, if they ended by nothing else."""
        for summary in sorted(ended):
            for num in self._members(summary, is_only_merged=True):
                self._db.execute(
                    "UPDATE memories SET ended = NULL, ended_at = NULL, superseded_by = NULL,"
                    " changed_seq = ? WHERE num = ?",
                    (seq, num),
                )
                self._touch(num)

    # ------------------------------------------------------------ the rest

    def _associate(self, place: Place, record: MemoriesAssociated) -> None:
        self._link(place, record.edges)
        self._db.execute(
            "UPDATE scopes SET looked_through = max(looked_through, ?) WHERE scope = ?",
            (record.through, place.number),
        )

    def _link(self, place: Place, edges: Iterable[MemoryLink]) -> None:
        for edge in edges:
            ends = self._numbers(place, (edge.from_id, edge.to_id))
            if len(ends) == 2 and ends[0] != ends[1]:
                self._put(place, ends[0], ends[1], edge.relation, edge.weight)
                self._stale.update(ends)

    def _put(
        self, place: Place, from_num: int, to_num: int, relation: Relation, weight: float
    ) -> None:
        self._db.execute(
            _LINK,
            {
                "scope": place.number,
                "from_num": from_num,
                "to_num": to_num,
                "relation": relation,
                "weight": weight,
            },
        )

    def _access(self, place: Place, record: MemoriesAccessed) -> None:
        at = micros(record.at)
        ids = dict.fromkeys(record.memory_ids)
        self._db.executemany(_ACCESS, [(place.number, memory_id, at) for memory_id in ids])

    # ------------------------------------------------------------ looking up

    def _numbers(self, place: Place, ids: Iterable[str], *, is_standing: bool = False) -> list[int]:
        """Return the numbers of those that exist in the scope, in the order of `ids`."""
        sql = "SELECT num FROM memories WHERE scope = ? AND id = ?"
        if is_standing:
            sql += " AND ended IS NULL"
        rows = (self._db.execute(sql, (place.number, i)).fetchone() for i in ids)
        return [row[0] for row in rows if row is not None]

    def _members(self, summary: int, *, is_only_merged: bool = False) -> list[int]:
        """Return the members that it still takes the place of."""
        sql = """SELECT m.num FROM merges JOIN memories s ON s.num = merges.summary
                 JOIN memories m ON m.num = merges.member AND m.superseded_by = s.id
                 WHERE merges.summary = ?"""
        if is_only_merged:
            sql += " AND m.ended = 'merged'"
        return _first(self._db.execute(sql, (summary,)))

    def _summaries(self, member: int) -> list[int]:
        """Return the summaries that contain it, also those that were undone."""
        return _first(self._db.execute("SELECT summary FROM merges WHERE member = ?", (member,)))

    def _derived(self, place: Place, num: int) -> list[int]:
        sql = """SELECT p.num FROM memories m JOIN provenance p
                 ON p.scope = m.scope AND p.of_id = m.id WHERE m.num = ? AND m.scope = ?"""
        return _first(self._db.execute(sql, (num, place.number)))

    def _observations(self, place: Place, num: int) -> list[int]:
        """Return the observations that it is a member of."""
        sql = """SELECT p.num FROM memories m JOIN provenance p
                 ON p.scope = m.scope AND p.of_id = m.id JOIN memories o ON o.num = p.num
                 WHERE m.num = ? AND m.scope = ? AND o.source = ?"""
        return _first(self._db.execute(sql, (num, place.number, OBSERVED)))

    def _touch(self, num: int) -> None:
        """Whether it stands has changed: it counts for others, or doesn't any more."""
        self._stale.add(num)
        self._stale.update(_first(self._db.execute(_NEIGHBOURS, (num,))))


def _first(rows: Iterable[tuple[int]]) -> list[int]:
    return [row[0] for row in rows]
