"""Circuits: whether a part that fails again and again is asked at present (SPEC C-5)."""

from __future__ import annotations

from typing import Literal

from ..base import Instant, Record

CircuitState = Literal["closed", "open", "half_open"]


class Circuit(Record, frozen=True, kw_only=True, tag_field="kind", tag="circuit"):
    """The breaker of one component, as all replicas have it.

    Stored when it changes, never while all is well: one that was never stored is closed.
    """

    id: str
    """32 hex digits, of the component's name."""
    owner: str
    agent: str
    """Whose it is: of a session those of that; of what all share, nobody (`_`)."""
    component: str
    """What it is and its name, as in ``model:claude``, ``mcp:files``, ``embedder:NAME``."""
    state: CircuitState
    reason: str = ""
    """Why it opened: the newest failure in words."""
    failures: int = 0
    """How many calls had failed in a row when it opened."""
    openings: int = 0
    """How often it opened in a row: a trial that fails opens it anew, for longer."""
    opened_at: Instant | None = None
    """When it first opened, of those in a row."""
    changed_at: Instant
    until: Instant | None = None
    """Open: when the next call is let through, as a trial. Half open: so long the trial is waited
    for."""
