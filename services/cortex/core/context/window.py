"""How much of the model's context window a request takes (SPEC I-4).

Nobody counts tokens exactly but the model. So a request is estimated by its bytes, and the estimate
is corrected by what the newest call of the conversation really took, within bounds: a server that
reports nonsense changes little.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from vigil.contracts import AttachmentBlock, ExternalBlock, Row

from ..draft.sight import tokens_of
from ..draft.tokens import tokens_of_bytes

RATIO_MIN: Final = 0.75
"""Real tokens for an estimated one, at least: what English has."""
RATIO_MAX: Final = 1.5
"""At most: dense scripts and digits."""


def tokens_of_row(row: Row) -> int:
    """Return the estimate for a row as the model is shown it."""
    size, files = len(msgspec.json.encode(row.blocks)), 0
    for block in row.blocks:
        if isinstance(block, ExternalBlock):
            # Each line is shown behind a bar and a blank, whatever it takes for the end of one.
            size += 2 * len(block.event.content.splitlines())
        elif isinstance(block, AttachmentBlock):
            files += tokens_of(block.file)
    return tokens_of_bytes(size) + files


def tokens_of_rows(rows: Iterable[Row]) -> int:
    return sum(map(tokens_of_row, rows))


class Measured(msgspec.Struct, frozen=True):
    """A call whose size is known: what the model says that it and its answer took, and the
    estimate for the rows in it. The system prompt and the tools are in the first only."""

    tokens: int
    estimated: int

    def ratio(self, fixed_tokens: int) -> float:
        """Return the real tokens for an estimated one.

        Args:
            fixed_tokens: the estimate for the system prompt and the tools.

        >>> Measured(800, 900).ratio(100), Measured(3, 900).ratio(100)
        (0.8, 0.75)
        """
        ratio = self.tokens / max(self.estimated + fixed_tokens, 1)
        return min(max(ratio, RATIO_MIN), RATIO_MAX)


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The context window, and what of it the conversation can't change."""

    context_tokens: int
    fixed_tokens: int = 0
    """The estimate for the system prompt and the tools."""
    ratio: float = 1.0
    """Real tokens for an estimated one."""

    def fill(self, row_tokens: int) -> float:
        """Return which part of the window a request takes, by the estimate for its rows.

        >>> Window(context_tokens=1000, fixed_tokens=100, ratio=0.75).fill(900)
        0.75
        """
        return self.tokens(row_tokens) / self.context_tokens

    def tokens(self, row_tokens: int) -> float:
        """Return how long a request is, by the estimate for its rows."""
        return (self.fixed_tokens + row_tokens) * self.ratio

    def room(self, share: float) -> int:
        """Return the estimate for the rows that fill the window up to `share`; a quarter of the
        window at least, since a request without rows asks nothing.

        >>> Window(context_tokens=1000, fixed_tokens=100).room(0.95)
        850
        """
        room = int(self.context_tokens * share / self.ratio) - self.fixed_tokens
        return max(room, self.context_tokens // 4)
