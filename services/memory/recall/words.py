"""Words compared by the space of WordLlama: soft words, and the gist of the rare ones.

Soft words: each word of a question counts the closest word of a text. That finds "bought a puppy"
for "get a dog", where full text sees no common word. The gist is how much the words of a text, each
as far as it is rare in the scope, point where the question points as a whole: in the plain mean of
a long turn, what it is about drowns in the words that all turns have. (Source: Arora et al., A
Simple but Tough-to-Beat Baseline for Sentence Embeddings, 2017.)

The tokens of a text are stored with it (`Words.tokens`); a question's are compared with those of
the candidates only, since how rare a token is changes with every memory. The tokens are WordLlama's
whatever embedder makes the vectors. See docs/memory.md for what both give.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import structlog

from ..embedding.codebook import TOKENS, Codebook, NotInstalled, empty, load
from ..numeric import np, npt
from . import terms

log = structlog.get_logger("vigil.memory")

Floats: TypeAlias = "npt.NDArray[np.float64]"
Singles: TypeAlias = "npt.NDArray[np.float32]"
Tokens: TypeAlias = "npt.NDArray[np.uint32]"
Counts: TypeAlias = "npt.NDArray[np.int64]"

CLOSE_FROM: Final = 0.3
"""Cosine below which two tokens have nothing to do with each other."""
DIMENSIONS: Final = 128
"""Of WordLlama's 256, which say less and less: with all of them no answer was better."""
TEXT_LENGTH_MAX: Final = 8000
"""Characters of a text whose tokens are kept; a longer one would be close to every word."""
ASKED_MAX: Final = 256
"""Tokens of a question that are compared; 64 words have about 100, a pasted key thousands."""
SUBSTANCE_FULL: Final = 10.0
"""Tokens as rare as any; of more common ones, so many more. (Of the turns of the bench's
conversations half have five or fewer, of those that answer a question not one in twenty.)"""
_LENGTH: Final = 0.4
"""0.5 is the cosine, as if what is said at length said no more; 0 would favour the longest."""
_TINY: Final = 1e-9
_TOKEN_BYTES: Final = 4
_SPREAD_MAX: Final = 1_000_000
"""Likenesses of tokens of texts that are looked at in one go: of all of long texts' it would be
hundreds of megabytes."""
_PRODUCTS_MAX: Final = 200_000
"""Of one matrix product. A larger one is spread over threads, which on a busy machine took 8 ms
instead of 0.3."""


class Compared(NamedTuple):
    """How much each text has of a question."""

    words: Floats
    """0..1: the nearest words, by how rare the question's are."""
    gist: Floats
    """The weighted likeness over the length of the text to the power of `_LENGTH`; of no range."""
    substance: Floats
    """0..1: how much a text says by itself; 1 from so many rare words as `SUBSTANCE_FULL`."""


class _Tokens(NamedTuple):
    """The tokens of some texts, one after the other."""

    kept: Counts
    """The numbers of the texts that have any."""
    starts: Counts
    distinct: Counts
    inverse: Counts
    """Of each token which of the distinct it is."""
    rare: Floats
    """The weights of the distinct."""


