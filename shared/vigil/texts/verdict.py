"""What became of a request to a person, in words. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ..contracts.board.approval import Approval, Settled
from ..contracts.vocabulary import ApprovalState

_ENDS: Final[dict[ApprovalState, str]] = {
    "superseded": "withdrawn",
    "closed": "closed with what had asked for it",
    "edited": "accepted with other arguments",
}
"""Of the states that aren't words of people's."""


def end_of(state: ApprovalState) -> str:
    """Return what became of a request in that state.

    >>> end_of("superseded"), end_of("rejected")
    ('withdrawn', 'rejected')
    """
    return _ENDS.get(state, state)


def became(one: Approval | Settled) -> str:
    """Return what became of a request, by whom, over which channel and when.

    >>> from datetime import UTC
    >>> at = datetime(2026, 11, 29, 5, 40, 12, tzinfo=UTC)
    >>> became(Settled(id="0a", state="rejected", at=at, by="ann", channel="chat"))
    'rejected by ann over chat at 2026-11-29 05:40:12 UTC'
    >>> became(Settled(id="0a", state="superseded", at=at))
    'withdrawn at 2026-11-29 05:40:12 UTC'
    """
    by, channel, at = (
        (one.by, one.channel, one.at)
        if isinstance(one, Settled)
        else (one.decided_by, one.decided_channel, one.decided_at)
    )
    return (
        end_of(one.state)
        + (f" by {by}" if by else "")
        + (f" over {channel}" if channel else "")
        + _at(at)
    )


def _at(at: datetime | None) -> str:
    return "" if at is None else f" at {at:%Y-%m-%d %H:%M:%S} UTC"
