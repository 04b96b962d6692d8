"""What the newest signals of a person say together: error loops and floods. Pure.

The window holds the last `WINDOW` signals of each agent and owner. It looks for what no single
record shows; it decides nothing, and what it finds is for people to see. Instants are those in
the signals, so the same signals show the same patterns whenever they are looked at.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from vigil.contracts import Signal

WINDOW: Final = 100
"""Signals of one agent and owner that are looked at together (SPEC C-4)."""
OWNERS_MAX: Final = 1000
"""Windows that are kept; the one that was quiet the longest goes."""
ERRORS_MIN: Final = 5
ERRORS_WITHIN: Final = timedelta(minutes=10)
"""A model call is tried again five times within four minutes: one outage of one message is not
yet a loop, the second message that meets it is."""
FLOOD_MIN: Final = 60
FLOOD_WITHIN: Final = timedelta(seconds=60)
"""One a second for a minute, of what no message of the person's caused: their own exchanges are no
flood, however many turns each takes, and a rate limit is the gateway's business."""

PatternKind = Literal["error_loop", "flood"]
_RULES: Final[dict[PatternKind, tuple[int, timedelta]]] = {
    "error_loop": (ERRORS_MIN, ERRORS_WITHIN),
    "flood": (FLOOD_MIN, FLOOD_WITHIN),
}


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in one session: `count` signals from `since` to `until`."""

    kind: PatternKind
    session_key: str
    count: int
    since: datetime
    until: datetime


class _Seen(msgspec.Struct, frozen=True, gc=False):
    at: datetime
    session_key: str
    is_error: bool
    is_asked: bool
    """Whether a person's message caused it."""


class _Recent:
    """The newest signals of one owner, and how many each session has among them."""

    __slots__ = ("_counts", "_seen")

    def __init__(self) -> None:
        self._seen: deque[_Seen] = deque()
        self._counts: Counter[str] = Counter()

    def push(self, seen: _Seen) -> None:
        self._seen.append(seen)
        self._counts[seen.session_key] += 1
        if len(self._seen) > WINDOW:
            gone = self._seen.popleft().session_key
            self._counts[gone] -= 1
            if not self._counts[gone]:
                del self._counts[gone]

    def within(self, last: _Seen, span: timedelta, least: int, *, errors: bool) -> list[datetime]:
        """Return when the signals of `last`'s session were that lie within `span` before it.

        Fewer than `least`: an empty list.
        """
        if self._counts[last.session_key] < least:
            return []
        at = [
            one.at
            for one in self._seen
            if one.session_key == last.session_key
            and one.at >= last.at - span
            and (one.is_error if errors else not one.is_asked)
        ]
        return at if len(at) >= least else []


def _is_asked(signal: Signal) -> bool:
    data = signal.data
    return data.get("event") == "user_message" or data.get("is_autonomous") is False


class SignalWindow:
    """The newest signals of everybody, and the patterns in them.

    >>> from datetime import UTC
    >>> SignalWindow().patterns(datetime(2026, 1, 5, tzinfo=UTC))
    []
    """

    def __init__(self) -> None:
        self._owners: OrderedDict[tuple[str, str], _Recent] = OrderedDict()
        self._found: dict[tuple[PatternKind, str], Pattern] = {}

    def add(self, signals: Iterable[Signal]) -> list[Pattern]:
        """Take signals, oldest first; returns the patterns that begin with them."""
        begun: list[Pattern | None] = []
        for signal in signals:
            if signal.session_key is None:
                continue
            is_error = signal.kind.startswith("error.")
            seen = _Seen(signal.at, signal.session_key, is_error, _is_asked(signal))
            recent = self._recent(signal.agent, signal.owner)
            recent.push(seen)
            if not seen.is_asked:
                begun.append(self._find("flood", seen, recent))
            if is_error:
                begun.append(self._find("error_loop", seen, recent))
        return [pattern for pattern in begun if pattern is not None]

    def patterns(self, now: datetime) -> list[Pattern]:
        """Return what goes on at `now`, newest first; what ended is forgotten."""
        self._found = {
            key: pattern
            for key, pattern in self._found.items()
            if now - pattern.until <= _RULES[pattern.kind][1]
        }
        return sorted(self._found.values(), key=lambda one: one.until, reverse=True)

    def _recent(self, agent: str, owner: str) -> _Recent:
        recent = self._owners.setdefault((agent, owner), _Recent())
        self._owners.move_to_end((agent, owner))
        if len(self._owners) > OWNERS_MAX:
            self._owners.popitem(last=False)
        return recent

    def _find(self, kind: PatternKind, seen: _Seen, recent: _Recent) -> Pattern | None:
        """Look for a pattern that `seen` is the last of; return it if it's new."""
        least, span = _RULES[kind]
        at = recent.within(seen, span, least, errors=kind == "error_loop")
        if not at:
            return None
        known = self._found.get((kind, seen.session_key))
        if known is not None and seen.at - known.until > span:
            known = None
        self._found[kind, seen.session_key] = pattern = Pattern(
            kind=kind,
            session_key=seen.session_key,
            count=len(at),
            since=min(at) if known is None else min(known.since, *at),
            until=seen.at,
        )
        return pattern if known is None else None
