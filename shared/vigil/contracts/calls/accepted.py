"""A call that a person let run."""

from __future__ import annotations

from typing import Any

from ..base import Record
from ..tools import Risk, ServerAnswer


class AcceptedCall(Record, frozen=True, kw_only=True):
    """A call that a person let run, to be run by a session of its own."""

    approval_id: str
    tool: str
    input: dict[str, Any]
    """The exact arguments."""
    risk: Risk
    """The risk class as which they accepted it."""
    answered: ServerAnswer | None = None
    """What they said to what its server wanted of them."""
