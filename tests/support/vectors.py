"""Points for the tests of vector indexes."""

from __future__ import annotations

import functools
from typing import Any
from zlib import crc32

import numpy as np

from services.memory.vectors import Near, Point, VectorIndex, Where
from vigil.subjects import Scope

DIMENSION = 16
ANN = Scope("vigil", "ann")
BOB = Scope("vigil", "bob")
OWN = 1_000_000
"""So many numbers has an owner."""


@functools.cache
def vector(seed: int, dimension: int = DIMENSION) -> bytes:
    """A vector of unit norm, always the same for a seed."""
    numbers = np.random.default_rng(seed).standard_normal(dimension)
    return (numbers / np.linalg.norm(numbers)).astype("<f4").tobytes()


def memory_id(number: int) -> str:
    return f"{number:032x}"


def point(number: int, **changes: Any) -> Point:
    """Point `number` of ann, saved and happened at second `number`. Those of others have the same
    ids, and numbers of their own, as in SQLite."""
    given: dict[str, Any] = {
        "num": number + OWN * crc32(repr(changes.get("scope")).encode()),
        "id": memory_id(number), "scope": ANN, "vector": vector(number), "source": "api",
        "type": "fact", "thread": "", "created_at": float(number), "happened_at": float(number),
        "ended_at": None, "is_tainted": False,
    }  # fmt: skip
    return Point(**(given | changes))


async def found(
    index: VectorIndex, limit: int = 100, near: int = 1, scope: Scope = ANN, **where: Any
) -> list[int]:
    """The numbers of the points that a search finds, nearest to `near` first."""
    hits = await index.search(vector(near), limit, Where(scope=scope, **where))
    return [hit.num % OWN for hit in hits]


def similarity(hits: list[Near]) -> list[float]:
    return [hit.similarity for hit in hits]
