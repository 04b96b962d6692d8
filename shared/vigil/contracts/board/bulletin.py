"""The bulletin: what an agent knows and has to do for a person, on a page (SPEC C-2)."""

from __future__ import annotations

from typing import Final, Literal

from ..base import Instant, Record

CURRENT: Final = "current"
"""The id of the one that each owner and agent have."""
Maker = Literal["rules", "model"]
"""Who put into words what is known: rules list it, a model makes a text of it."""


class BoardBulletin(Record, frozen=True, kw_only=True, tag_field="kind", tag="bulletin"):
    """What sessions of one person and agent are shown. Nothing in it comes from outside but
    numbers, and the names of sources (LOOPS L-18)."""

    id: str = CURRENT
    owner: str
    agent: str
    text: str
    """What is known, in lines: at most 500 words of rules, or 1,500 of a model."""
    short: str
    """Both for who needs less: at most 150 words."""
    status: str = ""
    """How things stand: tasks, what came from outside by number, what the agent keeps up with. By
    rules, whoever made the text."""
    is_empty: bool = False
    """Whether there is nothing to tell; the text says so."""
    made_at: Instant
    """When that was known of which the text is."""
    made_by: Maker = "rules"
    digest: str = ""
    """SHA-256 of what the text was made of; empty: of an older version."""
    shown_since: Instant | None = None
    """What it said before is shown to nobody any more: something of it may have been forgotten.
    None: nothing was."""


class BulletinBasis(Record, frozen=True, kw_only=True):
    """What a text for a bulletin is made of; what it holds stands in the prompt of the session."""

    digest: str
    revision: int
    """The bulletin's revision when the basis was read: if there is a newer one at the end, the text
    is of what may have been forgotten since, and is thrown away."""
    read_at: Instant
    words_max: int


class MadeText(Record, frozen=True, kw_only=True):
    """A text that a session made for a bulletin."""

    text: str
    basis: BulletinBasis


def whole(bulletin: BoardBulletin) -> str:
    """Return all that a bulletin says.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 11, 20, tzinfo=UTC)
    >>> whole(BoardBulletin(owner="ann", agent="vigil", text="b", short="", status="a", made_at=at))
    'a\\nb'
    """
    return "\n".join(part for part in (bulletin.status, bulletin.text) if part)
