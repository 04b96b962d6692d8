"""What was said in a conversation elsewhere, before it was imported here (ADR 75)."""

from __future__ import annotations

from typing import Literal

from ..base import VERSION_1, Instant, Record
from ..events import Attachment

PastRole = Literal["user", "agent"]
"""Who said it, as the subject has it."""


class PastWords(Record, frozen=True, kw_only=True):
    """One message of an imported conversation. Nothing is done about it."""

    id: str
    """The one that it had where it was said."""
    session_key: str
    role: PastRole
    text: str
    at: Instant
    """When it was said."""
    of: str
    """What tells its conversation from others: 32 hex digits."""
    number: int
    """Its place in that, from 1."""
    origin: str
    """Whose form it was in: ``vigil``, ``hermes``, ``openclaw``."""
    imported_at: Instant
    imported_by: str
    by: str = ""
    """The member of the team who said it; empty: the person whose session it is."""
    attachments: tuple[Attachment, ...] = ()
    is_tainted: bool = False
    """Nobody vouches for it, or outside content had a part in it (SPEC X-3)."""
    v: int = VERSION_1
