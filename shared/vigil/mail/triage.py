"""What sort of mail it is, by its head and its parts, where rules can say. Pure.

No text of a mail is read for it. What a rule takes for somebody's own words may still be nobody's:
that a reader finds out, who has no tools.
"""

from __future__ import annotations

import email
import re
from collections.abc import Iterator
from email.message import Message
from email.policy import compat32
from email.utils import parseaddr
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from ..contracts.mail import CameMail, MailClass, MailedInvitation
from . import ids, quotes
from .bodies import ReadMail, read_mail
from .heads import (
    BROKEN,
    Fields,
    MailHeadRead,
    MailKind,
    author_of,
    decoded,
    head_of,
    plain,
    words,
)

if TYPE_CHECKING:
    from datetime import datetime

    _Part: TypeAlias = Message[Any, Any]

TEXT_LENGTH_MAX: Final = 1_000
"""Characters of a mail that are kept: enough to tell what it wants."""
FIELD_LENGTH_MAX: Final = 300
NAME_LENGTH_MAX: Final = 100
ICS_LENGTH_MAX: Final = 16_384
FILES_MAX: Final = 10
PARTS_MAX: Final = 200
_METHOD: Final = re.compile(r"(?im)^METHOD:[ \t]*([a-z-]{2,20})[ \t]*\r?$")
_ANSWERED: Final = re.compile(r"auto-(replied|notified)", re.IGNORECASE)


class SortedHead(msgspec.Struct, frozen=True, kw_only=True):
    """What the head of a mail alone tells."""

    head: MailHeadRead
    author: str
    """The address in From, as far as there is one; that proves nothing."""
    name: str
    """What stands beside it."""
    kind: MailClass

    @property
    def needs_body(self) -> bool:
        """Whether what it is may hang on its parts, or what it says is kept."""
        return self.kind in ("personal", "notice", "auto_reply")


def sort_head(data: bytes, own: str) -> SortedHead:
    """Say what sort of mail it is by its head, which may be followed by its body.

    Args:
        own: the address of whose mailbox it is.

    >>> sort_head(b"From: a@b.example\\nList-Unsubscribe: <https://b.example/u>\\n\\n", "c@d").kind
    'newsletter'
    >>> sort_head(b"From: a@b.example\\nAuto-Submitted: auto-replied\\n\\n", "c@d").kind
    'auto_reply'
    """
    mail = email.message_from_bytes(data, policy=compat32)
    fields, head = Fields(mail), head_of(mail)
    name, author = who_of(fields)
    kind = _kind_of(fields, head.kind, is_own=author.lower() == own.lower())
    is_somebody = bool(author) or kind != "personal"
    return SortedHead(head=head, author=author, name=name, kind=kind if is_somebody else "notice")


def _kind_of(fields: Fields, kind: MailKind, *, is_own: bool) -> MailClass:
    precedence = fields.first("precedence").strip().lower()
    answering = fields.first("auto-submitted").partition(";")[0].strip().lower()
    if kind == "report":
        return "bounce"
    is_answer = _ANSWERED.fullmatch(answering) or precedence == "auto_reply"
    if is_answer or fields.first("x-autoreply") or fields.first("x-autorespond"):
        return "auto_reply"
    if fields.first("list-post") or (fields.first("list-id") and precedence == "list"):
        return "list"
    bulk = precedence in ("bulk", "list", "junk")
    if bulk or any(fields.first(one) for one in ("list-id", "list-unsubscribe")):
        return "newsletter"
    if is_own:
        return "own"
    return "notice" if kind == "automatic" else "personal"


def who_of(fields: Fields) -> tuple[str, str]:
    """Return name and address in From, as people would read it: empty is what can't be read.

    Where two addresses stand there, or one before the other, nobody can say who wrote it: a server
    may have looked at one, and the reader would see the other.

    >>> mail = email.message_from_string("From: Dr. Ann Lee <ann@a.example>\\n\\n", policy=compat32)
    >>> who_of(Fields(mail))
    ('Dr. Ann Lee', 'ann@a.example')
    """
    given = fields.first("from")
    name, address = parseaddr(given)
    author, _ = author_of(fields.all("from"))
    # Dots and commas beside an address, which are no right ones, leave no doubt whose it is.
    is_alone = len(fields.all("from")) == 1 and given.count("@") == 1 and ids.is_address(address)
    if not author and not is_alone:
        return plain(words(name))[:NAME_LENGTH_MAX], ""
    return words(name)[:NAME_LENGTH_MAX], author or address


def came(
    sorted_head: SortedHead, data: bytes | None, page: str, *, came_at: datetime, size: int
) -> CameMail:
    """Return what is kept of a mail.

    Args:
        data: all of it, or its beginning; None: the head was enough.
        page: the text that was made of its HTML, if it has no other.
    """
    head = sorted_head.head
    read = ReadMail(head=head) if data is None else read_mail(data)
    invitation = None if data is None else invitation_of(data)
    kind: MailClass = "invitation" if invitation is not None else sorted_head.kind
    is_kept = kind in ("personal", "notice", "invitation")
    return CameMail(
        identity=head.identity,
        kind=kind,
        author=sorted_head.author,
        name=sorted_head.name,
        subject=head.subject[:FIELD_LENGTH_MAX],
        message_id=head.message_id,
        came_at=came_at,
        size=size,
        text=text_of(read, page) if is_kept else "",
        files=tuple(plain(one.name)[:NAME_LENGTH_MAX] for one in read.files[:FILES_MAX]),
        invitation=invitation,
    )


def text_of(mail: ReadMail, page: str, length_max: int = TEXT_LENGTH_MAX) -> str:
    """Return what somebody wrote, without what they quoted; cut, which is seen."""
    text = quotes.folded(mail.text or quotes.with_bars(page)).strip().replace("\0", "")
    return text if len(text) <= length_max else text[: length_max - 1] + "…"


def invitation_of(data: bytes) -> MailedInvitation | None:
    """Return the invitation that a mail carries; None: it carries none.

    A calendar that has no METHOD is a file like another (RFC 5546, 1.4; RFC 6047, 2.4).
    """
    try:
        mail = email.message_from_bytes(data, policy=compat32)
        for part in _calendars(mail):
            found = part.get_payload(decode=True)
            if isinstance(found, bytes):
                text = decoded(found, str(part.get_content_charset() or "utf-8")).replace("\0", "")
                method = str(part.get_param("method") or "") or _named(text)
                if re.fullmatch(r"[A-Za-z-]{2,20}", method):
                    fits = len(text) <= ICS_LENGTH_MAX
                    return MailedInvitation(method=method.upper(), ics=text if fits else "")
    except BROKEN:
        pass
    return None


def _named(text: str) -> str:
    found = _METHOD.search(text[:4096])
    return found[1] if found else ""


def _calendars(mail: _Part) -> Iterator[_Part]:
    """Go through the parts, but not into mails that are forwarded: who sent them invited nobody."""
    waiting, left = [mail], PARTS_MAX
    while waiting and left:
        part, left = waiting.pop(0), left - 1
        kind = part.get_content_type()
        if kind == "text/calendar":
            yield part
        elif part.is_multipart() and not kind.startswith("message/"):
            inner = part.get_payload()
            waiting += [one for one in inner if isinstance(one, Message)] if inner else []
