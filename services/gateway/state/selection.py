"""Which signals a reader wants and may have. Pure.

The same selection is a filter of the broker, for what is stored, and a test in memory, for what
comes: `tests/gateway/test_gateway_signals.py` compares the two.
"""

from __future__ import annotations

import msgspec

from vigil.errors import InvalidInput
from vigil.signals.kinds import check_kind, key_of
from vigil.subjects import ANYBODY, Scope, SessionKey, check_part

SEQ_DIGITS_MAX = 15


class Event(msgspec.Struct, frozen=True, gc=False):
    """A stored signal, ready to be sent to anybody who may have it."""

    seq: int
    session: SessionKey
    kind: str
    chunk: bytes


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's filter; None takes all. `ANYBODY` is for admins only."""

    whose: tuple[Scope, ...] = (ANYBODY,)
    kind: str | None = None
    """A kind, or ``message.*``."""
    thread: str | None = None

    @property
    def subjects(self) -> list[str]:
        """The filters of the broker.

        >>> Selection(whose=(Scope("*", "ann"),), kind="message.*").subjects
        ['signal.*.ann.message.*.*']
        """
        what = f"{self.kind or '*.*'}.{self.thread or '*'}"
        return [f"signal.{one.agent}.{one.owner}.{what}" for one in self.whose]

    def takes(self, event: Event) -> bool:
        """Return whether the event is part of it."""
        session, kind = event.session, self.kind
        return (
            any(one.covers(session) for one in self.whose)
            and (self.thread is None or self.thread == session.thread)
            and (kind is None or kind == event.kind or _is_half(kind, event.kind))
        )


def _is_half(pattern: str, kind: str) -> bool:
    return pattern.endswith(".*") and kind.startswith(pattern[:-1])


def select(
    *, whose: tuple[Scope, ...], agent: str | None, kind: str | None, session: SessionKey | None
) -> Selection:
    """Build a selection of what a client asked for.

    Args:
        whose: signals of whom the client may reach.
        session: one that the client may reach; it narrows whose they are.

    Raises:
        InvalidInput: naming the part and the reason.
    """
    if agent is not None:
        check_part("agent", agent)
        whose = tuple(Scope(agent, one.owner) for one in whose if one.agent in ("*", agent))
        if not whose:
            raise InvalidInput("agent", f"{agent!r} is no agent of theirs")
    if kind is not None:
        check_kind(kind)
    if session is None:
        return Selection(whose=whose, kind=kind)
    if agent not in (None, session.agent):
        raise InvalidInput("session", f"is not a session of the agent {agent}")
    if not any(one.covers(session) for one in whose):
        raise InvalidInput("session", f"is not a session of {whose[0].owner}")
    return Selection(whose=(session.scope,), kind=kind, thread=session.thread)


def event_of(seq: int, subject: str, data: bytes) -> Event:
    r"""Encode a stored signal as an event of an SSE stream.

    Raises:
        InvalidInput: it can't be an event: not on a subject of signals, or with line ends in it.

    >>> event_of(7, "signal.vigil.ann.message.sent.t1", b"{}").chunk
    b'id: 7\nevent: message.sent\ndata: {}\n\n'
    """
    try:
        session, kind = key_of(subject)
    except ValueError as error:
        raise InvalidInput("subject", f"{subject!r} holds no signals") from error
    if b"\n" in data or b"\r" in data:
        raise InvalidInput("signal", "is not in one line")
    chunk = b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), data)
    return Event(seq, session, kind, chunk)


def position_of(field: str, text: str) -> int:
    """Read the id of an event that a client sent back. Raises: InvalidInput.

    >>> position_of("after", "12")
    12
    """
    if not text.isascii() or not text.isdigit() or len(text) > SEQ_DIGITS_MAX:
        raise InvalidInput(field, "must be a number, 0 or more: the id of an event")
    return int(text)
