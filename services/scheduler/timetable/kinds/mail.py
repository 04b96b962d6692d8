"""New mail of a person's mailboxes that no rule sorted out is read, some at a time (ADR 51).

Who follows a mailbox stores each mail; here it's only counted and handed on, so a mailbox to which
nothing came but newsletters costs no model. Of what a run failed to read, the next one is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec.structs import replace

from vigil.bus.bus import Bus
from vigil.contracts import SlotEntry, Start, TimetableRow
from vigil.contracts.board import CycleLedger, EverySchedule, MailWork, OpenRun
from vigil.contracts.codec import decode_mail
from vigil.contracts.mail import MailedOffers, MailEntry, MailToRead, OfferedMail, is_read_by_model
from vigil.facts import mailed
from vigil.settings.config import Config
from vigil.subjects import Scope
from vigil.timetable.cycles import paused_until

from .. import system_rows
from ..check_outcome import CheckOutcome, skipped
from ..events import slot_of
from ..known import KnownRow
from ..row_kind import CheckContext, RowKind

STREAM: Final = "MAILS"
FIRST_AFTER: Final = timedelta(minutes=2)
"""By then what is in a mailbox that was just added is stored."""
MAILS_MAX: Final = 40
"""That one run reads."""
OF_SENDER_MAX: Final = 20
"""Of these by one sender: who writes a thousand at once holds nobody else's up, and no more of them
is read."""
OFFERS_MAX: Final = 5
"""Invitations that one run asks about: of more of them it's only said how many there are, as who
sends them may be anybody."""
READ_MAX: Final = 2_000
"""That one look goes through: most need no reader."""
PROMPT: Final = "Say which of {count} new mails matter."
NOTHING_NEW: Final = "nothing came that a rule didn't sort out"
GONE: Final = "there is no such mailbox any more"
FAILING: Final = "reading failed, again and again; it is tried at {at:%H:%M} UTC"


NONE_LEFT: Final[Mapping[str, int]] = MappingProxyType({})


class NewMail(NamedTuple):
    """What came since a place of the log."""

    through: int
    """All up to there was looked at."""
    mails: tuple[MailEntry, ...] = ()
    """Those that are to be read, the oldest first."""
    left: Mapping[str, int] = NONE_LEFT
    """How many more of a sender aren't, by address."""
    offers: MailedOffers | None = None
    """Invitations about which the person is to be asked."""


def rows_of(config: Config, whose: Scope, zone: str, now: datetime) -> tuple[TimetableRow, ...]:
    """Return the rows by which a person's mailboxes are read, one for each."""
    facts = mailed.facts_of(mailed.contacts_of(config.person_of(whose.owner).contacts))
    return tuple(
        system_rows.made(
            whose,
            MailWork(
                mailbox=name,
                daily_tokens=section.daily_tokens,
                facts={**facts.read, **facts.counted},
                looked=dict(mailed.whereabouts(facts)),
            ),
            EverySchedule(interval_s=section.digest_s),
            zone=zone,
            is_enabled=section.is_enabled and section.reader,
            first_at=now + FIRST_AFTER,
            now=now,
            grace_s=section.digest_s,  # whatever was missed, it's looked
            of=name,
        )
        for name, section in config.mailboxes.items()
        if section.scope == whose
    )


async def new_mail(bus: Bus, whose: Scope, mailbox: str, since: int, through: int = 0) -> NewMail:
    """Read what came, up to as many mails as one run takes. Raises: Unavailable, InvalidInput.

    Args:
        through: nothing behind that place; 0: all.
    """
    found: list[MailEntry] = []
    senders: Counter[str] = Counter()
    offers: list[OfferedMail] = []
    reached = since
    messages = await bus.read(STREAM, [whose.mail(mailbox)], since + 1, limit=READ_MAX)
    for message in messages:
        if through and message.seq > through:
            break
        entry = decode_mail(message.data)
        if entry.mail is not None and is_read_by_model(entry.mail):
            if len(found) == MAILS_MAX:
                break
            sender = entry.mail.author.lower()
            senders[sender] += 1
            if senders[sender] <= OF_SENDER_MAX:
                found.append(entry)
        elif (came := entry.mail) is not None and came.offer is not None:
            offers.append(OfferedMail(author=came.author, name=came.name, offer=came.offer))
        reached = message.seq
    left = {who: n - OF_SENDER_MAX for who, n in senders.items() if n > OF_SENDER_MAX}
    some = MailedOffers(mails=tuple(offers[:OFFERS_MAX]), left=len(offers[OFFERS_MAX:]))
    return NewMail(reached, tuple(found), left, some if offers else None)


