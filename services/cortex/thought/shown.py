"""What the model of one session was shown last: what stays of it isn't put into words again."""

from __future__ import annotations

from ..row_counts import ShownRows
from .prompts import StandingText


class ShownBefore:
    """What was shown in one open session."""

    def __init__(self) -> None:
        self.rows = ShownRows()
        self.standing = StandingText()
