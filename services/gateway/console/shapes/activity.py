"""What an agent does right now in a conversation, as one line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from ...http.wire import TranscriptMessage
from ...insight.now import SessionNow
from .cards import ToolCard
from .requests import Entry

What = Literal["thinking", "using", "retrying"]


class Doing(msgspec.Struct, frozen=True, kw_only=True):
    """The line."""

    what: What
    tools: tuple[ToolCard, ...] = ()
    """What it uses."""
    why: str = ""
    until: datetime | None = None
    queued: int = 0
    """Events that come after it."""


def doing_of(now: SessionNow, entries: Sequence[Entry]) -> Doing | None:
    """Return what it does; None: nothing.

    Args:
        entries: the newest of the conversation, in their order.
    """
    if now.retries_because:
        return Doing(
            what="retrying", why=now.retries_because, until=now.waits_until, queued=now.queued
        )
    if now.waits_for:
        cards = [one for one in entries if isinstance(one, ToolCard) and one.result is None]
        return Doing(
            what="using",
            tools=_called(now.waits_for, cards),
            until=now.waits_until,
            queued=now.queued,
        )
    if now.is_thinking or _is_unanswered(now, entries):
        return Doing(what="thinking", queued=now.queued)
    return None


def _called(names: Sequence[str], cards: Sequence[ToolCard]) -> tuple[ToolCard, ...]:
    """Return the calls that it waits for: of each name the newest, as far as the page knows."""
    newest = {one.name: one for one in cards}
    return tuple(newest.get(name) or ToolCard(seq=0, name=name, input="") for name in names)


def _is_unanswered(now: SessionNow, entries: Sequence[Entry]) -> bool:
    """Return whether a person's word is the last one, and no turn has dealt with it yet: that the
    model is asked is on no record before it has answered."""
    last = next((one for one in reversed(entries) if isinstance(one, TranscriptMessage)), None)
    return last is not None and last.role == "user" and last.seq > now.turn_seq