def _work(known: KnownRow) -> MailWork:
    if not isinstance(known.row.work, MailWork):
        raise AssertionError(f"{known.row.id} is of no mailbox")
    return known.row.work


async def _check(
    context: CheckContext, known: KnownRow, _begun: SlotEntry, _now: datetime
) -> NewMail:
    mailbox = _work(known).mailbox
    found = await new_mail(context.bus, known.scope, mailbox, known.read_seq)
    if not (found.mails or found.offers):
        known.checked_seq = found.through
    return found


def _decide(known: KnownRow, begun: SlotEntry, seen: object, now: datetime) -> CheckOutcome | None:
    if not isinstance(seen, NewMail):
        return None
    cycles, interval = known.ledger.cycles or CycleLedger(), system_rows.interval_of(known.row)
    until = paused_until(cycles, known.ledger.failures, interval)
    if not (seen.mails or seen.offers):
        return CheckOutcome(skipped(begun, NOTHING_NEW))
    if until is not None and now < until:
        return CheckOutcome(skipped(begun, FAILING.format(at=until)))
    return CheckOutcome(replace(begun, told_seq=seen.through), prepared=seen)


async def _prepare(context: CheckContext, known: KnownRow, run: OpenRun) -> NewMail:
    """Read again what a run was begun for; of one by hand, what came since the last."""
    cycles, mailbox = known.ledger.cycles or CycleLedger(), _work(known).mailbox
    if run.is_by_hand:
        return await new_mail(context.bus, known.scope, mailbox, cycles.told_seq)
    return await new_mail(context.bus, known.scope, mailbox, run.told_seq, cycles.told_seq)


def start_of(row: TimetableRow, run: OpenRun, new: NewMail, config: Config) -> Start:
    """Begin with the mails, and nothing else. What a run by hand read is news to no other."""
    work = row.work
    if not isinstance(work, MailWork):
        raise AssertionError(f"{row.id} is of no mailbox")
    contacts = mailed.contacts_of(config.person_of(row.owner).contacts)
    mails = tuple(shown(new.mails, contacts))
    return Start(
        prompt=PROMPT.format(count=len(mails)),
        mails=mails,
        mails_left=left_of(new.left, contacts),
        offers=new.offers,
        source=f"{mailed.KIND}:{work.mailbox}",
        is_tainted=True,
        slot=replace(slot_of(row, run), told_seq=new.through if run.is_by_hand else 0),
    )


def left_of(left: Mapping[str, int], contacts: tuple[mailed.MailContact, ...]) -> dict[str, int]:
    """Return how many mails aren't read, by as whom facts name their senders."""
    found: Counter[str] = Counter()
    for address, count in left.items():
        found[mailed.sender_of(contacts, address)] += count
    return dict(found)


def shown(
    entries: Iterable[MailEntry], contacts: tuple[mailed.MailContact, ...]
) -> Iterable[MailToRead]:
    """Return mails as a reader is shown them."""
    for one in (entry.mail for entry in entries):
        if one is not None:
            yield MailToRead(
                author=one.author,
                name=one.name,
                who=mailed.sender_of(contacts, one.author),
                subject=one.subject,
                came_at=one.came_at,
                text=one.text,
                files=one.files,
            )


KIND: Final = RowKind(
    work=MailWork,
    rows=rows_of,
    start=start_of,
    check=_check,
    decide=_decide,
    must_prepare=lambda _row, _run: True,
    prepare=_prepare,
    quiet=(NOTHING_NEW,),
)
