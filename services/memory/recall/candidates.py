"""Gathers what is known of the candidates of one question, on a reading connection.

First of those that the indexes found; then the best of them bring in what stands next to them in a
conversation or by an association, because an answer often stands beside the words of the question.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ..numeric import np, npt
from ..rules.instants import DAY, instant
from . import dates, lookups, scores, terms
from .lookups import Narrowed, Rows
from .scores import Candidates, Floats, Lending, Weights
from .words import Tokens, Words, times

SPREADING: Final = 40
"""Of the best candidates, the neighbours and associations become candidates, too."""
ASSOCIATIONS_MAX: Final = 400
FARTHER: Final = 0.8
"""What a neighbour two turns away lends, of what one turn away does."""


_COLUMNS: Final = tuple(
    name
    for name in Candidates.__struct_fields__
    if name not in ("cosine", "neighbours", "associations")
)


class Sought(NamedTuple):
    """A question, as candidates are compared with it."""

    matches: Mapping[int, float]
    """What full text found: number -> BM25."""
    vector: bytes | None
    """Of the question; None: nobody could make it."""
    words: frozenset[str]
    """That it is about: the names among them are whom it asks about."""
    days: frozenset[str]
    """Terms of the dates that it names (`dates.terms_asked`)."""
    tokens: Tokens
    rarity: Floats
    """Of every token there is."""
    is_possessive: bool
    """Whether it asks for what is somebody's (`terms.is_possessive`)."""


def gather(
    db: sqlite3.Connection,
    narrowed: Narrowed,
    sought: Sought,
    words: Words,
    weights: Weights,
    rows: Rows,
    *,
    spreads: bool,
) -> Candidates:
    """Return the candidates `rows`, with those next to the best of them if it `spreads`."""
    found = known(rows, sought, words)
    if not spreads or not len(found.nums):
        return found
    best = _best(found, weights)
    pairs = sorted(lookups.nearby(db, narrowed, best))
    edges = lookups.associated(db, narrowed, best, ASSOCIATIONS_MAX)
    named = {num for one, other, _ in (*pairs, *edges) for num in (one, other)}
    named.difference_update(found.nums.tolist())
    if named:
        found = both(found, known(lookups.rows(db, narrowed, sorted(named)), sought, words))
    at = {num: index for index, num in enumerate(found.nums.tolist())}
    return msgspec.structs.replace(
        found,
        neighbours=_lending(at, ((p.one, p.other, FARTHER ** (p.distance - 1)) for p in pairs)),
        associations=_lending(at, edges),
    )


def known(rows: Rows, sought: Sought, words: Words) -> Candidates:
    """Return memories as candidates, compared with the question."""
    compared = words.compare(sought.tokens, sought.rarity, rows.words)
    return Candidates(
        nums=np.array(rows.num, dtype=np.int64),
        text=np.array([sought.matches.get(num, 0.0) for num in rows.num], dtype=np.float64),
        cosine=_cosine(rows.vector, sought.vector),
        words=compared.words,
        gist=compared.gist,
        substance=compared.substance,
        is_speaker=_speaks(rows.beginning, sought.words),
        is_question=_asks(rows.is_question, rows.beginning),
        sayings=_sayings(rows.num, rows.beginning, rows.words),
        threads=np.array([hash(thread) if thread else 0 for thread in rows.thread], dtype=np.int64),
        on_date=_on_date(rows.happened_at, sought.days),
        names=np.zeros(len(rows.num)),
        alike=np.zeros(len(rows.num)),
        tokens=np.array(rows.words, dtype=np.object_),
        happened_at=np.array(rows.happened_at, dtype=np.float64) / 1e6,
        importance=np.array(rows.importance, dtype=np.float64),
        is_tainted=np.array(rows.is_tainted, dtype=np.bool_),
    )


def both(one: Candidates, other: Candidates) -> Candidates:
    """Return two lots of candidates as one; both were compared with the same question.

    What the first lend one another stays.
    """
    cosine = None
    if one.cosine is not None and other.cosine is not None:
        cosine = np.concatenate((one.cosine, other.cosine))
    columns: dict[str, Any] = {
        name: np.concatenate((getattr(one, name), getattr(other, name))) for name in _COLUMNS
    }
    return msgspec.structs.replace(one, cosine=cosine, **columns)


def _cosine(vectors: Sequence[bytes], asked: bytes | None) -> Floats | None:
    """Return the cosine of each vector with the question's; NaN: there is none yet."""
    if asked is None:
        return None
    is_made = np.fromiter(map(len, vectors), np.int64, len(vectors)) == len(asked)
    known = np.frombuffer(b"".join(itertools.compress(vectors, is_made)), np.float32)
    question = np.frombuffer(asked, np.float32)
    cosine = np.full(len(vectors), np.nan)
    cosine[is_made] = times(known.reshape(-1, len(question)), question)
    return cosine


def _speaks(beginnings: Sequence[str], words: frozenset[str]) -> npt.NDArray[np.bool_]:
    if not words:
        return np.zeros(len(beginnings), dtype=np.bool_)
    speaks = [not words.isdisjoint(terms.speaker(beginning)) for beginning in beginnings]
    return np.array(speaks, dtype=np.bool_)


def _asks(ends: Sequence[int], beginnings: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which are questions: they end as one, and tell nothing before."""
    asks = [
        bool(end) and not terms.has_statement(begin)
        for end, begin in zip(ends, beginnings, strict=True)
    ]
    return np.array(asks, dtype=np.bool_)


def _sayings(
    nums: Sequence[int], beginnings: Sequence[str], tokens: Sequence[bytes]
) -> npt.NDArray[np.int64]:
    """Return a number for what each says: of those with the same beginning and words the same."""
    said = zip(nums, beginnings, tokens, strict=True)
    numbers = [hash((beginning, words)) if words else num for num, beginning, words in said]
    return np.array(numbers, dtype=np.int64)


def _on_date(happened_at: Sequence[int], asked: frozenset[str]) -> Floats:
    if not asked:
        return np.zeros(len(happened_at))
    days, which = np.unique(np.array(happened_at) // DAY, return_inverse=True)
    nearness = [dates.nearness(instant(day * DAY).date(), asked) for day in days.tolist()]
    return np.array(nearness, dtype=np.float64)[which]


def _best(known: Candidates, weights: Weights) -> list[int]:
    order = np.lexsort((-known.nums, -scores.own(known, weights)))
    best: list[int] = known.nums[order[:SPREADING]].tolist()
    return best


def _lending(at: Mapping[int, int], links: Iterable[tuple[int, int, float]]) -> Lending:
    """Return links between candidates both ways, by where those stand."""
    known = [
        (at[one], at[other], share) for one, other, share in links if one in at and other in at
    ]
    if not known:
        return Lending.none()
    one, other, share = map(np.array, zip(*known, strict=True))
    return Lending(
        np.concatenate((one, other)), np.concatenate((other, one)), np.concatenate((share, share))
    )
