"""The head of a mail: its fields, read one by one, so that a broken one costs no other. Pure.

Python's newer reading of heads raises for some that are broken, and quietly mends others. So what
counts for threads and trust is read from the text of the field itself.
"""

from __future__ import annotations

import email
import re
from collections.abc import Iterable
from datetime import datetime
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.policy import compat32, default
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from ..subjects import token_of
from ..texts.glyphs import without_hidden
from . import ids
from .soundness import fault_of, fault_of_envelope, fault_of_signatures

BROKEN: Final = (
    AttributeError,
    IndexError,
    KeyError,
    LookupError,
    MessageError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading a broken mail may raise."""
FIELD_LENGTH_MAX: Final = 20_000
"""Characters of a field that are looked at."""
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
MailKind = Literal["personal", "automatic", "list", "report"]
"""`report`: a mail server tells what became of a mail."""


class MailHeadRead(msgspec.Struct, frozen=True, kw_only=True):
    """What the head of a mail says."""

    author: str
    """The one address in From; empty: see `no_author`."""
    no_author: str = ""
    """Why nobody can be said to have written it."""
    fault: str = ""
    """Why it proves nothing, whoever vouches for it (`soundness`); empty: nothing is wrong."""
    subject: str = ""
    message_id: str = ""
    to: tuple[str, ...] = ()
    """Addresses in To."""
    in_reply_to: str = ""
    references: tuple[str, ...] = ()
    """The oldest first."""
    date: datetime | None = None
    """As its writer claims it; None: there is none that can be read. Naive: without a zone."""
    kind: MailKind = "personal"
    results: tuple[str, ...] = ()
    """The fields Authentication-Results, the topmost first."""
    identity: str
    """The same for a mail that comes twice, whatever servers wrote above it."""


def read_head(data: bytes) -> MailHeadRead:
    """Read the head of a mail, which may be followed by its body."""
    mail = email.message_from_bytes(data, policy=compat32)
    head, fields = head_of(mail), Fields(mail)
    fault = (
        fault_of(head_bytes(data))
        or fault_of_signatures(fields.all("dkim-signature"))
        or fault_of_envelope(fields.all("return-path"))
    )
    return replace(head, fault=fault)


def head_bytes(data: bytes) -> bytes:
    """Return the head of a mail alone."""
    return re.split(rb"\r?\n\r?\n", data, maxsplit=1)[0] + b"\r\n\r\n"


def head_of(mail: Message[Any, Any]) -> MailHeadRead:
    """Return what the head of a mail says."""
    fields = Fields(mail)
    author, no_author = author_of(fields.all("from"))
    message_ids = ids.ids_in(fields.first("message-id"))
    replied = ids.ids_in(fields.first("in-reply-to"))
    told = (fields.first(name) for name in ("message-id", "from", "date", "subject"))
    return MailHeadRead(
        author=author,
        no_author=no_author,
        subject=words(fields.first("subject")),
        message_id=message_ids[0] if message_ids else "",
        to=addresses_in(fields.first("to")),
        in_reply_to=replied[0] if replied else "",
        references=ids.ids_in(fields.first("references")),
        date=date_of(fields.first("date")),
        kind=kind_of(fields, mail.get_content_type()),
        results=tuple(fields.all("authentication-results")),
        identity=token_of(*told),
    )


class Fields:
    """The fields of a head, by name, as text that can be stored."""

    def __init__(self, mail: Message[Any, Any]) -> None:
        self._all: dict[str, list[str]] = {}
        for name, value in mail.raw_items():
            self._all.setdefault(name.lower(), []).append(text_of(str(value)))

    def all(self, name: str) -> list[str]:
        return self._all.get(name, [])

    def first(self, name: str) -> str:
        return next(iter(self.all(name)), "")


def text_of(raw: str) -> str:
    """Return a field in one line, its raw bytes read as UTF-8."""
    found = raw[:FIELD_LENGTH_MAX].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return re.sub(r"\r?\n[ \t]*", " ", found).strip()


def words(value: str) -> str:
    """Return a field as people read it.

    >>> words("=?utf-8?q?Gr=C3=BC=C3=9Fe?= =?utf-8?q?_aus?= Wien"), words("=?x-none?q?a=FFb?=")
    ('Grüße aus Wien', 'a�b')
    """
    try:
        parts = decode_header(value)
    except BROKEN:
        return plain(value)
    return plain("".join(_decoded(data, charset) for data, charset in parts))


def _decoded(data: bytes | str, charset: str | None) -> str:
    if isinstance(data, str):
        return data
    return decoded(data, charset) if charset else data.decode("raw-unicode-escape", "replace")


def decoded(data: bytes, charset: str) -> str:
    """Return bytes as text; of a charset that nobody knows, as UTF-8."""
    try:
        return data.decode(charset, "replace")
    except BROKEN:
        return data.decode("utf-8", "replace")


def plain(text: str) -> str:
    """Return a text in one line, without what nobody sees."""
    return " ".join(without_hidden(_CONTROL.sub(" ", text)).split())


def author_of(fields: Iterable[str]) -> tuple[str, str]:
    """Return the address of who wrote a mail, or why there is none that may be trusted.

    >>> author_of(["Ann <Ann@A.example>"]), author_of(["a@b.example", "c@d.example"])
    (('Ann@A.example', ''), ('', 'it has two From'))
    >>> author_of(["ann@a.example <mal@b.example>"])[0], author_of(["a@b.example, c@d.example"])[1]
    ('', 'From holds 2 addresses')
    """
    found = list(fields)
    if len(found) != 1:
        return "", "it has no From" if not found else "it has two From"
    try:
        header: Any = default.header_factory("From", found[0])
        addresses, defects = header.addresses, header.defects
    except BROKEN:
        return "", "From can't be read"
    if len(addresses) != 1:
        return "", f"From holds {len(addresses)} addresses"
    address = f"{addresses[0].username}@{addresses[0].domain}"
    if defects or not ids.is_address(address):
        return "", "From is no plain address"
    return address, ""


def addresses_in(field: str) -> tuple[str, ...]:
    """Return the plain addresses of a field, in lower case; none if it can't be read.

    >>> addresses_in("Ann <Ann@a.example>, friends: b@c.example;"), addresses_in("nobody:;")
    (('ann@a.example', 'b@c.example'), ())
    """
    try:
        header: Any = default.header_factory("To", field)
        found = [f"{one.username}@{one.domain}".lower() for one in header.addresses]
        found = [] if header.defects else found
    except BROKEN:
        return ()
    return tuple(filter(ids.is_address, found))


def date_of(value: str) -> datetime | None:
    """Return a date, if it's one."""
    try:
        return parsedate_to_datetime(value) if value else None
    except BROKEN:
        return None


def kind_of(fields: Fields, content_type: str) -> MailKind:
    """Return what sort of mail it is, by its head: a person's, or a machine's."""
    if content_type == "multipart/report" or fields.first("return-path").replace(" ", "") == "<>":
        return "report"
    answering = fields.first("auto-submitted").partition(";")[0].strip().lower()
    if answering not in ("", "no") or fields.first("x-autoreply"):
        return "automatic"
    bulk = fields.first("precedence").strip().lower() in ("bulk", "list", "junk")
    if bulk or any(fields.first(name) for name in ("list-id", "list-unsubscribe", "list-post")):
        return "list"
    return "personal"
