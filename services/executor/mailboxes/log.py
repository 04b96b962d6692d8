"""What came to one mailbox, as it's stored: each mail once, and the place with it.

A record is stored behind the last one or not at all, so of two replicas that read the same mail one
finds out and ends; and after a crash there is nothing to put right.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Final

from vigil import crash
from vigil.bus.bus import Bus
from vigil.clock import Clock
from vigil.contracts import encode
from vigil.contracts.codec import decode_mail
from vigil.contracts.mail import CameMail, MailEntry
from vigil.errors import Unavailable, WrongLastSequence
from vigil.subjects import Scope

STREAM: Final = "MAILS"
KNOWN_MAX: Final = 5_000
"""Mails that are known again if the server counts anew: the newest."""


class MailLog:
    """The records of one mailbox, for whoever follows it."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        whose: Scope,
        mailbox: str,
        *,
        may_store: Callable[[], bool] = lambda: True,
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._mailbox = mailbox
        self._may_store = may_store
        self._subject = whose.mail(mailbox)
        self._seq = 0
        self.last: MailEntry | None = None
        """None: it was never looked at."""
        self._known: set[str] | None = None
        """Of mails that were stored; None: not read yet."""
        self._since: datetime | None = None
        """What came until then is dealt with."""
        self._newest: dict[str, datetime] = {}
        """When each address wrote last, of those that are known."""

    async def load(self) -> None:
        """Read how far it was read. Raises: Unavailable, InvalidInput."""
        found = await self._bus.get_last(STREAM, self._subject)
        self._known, self._since = None, None
        self._seq = 0 if found is None else found.seq
        self.last = None if found is None else decode_mail(found.data)

    async def begin(self, validity: int, uid: int, since: datetime | None) -> None:
        """Begin behind a UID, at first or because the server counts anew. Raises: Unavailable."""
        await self._store(self._of(validity, uid, since=since))
        crash.point("mailbox.begun")

    async def take(self, validity: int, uid: int, mail: CameMail) -> None:
        """Store a mail. Raises: Unavailable, somebody else stored one."""
        await self._store(self._of(validity, uid, mail=mail))
        crash.point("mailbox.mail")

    def _of(
        self,
        validity: int,
        uid: int,
        *,
        mail: CameMail | None = None,
        since: datetime | None = None,
    ) -> MailEntry:
        return MailEntry(
            mailbox=self._mailbox,
            validity=validity,
            uid=uid,
            at=self._clock.now(),
            mail=mail,
            since=since,
        )

    async def _store(self, entry: MailEntry) -> None:
        if not self._may_store():
            raise Unavailable("its owner is being erased")
        try:
            ack = await self._bus.publish(self._subject, encode(entry), expect=self._seq)
        except WrongLastSequence as error:
            raise Unavailable("another replica reads this mailbox") from error
        self._seq, self.last = ack.seq, entry
        if entry.mail is not None:
            self._note(entry.mail)

    # ------------------------------------------------------------ what was stored

    async def was_dealt_with(self, identity: str, came_at: datetime) -> bool:
        """Whether a mail was dealt with under another UID. Raises: Unavailable, InvalidInput."""
        known = await self._read()
        return identity in known or (self._since is not None and came_at <= self._since)

    async def newest_of(self, addresses: Collection[str]) -> dict[str, datetime]:
        """Return when each of these addresses wrote last, of those that did. Raises: Unavailable,
        InvalidInput."""
        await self._read()
        return {one: self._newest[one] for one in addresses if one in self._newest}

    async def _read(self) -> set[str]:
        if self._known is None:
            self._known = set()
            found = (await self._bus.read(STREAM, [self._subject]))[-KNOWN_MAX:]
            entries = [decode_mail(message.data) for message in found]
            # Whatever came before the oldest that is kept was dealt with, and is forgotten.
            self._since = next((_since(one) for one in entries), None)
            for mail in (one.mail for one in entries):
                if mail is not None:
                    self._note(mail)
        return self._known

    def _note(self, mail: CameMail) -> None:
        if self._known is None:
            return  # it's read from the log later
        self._known.add(mail.identity)
        author = mail.author.lower()
        self._newest[author] = max(mail.came_at, self._newest.get(author, mail.came_at))


def _since(entry: MailEntry) -> datetime | None:
    return entry.since if entry.mail is None else entry.mail.came_at
