"""How long to wait before the next look at what can only be looked at: ever longer.

What comes soon is seen soon, what takes long is seen an eighth of that later at most. Without that,
looks take more of the machine than what is waited for: some are a request to a service that reads a
log for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

FIRST_S: Final = 0.02
LONGEST_S: Final = 0.5
GROWTH: Final = 1.125


def pauses(first_s: float = FIRST_S) -> Iterator[float]:
    """Yield one pause after the other, in seconds, for ever."""
    pause_s = first_s
    while True:
        yield pause_s
        pause_s = min(pause_s * GROWTH, LONGEST_S)
