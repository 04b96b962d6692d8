"""Vectors of unit norm, whatever a model gives."""

from __future__ import annotations

from ..numeric import np
from . import Vectors


def unit(vectors: Vectors) -> Vectors:
    """Return vectors of unit norm; what has none stays zero.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(norms > 0, norms, 1.0)).astype(np.float32)
