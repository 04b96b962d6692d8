"""What a calendar's part of a mail would change of its reader's calendars, in a line.

That the mail is from whom it says isn't proven where a mailbox is read: so what stands in a
calendar is never said to be changed or cancelled by it, only that somebody says so.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from vigil.calendars.invitations import words_of
from vigil.errors import Unavailable
from vigil.subjects import Scope

from .book import CalendarBook, proposal_for

NOT_READ: Final = "it can't be read now"


async def told_of(book: CalendarBook, whose: Scope, ics: str, zone: ZoneInfo, now: datetime) -> str:
    """Return a proposal in words, none of which are its sender's."""
    try:
        found = await proposal_for(book, whose, ics.encode(), zone, now, sender="")
    except Unavailable:
        return NOT_READ
    return words_of(found, zone)
