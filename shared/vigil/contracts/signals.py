"""Signals: records of the log, told for whoever watches."""

from __future__ import annotations

from typing import Any

import msgspec

from .base import VERSION_1, Instant, Record


class SignalSource(Record, frozen=True, kw_only=True):
    """The record that a signal was projected from."""

    stream: str
    seq: int


class Signal(Record, frozen=True, kw_only=True):
    """A record of the log, told at the level of what happened (SPEC C-4).

    Projected, never decided: the log is the truth, and projecting it again gives the same ids.
    """

    id: str
    """``{stream}-{seq}-{kind}``, with ``-{n}`` for the second and later of a kind (n from 2)."""
    kind: str
    """Two words, as in ``message.sent``; `vigil.signals.kinds.KINDS` lists and explains them."""
    agent: str
    owner: str
    at: Instant
    """When what it tells of was decided."""
    source: SignalSource
    session_key: str | None = None
    caused_by: str | None = None
    """The id of the event behind it."""
    subject: str | None = None
    """The timer, effect or event it's about: what `vigil why` takes."""
    text: str = ""
    """A sentence for a person."""
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    v: int = VERSION_1
