"""The bulletin: what an agent knows and has to do for a person, on a page (SPEC C-2)."""

from __future__ import annotations

from typing import Final

from ..base import Instant, Record

CURRENT: Final = "current"
"""The id of the one that each owner and agent have."""


class BoardBulletin(Record, frozen=True, kw_only=True, tag_field="kind", tag="bulletin"):
    """What sessions of one person and agent are shown. Nothing in it comes from outside but
    numbers, and the names of sources (LOOPS L-18)."""

    id: str = CURRENT
    owner: str
    agent: str
    text: str
    """Lines; at most 500 words."""
    short: str
    """The same for who needs less: at most 150 words."""
    is_empty: bool = False
    """Whether there is nothing to tell; the text says so."""
    made_at: Instant
