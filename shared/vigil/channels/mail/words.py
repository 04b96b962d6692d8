"""What a person's mail says, as the message that the agent gets. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...attachments.examine import NAME_LENGTH_MAX, examined
from ...contracts.events import Attachment
from ...errors import InvalidInput
from ...mail.bodies import MailFile, ReadMail
from ...mail.heads import plain
from ...mail.quotes import folded, with_bars

FILES_MAX: Final = 10
"""Of a message."""
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
    subject = f"Subject: {mail.head.subject}" if has_subject and mail.head.subject else ""
    before, after = [subject] if subject else [], ["\n".join(notes)] if notes else []
    whole = "\n\n".join([*before, *([text] if text else []), *after]) or "[an empty mail]"
    data = whole.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return data.decode()
    room = max(bytes_max - len(CUT.encode()) - 2, 0)
    return data[:room].decode("utf-8", "ignore") + f"\n\n{CUT}"


def taken_files(
    files: Sequence[MailFile],
) -> tuple[tuple[tuple[Attachment, bytes], ...], tuple[str, ...]]:
    """Return which attachments the agent gets, and a remark on each that it doesn't."""
    taken: dict[str, tuple[Attachment, bytes]] = {}
    remarks: list[str] = []
    for one in files:
        try:
            found = examined(file_name(one.name), one.data)
        except InvalidInput as error:
            remarks.append(f"attached, not taken: {_shown(one)}: {error.field} {error.reason}")
            continue
        if found.hash not in taken and len(taken) == FILES_MAX:
            remarks.append(f"attached, not taken: {_shown(one)}: more than {FILES_MAX}")
            continue
        taken.setdefault(found.hash, (found, one.data))
    return tuple(taken.values()), tuple(remarks)


def file_name(name: str) -> str:
    """Return a name that a file may have.

    >>> file_name("../a\\\\b.pdf")
    '.._a_b.pdf'
    """
    found = plain(name).replace("/", "_").replace("\\", "_")[:NAME_LENGTH_MAX].strip()
    return found if found not in ("", ".", "..") else "attachment"


def _shown(file: MailFile) -> str:
    size = f", {-(-len(file.data) // 1000)} kB" if file.data else ""
    return f"{plain(file.name)[:NAME_LENGTH_MAX]} ({file.type[:80]}{size})"
