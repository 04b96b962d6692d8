"""How well memories fit a question: the sum of normalised parts. Pure.

    score = text + vector + words + gist     what it says itself
          + neighbours                       what was said just before and after
          + graph                            what it is associated with
          + thread                           the best that is said in its conversation
          + names                            it has a name that the best have
          + alike                            it says something like the best, if many are asked for
          + speaker                          said by whom the question names
          + date - question                  on a day that the question names; itself a question
          - brief                            it says little at all
          - repeat                           a better one says the very same
          + recency + importance - taint     small terms

Text (BM25), vector (cosine), words and gist are each stretched to 0..1 over the candidates, then
weighted (:class:`Weights`): a sum of scores keeps by how much one is better than the next, which
a fusion of ranks throws away (MEASURED.md). A neighbour and an associated memory lend a part of
what they say themselves, never of what was lent to them, so nothing goes around in circles. A
neighbour lends by the square of its share of the best: one that fits half as well lends a quarter.
Else four that fit a little are worth more than the one memory that has a number or name of its own.

Ties go to what happened later, then to what was saved later: the same question gets the same
answer.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from vigil.memory.questions import Mode, Parts

from ..numeric import np, npt

Floats: TypeAlias = "npt.NDArray[np.float64]"
DAY_S: Final = 86_400.0


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """What each part counts for: constants, but for `weight_vector`, which is a setting.

    Source: the figures of docs/measured.md ("What each part of recall gives"). They were chosen on
    the first family of made-up conversations (bench/topics.py), and hold on the second.
    """

    weight_text: float = 0.9
    """Of full text. Only ratios of this and the next three matter."""
    weight_vector: float = 0.15
    """Of embedding similarity (`memory.weight_vector`)."""
    weight_words: float = 0.5
    """Of words nearest to the question's."""
    weight_gist: float = 1.0
    """Of similarity in rare words."""
    weight_neighbours: float = 0.25
    """Of the adjacent turns' scores, by the square of their share of the best."""
    weight_thread: float = 0.3
    """Of the best score in the same conversation."""
    weight_names: float = 1.0
    """Of a name in the best memories that only one other has."""
    weight_alike: float = 1.5
    """What likeness to the best memories counts for, if the question asks for several things."""
    weight_speaker: float = 1.5
    """If the question names the speaker."""
    weight_date: float = 1.0
    """If the question names the day; of a month or year half."""
    weight_question: float = 0.3
    """Penalty for a memory that is itself a question."""
    weight_brief: float = 1.0
    """Penalty for a memory of a few common words, and a share of it for one of a few rare ones."""
    weight_repeat: float = 1.0
    """Penalty for a memory that says the very same as a better one."""
    weight_graph: float = 0.03
    """Along an association of weight 1."""
    weight_recency: float = 0.02
    """Of a memory made now."""
    recency_half_life_days: float = 30.0
    """Half-life of that."""
    weight_importance: float = 0.05
    """Of importance 1, after decay."""
    weight_taint: float = 0.2
    """Penalty for untrusted origin."""


class Lending(NamedTuple):
    """Who lends to whom, by where they stand among the candidates."""

    borrowers: npt.NDArray[np.int64]
    lenders: npt.NDArray[np.int64]
    shares: Floats
    """0 to 1, of what the lender says itself."""

    @classmethod
    def none(cls) -> Lending:
        """Return that of candidates of which none lends."""
        nobody = np.zeros(0, dtype=np.int64)
        return cls(nobody, nobody, np.zeros(0))


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of each candidate, column by column."""

    nums: npt.NDArray[np.int64]
    text: Floats
    """BM25, larger is better; 0: no word of the question stands in it."""
    cosine: Floats | None
    """None: there is no vector of the question. NaN: there's none of that memory yet."""
    words: Floats
    gist: Floats
    substance: Floats
    """0 to 1: how much it says, whatever is asked."""
    is_speaker: npt.NDArray[np.bool_]
    """Whether it was said by somebody whom the question names, or counts as if (`names`)."""
    is_question: npt.NDArray[np.bool_]
    """Whether it's no more than a question: that seldom answers one."""
    sayings: npt.NDArray[np.int64]
    """Equal for those that say the very same."""
    threads: npt.NDArray[np.int64]
    """Equal for those of one conversation; 0: it's in none."""
    on_date: Floats
    """1: on a day that the question names; 0.5: in such a month or year."""
    names: Floats
    """0 to 1: how much a name leads there that the best memories have, and the question hasn't."""
    alike: Floats
    """0 to 1: how much it says something like the best memories, if the question asks for many."""
    tokens: npt.NDArray[np.object_]
    """bytes, as they are stored."""
    happened_at: Floats
    """Epoch seconds."""
    importance: Floats
    """After decay."""
    is_tainted: npt.NDArray[np.bool_]
    neighbours: Lending = msgspec.field(default_factory=Lending.none)
    """What was said around, both ways."""
    associations: Lending = msgspec.field(default_factory=Lending.none)
    """Both ways."""


class _Columns(NamedTuple):
    text: Floats
    vector: Floats
    words: Floats
    gist: Floats
    neighbours: Floats
    graph: Floats
    thread: Floats
    names: Floats
    alike: Floats
    speaker: Floats
    date: Floats
    question: Floats
    brief: Floats
    repeat: Floats
    recency: Floats
    importance: Floats
    taint: Floats


