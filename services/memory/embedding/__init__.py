"""The seam to whoever makes vectors of texts.

Vectors of different models don't compare, so an embedder has a name that stands for its space:
model and dimension. It is stored with the index; another name makes all vectors anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from ..numeric import np, npt

Vectors: TypeAlias = "npt.NDArray[np.float32]"
"""float32[texts, dimension], each of unit norm (zero for a text without any known word)."""


class Embedder(Protocol):
    """May be slow and may fail: nothing waits for it but vectors."""

    @property
    def name(self) -> str:
        """Model and dimension, as in ``wordllama-l2-256``."""
        ...

    @property
    def dimension(self) -> int:
        """0: of a model elsewhere, until it gave its first vector; so is the one in `name`."""
        ...

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Vectors:
        """Return a vector for each text. Some models treat questions apart.

        Raises:
            Unavailable: the model can't be reached now; try again.
        """
        ...

    async def close(self) -> None: ...
