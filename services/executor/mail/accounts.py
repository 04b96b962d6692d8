"""What tools do in a person's mailboxes: each time by a connection of its own.

Folders are opened read-only and parts are fetched by PEEK, so nothing is marked. Two things are
written: a draft, and, where that is configured, a copy of what was sent.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from datetime import date
from pathlib import Path
from typing import Final

from vigil.clock import Clock
from vigil.errors import InvalidInput, Unavailable, VigilError
from vigil.mail.line import MailboxLine, imap_of
from vigil.mail.mailbox import Mailbox, MailSeen, Opened
from vigil.mail.smtp import Handed, MailEnvelope, SmtpWay, smtp_of
from vigil.settings.mailboxes import MailboxSection
from vigil.subjects import SessionKey
from vigil.texts.trouble import reason_of

from .found import FoundMail, MailId

MAIL_BYTES_MAX: Final = 8 * 1024 * 1024
FOUND_MAX: Final = 200
"""Mails whose heads are looked at for one search, the newest."""
DRAFT: Final = rb"\Draft"
SEEN: Final = rb"\Seen"
MARKED_DRAFTS: Final = rb"\Drafts"


class MailAccounts:
    """Does what tools want done in mailboxes."""

    def __init__(self, mailboxes: Mapping[str, MailboxSection], home: Path, clock: Clock) -> None:
        self._mailboxes = {name: one for name, one in mailboxes.items() if one.is_enabled}
        self._home = home
        self._clock = clock
        self._lines: dict[str, MailboxLine] = {}
        self._ways: dict[str, SmtpWay] = {}

    def named(self, key: SessionKey, name: str) -> tuple[str, MailboxSection]:
        """Return the mailbox that is meant, of whoever calls. Raises: InvalidInput."""
        theirs = {one: box for one, box in self._mailboxes.items() if box.scope == key.scope}
        if name in theirs:
            return name, theirs[name]
        if not name and len(theirs) == 1:
            return next(iter(theirs.items()))
        known = ", ".join(theirs)
        reason = f"must be one of: {known}" if theirs else "there is no mailbox of this person's"
        raise InvalidInput("mailbox", reason)

    @contextlib.asynccontextmanager
    async def open(
        self, name: str, section: MailboxSection, folder: str = ""
    ) -> AsyncIterator[tuple[Mailbox, Opened]]:
        """Open a mailbox, for as long as the block lasts.

        Raises:
            InvalidInput: there is no such folder.
            Unavailable: it can't be reached now.
        """
        box = Mailbox()
        try:
            try:
                opened = await self._line(name, section).opened(box)
            except (VigilError, OSError) as error:
                raise Unavailable(f"the mailbox: {reason_of(error)}") from error
            if folder and folder != section.folder:
                opened = await self._folder(box, folder)
            yield box, opened
        finally:
            await box.close()

    async def _folder(self, box: Mailbox, folder: str) -> Opened:
        there = await box.folders()
        if folder not in there:
            known = ", ".join(there[:50])
            raise InvalidInput("folder", f"there is none called {folder[:60]!r}; there is: {known}")
        return await box.open_folder(folder)

    def _line(self, name: str, section: MailboxSection) -> MailboxLine:
        if name not in self._lines:
            server = imap_of(section.imap(), section, section.folder)
            access = section.access(self._home)
            self._lines[name] = MailboxLine(server, access, self._home, self._clock, name)
        return self._lines[name]

    # ------------------------------------------------------------ looking

    async def search(
        self,
        name: str,
        section: MailboxSection,
        criteria: list[str | date],
        since: date | None,
        until: date | None,
        *,
        folder: str,
        most: int,
    ) -> tuple[list[FoundMail], int]:
        """Return the newest mails that fit, the newest first, and how many there may be.

        Args:
            since, until: days in UTC; a server goes by its own zone's, so it's asked for one more.
        """
        async with self.open(name, section, folder) as (box, opened):
            uids = await box.find(criteria)
            kept: list[MailSeen] = []
            for seen in (await box.heads(uids[-FOUND_MAX:]))[::-1] if uids else ():
                day = seen.came_at.date()
                if (since is None or day >= since) and (until is None or day <= until):
                    kept.append(seen)
            shown = kept[:most]
            unread = await box.unseen_of([one.uid for one in shown]) if shown else set()
        other = folder if folder != section.folder else ""
        found = [
            FoundMail(MailId(name, opened.validity, one.uid, other), one, one.uid in unread)
            for one in shown
        ]
        more = len(uids) - FOUND_MAX if len(uids) > FOUND_MAX else 0
        return found, len(kept) + more

    async def read(self, key: SessionKey, mail: MailId) -> bytes:
        """Return a mail of whoever calls, or its beginning. Raises: InvalidInput, Unavailable."""
        # Lines are kept by name: only one that `named` returned is surely of this section.
        name, section = self.named(key, mail.mailbox)
        async with self.open(name, section, mail.folder) as (box, opened):
            if opened.validity != mail.validity:
                raise InvalidInput("id", "the server counts its mails anew; search again")
            data = await box.whole(mail.uid, MAIL_BYTES_MAX)
        if data is None:
            raise InvalidInput("id", "there is no such mail any more")
        return data

    # ------------------------------------------------------------ writing

    async def put_draft(
        self, name: str, section: MailboxSection, message_id: str, data: bytes
    ) -> str:
        """Have a draft lie among drafts, once; return the folder. Raises: Unavailable."""
        async with self.open(name, section) as (box, _):
            folder = section.drafts or await box.special_folder(MARKED_DRAFTS) or "Drafts"
            if folder in await box.folders():
                await box.open_folder(folder)
                if await box.has_message(message_id):
                    return folder  # by a try before
            else:
                await box.make_folder(folder)
            await box.put(folder, data, (DRAFT, SEEN))
        return folder

    async def send(
        self, name: str, section: MailboxSection, to: tuple[str, ...], call_id: str, data: bytes
    ) -> Handed:
        """Hand a mail over, once. Never raises but when cancelled."""
        envelope = MailEnvelope(sender=section.address, to=to, id=call_id)
        if name not in self._ways:
            server, access = smtp_of(section.smtp(), section), section.access(self._home)
            self._ways[name] = SmtpWay(server, access, self._home, self._clock)
        return await self._ways[name].hand_over(envelope, data)

    async def keep_sent(self, name: str, section: MailboxSection, data: bytes) -> None:
        """Keep a copy, if that is configured. Raises: InvalidInput, Unavailable, MailboxLost."""
        if section.sent:
            async with self.open(name, section) as (box, _):
                await box.put(section.sent, data, (SEEN,))
