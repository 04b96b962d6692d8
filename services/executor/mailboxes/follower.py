"""Follows one mailbox: each mail that comes is stored once, with what rules say of it.

The mailbox is opened read-only and parts are fetched by PEEK. Where the server tells of new mail
(IDLE) it's stored at once, else when it's looked. Of what no rule sorts out, and of what may carry
an invitation, the beginning is fetched; of all others the head is enough.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec.structs import replace

from vigil.clock import Clock
from vigil.contracts.mail import CameMail, MailedInvitation, MailedOffer
from vigil.mail.line import wait_for_change
from vigil.mail.mailbox import Mailbox, MailSeen, Opened
from vigil.mail.triage import SortedHead, came, sort_head
from vigil.settings.mailboxes import MailboxSection

from ..mail.page import page_of
from .log import MailLog

log = structlog.get_logger("vigil.executor")

CHUNK: Final = 50
"""Mails whose heads are fetched at once."""


class MailFollower:
    """One connection's worth of reading."""

    def __init__(
        self,
        section: MailboxSection,
        log_: MailLog,
        clock: Clock,
        show: Callable[[str], None],
        caught_up: Callable[[Mailbox], Awaitable[bool]],
        offer: Callable[[MailedInvitation], Awaitable[MailedOffer | None]],
    ) -> None:
        self.box = Mailbox()
        self.was_open = False
        self._section = section
        self._log = log_
        self._clock = clock
        self._show = show
        self._caught_up = caught_up
        self._offer = offer
        self._again_until = 0
        """Up to that UID a mail may have been dealt with under another one."""

    async def run(self, opened: Opened) -> None:
        """Store what is there and wait for more. Raises: MailboxLost, Unavailable, BusError."""
        await self._log.load()
        await self._place(opened)
        self.was_open = True
        while True:
            await self._catch_up(opened.validity)
            if await self._caught_up(self.box):
                # Nothing may come between the last look and the waiting: what a server tells beside
                # the answer to anything else is told to nobody.
                await self._catch_up(opened.validity)
            self._show("listening" if self.box.has_idle else "polling")
            await wait_for_change(self.box, self._section.poll_s)

    async def _place(self, opened: Opened) -> None:
        """Find out where reading goes on."""
        last = self._log.last
        if last is not None and last.validity == opened.validity:
            return
        if last is not None:
            self._again_until = opened.uid_next - 1
            await self._log.begin(opened.validity, 0, None)
            return
        since = self._clock.now() - timedelta(days=self._section.first_days)
        first = await self._first_since(since) if self._section.first_days else 0
        before = (first or opened.uid_next) - 1
        await self._log.begin(opened.validity, max(before, 0), since)

    async def _first_since(self, since: datetime) -> int:
        """Return the first mail that came since then; 0: none did. UIDs are in the order in which
        mails came to the folder, which need not be that of their dates: older ones that somebody
        moved there are no news."""
        there = await self.box.since(since.date() - timedelta(days=1))
        for at in range(0, len(there), CHUNK):
            for seen in await self.box.heads(there[at : at + CHUNK]):
                if seen.came_at >= since:
                    return seen.uid
        return 0

    # ------------------------------------------------------------ new mail

    async def _catch_up(self, validity: int) -> None:
        reached = 0 if self._log.last is None else self._log.last.uid
        while uids := await self.box.newer(reached):
            for at in range(0, len(uids), CHUNK):
                await self._take_some(validity, uids[at : at + CHUNK])
            reached = max(uids)  # of what somebody removed meanwhile there is nothing to store

    async def _take_some(self, validity: int, uids: Sequence[int]) -> None:
        for seen in await self.box.heads(uids):
            found = sort_head(seen.head, self._section.address)
            may_be_known = seen.uid <= self._again_until
            if may_be_known and await self._log.was_dealt_with(found.head.identity, seen.came_at):
                continue
            mail = await self._came(seen, found)
            if mail is not None:
                await self._log.take(validity, seen.uid, mail)

    async def _came(self, seen: MailSeen, found: SortedHead) -> CameMail | None:
        """Return a mail as it's stored; None: somebody removed it."""
        data = None
        if found.needs_body:
            data = await self.box.whole(seen.uid, self._section.mail_bytes_max)
            if data is None:
                return None
        page = await page_of(data) if data is not None else ""
        mail = await asyncio.to_thread(
            came, found, data, page, came_at=seen.came_at, size=seen.size
        )
        if mail.invitation is None:
            return mail
        return replace(mail, offer=await self._offer(mail.invitation))
