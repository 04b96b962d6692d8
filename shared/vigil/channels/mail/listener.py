"""What reads a mailbox: new mail of the people who are paired becomes their messages, in order.

How far it was read is in the bucket CONFIG, stored after what was read: whoever is ended in between
reads it once more, and it's known by then. A mail of anybody else is counted, and nothing else
comes of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
from msgspec.structs import replace

from ... import crash
from ...bus.kv import KeyValue
from ...contracts.mail.heads import MailHead
from ...errors import InvalidInput, Unavailable, WrongLastSequence
from ...mail import ids, place
from ...mail.access import Access
from ...mail.bodies import ReadMail, read_mail
from ...mail.heads import MailHeadRead, read_head
from ...mail.line import MailboxLine, imap_of, wait_for_change
from ...mail.mailbox import Mailbox, MailSeen, Opened
from ...mail.place import ReadPlace
from ...mail.quotes import marked
from ...net.page_text import text_of_page
from ...subjects import token_of
from .. import pairs
from ..contract import ChannelContext, DeliveryReport, Ear, Inbound
from ..pairs import ChannelPerson
from . import authentic, words

if TYPE_CHECKING:
    from ...bus.bus import Bus
    from .section import MailAccount

log = structlog.get_logger("vigil.mail")

CHUNK: Final = 50
"""Mails whose heads are fetched at once."""
PAGE_S: Final = 5.0
REPORT_BYTES_MAX: Final = 256 * 1024
"""Of what says that it's a report, as anybody may: it's read whoever sent it."""
ARRIVED: Final = ("delivered", "relayed", "expanded")
"""Actions of a report (RFC 3464) by which the mail went where it should, or on from there."""
ENDS: Final = (*ARRIVED, "failed")


class MailListener:
    """One account's way in."""

    def __init__(self, account: MailAccount, access: Access, context: ChannelContext) -> None:
        self._account = account
        self._context = context
        host, _ = account.imap()
        server = imap_of(account.imap(), account, account.mailbox)
        self._line = MailboxLine(server, access, context.home, context.clock, context.name)
        box = token_of("mailbox", host, access.user, account.mailbox)
        self._key = f"{pairs.PLACE_PREFIX}{token_of('channel', context.name)}.{box}"

    async def listen(self, ear: Ear) -> None:
        """Read until cancelled; after a failure again, later and later."""
        bus = self._context.bus
        if bus is None:
            raise Unavailable("there is no bus to tell")

        def begin() -> _OpenMailbox:
            return _OpenMailbox(self._account, self._context, bus, ear, self._key)

        await self._line.follow(begin, lambda one, state, why: ear.show(state, why, one.counts))