class Words:
    """Turns texts into tokens, and compares a question's with those of candidates."""

    def __init__(self, codebook: Codebook | None = None) -> None:
        """Use a codebook; by default WordLlama's, read with the first text (0.1 s in a process).

        Without WordLlama no word is close to another, and no text has a gist.
        """
        self._given = codebook

    @functools.cached_property
    def _codebook(self) -> Codebook:
        return self._given or _known()

    @property
    def _units(self) -> Singles:
        return _space_of(self._codebook)[0]

    @property
    def _lengths(self) -> Singles:
        return _space_of(self._codebook)[1]

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return TOKENS if self._given is None else int(self._given.weights.shape[0])

    def tokens(self, text: str) -> bytes:
        """Return the distinct tokens of a text, uint32[], as they are stored."""
        found = self._codebook.tokens(text[:TEXT_LENGTH_MAX])
        return np.array(sorted(set(found)), dtype=np.uint32).tobytes()

    def asked(self, question: str) -> Tokens:
        """Return the distinct tokens of the words that a question is about, as they are written.

        Those of unspaced scripts have none: the model knows few of their letters, and took memories
        for close that aren't (of 48 questions among 600 memories each 42 had their answer first,
        without them 45).
        """
        words = terms.searched_as_written(unicodedata.normalize("NFKC", question))
        found = dict.fromkeys(token for word in words for token in self._codebook.tokens(word))
        return np.sort(np.asarray(list(found)[:ASKED_MAX], dtype=np.uint32))

    def compare(self, asked: Tokens, rarity: Floats, texts: Sequence[bytes]) -> Compared:
        """Compare what is asked with texts.

        Args:
            asked: tokens of the question.
            rarity: the weight of every token there is.
            texts: the stored tokens of each text.
        """
        found = Compared(*(np.zeros(len(texts)) for _ in range(3)))
        said = self._said(texts, rarity)
        if said is None:
            return found
        substance = np.add.reduceat(said.rare.take(said.inverse), said.starts)
        full = max(said.rare.max(), _TINY) * SUBSTANCE_FULL
        found.substance[said.kept] = np.minimum(substance / full, 1.0)
        weights = rarity[asked]
        if not weights.any():
            return found
        near = self._near(self._space(asked, rarity), said.distinct)
        found.words[said.kept] = _nearest(said, near[:-1], weights / weights.sum())
        found.gist[said.kept] = self._gist(said, near[-1])
        return found

    def gists(self, rarity: Floats, texts: Sequence[bytes], of: Sequence[int]) -> list[Floats]:
        """Return the gist of each text as if some of them, by their numbers, were asked for."""
        said = self._said(texts, rarity)
        if said is None:
            return [np.zeros(len(texts)) for _ in of]
        wholes = [self._space(np.frombuffer(texts[at], np.uint32), rarity)[-1:] for at in of]
        near = self._near(np.concatenate(wholes), said.distinct) if wholes else ()
        gists = [np.zeros(len(texts)) for _ in of]
        for gist, row in zip(gists, near, strict=True):
            gist[said.kept] = self._gist(said, row)
        return gists

    def _said(self, texts: Sequence[bytes], rarity: Floats) -> _Tokens | None:
        """Return the tokens of all texts; None: none has any that weighs something."""
        counts = np.fromiter(map(len, texts), np.int64, len(texts)) // _TOKEN_BYTES
        kept = np.flatnonzero(counts)
        if not len(kept) or not len(rarity):
            return None
        starts = np.cumsum(counts[kept]) - counts[kept]
        distinct, inverse = self._distinct(np.frombuffer(b"".join(texts), dtype=np.uint32))
        rare = rarity[distinct]
        return _Tokens(kept, starts, distinct, inverse, rare) if rare.any() else None

    def _gist(self, said: _Tokens, near: Singles) -> Floats:
        # As if no two tokens of a text had anything in common: that needs no sum of vectors for
        # each text, which took 20 times as long and found nothing more.
        weights = said.rare * self._lengths[said.distinct]
        squares = np.maximum(np.square(weights), _TINY)
        lengths = np.add.reduceat(squares.take(said.inverse), said.starts)
        gist: Floats = np.add.reduceat((weights * near).take(said.inverse), said.starts)
        return np.asarray(gist / lengths**_LENGTH)

    def _distinct(self, flat: Tokens) -> tuple[Counts, Counts]:
        """Return the distinct tokens, and of each token which of them it is; without sorting."""
        is_there = np.zeros(self.size, dtype=np.bool_)
        is_there[flat] = True
        distinct = np.flatnonzero(is_there)
        place = np.empty(self.size, dtype=np.int64)
        place[distinct] = np.arange(len(distinct))
        return distinct, place.take(flat)

    def _space(self, asked: Tokens, rarity: Floats) -> Singles:
        """Return the unit vectors of the tokens asked for, and last of what they say as a whole."""
        weights = (rarity[asked] * self._lengths[asked]).astype(np.float32)
        whole = weights @ self._units[asked]
        whole /= max(float(np.linalg.norm(whole)), _TINY)
        return np.vstack((self._units[asked], whole))

    def _near(self, asked: Singles, others: Counts) -> Singles:
        """Return the cosines of vectors with other tokens: float32[asked, others]."""
        question = np.ascontiguousarray(asked.T)
        near = np.empty((question.shape[1], len(others)), dtype=np.float32)
        step = max(1, _PRODUCTS_MAX // question.size)
        for start in range(0, len(others), step):
            some = others[start : start + step]
            near[:, start : start + step] = (self._units[some] @ question).T
        return near


def _nearest(said: _Tokens, near: Singles, weights: Floats) -> Floats:
    """Return of each text the weighted sum of how near its nearest token is to each one asked for.

    Args:
        near: float32[asked, distinct], of which what is below `CLOSE_FROM` is nothing.
    """
    close = np.where(near < CLOSE_FROM, np.float32(0.0), near)
    nearest = np.zeros(len(said.starts))
    step = max(1, _SPREAD_MAX // len(said.inverse))
    for start in range(0, len(close), step):
        spread = close[start : start + step].take(said.inverse, axis=1)
        most = np.maximum.reduceat(spread, said.starts, axis=1)
        nearest += (weights[start : start + step, None] * most).sum(axis=0)
    return nearest


@functools.lru_cache(maxsize=1)
def _space_of(codebook: Codebook) -> tuple[Singles, Singles]:
    """Return the vectors of the tokens as of length 1, and their lengths.

    17 MB, made once in a process, with the first question; not to be changed.
    """
    weights = np.ascontiguousarray(codebook.weights[:, :DIMENSIONS], np.float32)
    codebook.give_back()
    lengths = np.linalg.norm(weights, axis=1)
    units = np.asarray(weights / np.maximum(lengths, _TINY)[:, None], dtype=np.float32)
    return units, lengths


def _known() -> Codebook:
    try:
        return load()
    except NotInstalled as error:
        log.warning("no soft words, no gist", action="memory.without_words", error=str(error))
        return empty()


def times(rows: Singles, one: Singles) -> Singles:
    """Return the product of each row with a vector, on this thread alone (see `_PRODUCTS_MAX`)."""
    products: Singles = np.einsum("ij,j->i", rows, one)
    return products
