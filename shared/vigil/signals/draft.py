"""The signals of one record in the making. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from ..contracts import Signal, SignalSource
from ..subjects import Scope

TEXT_LENGTH_MAX: Final = 300
"""Reasons come from outside, too (a webhook's answer): a signal is a line, not a page."""


def id_of(stream: str, seq: int, kind: str, count: int = 1) -> str:
    """Return the id of the `count`-th signal of that kind that one record gives.

    >>> id_of("SESSIONS", 7, "timer.voided"), id_of("SESSIONS", 7, "timer.voided", 2)
    ('SESSIONS-7-timer.voided', 'SESSIONS-7-timer.voided-2')
    """
    suffix = "" if count == 1 else f"-{count}"
    return f"{stream}-{seq}-{kind}{suffix}"


class Signals:
    """Counts what one record gives, so that each signal has an id of its own.

    Args:
        whose: the agent, and the owner under whom the signals are stored.
        session_key: of the session that the record is of, if there is one.
    """

    def __init__(self, whose: Scope, source: SignalSource, session_key: str | None = None) -> None:
        self._whose = whose
        self._source = source
        self._session_key = session_key
        self._counts: dict[str, int] = {}
        self.made: list[Signal] = []

    def add(
        self,
        kind: str,
        at: datetime,
        text: str,
        *,
        caused_by: str | None,
        subject: str | None,
        **data: Any,
    ) -> None:
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        signal = Signal(
            id=id_of(self._source.stream, self._source.seq, kind, count),
            kind=kind,
            agent=self._whose.agent,
            owner=self._whose.owner,
            at=at,
            source=self._source,
            session_key=self._session_key,
            caused_by=caused_by,
            subject=subject,
            text=text if len(text) <= TEXT_LENGTH_MAX else f"{text[: TEXT_LENGTH_MAX - 1]}…",
            data={name: value for name, value in data.items() if value is not None},
        )
        self.made.append(signal)
