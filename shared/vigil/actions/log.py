"""The log of an owner's actions with an agent: the newest take the places of the oldest."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from ..contracts.board import BoardAction
from ..contracts.board.action import ActionFeedback, ActionOutcome
from ..tasks.check import check_text

KEPT_MAX: Final = 1_000
"""Of an owner's with one agent."""
DESCRIPTION_LENGTH_MAX: Final = 500
FEEDBACK_LENGTH_MAX: Final = 1_000


def place_of(action: BoardAction) -> str:
    """Return where an action stands, until as many others have come after it as there are places.

    >>> from datetime import UTC
    >>> at = datetime(2026, 11, 23, tzinfo=UTC)
    >>> place_of(BoardAction(id="a", number=1003, owner="ann", agent="vigil", type="shell",
    ...                      description="df", created_at=at))
    '3'
    """
    return str(action.number % KEPT_MAX)


def numbered(action: BoardAction, others: Iterable[BoardAction]) -> BoardAction:
    """Return the action with its number: the next, if it has none."""
    if action.number:
        return action
    return replace(action, number=max((one.number for one in others), default=0) + 1)


def ended(action: BoardAction, outcome: ActionOutcome, now: datetime) -> BoardAction:
    """Return the action with how it ended, if it has; what was told first holds."""
    if action.outcome != "pending" or outcome == "pending":
        return action
    return replace(action, outcome=outcome, ended_at=now)


def judged(action: BoardAction, feedback: ActionFeedback) -> BoardAction:
    """Return the action with what the person says of it; their newest word holds.

    Raises:
        InvalidInput: it's too long.
    """
    check_text("text", feedback.text, FEEDBACK_LENGTH_MAX)
    before = action.feedback
    if before is not None and (before.is_good, before.text) == (feedback.is_good, feedback.text):
        return action
    return replace(action, feedback=feedback)
