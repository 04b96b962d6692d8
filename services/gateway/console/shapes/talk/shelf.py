"""The list of conversations as a page has it: the home on top, then the newest. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from vigil.contracts.session_kinds import SESSION_KINDS
from vigil.subjects import SessionKey

from ....http.wire import SessionSummary

TITLE_MAX = 80


class ShelfRow(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in the list."""

    key: str
    title: str
    is_home: bool = False
    is_unread: bool = False
    is_archived: bool = False
    at: datetime | None = None
    """When something was last said in it, by whom ever."""
    messages: int = 0
    """What people said in it."""
    fork_of: str = ""
    """The conversation that it goes on from."""


def called_by_kind(key: str, home: str) -> str:
    """Return what a session is called that nobody named; empty: it goes by what was said in it.

    >>> called_by_kind("ann:vigil:main", "ann:vigil:main"), called_by_kind("ann:vigil:_cron-1", "")
    ('Home', 'a run of the timetable')
    >>> called_by_kind("ann:vigil:t1", "ann:vigil:main")
    ''
    """
    if key == home:
        return "Home"
    session = SessionKey.parse(key)
    if not session.is_system:
        return ""
    known = SESSION_KINDS.get(session.kind)
    return (known.one if known else "") or session.kind


def shelf_of(found: Sequence[SessionSummary], home: str, *, has_home: bool) -> list[ShelfRow]:
    """Return the rows of a page of the list.

    Args:
        home: the key of the home conversation, which stands on top.
        has_home: whether it does so also where it isn't among them.

    >>> one = SessionSummary(session_key="ann:vigil:t1", messages=1, last_at=None, title="Tea?")
    >>> [row.title for row in shelf_of([one], "ann:vigil:main", has_home=True)]
    ['Home', 'Tea?']
    """
    rows = [_row(one, home) for one in found]
    top = [row for row in rows if row.is_home]
    if not top and has_home:
        top = [ShelfRow(key=home, title="Home", is_home=True)]
    return [*top, *(row for row in rows if not row.is_home)]


def _row(one: SessionSummary, home: str) -> ShelfRow:
    is_home = one.session_key == home
    instants = [at for at in (one.last_at, one.said_at) if at is not None]
    return ShelfRow(
        key=one.session_key,
        title="Home" if is_home else one.title[:TITLE_MAX] or one.session_key,
        is_home=is_home,
        is_unread=one.is_unread,
        is_archived=one.is_archived,
        at=max(instants, default=None),
        messages=one.messages,
        fork_of="" if one.fork_of is None else one.fork_of.session_key,
    )
