"""Notifications by sessions, for a home or their agent's mind (SPEC G-1, LOOPS L-12). Pure.

One is stored as an event of the mind's own, so it waits there for the next look.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from vigil.contracts import Row, TellPerson, TellPersonPayload, TextBlock, ToldPayload
from vigil.minds import DIGEST, mind_of
from vigil.subjects import SessionKey

if TYPE_CHECKING:
    from .draft import Draft

REQUEST: Final = "request"
"""What asks for leave: it waits a moment for others, so that they are one message."""
DIGEST_LENGTH_MAX: Final = 4_000
"""Characters of what a person wrote until a conversation paused: the newest."""
MESSAGE_LENGTH_MAX: Final = 1_000
"""The most characters of one message."""


def notify(draft: Draft, home: str, message: ToldPayload, once: str = "") -> None:
    """Notify a home, or the agent's mind.

    Args:
        once: what is told once there, whoever tells it; empty: this.
    """
    payload = TellPersonPayload(home=home, told=message, once=once)
    effect, ordinal = draft.next_id("tell_person", payload, home)
    draft.effects.append(TellPerson(id=effect, ordinal=ordinal, payload=payload))


def notify_mind(draft: Draft, what: str, text: str, *, title: str = "") -> None:
    """Let the mind know, if there is one that is on.

    Args:
        text: nothing of it may be from outside.
    """
    if draft.policy.has_mind:
        message = ToldPayload(origin=draft.key, text=text, what=what, title=title)
        notify(draft, str(mind_of(SessionKey.parse(draft.key).scope)), message)


def notify_of_digest(draft: Draft, rows: Iterable[Row]) -> None:
    """Let the mind know what the person wrote until a conversation paused; of what the agent said
    nothing, since that may hand on what it read."""
    text = digest_of(rows)
    if text:
        notify_mind(draft, DIGEST, text, title=SessionKey.parse(draft.key).thread)


def digest_of(rows: Iterable[Row]) -> str:
    """Return the person's words, a message a line, the newest if they are too many.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
    >>> said = Row(role="user", source="person", blocks=(TextBlock(text="Be\\nbrief."),), at=at)
    >>> digest_of([said, Row(role="assistant", source="agent", blocks=said.blocks, at=at)])
    '2026-11-20 09:30 UTC: Be brief.'
    """
    lines = [line for row in rows if row.source == "person" for line in [_line(row)] if line]
    kept, left = list[str](), DIGEST_LENGTH_MAX
    for line in reversed(lines):
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join(reversed(kept))


def _line(row: Row) -> str:
    words = " ".join(block.text for block in row.blocks if isinstance(block, TextBlock))
    said = " ".join(words.replace("\0", "").split())[:MESSAGE_LENGTH_MAX]
    by = f"{row.by}, " if row.by else ""
    return f"{by}{row.at:%Y-%m-%d %H:%M} UTC: {said}" if said else ""
