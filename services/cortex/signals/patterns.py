"""What the newest signals of a person say together: error loops and floods. Pure.

The window holds the last `WINDOW` signals of each agent and owner. It looks for what no single
record shows; what it finds opens a circuit of the session, and people see it. Once that closed,
what was before counts no more. Instants are those in the signals, so the same signals show the same
patterns whenever they are looked at.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from vigil.circuits import OUTSIDE, SESSION
from vigil.contracts import Signal
from vigil.words.amounts import about

WINDOW: Final = 100
"""Signals of one agent and owner that are looked at together (SPEC C-4)."""
OWNERS_MAX: Final = 1000
"""Windows that are kept; the one that was quiet the longest goes."""
ERRORS_MIN: Final = 3
ERRORS_WITHIN: Final = timedelta(minutes=10)
"""What was given up counts. That a call is tried again is no error yet: an outage of a model has a
circuit of its own."""
RETRY: Final = "error.retry"
FLOOD_MIN: Final = 60
FLOOD_WITHIN: Final = timedelta(seconds=60)
"""One a second for a minute, of what no message of the person's caused: their own exchanges are no
flood, however many turns each takes, and a rate limit is the gateway's business."""

OUTSIDE_MIN: Final = 20
"""Turns because of events from outside that make a flood one of theirs: each gives two or three
signals."""

PatternKind = Literal["error_loop", "flood"]
_RULES: Final[dict[PatternKind, tuple[int, timedelta]]] = {
    "error_loop": (ERRORS_MIN, ERRORS_WITHIN),
    "flood": (FLOOD_MIN, FLOOD_WITHIN),
}
_CIRCUITS: Final[dict[PatternKind, str]] = {"error_loop": SESSION, "flood": OUTSIDE}
CLOSED: Final = "circuit.closed"


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in one session: `count` signals from `since` to `until`."""

    kind: PatternKind
    session_key: str
    count: int
    since: datetime
    until: datetime
    outside: int = 0
    """How many of them tell of events from outside."""

    @property
    def circuit(self) -> str:
        """The component that fails by it; empty: none, it's only shown.

        >>> at = datetime(2026, 1, 5)
        >>> Pattern(kind="error_loop", session_key="a:b:c", count=3, since=at, until=at).circuit
        'session:a:b:c'
        """
        if self.kind == "flood" and self.outside < OUTSIDE_MIN:
            return ""
        return f"{_CIRCUITS[self.kind]}{self.session_key}"

    @property
    def reason(self) -> str:
        """Why that opens, in words."""
        span = (self.until - self.since).total_seconds()
        what = "exchanges given up" if self.kind == "error_loop" else "events and more"
        return f"{self.count} {what} within {about(span)}"


class _Seen(msgspec.Struct, frozen=True, gc=False):
    at: datetime
    session_key: str
    is_error: bool
    is_asked: bool
    """Whether a person's message caused it."""
    is_outside: bool
    """Whether an event from outside did."""


class _Recent:
    """The newest signals of one owner, and how many each session has among them."""

    __slots__ = ("_closed", "_counts", "_seen")

    def __init__(self) -> None:
        self._seen: deque[_Seen] = deque()
        self._counts: Counter[str] = Counter()
        self._closed: dict[tuple[str, PatternKind], datetime] = {}

    def push(self, seen: _Seen) -> None:
        self._seen.append(seen)
        self._counts[seen.session_key] += 1
        if len(self._seen) > WINDOW:
            gone = self._seen.popleft().session_key
            self._counts[gone] -= 1
            if not self._counts[gone]:
                del self._counts[gone]
                for kind in _RULES:
                    self._closed.pop((gone, kind), None)

    def close(self, session_key: str, kind: PatternKind, at: datetime) -> None:
        """Count no more of a session what was up to then."""
        if self._counts[session_key]:
            self._closed[session_key, kind] = at

    def within(self, last: _Seen, kind: PatternKind) -> list[_Seen]:
        """Return what of `last`'s session makes a pattern of that kind; fewer: an empty list."""
        least, span = _RULES[kind]
        if self._counts[last.session_key] < least:
            return []
        closed = self._closed.get((last.session_key, kind))
        found = [
            one
            for one in self._seen
            if one.session_key == last.session_key
            and one.at >= last.at - span
            and (closed is None or one.at > closed)
            and (one.is_error if kind == "error_loop" else not one.is_asked)
        ]
        return found if len(found) >= least else []


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
                if signal.kind == CLOSED:
                    self._close(str(signal.data.get("component", "")), signal)
                continue
            is_error = signal.kind.startswith("error.") and signal.kind != RETRY
            is_outside = signal.data.get("event") == "external"
            seen = _Seen(signal.at, signal.session_key, is_error, _is_asked(signal), is_outside)
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

    def _close(self, component: str, signal: Signal) -> None:
        for kind, prefix in _CIRCUITS.items():
            if component.startswith(prefix):
                session = component.removeprefix(prefix)
                self._found.pop((kind, session), None)
                self._recent(signal.agent, signal.owner).close(session, kind, signal.at)

    def _find(self, kind: PatternKind, seen: _Seen, recent: _Recent) -> Pattern | None:
        """Look for a pattern that `seen` is the last of; return it if it's new."""
        span = _RULES[kind][1]
        found = recent.within(seen, kind)
        if not found:
            return None
        at = [one.at for one in found]
        known = self._found.get((kind, seen.session_key))
        if known is not None and seen.at - known.until > span:
            known = None
        self._found[kind, seen.session_key] = pattern = Pattern(
            kind=kind,
            session_key=seen.session_key,
            count=len(at),
            since=min(at) if known is None else min(known.since, *at),
            until=seen.at,
            outside=sum(one.is_outside for one in found),
        )
        is_new = known is None or (pattern.circuit and not known.circuit)
        return pattern if is_new else None
