"""Merged summaries, whose text is written anew (SPEC M-6)."""

from __future__ import annotations

from typing import Final

from ..base import Record

SUMMARIES_MAX: Final = 10
"""Summaries that one session writes anew, a call each."""


class MergedSummary(Record, frozen=True, kw_only=True):
    """One of them, as it was when a session was begun to write it anew."""

    id: str
    text: str
    """Its notes, one below the other, each with its day."""
