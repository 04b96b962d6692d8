"""Facts of a mailbox that no model tells: how many are unread, when known people last wrote.

They are taken as a look's are, counted in the bits of their row's day; so at most once an hour, or
a busy mailbox would spend them before noon.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from vigil.contracts import SlotRun
from vigil.facts import mailed
from vigil.facts.shape import COUNT_MAX
from vigil.runtime import Context
from vigil.settings.mailboxes import MailboxSection
from vigil.subjects import SessionKey, token_of

from ..board.facts import FactStore
from .log import MailLog

if TYPE_CHECKING:
    from vigil.mail.mailbox import Mailbox

EVERY: Final = timedelta(hours=1)
SOON: Final = timedelta(minutes=1)
"""After the first: so that a mailbox that was just added isn't told of as it was a minute ago."""


class MailboxFacts:
    """Reports those of one mailbox."""

    def __init__(self, context: Context, name: str, section: MailboxSection) -> None:
        config = context.settings.config
        self._clock = context.clock
        self._desk = FactStore(context)
        contacts = mailed.contacts_of(config.person_of(section.user).contacts)
        self._facts = mailed.facts_of(contacts)
        self._key = SessionKey(
            section.user, section.agent, config.person_of(section.user).home_thread
        )
        self._name = name
        self._row = mailed.row_of(section.scope, name)
        self._reported_at: datetime | None = None
        self._count = 0

    async def report(self, box: Mailbox, log: MailLog) -> bool:
        """Report them, if it is time; whether the mailbox was asked. Raises: MailboxLost,
        Unavailable."""
        now = self._clock.now()
        wait = SOON if self._count < 2 else EVERY
        if self._reported_at is not None and now - self._reported_at < wait:
            return False
        values: dict[str, object] = {mailed.UNREAD: min(await box.unread(), COUNT_MAX)}
        newest = await log.newest_of(frozenset(self._facts.newest.values()))
        for name, address in self._facts.newest.items():
            if address in newest:
                values[name] = newest[address].isoformat()
        slot = SlotRun(
            row=self._row,
            name=self._name,
            due_at=now,
            timeout_s=0,
            facts=self._facts.read,
            looked=self._facts.counted,
        )
        cause = token_of("mailbox", self._row, now.isoformat())
        await self._desk.take_counted(self._key, slot, cause, values)
        self._reported_at, self._count = now, self._count + 1
        return True