class _OpenMailbox:
    """One connection's worth of reading."""

    def __init__(
        self, account: MailAccount, context: ChannelContext, bus: Bus, ear: Ear, key: str
    ) -> None:
        self.box = Mailbox()
        self.was_open = False
        self._account = account
        self._channel = context.name
        self._clock = context.clock
        self._bus = bus
        self._ear = ear
        self._key = key
        self._bucket = KeyValue(bus, pairs.BUCKET)
        self._place = ReadPlace(validity=0, uid=0)
        self._revision = 0
        self._problem = ""

    @property
    def counts(self) -> dict[str, int]:
        now = self._place
        return {
            "outside": now.outside,
            "unproven": now.unproven,
            "refused": now.refused,
            "heard_at": now.heard_at,
        }

    async def run(self, opened_box: Opened) -> None:
        """Read what is there, and wait for more. Raises: MailboxLost, Unavailable, BusError."""
        validity, uid_next = opened_box.validity, opened_box.uid_next
        known, self._revision = await self._load()
        if known is None:
            opened = await self._begin(validity, uid_next)
        else:
            opened = place.found(known, validity, uid_next)
        self._place = opened
        if opened != known:
            await self._store()
        self.was_open = True
        while True:
            await self._catch_up()
            self._show()
            await wait_for_change(self.box, self._account.poll_s)

    async def _begin(self, validity: int, uid_next: int) -> ReadPlace:
        """Return where reading begins, behind all that is there."""
        there = [uid for uid in await self.box.newer(0) if uid < uid_next]
        heads = await self.box.heads(there[-CHUNK:]) if there else []
        newest = [(read_head(one.head).identity, one.came_at) for one in heads]
        return place.begun(validity, uid_next, newest, are_all=len(there) <= CHUNK)

    def _show(self) -> None:
        state = "listening" if self.box.has_idle else "polling"
        self._ear.show(state, self._problem, self.counts)

    # ------------------------------------------------------------ the place

    async def _load(self) -> tuple[ReadPlace | None, int]:
        value, revision = await self._bucket.last(self._key)
        try:
            return (msgspec.json.decode(value, type=ReadPlace) if value else None), revision
        except msgspec.MsgspecError as error:
            raise Unavailable(f"how far the mailbox was read can't be read: {error}") from error

    async def _store(self) -> None:
        try:
            self._revision = await self._bucket.put(
                self._key, msgspec.json.encode(self._place), expect=self._revision
            )
        except WrongLastSequence as error:
            raise Unavailable("another replica reads this mailbox") from error

    # ------------------------------------------------------------ new mail

    async def _catch_up(self) -> None:
        while uids := await self.box.newer(self._place.uid):
            for at in range(0, len(uids), CHUNK):
                await self._take_some(uids[at : at + CHUNK])

    async def _take_some(self, uids: Sequence[int]) -> None:
        people = await pairs.people_of(self._bus, self._channel)
        for seen in await self.box.heads(uids):
            head = read_head(seen.head)
            is_known = place.is_known(self._place, seen.uid, head.identity, seen.came_at)
            is_stored = False
            if not is_known:
                is_stored = await self._take(seen, head, people)
            self._place = place.passed(self._place, seen.uid, head.identity, seen.came_at)
            if is_stored:
                crash.point("mail.heard")
                await self._store()
                people = await pairs.people_of(self._bus, self._channel)
        # What somebody removed meanwhile doesn't come any more.
        self._place = replace(self._place, uid=max(self._place.uid, *uids))
        await self._store()
        self._show()
        crash.point("mail.place")

    async def _take(
        self, seen: MailSeen, head: MailHeadRead, people: Sequence[ChannelPerson]
    ) -> bool:
        """Take one mail in, if it's for us; whether anything was stored."""
        if head.kind == "report":
            return await self._report(seen, people)
        author = head.author
        is_proven = bool(author) and self._is_proven(head)
        user = pairs.user_of(people, author) if is_proven else None
        if head.kind == "personal" and user is not None:
            return await self._hear(seen, head, user)
        now = self._clock.now()
        if head.kind == "personal" and is_proven and pairs.has_open_code(people, author, now):
            return await self._pair(seen, author, people)
        is_claimed = not is_proven and pairs.user_of(people, author) is not None
        outside, unproven = self._place.outside + 1, self._place.unproven + is_claimed
        self._place = replace(self._place, outside=outside, unproven=unproven)
        return False

    async def _report(self, seen: MailSeen, people: Sequence[ChannelPerson]) -> bool:
        """Take in what a mail server tells of a mail of ours. Its id, which only those know who had
        the mail in their hands, is what it's believed by."""
        mail = await self._whole(seen, REPORT_BYTES_MAX)
        report = None if mail is None else mail.report
        domain = ids.domain_of(self._account.address)
        about = None if report is None else ids.read_message_id(report.message_id, domain)
        user = None if report is None else pairs.user_of(people, report.recipient)
        if report is None or about is None or user is None:
            self._place = replace(self._place, outside=self._place.outside + 1)
            return False
        if report.action not in ENDS:
            return False  # it's delayed: it goes on
        effect_id, agent, thread = about
        said = DeliveryReport(
            is_delivered=report.action in ARRIVED, reason=report.reason or report.action
        )
        await self._ear.settle(user, agent, thread, effect_id, said)
        return True

    def _is_proven(self, head: MailHeadRead) -> bool:
        """Whether it is of whom From names. The account's own address is nobody's."""
        if head.fault or pairs.is_same(head.author, self._account.address):
            return False
        if self._account.authserv_id:
            return authentic.is_passed(head.results, self._account.authserv_id, head.author)
        return self._account.rejects_forgeries

    async def _pair(self, seen: MailSeen, author: str, people: Sequence[ChannelPerson]) -> bool:
        mail = await self._whole(seen)
        if mail is not None:
            text = f"{mail.head.subject}\n{mail.text}\n{mail.html}"
            user = await pairs.pair(self._bus, people, author, text, self._clock.now())
            if user is not None:
                log.info("paired", action="mail.paired", channel=self._channel, user=user)
                return True
        self._place = replace(self._place, outside=self._place.outside + 1)
        return False

    async def _hear(self, seen: MailSeen, head: MailHeadRead, user: str) -> bool:
        mail = await self._whole(seen)
        if mail is None or place.was_taken_in(self._place, id_of(mail)):
            return False
        heard = await self._heard(seen, mail, user)
        try:
            if place.is_stale(head.date, seen.came_at):
                raise InvalidInput("Date", "is more than a week before it came")
            if not self._account.is_meant(head.to):
                raise InvalidInput("To", f"doesn't name {self._account.address}")
            await self._ear.hear(heard)
            self._place = place.taken_in(self._place, heard.id, seen.came_at)
        except InvalidInput as error:
            self._place = replace(self._place, refused=self._place.refused + 1)
            self._problem = f"a mail of {user} was not taken in: {error}"
            log.warning(
                "mail refused",
                action="mail.unusable",
                channel=self._channel,
                user=user,
                uid=seen.uid,
                error=str(error),
            )
        return True

    async def _whole(self, seen: MailSeen, bytes_max: int = 0) -> ReadMail | None:
        """Return a mail, read apart from the loop; None: it's gone."""
        data = await self.box.whole(seen.uid, bytes_max or self._account.mail_bytes_max)
        return None if data is None else await asyncio.to_thread(read_mail, data)

    async def _heard(self, seen: MailSeen, mail: ReadMail, user: str) -> Inbound:
        head, account = mail.head, self._account
        several = [mail, *itertools.islice(words.mails_in(mail.files), words.FILES_MAX)]
        (_, page), *handed_on = [(one, await _page_of(one)) for one in several]
        found = await asyncio.to_thread(words.words_in, mail, page, handed_on)
        files, remarks = await asyncio.to_thread(words.taken_files, mail.files, found.forwarded)
        if seen.size > account.mail_bytes_max:
            read, size = account.mail_bytes_max // 1000, seen.size // 1000
            remarks = (*remarks, f"of {size} kB only the first {read} were read")
        belongs = ids.place_of(
            head.references,
            head.in_reply_to,
            head.message_id or head.identity,
            channel=self._channel,
            domain=ids.domain_of(account.address),
        )
        text = words.message_of(
            mail,
            found,
            has_subject=belongs.is_new,
            remarks=remarks,
            bytes_max=self._ear.text_bytes_max,
        )
        before = (*head.references, *([head.in_reply_to] if head.in_reply_to else []))
        return Inbound(
            id=id_of(mail),
            user=user,
            agent=belongs.agent or account.agent,
            thread=belongs.thread,
            text=text,
            files=files,
            reply_to=belongs.reply_to,
            mail=MailHead(
                address=head.author,
                message_id=head.message_id,
                references=tuple(dict.fromkeys(before)),
                subject=head.subject[:500],
            ),
        )


async def _page_of(mail: ReadMail) -> str:
    """Return the text of a mail that is HTML alone; empty: it has other text."""
    if not mail.html:
        return ""
    made = await text_of_page(marked(mail.html), "", sys.executable, PAGE_S)
    return "[its text can't be told]" if made is None else made


def id_of(mail: ReadMail) -> str:
    """Return what a mail is known by when it comes again: who wrote it, its Message-ID and what it
    says. Its Date is no part of that if it has an id: a server may have put it in."""
    head = mail.head
    held = hashlib.sha256(f"{mail.text}\0{mail.html}".encode("utf-8", "replace"))
    for file in mail.files:
        held.update(hashlib.sha256(file.data).digest())
    return token_of(head.author, head.message_id or head.identity, head.subject, held.hexdigest())
