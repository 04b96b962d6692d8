"""Finds what fits a question: candidates of two indexes, exact scores for all of them (SPEC M-3).

Full text and vectors are searched at once, filtered inside. What either found, and what stands next
to the best of it in a conversation or by an association, are the candidates; for each of them every
part of the score is computed from the database, so that nobody's list decides what a memory is
worth.

When the index or the embedder can't be reached, what full text finds is scored with what there is,
and the answer says so. Nothing here writes: what was shown is told to whoever counts it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple, Protocol

import msgspec

from vigil.errors import Unavailable
from vigil.memory.operations.recall import Recall, Recalled
from vigil.memory.questions import ANSWER_BYTES_MAX, DEGRADED_VECTORS, Hit, MemoryView
from vigil.subjects import Scope

from ..embedding import Embedder
from ..numeric import np
from ..store import places
from ..store.places import Place
from ..store.store import Store
from ..vectors import Near, Where
from . import candidates, dates, lookups, names, plurals, precedence, selection, terms
from . import scores as scoring
from .candidates import Sought
from .frequencies import SCOPES_MAX, KnownFrequencies
from .lookups import Narrowed, Rows
from .scores import Weights
from .words import Words

POOL_TEXT: Final = 400
"""Candidates of full text; twice as many as are asked for, if that is more. What it ranks lower and
comes in another way counts as if it had no word of the question."""
COMMON_SHARE: Final = 0.1
"""A word that more of the memories have than this isn't searched for by a hybrid recall, unless the
question has no other: it would cost most of the time (of 10,000 memories, 3 of 3.6 ms) and tells
little. In words and gist it counts."""
POOL_VECTORS: Final = 200
"""Candidates of the vector index."""
_HIT_BYTES: Final = 400
"""Of a hit as JSON, what is not the memory, at most."""


class Searchable(Protocol):
    """What recall needs of a vector index."""

    async def search(self, vector: bytes, limit: int, where: Where) -> list[Near]: ...


class _Asked(NamedTuple):
    """A question to a scope, and when."""

    scope: Scope
    question: Recall
    now: datetime

    @property
    def is_hybrid(self) -> bool:
        return self.question.mode == "hybrid"

    @property
    def is_gathering(self) -> bool:
        """Whether it asks for several things, of which one memory has one."""
        return self.is_hybrid and plurals.is_gathering(self.question.query)

    @property
    def enough(self) -> int:
        """How many candidates will do, some of which may not be shown; whatever the limit, the
        same ones lead on."""
        return max(2 * self.question.limit, names.FOLLOWED)

    @property
    def pool_text(self) -> int:
        return max(POOL_TEXT if self.is_hybrid else 0, self.enough)

    @property
    def pool_vectors(self) -> int:
        return max(POOL_VECTORS if self.is_hybrid else 0, self.enough)


class _Matched(NamedTuple):
    """What full text found: number -> BM25, best first; and what scoring must know of it."""

    scores: dict[int, float]
    rows: Rows


class _Vectors(NamedTuple):
    """What the embedder and the index answered; None: that one is away."""

    asked: bytes | None
    near: list[Near] | None


class Recaller:
    """Answers questions from one replica's store and index."""

    def __init__(
        self,
        store: Store,
        index: Searchable,
        embedder: Embedder,
        words: Words,
        weights: Weights,
        shown: Callable[[Scope, Iterable[str]], None] | None = None,
    ) -> None:
        """Answer from these.

        Args:
            weights: what each part of a score counts for.
            shown: is told the ids of what each answer shows, if that counts as accessed.
        """
        self._store = store
        self._index = index
        self._embedder = embedder
        self._words = words
        self._weights = weights
        self._gathering = plurals.weighted(weights)
        self._shown = shown
        self._frequencies = KnownFrequencies(words.size)
        self._filled: set[Scope] = set()
        """Scopes in which something was saved; it may be gone."""

    async def recall(self, scope: Scope, question: Recall, now: datetime) -> Recalled:
        """Return what fits best, best first.

        Args:
            now: aware UTC; decay, recency and "yesterday" count from it.
        """
        asked = _Asked(scope, question, now)
        if await self._is_nothing(scope):
            return Recalled(hits=(), is_empty=True)
        matched, vectors = await asyncio.gather(self._match(asked), self._near(asked))
        is_degraded = vectors.near is None and question.mode != "text"
        degraded = (DEGRADED_VECTORS,) if is_degraded else ()
        found, is_empty = await self._store.read(lambda db: self._find(db, asked, matched, vectors))
        if question.tokens:
            found = selection.selected(found, question.query, now, question.tokens)
        hits = _fitting(found)
        if self._shown is not None and question.counts:
            self._shown(scope, [hit.memory.id for hit in hits])
        left_out = len(found) - len(hits)
        return Recalled(hits=tuple(hits), degraded=degraded, left_out=left_out, is_empty=is_empty)

    async def _is_nothing(self, scope: Scope) -> bool:
        """Whether nothing was ever saved in a scope: nobody else need be asked then."""
        if scope in self._filled:
            return False

        if await self._store.read(lambda db: places.find(db, scope)) is None:
            return True
        if len(self._filled) >= SCOPES_MAX:
            self._filled.clear()
        self._filled.add(scope)
        return False

    def forget(self, scope: Scope) -> None:
        """Keep nothing of a scope in memory: its owner is being erased."""
        self._frequencies.drop(scope)
        self._filled.discard(scope)

    async def _match(self, asked: _Asked) -> _Matched:
        """Return what full text finds. Its rows are read while the index is still searching."""
        if asked.question.mode == "vector":
            return _Matched({}, Rows())

        def work(db: sqlite3.Connection) -> _Matched:
            words = terms.asked(asked.question.query, asked.now.date())
            place = places.find(db, asked.scope)
            if place is None:
                return _Matched({}, Rows())
            narrowed = lookups.narrow(place, asked.question, asked.now)
            rare = self._rare_words(db, narrowed, asked, words)
            found = _matching(db, narrowed, asked, rare)
            if not found and rare != words:
                found = _matching(db, narrowed, asked, words)
            return _Matched(dict(found), lookups.rows(db, narrowed, [num for num, _ in found]))

        return await self._store.read(work)

    def _rare_words(
        self, db: sqlite3.Connection, narrowed: Narrowed, asked: _Asked, words: list[str]
    ) -> list[str]:
        """Return the words to search the text of everything for, without the common ones."""
        if not asked.is_hybrid or narrowed.facets:
            return words
        memories = self._frequencies.memories(db, asked.scope, narrowed.place)
        most = max(int(memories * COMMON_SHARE), asked.pool_text)
        return lookups.rare_words(db, narrowed.place, words, most)

    async def _near(self, asked: _Asked) -> _Vectors:
        """Return what the index finds."""
        if asked.question.mode == "text":
            return _Vectors(None, None)
        try:
            made = await self._embedder.embed([asked.question.query], is_query=True)
        except Unavailable:
            return _Vectors(None, None)
        vector = made[0].tobytes()
        try:
            where = _where(asked, await self._sources(asked))
            return _Vectors(vector, await self._index.search(vector, asked.pool_vectors, where))
        except Unavailable:
            return _Vectors(vector, None)

    async def _sources(self, asked: _Asked) -> tuple[str, ...]:
        """Return the sources that the index may find; what begins with a text only SQLite knows."""
        if not asked.question.is_kind_of_source:
            return (asked.question.source,) if asked.question.source else ()
        return await self._store.read(
            lambda db: lookups.sources(db, places.find(db, asked.scope), asked.question)
        )

    def _find(
        self, db: sqlite3.Connection, asked: _Asked, matched: _Matched, vectors: _Vectors
    ) -> tuple[list[Hit], bool]:
        """Score all candidates, and show the best that stand now; also tell if there is nothing."""
        place = places.find(db, asked.scope)
        if place is None:
            return [], True
        question = asked.question
        narrowed = lookups.narrow(place, question, asked.now)
        sought = self._sought(db, place, asked, matched.scores, vectors.asked)
        near = {one.num for one in vectors.near or ()}.difference(matched.rows.num)
        rows = matched.rows.and_those(lookups.rows(db, narrowed, sorted(near)))
        weights = self._gathering if asked.is_gathering else self._weights
        pool = candidates.gather(
            db, narrowed, sought, self._words, weights, rows, spreads=asked.is_hybrid
        )
        now = asked.now.timestamp()
        # As many again: what was updated may go.
        best = scoring.rank(pool, weights, question.mode, now, asked.enough)
        followed = pool
        if asked.is_hybrid and best and weights.weight_names:
            followed = names.follow(db, narrowed, sought, self._words, followed, best)
        # A day tells which of several things; what is like them happened on others.
        if asked.is_gathering and not sought.days and weights.weight_alike:
            followed = plurals.with_likeness(followed, best, self._words, sought.rarity)
        if followed is not pool:
            pool = followed
            best = scoring.rank(pool, weights, question.mode, now, asked.enough)
        ranked = {int(pool.nums[one.at]): one for one in best}
        newest = lookups.newest(db, narrowed, ranked) if asked.is_hybrid else {}
        views = {
            view.seq: view
            for view in lookups.shown(db, narrowed, [*ranked, *newest.values()], asked.now)
        }
        words_in = partial(
            _words_in, views, frozenset(terms.asked(question.query, asked.now.date()))
        )
        order = [num for num in ranked if num in views]
        shown = precedence.current(order, newest, words_in, question.limit)
        hits = [
            Hit(memory=views[num], score=ranked[by].score, parts=ranked[by].parts)
            for num, by in shown.items()
        ]
        return hits, not hits and lookups.is_empty(db, place)

    def _sought(
        self,
        db: sqlite3.Connection,
        place: Place,
        asked: _Asked,
        matches: dict[int, float],
        vector: bytes | None,
    ) -> Sought:
        """Return what candidates are compared with; text or vectors alone need no words."""
        query = asked.question.query if asked.is_hybrid else ""
        return Sought(
            matches,
            vector,
            frozenset(terms.searched(query)),
            frozenset(dates.terms_asked(query, asked.now.date())),
            self._words.asked(query),
            self._frequencies.rarity(db, asked.scope, place) if query else np.zeros(0),
            terms.is_possessive(query),
        )


