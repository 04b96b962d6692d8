"""The seam to whoever searches vectors: points in, nearest points out, filtered inside the index.

One contract suite runs on every backend (tests/memory/test_vectors.py). A backend holds nothing
that can't be made again from SQLite, so it may be deleted at any time. Its failures are
`Unavailable`: recall goes on without it and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from vigil.contracts import MemoryType
from vigil.subjects import Scope


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A memory as the index knows it. The same one again replaces it."""

    num: int
    """Its number in SQLite, `memories.num`: what a search finds it by."""
    id: str
    """Of the memory: 32 hex digits."""
    scope: Scope
    vector: bytes
    """float32[dimension], little endian, unit norm."""
    source: str
    type: MemoryType
    thread: str
    created_at: float
    """Epoch seconds, as are the others."""
    happened_at: float
    ended_at: float | None
    is_tainted: bool


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """What a search may find. There is none without a scope."""

    scope: Scope
    sources: tuple[str, ...] = ()
    types: tuple[MemoryType, ...] = ()
    since: float | None = None
    until: float | None = None
    thread: str = ""
    as_of: float | None = None
    """None: what stands now. Else what was saved by then and had not ended then."""
    only_trusted: bool = False
    with_pruned: bool = False
    """Also what maintenance ended; what else has ended is for whoever asks to leave out."""


class Near(msgspec.Struct, frozen=True):
    """A point that was found: the number of its memory. `similarity` is the cosine."""

    num: int
    similarity: float


class VectorIndex(Protocol):
    """Any number of searches at once; one writer."""

    name: str
    """``edge`` or ``qdrant``."""

    async def open(self, embedder: str, dimension: int) -> bool:
        """Make ready for vectors of that embedder; return whether it has to be filled anew.

        What was made with another embedder or dimension is dropped, never mixed. Again, after an
        `Unavailable` say: nothing changes if all is well. What has to be filled counts as new
        until the first `flush`, so that its filler may be killed at any instant.

        Raises:
            Unavailable: it can't be reached now; try again.
        """
        ...

    async def upsert(self, points: Sequence[Point]) -> None:
        """Store points; they can be found once this returns.

        Raises:
            Unavailable: nobody knows which are stored; repeat all of them.
        """
        ...

    async def flush(self) -> None:
        """Make what was stored survive a kill of this process. Raises: Unavailable."""
        ...

    async def search(self, vector: bytes, limit: int, where: Where) -> list[Near]:
        """Return the nearest points, best first; writes and optimisation never hold it up.

        Raises:
            Unavailable: it can't answer now.
        """
        ...

    async def count(self, scope: Scope | None = None) -> int:
        """Return how many points there are. Raises: Unavailable."""
        ...

    async def drop(self, scope: Scope | None = None) -> None:
        """Forget all points of a scope, or everything, leaving no bytes of it on this disk.

        Raises:
            Unavailable: repeat it.
        """
        ...

    async def close(self) -> None: ...
