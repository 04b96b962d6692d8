"""What a cycle of an agent's leaves for the next one (SPEC C-7)."""

from __future__ import annotations

import msgspec

from ..base import Instant, Record


class Recheck(Record, frozen=True, kw_only=True):
    """What is to be looked at again, and when."""

    what: str
    at: Instant
    is_tainted: bool = False
    """Whether content from outside had a part in saying so."""


class CycleReport(Record, frozen=True, kw_only=True):
    """What a cycle says of itself at its end."""

    checked: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()
    rechecks: tuple[Recheck, ...] = ()
    is_tainted: bool = False
    """Whether content from outside had a part in it: then no other cycle is shown its words
    unasked."""


class CycleLedger(Record, frozen=True, kw_only=True):
    """What the runs of a row of the system come to: cycles, and others, which leave no report."""

    told_seq: int = 0
    """The sequence of SIGNALS up to which all was told to a run that didn't fail, or needed
    none."""
    ended_at: Instant | None = None
    """When the last one ended that didn't fail."""
    failed_at: Instant | None = None
    """When the last one failed."""
    report: CycleReport | None = None
    """What the last cycle that made a report reported."""
    checked: dict[str, Instant] = msgspec.field(default_factory=dict)
    """What was checked, in the words of the reports, and when last; at most 100."""
    rechecks: tuple[Recheck, ...] = ()
    """What is still to be looked at again, the soonest first; at most 20."""
    looked: dict[str, Instant] = msgspec.field(default_factory=dict)
    """What is due by the clock -> when the newest run that was told so was due; at most 100."""
