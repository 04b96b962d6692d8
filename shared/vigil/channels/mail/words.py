"""What a person's mail says, as the message that the agent gets. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from ...attachments.examine import TEXT, examined
from ...attachments.forwarded import SEEN, ForwardedText, files_of
from ...attachments.names import file_name
from ...contracts.events import Attachment
from ...errors import InvalidInput
from ...mail import quotes
from ...mail.bodies import MailFile, ReadMail
from ...mail.heads import MailHeadRead
from ...mail.quotes import folded, with_bars
from .composition import RE

FILES_MAX: Final = 10
"""Of a message."""
_SEALS: Final = ("application/pgp-signature", "application/pgp-keys")
"""What programs attach to each mail of those who sign: text that says nothing."""
_FORWARDS: Final = re.compile(
    r"^\s*(wg|fwd?|tr|rv|enc|i|vb|vl|pd|doorst|转发)\s*(\[\d+\])?[:：]", re.IGNORECASE
)
"""Begins the subject of a mail that hands on another one. Where it's ambiguous (Danish VS is
Finnish for an answer) it counts as none."""
_ENDING: Final = re.compile(r"\.[a-z0-9]{1,4}$", re.ASCII)
CUT: Final = "[… cut here: the whole mail is in the mailbox]"


class MailWords(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in a mail, and whose it is."""

    own: str
    """What its writer wrote: quotes and signatures are folded to a remark."""
    forwarded: tuple[ForwardedText, ...] = ()
    """What they hand on of others."""


def words_in(mail: ReadMail, page: str, handed_on: Sequence[tuple[ReadMail, str]]) -> MailWords:
    """Return what a mail says.

    Args:
        page: the text that was made of `mail.html`, if that was needed.
        handed_on: the mails that were forwarded with it as files, each with its page.
    """
    is_named_so = _FORWARDS.match(mail.head.subject) is not None
    own, other = quotes.handed_on(_text_of(mail, page), is_named_so=is_named_so)
    inline = [ForwardedText(text=other)] if other else []
    return MailWords(
        own=folded(own).strip(),
        forwarded=(*inline, *(_forwarded(one, its_page) for one, its_page in handed_on)),
    )


def _text_of(mail: ReadMail, page: str) -> str:
    return mail.text or with_bars(page)


def _forwarded(mail: ReadMail, page: str) -> ForwardedText:
    """Return a mail as it's handed on. Nothing in its head is proven."""
    head = mail.head
    return ForwardedText(
        text=_text_of(mail, page), by=head.author, sent_at=head.date, subject=head.subject
    )


def mails_in(files: Iterable[MailFile]) -> Iterator[ReadMail]:
    """Yield the mails that were forwarded as files, also in one another."""
    for one in files:
        if one.mail is not None:
            yield one.mail
            yield from mails_in(one.mail.files)


def message_of(
    mail: ReadMail, found: MailWords, *, has_subject: bool, remarks: Sequence[str], bytes_max: int
) -> str:
    """Return the message: what the writer wrote, and in brackets what else the mail holds.

    Args:
        has_subject: whether to tell it.
        remarks: what there is to say of attachments.
    """
    handed_on = list(mails_in(mail.files))
    unreadable = dict.fromkeys(what for one in (mail, *handed_on) for what in one.unreadable)
    unread = [f"can't be read: {one}" for one in unreadable]
    notes = [f"[{one}]" for one in (*remarks, *unread)]
    if found.forwarded:
        is_seen = any(one.text.strip() for one in found.forwarded)
        is_seen = is_seen or any(one.files for one in handed_on)
        notes.insert(0, SEEN if is_seen else "[forwarded: a mail that says nothing]")
    is_told = has_subject and has_own_subject(mail.head)
    subject = f"Subject: {mail.head.subject}" if is_told else ""
    before, after = [subject] if subject else [], ["\n".join(notes)] if notes else []
    own = [found.own] if found.own else []
    whole = "\n\n".join([*before, *own, *after]) or "[an empty mail]"
    data = whole.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return data.decode()
    room = max(bytes_max - len(CUT.encode()) - 2, 0)
    return data[:room].decode("utf-8", "ignore") + f"\n\n{CUT}"


def has_own_subject(head: MailHeadRead) -> bool:
    """Whether who wrote a mail chose its subject: that of an answer, or of what is forwarded, are
    somebody else's words."""
    is_first = not head.references and not head.in_reply_to
    return bool(head.subject) and is_first and not RE.match(head.subject)


def taken_files(
    files: Sequence[MailFile], forwarded: Iterable[ForwardedText] = ()
) -> tuple[tuple[tuple[Attachment, bytes], ...], tuple[str, ...]]:
    """Return which attachments the agent gets, and a remark on each that it doesn't. What is
    forwarded comes first, and what was attached to it last."""
    taken: dict[str, tuple[Attachment, bytes]] = {}
    remarks: list[str] = []
    texts = (MailFile(name=name, type=TEXT, data=data) for name, data in files_of(forwarded))
    for one in (*texts, *_opened(files)):
        try:
            if one.type in _SEALS:
                raise InvalidInput("file", "is a signature or a key, which isn't read")
            found = examined(file_name(one.name), one.data)
        except InvalidInput as error:
            remarks.append(f"attached, not taken: {_shown(one)}: {error.field} {error.reason}")
            continue
        if found.hash not in taken and len(taken) == FILES_MAX:
            remarks.append(f"attached, not taken: {_shown(one)}: more than {FILES_MAX}")
            continue
        taken.setdefault(found.hash, (found, one.data))
    if (count := len(list(mails_in(files))) - FILES_MAX) > 0:
        remarks.append(f"attached, not taken: {count} more mails")
    return tuple(taken.values()), tuple(remarks)


def _opened(files: Sequence[MailFile]) -> list[MailFile]:
    """Return files, with those of mails among them instead of the mails."""
    inner = [of for one in files if one.mail is not None for of in _opened(one.mail.files)]
    return [*(one for one in files if one.mail is None), *inner]


def _shown(file: MailFile) -> str:
    """Return what tells a file from others. Its name, or the subject of a mail that is forwarded,
    may be by anybody, and would be read as the writer's word."""
    if file.type.startswith("message/"):
        return "a mail"
    ending = _ENDING.search(file.name.lower())
    return f"a file{f' ({ending[0]})' if ending else ''}, {-(-len(file.data) // 1000)} kB"
