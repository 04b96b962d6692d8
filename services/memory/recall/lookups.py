"""What recall asks of the database. Each function runs on a reading connection, inside one moment.

Whose memories are searched is the :class:`Place`, which only a scope leads to; what is left out is
one condition (:func:`views.where`) that every row shown has passed, and facets that full text is
narrowed by before it ranks, so that a rare source gets its results however many better ones others
have (SPEC M-3).
"""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from vigil.memory.operations.recall import Recall
from vigil.memory.questions import MemoryView

from .. import named
from ..rules import facets
from ..store import views
from ..store.places import Place
from ..store.views import Params
from . import terms

_SCORE: Final = "-bm25({text}, 1.0, 0.0) / max(1.0, l.letters / :long)"
"""Larger is better. Facets narrow, and count for nothing."""
_BEGINNING: Final = "substr(m.content, 1, 160)"
_IS_QUESTION: Final = "substr(rtrim(m.content), -1) IN ('?', '？', '؟')"
SOURCES_MAX: Final = 500
"""Sources that the index is asked for by name."""
_ROW: Final = (
    f"m.num, m.happened_at, {views.DECAYED} AS importance, m.is_tainted,"
    f" {_BEGINNING} AS beginning, {_IS_QUESTION} AS is_question, m.thread, f.words,"
    " coalesce(f.vector, x'') AS vector"
)
_FEATURES: Final = "CROSS JOIN features f ON f.num = m.num"
_MERGED_INTO: Final = "EXISTS (SELECT 1 FROM merges g WHERE g.summary = {of}.num)"
"""A summary repeats its members, which are found themselves; what fits one of them fits it less."""
_HAVING: Final = "SELECT rowid FROM {text} WHERE {text} MATCH ? LIMIT ?"
"""Of a place's own table."""
_OF_KIND: Final = """SELECT DISTINCT source FROM memories
    WHERE scope = :scope AND source >= :source AND source < :source_end LIMIT :limit"""


class Narrowed(NamedTuple):
    """Which memories of a place a question may find."""

    place: Place
    condition: str
    """On ``memories m``, with `params`; whatever is shown fulfils it."""
    params: Params
    facets: tuple[tuple[str, ...], ...]
    """The part of it that full text knows: of each group, one must hold."""
    is_rest_rare: bool
    """Whether most of what full text finds fulfils the rest, too: only what has ended doesn't."""


class Rows(NamedTuple):
    """What scoring must know of candidates: of each column, all of them in one order."""

    num: tuple[int, ...] = ()
    happened_at: tuple[int, ...] = ()
    """Microseconds since 1970."""
    importance: tuple[float, ...] = ()
    """After decay."""
    is_tainted: tuple[int, ...] = ()
    beginning: tuple[str, ...] = ()
    """Of the content: enough to tell who speaks."""
    is_question: tuple[int, ...] = ()
    """Whether it ends as one."""
    thread: tuple[str, ...] = ()
    words: tuple[bytes, ...] = ()
    """Tokens: uint32[], little endian."""
    vector: tuple[bytes, ...] = ()
    """float32[dimension], unit norm; empty: there is none yet."""

    def and_those(self, others: Rows) -> Rows:
        """Return these and then the others."""
        return Rows._make(map(operator.add, self, others))


class Neighbours(NamedTuple):
    """Two memories of one conversation."""

    one: int
    other: int
    distance: int
    """1: said one after the other; 2: with one in between."""


class Association(NamedTuple):
    """Between two candidates, whichever way it points."""

    one: int
    other: int
    weight: float


def narrow(place: Place, question: Recall, now: datetime) -> Narrowed:
    """Return what a question may find."""
    reach: views.Reach = "pruned" if question.with_pruned else "searchable"
    condition, params = views.where(place, question, now, reach)
    if question.only_trusted:
        condition += " AND m.is_tainted = 0"
    if "summary" not in question.types:
        condition += f" AND NOT {_MERGED_INTO.format(of='m')}"
    groups: list[tuple[str, ...]] = []
    if question.source and not question.is_kind_of_source:
        groups.append((facets.of_source(question.source),))
    if question.types:
        groups.append(tuple(map(facets.of_type, sorted(set(question.types)))))
    if question.thread:
        groups.append((facets.of_thread(question.thread),))
    row_filters = (question.since, question.until, question.as_of, question.is_kind_of_source)
    is_narrow = any(row_filters) or question.importance_min > 0 or question.only_trusted
    return Narrowed(place, condition, params, tuple(groups), not is_narrow)


