"""Facts: what a source outside may say without a word of its own (FLOW F-9).

A fact has a shape, and a value of it comes out of a closed set that the person or the configuration
named: so nothing that an outsider writes gets into one, and it sways nobody who is shown it.
"""

from __future__ import annotations

import msgspec

from ..base import Instant, Record


class YesNo(Record, frozen=True, kw_only=True, tag_field="kind", tag="yes_no"):
    """Yes or no."""


class OneOf(Record, frozen=True, kw_only=True, tag_field="kind", tag="one_of"):
    """One of a list."""

    values: tuple[str, ...]


class IdOf(Record, frozen=True, kw_only=True, tag_field="kind", tag="id_of"):
    """One of some ids, letter for letter."""

    values: tuple[str, ...]


class BoundedNumber(Record, frozen=True, kw_only=True, tag_field="kind", tag="number"):
    """A number within bounds."""

    least: int
    """In steps of the last decimal: 375 with one decimal is 37.5."""
    most: int
    """The same."""
    decimals: int = 0
    unit: str = ""


class AnInstant(Record, frozen=True, kw_only=True, tag_field="kind", tag="instant"):
    """An instant, to the minute, not too far from when it's told."""


class ADay(Record, frozen=True, kw_only=True, tag_field="kind", tag="day"):
    """A day of the calendar, not too far from when it's told."""


class VersionNumber(Record, frozen=True, kw_only=True, tag_field="kind", tag="version"):
    """Up to four numbers with dots between them."""


FactShape = YesNo | OneOf | IdOf | BoundedNumber | AnInstant | ADay | VersionNumber
"""What a fact may be; a new shape is a struct of its own, and one of this union."""


class KnownFact(Record, frozen=True, kw_only=True):
    """A fact, as it was last told."""

    name: str
    shape: FactShape
    value: str
    """The value as `vigil.facts.value` writes it."""
    since: Instant
    """When it was first told so."""
    at: Instant
    """When it was told so last."""
    was: str = ""
    """What it was before, or of a number with a step from where that counted; empty: it wasn't
    known, or of another shape."""
    is_left_out: bool = False
    """Whether its source said nothing of it the last time."""
    told: str = ""
    """The number from which a step counts that is news (`vigil.facts.news`); empty: the fact has no
    such step."""


class FactFill(Record, frozen=True, kw_only=True):
    """What came of the facts that a source told at one time."""

    cause: str
    """What brought them: an effect, or an event."""
    session: str = ""
    """The session that told them; empty: none did."""
    values: dict[str, str] = msgspec.field(default_factory=dict)
    """What is known by it."""
    changed: tuple[str, ...] = ()
    """Names of those of `values` that are another than before."""
    news: tuple[str, ...] = ()
    """Names of those of `changed` whose change is news: by the rule of each; without one, numbers
    and instants, which always move, are none."""
    left_out: dict[str, str] = msgspec.field(default_factory=dict)
    """Those of which nothing is known by it, and why."""


class SourceFacts(Record, frozen=True, kw_only=True, tag_field="kind", tag="facts"):
    """All facts of one source: a row of the timetable, by its id, or a hook."""

    id: str
    owner: str
    agent: str
    facts: tuple[KnownFact, ...] = ()
    """What is known, in the order in which the row names its facts."""
    day: str = ""
    """The UTC day that `spent` is of, as 2026-11-20."""
    spent: int = 0
    """Hundredths of a bit that it may have told by facts that day."""
    is_full: bool = False
    """Whether it told so much that day that no more is taken until the next."""
    newest: FactFill | None = None
    """The newest."""
    seq: int = 0
    """The place of the newest event that a hook told; what it told no earlier one changes."""