class Scored(NamedTuple):
    """A candidate and its score, which is the sum of its parts."""

    at: int
    score: float
    columns: _Columns
    """Those of all candidates."""

    @property
    def parts(self) -> Parts:
        return Parts(**{name: float(of[self.at]) for name, of in self.columns._asdict().items()})


def stretched(values: Floats) -> Floats:
    """Return values as 0..1 over their range; all zero if they don't differ.

    >>> stretched(np.array([2.0, 6.0, 4.0])).tolist()
    [0.0, 1.0, 0.5]
    """
    known = values[~np.isnan(values)]
    if not len(known) or (low := known.min()) == (high := known.max()):
        return np.zeros_like(values)
    shares: Floats = np.nan_to_num((values - low) / (high - low))
    return shares


def own(candidates: Candidates, weights: Weights) -> Floats:
    """Return what each candidate says itself."""
    return _total(_said(candidates, weights))


def rank(
    candidates: Candidates, weights: Weights, mode: Mode, now: float, limit: int
) -> list[Scored]:
    """Return the best candidates, best first.

    Args:
        now: epoch seconds, for recency.
        mode: `text` and `vector` are those parts alone, for comparison.
    """
    if not len(candidates.nums):
        return []
    columns = _columns(candidates, weights, mode, now)
    totals = _total(columns)
    order = _order(candidates, totals)
    if mode == "hybrid" and (is_repeat := _is_repeat(candidates, order)).any():
        columns = columns._replace(repeat=-weights.weight_repeat * is_repeat.astype(np.float64))
        totals = _total(columns)
        order = _order(candidates, totals)
    return [Scored(index, float(totals[index]), columns) for index in order[:limit].tolist()]


def _order(candidates: Candidates, totals: Floats) -> npt.NDArray[np.int64]:
    keys = (-candidates.nums, -candidates.happened_at, -totals)
    order: npt.NDArray[np.int64] = np.lexsort(keys)
    return order


def _is_repeat(candidates: Candidates, order: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which say the very same as one that comes before them."""
    _, first = np.unique(candidates.sayings[order], return_index=True)
    repeats = np.ones(len(order), dtype=np.bool_)
    repeats[order[first]] = False
    return repeats


def _columns(candidates: Candidates, weights: Weights, mode: Mode, now: float) -> _Columns:
    none = np.zeros_like(candidates.text)
    if mode == "text":
        return _Columns(candidates.text, *[none] * 16)
    if mode == "vector":
        cosine = none if candidates.cosine is None else np.nan_to_num(candidates.cosine, nan=-1.0)
        return _Columns(none, cosine, *[none] * 15)
    parts = _said(candidates, weights)
    said = _total(parts)
    return _Columns(
        *parts,
        weights.weight_neighbours * _of_neighbours(candidates, said),
        weights.weight_graph * _of_graph(candidates, said),
        weights.weight_thread * _of_thread(candidates, said),
        weights.weight_names * candidates.names,
        weights.weight_alike * candidates.alike,
        weights.weight_speaker * candidates.is_speaker.astype(np.float64),
        weights.weight_date * candidates.on_date,
        -weights.weight_question * candidates.is_question.astype(np.float64),
        -weights.weight_brief * (1.0 - candidates.substance),
        none,
        weights.weight_recency * _recency(candidates, weights, now),
        weights.weight_importance * candidates.importance,
        -weights.weight_taint * candidates.is_tainted.astype(np.float64),
    )


def _said(candidates: Candidates, weights: Weights) -> tuple[Floats, Floats, Floats, Floats]:
    cosine = np.zeros_like(candidates.text) if candidates.cosine is None else candidates.cosine
    return (
        weights.weight_text * _of_best(candidates.text),
        weights.weight_vector * stretched(cosine),
        weights.weight_words * stretched(candidates.words),
        weights.weight_gist * stretched(candidates.gist),
    )


def _total(columns: Sequence[Floats]) -> Floats:
    return functools.reduce(operator.add, columns)


def _of_best(values: Floats) -> Floats:
    """Return values as a share of the largest; nothing is below 0, which stands for no match."""
    best = values.max(initial=0.0)
    shares: Floats = values / best if best > 0 else np.zeros_like(values)
    return shares


def _of_neighbours(candidates: Candidates, said: Floats) -> Floats:
    """Return all that neighbours lend: there are four of them at most."""
    borrowers, lenders, shares = candidates.neighbours
    lent = np.zeros_like(said)
    np.add.at(lent, borrowers, shares * (said * _of_best(said))[lenders])
    return lent


def _of_graph(candidates: Candidates, said: Floats) -> Floats:
    """Return the most that any associated memory lends, so that many edges are no merit."""
    borrowers, lenders, shares = candidates.associations
    lent = np.zeros_like(said)
    np.maximum.at(lent, borrowers, shares * said[lenders])
    return lent


def _of_thread(candidates: Candidates, said: Floats) -> Floats:
    """Return the best that is said in each one's conversation, itself included."""
    _, place = np.unique(candidates.threads, return_inverse=True)
    best = np.zeros(len(said))
    np.maximum.at(best, place, said)
    shares: Floats = np.where(candidates.threads != 0, best[place], 0.0)
    return shares


def _recency(candidates: Candidates, weights: Weights, now: float) -> Floats:
    days = np.maximum(now - candidates.happened_at, 0.0) / DAY_S
    recency: Floats = 0.5 ** (days / weights.recency_half_life_days)
    return recency
