"""The embedder of a machine without WordLlama: it has no vectors, and says what to install.

Memory goes on without: recall finds by full text and says that it is degraded, as it does whenever
an embedder can't be reached.
"""

from __future__ import annotations

from collections.abc import Sequence

from vigil.errors import Unavailable

from . import Vectors


class MissingEmbedder:
    """See `Embedder`."""

    name = "without vectors"
    dimension = 0

    def __init__(self, reason: str) -> None:
        self.reason = reason

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Vectors:
        raise Unavailable(self.reason)

    async def close(self) -> None:
        """There is nothing to close."""
