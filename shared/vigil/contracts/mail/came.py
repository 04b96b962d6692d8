"""What came to a person's mailbox: one record for each mail, and its place in it.

One subject for each mailbox. A record is stored if nobody stored another meanwhile, so a mail and
how far the mailbox was read are one step: nothing is lost between them, and nothing told twice.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from ..base import VERSION_1, Instant, Record

MailClass = Literal[
    "personal", "notice", "invitation", "newsletter", "list", "auto_reply", "bounce", "own"
]
"""What a mail is by its head alone. ``notice``: a machine wrote it, to this person; ``own``: the
person did."""
MAIL_CLASSES: Final[dict[str, str]] = {
    "personal": "somebody wrote it",
    "notice": "a machine wrote it to you: an invoice, a booking",
    "invitation": "a calendar invitation, an answer to one, or its end",
    "newsletter": "sent to many, who may unsubscribe",
    "list": "of a mailing list",
    "auto_reply": "an answering machine's",
    "bounce": "a mail server tells what became of a mail",
    "own": "from your own address",
}


class MailedInvitation(Record, frozen=True, kw_only=True):
    """A calendar's part of a mail (RFC 5546), as it came: whoever has calendars reads it."""

    method: str
    """In upper case: ``REQUEST``, ``CANCEL``, ``REPLY`` …"""
    ics: str = ""
    """The iCalendar text; empty: too long to be kept."""


class MailedOffer(Record, frozen=True, kw_only=True):
    """What an invitation would change of its reader's calendars, and the call that does it."""

    what: str
    """In words that none of its sender's are among."""
    title: str = ""
    """The sender's words."""
    tool: str = ""
    """Empty: no call does it, the person does."""
    input: dict[str, Any] = msgspec.field(default_factory=dict)
    """Arguments of the call; its texts are the sender's words."""


class CameMail(Record, frozen=True, kw_only=True):
    """A mail, as far as it's kept: its writer's claims, but for `came_at` and `size`."""

    identity: str
    """The same for a mail that comes twice, whatever servers wrote above it."""
    kind: MailClass
    author: str = ""
    """The one address in From; empty: there is none."""
    name: str = ""
    """What stands beside it."""
    subject: str = ""
    message_id: str = ""
    came_at: Instant
    """By the server's clock."""
    size: int
    """Bytes."""
    text: str = ""
    """How it begins, without quotes; empty for what no reader is shown."""
    files: tuple[str, ...] = ()
    """Names of what is attached."""
    invitation: MailedInvitation | None = None
    offer: MailedOffer | None = None
    """What the invitation would change, when it came; None: nothing."""


class OfferedMail(Record, frozen=True, kw_only=True):
    """An invitation that a person is to be asked about."""

    author: str
    name: str = ""
    """Beside the address."""
    offer: MailedOffer


class MailedOffers(Record, frozen=True, kw_only=True):
    """Invitations that came to a mailbox since it was looked at."""

    mails: tuple[OfferedMail, ...]
    left: int = 0
    """How many more came, about which nobody is asked, for their number."""


class MailToRead(Record, frozen=True, kw_only=True):
    """A mail as a reader is shown it, who is asked whether it matters."""

    author: str
    name: str = ""
    """Beside the address."""
    who: str
    """The name by which facts name its sender."""
    subject: str = ""
    came_at: Instant
    text: str = ""
    files: tuple[str, ...] = ()


class MailEntry(Record, frozen=True, kw_only=True):
    """One mail, or the place where reading begins."""

    mailbox: str
    """NAME of ``[mailboxes.NAME]``."""
    validity: int
    """UIDVALIDITY: another one has other UIDs."""
    uid: int
    """All up to it is dealt with."""
    at: Instant
    """When it was stored."""
    mail: CameMail | None = None
    """None: reading begins behind that UID."""
    since: Instant | None = None
    """When reading began: what came before, by the server's clock, is never taken in, even if the
    server counts its mails anew."""
    v: int = VERSION_1


def is_read_by_model(mail: CameMail) -> bool:
    """Whether a rule can't say that it doesn't matter."""
    return mail.kind in ("personal", "notice")
