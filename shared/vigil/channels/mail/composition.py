"""What a message is as a mail: the same bytes in each try. Pure."""

from __future__ import annotations

import re
from datetime import UTC
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from html import escape
from typing import Final

import msgspec

from ...contracts import Said
from ...contracts.mail.heads import MailHead
from ...mail import ids
from ...mail.letter import POLICY, clean, with_ids
from ...subjects import SessionKey
from ..notices.pages import conversation_of

SUBJECT_LENGTH_MAX: Final = 70
OUTSIDE: Final = "Content from outside had a part in this: look twice before you follow a link."
LINK: Final = "Open the conversation"
RE: Final = re.compile(
    r"^(\s*(re|aw|sv|antw|ant|wg|fwd?|tr|rv|res|enc|i|vs|vb|vl|odp|pd|ynt|回复|转发)"
    r"\s*(\[\d+\])?[:：])+\s*",
    re.IGNORECASE,
)
"""Before a subject: that it's an answer to what had it, or hands it on."""


class Letterhead(msgspec.Struct, frozen=True, kw_only=True):
    """What all mails of an account have."""

    address: str
    name: str
    console_url: str = ""
    """Where people reach the console; empty: mails have no link."""

    @property
    def domain(self) -> str:
        return ids.domain_of(self.address)


def composed(said: Said, to: str, head: MailHead | None, account: Letterhead) -> bytes:
    """Return a mail as it is sent.

    Args:
        to: the address, checked.
        head: of the mail that it answers; None: it answers none.
    """
    key = SessionKey.parse(said.session_key)
    parent = head.message_id if head is not None else ""
    before = head.references if head is not None else ()
    thread = ids.thread_id(key.agent, key.thread, account.domain)
    own = ids.message_id(said.id, key.agent, key.thread, account.domain)
    rest = _rest(said, to, subject_of(said.text, head), key, account)
    return with_ids(own, parent, ids.references_for(thread, before, parent), rest)


def _rest(said: Said, to: str, subject: str, key: SessionKey, account: Letterhead) -> EmailMessage:
    mail = EmailMessage(policy=POLICY)
    mail["From"] = Address(display_name=account.name, addr_spec=account.address)
    mail["To"] = Address(addr_spec=to)
    mail["Subject"] = subject
    mail["Date"] = format_datetime(said.at.astimezone(UTC))
    # So that no answering machine answers (RFC 3834).
    mail["Auto-Submitted"] = "auto-generated" if said.is_autonomous else "auto-replied"
    mail["X-Auto-Response-Suppress"] = "All"
    text = clean(said.text)
    link = conversation_of(said, account.console_url)
    remark = OUTSIDE if said.is_tainted else ""
    mail.set_content(_plain(text, remark, link), cte="quoted-printable")
    mail.add_alternative(_html(text, remark, link), subtype="html", cte="quoted-printable")
    mail.set_boundary(f"=_{said.id}")
    return mail


def subject_of(text: str, head: MailHead | None) -> str:
    """Return the subject: of an answer what it answers, else how the message begins.

    >>> subject_of("Hello!\\nHow are you?", None)
    'Hello!'
    >>> subject_of("Yes.", MailHead(message_id="<a@b>", subject="AW: Re: Plan", address="a@b"))
    'Re: Plan'
    """
    if head is not None and head.subject:
        line = " ".join(clean(RE.sub("", head.subject)).split())
        return f"Re: {line[:200]}"
    line = next((one for one in map(str.strip, clean(text).splitlines()) if one), "A message")
    if len(line) > SUBJECT_LENGTH_MAX:
        line = line[: SUBJECT_LENGTH_MAX - 1].rpartition(" ")[0] or line[: SUBJECT_LENGTH_MAX - 1]
        line += "…"
    return " ".join(line.split())


def _plain(text: str, remark: str, link: str) -> str:
    foot = [one for one in (remark, f"{LINK}: {link}" if link else "") if one]
    return "\n".join([text.rstrip("\n"), *(["", "-- ", *foot] if foot else []), ""])


def _html(text: str, remark: str, link: str) -> str:
    foot = ""
    if remark:
        foot += f'<p style="color:#666">{escape(remark)}</p>'
    if link:
        foot += f'<p style="color:#666"><a href="{escape(link)}">{LINK}</a></p>'
    return (
        "<!doctype html>\n<html><body>\n"
        f'<div style="white-space:pre-wrap">{escape(text)}</div>\n{foot}\n</body></html>\n'
    )
