"""What an agent does right now in a conversation, as one line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from ...http.wire import TranscriptMessage
from ...insight.now import SessionNow
from .cards import ToolCard
from .talk.requests import Entry
from .talk.trouble import Remedy, remedy_of

SLOW: Final = timedelta(seconds=4)
"""After which it is said that nothing came yet: nobody wonders for longer than five seconds."""
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
    since: datetime | None = None
    """Since when it thinks; None: it isn't known."""
    is_slow: bool = False
    """Whether that is long, for a first word."""
    remedy: Remedy | None = None
    """What to do about a model that gives no answer."""


def doing_of(now: SessionNow, entries: Sequence[Entry], at: datetime) -> Doing | None:
    """Return what it does; None: nothing.

    Args:
        entries: the newest of the conversation, in their order.
        at: the present.
    """
    if now.retries_because:
        return Doing(
            what="retrying",
            why=now.retries_because,
            until=now.waits_until,
            queued=now.queued,
            remedy=remedy_of(now.retries_because),
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
        since = _since(now, entries)
        is_slow = since is not None and at - since >= SLOW
        return Doing(what="thinking", queued=now.queued, since=since, is_slow=is_slow)
    return None


def _since(now: SessionNow, entries: Sequence[Entry]) -> datetime | None:
    """Return when the model was asked, about: after the newest turn, or the newest word."""
    said = [one.at for one in entries if isinstance(one, TranscriptMessage) and one.role == "user"]
    return max([*said[-1:], *filter(None, [now.turn_at])], default=None)


def _called(names: Sequence[str], cards: Sequence[ToolCard]) -> tuple[ToolCard, ...]:
    """Return the calls that it waits for: of each name the newest, as far as the page knows."""
    newest = {one.name: one for one in cards}
    return tuple(newest.get(name) or ToolCard(seq=0, name=name, input="") for name in names)


def _is_unanswered(now: SessionNow, entries: Sequence[Entry]) -> bool:
    """Return whether a person's word is the last one, and no turn has dealt with it yet: that the
    model is asked is on no record before it has answered."""
    last = next((one for one in reversed(entries) if isinstance(one, TranscriptMessage)), None)
    return last is not None and last.role == "user" and last.seq > now.turn_seq
