"""What was taken back in a conversation, folded where a newer version took its place. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ....http.wire import TranscriptMessage
from ..cards import ToolCard
from .requests import Entry


class OlderVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was said otherwise later, with what had come of it."""

    by: int
    """Sequence of the message in its place."""
    entries: tuple[Entry, ...]


def folded(entries: Iterable[Entry]) -> list[Entry | OlderVersion]:
    """Put what was taken back together, with the calls of tools between it.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 11, 28, tzinfo=UTC)
    >>> def said(seq, by=None):
    ...     return TranscriptMessage(
    ...         id="", seq=seq, role="user", text="", at=at, caused_by=None, taken_back_by=by)
    >>> used = ToolCard(seq=2, name="clock", input="")
    >>> found = folded([said(1, by=4), used, said(3, by=4), said(4)])
    >>> [len(one.entries) if isinstance(one, OlderVersion) else one.seq for one in found]
    [3, 4]
    """
    found: list[Entry | OlderVersion] = []
    for entry in entries:
        last = found[-1] if found else None
        by = entry.taken_back_by if isinstance(entry, TranscriptMessage) else None
        is_of_last = isinstance(last, OlderVersion) and (
            last.by == by or isinstance(entry, ToolCard)
        )
        if isinstance(last, OlderVersion) and is_of_last:
            found[-1] = OlderVersion(by=last.by, entries=(*last.entries, entry))
        elif by is not None:
            found.append(OlderVersion(by=by, entries=(entry,)))
        else:
            found.append(entry)
    return found
