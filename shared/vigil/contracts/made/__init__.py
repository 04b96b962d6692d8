"""What a turn was decided from, beside the state before it and the event on the log.

With it the core can decide again. Nothing but that reads it.
"""

from __future__ import annotations

from typing import Final, Literal

from ..base import SOCKET, Instant, Record
from ..costs import RaiseOffer
from ..history import Block
from ..tools import Tool
from .moment import SeenBook, SeenGoal, SeenGrant, SeenHours, SeenMoment, SeenTask

MADE_BYTES_MAX: Final = 64 * 1024
"""More of it isn't kept: it shares a message with the decision itself."""

StepKind = Literal["fold", "take", "call", "takeover", "give_up", "poison", "end"]
"""Which function of the core began it."""


class SeenAnswer(Record, frozen=True, kw_only=True):
    """A model's answer; what it took stands in the turn's `usage`."""

    stop_reason: str
    row: int | None = None
    """Which of the turn's rows holds its blocks; None: they are here."""
    blocks: tuple[Block, ...] = ()
    is_fallback: bool = False


class SeenFailure(Record, frozen=True, kw_only=True):
    """Why a model gave no answer."""

    reason: str
    is_retryable: bool
    retry_after_s: float | None = None
    budget_at: Instant | None = None
    kind: str = ""


class SeenCut(Record, frozen=True, kw_only=True):
    """That the oldest part of the history was cut first, and the window it had to fit into."""

    kind: Literal["summarise", "drop"]
    count: int
    fill: float
    context_tokens: int
    fixed_tokens: int
    ratio: float
    lists_letters: bool = False
    """Whether the summary lists the letters in what it stands for; older versions' doesn't."""


class SeenNotice(Record, frozen=True, kw_only=True):
    """What the person was to be told of the budget, or of the model."""

    id: str
    text: str
    what: str = "budget"
    offer: RaiseOffer | None = None


class Made(Record, frozen=True, kw_only=True):
    """What one turn was decided from."""

    step: StepKind
    is_cut: bool = False
    """Whether the rest is missing, since it was more than `MADE_BYTES_MAX`."""
    moment: SeenMoment | None = None
    """When the step began; None: when it ended, too."""
    after: SeenMoment | None = None
    """When it ended."""
    route: str = SOCKET
    """The channel that the person preferred; empty: that of their newest message."""
    tools: tuple[Tool, ...] = ()
    """What was offered of the tools that it looked for, without their descriptions."""
    answer: SeenAnswer | None = None
    failure: SeenFailure | None = None
    cut: SeenCut | None = None
    notices: tuple[SeenNotice, ...] = ()


__all__ = [
    "MADE_BYTES_MAX",
    "Made",
    "SeenAnswer",
    "SeenBook",
    "SeenCut",
    "SeenFailure",
    "SeenGoal",
    "SeenGrant",
    "SeenHours",
    "SeenMoment",
    "SeenNotice",
    "SeenTask",
    "StepKind",
]
