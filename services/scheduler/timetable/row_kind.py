"""What a kind of row is: one frozen object, found in `timetable.kinds`.

Rows differ by what they are for, and by nothing else: who makes one, what has to be new before it
is run, and with what its session begins. All that is due, decided and written down is the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from vigil.bus.bus import Bus
from vigil.contracts import SlotEntry, Start, TimetableRow
from vigil.contracts.board import OpenRun, Work
from vigil.settings.config import Config
from vigil.subjects import Scope

from .check_outcome import CheckOutcome
from .known import KnownRow


class CheckContext(NamedTuple):
    """What may be asked in a check."""

    bus: Bus
    config: Config
    """As it holds now."""
    agents: Path
    """Where the files of agents are: in a folder for each."""
    stands: Callable[[], bool]
    """Whether the row is still known: of who is erased nothing is written any more."""


RowMaker = Callable[[Config, Scope, str, datetime], TimetableRow]
"""Makes the row that an agent has for a person, in their time zone, at an instant."""
RowsMaker = Callable[[Config, Scope, str, datetime], tuple[TimetableRow, ...]]
"""Likewise, any number of them."""


class RowKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of row."""

    work: type[Work]
    start: Callable[[TimetableRow, OpenRun, Any, Config], Start] | None
    """Builds what a run begins with, of its row, the run, and what was prepared for it. None: all
    runs are of one session, which is told that it's time, and waits by itself after failures."""
    row: RowMaker | None = None
    """Each agent has such a row for each person whom it has talked with; None: people make them."""
    rows: RowsMaker | None = None
    """Or each has so many such rows as the configuration says."""
    check: Callable[[CheckContext, KnownRow, SlotEntry, datetime], Awaitable[object]] | None = None
    """Checks what is new, without a model; None: it's run whenever it is due. Raises:
    VigilError, it can't be told now."""
    decide: Callable[[KnownRow, SlotEntry, Any, datetime], CheckOutcome | None] | None = None
    """Says what becomes of a slot that would be run, by what was seen (None: nothing yet). None: it
    has to be checked first."""
    must_prepare: Callable[[TimetableRow, OpenRun], bool] = lambda _row, _run: False
    """Whether something has to be read before a run begins."""
    prepare: Callable[[CheckContext, KnownRow, OpenRun], Awaitable[object]] | None = None
    """Reads that. Raises: VigilError, it can't be read now."""
    quiet: tuple[str, ...] = ()
    """Reasons of entries that may wait for others like them."""
