"""The body of a mail: the text of who wrote it, and what is attached. Pure.

Broken parts cost nothing but themselves. A mail that is forwarded as a file is a file, read by
itself: nothing in it is the sender's word.
"""

from __future__ import annotations

import base64
import email
from collections.abc import Iterator
from email.errors import InvalidBase64LengthDefect
from email.message import Message
from email.policy import compat32
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from ..texts.glyphs import without_hidden
from .heads import BROKEN, MailHeadRead, decoded, head_bytes, head_of, plain, words

DEPTH_MAX: Final = 250
PARTS_MAX: Final = 1000
NAME_LENGTH_MAX: Final = 120
MAILS: Final = ("message/rfc822", "message/global")
if TYPE_CHECKING:
    _Part: TypeAlias = Message[Any, Any]


class MailFile(msgspec.Struct, frozen=True, kw_only=True):
    """What is attached."""

    name: str
    type: str
    """As the mail claims it."""
    data: bytes = b""
    mail: ReadMail | None = None
    """What is in a mail that was forwarded as a file, with those that were forwarded in it."""


class MailReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a mail server tells of a mail of ours."""

    message_id: str
    """Of that mail."""
    recipient: str
    action: str
    """``delivered``, ``relayed``, ``expanded``: it went on; ``failed``, ``delayed``."""
    reason: str = ""


class ReadMail(msgspec.Struct, frozen=True, kw_only=True):
    """A mail, read as far as it can be."""

    head: MailHeadRead
    text: str = ""
    html: str = ""
    """Of what has no text of its own: to be made one."""
    files: tuple[MailFile, ...] = ()
    report: MailReport | None = None
    unreadable: tuple[str, ...] = ()
    """What of it can't be read, and why."""


