"""What a browser shows of a message, and how its push service is asked to bring it. Pure.

A request for leave is shown by its own record on the board, never by the words of a message that
names it: who presses *Accept* accepts exactly the arguments that stand there. What doesn't fit is
decided where it is shown whole.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

import msgspec

from ...contracts import Approval, Said
from ...contracts.events import Event, TimerFired, ToldEvent
from ...subjects import SessionKey
from ...texts.exact import arguments
from ...texts.glyphs import visible, without_hidden
from ...words.plain import plain_lines

BODY_LENGTH_MAX: Final = 400
"""Characters of a message; no system shows more."""
ARGUMENTS_LENGTH_MAX: Final = 240
"""Characters of arguments that are decided on in a notification; longer ones may be cut there."""
LINES_MAX: Final = 4
"""Of such arguments, likewise."""
DAY_S: Final = 24 * 3600
KEPT_FOR_S: Final = {"low": 4 * 3600, "normal": DAY_S, "high": DAY_S}
TTL_S_MAX: Final = 28 * DAY_S
OUTSIDE: Final = "Content from outside had a part in this."
LONG: Final = "Its arguments are long: open it to see them, and decide."
PushUrgency = Literal["low", "normal", "high"]
"""Of RFC 8030: what wakes a phone that saves its battery."""


class PushRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is decided on in the notification."""

    id: str
    digest: str
    """Of the arguments that it shows: the verdict holds for no others."""


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """What the service worker of the console gets."""

    id: str
    """The message's: what comes twice is shown once."""
    title: str
    body: str
    path: str
    """What is opened, below the gateway's address."""
    is_silent: bool = True
    request: PushRequest | None = None


class PushedNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification, and what its push service is told."""

    notification: Notification
    urgency: PushUrgency
    ttl_s: int
    """How long it's kept for a browser that is away."""


def urgency_of(event: Event | None) -> PushUrgency:
    """Return how urgent what came of an event is: what it says itself; what was asked for at a
    time is for that time."""
    if isinstance(event, ToldEvent):
        return event.payload.urgency
    return "high" if isinstance(event, TimerFired) else "normal"


def notification_of(
    said: Said, approval: Approval | None, event: Event | None, now: datetime
) -> PushedNotification:
    """Return what is shown of a message.

    Args:
        approval: the open request that it tells, if it tells one.
        event: what it came of.
    """
    key = SessionKey.parse(said.session_key)
    path = f"/console/conversations/{key}#end"
    if approval is None:
        text = plain_lines(without_hidden(said.text)).strip()  # no system draws Markdown
        body = _joined(_begun(text), is_tainted=said.is_tainted)
        plain = Notification(id=said.id, title=key.agent, body=body, path=path)
        urgency = urgency_of(event)
        return PushedNotification(notification=plain, urgency=urgency, ttl_s=KEPT_FOR_S[urgency])
    if approval.is_question:
        asked = visible(plain_lines(str(approval.input.get("question", ""))))
        body = _joined(_begun(asked), is_tainted=approval.is_tainted)
        shown = Notification(id=said.id, title=f"{key.agent} asks", body=body, path=path)
    else:
        shown = _of_call(said, approval, key, path)
    left_s = int((approval.expires_at - now).total_seconds())
    ttl_s = max(min(left_s, TTL_S_MAX), 0)
    return PushedNotification(notification=shown, urgency="high", ttl_s=ttl_s)


def _of_call(said: Said, approval: Approval, key: SessionKey, path: str) -> Notification:
    given = arguments(approval.input)
    is_whole = len(given) <= ARGUMENTS_LENGTH_MAX and len(given.splitlines()) <= LINES_MAX
    request = PushRequest(id=approval.id, digest=approval.digest) if is_whole else None
    return Notification(
        id=said.id,
        title=f"{key.agent} asks: {visible(approval.tool)}"[:100],
        body=_joined(given if is_whole else LONG, is_tainted=approval.is_tainted),
        path=path if is_whole else f"/console/inbox/{approval.id}",
        request=request,
    )


def _begun(text: str) -> str:
    return text if len(text) <= BODY_LENGTH_MAX else f"{text[: BODY_LENGTH_MAX - 1]}…"


def _joined(text: str, *, is_tainted: bool) -> str:
    return f"{text}\n{OUTSIDE}" if is_tainted else text