def _matching(
    db: sqlite3.Connection, narrowed: Narrowed, asked: _Asked, words: list[str]
) -> list[tuple[int, float]]:
    query = terms.any_of(words)
    return lookups.matching(db, narrowed, query, asked.pool_text, asked.enough)


def _words_in(views: Mapping[int, MemoryView], words: frozenset[str], num: int) -> frozenset[str]:
    """Return which words and days of a question stand in a memory."""
    memory = views[num]
    happened_at = memory.occurred_at or memory.created_at
    return words.intersection(terms.index_terms(memory.content, happened_at).split())


def _where(asked: _Asked, sources: tuple[str, ...]) -> Where:
    question = asked.question

    def epoch(at: datetime | None) -> float | None:
        return None if at is None else at.timestamp()

    return Where(
        scope=asked.scope,
        sources=sources,
        types=question.types,
        since=epoch(question.since),
        until=epoch(question.until),
        thread=question.thread,
        as_of=epoch(question.as_of),
        only_trusted=question.only_trusted,
        with_pruned=question.with_pruned,
    )


def _fitting(hits: Sequence[Hit]) -> list[Hit]:
    """Return as many of the first as one answer can hold; always one."""
    taken: list[Hit] = []
    size = 0
    for hit in hits:
        size += len(msgspec.json.encode(hit.memory)) + _HIT_BYTES
        if taken and size > ANSWER_BYTES_MAX:
            break
        taken.append(hit)
    return taken
