"""What a person's mail says, as the message that the agent gets. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ...attachments.examine import examined
from ...attachments.names import file_name
from ...contracts.events import Attachment
from ...errors import InvalidInput
from ...mail.bodies import MailFile, ReadMail
from ...mail.heads import MailHeadRead
from ...mail.quotes import folded, with_bars
from .composition import RE

FILES_MAX: Final = 10
"""Of a message."""
_SEALS: Final = ("application/pgp-signature", "application/pgp-keys")
"""What programs attach to each mail of those who sign: text that says nothing."""
_ENDING: Final = re.compile(r"\.[a-z0-9]{1,4}$", re.ASCII)
CUT: Final = "[… cut here: the whole mail is in the mailbox]"


def message_of(
    mail: ReadMail, page: str, *, has_subject: bool, remarks: Sequence[str], bytes_max: int
) -> str:
    """Return the message: what the writer wrote, and in brackets what else the mail holds.

    Args:
        page: the text that was made of `mail.html`, if that was needed.
        has_subject: whether to tell it.
        remarks: what there is to say of attachments.
    """
    text = folded(mail.text or with_bars(page)).strip()
    unread = [f"can't be read: {one}" for one in mail.unreadable]
    notes = [f"[{one}]" for one in (*remarks, *unread)]
    is_told = has_subject and has_own_subject(mail.head)
    subject = f"Subject: {mail.head.subject}" if is_told else ""
    before, after = [subject] if subject else [], ["\n".join(notes)] if notes else []
    whole = "\n\n".join([*before, *([text] if text else []), *after]) or "[an empty mail]"
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
    files: Sequence[MailFile],
) -> tuple[tuple[tuple[Attachment, bytes], ...], tuple[str, ...]]:
    """Return which attachments the agent gets, and a remark on each that it doesn't."""
    taken: dict[str, tuple[Attachment, bytes]] = {}
    remarks: list[str] = []
    for one in files:
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
    return tuple(taken.values()), tuple(remarks)


def _shown(file: MailFile) -> str:
    """Return what tells a file from others. Its name, or the subject of a mail that is forwarded,
    may be by anybody, and would be read as the writer's word."""
    if file.type.startswith("message/"):
        return "a mail"
    ending = _ENDING.search(file.name.lower())
    return f"a file{f' ({ending[0]})' if ending else ''}, {-(-len(file.data) // 1000)} kB"
