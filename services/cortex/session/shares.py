"""How many sessions of one person may be busy at once, so that others get their turn. Pure.

The broker hands out wakes in the order in which they were stored, so a few thousand messages of one
person would stand before everybody else's. Here each person has a line of their own: what is beyond
their share waits in it, and nobody else waits behind it. A session is busy while a wake is held for
it; one that waits for a result, or for the person, is not. Conversations, and what works beside
them, have a share each: a person isn't kept waiting by their own workers.
"""

from __future__ import annotations

from collections import deque

from vigil.subjects import SessionKey

_Whose = tuple[str, bool]


def _whose(key: SessionKey) -> _Whose:
    return key.user, key.is_system


class Shares:
    """Who is busy, and who waits, person by person.

    >>> shares = Shares(1)
    >>> a, b = SessionKey.of("ann", "vigil", "a"), SessionKey.of("ann", "vigil", "b")
    >>> shares.begin(a), shares.begin(b), shares.begin(SessionKey.of("bob", "vigil", "c"))
    (True, False, True)
    >>> shares.end(a) == b, shares.end(b)
    (True, None)
    """

    def __init__(self, per_user_max: int) -> None:
        self._per_user_max = per_user_max
        self._busy: dict[_Whose, set[SessionKey]] = {}
        self._lines: dict[_Whose, deque[SessionKey]] = {}

    def begin(self, key: SessionKey) -> bool:
        """Whether the session may be opened now; if not, it waits until :meth:`end` returns it."""
        busy = self._busy.setdefault(_whose(key), set())
        if key not in busy and len(busy) >= self._per_user_max:
            self._lines.setdefault(_whose(key), deque()).append(key)
            return False
        busy.add(key)
        return True

    def go_on(self, key: SessionKey) -> None:
        """Count a session that is open, and busy again: it asks nobody."""
        self._busy.setdefault(_whose(key), set()).add(key)

    def end(self, key: SessionKey) -> SessionKey | None:
        """Count the session no more; return who of that person may be opened in its place."""
        whose = _whose(key)
        busy, line = self._busy.get(whose, set()), self._lines.get(whose)
        busy.discard(key)
        following = None
        if line and len(busy) < self._per_user_max:
            following = line.popleft()
            busy.add(following)
        if not line:
            self._lines.pop(whose, None)
        if not busy:
            self._busy.pop(whose, None)
        return following

    @property
    def busy(self) -> int:
        """How many sessions are busy."""
        return sum(map(len, self._busy.values()))

    @property
    def waiting(self) -> int:
        """How many sessions wait."""
        return sum(map(len, self._lines.values()))