class _FoundParts:
    """What was found on the way through the parts."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.pages: list[str] = []
        self.files: list[MailFile] = []
        self.unreadable: list[str] = []
        self.left = PARTS_MAX


def read_mail(data: bytes) -> ReadMail:
    """Read a mail. Whatever is in it, something comes out."""
    found = _FoundParts()
    try:
        mail = email.message_from_bytes(data, policy=compat32)
        _walk(mail, found, 0)
    except RecursionError:
        found.unreadable.append("parts that lie too deep")
        mail = email.message_from_bytes(head_bytes(data), policy=compat32)
    return msgspec.structs.replace(_read(mail, found), report=_report_of(mail))


def _read(mail: _Part, found: _FoundParts) -> ReadMail:
    return ReadMail(
        head=head_of(mail),
        text="\n\n".join(one for one in found.texts if one.strip()),
        html="" if any(one.strip() for one in found.texts) else "\n".join(found.pages),
        files=tuple(found.files),
        unreadable=tuple(dict.fromkeys(found.unreadable)),
    )


def _walk(part: _Part, found: _FoundParts, depth: int) -> None:
    found.left -= 1
    if depth > DEPTH_MAX or found.left < 0:
        found.unreadable.append("parts that lie too deep, or are too many")
        return
    kind = part.get_content_type()
    if kind in MAILS or (kind.startswith("message/") and part.is_multipart()):
        found.files.append(_forwarded(part, kind, found, depth))
    elif kind == "multipart/alternative" and part.is_multipart():
        _choose(list(_parts_of(part)), found, depth)
    elif part.is_multipart():
        for one in _parts_of(part):
            _walk(one, found, depth + 1)
    else:
        _take(part, kind, found)


def _choose(parts: list[_Part], found: _FoundParts, depth: int) -> None:
    """Of ways to say the same, take the first that has text; what is no text is attached."""
    tried: list[_FoundParts] = []
    for one in parts:
        each = _FoundParts()
        each.left = found.left
        _walk(one, each, depth + 1)
        found.left = each.left
        tried.append(each)
    best = next((one for one in tried if any(text.strip() for text in one.texts)), None)
    best = best or next((one for one in tried if one.pages), None)
    for each in tried:
        if each is best:
            found.texts += each.texts
            found.pages += each.pages
        found.files += each.files
        found.unreadable += each.unreadable


def _take(part: _Part, kind: str, found: _FoundParts) -> None:
    name = _name_of(part)
    is_attached = part.get_content_disposition() == "attachment" or bool(name)
    is_text = kind in ("text/plain", "text/html") and not is_attached
    try:
        data = _decoded(part)
    except BROKEN as error:
        found.unreadable.append(f"a part of it: {type(error).__name__}")
        return
    if not isinstance(data, bytes):
        found.unreadable.append("a part of it")
    elif not is_text:
        found.files.append(MailFile(name=name or _unnamed(kind), type=plain(kind), data=data))
    else:
        text = _text_of(part, data)
        (found.texts if kind == "text/plain" else found.pages).append(text)


def _decoded(part: _Part) -> object:
    """Return the bytes of a part. Of Base64 that was cut the library returns the letters, which
    would be a text, where one of them is left over."""
    data = part.get_payload(decode=True)
    if any(isinstance(one, InvalidBase64LengthDefect) for one in part.defects):
        return base64.b64decode("".join(str(part.get_payload()).split())[:-1])
    return data


def _text_of(part: _Part, data: bytes) -> str:
    try:
        charset = str(part.get_content_charset() or "utf-8")
        flowed = str(part.get_param("format") or "").lower() == "flowed"
        deleted = str(part.get_param("delsp") or "").lower() == "yes"
    except BROKEN:
        charset, flowed, deleted = "utf-8", False, False
    text = decoded(data, charset).replace("\r\n", "\n").replace("\r", "\n")
    text = without_hidden(text)
    return unflowed(text, is_deleted=deleted) if flowed else text


def unflowed(text: str, *, is_deleted: bool = False) -> str:
    """Return a text of the form `flowed` (RFC 3676) with its paragraphs in a line each.

    >>> unflowed("a \\nb\\n-- \\nc")
    'a b\\n-- \\nc'
    """
    lines: list[str] = []
    is_open, depth = False, 0
    for line in text.split("\n"):
        bare = line.lstrip(">")
        own = len(line) - len(bare)
        bare = bare.removeprefix(" ")
        if is_open and own == depth and bare != "-- ":
            lines[-1] += bare
        else:
            lines.append(("> " if own else "") + bare)
        is_open, depth = bare.endswith(" ") and bare != "-- ", own
        if is_open and is_deleted:
            lines[-1] = lines[-1][:-1]
    return "\n".join(lines)


def _forwarded(part: _Part, kind: str, found: _FoundParts, depth: int) -> MailFile:
    inner = next(_parts_of(part), None)
    if inner is None or kind not in MAILS:
        return MailFile(name=_unnamed(kind), type=kind)
    each = _FoundParts()
    each.left = found.left
    _walk(inner, each, depth + 1)
    found.left = each.left
    mail = _read(inner, each)
    name = mail.head.subject[:NAME_LENGTH_MAX] or _unnamed(kind)
    return MailFile(name=name, type=kind, mail=mail)


def _name_of(part: _Part) -> str:
    try:
        return words(str(part.get_filename() or ""))[:NAME_LENGTH_MAX]
    except BROKEN:
        return "a file"


def _unnamed(kind: str) -> str:
    """Return what to call a part without a name."""
    return "invitation.ics" if kind == "text/calendar" else f"a part of type {plain(kind)}"


# ---------------------------------------------------------------- reports (RFC 3464)


def _report_of(mail: _Part) -> MailReport | None:
    """Return what a report tells; None: it is none, or doesn't say of which mail."""
    if mail.get_content_type() != "multipart/report":
        return None
    try:
        return _read_report(mail)
    except BROKEN:
        return None


def _read_report(mail: _Part) -> MailReport | None:
    message_id = ""
    texts: dict[str, str] = {}
    for part in _parts_of(mail):
        kind = part.get_content_type()
        if kind == "message/delivery-status":
            for block in _parts_of(part):
                texts |= {name.lower(): plain(str(value)) for name, value in block.raw_items()}
        elif kind == "message/rfc822":
            message_id = next((head_of(one).message_id for one in _parts_of(part)), "")
        elif kind in ("text/rfc822-headers", "message/rfc822-headers"):
            data = part.get_payload(decode=True)
            if isinstance(data, bytes):
                message_id = head_of(email.message_from_bytes(data, policy=compat32)).message_id
    recipient = texts.get("original-recipient") or texts.get("final-recipient") or ""
    if not message_id or "action" not in texts:
        return None
    return MailReport(
        message_id=message_id,
        recipient=recipient.partition(";")[2].strip(),
        action=texts["action"].lower(),
        reason=texts.get("diagnostic-code") or texts.get("status", ""),
    )


def _parts_of(part: _Part) -> Iterator[_Part]:
    inner = part.get_payload()
    if isinstance(inner, list):
        yield from (one for one in inner if isinstance(one, Message))
