"""One breaker for every part that may fail: models, MCP servers, channels, the embedder.

`breaker` decides, `circuits` keeps what it decided on the board, where all replicas find it.
"""

from __future__ import annotations

from .breaker import BreakerTerms
from .circuits import OUTSIDE, SESSION, SHARED, CircuitOpen, Circuits, Passed, each, reset

__all__ = [
    "OUTSIDE",
    "SESSION",
    "SHARED",
    "BreakerTerms",
    "CircuitOpen",
    "Circuits",
    "Passed",
    "each",
    "reset",
]
