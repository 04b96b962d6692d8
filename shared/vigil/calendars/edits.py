"""What is to be changed of a calendar, and what comes of it: for the process that does it."""

from __future__ import annotations

from typing import Final

import msgspec

from ..contracts import Instant

CALL: Final = "X-VIGIL-CALL"
EDIT: Final = "--edit"
"""Has the process change something, instead of reading."""


class When(msgspec.Struct, frozen=True, kw_only=True):
    """When an event begins and ends, on the clocks of a zone: as ISO dates, or dates with times."""

    begins: str
    ends: str = ""
    """Behind its last moment, or of days the last one; empty: as long as it was, or an hour, or a
    day."""
    zone: str
    """IANA name."""


class NewEvent(msgspec.Struct, frozen=True, kw_only=True, tag="new"):
    """An event that isn't there yet."""

    uid: str
    title: str
    when: When
    place: str = ""
    notes: str = ""
    rule: str = ""
    """An RRULE; empty: it's due once."""


class ChangedEvent(msgspec.Struct, frozen=True, kw_only=True, tag="changed"):
    """What of an event becomes otherwise; None: it stays."""

    data: str
    """Its object, as it is."""
    recurrence: str = ""
    """Which instance of a series; empty: all of it."""
    reference: str = ""
    """Of a series that is changed as a whole, the instance that `when` is about."""
    title: str | None = None
    place: str | None = None
    notes: str | None = None
    when: When | None = None


class CancelledInstance(msgspec.Struct, frozen=True, kw_only=True, tag="cancelled"):
    """One instance of a series that isn't any more."""

    data: str
    recurrence: str


Edit = NewEvent | ChangedEvent | CancelledInstance


class ToEdit(msgspec.Struct, frozen=True, kw_only=True):
    """One edit."""

    edit: Edit
    call: str
    """What asked for it: written into the object, so that a repeat is known."""
    now: Instant


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    data: bytes = b""
    """The object as it's to be stored; empty: see the others."""
    is_done: bool = False
    """It was done before, by the same call."""
    problem: str = ""
    """Why it can't be done."""


def is_of(data: str, call: str) -> bool:
    """Whether an object was stored by a call.

    >>> is_of("BEGIN:VEVENT\\r\\nX-VIGIL-CALL:1f\\r\\n", "1f")
    True
    """
    wanted = f"{CALL}:{call}"
    return wanted in data.replace("\r\n ", "").replace("\n ", "").splitlines()
