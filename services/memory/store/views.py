"""What is read of the database for people and models: one, a list, a graph, figures.

Plain functions on a connection, each on the state of one moment (:meth:`Store.read`). All of them
begin with a :class:`Place`; what was forgotten on request is in none of their answers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

import msgspec

from vigil.contracts import MemoryLink, MemoryType, Relation, Stability
from vigil.errors import NotFound
from vigil.memory.operations.get import Got
from vigil.memory.operations.graph import GetGraph, Graph
from vigil.memory.operations.stats import Stats
from vigil.memory.questions import ANSWER_BYTES_MAX, Filters, MemoryView

from .. import named
from ..rules import decide
from ..rules.instants import DAY, instant, instant_or_none, micros
from .places import Place


class StoredRow(NamedTuple):
    """A row of `memories` as it is read: each field is the column of its name, and what is read is
    made of these names, so no two of them change places."""

    num: int
    id: str
    type: MemoryType
    importance: float
    source: str
    stability: Stability
    thread: str
    created_at: int
    occurred_at: int | None
    expires_at: int | None
    valid_from: int | None
    valid_to: int | None
    is_tainted: int
    accessed_at: int | None
    accesses: int
    centrality: float
    ended_at: int | None
    ended: Any
    superseded_by: str | None
    provenance: str
    content: str


class _Ends(NamedTuple):
    from_id: str
    to_id: str
    relation: Relation
    weight: float


_SUPERSEDED_BY: Final = """(CASE WHEN m.superseded_by IS NULL THEN NULL
    WHEN EXISTS (SELECT 1 FROM memories f
        WHERE f.scope = m.scope AND f.id = m.superseded_by AND f.ended = 'forgotten')
    THEN (SELECT n.id FROM replaced r JOIN memories n ON n.num = r.newer
        WHERE r.older = m.num AND n.ended IS NULL ORDER BY n.num DESC LIMIT 1)
    ELSE m.superseded_by END)"""
"""What was forgotten is named by nothing: in its place stands what replaced that, if anything."""
_STORED: Final = ", ".join(
    _SUPERSEDED_BY if name == "superseded_by" else f"m.{name}" for name in StoredRow._fields
)
WIDTH: Final = len(StoredRow._fields) + 1
_ALSO_FROM: Final = """(SELECT json_group_array(DISTINCT o.source) FROM replaced r
    JOIN memories o ON o.num = r.older WHERE r.newer = m.num AND (r.is_same OR r.is_wider)
        AND o.ended = 'replaced' AND o.source <> m.source AND o.is_tainted <= m.is_tainted)"""
COLUMNS: Final = f"{_STORED}, {_ALSO_FROM}"
"""Of ``memories m``: what :func:`view` takes."""

DECAYED: Final = f"""(CASE WHEN m.type = 'identity' THEN m.importance ELSE min(
    m.importance
    * (1.0 - min(max(:now - m.created_at, 0) / {float(DAY)!r} * {decide.DECAY_PER_DAY!r},
        {decide.DECAY_MAX!r}))
    * (CASE
        WHEN :now - coalesce(m.accessed_at, m.created_at) < {decide.RECENT_ACCESS.days * DAY}
            THEN {decide.RECENT_GAIN!r}
        WHEN :now - coalesce(m.accessed_at, m.created_at) > {decide.OLD_ACCESS.days * DAY}
            THEN {decide.OLD_LOSS!r}
        ELSE 1.0 END),
    1.0) END)"""
""":func:`decide.decayed` in SQL, to the last bit, for sorting many; ``:now`` in microseconds."""

Reach = Literal["standing", "searchable", "pruned", "all"]
"""What of a place is meant: what stands; also members of merges, which a search finds behind their
summary, and what was replaced by how it is now, while that is there to be shown before it; also
what was pruned, and what was replaced by what is forgotten; also what was undone. What was
forgotten on request never is."""
_MEMBER: Final = "m.ended = 'merged' AND NOT EXISTS (SELECT 1 FROM merges WHERE summary = m.num)"
_CORRECTED: Final = (
    "m.ended = 'replaced' AND NOT EXISTS"
    " (SELECT 1 FROM replaced r WHERE r.older = m.num AND (r.is_same OR r.is_wider))"
)
_IS_SHOWN: Final = (
    "EXISTS (SELECT 1 FROM replaced r JOIN memories n ON n.num = r.newer WHERE r.older = m.num"
    " AND (n.ended_at IS NULL OR n.ended_at > :now OR n.ended = 'merged'))"
)
_ALSO: Final[dict[Reach, str]] = {
    "standing": "",
    "searchable": f" OR {_MEMBER} OR {_CORRECTED} AND {_IS_SHOWN}",
    "pruned": f" OR {_MEMBER} OR {_CORRECTED} OR m.ended IN ('expired', 'decayed')",
}
_UNEXPIRED: Final = "(m.expires_at IS NULL OR m.expires_at > :now)"
_BY_SOURCE_MAX: Final = 50
_EDGES_MAX: Final = 1500
"""Of a graph; the strongest. At 150 bytes each they fit beside `ANSWER_BYTES_MAX` of memories."""
_texts: Final = msgspec.json.Decoder(tuple[str, ...]).decode

Row = Sequence[Any]
Params = dict[str, Any]


def moment_of(filters: Filters, now: datetime) -> datetime:
    """Return the moment that a question is about."""
    return now if filters.as_of is None else filters.as_of


def where(
    place: Place, filters: Filters, now: datetime, reach: Reach = "standing"
) -> tuple[str, Params]:
    """Return the condition on ``memories m`` that filters stand for, with its named parameters.

    ``:now`` is the moment that the question is about, ``:scope`` the place.
    """
    params: Params = {"scope": place.number, "now": micros(moment_of(filters, now))}
    conditions = ["m.scope = :scope", *_within(reach, is_now=filters.as_of is None)]
    if filters.is_kind_of_source:
        conditions.append("m.source >= :source AND m.source < :source_end")
        params |= of_kind(filters)
    elif filters.source:
        conditions.append("m.source = :source")
        params["source"] = filters.source
    if filters.types:
        types = {f"type{n}": kind for n, kind in enumerate(sorted(set(filters.types)))}
        conditions.append(f"m.type IN ({', '.join(f':{name}' for name in types)})")
        params |= types
    if filters.thread:
        conditions.append("m.thread <> '' AND m.thread = :thread")
        params["thread"] = filters.thread
    if filters.since is not None:
        conditions.append("m.happened_at >= :since")
        params["since"] = micros(filters.since)
    if filters.until is not None:
        conditions.append("m.happened_at <= :until")
        params["until"] = micros(filters.until)
    if filters.importance_min > 0:
        conditions.append(f"{DECAYED} >= :importance_min")
        params["importance_min"] = filters.importance_min
    return " AND ".join(conditions), params


def _within(reach: Reach, *, is_now: bool) -> Iterator[str]:
    if reach == "all":
        yield "m.ended IS NOT 'forgotten' AND m.created_at <= :now"
        return
    if is_now:
        yield f"(m.ended_at IS NULL{_ALSO[reach]})"
    else:
        yield f"m.created_at <= :now AND (m.ended_at IS NULL OR m.ended_at > :now{_ALSO[reach]})"
    if reach != "pruned":
        yield _UNEXPIRED


def of_kind(filters: Filters) -> Params:
    """Return from where to where sources begin with the filter's: after the colon is the semicolon.

    >>> of_kind(Filters(source="job:"))
    {'source': 'job:', 'source_end': 'job;'}
    """
    return {"source": filters.source, "source_end": filters.source[:-1] + ";"}


def view(row: Row, now: datetime) -> MemoryView:
    """Return a row that begins with `COLUMNS` as others see it at a moment."""
    of, also_from = StoredRow._make(row[: WIDTH - 1]), row[WIDTH - 1]
    ended, ended_at = of.ended, of.ended_at
    if ended is None and of.expires_at is not None and of.expires_at <= micros(now):
        # Maintenance hasn't come by yet.
        ended, ended_at = "expired", of.expires_at
    made, accessed = instant(of.created_at), instant_or_none(of.accessed_at)
    return MemoryView(
        id=of.id,
        content=of.content,
        created_at=made,
        type=of.type,
        importance=of.importance,
        source=of.source,
        stability=of.stability,
        thread=of.thread,
        occurred_at=instant_or_none(of.occurred_at),
        expires_at=instant_or_none(of.expires_at),
        valid_from=instant_or_none(of.valid_from),
        valid_to=instant_or_none(of.valid_to),
        provenance=_texts(of.provenance),
        is_tainted=bool(of.is_tainted),
        seq=of.num,
        decayed=decide.decayed(of.importance, of.type, made, accessed, now),
        accessed_at=accessed,
        accesses=of.accesses,
        centrality=of.centrality,
        ended_at=instant_or_none(ended_at),
        ended=ended,
        superseded_by=of.superseded_by,
        also_from=_texts(also_from),
    )


def fitting(views: Iterable[MemoryView]) -> list[MemoryView]:
    """Return as many of the first as one answer can hold; always one."""
    taken: list[MemoryView] = []
    size = 0
    for each in views:
        size += len(msgspec.json.encode(each)) + 1
        if taken and size > ANSWER_BYTES_MAX:
            break
        taken.append(each)
    return taken


# ---------------------------------------------------------------- one


def by_numbers(
    db: sqlite3.Connection, place: Place, numbers: Iterable[int], now: datetime
) -> dict[int, MemoryView]:
    """Return the memories of those numbers, ended ones too, but for what was forgotten."""
    wanted = msgspec.json.encode(list(numbers)).decode()
    rows = db.execute(
        f"SELECT {COLUMNS} FROM json_each(?) w CROSS JOIN memories m ON m.num = w.value"  # noqa: S608
        " WHERE m.scope = ? AND m.ended IS NOT 'forgotten'",
        (wanted, place.number),
    )
    return {row[0]: view(row, now) for row in rows}


def one(db: sqlite3.Connection, place: Place | None, memory_id: str, now: datetime) -> Got:
    """Return a memory with its associations. Raises: NotFound."""
    memory = _find(db, place, memory_id, now)
    assert place is not None  # noqa: S101 - else nothing was found
    return Got(memory=memory, edges=_edges(db, place, [memory.seq], is_inside=False))


def _find(db: sqlite3.Connection, place: Place | None, memory_id: str, now: datetime) -> MemoryView:
    row = None
    if place is not None:
        row = db.execute(
            f"SELECT {COLUMNS} FROM memories m"  # noqa: S608 - columns of this file
            " WHERE m.scope = ? AND m.id = ? AND m.ended IS NOT 'forgotten'",
            (place.number, memory_id),
        ).fetchone()
    if row is None:
        raise NotFound(f"there is no memory {memory_id}")
    return view(row, now)


# ---------------------------------------------------------------- a graph


def graph(db: sqlite3.Connection, place: Place | None, question: GetGraph, now: datetime) -> Graph:
    """Return the memories around one, or the best connected ones. Raises: NotFound."""
    if question.id is not None:
        center = _find(db, place, question.id, now)
        assert place is not None  # noqa: S101 - else nothing was found
        numbers = _around(db, place, center.seq, question.depth, question.limit)
    elif place is not None:
        numbers = _best_connected(db, place, question.limit)
    else:
        return Graph(nodes=(), edges=())
    found = by_numbers(db, place, numbers, now)
    nodes = fitting(found[num] for num in numbers if num in found)
    edges = _edges(db, place, [node.seq for node in nodes], is_inside=True)
    return Graph(nodes=tuple(nodes), edges=edges)


def _best_connected(db: sqlite3.Connection, place: Place, limit: int) -> list[int]:
    rows = db.execute(
        "SELECT num FROM memories WHERE scope = ? AND centrality > 0"
        " ORDER BY centrality DESC, num DESC LIMIT ?",
        (place.number, limit),
    )
    return [row[0] for row in rows]


def _around(db: sqlite3.Connection, place: Place, center: int, depth: int, limit: int) -> list[int]:
    """Return numbers by distance, those of one distance by the weight that leads there."""
    found = {center: None}
    edge = [center]
    for _ in range(depth):
        steps = _steps(db, place, edge, limit)
        edge = [num for num in steps if num not in found][: limit - len(found)]
        found |= dict.fromkeys(edge)
        if not edge:
            break
    return list(found)


def _steps(db: sqlite3.Connection, place: Place, numbers: Sequence[int], limit: int) -> list[int]:
    """Return what stands one step from `numbers`, the strongest first; twice the limit will do."""
    rows = db.execute(
        """WITH ends (num) AS (SELECT value FROM json_each(:numbers)),
        steps (num, weight) AS (
            SELECT e.to_num, e.weight FROM ends JOIN edges e ON e.from_num = ends.num
            UNION ALL SELECT e.from_num, e.weight FROM ends JOIN edges e ON e.to_num = ends.num)
        SELECT steps.num FROM steps JOIN memories m ON m.num = steps.num
        WHERE m.scope = :scope AND m.ended IS NULL AND steps.num NOT IN ends
        GROUP BY steps.num ORDER BY max(steps.weight) DESC, steps.num DESC LIMIT :limit""",
        {
            "numbers": msgspec.json.encode(numbers).decode(),
            "scope": place.number,
            "limit": 2 * limit,
        },
    )
    return [row[0] for row in rows]


def _edges(
    db: sqlite3.Connection, place: Place, numbers: Sequence[int], *, is_inside: bool
) -> tuple[MemoryLink, ...]:
    """Return edges whose both ends stand: between `numbers`, or of any of them."""
    both = "AND" if is_inside else "OR"
    rows = db.execute(
        f"""WITH ends (num) AS (SELECT value FROM json_each(:numbers))
        SELECT a.id AS from_id, b.id AS to_id, e.relation, e.weight
        FROM edges e JOIN memories a ON a.num = e.from_num JOIN memories b ON b.num = e.to_num
        WHERE (e.from_num IN ends {both} e.to_num IN ends)
            AND e.scope = :scope AND a.ended IS NULL AND b.ended IS NULL
        ORDER BY e.weight DESC, e.from_num, e.to_num, e.relation LIMIT :limit""",  # noqa: S608
        {
            "numbers": msgspec.json.encode(numbers).decode(),
            "scope": place.number,
            "limit": _EDGES_MAX,
        },
    )
    return tuple(MemoryLink(**row._asdict()) for row in named.read(_Ends, rows))


# ---------------------------------------------------------------- figures


def stats(db: sqlite3.Connection, place: Place | None, now: datetime) -> Stats:
    """Return how much there is. What the indexes are made of is for the service to add."""
    empty = Stats(
        memories=0,
        ended=0,
        edges=0,
        by_type={},
        by_source={},
        position=0,
        vectors_position=0,
        embedder="",
        index="",
    )
    if place is None:
        return empty
    standing, params = where(place, Filters(), now)
    total = db.execute(
        "SELECT count(*) FROM memories WHERE scope = ? AND ended IS NOT 'forgotten'",
        (place.number,),
    )
    by_type = _counts(db, "type", standing, params)
    memories = sum(by_type.values())
    edges = db.execute(
        "SELECT count(*) FROM edges e JOIN memories a ON a.num = e.from_num"
        " JOIN memories b ON b.num = e.to_num"
        " WHERE e.scope = ? AND a.ended IS NULL AND b.ended IS NULL",
        (place.number,),
    )
    return msgspec.structs.replace(
        empty,
        memories=memories,
        ended=total.fetchone()[0] - memories,
        edges=edges.fetchone()[0],
        by_type=by_type,
        by_source=_counts(db, "source", standing, params),
    )


def _counts(db: sqlite3.Connection, column: str, standing: str, params: Params) -> dict[str, int]:
    rows = db.execute(
        f"SELECT m.{column}, count(*) AS n FROM memories m WHERE {standing}"  # noqa: S608
        f" GROUP BY 1 ORDER BY n DESC, 1 LIMIT {_BY_SOURCE_MAX}",
        params,
    )
    return dict(rows.fetchall())
