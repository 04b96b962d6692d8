"""The default embedder: the mean of WordLlama's vectors of a text's tokens.

No context, no order of words, and so no GPU, no download and 0.1 ms a text.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from typing import Final

from ..numeric import np
from . import Vectors
from .codebook import DIMENSION, Codebook, check_installed, load
from .unit import unit

INLINE_CHARACTERS_MAX: Final = 4000
"""Up to so many take less time here (1 ms) than a thread would to begin under load."""


class WordLlamaEmbedder:
    """See `Embedder`. The codebook is read with the first text: 0.1 s, and 7 MB from then on.

    Raises: NotInstalled, as it is made.
    """

    name = f"wordllama-l2-{DIMENSION}"
    dimension = DIMENSION

    def __init__(self, codebook: Codebook | None = None) -> None:
        self._given = codebook
        if codebook is None:
            check_installed()

    @functools.cached_property
    def _codebook(self) -> Codebook:
        return self._given or load()

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Vectors:
        del is_query  # questions are no different here
        if sum(map(len, texts)) <= INLINE_CHARACTERS_MAX:
            return self._embed(texts)
        return await asyncio.to_thread(self._embed, texts)

    async def close(self) -> None:
        """There is nothing to close."""

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            ids = self._codebook.tokens(text) if text.strip() else []
            if ids:
                row[:] = self._codebook.mean(ids)
        return unit(vectors)
