"""Preferences: how a person likes things, and how sure the agent is (SPEC G-3, LOOPS L-15)."""

from __future__ import annotations

from typing import Any, Literal

from ..base import Instant, Record

PreferenceCategory = Literal["communication", "schedule", "code", "workflow"]
LessonKind = Literal["observed", "said", "corrected"]
"""The agent saw it; the person said it; the person said that something is not to be so."""


class Lesson(Record, frozen=True, kw_only=True):
    """What taught the agent a preference."""

    how: LessonKind
    at: Instant
    text: str = ""
    cause: str = ""
    """The event of the exchange that taught it; empty: the person set it by themselves."""
    session_key: str = ""


class BoardPreference(Record, frozen=True, kw_only=True, tag_field="kind", tag="preference"):
    """A preference of one person and agent."""

    id: str
    """Made of its key, so that there is one for each."""
    owner: str
    agent: str
    category: PreferenceCategory
    key: str
    value: Any
    """JSON."""
    is_negative: bool = False
    """A correction: `value` is what they don't want."""
    confidence: float
    """At `last_confirmed_at`; what it is now is computed (`vigil.preferences.confidence`)."""
    learned_from: tuple[Lesson, ...] = ()
    """The newest 16, the newest last."""
    last_confirmed_at: Instant
    created_at: Instant
    is_removed: bool = False
    """It is kept for its history alone."""
