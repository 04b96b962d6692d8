"""How an open session gets on: when it last moved, and how full its context window is."""

from __future__ import annotations

from collections.abc import Callable

from vigil.bus.bus import Message
from vigil.contracts import Turn


class Progress:
    """Kept by a session, read by who looks after all of a replica (`rounds`).

    Args:
        held: gives the wake that the session holds, as it does while it owes anything.
    """

    def __init__(self, context_tokens: int, held: Callable[[], Message | None]) -> None:
        self._context_tokens = context_tokens
        self._held = held
        self._turns = 0
        self._seen = (0, 0)
        self._since_s = 0.0
        self.fill = 0.0
        """Which part of the context window the newest call took."""

    def moved(self, turn: Turn) -> None:
        """Take in a turn that is committed."""
        self._turns += 1
        if turn.outcome == "compacted":
            self.fill = 0.0
        elif turn.usage:
            used = turn.usage[-1]
            tokens = used.input_tokens + used.cache_read_tokens + used.cache_write_tokens
            self.fill = (tokens + used.output_tokens) / self._context_tokens

    def still_s(self, now_s: float) -> float:
        """Return for how many seconds it has owed the same and committed nothing, as far as looks
        tell; 0: it owes nothing, or moved since the last look."""
        held = self._held()
        seen = (0 if held is None else held.seq, self._turns)
        if held is None or seen != self._seen:
            self._seen, self._since_s = seen, now_s
        return now_s - self._since_s
