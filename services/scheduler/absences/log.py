"""The ledger, and what its people are told of it: runs that were missed while off (LOOPS L-13).

Nobody looks into a ledger unasked. So whoever a row is for is told with their next digest how many
of its runs were missed, and whether one was made up for. It's told before the entry is stored, by a
name that follows from the first of them: after a crash between the two it comes again, as the same.
"""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Final

from vigil import crash
from vigil.board.kept import ROWS, KeptBoard
from vigil.contracts import SlotEntry, TimetableRow, ToldEvent, ToldPayload, encode
from vigil.errors import WrongLastSequence
from vigil.observe import trace
from vigil.runtime import Context
from vigil.settings.homes import homes_of
from vigil.subjects import Scope, SessionKey, token_of
from vigil.teams import TEAM
from vigil.timetable import reasons
from vigil.timetable.ledger import session_of
from vigil.timetable.log import Placed, SlotLog

AWAY_AFTER: Final = timedelta(seconds=60)
"""Of what is folded sooner than that nobody says that it was missed: a row of every second is."""
WHAT: Final = "missed"


class NotifyingLog(SlotLog):
    """The ledger of all rows; who has something missed is told."""

    def __init__(self, context: Context) -> None:
        super().__init__(context.bus)
        self._clock = context.clock
        self._config = context.settings.config
        self._board = KeptBoard(context.bus, ROWS)

    async def append(self, whose: Scope, last: Placed, entry: SlotEntry) -> Placed:
        """Store an entry after the last one, as `SlotLog` does."""
        if must_notify(entry):
            found = await self._board.find([whose], entry.row)
            if found is not None and not found.entity.is_of_system:
                await self._notify(found.entity, entry)
        return await super().append(whose, last, entry)

    async def _notify(self, row: TimetableRow, entry: SlotEntry) -> None:
        text = text_of(called(row), entry)
        name = f"missed-{token_of(row.id, (entry.first_at or entry.due_at).isoformat())}"
        payload = ToldPayload(
            origin=str(session_of(row, entry.due_at)),
            text=f"{row.agent}: {text}" if row.owner == TEAM else text,
            what=WHAT,
            title=called(row),
            urgency="low",
            is_ordered=row.is_ordered,
        )
        for home in homes_of(self._config, SessionKey(row.owner, row.agent, WHAT)):
            event = ToldEvent(
                id=name, session_key=str(home), created_at=self._clock.now(), payload=payload
            )
            with contextlib.suppress(WrongLastSequence):  # told before
                subject = home.in_event(f"told.{name}")
                await self._bus.publish(subject, encode(event), trace.new_headers(), expect=0)
        crash.point("scheduler.slot.missed")


def called(row: TimetableRow) -> str:
    """Return what a row is called at home: one member's words are no other's."""
    return row.id[:8] if row.owner == TEAM else row.name


def must_notify(entry: SlotEntry) -> bool:
    """Whether people are told of an entry: that nobody was there when it was due."""
    is_away = entry.reason in reasons.AWAY and entry.state in ("missed", "coalesced")
    return is_away and entry.at - entry.due_at > AWAY_AFTER


def text_of(name: str, entry: SlotEntry) -> str:
    """Say what was missed; a newer one that stands for it was missed, too.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 11, 28, tzinfo=UTC)
    >>> folded = SlotEntry(row="1f", due_at=at, at=at, state="coalesced", count=2)
    >>> text_of("morning brief", folded)
    '3 runs of morning brief were missed while off: one was made up for.'
    >>> text_of("morning brief", SlotEntry(row="1f", due_at=at, at=at, state="missed"))
    '1 run of morning brief was missed while off: none was made up for.'
    """
    is_made_up = entry.state == "coalesced"
    return reasons.missed(name, entry.count + is_made_up, int(is_made_up))
