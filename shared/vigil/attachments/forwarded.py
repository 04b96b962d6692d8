"""What somebody hands on of others, as a text that is attached: it's read as outside content, and
none of it is their own word. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec

from ..mail.heads import plain
from .texts import data_of

NAME, ANOTHER = "forwarded.txt", "forwarded-{}.txt"
"""Ours: nobody else chose it."""
SEEN: Final = "[forwarded: see what is attached]"
"""Stands in the message for it."""
TITLE: Final = "Forwarded message"
FIELD_LENGTH_MAX: Final = 300


class ForwardedText(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was forwarded."""

    text: str
    by: str = ""
    """What whoever wrote it is called, a name that they chose; empty: it isn't told."""
    sent_at: datetime | None = None
    """When it was sent, as it's told; aware, or of no zone."""
    subject: str = ""

    @property
    def data(self) -> bytes:
        """The bytes of a file that has what is told of it above it.

        >>> sent_at = datetime(2026, 11, 20, 8, 12, tzinfo=UTC)
        >>> ForwardedText(text="Pay me.", by="Eve", sent_at=sent_at).data.decode()
        'Forwarded message\\nSent: 2026-11-20 08:12 UTC\\nFrom: Eve\\n\\nPay me.\\n'
        """
        told = {"Sent": _moment(self.sent_at), "From": self.by, "Subject": self.subject}
        lines = (
            f"{name}: {plain(field)[:FIELD_LENGTH_MAX]}" for name, field in told.items() if field
        )
        return data_of("\n".join((TITLE, *lines, "", self.text.strip(), "")))


def files_of(several: Iterable[ForwardedText]) -> list[tuple[str, bytes]]:
    """Return name and bytes of a file for each that says anything.

    >>> [name for name, _ in files_of([ForwardedText(text=one) for one in ("a", " ", "b")])]
    ['forwarded.txt', 'forwarded-2.txt']
    """
    datas = [one.data for one in several if one.text.strip()]
    return [(ANOTHER.format(n) if n > 1 else NAME, data) for n, data in enumerate(datas, 1)]


def _moment(at: datetime | None) -> str:
    if at is None or at.tzinfo is None:
        return "" if at is None else f"{at:%Y-%m-%d %H:%M}"
    try:
        return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return ""