def sources(db: sqlite3.Connection, place: Place | None, question: Recall) -> tuple[str, ...]:
    """Return the sources that begin as the question's; empty: there are more than `SOURCES_MAX`,
    so they are no rare ones."""
    if place is None:
        return (question.source,)
    params = views.of_kind(question) | {"scope": place.number, "limit": SOURCES_MAX + 1}
    rows = db.execute(_OF_KIND, params)
    found = tuple(source for (source,) in rows)
    return () if len(found) > SOURCES_MAX else found or (question.source,)


def rare_words(db: sqlite3.Connection, place: Place, words: Sequence[str], most: int) -> list[str]:
    """Return the words that at most so many memories have; all, if every word has more."""
    stands = _HAVING.format(text=place.text)
    count = f"SELECT count(*) FROM ({stands})"  # noqa: S608
    found = [
        word
        for word in words
        if db.execute(count, (terms.match(terms.any_of([word])), most + 1)).fetchone()[0] <= most
    ]
    return found or list(words)


def matching(
    db: sqlite3.Connection, narrowed: Narrowed, words: str, limit: int, needed: int
) -> list[tuple[int, float]]:
    """Return what full text finds, best first: number and BM25, larger is better.

    What has ended may be among it, as long as most of the best `needed` stands.

    Args:
        words: a MATCH expression of :func:`terms.query`; empty finds nothing.
    """
    if not words:
        return []
    if narrowed.is_rest_rare:
        found = _matching(db, narrowed, words, limit, is_whole=False)
        best = [num for num, _ in found[:needed]]
        if len(found) < limit or 2 * len(passing(db, narrowed, best)) >= len(best):
            return found
    return _matching(db, narrowed, words, limit, is_whole=True)


def _matching(
    db: sqlite3.Connection, narrowed: Narrowed, words: str, limit: int, *, is_whole: bool
) -> list[tuple[int, float]]:
    """Return matches in full text alone, or only those that fulfil the whole condition."""
    text = narrowed.place.text
    join = "CROSS JOIN memories m ON m.num = t.rowid" if is_whole else ""
    condition = f"AND {narrowed.condition}" if is_whole else ""
    # Sorted here: `ORDER BY rank` of FTS5 keeps and sorts all that it finds, with their positions.
    rows = db.execute(
        f"SELECT t.rowid, {_SCORE.format(text=text)} AS score"  # noqa: S608 - a place's own name
        f" FROM {text} t CROSS JOIN lengths l ON l.num = t.rowid {join}"
        f" WHERE t.{text} MATCH :match {condition} ORDER BY score DESC LIMIT :limit",
        {
            **narrowed.params,
            "match": terms.match(words, narrowed.facets),
            "long": terms.long_from(words),
            "limit": limit,
        },
    )
    return rows.fetchall()


def passing(db: sqlite3.Connection, narrowed: Narrowed, nums: Iterable[int]) -> set[int]:
    """Return which of these fulfil the condition."""
    return {num for (num,) in _of(db, narrowed, nums, "m.num")}


def rows(db: sqlite3.Connection, narrowed: Narrowed, nums: Iterable[int]) -> Rows:
    """Return what scoring must know of those that fulfil the condition."""
    return named.columns(Rows, _of(db, narrowed, nums, _ROW, _FEATURES))


def nearby(db: sqlite3.Connection, narrowed: Narrowed, nums: Iterable[int]) -> set[Neighbours]:
    """Return what was said up to two turns before and after each of `nums`, in its conversation.

    Between neighbours nothing else of their thread stands. Either may fail the filters of the
    question: that is for :func:`rows` to find.
    """
    found: set[Neighbours] = set()
    for num, *others in _of(db, narrowed, nums, f"m.num, {_AROUND}"):
        for other, distance in zip(others, (1, 2, 1, 2), strict=True):
            if other is not None:
                found.add(Neighbours(min(num, other), max(num, other), distance))
    return found


