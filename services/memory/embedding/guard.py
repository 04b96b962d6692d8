"""An embedder elsewhere, behind its circuit: one that failed three times in a row isn't asked."""

from __future__ import annotations

from collections.abc import Sequence

from vigil.circuits import Circuits
from vigil.errors import Unavailable
from vigil.runtime import Context

from . import Embedder, Vectors
from .openai import ANSWER_S_MAX, TOO_LONG, EmbeddingRefused


class GuardedEmbedder:
    """See `Embedder`. While its circuit is open `embed` raises `Unavailable` at once."""

    def __init__(self, embedder: Embedder, context: Context, kind: str) -> None:
        self._embedder = embedder
        self._circuits = Circuits.of(context, patience_s=ANSWER_S_MAX)
        self._component = f"embedder:{kind}"

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Vectors:
        passed = await self._circuits.enter(self._component)
        try:
            vectors = await self._embedder.embed(texts, is_query=is_query)
        except Unavailable as error:
            if isinstance(error, EmbeddingRefused) and error.status in TOO_LONG:
                await self._circuits.succeeded(passed)  # it is that text
            else:
                await self._circuits.failed(passed, str(error))
            raise
        except BaseException:
            await self._circuits.unsaid(passed)
            raise
        await self._circuits.succeeded(passed)
        return vectors

    async def close(self) -> None:
        await self._embedder.close()
