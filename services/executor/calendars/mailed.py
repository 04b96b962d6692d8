"""What a calendar's part of a mail would change of its reader's calendars: in a line, or as a call.

That the mail is from whom it says isn't proven where a mailbox is read: so what stands in a
calendar is never said to be changed or cancelled by it, only that somebody says so.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from vigil.calendars.apart import invitation_apart
from vigil.calendars.entries import CalendarWindow
from vigil.calendars.invitations import words_of
from vigil.contracts.mail import MailedInvitation, MailedOffer
from vigil.errors import Unavailable
from vigil.runtime import Context
from vigil.settings import own
from vigil.subjects import Scope
from vigil.zones.database import zone_named

from .book import CalendarBook, proposal_for
from .offers import is_uid, offer_of

NOT_READ: Final = "it can't be read now"


async def described(
    book: CalendarBook, whose: Scope, ics: str, zone: ZoneInfo, now: datetime
) -> str:
    """Return a proposal in words, none of which are its sender's but the UID."""
    try:
        found = await proposal_for(book, whose, ics.encode(), zone, now, sender="")
    except Unavailable:
        return NOT_READ
    words = words_of(found, zone)
    uid = "" if found.kind != "new" or found.edit is None else found.edit.uid
    return f"{words}; its uid: {uid}" if uid and is_uid(uid) else words


class InvitationReader:
    """What invitations that come to one mailbox would change of its owner's calendars."""

    def __init__(self, context: Context, book: CalendarBook, whose: Scope) -> None:
        self._context = context
        self._book = book
        self._whose = whose

    async def of(self, invitation: MailedInvitation) -> MailedOffer | None:
        """Return what one asks for; None: it can't be read, or changes nothing."""
        sections = self._book.of(self._whose)
        if not sections or not invitation.ics:
            return None
        user, now = self._whose.owner, self._context.clock.now()
        try:
            configured = self._context.settings.config.person_of(user)
            person = await own.standing(self._context.bus, user, configured)
            read = await invitation_apart(invitation.ics.encode(), CalendarWindow.around(now))
        except Unavailable:
            return MailedOffer(what=f"an invitation: {NOT_READ}")
        writable = [name for name, one in sections.items() if one.is_writable]
        agendas = await self._book.agendas(self._whose)
        return offer_of(read, agendas, writable, zone_named(person.timezone), now)