def _next_to(sign: str, order: str, distance: int) -> str:
    return f"""(SELECT n.num FROM memories n
        WHERE n.scope = m.scope AND n.thread = m.thread AND n.thread <> ''
            AND (n.ended_at IS NULL OR n.ended = 'merged')
            AND NOT {_MERGED_INTO.format(of="n")}
            AND (n.happened_at, n.num) {sign} (m.happened_at, m.num)
        ORDER BY n.happened_at {order}, n.num {order} LIMIT 1 OFFSET {distance - 1})"""  # noqa: S608


_AROUND: Final = ", ".join(
    _next_to(sign, order, distance)
    for sign, order in (("<", "DESC"), (">", "ASC"))
    for distance in (1, 2)
)


def associated(
    db: sqlite3.Connection, narrowed: Narrowed, nums: Iterable[int], limit: int
) -> list[Association]:
    """Return the associations of these memories, the strongest of them if there are more."""
    either = " UNION ".join(
        "SELECT e.from_num, e.to_num, e.weight FROM json_each(:nums) w"  # noqa: S608 - no input
        f" CROSS JOIN edges e ON {end} = w.value WHERE e.scope = :scope"
        for end in ("e.from_num", "e.to_num")
    )
    found = db.execute(
        f"{either} ORDER BY 3 DESC, 1, 2 LIMIT :limit",
        {"scope": narrowed.place.number, "nums": _json(nums), "limit": limit},
    )
    return [Association(*row) for row in found]


def newest(db: sqlite3.Connection, narrowed: Narrowed, nums: Iterable[int]) -> dict[int, int]:
    """Return those of `nums` that something updates, with the newest that does.

    That is by however many steps, and among what the question may find.
    """
    chain = db.execute(
        """WITH RECURSIVE chain (old, num) AS (
            SELECT e.to_num, e.from_num FROM json_each(:nums) w
                CROSS JOIN edges e ON e.to_num = w.value AND e.relation = 'updates'
            UNION SELECT c.old, e.from_num FROM chain c
                CROSS JOIN edges e ON e.to_num = c.num AND e.relation = 'updates')
        SELECT old, num FROM chain WHERE num > old ORDER BY num""",
        {"nums": _json(nums)},
    ).fetchall()
    found = passing(db, narrowed, {num for _, num in chain}) if chain else set()
    return {old: num for old, num in chain if num in found}


def contents(db: sqlite3.Connection, narrowed: Narrowed, nums: Iterable[int]) -> dict[int, str]:
    """Return what those say that fulfil the condition."""
    return dict(_of(db, narrowed, nums, "m.num, m.content"))


def bearers(db: sqlite3.Connection, narrowed: Narrowed, name: str, most: int) -> list[int]:
    """Return the memories whose text has a name; none, if there are more than `most`.

    Some of them may fail filters that full text doesn't know.
    """
    having = _HAVING.format(text=narrowed.place.text)
    match = terms.match(terms.any_of([name]), narrowed.facets)
    rows = db.execute(having, (match, most + 1)).fetchall()
    return [num for (num,) in rows] if len(rows) <= most else []


def shown(
    db: sqlite3.Connection, narrowed: Narrowed, nums: Sequence[int], now: datetime
) -> list[MemoryView]:
    """Return memories as they are shown, in the order of `nums`."""
    found = {row[0]: row for row in _of(db, narrowed, nums, views.COLUMNS)}
    return [views.view(found[num], now) for num in nums if num in found]


def is_empty(db: sqlite3.Connection, place: Place) -> bool:
    """Tell whether nothing at all stands in a place."""
    row = db.execute(
        "SELECT 1 FROM memories m WHERE m.scope = :scope AND m.ended_at IS NULL LIMIT 1",
        {"scope": place.number},
    )
    return row.fetchone() is None


def _of(
    db: sqlite3.Connection, narrowed: Narrowed, nums: Iterable[int], columns: str, join: str = ""
) -> sqlite3.Cursor:
    return db.execute(
        f"SELECT {columns} FROM json_each(:nums) w CROSS JOIN memories m ON m.num = w.value {join}"  # noqa: S608
        f" WHERE {narrowed.condition}",
        {**narrowed.params, "nums": _json(nums)},
    )


def _json(values: Iterable[int]) -> str:
    return msgspec.json.encode(list(values)).decode()
