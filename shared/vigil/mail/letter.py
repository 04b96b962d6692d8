"""A mail as bytes: ids in lines of our own, all else by the library. Pure.

Python's own folding writes ids of 78 characters and more as encoded words, which mail programs and
servers don't read as ids; so the lines that hold ids are made here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final

import msgspec

from . import ids

POLICY: Final = SMTP.clone(max_line_length=76)
"""By default lines of quoted-printable get 78 characters, and encoded words 76: more than MIME lets
them have (RFC 2045, 6.7; RFC 2047, 2)."""
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def with_ids(
    message_id: str, in_reply_to: str, references: Sequence[str], rest: EmailMessage
) -> bytes:
    """Return a mail with its ids.

    Args:
        in_reply_to: empty: it answers none.
        references: short enough for a line (`ids.references_for`).
    """
    lines = [f"Message-ID: {message_id}"]
    if in_reply_to:
        lines.append(f"In-Reply-To: {in_reply_to}")
    if references:
        lines.append(f"References: {' '.join(references)}")
    own = "".join(f"{line}\r\n" for line in lines).encode("ascii")
    return own + rest.as_bytes()


def clean(text: str) -> str:
    """Return a text without what a mail can't hold.

    >>> clean("a\\r\\nb\\x00c")
    'a\\nbc'
    """
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


class OwnLetter(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has written for them."""

    address: str
    """Theirs."""
    name: str = ""
    to: tuple[str, ...]
    cc: tuple[str, ...] = ()
    bcc: tuple[str, ...] = ()
    subject: str
    text: str
    message_id: str
    in_reply_to: str = ""
    references: tuple[str, ...] = ()
    at: datetime
    """Aware."""

    @property
    def recipients(self) -> tuple[str, ...]:
        """Whom it goes to, each once."""
        return tuple(dict.fromkeys((*self.to, *self.cc, *self.bcc)))


def written(letter: OwnLetter, *, is_draft: bool) -> bytes:
    """Return a letter as it is sent, or as it lies among drafts: only there it names those whom the
    others aren't to see."""
    mail = EmailMessage(policy=POLICY)
    mail["From"] = Address(display_name=letter.name, addr_spec=letter.address)
    for field, people in (("To", letter.to), ("Cc", letter.cc), ("Bcc", letter.bcc)):
        if people and (is_draft or field != "Bcc"):
            mail[field] = tuple(Address(addr_spec=one) for one in people)
    mail["Subject"] = " ".join(clean(letter.subject).split())
    mail["Date"] = format_datetime(letter.at.astimezone(UTC))
    mail.set_content(clean(letter.text).rstrip("\n") + "\n", cte="quoted-printable")
    references = ids.references_of(letter.references, letter.in_reply_to)
    return with_ids(letter.message_id, letter.in_reply_to, references, mail)
